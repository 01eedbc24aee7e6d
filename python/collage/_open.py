"""Runs of a session of the library, whose shapes may change and which may carry states."""
from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Mapping
from typing import Any, Optional, Union

import numpy as np

from . import _abi, _handles, _options, arrays, errors, ports
from ._fixed import wrong_names
from .arrays import Array, ArrayLike, StopFlag
from .progress import Watch
from .trace import How, Trace, how_of

# Bytes of all outputs from which it is faster to write them where the caller gets them than to copy them.
EXPECT_FROM = 1 << 18

_run = _abi.lib.collage_session_context_run
_output = _abi.lib.collage_session_context_output
_ndarray = np.ndarray


class Inputs:
    """The inputs of runs, described to the library as collage_tensor."""

    def __init__(self, of: tuple[ports.Port, ...]) -> None:
        self._ports, self.count = of, len(of)
        self._takes = tuple((port.name, port.dtype, port) for port in of)
        self.tensors = (_abi.Tensor * max(1, len(of)))()
        self._shapes: list[Optional[tuple[int, ...]]] = [None] * len(of)
        self.are_as_before = False  # their shapes

    def describe(self, feeds: Mapping[str, Any]) -> list[Array]:
        """Describes arrays. The result keeps them alive.

        Raises:
            MisuseError: a name, an element type or a shape is not that of an input.
        """
        alive = []
        self.are_as_before = True
        for index, (name, dtype, port) in enumerate(self._takes):
            try:
                array = feeds[name]
            except KeyError:
                raise wrong_names(feeds, self._ports) from None
            shape = self._shapes[index]
            if type(array) is _ndarray and array.dtype == dtype and array.shape == shape and array.nbytes:
                flags = array.flags
                if flags.c_contiguous and flags.aligned:  # only the address may be another one
                    self.tensors[index].data = array.__array_interface__["data"][0]
                    alive.append(array)
                    continue
            array = arrays.of_port(array, port, "input " + name)
            alive.append(array)
            self.are_as_before = self.are_as_before and array.shape == shape
            arrays.fill_tensor(self.tensors[index], array, port.number)
            self._shapes[index] = array.shape
        if len(feeds) != self.count:
            raise wrong_names(feeds, self._ports)
        return alive


class OpenContext:
    """A session context. One thread at a time uses it."""

    def __init__(self, runner: OpenRunner) -> None:
        with runner.session as session:
            self.handle = _handles.Handle("session_context", "session_context_create", session)
        self.pointer = self.handle.pointer
        self.inputs = Inputs(runner.inputs)
        self.output = _abi.Tensor()
        # The outputs of the last run, if the inputs of the next one have the same shapes.
        self.expected: Optional[list[tuple[int, ...]]] = None
        self.wanted = (_abi.Tensor * max(1, len(runner.outputs)))()
        # What still refers to the memory of outputs: of the last run, and of the one before.
        self.last: list[weakref.ref[Any]] = []
        self.before: list[weakref.ref[Any]] = []

    def is_lent(self) -> bool:
        """Whether the next run would overwrite outputs that are still used."""
        return any(one() is not None for one in self.before)


class Lent:
    """Keeps the context of an output alive that was not copied."""

    __slots__ = ("context", "__weakref__")

    def __init__(self, context: OpenContext) -> None:
        self.context = context


class OpenRunner:
    """A session and its contexts: as many as run at the same time, or one if there are states."""

    def __init__(self, session: _handles.Handle, watch: Optional[Watch]) -> None:
        self.session, self.watch = session, watch
        with session as pointer:
            info = _abi.filled("session_get_info", _abi.SessionInfo, pointer)
            self.inputs = ports.open_ports(pointer, "input", info.inputs)
            self.outputs = ports.open_ports(pointer, "output", info.outputs)
            self.states = ports.open_ports(pointer, "state", info.states)
        # States may grow from run to run.
        self._expects = not self.states and _abi.has("session_context_run_into")
        self._free: list[OpenContext] = []
        self._closed = False

    def take(self) -> OpenContext:
        """A context that no other thread uses."""
        try:
            return self._free.pop()
        except IndexError:
            if self._closed:
                raise errors.MisuseError("the session is closed; make another one") from None
            return OpenContext(self)

    def give_back(self, context: OpenContext) -> None:
        if not self._closed:
            self._free.append(context)

    def run(self, feeds: Mapping[str, Any], copy: bool, how: Optional[How]) -> dict[str, Array]:
        """Runs once, in a context that no other thread uses."""
        context = self.take()
        if context.is_lent():  # what the caller still holds stays as it is: the context is left to it
            context = OpenContext(self)
        try:
            return self.run_in(context, feeds, copy, how)
        finally:
            self.give_back(context)

    def run_in(self, context: OpenContext, feeds: Mapping[str, Any], copy: bool, how: Optional[How]) -> dict[str, Array]:
        """Runs once in this context."""
        inputs = context.inputs
        alive = inputs.describe(feeds)
        if not inputs.are_as_before:
            context.expected = None
        if copy and how is None and context.expected is not None and self.watch is None:
            results = self._run_into(context, context.expected)
            if results is not None:
                return results
        if self.watch is None:
            self._run_once(context, how)
        else:
            with self.watch.watching():
                self._run_once(context, how)
        del alive
        context.before, context.last = context.last, []
        results = self._results(context, copy)
        if self._expects:
            shapes = [array.shape for array in results.values()]
            is_large = sum(array.nbytes for array in results.values()) >= EXPECT_FROM
            context.expected = shapes if is_large else None
        return results

    @staticmethod
    def _run_once(context: OpenContext, how: Optional[How]) -> None:
        inputs = context.inputs
        if how is None:
            status = _run(context.pointer, inputs.tensors, inputs.count, None)
        else:
            status = how.run_session(context.pointer, inputs.tensors, inputs.count)
        if status:
            _abi.fail(status)

    def _run_into(self, context: OpenContext, shapes: list[tuple[int, ...]]) -> Optional[dict[str, Array]]:
        """Runs into new arrays of the shapes that the outputs had at the same shapes of inputs. None if they have others now."""
        results = {}
        for index, (port, shape) in enumerate(zip(self.outputs, shapes)):
            results[port.name] = array = arrays.empty(shape, port.dtype)
            arrays.fill_tensor(context.wanted[index], array, port.number)
        status = _abi.lib.collage_session_context_run_into(context.pointer, context.inputs.tensors, context.inputs.count,
                                                           context.wanted, len(shapes), None)
        if status == errors.MISUSE:  # data may decide shapes; and what is wrong with the inputs, a plain run says as well
            context.expected, self._expects = None, False
            return None
        if status:
            _abi.fail(status)
        return results

    def _results(self, context: OpenContext, copy: bool) -> dict[str, Array]:
        """The outputs of the last run."""
        results = {}
        for index, port in enumerate(self.outputs):
            status = _output(context.pointer, index, None, ctypes.byref(context.output))
            if status:
                _abi.fail(status)
            if copy:
                results[port.name] = arrays.copy_of_tensor(context.output)
            else:
                lent = Lent(context)
                results[port.name] = arrays.over_tensor(context.output, lent)
                context.last.append(weakref.ref(lent))
        return results

    def info(self) -> dict[str, Union[int, float]]:
        with self.session as pointer:
            now = _abi.filled("session_get_info", _abi.SessionInfo, pointer)
        return {"engines": now.engines, "made": now.made, "given_back": now.given_back, "packed_bytes": now.packed_bytes,
                "making_ms": now.making_ms}

    def close(self) -> None:
        self._closed = True
        self._free.clear()
        self.session.close()

    @property
    def closed(self) -> bool:
        return self._closed


