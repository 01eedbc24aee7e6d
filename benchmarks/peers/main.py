"""The command: everything from the options to the table. Needs no package; what does runs in processes of its own."""
from __future__ import annotations

import contextlib
import fcntl
import pathlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import chart, environment, machine, options, report, results
from .comparison import Comparison
from .errors import Failure, Mistake
from .processes import Children
from .tuning import Tuner


class Progress:
    """Says what is under way on standard error: one moving line on a terminal; elsewhere a line where the work changes,
    without what is going on more closely."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.moves = sys.stderr.isatty()
        self.last = ""

    def __call__(self, what: str, closely: str = "") -> None:
        what = f"{self.program}: {what}"
        if self.moves:
            sys.stderr.write("\r\x1b[K" + (f"{what} ({closely})" if closely else what)[:160])
        elif what != self.last:
            self.last = what
            sys.stderr.write(what + "\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self.moves:
            sys.stderr.write("\r\x1b[K")


@contextlib.contextmanager
def alone_in(folder: pathlib.Path) -> Iterator[None]:
    """Two comparisons in one folder would take each other's processors and files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / ".lock", "w", encoding="ascii")
    except OSError as problem:
        raise Mistake(f"--out {folder}: cannot be written: {problem.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Mistake(f"--out {folder}: another comparison is at work there; wait for it, or name another folder") from None
        yield


def prepared(given: Any, say: Progress) -> tuple[Comparison, dict[str, Any]]:
    """The comparison and the machine that it runs on, with all that can be wrong found out first."""
    shapes = options.shapes_of(given.shape)
    out, library, program = (file.resolve() for file in (given.out, given.library, given.program))
    python = given.python or environment.set_up(environment.folder(options.TOP), say)
    children = Children(python, out / "engines.log")
    say("looking at the libraries")
    here = machine.describe()
    found = children.run({"task": "versions", "packages": environment.PACKAGES, "library": str(library)})
    key = {**here, "versions": found["versions"], "library": results.digest(library)}
    store = given.store.resolve() if given.store else out / "costs.db"
    tuner = Tuner(program, store, given.tune_seconds, out / "plans", {**here, "program": results.digest(program)})
    sets = options.sets_of(given.backends, tuner.available())
    return (Comparison(children, tuner, library, sets, shapes, given.rounds, given.seconds, out, key, say),
            {**here, "versions": found["versions"], "backends": found["backends"]})


def compare(given: Any, say: Progress) -> int:
    threads = options.threads_of(given.threads)
    workloads = options.workloads_of(given.models)
    options.check(given, threads)
    mode = "memory" if given.memory else "load" if given.load else "speed"
    with alone_in(given.out):
        comparison, about = prepared(given, say)
        about["date"] = machine.today()
        if mode == "speed":
            about["peaks"] = {str(count): comparison.peak(count) for count in threads}
        rows: list[dict[str, Any]] = []
        for workload in workloads:
            for count in threads:
                rows += comparison.rows(mode, workload, count)
                write(given, mode, rows, about)  # what is done is seen, whatever comes next
            comparison.finish(workload)
    say.end()
    sys.stdout.write(report.as_json(rows, about) if given.json else report.markdown(mode, rows, about))
    return 0 if report.is_good(rows) else 1


def write(given: Any, mode: str, rows: Sequence[dict[str, Any]], about: dict[str, Any]) -> None:
    results.write(given.out / f"{mode}.md", report.markdown(mode, rows, about))
    results.write(given.out / f"{mode}.json", report.as_json(rows, about))
    if mode == "speed":
        versions = about["versions"]
        foot = (f"{about['processor']}, {about['processors']} processors; collage {versions['collage']}, "
                f"ONNX Runtime {versions['onnxruntime']}, OpenVINO {versions['openvino']}; {about['date']}")
        drawing = chart.chart(rows, foot)
        for file in filter(None, (given.out / "chart.svg", given.svg)):
            results.write(file, drawing)


def guarded(program: str, work: Callable[[Progress], int], stopped: str) -> int:
    """Runs a command and returns its exit status. A mistake, a failure and an interrupt are one sentence each."""
    signal.signal(signal.SIGTERM, lambda _number, _frame: (_ for _ in ()).throw(KeyboardInterrupt))
    say = Progress(program)
    try:
        return work(say)
    except (Mistake, Failure) as problem:
        say.end()
        print(f"{program}: {problem}", file=sys.stderr)
        return 2 if isinstance(problem, Mistake) else 1
    except KeyboardInterrupt:
        say.end()
        print(f"{program}: {stopped}", file=sys.stderr)
        return 130


def main(arguments: Sequence[str] | None = None) -> int:
    return guarded("peers", lambda say: compare(options.parser().parse_args(arguments), say),
                   "stopped; the same command goes on from here")
