"""The command: how long placing takes beyond its budget, from an empty store, beside busy processes."""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from busy.main import BENCHMARKS, counts_of
from busy.surroundings import competitors
from peers import machine, options, report
from peers.errors import Failure
from peers.main import Progress, guarded

NETWORKS = ("bert-paper", "mobilenet-v2", "resnet50", "dcgan-paper")
GRACE_S, PART = 2.0, 0.1  # placing ends so long after its budget: the larger of some seconds and a part
LONGEST_S = 600.0


def allowed_s(budget_s: float) -> float:
    return max(GRACE_S, PART * budget_s)


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="benchmarks/busy/budgets", description=__doc__)
    add = result.add_argument
    add("models", nargs="*", type=pathlib.Path, metavar="MODEL.onnx",
        help=f"networks; {', '.join(NETWORKS)} of benchmarks/workloads if not given")
    add("--budgets", default="2,5,20", metavar="S,S", help="seconds (2,5,20)")
    add("--competitors", default="0,2", metavar="N,N", help="numbers of busy processes (0,2)")
    add("--threads", type=int, default=2, metavar="N", help="of the network (2)")
    add("--program", type=pathlib.Path, default=options.TOP / "build/collage", metavar="FILE", help="build/collage")
    return result


def words_of(program: pathlib.Path, model: pathlib.Path, threads: int, budget_s: float, room: pathlib.Path) -> list[str]:
    return [str(program), "tune", str(model), "--plan", str(room / "plan.json"), "--store", str(room / "costs.db"), "--threads",
            str(threads), "--budget", f"{budget_s:g}", "--json", "--quiet"]


def tuned(words: Sequence[str]) -> dict[str, Any]:
    """{wall_s, placing_s, measured} of one tuning. Its workers end with it, also after a failure."""
    start = time.monotonic()
    try:
        running = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
    except OSError as problem:
        raise Failure(f"{words[0]}: cannot be started: {problem.strerror}") from None
    try:
        said, told = running.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        raise Failure(f"{words[2]}: tuning was still at work after {LONGEST_S:g} s") from None
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    wall_s = time.monotonic() - start
    if running.returncode != 0:
        raise Failure(told.strip().removeprefix("collage: ") or f"collage tune ended with status {running.returncode} and said nothing")
    answer = json.loads(said)
    return {"wall_s": wall_s, "placing_s": answer["seconds"], "measured": answer["measured"]}


def row_of(network: str, busy: int, budget_s: float, found: dict[str, Any]) -> tuple[list[str], bool]:
    """The line of one tuning, and whether placing kept its budget. Reading and writing files are not part of placing."""
    over_s = found["placing_s"] - budget_s
    holds = over_s <= allowed_s(budget_s)
    return [network, str(busy), f"{budget_s:g}", f"{found['placing_s']:.2f}", f"{max(over_s, 0):.2f}", f"{found['wall_s']:.2f}",
            str(found["measured"]), "yes" if holds else "**no**"], holds


def page(lines: Sequence[Sequence[str]], threads: int) -> str:
    about = machine.describe()
    titles = ["network", "busy", "budget s", "placing s", "over s", "wall s", "measured", "holds"]
    return (report.table(titles, lines, 1) + f"\n\n{about['processor']}, {about['processors']} processors, "
            f"{report.count_of(threads)}. {machine.today()}.\n")


def measure(given: argparse.Namespace, say: Progress) -> int:
    budgets = options.numbers_of("--budgets", given.budgets, 0.01, 1e5, "seconds, such as 2,5,20")
    busy_counts = counts_of(given.competitors)
    workloads = options.workloads_of(given.models or [BENCHMARKS / f"workloads/{name}.onnx" for name in NETWORKS])
    options.check_threads(given.threads, given.threads)
    lines, good = [], True
    for workload in workloads:
        for busy in busy_counts:
            for budget_s in budgets:
                say(f"{workload.name}, busy: {busy}, budget {budget_s:g} s")
                with tempfile.TemporaryDirectory() as room, competitors(busy):
                    found = tuned(words_of(given.program.resolve(), workload.file, given.threads, budget_s, pathlib.Path(room)))
                line, holds = row_of(workload.name, busy, budget_s, found)
                lines.append(line)
                good = good and holds
    say.end()
    sys.stdout.write(page(lines, given.threads))
    return 0 if good else 1


def main(arguments: Sequence[str] | None = None) -> int:
    return guarded("budgets", lambda say: measure(parser().parse_args(arguments), say), "stopped")
