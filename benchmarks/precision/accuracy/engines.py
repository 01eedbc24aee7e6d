"""Plans that the program makes, engines that run them, and how their times compare."""
from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import statistics as numbers
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

import collage
import numpy as np

from peers import results, statistics
from peers.errors import Failure

from .case import Arrays, Case

GRACE_S = 900.0  # beyond the budget: reading, measuring errors, confirming
FLOAT32 = "fp32"


@dataclasses.dataclass(frozen=True)
class Tuned:
    """A plan, and what it says of itself. `precision` is fp32 where no plan in lower precision was within the bound and faster."""

    file: pathlib.Path
    precision: str
    error: Mapping[str, float]  # allowed and found; empty in float32
    groups: int
    lower: int  # groups that round, or whose values are stored in lower precision
    seconds: float
    notes: Sequence[str]


def tuned_of(file: pathlib.Path, seconds: float, notes: Sequence[str]) -> Tuned:
    plan = json.loads(file.read_text(encoding="utf-8"))
    groups = plan["chosen"]["groups"]
    lower = sum(":" in group.get("layout", "") for group in groups)
    return Tuned(file, plan.get("precision", FLOAT32) if plan.get("error") else FLOAT32, plan.get("error") or {}, len(groups), lower,
                 seconds, notes)


class Tuner:
    """Calls the program, and keeps its plans in a folder under what they depend on."""

    def __init__(self, program: pathlib.Path, folder: pathlib.Path, threads: int, budget: float) -> None:
        self.program, self.folder, self.threads, self.budget = program, folder, threads, budget
        self._kept = results.Kept(folder / "plans")
        self._key = {"program": results.digest(program), "threads": threads, "budget": budget}

    def write(self, case: Case, samples: Sequence[Arrays]) -> pathlib.Path:
        """Samples as the program takes them: a file for each, or a folder where a network has several inputs."""
        folder = self.folder / "samples" / case.name
        shutil.rmtree(folder, ignore_errors=True)
        for i, sample in enumerate(samples):
            place = folder / f"{i:03}" if len(sample) > 1 else folder
            place.mkdir(parents=True, exist_ok=True)
            for name, array in sample.items():
                np.save(place / (f"{name.replace('/', '_')}.npy" if len(sample) > 1 else f"{i:03}.npy"), array)
        return folder

    def plan(self, case: Case, precision: str, error: str, samples: pathlib.Path | None, seed: int) -> Tuned:
        stem = f"{case.name}.{precision}" + (f".{error.rstrip('%')}" if precision != FLOAT32 else "")
        file = self._kept.folder / f"{stem}.plan.json"
        key = {**self._key, "model": results.digest(case.model), "samples": samples and digest_of(samples), "seed": seed, "error": error}
        found = self._kept.find(stem, key)
        if found is None or not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            start = time.monotonic()
            notes = self._run([*self._words(case, precision, error, samples), "--plan", str(file)])
            found = {"seconds": time.monotonic() - start, "notes": notes}
            self._kept.keep(stem, key, found)
        return tuned_of(file, found["seconds"], found["notes"])

    def _words(self, case: Case, precision: str, error: str, samples: pathlib.Path | None) -> list[str]:
        words = ["tune", str(case.model), "--threads", str(self.threads), "--budget", f"{self.budget:g}",
                 "--store", str(self.folder / "costs.db")]
        for name, extents in case.shapes.items():
            words += ["--shape", f"{name}={'x'.join(map(str, extents))}"]
        for name, array in case.values.items():
            value = self.folder / f"{case.name}.{name}.npy"
            np.save(value, array)
            words += ["--bind", f"{name}={value}"]
        if precision != FLOAT32:
            words += ["--precision", precision, "--error", error, "--data", str(samples)]
        return words

    def _run(self, words: Sequence[str]) -> list[str]:
        """Returns the notes."""
        limit = self.budget + GRACE_S
        try:
            done = subprocess.run([str(self.program), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit,
                                  check=False)
        except subprocess.TimeoutExpired:
            raise Failure(f"collage tune was still at work after {limit:.0f} s, and was ended") from None
        except OSError as problem:
            raise Failure(f"{self.program}: cannot be started: {problem.strerror}") from None
        said = done.stderr.strip().splitlines()
        if done.returncode != 0:
            reason = [line for line in said if line.startswith("collage: ") and not line.startswith("collage: note: ")]
            told = (reason or said or [f"collage tune ended with status {done.returncode} and said nothing"])[-1]
            raise Failure(told.removeprefix("collage: "))
        return [line.removeprefix("collage: note: ") for line in said if line.startswith("collage: note: ")]


def digest_of(folder: pathlib.Path) -> str:
    """Of all samples."""
    parts = [results.digest(file) for file in sorted(folder.rglob("*.npy"))]
    return hashlib.sha256("".join(parts).encode()).hexdigest()


class Engine:
    """A session of a plan with bound arrays."""

    def __init__(self, network: Any, tuned: Tuned, threads: int) -> None:
        try:
            self.binding = network.session(network.load_plan(tuned.file, threads=threads)).bind()
        except collage.CollageError as problem:
            raise Failure(f"{tuned.file.name}: {problem}") from None
        self.tuned = tuned

    def run(self, feeds: Arrays) -> Arrays:
        for name, array in feeds.items():
            np.copyto(self.binding.inputs[name], array, casting="no")
        self.binding.run()
        return {name: self.binding.outputs[name] for name in self.binding.outputs}

    def slice_ms(self, seconds: float) -> float:
        """The median time of runs for so long, of which the first few do not count."""
        times: list[float] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 6:
            start = time.perf_counter()
            self.binding.run()
            times.append((time.perf_counter() - start) * 1e3)
        return numbers.median(times[max(1, len(times) // 10):])


def race(engines: Mapping[str, Engine], feeds: Arrays, rounds: int, seconds: float) -> dict[str, list[float]]:
    """Times in ms of each engine by round. All run on the same inputs, in turns."""
    names = list(engines)
    for engine in engines.values():
        engine.run(feeds)
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        for i in statistics.order_of_round(len(names), number):
            times[names[i]].append(engines[names[i]].slice_ms(seconds))
    return times


class Errors:
    """The error of one engine over all units, as tuning measures it: of each output the root mean square of the units' relative errors,
    and of the outputs the one that errs most."""

    def __init__(self) -> None:
        self._squares: dict[str, list[float]] = {}

    def add(self, outputs: Arrays, in_float32: Arrays) -> None:
        for name, exact in in_float32.items():
            lost = float(((outputs[name].astype(np.float64) - exact) ** 2).sum())
            of = float((exact.astype(np.float64) ** 2).sum())
            self._squares.setdefault(name, []).append(lost / of if of else float(lost > 0))

    def value(self) -> float:
        return max((numbers.fmean(squares) ** 0.5 for squares in self._squares.values()), default=0.0)


def load_average() -> float:
    return os.getloadavg()[0]
