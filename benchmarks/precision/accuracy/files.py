"""Magika recognising types of files: those of this machine whose names tell their type, and archives and pictures made of them."""
from __future__ import annotations

import bz2
import dataclasses
import gzip
import io
import json
import lzma
import os
import pathlib
import random
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image

from peers.errors import Failure

from .case import Arrays, Count, Run, file_of

TOP = pathlib.Path(__file__).resolve().parents[3]
ROOTS = (pathlib.Path("/usr"), pathlib.Path("/etc"), *(TOP / name for name in ("include", "src", "python", "tests", "docs")))
LEAST_BYTES, MOST_BYTES, MOST_OF_KIND = 200, 4 << 20, 2000
# By the ending of a name: the types that are right. Headers may be of either language.
LABELS = {"py": ("python",), "h": ("c", "cpp"), "hpp": ("cpp",), "cpp": ("cpp",), "c": ("c",), "js": ("javascript",),
          "html": ("html",), "css": ("css",), "json": ("json",), "md": ("markdown",), "xml": ("xml",), "yaml": ("yaml",),
          "sh": ("shell",), "pl": ("perl",), "pm": ("perl",), "svg": ("svg",), "png": ("png",), "so": ("elf",), "gz": ("gzip",),
          "pyc": ("pythonbytecode",), "sql": ("sql",), "php": ("php",), "csv": ("csv",), "cmake": ("cmake",)}
MADE = {"zip": ("zip",), "tar": ("tar",), "gz": ("gzip",), "bz2": ("bzip",), "xz": ("xz",), "bmp": ("bmp",), "gif": ("gif",),
        "jpg": ("jpeg",), "webp": ("webp",), "tiff": ("tiff",)}


@dataclasses.dataclass(frozen=True)
class File:
    name: str
    labels: tuple[str, ...]
    contents: bytes


def found(half: int) -> dict[str, list[pathlib.Path]]:
    """Files of each kind. Neighbours are alike, so a folder belongs to tuning or to measuring as a whole."""
    kinds: dict[str, list[pathlib.Path]] = {kind: [] for kind in LABELS}
    for root in ROOTS:
        for folder, folders, names in os.walk(root):
            folders.sort()
            if sum(folder.encode()) % 4 == 0 and half == 1 or sum(folder.encode()) % 4 != 0 and half == 0:
                continue
            for name in sorted(names):
                kind = name.rpartition(".")[2]
                if kind in kinds and "." in name[1:] and len(kinds[kind]) < MOST_OF_KIND * 4:
                    kinds[kind].append(pathlib.Path(folder, name))
    return {kind: files for kind, files in kinds.items() if len(files) >= 4}


def contents_of(file: pathlib.Path) -> bytes | None:
    """Nothing for a link, or what cannot be read, is too small, or too large."""
    try:
        if file.is_symlink() or not LEAST_BYTES <= file.stat().st_size <= MOST_BYTES:
            return None
        return file.read_bytes()
    except OSError:
        return None


def archive(kind: str, inside: Sequence[File], draw: random.Random) -> bytes:
    to = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as packed:
            for one in inside:
                packed.writestr(one.name.lstrip("/"), one.contents)
    elif kind == "tar":
        with tarfile.open(fileobj=to, mode="w") as packed:
            for one in inside:
                entry = tarfile.TarInfo(pathlib.Path(one.name).name)
                entry.size = len(one.contents)
                packed.addfile(entry, io.BytesIO(one.contents))
    elif kind in ("gz", "bz2", "xz"):
        press: Callable[[bytes], bytes] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[kind]
        return press(b"".join(one.contents for one in inside))
    else:
        height, width = draw.randint(16, 200), draw.randint(16, 200)
        waves = np.sin(np.arange(height)[:, None] / draw.uniform(2, 40)) + np.cos(np.arange(width) / draw.uniform(2, 40))
        Image.fromarray((waves * 60 + 128).astype(np.uint8)).convert("RGB").save(to, {"jpg": "jpeg"}.get(kind, kind))
    return to.getvalue()


def files(count: int, seed: int, half: int) -> Iterator[File]:
    """All kinds in turn: found ones, and archives and pictures of those."""
    draw = random.Random(seed * 2 + half)
    kinds = found(half)
    if not kinds:
        raise Failure(f"files: nothing was found in {', '.join(map(str, ROOTS[:2]))}")
    for of_kind in kinds.values():
        draw.shuffle(of_kind)
    made, recent = 0, list[File]()
    order = [*((kind, False) for kind in kinds), *((kind, True) for kind in MADE)]
    while made < count:
        for kind, generated in order:
            if generated:
                inside = draw.sample(recent, min(len(recent), draw.randint(1, 4)))
                one = File(f"made.{kind}", MADE[kind], archive(kind, inside, draw))
            else:
                contents = None
                while contents is None and kinds[kind]:
                    file = kinds[kind].pop()
                    contents = contents_of(file)
                if contents is None:
                    continue
                one = File(str(file), LABELS[kind], contents)
                recent = [*recent[-30:], one]
            made += 1
            yield one
            if made == count:
                return


class Files:
    name, network = "files", "Magika (standard v3.3), 1x2048"
    data = "files of the machine, of types that their names tell, and archives and pictures made by the command"
    unit, measures = "files", ("types of files",)
    values: Arrays = {}

    def __init__(self, folder: pathlib.Path) -> None:
        self.metadata: Mapping[str, str] = {}
        self.model = file_of("magika", "models/standard_v3_3/model.onnx")
        self.config = json.loads(file_of("magika", "models/standard_v3_3/config.min.json").read_text(encoding="utf-8"))
        self.known = json.loads(file_of("magika", "config/content_types_kb.min.json").read_text(encoding="utf-8"))
        self.shapes = {"bytes": (1, self.config["beg_size"] + self.config["end_size"])}

    def samples(self, count: int, seed: int, run: Run) -> list[Arrays]:
        return [{"bytes": self.numbers(file.contents)} for file in files(count, seed, 0)]

    def units(self, count: int, seed: int) -> Iterable[File]:
        return files(count, seed, 1)

    def outputs(self, unit: File, run: Run) -> Arrays:
        return run({"bytes": self.numbers(unit.contents)})

    def judge(self, unit: File, outputs: Arrays, in_float32: Arrays) -> Sequence[Count]:
        scores = next(iter(outputs.values()))[0]
        return ((int(self.judged(int(scores.argmax()), float(scores.max())) in unit.labels), 1),)

    def numbers(self, contents: bytes) -> Any:
        """The beginning, padded at its end, and the end, padded at its front: each byte is a number."""
        begin, end, block = (self.config[key] for key in ("beg_size", "end_size", "block_size"))
        first, last = contents[:block].lstrip()[:begin], contents[-block:].rstrip()[-end:]
        numbers = np.full((1, begin + end), self.config["padding_token"], np.int32)
        numbers[0, :len(first)] = np.frombuffer(first, np.uint8)
        numbers[0, begin + end - len(last):] = np.frombuffer(last, np.uint8)
        return numbers

    def judged(self, best: int, score: float) -> str:
        """The most probable type, or a general type if the model is less sure than the type's threshold."""
        label = self.config["target_labels_space"][best]
        name = str(self.config["overwrite_map"].get(label, label))
        if score >= self.config["thresholds"].get(label, self.config["medium_confidence_threshold"]):
            return name
        return "txt" if self.known[name]["is_text"] else "unknown"
