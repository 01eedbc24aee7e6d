"""One workload at a time: its description, its plans, and what its engines do, as rows that report.py prints."""
from __future__ import annotations

import dataclasses
import pathlib
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import machine, statistics
from .errors import Failure
from .options import BackendSet, Workload
from .processes import Children, EngineFailure
from .report import count_of
from .results import Kept, Key, digest
from .tuning import Tuner

Row = dict[str, Any]
PEERS = ("onnxruntime", "openvino")
NOTHING_RACED: dict[str, Any] = {"names": [], "rounds_ms": [], "pairs": []}
LOADS = 5  # of each engine, each in a process of its own


def names_of(sets: Sequence[BackendSet]) -> dict[str, BackendSet]:
    """Our engine's names in a process that holds one for each set."""
    return {f"collage {one.label}": one for one in sets}


def figures_of(times: Mapping[str, Sequence[float]], ours: str) -> Row:
    """What rounds say of one of our engines against the peers, by each one's time in every round."""
    medians = {name: statistics.median(samples) for name, samples in times.items()}
    figures: Row = {"ours_ms": medians.get(ours), "peers": {peer: medians.get(peer) for peer in PEERS}, "ratio": None,
                    "low": None, "high": None, "faster_peer": None, "ratios": {}}
    here = [peer for peer in PEERS if peer in times]
    if here:
        figures["faster_peer"] = min(here, key=medians.__getitem__)
    if ours in times:
        for peer in here:
            ratio = statistics.paired_ratio(times[peer], times[ours])
            figures["ratios"][peer] = {"ratio": ratio.median, "low": ratio.low, "high": ratio.high}
        if here:
            figures.update(figures["ratios"][figures["faster_peer"]])
    return figures


def row_of(raced: Mapping[str, Any], ours: str, failures: Mapping[str, str]) -> Row:
    """What a race says of one of our engines against the peers: the row's figures, without the workload's name."""
    times = dict(zip(raced["names"], raced["rounds_ms"]))
    row = figures_of(times, ours)
    apart = dict(zip(raced["names"], raced.get("apart_ms", [])))
    rounds_apart = len(next(iter(apart.values()), []))
    row["apart"] = {"rounds": rounds_apart, **figures_of(apart, ours)} if rounds_apart >= statistics.LEAST_ROUNDS else None
    sides = {ours, *PEERS}
    pairs = [pair for pair in raced["pairs"] if sides.issuperset(pair["engines"])]
    row["agree"] = any(ours in pair["engines"] for pair in pairs) and not any(pair["why"] for pair in pairs)
    row["worst_difference"] = max((pair["worst"] for pair in pairs), default=None)
    row["disagreements"] = list(dict.fromkeys(
        f"{' and '.join('collage' if name == ours else name for name in pair['engines'])}: {pair['why']}"
        for pair in pairs if pair["why"]))
    row["failures"] = {"collage" if name == ours else name: why for name, why in failures.items() if name in sides}
    row["rounds"] = raced.get("rounds", 0)
    row["calm"] = raced.get("calm", False)
    row["disturbed_rounds"] = raced.get("disturbed_rounds", 0)
    row["by_others"] = raced.get("by_others")
    row["rounds_ms"] = {"collage" if name == ours else name: samples for name, samples in times.items() if name in sides}
    return row


