"""What engines run: samples, and the files that ONNX Runtime's quantiser makes. A process of its own, with the packages of the peers.

    python3 -m precision.speed.prepare < TASK.json

Prints one line of JSON: {"failed"} with a sentence, or what was made.
"""
from __future__ import annotations

import json
import os
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from peers.errors import Failure, sentence_of

Task = Mapping[str, Any]


def sample(port: Mapping[str, Any], seed: int, which: int) -> np.ndarray:
    """Normal numbers, which depend on the input's name, the seed and the sample's number alone."""
    if port["type"] != "float32":
        raise Failure(f"input {port['name']} is {port['type']}, and samples are float32")
    source = np.random.default_rng([seed, which, *port["name"].encode()])
    return source.standard_normal(port["shape"], dtype=np.float32)


def samples(task: Task) -> Any:
    """A folder with NAME.npy for each input, of as many samples as asked for."""
    folder = pathlib.Path(task["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    for port in task["inputs"]:
        file = folder / f"{port['name'].replace('/', '_')}.npy"
        made = np.lib.format.open_memmap(folder / ".new.npy", "w+", np.float32, (task["count"], *port["shape"]))
        for which in range(task["count"]):
            made[which] = sample(port, task["seed"], which)
        made.flush()
        os.replace(folder / ".new.npy", file)
    return {"count": task["count"]}


def read(folder: str, inputs: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """The samples of a folder by input, which stay on the disk until they are used."""
    return {port["name"]: np.load(pathlib.Path(folder) / f"{port['name'].replace('/', '_')}.npy", mmap_mode="r") for port in inputs}


class Reader:
    """Samples, as the quantiser reads them for calibration."""

    def __init__(self, task: Task) -> None:
        self._arrays = read(task["samples"], task["inputs"])
        self._rest: Iterator[int] = iter(range(len(next(iter(self._arrays.values())))))

    def get_next(self) -> dict[str, np.ndarray] | None:
        which = next(self._rest, None)
        return None if which is None else {name: np.array(all_[which]) for name, all_ in self._arrays.items()}

    def set_range(self, start_index: int, end_index: int) -> None:
        self._rest = iter(range(start_index, end_index))

    def __len__(self) -> int:
        return len(next(iter(self._arrays.values())))


def quantise(task: Task) -> Any:
    """ONNX Runtime's quantiser, by its own recommendations: the model is optimised first, weights have a scale for each channel, and static
    ranges are those that the samples have."""
    from onnxruntime import quantization as of_ort
    from onnxruntime.quantization.shape_inference import quant_pre_process

    target = pathlib.Path(task["target"])
    optimised, unfinished = target.with_name(f".{target.name}.optimised"), target.with_name(f".{target.name}.new")
    types = {"uint8": of_ort.QuantType.QUInt8, "int8": of_ort.QuantType.QInt8}
    operators = task["operators"] or None
    try:
        quant_pre_process(task["model"], optimised, skip_symbolic_shape=True)
        if task["dynamic"]:
            of_ort.quantize_dynamic(optimised, unfinished, op_types_to_quantize=operators, per_channel=True, weight_type=types["int8"])
        else:
            of_ort.quantize_static(optimised, unfinished, Reader(task), quant_format=of_ort.QuantFormat.QDQ, per_channel=True,
                                   op_types_to_quantize=operators, activation_type=types[task["activations"]], weight_type=types["int8"],
                                   calibrate_method=of_ort.CalibrationMethod[task["calibration"]])
        os.replace(unfinished, target)
    finally:
        optimised.unlink(missing_ok=True)
        unfinished.unlink(missing_ok=True)
    return {"bytes": target.stat().st_size}


def main() -> int:
    telling = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print goes to the log
    try:
        task = json.load(sys.stdin)
        told = {"samples": samples, "quantise": quantise}[task["task"]](task)
    except Exception as problem:  # of whatever type libraries throw
        telling.write(json.dumps({"failed": sentence_of(problem)}) + "\n")
        telling.flush()
        return 1
    telling.write(json.dumps(told) + "\n")
    telling.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
