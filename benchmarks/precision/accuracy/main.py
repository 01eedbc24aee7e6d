"""The command: its options, and the Python that has the packages, which does the work."""
from __future__ import annotations

import argparse
import os
import pathlib
import sys
from collections.abc import Sequence

from peers import environment, options
from peers.errors import Failure, Mistake
from peers.main import Progress, guarded

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
NETWORKS = ("text", "files", "speech", "pictures")
PRECISIONS = ("bf16", "int8", "any")
LEAST_SAMPLES = 3
FASTEST = "100%"  # no bound: whatever is fastest
ABOUT = """Measures how accurate trained networks stay in lower precision, beside the same networks in float32 on the same data.

text      PP-OCRv6 reading rendered lines
files     Magika recognising types of files of this machine
speech    Silero VAD hearing sentences of espeak-ng
pictures  opennsfw on parts of photographs, which has no labels here

Each network is tuned on samples (collage tune --precision), and measured on data that tuning has not seen. Prints a Markdown table;
--out gets it as well, with CSV and JSON. benchmarks/precision/accuracy/README.md says how it is measured."""
AFTER = """exit status: 0 done; 1 something did not work; 2 a mistake in the call; 130 stopped, and the same command keeps the plans that
are made"""


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="benchmarks/precision/accuracy/run", description=ABOUT, epilog=AFTER,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = result.add_argument
    add("networks", nargs="*", metavar="NETWORK", help=f"which of {', '.join(NETWORKS)}; all if none is named")
    add("--precision", default="bf16", metavar="A,B", help=f"precisions of `collage tune`: {', '.join(PRECISIONS)} (bf16)")
    add("--error", default="1%", metavar="P%,P%", help=f"most errors of the outputs, a plan for each; {FASTEST.replace('%', '%%')} leaves plans free (1%%)")
    add("--count", type=int, default=400, metavar="N", help="units of data for each network, such as lines and files (400)")
    add("--samples", type=int, default=160, metavar="N", help="samples for tuning, of other sources (40)")
    add("--seed", type=int, default=1, metavar="N", help="of all data and of the bootstrap (1)")
    add("--threads", type=int, default=1, metavar="N", help="of each engine (1)")
    add("--budget", type=float, default=60, metavar="S", help="at most, for one plan (60)")
    add("--rounds", type=int, default=12, metavar="N", help="in which engines take turns, to compare times (12; 6 or more)")
    add("--out", type=pathlib.Path, default=pathlib.Path("build/accuracy"), metavar="FOLDER",
        help="where samples, plans, costs and results are kept (build/accuracy)")
    add("--json", action="store_true", help="print JSON instead of the table")
    add("--library", type=pathlib.Path, default=options.TOP / "build/src/libcollage.so", metavar="FILE", help="build/src/libcollage.so")
    add("--program", type=pathlib.Path, default=options.TOP / "build/collage", metavar="FILE", help="build/collage")
    add("--python", metavar="PROGRAM", help="a Python that has the packages of precision/accuracy/requirements.txt; if not given, one is "
        "set up in .deps/accuracy or $COLLAGE_DEPS/accuracy")
    return result


def checked(given: argparse.Namespace) -> argparse.Namespace:
    """What argparse cannot see. Lists become such."""
    given.networks = list(dict.fromkeys(given.networks)) or list(NETWORKS)
    for name in given.networks:
        if name not in NETWORKS:
            raise Mistake(f"{name}: is none of {', '.join(NETWORKS)}")
    given.precision = list(dict.fromkeys(given.precision.split(",")))
    for name in given.precision:
        if name not in PRECISIONS:
            raise Mistake(f"--precision {name}: is none of {', '.join(PRECISIONS)}")
    given.error = list(dict.fromkeys(given.error.split(",")))
    for error in given.error:
        share = error.removesuffix("%")
        if share == error or not is_number(share) or not 0 < float(share) <= 100:
            raise Mistake(f"--error {error}: is no share of the outputs like 1%, at most {FASTEST}")
    for name, least in (("count", 2), ("samples", LEAST_SAMPLES), ("seed", 0)):
        if getattr(given, name) < least:
            raise Mistake(f"--{name} {getattr(given, name)}: at least {least} is needed")
    if not 1 <= given.budget <= 1e6:
        raise Mistake(f"--budget {given.budget:g}: at least 1 is needed")
    options.check_rounds(given.rounds)
    options.check_threads(given.threads, given.threads)
    options.check_build(given)
    return given


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def start(arguments: Sequence[str], say: Progress) -> int:
    """Goes on in the Python that has the packages."""
    given = checked(parser().parse_args(arguments))
    python = given.python or environment.set_up(environment.folder(options.TOP, "accuracy"), say, REQUIREMENTS, ["--no-deps"])
    settings = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "COLLAGE_LIBRARY": str(given.library.resolve()),
                "PYTHONPATH": os.pathsep.join(map(str, (HERE.parents[1], options.TOP / "python")))}
    say.end()
    try:
        os.execvpe(python, [python, "-P", "-m", "precision.accuracy.study", *arguments], settings)
    except OSError as problem:
        raise Failure(f"{python}: cannot be started: {problem.strerror}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    return guarded("accuracy", lambda say: start(words, say), "stopped")