@dataclasses.dataclass
class Comparison:
    """What all workloads share. `say` gets what is under way, and more closely."""

    children: Children
    tuner: Tuner
    library: pathlib.Path
    sets: Sequence[BackendSet]
    shapes: Mapping[str, Sequence[int]]
    rounds: int
    seconds: float
    out: pathlib.Path
    key: Key  # what all results depend on: versions, the library, the processor
    say: Callable[..., None]
    _described: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def room(self) -> pathlib.Path:
        """Where filled files lie as long as their workload is under way."""
        return self.out / "models"

    @property
    def results(self) -> Kept:
        """What is finished."""
        return Kept(self.out / "results")

    def rows(self, mode: str, workload: Workload, threads: int) -> list[Row]:
        """A row for each set of backends, kept or measured now. What failed is measured again at the next time."""
        kept = self.results
        name = f"{workload.stem}.{threads}.{mode}"
        try:
            key = {**self.key, "model": digest(workload.file),
                   "sets": [[one.label, one.backends, one.algorithms] for one in self.sets],
                   "shapes": dict(self.shapes), "tune_seconds": self.tuner.seconds, "store": str(self.tuner.store)}
            if mode == "speed":
                key |= {"rounds": self.rounds, "seconds": self.seconds}
            found = kept.find(name, key)
            if found is not None:
                return found
            rows = self._measured(mode, workload, threads, key["model"])
        except Failure as problem:  # nothing could be said of any engine
            blank = row_of(NOTHING_RACED, "", {}) if mode == "speed" else {}
            return [{"workload": workload.name, "threads": threads, "backends": one.label, **blank,
                     "failures": {"": str(problem)}} for one in self.sets]
        if not any(row["failures"] for row in rows):
            kept.keep(name, key, rows)
        return rows

    def finish(self, workload: Workload) -> None:
        """Gives the room of a filled file back."""
        self._described.pop(workload.stem, None)
        shutil.rmtree(self.room / workload.stem, ignore_errors=True)

    def peak(self, threads: int) -> dict[str, Any]:
        """GFLOP/s of this machine with so many threads: the most that was ever seen, measured again until it was calm."""
        kept, name = self.results, f"peak.{threads}"
        before = kept.find(name, self.key)
        if before is not None and before["calm"]:
            return before
        self.say(f"the processor's peak with {count_of(threads)}")
        self.room.mkdir(parents=True, exist_ok=True)
        count = str(threads)
        now = self.children.run({"task": "peak", "threads": threads, "room": str(self.room)},
                                environment={"OPENBLAS_NUM_THREADS": count, "OMP_NUM_THREADS": count})
        best = now if before is None or now["gflops"] > before["gflops"] else {**before, "calm": now["calm"]}
        kept.keep(name, self.key, best)
        return best

    def _describe(self, workload: Workload) -> dict[str, Any]:
        if workload.stem not in self._described:
            self.say(f"{workload.name}: reading")
            task = {"task": "describe", "file": str(workload.file), "room": str(self.room / workload.stem),
                    "shapes": dict(self.shapes)}
            self._described[workload.stem] = self.children.run(task)
        return self._described[workload.stem]

    def _plans(self, workload: Workload, threads: int, digest_of_model: str, about: Mapping[str, Any],
               failures: dict[str, str]) -> dict[str, Any]:
        """The plan of each of our engines; for the others a reason."""
        plans = {}
        for name, one in names_of(self.sets).items():
            self.say(f"{workload.name}, {count_of(threads)}: tuning ({one.label})")
            try:
                plans[name] = self.tuner.plan(workload.stem, about["model"], {"model": digest_of_model}, threads, one,
                                              about["open"])
            except Failure as problem:
                failures[name] = f"tuning: {problem}"
        return plans

    def _measured(self, mode: str, workload: Workload, threads: int, digest_of_model: str) -> list[Row]:
        about = self._describe(workload)
        failures: dict[str, str] = {}
        plans = self._plans(workload, threads, digest_of_model, about, failures)
        task = {"model": about["model"], "threads": threads, "inputs": about["inputs"], "outputs": about["outputs"],
                "open": about["open"], "overrides": about["overrides"], "library": str(self.library)}
        engines = [{"name": peer, "kind": peer} for peer in PEERS]
        engines += [{"name": name, "kind": "collage", "plan": plan["file"]} for name, plan in plans.items()]
        where = f"{workload.name}, {count_of(threads)}"
        head = {"workload": workload.name, "threads": threads, "date": machine.today()}
        if mode == "speed":
            raced = self._race(task, engines, failures, where)
            figures = [row_of(raced, name, failures) for name in names_of(self.sets)]
        else:
            single = self._memory if mode == "memory" else self._load
            figures = single(task, engines, failures, where)
        rows = []
        for (name, one), row in zip(names_of(self.sets).items(), figures):
            plan = plans.get(name, {})
            rows.append({**head, "backends": one.label, **row, "gflop": about["gflop"], "model_mb": about["bytes"] / 1e6,
                         "tune_s": plan.get("seconds"), "tune_interrupted": plan.get("interrupted")})
        return rows

    def _race(self, task: dict[str, Any], engines: list[dict[str, Any]], failures: dict[str, str],
              where: str) -> dict[str, Any]:
        """All engines in one process; again without an engine that took the process with it."""
        left = list(engines)
        kept, usual = self.results, "exchange"  # what reading another processor's data takes: the least ever seen
        while left:
            try:
                raced = self.children.run(
                    {**task, "task": "race", "engines": left, "rounds": self.rounds, "seconds": self.seconds,
                     "exchange_us": kept.find(usual, self.key)},
                    stage=lambda what, engine: self.say(f"{where}: {'running' if what.startswith('round') else 'loading'}",
                                                        f"{what}, {engine}"),
                    failed=failures.__setitem__)
                if raced.get("exchange_us"):
                    kept.keep(usual, self.key, raced["exchange_us"])
                return raced
            except EngineFailure as problem:
                if problem.engine not in {engine["name"] for engine in left}:
                    failures.update((engine["name"], str(problem)) for engine in left)
                    break
                failures[problem.engine] = str(problem)
                left = [engine for engine in left if engine["name"] not in failures]
        return NOTHING_RACED

    def _alone(self, task: dict[str, Any], engine: dict[str, Any], failures: dict[str, str], where: str) -> Any:
        """One engine in a process of its own; None where it fails."""
        self.say(f"{where}: {task['task']}", engine["name"])
        try:
            return self.children.run({**task, "engines": [engine]})
        except EngineFailure as problem:
            failures[engine["name"]] = str(problem)
            return None

    def _each(self, found: Mapping[str, Any], figure: str, failures: Mapping[str, str]) -> list[Row]:
        """Rows of one figure of each engine, by our engines."""
        rows = []
        for name in names_of(self.sets):
            value = {key: one[figure] for key, one in found.items()}
            rows.append({f"ours_{figure}": value.get(name), "peers": {peer: value.get(peer) for peer in PEERS},
                         "failures": {"collage" if key == name else key: why for key, why in failures.items()
                                      if key in (name, *PEERS)}})
        return rows

    def _memory(self, task: dict[str, Any], engines: Sequence[dict[str, Any]], failures: dict[str, str],
                where: str) -> list[Row]:
        found = {}
        for engine in engines:
            told = self._alone({**task, "task": "memory"}, engine, failures, where)
            if told is not None:
                found[engine["name"]] = told
        rows = self._each(found, "most_mb", failures)
        for row in rows:
            row["before_mb"] = statistics.median([one["before_mb"] for one in found.values()]) if found else None
        return rows

    def _load(self, task: dict[str, Any], engines: Sequence[dict[str, Any]], failures: dict[str, str],
              where: str) -> list[Row]:
        by_name = names_of(self.sets)
        found: dict[str, Any] = {}
        planned_from: dict[str, str] = {}
        for engine in engines:
            name = engine["name"]
            if name in by_name:
                # The plan comes out of the store, as at a user's second start. Where the budget ended tuning, the store
                # lacks what placing would measure: then it comes from its file.
                store = {**engine, "store": str(self.tuner.store), "backends": by_name[name].backends}
                refused: dict[str, str] = {}
                planned_from[name] = "store"
                if self._alone({**task, "task": "load"}, store, refused, where) is not None:
                    engine = store
                else:
                    planned_from[name] = f"file ({refused[name]})"
            told = [self._alone({**task, "task": "load"}, engine, failures, where) for _ in range(LOADS)]
            if all(one is not None for one in told):
                found[name] = {figure: statistics.median([one[figure] for one in told])
                               for figure in ("ready_ms", "first_run_ms")}
                stages = told[0]["stages_ms"]
                found[name]["stages_ms"] = {stage: statistics.median([one["stages_ms"][stage] for one in told])
                                            for stage in stages}
        rows = self._each(found, "ready_ms", failures)
        reading = self._reading_ms(pathlib.Path(task["model"]))
        for row, name, first in zip(rows, by_name, self._each(found, "first_run_ms", failures)):
            row |= {"stages_ms": found.get(name, {}).get("stages_ms", {}), "reading_ms": reading,
                    "planned_from": planned_from.get(name), "ours_first_run_ms": first["ours_first_run_ms"],
                    "peers_first_run_ms": first["peers"]}
        return rows

    @staticmethod
    def _reading_ms(model: pathlib.Path) -> float:
        """What reading the file alone takes, as warm as it is for the engines."""
        times = []
        for _ in range(LOADS):
            start = time.perf_counter()
            with open(model, "rb", buffering=0) as file:
                room = bytearray(1 << 22)
                while file.readinto(room):
                    pass
            times.append(1e3 * (time.perf_counter() - start))
        return statistics.median(times)
