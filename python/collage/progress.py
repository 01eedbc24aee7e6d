"""What measuring does meanwhile: a callback, or a line on the terminal; and how Ctrl-C ends it."""
from __future__ import annotations

import atexit
import dataclasses
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Optional, TextIO, Union

from . import _abi, errors

__all__ = ["Progress", "ProgressLine"]


@dataclasses.dataclass(frozen=True)
class Progress:
    """The state of placing a network.

    Attributes:
        stage: "listing", "measuring", "tuning", "searching", "comparing", "regions", "waiting" or "precision"; there may be more.
        what: the group that is measured, the placement that runs end to end, or work in words.
        done: pieces of work that are done.
        remaining: pieces that are left, with the current one; some may be skipped, and others added.
        remaining_s: an estimate in seconds; 0 while nothing is known.
        best_ms: of the best placement so far in milliseconds; 0 while there is none.
    """

    stage: str
    what: str
    done: int
    remaining: int
    remaining_s: float
    best_ms: float


ProgressFunction = Callable[[Progress], Union[str, bool, None]]  # a Boolean goes on, as None does
ProgressOption = Union[ProgressFunction, bool, None]

_RESULTS = {None: _abi.CONTINUE, "continue": _abi.CONTINUE, "stop": _abi.STOP, "cancel": _abi.CANCEL}


class ProgressLine:
    """A line on a terminal, renewed ten times a second. Elsewhere, as in a file, it is a line for each stage."""

    def __init__(self, to: Optional[TextIO] = None) -> None:
        self._to: Optional[TextIO] = sys.stderr if to is None else to  # programs without a terminal may have no stderr
        self._is_terminal = bool(getattr(self._to, "isatty", lambda: False)())
        self._start = time.monotonic()
        self._last, self._stage, self._is_open = -1.0, "", False

    def __call__(self, now: Progress) -> None:
        if self._to is None:
            return
        seconds = time.monotonic() - self._start
        if self._is_terminal:
            if seconds - self._last < 0.1 and now.stage == self._stage:
                return
            self._to.write("\r" + self.text(now, seconds)[:self._columns()] + "\x1b[K")
            self._is_open = True
        elif now.stage != self._stage:
            self._to.write(self.text(now, seconds) + "\n")
        else:
            return
        self._last, self._stage = seconds, now.stage
        self._to.flush()

    def close(self) -> None:
        """Ends the line."""
        if self._is_open and self._to is not None:
            self._to.write("\n")
            self._to.flush()
            self._is_open = False

    @staticmethod
    def _columns() -> int:
        import shutil
        return shutil.get_terminal_size().columns - 1

    @staticmethod
    def text(now: Progress, seconds: float) -> str:
        """One state, such as "measuring  45%|####      | 45/100 [00:03<00:04, best 9.270 ms] conv_0+relu_1"."""
        total = now.done + now.remaining
        part = now.done / total if total else 0.0
        left = _clock(now.remaining_s) if now.remaining_s > 0 else "?"
        best = f", best {now.best_ms:.3f} ms" if now.best_ms > 0 else ""
        bar = ("#" * int(10 * part)).ljust(10)
        what = "".join(c if c.isprintable() else "?" for c in now.what)
        return f"{now.stage} {100 * part:3.0f}%|{bar}| {now.done}/{total} [{_clock(seconds)}<{left}{best}] {what}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes:02d}:{rest:02d}"


_within = threading.local()  # what of the user runs in this thread, called by the library


