"""The command: engines in turns beside busy processes or under a quota, and a table with the bars that hold."""
from __future__ import annotations

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from busy.surroundings import Surroundings, competitors, limited
from peers import environment, machine, options, report, results, statistics
from peers.comparison import PEERS
from peers.errors import Failure, Mistake
from peers.main import Progress, alone_in, guarded
from peers.processes import Children
from peers.tuning import Tuner

OURS = "collage"
LONG_WAITING = "collage, default waiting"
ONE_THREAD = "collage, one thread"
OURS_ALL = (OURS, LONG_WAITING, ONE_THREAD)
MEDIAN_BAR, TAIL_BAR, CALM_BAR, QUOTA_BAR = 1.1, 1.3, 0.98, 1.0
BENCHMARKS = pathlib.Path(__file__).resolve().parents[1]
NETWORKS = ("mobilenet-v2", "bert-paper", "resnet50")
NOTHING_SET: Mapping[str, str] = {}
# The library has threads wait briefly from the moment when it is loaded, unless this is set. Later choices cannot undo that.
VARIABLES = {LONG_WAITING: {"COLLAGE_WAIT_BRIEFLY": "0"}}


class Engine:
    """An engine in a process of its own. It sleeps until it is asked to run."""

    def __init__(self, python: str, task: dict[str, Any], log: pathlib.Path, variables: Mapping[str, str] = NOTHING_SET) -> None:
        reading, writing = os.pipe()
        settings = {**os.environ, **variables, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(BENCHMARKS)}
        with open(log, "ab") as errors:
            self._process = subprocess.Popen([python, "-P", "-m", "busy.engine", str(writing)], stdin=subprocess.PIPE,
                                             stdout=errors, stderr=errors, pass_fds=[writing], env=settings, text=True)
        os.close(writing)
        self._events = os.fdopen(reading, encoding="utf-8")
        try:
            self._ask(json.dumps(task))
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, seconds: float) -> list[float]:
        return self._ask(f"{seconds:g}")["ms"]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._events.close()

    def _ask(self, line: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer says why
        answer = self._events.readline()
        if not answer:
            raise Failure(f"its process ended with status {self._process.wait()}")
        event = json.loads(answer)
        if "failed" in event:
            raise Failure(event["failed"])
        return event


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="benchmarks/busy/run", description=__doc__)
    add = result.add_argument
    add("models", nargs="*", type=pathlib.Path, metavar="MODEL.onnx",
        help=f"networks; {', '.join(NETWORKS)} of benchmarks/workloads if not given")
    add("--competitors", default="0,1,2", metavar="N,N", help="numbers of busy processes (0,1,2)")
    add("--quotas", default="", metavar="Q,Q", help="quotas of processor time, in processors, instead, such as 0.5,1.5")
    add("--threads", type=int, default=2, metavar="N", help="of each engine (2)")
    add("--seconds", type=float, default=6, metavar="S", help="of each engine's turn (6)")
    add("--repetitions", type=int, default=5, metavar="N", help="turns of each engine (5)")
    add("--tune-seconds", type=float, default=60, metavar="S", help="at most, for one plan (60)")
    add("--out", type=pathlib.Path, default=pathlib.Path("build/busy"), metavar="FOLDER", help="for plans and results")
    options.add_build(result)
    return result


def figures(turns_ms: Sequence[Sequence[float]]) -> dict[str, Any]:
    """The median over turns of each percentile."""
    return {"runs": sum(map(len, turns_ms)),
            "medians": [statistics.median(turn) for turn in turns_ms],
            "median": statistics.median([statistics.median(turn) for turn in turns_ms]),
            "tail": statistics.median([statistics.quantile(turn, 0.95) for turn in turns_ms])}


def verdict(found: dict[str, dict[str, Any]], beside: Surroundings) -> tuple[dict[str, float], bool]:
    """Our figures over the better peer's, and whether the bars hold."""
    ratios = {figure: found[OURS][figure] / min(found[peer][figure] for peer in PEERS) for figure in ("median", "tail")}
    if beside.quota is not None:
        better = min(PEERS, key=lambda peer: found[peer]["median"])
        theirs = statistics.paired_ratio(found[better]["medians"], found[OURS]["medians"])
        return ratios, theirs.high >= QUOTA_BAR
    if beside.busy > 0:
        return ratios, ratios["median"] <= MEDIAN_BAR and ratios["tail"] <= TAIL_BAR
    calm = statistics.paired_ratio(found[LONG_WAITING]["medians"], found[OURS]["medians"])
    return {**ratios, "of default waiting": calm.median}, calm.high >= CALM_BAR


def row_of(network: str, beside: Surroundings, found: dict[str, dict[str, Any]]) -> tuple[list[str], bool]:
    ratios, holds = verdict(found, beside)
    cells = [network, beside.title]
    for name in (*OURS_ALL, *PEERS):
        cells.append(f"{report.number(found[name]['median'])} / {report.number(found[name]['tail'])} ({found[name]['runs']})")
    cells.append(f"{ratios['median']:.2f} / {ratios['tail']:.2f}")
    cells.append(f"{ratios['of default waiting']:.2f}" if "of default waiting" in ratios else report.NOTHING)
    cells.append("yes" if holds else "**no**")
    return cells, holds


