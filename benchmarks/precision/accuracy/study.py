"""The measurements, in the Python that has the packages: tuning, running all data through all engines, and writing what came out."""
from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

try:
    import collage
except ImportError as problem:
    sys.exit(f"accuracy: {problem}")

from peers import machine, results, statistics
from peers.errors import Failure
from peers.main import Progress, alone_in, guarded

from . import main, paired, report
from .case import Arrays, Case
from .engines import FLOAT32, Engine, Errors, Tuned, Tuner, load_average, race
from .files import Files
from .pictures import Pictures
from .speech import Speech
from .text import Text

CASES: Mapping[str, type[Any]] = {"text": Text, "files": Files, "speech": Speech, "pictures": Pictures}
RACE_S = 0.25  # of a slice


@dataclasses.dataclass
class Compared:
    """Engines of one network beside the one in float32, on all data."""

    outcomes: dict[str, list[list[paired.Outcome]]]  # by engine and measure
    errors: dict[str, Errors]
    times: dict[str, list[float]]
    load: float  # while times were measured

    def ratio(self, name: str) -> statistics.Ratio:
        return statistics.paired_ratio(self.times[FLOAT32], self.times[name])


class Study:
    def __init__(self, given: argparse.Namespace, say: Progress) -> None:
        self.given, self.say = given, say
        self.out = given.out.resolve()
        self.tuner = Tuner(given.program.resolve(), self.out, given.threads, given.budget)
        self.rows: list[dict[str, Any]] = []
        self.layers: list[dict[str, Any]] = []
        self.notes: list[str] = []

    def about(self) -> dict[str, Any]:
        given = self.given
        names = [line.partition("==")[0] for line in main.REQUIREMENTS.read_text(encoding="utf-8").split()]
        versions = {name: importlib.metadata.version(name) for name in names}
        return {**machine.describe(), "date": machine.today(), "collage": collage.system()["version"], "versions": versions,
                "threads": given.threads, "budget_s": given.budget, "seed": given.seed, "count": given.count, "samples": given.samples,
                "notes": self.notes}

    def measure(self, case: Case) -> None:
        given = self.given
        network = collage.load(case.model, shapes=case.shapes, values=case.values)
        case.metadata = network.metadata
        self.say(f"{case.name}: tuning in float32")
        engines = {FLOAT32: Engine(network, self.tuner.plan(case, FLOAT32, "", None, given.seed), given.threads)}
        self.say(f"{case.name}: making samples")
        samples = self.tuner.write(case, case.samples(given.samples, given.seed, engines[FLOAT32].run))
        wanted = [(precision, error) for precision in given.precision for error in given.error]
        for precision, error in wanted:
            self.say(f"{case.name}: tuning {precision} within {error}")
            engines[f"{precision} {error}"] = self._engine(network, case, precision, error, samples)
        compared = self.compare(case, engines)
        for precision, error in wanted:
            self.rows += [self._row(case, precision, error, i, engines[f"{precision} {error}"].tuned, compared)
                          for i in range(len(case.measures))]
        if case.name == "pictures":
            self._keep_worst(case, network, engines[FLOAT32], samples)

    def compare(self, case: Case, engines: Mapping[str, Engine]) -> Compared:
        """Runs the data that tuning has not seen through all engines, unit by unit, and then compares times."""
        names = [name for name in engines if name != FLOAT32]
        found = Compared({name: [[] for _ in case.measures] for name in names}, {name: Errors() for name in names}, {}, 0.0)
        for i, unit in enumerate(case.units(self.given.count, self.given.seed)):
            self.say(f"{case.name}: running", f"{i} of {self.given.count} {case.unit}")
            exact = copied(case.outputs(unit, engines[FLOAT32].run))
            first = case.judge(unit, exact, exact)
            for name in names:
                outputs = copied(case.outputs(unit, engines[name].run))
                found.errors[name].add(outputs, exact)
                for to, (right, of), (ours, _) in zip(found.outcomes[name], first, case.judge(unit, outputs, exact), strict=True):
                    to.append(paired.Outcome(right, ours, of))
        self.say(f"{case.name}: comparing times")
        feeds = {name: engines[FLOAT32].binding.inputs[name].copy() for name in engines[FLOAT32].binding.inputs}
        found.times = race(engines, feeds, self.given.rounds, RACE_S)
        found.load = load_average()
        return found

    def _engine(self, network: Any, case: Case, precision: str, error: str, samples: pathlib.Path) -> Engine:
        tuned = self.tuner.plan(case, precision, error, samples, self.given.seed)
        self.notes += [f"{case.name}, {precision}, {error}: {note}" for note in tuned.notes]
        return Engine(network, tuned, self.given.threads)

    def _row(self, case: Case, precision: str, error: str, measure: int, tuned: Tuned, compared: Compared) -> dict[str, Any]:
        engine = f"{precision} {error}"
        drop = paired.drop_of(compared.outcomes[engine][measure], self.given.seed)
        return {"name": case.name, "network": case.network, "data": case.data, "precision": precision, "allowed": error, "unit": case.unit,
                "measure": case.measures[measure], **dataclasses.asdict(drop), "bar": report.BAR, "holds": drop.upper <= report.BAR,
                "error": compared.errors[engine].value(), **plan_row(tuned), **times_row(compared, engine)}

    def _keep_worst(self, case: Case, network: Any, in_float32: Engine, samples: pathlib.Path) -> None:
        """The fastest plan in a precision, and the fastest that errs a third of it: which layers stay in float32 for that is up to the
        search."""
        for precision in self.given.precision:
            self.say(f"{case.name}: tuning {precision} without a bound")
            free = self._engine(network, case, precision, main.FASTEST, samples)
            error = self.compare(case, {FLOAT32: in_float32, precision: free}).errors[precision].value()
            if not error:
                self.notes.append(f"{case.name}, {precision}: the fastest plan is in float32, so there is no error to be reduced to a third")
                continue
            self.say(f"{case.name}: tuning {precision} within a third of {100 * error:.3g} %")
            third = self._engine(network, case, precision, f"{100 * error / 3:.4g}%", samples)
            both = self.compare(case, {FLOAT32: in_float32, "free": free, "third": third})
            row: dict[str, Any] = {"network": case.network, "precision": precision}
            for name, engine in (("free", free), ("third", third)):
                row[name] = {"error": both.errors[name].value(), **plan_row(engine.tuned), **times_row(both, name)}
            row["kept"] = statistics.paired_ratio(both.times["free"], both.times["third"]).median
            self.layers.append(row)

    def write(self) -> str:
        about = self.about()
        page = report.markdown(self.rows, self.layers, about)
        results.write(self.out / "accuracy.md", page)
        results.write(self.out / "accuracy.csv", report.csv_of(self.rows))
        results.write(self.out / "accuracy.json", report.as_json(self.rows, self.layers, about))
        return page


