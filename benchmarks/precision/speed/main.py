"""The command: everything from the options to the tables. Needs no package; what does runs in processes of its own."""
from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from peers import environment, options, results
from peers.errors import Mistake
from peers.main import Progress, alone_in, guarded

from . import report
from .networks import NETWORKS
from .study import Study

PLANS = ("bf16", "int8", "any", "files", "greedy")
CALIBRATIONS = ("MinMax", "Percentile", "Entropy")
LEAST_SAMPLES = 10
ABOUT = """Compares plans in lower precision with ONNX Runtime and OpenVINO, in integers of 8 bits, bfloat16 and float32.

ONNX Runtime's quantiser makes the peers' files, calibrated on the samples that our plans are tuned with. All engines run in turns, each in
a process of its own, on the same processors. Their errors are measured on other samples. benchmarks/precision/README.md says more."""
AFTER = """exit status: 0 done; 1 an engine failed (the page says which), or something else did not work; 2 a mistake in the call; 130 stopped,
and the same command keeps files, plans and errors that are made"""


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="benchmarks/precision/run", description=ABOUT, epilog=AFTER,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = result.add_argument
    add("networks", nargs="*", metavar="NETWORK", help=f"which of {', '.join(NETWORKS)}; all if none is named")
    add("--threads", default="1,2", metavar="N,N", help="numbers of threads (1,2)")
    add("--rounds", type=int, default=12, metavar="N", help="undisturbed rounds (12; 6 or more), up to twice as many in all")
    add("--seconds", type=float, default=0.5, metavar="S", help="of each engine's slice in a round (0.5, and no less)")
    add("--tune-seconds", type=float, default=180, metavar="S", help="at most, for one plan (180)")
    add("--samples", type=int, default=64, metavar="N", help="for calibration and tuning (64)")
    add("--held-out", type=int, default=32, metavar="N", help="other samples, for errors (32)")
    add("--plans", default=",".join(PLANS), metavar="A,B", help=f"which of ours take part beside float32, and the comparison with the greedy "
        f"order ({','.join(PLANS)})")
    add("--calibration", default="MinMax", choices=CALIBRATIONS, help="of the quantised files (MinMax, ONNX Runtime's own default)")
    add("--backends", default="all", metavar="SET", help="what collage may place on, as in benchmarks/peers (all)")
    add("--algorithms", default="direct", choices=options.ALGORITHMS, help="that kernels of our plans may compute by (direct)")
    add("--store", type=pathlib.Path, metavar="FILE", help="costs that collage measured; if not given, one in --out")
    add("--out", type=pathlib.Path, default=pathlib.Path("build/precision"), metavar="FOLDER",
        help="where files, plans and results are kept (build/precision)")
    add("--json", action="store_true", help="print JSON instead of tables")
    options.add_build(result)
    return result


def checked(given: argparse.Namespace) -> argparse.Namespace:
    """What argparse cannot see. Lists become such."""
    given.networks = list(dict.fromkeys(given.networks)) or list(NETWORKS)
    for name in given.networks:
        if name not in NETWORKS:
            raise Mistake(f"{name}: is none of {', '.join(NETWORKS)}")
    given.plans = list(dict.fromkeys(filter(None, given.plans.split(","))))
    for name in given.plans:
        if name not in PLANS:
            raise Mistake(f"--plans {name}: is none of {', '.join(PLANS)}")
    words, given.threads = given.threads, options.threads_of(given.threads)
    options.check_threads(words, max(given.threads))
    options.check_rounds(given.rounds)
    if not options.LEAST_SECONDS <= given.seconds <= 60:
        raise Mistake(f"--seconds {given.seconds:g}: a slice takes from {options.LEAST_SECONDS} to 60 s")
    if not 1 <= given.tune_seconds <= 1e6:
        raise Mistake(f"--tune-seconds {given.tune_seconds:g}: at least 1 is needed")
    for name, least in (("samples", LEAST_SAMPLES), ("held_out", 2)):
        if getattr(given, name) < least:
            raise Mistake(f"--{name.replace('_', '-')} {getattr(given, name)}: at least {least} are needed")
    options.check_build(given)
    return given


def measure(given: argparse.Namespace, say: Progress) -> int:
    checked(given)
    with alone_in(given.out):
        python = given.python or environment.set_up(environment.folder(options.TOP), say)
        study = Study(given, python, say)
        rows: list[dict[str, Any]] = []
        for name in given.networks:
            for row in study.rows(NETWORKS[name]):
                rows.append(row)
                page, data = report.markdown(rows, study.about()), report.as_json(rows, study.about())
                results.write(given.out / "precision.md", page)  # what is done is seen, whatever comes next
                results.write(given.out / "precision.json", data)
    say.end()
    sys.stdout.write(data if given.json else page)
    return 1 if any(row["failures"] for row in rows) else 0


def main(arguments: Sequence[str] | None = None) -> int:
    return guarded("precision", lambda say: measure(parser().parse_args(arguments), say), "stopped; the same command goes on from here")
