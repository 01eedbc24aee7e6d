#!/usr/bin/env python3
"""Recognises the types of files by their contents, with Magika's trained model:
file_type.py [--models FOLDER] [--plan FILE] FILE...

With --plan, the first start measures a plan and keeps it in the file, and later starts read it.
"""
import json
import os

import numpy as np

import collage
import example


def is_utf8(contents):
    try:
        contents.decode()
        return True
    except UnicodeDecodeError:
        return False


def prepared(path, shapes, plan_file):
    """A session for one shape. Without a plan's file nothing is measured: kernels are chosen by estimates."""
    network = collage.load(path, shapes=shapes)
    if plan_file is None:
        return network.session(how="estimate")
    try:
        plan = network.load_plan(plan_file)
    except collage.MisuseError:  # it is not there, or does not fit this machine any more
        plan = network.tune(budget=10, progress=True)
        plan.save(plan_file)
    return network.session(plan)


class FileTypes:
    """The model with its configuration. It reads the first and the last bytes of a file, and returns a probability for each
    type."""

    def __init__(self, folder, plan_file):
        self.config, self.known = (json.loads(example.model(folder, f"magika/{name}.min.json").read_text())
                                   for name in ("config", "content_types_kb"))
        # The model leaves the number of files open. Here it is one at a time.
        shape = (1, self.config["beg_size"] + self.config["end_size"])
        self.session = prepared(example.model(folder, "magika/model.onnx"), {"bytes": shape}, plan_file)

    def of(self, path):
        """The type of a file and its probability. A file of few bytes is only classified as text or not, without the model."""
        if os.path.isdir(path):
            return "directory", 1.0
        try:
            with open(path, "rb") as file:
                first = file.read(self.config["block_size"])
                file.seek(-min(os.path.getsize(path), self.config["block_size"]), os.SEEK_END)
                last = file.read()
        except OSError:
            raise example.Mistake(f"{path}: cannot be read; check the path") from None
        if not first:
            return "empty", 1.0
        if len(first.lstrip()) < self.config["min_file_size_for_dl"]:
            return "txt" if is_utf8(first) else "unknown", 1.0
        scores = self.session(self.numbers(first.lstrip(), last.rstrip()))[0]
        return self.judged(int(scores.argmax()), float(scores.max()))

    def numbers(self, first, last):
        """The beginning, padded at its end, and the end, padded at its front: each byte is a number."""
        begin, end = self.config["beg_size"], self.config["end_size"]
        numbers = np.full((1, begin + end), self.config["padding_token"], np.int32)
        first, last = first[:begin], last[-end:]
        numbers[0, :len(first)] = np.frombuffer(first, np.uint8)
        numbers[0, begin + end - len(last):] = np.frombuffer(last, np.uint8)
        return numbers

    def judged(self, best, score):
        """The most probable type, or a general type if the model is less sure than the type's threshold."""
        label = self.config["target_labels_space"][best]
        name = self.config["overwrite_map"].get(label, label)
        if score >= self.config["thresholds"].get(label, self.config["medium_confidence_threshold"]):
            return name, score
        return "txt" if self.known[name]["is_text"] else "unknown", score

    def about(self, label):
        """A sentence about a type, with its MIME type."""
        known = self.known[label]
        general = "text/plain" if known["is_text"] else "application/octet-stream"
        return f"{known['description']}, {known['mime_type'] or general}"


def main():
    usage = "file_type.py [--models FOLDER] [--plan FILE] FILE..."
    files, folder, plan_file = example.words_of(usage, "--models", "--plan")
    if not files:
        raise example.Mistake(f"usage: {usage}")
    types = FileTypes(folder, plan_file)
    width = max(map(len, files))
    for file in files:
        label, score = types.of(file)
        print(f"{file:{width}}  {label:10} {100 * score:3.0f} %  {types.about(label)}")


example.run(main)