def copied(outputs: Arrays) -> Arrays:
    """Bound arrays are overwritten by the next run."""
    return {name: array.copy() for name, array in outputs.items()}


def plan_row(tuned: Tuned) -> dict[str, Any]:
    return {"plan": tuned.precision, "groups": tuned.groups, "lower": tuned.lower,
            "confirmed": tuned.error.get("upper"), "tune_s": tuned.seconds}


def times_row(compared: Compared, name: str) -> dict[str, Any]:
    ratio = compared.ratio(name)
    return {"float32_ms": statistics.median(compared.times[FLOAT32]), "ms": statistics.median(compared.times[name]),
            "times_as_fast": ratio.median, "times_low": ratio.low, "times_high": ratio.high, "load": compared.load}


def study(given: argparse.Namespace, say: Progress) -> int:
    with alone_in(given.out):
        work, status = Study(given, say), 0
        for name in given.networks:
            try:
                work.measure(CASES[name](work.out))
            except (Failure, collage.CollageError) as problem:
                work.notes.append(f"{name}: failed: {problem}")
                status = 1
            page = work.write()  # what is done is seen, whatever comes next
    say.end()
    sys.stdout.write(report.as_json(work.rows, work.layers, work.about()) if given.json else page)
    return status


if __name__ == "__main__":
    arguments: Sequence[str] = sys.argv[1:]
    sys.exit(guarded("accuracy", lambda say: study(main.checked(main.parser().parse_args(arguments)), say),
                     "stopped; the same command keeps the plans that are made"))