def counts_of(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isdigit() for word in words):
        raise Mistake(f"--competitors {text}: is no list of numbers, such as 0,1,2")
    return [int(word) for word in words]


def quotas_of(text: str) -> list[float]:
    return options.numbers_of("--quotas", text, 0.01, 1024, "numbers of processors, such as 0.5,1.5")


def all_surroundings(given: argparse.Namespace) -> list[Surroundings]:
    if given.quotas:
        return [Surroundings(quota=quota) for quota in quotas_of(given.quotas)]
    return [Surroundings(busy) for busy in counts_of(given.competitors)]


class Comparison:
    """What all networks share."""

    def __init__(self, given: argparse.Namespace, say: Progress) -> None:
        self.given, self.say = given, say
        self.out, self.library = given.out.resolve(), given.library.resolve()
        self.python = given.python or environment.set_up(environment.folder(options.TOP), say)
        self.log = self.out / "engines.log"
        self.children = Children(self.python, self.log)
        self.machine = machine.describe()
        self.versions = self.children.run({"task": "versions", "packages": environment.PACKAGES, "library": str(self.library)})
        program = given.program.resolve()
        self.tuner = Tuner(program, self.out / "costs.db", given.tune_seconds, self.out / "plans",
                           {**self.machine, "program": results.digest(program)})

    def engines_of(self, workload: options.Workload, threads: int) -> dict[str, Engine]:
        """All engines of a network, loaded."""
        self.say(f"{workload.name}: reading and tuning")
        about = self.children.run({"task": "describe", "file": str(workload.file), "shapes": {},
                                   "room": str(self.out / "models" / workload.stem)})
        task = {key: about[key] for key in ("model", "inputs", "outputs", "open", "overrides")}
        task |= {"threads": threads, "library": str(self.library)}

        def plan(count: int) -> str:
            return str(self.tuner.plan(workload.stem, about["model"], {"model": results.digest(workload.file)}, count,
                                       options.sets_of(["all"], [])[0], {})["file"])

        ours = {"kind": "collage", "plan": plan(threads), "waiting": "brief"}
        changes: dict[str, dict[str, Any]] = {
            OURS: {"engines": [ours]},
            LONG_WAITING: {"engines": [{**ours, "waiting": "default"}]},
            ONE_THREAD: {"engines": [{**ours, "plan": plan(1)}], "threads": 1},
            **{peer: {"engines": [{"kind": peer}]} for peer in PEERS}}
        engines: dict[str, Engine] = {}
        try:
            for name, change in changes.items():
                engines[name] = Engine(self.python, {**task, **change}, self.log, VARIABLES.get(name, NOTHING_SET))
        except BaseException:
            close(engines)
            raise
        return engines

    def turns(self, title: str, engines: dict[str, Engine], beside: Surroundings) -> dict[str, dict[str, Any]]:
        """The figures of all engines in some surroundings."""
        found: dict[str, list[list[float]]] = {name: [] for name in engines}
        names = list(engines)
        with competitors(beside.busy), limited([engine.pid for engine in engines.values()], beside.quota):
            for number in range(self.given.repetitions):
                for which in statistics.order_of_round(len(names), number):
                    self.say(f"{title}, busy: {beside.title}", f"turn {number + 1}, {names[which]}")
                    found[names[which]].append(engines[names[which]].run(self.given.seconds))
        return {name: figures(turns_ms) for name, turns_ms in found.items()}

    def page(self, lines: Sequence[Sequence[str]]) -> str:
        titles = ["network", "busy", *(f"{report.TITLES.get(name, name)} ms" for name in (*OURS_ALL, *PEERS)),
                  "of the better peer", "default waiting of ours", "bar holds"]
        found = ", ".join(f"{report.TITLES.get(name, name)} {version}" for name, version in self.versions["versions"].items())
        return (report.table(titles, lines, 1) + f"\n\n{self.machine['processor']}, {self.machine['processors']} processors, "
                f"at most {report.count_of(self.given.threads)}. {found}. {machine.today()}.\n")


def close(engines: dict[str, Engine]) -> None:
    for engine in engines.values():
        engine.close()


def measure(given: argparse.Namespace, say: Progress) -> int:
    everywhere = all_surroundings(given)
    workloads = options.workloads_of(given.models or [BENCHMARKS / f"workloads/{name}.onnx" for name in NETWORKS])
    options.check_build(given)
    options.check_threads(given.threads, given.threads)
    lines, good = [], True
    with alone_in(given.out):
        comparison = Comparison(given, say)
        for workload in workloads:
            for threads, group in itertools.groupby(everywhere, lambda beside: beside.threads(given.threads)):
                engines = comparison.engines_of(workload, threads)
                try:
                    for beside in group:
                        line, holds = row_of(workload.name, beside, comparison.turns(workload.name, engines, beside))
                        lines.append(line)
                        good = good and holds
                        results.write(comparison.out / "busy.md", comparison.page(lines))  # what is done is seen
                finally:
                    close(engines)
    say.end()
    sys.stdout.write(comparison.page(lines))
    return 0 if good else 1


def main(arguments: Sequence[str] | None = None) -> int:
    return guarded("busy", lambda say: measure(parser().parse_args(arguments), say), "stopped")
