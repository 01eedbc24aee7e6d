"""A process that holds one engine and does what lines on standard input say.

    python3 -m precision.speed.engine DESCRIPTOR TASK

TASK is JSON: what peers.child makes an engine of, and the folder `held_out` of samples. Each line gets a line of JSON.

    slice SECONDS    runs that long: {"ms"}
    write FOLDER     writes the outputs for all samples, as what others are compared with
    errors FOLDER    the error against those: {"error"}
"""
from __future__ import annotations

import ctypes
import gc
import json
import math
import os
import pathlib
import signal
import sys
from typing import Any

import numpy as np
from peers import arrays, child, race
from peers.errors import Failure, sentence_of
from shapes.peer import DIED_WITH_PARENT

from . import errors, prepare


class Held:
    """An engine, with its inputs bound."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.samples = prepare.read(task["held_out"], task["inputs"])
        self.inputs = {port["name"]: arrays.aligned(port["shape"], port["type"]) for port in task["inputs"]}
        self.set_sample(0)
        self.engine = child.made(task, task["engine"])
        self.engine.bind(self.inputs)

    def set_sample(self, which: int) -> None:
        for name, array in self.inputs.items():
            array[...] = self.samples[name][which]

    @property
    def count(self) -> int:
        return len(next(iter(self.samples.values())))

    def obey(self, line: str) -> dict[str, Any]:
        word, _, rest = line.strip().partition(" ")
        return getattr(self, f"do_{word}")(rest)

    def do_slice(self, rest: str) -> dict[str, Any]:
        gc.disable()
        try:
            return {"ms": race.slice_ms(self.engine.run, float(rest))}
        finally:
            gc.enable()

    def run_all(self) -> Any:
        for which in range(self.count):
            self.set_sample(which)
            for array in self.engine.outputs.values():
                arrays.spoil(array)
            self.engine.run()
            yield which, list(self.engine.outputs.values())
        self.set_sample(0)

    def do_write(self, rest: str) -> dict[str, Any]:
        folder = pathlib.Path(rest)
        folder.mkdir(parents=True, exist_ok=True)
        for which, outputs in self.run_all():
            for i, array in enumerate(outputs):
                np.save(folder / f"{which}.{i}.npy", array)
        return {"count": self.count}

    def do_errors(self, rest: str) -> dict[str, Any]:
        """By the order of outputs: their names may differ."""
        found: dict[str, list[float]] = {}
        for which, outputs in self.run_all():
            for i, array in enumerate(outputs):
                found.setdefault(str(i), []).append(errors.nmse(array, np.load(f"{rest}/{which}.{i}.npy")))
        error = errors.relative_rms(found)
        if not math.isfinite(error):
            raise Failure("its outputs are not of the reference's shape, or not finite where those are")
        return {"error": error}


def main() -> int:
    ctypes.CDLL(None).prctl(DIED_WITH_PARENT, signal.SIGKILL)
    events = os.fdopen(int(sys.argv[1]), "w", buffering=1, encoding="utf-8")
    try:
        held = Held(json.loads(sys.argv[2]))
        events.write(json.dumps({"count": held.count}) + "\n")
        for line in sys.stdin:
            events.write(json.dumps(held.obey(line)) + "\n")
    except Exception as problem:  # of whatever type libraries throw
        events.write(json.dumps({"failed": sentence_of(problem)}) + "\n")
        return 1
    return 0


if __name__ == "__main__":
    os._exit(main())  # libraries that end their threads in each other's way have said everything by now
