"""The command: engines in turns beside 0, 1 and 2 busy processes, and a table with the bars that hold."""
from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from peers import environment, machine, options, report, results, statistics
from peers.comparison import PEERS
from peers.errors import Failure, Mistake
from peers.main import Progress, alone_in, guarded
from peers.processes import Children
from peers.tuning import Tuner

OURS = "collage"
LONG_WAITING = "collage, default waiting"
MEDIAN_BAR, TAIL_BAR, CALM_BAR = 1.1, 1.3, 0.98
BENCHMARKS = pathlib.Path(__file__).resolve().parents[1]
NETWORKS = ("mobilenet-v2", "bert-paper", "resnet50")


class Engine:
    """An engine in a process of its own. It sleeps until it is asked to run."""

    def __init__(self, python: str, task: dict[str, Any], log: pathlib.Path) -> None:
        reading, writing = os.pipe()
        settings = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(BENCHMARKS)}
        with open(log, "ab") as errors:
            self._process = subprocess.Popen([python, "-P", "-m", "busy.engine", str(writing)], stdin=subprocess.PIPE,
                                             stdout=errors, stderr=errors, pass_fds=[writing], env=settings, text=True)
        os.close(writing)
        self._events = os.fdopen(reading, encoding="utf-8")
        self._ask(json.dumps(task))

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


@contextlib.contextmanager
def competitors(count: int) -> Iterator[None]:
    """So many processes that compute without end."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def parser() -> argparse.ArgumentParser:
    top = options.TOP
    result = argparse.ArgumentParser(prog="benchmarks/busy/run", description=__doc__)
    add = result.add_argument
    add("models", nargs="*", type=pathlib.Path, metavar="MODEL.onnx",
        help=f"networks; {', '.join(NETWORKS)} of benchmarks/workloads if not given")
    add("--competitors", default="0,1,2", metavar="N,N", help="numbers of busy processes (0,1,2)")
    add("--threads", type=int, default=2, metavar="N", help="of each engine (2)")
    add("--seconds", type=float, default=6, metavar="S", help="of each engine's turn (6)")
    add("--repetitions", type=int, default=5, metavar="N", help="turns of each engine (5)")
    add("--tune-seconds", type=float, default=60, metavar="S", help="at most, for one plan (60)")
    add("--out", type=pathlib.Path, default=pathlib.Path("build/busy"), metavar="FOLDER", help="for plans and results")
    add("--library", type=pathlib.Path, default=top / "build/src/libcollage.so", metavar="FILE")
    add("--program", type=pathlib.Path, default=top / "build/collage", metavar="FILE")
    add("--python", metavar="PROGRAM", help="a Python with the packages of peers/requirements.txt; set up if not given")
    return result


def figures(turns_ms: Sequence[Sequence[float]]) -> dict[str, Any]:
    """The median over turns of each percentile."""
    return {"runs": sum(map(len, turns_ms)),
            "medians": [statistics.median(turn) for turn in turns_ms],
            "median": statistics.median([statistics.median(turn) for turn in turns_ms]),
            "tail": statistics.median([statistics.quantile(turn, 0.95) for turn in turns_ms])}


def verdict(found: dict[str, dict[str, Any]], busy: int) -> tuple[dict[str, float], bool]:
    """Our figures over the better peer's, and whether the bars hold."""
    ratios = {figure: found[OURS][figure] / min(found[peer][figure] for peer in PEERS) for figure in ("median", "tail")}
    holds = ratios["median"] <= MEDIAN_BAR and ratios["tail"] <= TAIL_BAR
    if busy == 0:
        calm = statistics.paired_ratio(found[LONG_WAITING]["medians"], found[OURS]["medians"])
        ratios |= {"of default waiting": calm.median, "at most": calm.high}
        holds = calm.high >= CALM_BAR
    return ratios, holds


