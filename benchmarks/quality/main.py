"""The command: plans of several budgets for each network, run in turns, and a table and a chart of how good each is."""
from __future__ import annotations

import argparse
import dataclasses
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from peers import environment, machine, options, report, results, statistics
from peers.main import Progress, alone_in, guarded
from peers.processes import Children
from peers.tuning import Tuner
from quality import curve

BENCHMARKS = pathlib.Path(__file__).resolve().parents[1]
COMPLETE_S = 900  # a budget that no network here needs
MOST_S = COMPLETE_S - 1


@dataclasses.dataclass(frozen=True)
class Point:
    """A plan after some tuning."""

    budget_s: float
    seconds: float  # all of tuning, with reading the network
    ended_early: bool  # by the budget
    ratio: statistics.Ratio  # its time over that of the plan without a budget, paired

    @property
    def cell(self) -> str:
        taken = report.number(self.seconds) + ("" if self.ended_early else " (done)")
        return f"{self.ratio.median:.3f} [{self.ratio.low:.3f}, {self.ratio.high:.3f}], {taken}"


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="benchmarks/quality/run", description=__doc__)
    add = result.add_argument
    add("models", nargs="*", type=pathlib.Path, metavar="MODEL.onnx", help="networks; all of benchmarks/workloads if not given")
    add("--budgets", default="2,5,20,60", metavar="S,S", help="seconds of tuning (2,5,20,60), and without a budget")
    add("--threads", type=int, default=2, metavar="N", help="of the plans (2)")
    add("--rounds", type=int, default=8, metavar="N", help="undisturbed rounds, at least (8)")
    add("--seconds", type=float, default=0.3, metavar="S", help="of each plan's slice in a round (0.3)")
    add("--out", type=pathlib.Path, default=pathlib.Path("build/quality"), metavar="FOLDER", help="for plans and results")
    options.add_build(result)
    return result


def budgets_of(text: str) -> list[float]:
    return sorted(set(options.numbers_of("--budgets", text, 0.1, MOST_S, f"seconds from 0.1 to {MOST_S}, such as 2,20")))


def points_of(tuned: Mapping[float, Mapping[str, Any]], raced: Mapping[str, Any]) -> list[Point]:
    """Each plan over the last one, which had no budget."""
    times = dict(zip(raced["names"], raced["rounds_ms"]))
    last = times[label(COMPLETE_S)]
    return [Point(budget, plan["seconds"], plan["interrupted"], statistics.paired_ratio(times[label(budget)], last))
            for budget, plan in tuned.items()]


def label(budget_s: float) -> str:
    return f"{budget_s:g} s"


@dataclasses.dataclass
class Study:
    """What all networks share."""

    given: argparse.Namespace
    say: Progress
    children: Children
    key: dict[str, Any]

    def points(self, workload: options.Workload) -> tuple[list[Point], float]:
        """The plans of a network by their budgets, and the time of a run of the last, in ms."""
        self.say(f"{workload.name}: reading")
        out = self.given.out.resolve()
        about = self.children.run({"task": "describe", "file": str(workload.file), "shapes": {},
                                   "room": str(out / "models" / workload.stem)})
        tuned = {budget: self.tuned(workload, about["model"], budget)
                 for budget in [*budgets_of(self.given.budgets), COMPLETE_S]}
        task = {key: about[key] for key in ("model", "inputs", "outputs", "open", "overrides")}
        task |= {"task": "race", "threads": self.given.threads, "library": str(self.given.library.resolve()),
                 "rounds": self.given.rounds, "seconds": self.given.seconds, "exchange_us": None,
                 "engines": [{"name": label(budget), "kind": "collage", "plan": plan["file"]} for budget, plan in tuned.items()]}
        raced = self.children.run(task, stage=lambda what, engine: self.say(f"{workload.name}: running", f"{what}, {engine}"))
        disagree = [pair["why"] for pair in raced["pairs"] if pair["why"]]
        if disagree:
            self.say(f"{workload.name}: plans disagree: {disagree[0]}")
        return points_of(tuned, raced), statistics.median(raced["rounds_ms"][-1])

    def tuned(self, workload: options.Workload, model: str, budget: float) -> dict[str, Any]:
        """A plan from an empty store: what somebody gets at the first call."""
        self.say(f"{workload.name}: tuning, {label(budget)}" if budget < COMPLETE_S else f"{workload.name}: tuning to the end")
        folder = self.given.out.resolve() / f"{budget:g}"
        store = folder / f"{workload.stem}.{self.given.threads}.db"
        tuner = Tuner(self.given.program.resolve(), store, budget, folder / "plans", self.key)
        return tuner.plan(workload.stem, model, {"model": results.digest(workload.file)}, self.given.threads,
                          options.sets_of(["all"], [])[0], {})


def measure(given: argparse.Namespace, say: Progress) -> int:
    budgets = budgets_of(given.budgets)
    workloads = options.workloads_of(given.models or [BENCHMARKS / "workloads"])
    options.check_build(given)
    options.check_threads(given.threads, given.threads)
    options.check_rounds(given.rounds)
    with alone_in(given.out):
        python = given.python or environment.set_up(environment.folder(options.TOP), say)
        children = Children(python, given.out.resolve() / "engines.log")
        about = machine.describe()
        study = Study(given, say, children, {**about, "program": results.digest(given.program.resolve())})
        titles = ["network", "ms", *(label(budget) for budget in budgets), "to the end, s"]
        lines, curves = [], {}
        for workload in workloads:
            points, best_ms = study.points(workload)
            curves[workload.name] = [(point.budget_s, point.ratio.median) for point in points[:-1]]
            lines.append([workload.name, report.number(best_ms), *(point.cell for point in points[:-1]),
                          report.number(points[-1].seconds)])
            page = (report.table(titles, lines, 1) + f"\n\n{about['processor']}, {about['processors']} processors, "
                    f"{report.count_of(given.threads)}. {machine.today()}.\n")
            results.write(given.out / "quality.md", page)  # what is done is seen
            results.write(given.out / "quality.svg", curve.chart(curves, f"{about['processor']}, {report.count_of(given.threads)}"))
    say.end()
    sys.stdout.write(page)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return guarded("quality", lambda say: measure(parser().parse_args(arguments), say), "stopped")
