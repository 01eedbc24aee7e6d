"""Plans: `collage tune` makes them, once for each network, number of threads and set of backends."""
from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import Failure
from .options import BackendSet
from .results import Kept, Key

GRACE_S = 600.0  # beyond the budget: reading the network, and kernels for nodes that have none yet


@dataclasses.dataclass(frozen=True)
class Tuner:
    """Makes plans with one program and one store, and keeps them in a folder."""

    program: pathlib.Path
    store: pathlib.Path
    seconds: float
    plans: pathlib.Path
    key: Key  # what all plans depend on

    def available(self) -> list[str]:
        """The backends that can be placed on here."""
        return [one["name"] for one in self._backends if one["available"] and one["name"] != "reference" and not one.get("variant_of")]

    def rounding(self) -> frozenset[str]:
        """The backends whose regions are in a smaller element type."""
        return frozenset(one["name"] for one in self._backends if one.get("rounds_to"))

    @functools.cached_property
    def _backends(self) -> list[dict[str, Any]]:
        return list(self.told(["backends", "--json"], 60))

    def plan(self, name: str, model: str, key: Key, threads: int, backends: BackendSet,
             shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
        """Returns {file, seconds, interrupted}, and `curve` where a further option draws one. A plan that is kept under the same key
        is not made again."""
        stem = f"{name}.{threads}.{backends.label.replace(' ', '_').replace(',', '')}"
        key = {**self.key, **key, "threads": threads, "backends": backends.backends, "algorithms": backends.algorithms,
               "shapes": dict(shapes)}
        if backends.more:
            key["more"] = list(backends.more)
        kept = Kept(self.plans)
        file = self.plans / f"{stem}.plan.json"
        found = kept.find(stem, key)
        if found is not None and file.is_file():
            return {**found, "file": str(file)}
        self.plans.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)  # a plan made under another key is no rival
        words = ["tune", model, "--plan", str(file), "--threads", str(threads), "--store", str(self.store), "--budget",
                 f"{self.seconds:g}", "--json", "--quiet"]
        if backends.backends:
            words += ["--backends", backends.backends]
        if backends.algorithms:
            words += ["--algorithms", backends.algorithms]
        words += backends.more
        for port, extents in shapes.items():
            words += ["--shape", f"{port}={'x'.join(map(str, extents))}"]
        start = time.monotonic()
        stages = 3 if "--curve" in backends.more else 1  # the budget holds for the plan, the errors and the curve, each by itself
        told = self.told(words, stages * self.seconds + GRACE_S)
        made = {"seconds": time.monotonic() - start, "interrupted": bool(told.get("interrupted"))}
        if "curve" in told:
            made["curve"] = told["curve"]
        kept.keep(stem, key, made)
        return {**made, "file": str(file)}

    def told(self, words: Sequence[str], limit_s: float) -> Any:
        """Runs a command of the program, and reads its JSON."""
        try:
            done = subprocess.run([str(self.program), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            raise Failure(f"collage {words[0]} was still at work after {limit_s:.0f} s, and was ended") from None
        except OSError as problem:
            raise Failure(f"{self.program}: cannot be started: {problem.strerror}") from None
        if done.returncode != 0:
            said = done.stderr.strip().removeprefix("collage: ")
            raise Failure(said or f"collage {words[0]} ended with status {done.returncode} and said nothing")
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise Failure(f"{self.program}: what `{words[0]} --json` prints is no JSON: is this the program collage?") from None
