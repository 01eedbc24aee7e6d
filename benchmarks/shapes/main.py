"""The command: what happens where shapes change, with collage, ONNX Runtime and OpenVINO."""
from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from peers import options, results
from peers.errors import Mistake
from peers.main import Progress, alone_in, guarded

from . import memory, plans, report, times
from .study import BERT, ENGINES, Study

MEASURES = {"times": times.measure, "memory": memory.measure, "plans": plans.measure}
ABOUT = """Measures networks at random shapes that engines have not met before.

times    the first and the second run at each shape, and, with --rounds, later runs in turns
memory   resident memory after one shape and after all
plans    plans by estimates against plans that were tuned for the shape

benchmarks/shapes/README.md says how it is measured."""
PAUSED = 130


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="benchmarks/shapes/run", description=ABOUT,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = result.add_argument
    add("what", choices=list(MEASURES), help="what is measured")
    add("model", type=pathlib.Path, metavar="MODEL.onnx", help=f"a network with open extents; or `{BERT}`: BERT-base with open "
        "batch and length, whose product is at most 1,024")
    add("ranges", nargs="*", metavar="NAME=1x3x48x16..640/8", help="extents of open inputs: here multiples of 8 from 16 to 640. "
        "Equal ranges get equal extents")
    add("--shapes", type=int, default=40, metavar="N", help="how many random shapes (40)")
    add("--seed", type=int, default=1, metavar="N", help="of the shapes (1)")
    add("--most-elements", type=int, metavar="N", help="of an input: larger shapes are not drawn")
    add("--threads", type=int, default=2, metavar="N", help="of each engine (2)")
    add("--engines", default=",".join(ENGINES), metavar="A,B", help=f"which take part ({','.join(ENGINES)})")
    add("--rounds", type=int, default=0, metavar="N", help="times: undisturbed rounds of later runs at each shape (0)")
    add("--seconds", type=float, default=0.2, metavar="S", help="times: of an engine's slice in a round (0.2)")
    add("--limit-engines", type=int, default=8, metavar="N", help="memory: the limit of our session (8)")
    add("--limit-mb", type=int, default=0, metavar="N", help="memory: the limit of our session for packed weights (none)")
    add("--most-mb", type=int, default=8000, metavar="N", help="memory: a process that has more is ended (8000)")
    add("--backends", default="all-openvino", metavar="SET", help="what collage may place on, as in benchmarks/peers "
        "(all-openvino)")
    add("--tune", action="append", default=[], metavar="'NAME=1x3x48x320'", help="a shape that is tuned before, once for each")
    add("--tune-seconds", type=float, default=60, metavar="S", help="at most, for one shape (60)")
    add("--store", type=pathlib.Path, metavar="FILE", help="costs that collage measured; if not given, one in --out")
    add("--out", type=pathlib.Path, default=pathlib.Path("build/shapes"), metavar="FOLDER",
        help="where results are kept; what is finished there is not measured again (build/shapes)")
    add("--stop-after", type=float, metavar="S", help=f"begin nothing new after so many seconds, and exit with {PAUSED}; the same "
        "command goes on")
    add("--json", action="store_true", help="print JSON instead of tables")
    for name in ("child", "estimated-plans"):
        file = options.TOP / "build/benchmarks" / {"child": "session_child"}.get(name, "estimated_plans")
        add(f"--{name}", type=pathlib.Path, default=file, metavar="FILE", help=str(file.relative_to(options.TOP)))
    options.add_build(result)
    return result


def checked(given: argparse.Namespace) -> argparse.Namespace:
    """What argparse cannot see. The list of engines becomes one."""
    given.engines = given.engines.split(",")
    for name in given.engines:
        if name not in ENGINES:
            raise Mistake(f"--engines {name}: is none of {', '.join(ENGINES)}")
    for name, least in (("shapes", 1), ("rounds", 0), ("limit_engines", 1), ("limit_mb", 0), ("most_mb", 1)):
        if getattr(given, name) < least:
            raise Mistake(f"--{name.replace('_', '-')} {getattr(given, name)}: at least {least} is needed")
    if not 0 < given.seconds <= 60:
        raise Mistake(f"--seconds {given.seconds:g}: a slice takes at most 60 s")
    if not 1 <= given.tune_seconds <= 1e6:
        raise Mistake(f"--tune-seconds {given.tune_seconds:g}: at least 1 is needed")
    options.check_threads(given.threads, given.threads)
    options.check_build(given)
    needed = {"times": "child", "memory": "child", "plans": "estimated_plans"}[given.what]
    if not getattr(given, needed).is_file():
        raise Mistake(f"--{needed.replace('_', '-')} {getattr(given, needed)}: there is no such program; build it "
                      f"(ninja -C build benchmark_{ {'child': 'session_child'}.get(needed, needed)})")
    return given


def measure(given: argparse.Namespace, say: Progress) -> int:
    checked(given)
    with alone_in(given.out):
        study = Study(given, say)
        rows, wanted = MEASURES[given.what](study)
        about = study.about()
        page, data = (write(given.what, rows, wanted, about) for write in (report.markdown, report.as_json))
        stem = f"{given.what}.{study.network.stem}.{given.threads}"
        results.write(given.out / f"{stem}.md", page)
        results.write(given.out / f"{stem}.json", data)
    say.end()
    sys.stdout.write(data if given.json else page)
    return status_of(rows, wanted)


def status_of(rows: Sequence[dict[str, Any]], wanted: int) -> int:
    if any(row.get("disagreements") for row in rows):
        return 1
    return 0 if len(rows) == wanted else PAUSED


def main(arguments: Sequence[str] | None = None) -> int:
    return guarded("shapes", lambda say: measure(parser().parse_args(arguments), say),
                   "stopped; the same command goes on from here")
