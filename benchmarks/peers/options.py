"""The command line, and what it names: files, shapes, sets of backends."""
from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
from collections.abc import Sequence

from . import statistics
from .errors import Mistake

TOP = pathlib.Path(__file__).resolve().parents[2]
LEAST_SECONDS = 0.5
ABOUT = """Compares collage with ONNX Runtime and OpenVINO on ONNX files: one process holds all of them, which run in turns.

Each network is tuned first (build/collage tune). Prints a Markdown table; the folder --out gets it as well, with JSON and
a chart, and what was measured already is not measured again. benchmarks/peers/README.md says how it is measured."""
AFTER = """exit status: 0 done; 1 an engine failed or outputs disagree (the table says which), or something else did not work;
2 a mistake in the call; 130 stopped, and the same command goes on"""


@dataclasses.dataclass(frozen=True)
class BackendSet:
    """What the program may place a network on: a name for tables, and what its --backends and --algorithms get; none for the
    program's own choice. `more` are further options of `collage tune`."""

    label: str
    backends: str | None
    algorithms: str | None = None
    more: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Workload:
    """A file under a name of its own."""

    name: str
    file: pathlib.Path

    @property
    def stem(self) -> str:
        """The name, fit for a file."""
        return self.name.replace("/", "__")


def threads_of(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise Mistake(f"--threads {text}: is no list of numbers like 1,2")
    return list(dict.fromkeys(map(int, words)))


def shapes_of(words: Sequence[str]) -> dict[str, list[int]]:
    """Options of the form NAME=1x3x224x224; nothing behind the sign is a scalar."""
    shapes = {}
    for word in words:
        name, sign, extents = word.rpartition("=")
        if not sign or not name or not all(extent.isdecimal() for extent in extents.split("x") if extents):
            raise Mistake(f"--shape {word}: is not of the form NAME=1x3x224x224")
        shapes[name] = [int(extent) for extent in extents.split("x")] if extents else []
    return shapes


def workloads_of(words: Sequence[pathlib.Path]) -> list[Workload]:
    """All .onnx files of the list, each once, under the shortest names that tell them apart."""
    files: dict[pathlib.Path, None] = {}
    for word in words:
        found = sorted(word.rglob("*.onnx")) if word.is_dir() else [word]
        if not found or not all(file.is_file() for file in found):
            raise Mistake(f"{word}: there is no such .onnx file, nor a folder of some")
        files.update((file.resolve(), None) for file in found)
    names: dict[pathlib.Path, str] = {}
    for file in files:
        parts = file.with_suffix("").parts
        for count in range(1, len(parts) + 1):
            name = "/".join(parts[-count:])
            if not any(other != file and other.with_suffix("").parts[-count:] == parts[-count:] for other in files):
                break
        names[file] = name
    return [Workload(name, file) for file, name in names.items()]


ALGORITHMS = ("direct", "accurate", "any")


def set_of(text: str, available: Sequence[str]) -> BackendSet:
    """A set by its name: `all`, `all-NAME...`, or names in a list with commas. Behind a colon: the algorithms that kernels may
    compute by."""
    names, sign, algorithms = text.partition(":")
    made = backends_of(names, available)
    if not sign:
        return made
    if algorithms not in ALGORITHMS:
        raise Mistake(f"--backends {text}: after the colon belongs one of {', '.join(ALGORITHMS)}")
    return dataclasses.replace(made, label=f"{made.label}, {algorithms}", algorithms=algorithms)


def backends_of(text: str, available: Sequence[str]) -> BackendSet:
    named, without = (text.split("-")[1:], True) if text.startswith("all-") else (text.split(","), False)
    if text == "all":
        return BackendSet("all", None)
    for name in named:
        if name not in available:
            raise Mistake(f"--backends {text}: the program has no backend `{name}` here, only {', '.join(available)}")
    if not without:
        return BackendSet("+".join(named), ",".join(named))
    rest = [name for name in available if name not in named]
    if not rest:
        raise Mistake(f"--backends {text}: leaves no backend")
    return BackendSet(f"without {', '.join(named)}", ",".join(rest))


def sets_of(words: Sequence[str], available: Sequence[str]) -> list[BackendSet]:
    """The sets that were asked for; if none was, all backends, and all but openvino where that is one of them: it is one of
    the peers as well."""
    if not words:
        words = ["all", "all-openvino"] if "openvino" in available else ["all"]
    return [set_of(word, available) for word in dict.fromkeys(words)]


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(prog="benchmarks/peers/run", description=ABOUT, epilog=AFTER,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = result.add_argument
    add("models", nargs="+", type=pathlib.Path, metavar="FILE_OR_FOLDER",
        help="ONNX files, or folders with some; those without weights are filled")
    add("--threads", default="1,2", metavar="N,N", help="numbers of threads (1,2)")
    add("--backends", action="append", default=[], metavar="SET",
        help="what collage may use, once for each: all, all-openvino (all but that one), or a list as onednn,eigen (all; "
             "and all-openvino where that backend is there); with :direct, no other algorithms than the operators' definitions")
    add("--shape", action="append", default=[], metavar="NAME=1x3x224x224",
        help="the extents of an input that the file leaves open, once for each")
    add("--rounds", type=int, default=12, metavar="N", help="calm rounds at least (12; 6 or more), up to four times as many")
    add("--seconds", type=float, default=0.5, metavar="S", help="of each engine's slice in a round (0.5, and no less)")
    add("--tune-seconds", type=float, default=180, metavar="S", help="at most, for one plan (180)")
    add("--store", type=pathlib.Path, metavar="FILE", help="costs that collage measured; a new one in --out if not given")
    add("--out", type=pathlib.Path, default=pathlib.Path("build/peers"), metavar="FOLDER",
        help="where results are kept; what is finished there is not measured again (build/peers)")
    add("--json", action="store_true", help="print JSON instead of the table")
    add("--svg", type=pathlib.Path, metavar="FILE", help="also write the chart there")
    mode = result.add_mutually_exclusive_group()
    mode.add_argument("--memory", action="store_true",
                      help="instead: the most memory that loading and 10 runs take, each engine in a process of its own")
    mode.add_argument("--load", action="store_true",
                      help="instead: how long loading takes, with a plan from the warm store, in processes of their own")
    add_build(result)
    return result


def add_build(to: argparse.ArgumentParser) -> None:
    """The options of what is compared, and of who compares it."""
    add = to.add_argument
    add("--library", type=pathlib.Path, default=TOP / "build/src/libcollage.so", metavar="FILE",
        help="build/src/libcollage.so")
    add("--program", type=pathlib.Path, default=TOP / "build/collage", metavar="FILE", help="build/collage")
    add("--python", metavar="PROGRAM",
        help="a Python that has the packages of peers/requirements.txt; if not given, one is set up in .deps/peers or "
             "$COLLAGE_DEPS/peers")


def check_build(given: argparse.Namespace) -> None:
    for option, file, what in (("--library", given.library, "library"), ("--program", given.program, "program")):
        if not file.is_file():
            raise Mistake(f"{option} {file}: there is no such {what}; build it (cmake --preset release && cmake --build build)")


def check_threads(text: object, most: int) -> None:
    processors = len(os.sched_getaffinity(0))
    if not 1 <= most <= processors:
        raise Mistake(f"--threads {text}: this process may use {processors} processor{'s' * (processors > 1)}")


def check_rounds(rounds: int) -> None:
    if rounds < statistics.LEAST_ROUNDS:
        raise Mistake(f"--rounds {rounds}: at least {statistics.LEAST_ROUNDS} are needed for a 95 % interval")


def numbers_of(option: str, text: str, least: float, most: float, what: str) -> list[float]:
    """A list of numbers between two bounds. `what` says in a message what it should have been."""
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(least <= number <= most for number in found):
        raise Mistake(f"{option} {text}: is no list of {what}")
    return found


def check(given: argparse.Namespace, threads: Sequence[int]) -> None:
    """What argparse cannot see."""
    check_threads(given.threads, max(threads))
    check_rounds(given.rounds)
    if not LEAST_SECONDS <= given.seconds <= 3600:
        raise Mistake(f"--seconds {given.seconds:g}: a slice takes at least {LEAST_SECONDS} s, since the threads of who ran "
                      "before look for work for a while")
    if not 1 <= given.tune_seconds <= 1e6:
        raise Mistake(f"--tune-seconds {given.tune_seconds:g}: at least 1 is needed")
    if given.svg and (given.memory or given.load):
        raise Mistake("--svg: there is a chart of times alone, not with --memory or --load")
    check_build(given)