class Sequence:
    """States that go on from run to run: one sequence at a time, such as one sound or one text.

    ``Session.sequence()`` makes further ones. Threads may share it; their runs follow one another.
    """

    def __init__(self, runner: OpenRunner) -> None:
        self._runner = runner
        self._context = OpenContext(runner)
        self._lock = threading.RLock()
        self._closed = False
        _handles.tell_after_fork(self)

    def run(self, feeds: Optional[Mapping[str, ArrayLike]] = None, *, copy: bool = True, timeout: Optional[float] = None,
            stop: Optional[StopFlag] = None, trace: Optional[Trace] = None, **named: ArrayLike) -> dict[str, Array]:
        """Runs once, and carries the states on. After a failure the states are those before the run.

        The arguments are those of ``Session.run``.
        """
        return self.run_how(_options.named_feeds(feeds, named), copy, how_of(timeout, stop, trace))

    def run_how(self, feeds: Mapping[str, Any], copy: bool, how: Optional[How]) -> dict[str, Array]:
        """The same, as the runners of sessions have it."""
        with self._lock:
            self._check()
            if self._context.is_lent():
                raise errors.MisuseError("outputs of the run before the last, which were not copied, are still used, and this run "
                                         "would overwrite them; release them, or run with copy=True")
            return self._runner.run_in(self._context, feeds, copy, how)

    @property
    def states(self) -> dict[str, Array]:
        """Copies of the states, by the names of their inputs. States that have no shape yet are left out."""
        found = {}
        with self._lock:
            self._check()
            for port in self._runner.states:
                to = _abi.Tensor()
                status = _abi.lib.collage_session_context_state(self._context.pointer, _encoded(port.name), ctypes.byref(to))
                if status == errors.MISUSE:
                    continue
                if status:
                    _abi.fail(status)
                found[port.name] = arrays.copy_of_tensor(to)
        return found

    def set_state(self, name: str, value: Any) -> None:
        """Copies an array to a state."""
        port = self._port(name)
        array = arrays.of_port(value, port, f"state {name}")
        tensor = _abi.Tensor()
        arrays.fill_tensor(tensor, array, port.number)
        with self._lock:
            self._check()
            _abi.call("session_context_set_state", self._context.pointer, _encoded(name), ctypes.byref(tensor))

    def start(self, name: str, shape: arrays.Shape) -> None:
        """Makes a state zeros of this shape, now and at each reset."""
        self._port(name)
        extents = arrays.extents_of(shape, f"state {name}")
        given = (ctypes.c_int64 * max(1, len(extents)))(*extents)
        with self._lock:
            self._check()
            _abi.call("session_context_start", self._context.pointer, _encoded(name), given, len(extents))

    def reset(self) -> None:
        """Brings all states back to their start: a new sequence begins."""
        with self._lock:
            self._check()
            _abi.call("session_context_reset", self._context.pointer)

    def close(self) -> None:
        """Releases the memory of the states."""
        with self._lock:
            if not self._closed:
                self._closed = True
                del self._context

    def _port(self, name: str) -> ports.Port:
        for port in self._runner.states:
            if port.name == name:
                return port
        names = ", ".join(port.name for port in self._runner.states)
        raise errors.MisuseError(f"there is no state {name}; the states are {names or 'none: say which by carried'}")

    def _check(self) -> None:
        if self._closed:
            raise errors.MisuseError("the sequence is closed; make another one")

    def _after_fork(self) -> None:
        self._lock = threading.RLock()


def _encoded(name: str) -> bytes:
    return _abi.encoded(name, "the name of a state")
