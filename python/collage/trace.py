"""Traces: where the time of runs goes, and what limits them."""
from __future__ import annotations

import ctypes
import os
import threading
import time
from typing import Any, Callable, Optional, Union

from . import _abi, _handles, _options, errors
from .arrays import StopFlag

__all__ = ["Trace"]

_LOOK_EVERY_S = 0.02  # at a stop flag: setting it wakes no thread


class Trace(_handles.Unpicklable):
    """Records runs, for https://ui.perfetto.dev and chrome://tracing: give it to ``run(..., trace=trace)``.

    Threads may share it, and each has a row of its own. Runs without a trace cost nothing more.

    Args:
        process: the name of the process in the trace; None: that of the running program.
        most_events: runs are dropped once they would have more events in all, of 32 bytes each; 0: 1,000,000.

    Raises:
        MisuseError: an option is wrong, or the library is older and has no traces.
    """

    def __init__(self, *, process: Optional[str] = None, most_events: int = 0) -> None:
        if not _abi.has("trace_create"):
            raise errors.MisuseError(f"the library, version {_abi.text(_abi.lib.collage_version())}, has no traces; install that of "
                                     "the same release as this package")
        options = _abi.new(_abi.TraceOptions, process=None if process is None else _abi.encoded(process, "process"),
                           most_events=_options.whole(most_events, "most_events", most=2**63))
        self._handle = _handles.Handle("trace", "trace_create", options)
        self._lock = threading.Lock()
        _handles.tell_after_fork(self)

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes a file in the trace event format in one step: a failure leaves an existing file unchanged."""
        to = _options.path_of(path, "path")
        with self._handle as pointer:
            _abi.call("trace_save", pointer, to)

    @property
    def data(self) -> dict[str, Any]:
        """The trace as it is now: the JSON object of ``collage_trace_json``."""
        with self._lock, self._handle as pointer:  # the next call makes another text
            document: dict[str, Any] = _abi.document("trace_json", pointer)
        return document

    @property
    def runs(self) -> int:
        """The number of runs in it."""
        return int(self._info().runs)

    @property
    def events(self) -> int:
        """The number of events in these runs."""
        return int(self._info().events)

    @property
    def dropped_runs(self) -> int:
        """The number of runs for which there was no room."""
        return int(self._info().dropped_runs)

    def _info(self) -> Any:
        with self._handle as pointer:
            return _abi.filled("trace_get_info", _abi.TraceInfo, pointer)

    def close(self) -> None:
        """Releases the trace, at the end of the runs that it records."""
        self._handle.close()

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class How:
    """How a run goes other than plainly: its limits, and the trace that records it."""

    __slots__ = ("_limits", "_stop", "_trace")

    def __init__(self, timeout: Optional[float], stop: Optional[StopFlag], trace: Optional[Trace]) -> None:
        self._stop = stop  # its byte must live as long as the run
        self._limits = _limits_of(timeout, stop)
        if not (trace is None or isinstance(trace, Trace)):
            raise errors.MisuseError(f"trace is of type {type(trace).__name__}; give a collage.Trace")
        self._trace = trace

    @property
    def limits(self) -> Any:
        """The address of a collage_run_limits; None without limits."""
        return None if self._limits is None else ctypes.byref(self._limits)

    def wait_for(self, changed: threading.Condition, is_true: Callable[[], bool]) -> None:
        """Waits within the limits. The run that follows has the rest of the time.

        Raises:
            CancelledError: a limit was reached.
        """
        if self._limits is None:
            changed.wait_for(is_true)
            return
        seconds = self._limits.seconds or float("inf")  # 0 is no limit
        start, left = time.monotonic(), seconds
        while not is_true():
            if self._stop is not None and self._stop.is_set():
                raise errors.CancelledError("run: was ended before it began, because the caller stopped it")
            if left <= 0:
                raise errors.CancelledError("run: was ended before it began, because its time was over")
            changed.wait(min(left, _LOOK_EVERY_S))
            left = seconds - (time.monotonic() - start)
        if seconds != float("inf"):
            self._limits.seconds = left if left > 0 else -1.0

    def run_context(self, pointer: int) -> int:
        """The status of a run of a context."""
        if self._trace is None:
            return int(_abi.lib.collage_context_run_limited(pointer, self.limits))
        with self._trace._handle as trace:
            return int(_abi.lib.collage_context_run_traced(pointer, self.limits, trace))

    def run_growing(self, pointer: int, tensors: Any, count: int) -> int:
        """The status of a run of a growing context."""
        if self._trace is None:
            return int(_abi.lib.collage_growing_context_run(pointer, tensors, count, self.limits))
        if not _abi.has("growing_context_run_traced"):
            raise errors.MisuseError(f"the library, version {_abi.text(_abi.lib.collage_version())}, does not trace runs with caches that "
                                     "grow; install that of the same release as this package")
        with self._trace._handle as trace:
            return int(_abi.lib.collage_growing_context_run_traced(pointer, tensors, count, self.limits, trace))

    def run_session(self, pointer: int, tensors: Any, count: int) -> int:
        """The status of a run of a session context."""
        if self._trace is None:
            return int(_abi.lib.collage_session_context_run(pointer, tensors, count, self.limits))
        with self._trace._handle as trace:
            return int(_abi.lib.collage_session_context_run_traced(pointer, tensors, count, self.limits, trace))


def how_of(timeout: Optional[float], stop: Optional[StopFlag], trace: Optional[Trace] = None) -> Optional[How]:
    """How a run goes; None if plainly, for which there is a faster call."""
    if timeout is None and stop is None and trace is None:
        return None
    return How(timeout, stop, trace)


def _limits_of(timeout: Optional[float], stop: Optional[StopFlag]) -> Any:
    if timeout is None and stop is None:
        return None
    if stop is not None and not isinstance(stop, StopFlag):
        raise errors.MisuseError(f"stop is of type {type(stop).__name__}; give a collage.StopFlag")
    seconds = 0.0
    if timeout is not None:
        try:
            seconds = float(timeout)
        except (TypeError, ValueError):
            raise errors.MisuseError(f"timeout is {timeout!r}; give a number of seconds") from None
        if seconds != seconds:
            raise errors.MisuseError("timeout is not a number; give a number of seconds")
        seconds = seconds if seconds > 0 else -1.0  # 0 is no limit in C
    return _abi.new(_abi.RunLimits, seconds=seconds, stop=None if stop is None else stop.address)