def row_of(network: str, busy: int, found: dict[str, dict[str, Any]]) -> tuple[list[str], bool]:
    ratios, holds = verdict(found, busy)
    cells = [network, str(busy)]
    for name in (OURS, LONG_WAITING, *PEERS):
        cells.append(f"{report.number(found[name]['median'])} / {report.number(found[name]['tail'])} ({found[name]['runs']})")
    cells.append(f"{ratios['median']:.2f} / {ratios['tail']:.2f}")
    cells.append(f"{ratios['of default waiting']:.2f}" if busy == 0 else report.NOTHING)
    cells.append("yes" if holds else "**no**")
    return cells, holds


def counts_of(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isdigit() for word in words):
        raise Mistake(f"--competitors {text}: is no list of numbers, such as 0,1,2")
    return [int(word) for word in words]


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

    def engines_of(self, workload: options.Workload) -> dict[str, Engine]:
        """All engines of a network, loaded."""
        self.say(f"{workload.name}: reading and tuning")
        about = self.children.run({"task": "describe", "file": str(workload.file), "shapes": {},
                                   "room": str(self.out / "models" / workload.stem)})
        plan = self.tuner.plan(workload.stem, about["model"], {"model": results.digest(workload.file)}, self.given.threads,
                               options.sets_of(["all"], [])[0], {})
        task = {key: about[key] for key in ("model", "inputs", "outputs", "open", "overrides")}
        task |= {"threads": self.given.threads, "library": str(self.library)}
        kinds: dict[str, dict[str, Any]] = {OURS: {"kind": "collage", "plan": plan["file"], "waiting": "brief"},
                                            LONG_WAITING: {"kind": "collage", "plan": plan["file"], "waiting": "default"},
                                            **{peer: {"kind": peer} for peer in PEERS}}
        engines: dict[str, Engine] = {}
        try:
            for name, kind in kinds.items():
                engines[name] = Engine(self.python, {**task, "engines": [kind]}, self.log)
        except BaseException:
            close(engines)
            raise
        return engines

    def turns(self, title: str, engines: dict[str, Engine], busy: int) -> dict[str, dict[str, Any]]:
        """The figures of all engines beside so many busy processes."""
        found: dict[str, list[list[float]]] = {name: [] for name in engines}
        names = list(engines)
        with competitors(busy):
            for number in range(self.given.repetitions):
                for which in statistics.order_of_round(len(names), number):
                    self.say(f"{title}, {busy} busy processes", f"turn {number + 1}, {names[which]}")
                    found[names[which]].append(engines[names[which]].run(self.given.seconds))
        return {name: figures(turns_ms) for name, turns_ms in found.items()}

    def page(self, lines: Sequence[Sequence[str]]) -> str:
        titles = ["network", "busy", *(f"{report.TITLES.get(name, name)} ms" for name in (OURS, LONG_WAITING, *PEERS)),
                  "of the better peer", "default waiting of ours", "bar holds"]
        found = ", ".join(f"{report.TITLES.get(name, name)} {version}" for name, version in self.versions["versions"].items())
        return (report.table(titles, lines, 1) + f"\n\n{self.machine['processor']}, {self.machine['processors']} processors, "
                f"{report.count_of(self.given.threads)}. {found}. {machine.today()}.\n")


def close(engines: dict[str, Engine]) -> None:
    for engine in engines.values():
        engine.close()


def measure(given: argparse.Namespace, say: Progress) -> int:
    counts = counts_of(given.competitors)
    workloads = options.workloads_of(given.models or [BENCHMARKS / f"workloads/{name}.onnx" for name in NETWORKS])
    for option, file in (("--library", given.library), ("--program", given.program)):
        if not file.is_file():
            raise Mistake(f"{option} {file}: is not there; build it (cmake --preset release && cmake --build build)")
    lines, good = [], True
    with alone_in(given.out):
        comparison = Comparison(given, say)
        for workload in workloads:
            engines = comparison.engines_of(workload)
            try:
                for busy in counts:
                    line, holds = row_of(workload.name, busy, comparison.turns(workload.name, engines, busy))
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