class _Calls:
    """The calls under way that call Python. A program that ends gives up those of other threads, and waits for them.

    Python ends a thread that comes back to it later by unwinding its stack. The functions of the library in that stack end the process then.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0
        self._ends_in: Optional[int] = None  # the thread that ends the program, which Python never ends

    def must_end(self) -> bool:
        """Whether the program ends, and this thread with it."""
        return self._ends_in is not None and self._ends_in != threading.get_ident()

    @contextmanager
    def one(self) -> Iterator[None]:
        with self._changed:
            if self.must_end():
                raise _program_ends()
            self._count += 1
        try:
            yield
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def finish(self) -> None:
        with self._changed:
            self._ends_in = threading.get_ident()
            self._changed.wait_for(lambda: self._count == 0, timeout=10)


def _program_ends() -> errors.CancelledError:
    return errors.ProgramEndsError("the program ends, so this thread neither places networks nor runs sessions that measure new shapes; "
                                   "join it before the program ends")


_calls = _Calls()


def _after_fork() -> None:
    """Calls of other threads are only in the parent."""
    global _calls
    _calls = _Calls()


atexit.register(lambda: _calls.finish())
os.register_at_fork(after_in_child=_after_fork)


class Watch:
    """The progress function that the library calls. Nothing is raised through the library: it is kept, and raised afterwards."""

    def __init__(self, option: ProgressOption, measures: bool) -> None:
        self._measures = measures
        self._line = ProgressLine() if option is True else None
        if not (option is None or isinstance(option, bool) or callable(option)):
            raise errors.MisuseError(f"progress is of type {type(option).__name__}; give a function, True or None")
        self._function: Optional[ProgressFunction] = self._line or (option if callable(option) else None)
        self._local = threading.local()  # what was raised: threads share the watch of an open session
        self._interrupts = 0
        self._previous: Any = None
        self.function = _abi.ProgressFunction(self._called)

    def _fault(self) -> Optional[BaseException]:
        return getattr(self._local, "fault", None)

    def _called(self, _: Any, now: Any) -> int:
        try:
            if self._interrupts or self._fault() is not None:
                return _abi.CANCEL
            if _calls.must_end():
                self._local.is_given_up = True
                return _abi.CANCEL
            if self._function is None:
                return _abi.CONTINUE
            result = self._tell(now[0])
            return _abi.CANCEL if self._interrupts or self._fault() is not None else result
        except BaseException as fault:
            self._local.fault = fault
            return _abi.CANCEL

    def _tell(self, at: Any) -> int:
        assert self._function is not None
        now = Progress(_abi.text(at.stage), _abi.text(at.what), at.done, at.remaining, at.remaining_s, at.best_ms)
        with self.calling("a progress function"):
            result = self._function(now)
        if result is None or (isinstance(result, str) and result in _RESULTS):
            return _RESULTS[result]
        if isinstance(result, bool):  # what the update of a progress bar may return
            return _abi.CONTINUE
        raise errors.MisuseError(f'the progress function returned {result!r}; return None, "stop" or "cancel"')

    @contextmanager
    def calling(self, whose: str) -> Iterator[None]:
        """While code of the user runs, which the library calls: it must not measure networks."""
        before, _within.whose = getattr(_within, "whose", None), whose
        try:
            yield
        finally:
            _within.whose = before

    def keep(self, fault: BaseException) -> None:
        """Has an exception of the user's code raised at the end of the call, and ends placing."""
        self._local.fault = fault

    def _interrupted(self, number: int, frame: Optional[FrameType]) -> None:
        if callable(self._previous) and self._previous is not signal.default_int_handler:
            try:
                self._previous(number, frame)
            except BaseException as fault:
                self._local.fault = fault
            return
        self._interrupts += 1
        if self._interrupts == 1 and self._line is not None:
            try:
                self._line.close()
                if sys.stderr is not None:
                    print("collage: finishing with the best plan so far; Ctrl-C again gives it up", file=sys.stderr)
            except RuntimeError:
                pass  # the signal came while the line was written

    @contextmanager
    def watching(self) -> Iterator[None]:
        """During a call that places: Ctrl-C ends it with the plan so far, and raises KeyboardInterrupt if pressed again.

        A program's own handler of SIGINT is called; what it raises ends placing, and is raised afterwards. A handler cannot raise
        by itself: Python would run it at the entry of the progress function, and ctypes would drop the exception.
        """
        if self._measures and (whose := getattr(_within, "whose", None)):
            raise errors.MisuseError(f"{whose} must not measure networks: one process measures one network at a time; return from the "
                                     "function first, or place by how=\"priority\"")
        previous = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
        ours = callable(previous)
        if ours:
            self._previous = previous
            signal.signal(signal.SIGINT, self._interrupted)
        try:
            with _calls.one():
                yield
        except errors.CollageError as fault:
            self._raise(cancelled=isinstance(fault, errors.CancelledError))
            raise
        finally:
            if ours:
                signal.signal(signal.SIGINT, previous)
            if self._line is not None:
                self._line.close()
        self._raise(cancelled=False)

    def _raise(self, cancelled: bool) -> None:
        fault, self._local.fault = self._fault(), None
        interrupts, self._interrupts = self._interrupts, 0
        is_given_up, self._local.is_given_up = getattr(self._local, "is_given_up", False), False
        if fault is not None:
            raise fault
        if interrupts >= 2 or (interrupts and cancelled):
            raise KeyboardInterrupt
        if is_given_up and cancelled:
            raise _program_ends()
