"""Runs of an engine, whose shapes are fixed."""
from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np

from . import _abi, _handles, arrays, errors, ports
from .arrays import Array
from .plan import Plan
from .trace import How

# Inputs and outputs below this many bytes are copied to and from bound memory: that is faster than binding.
COPY_BELOW = 32768
# Of one output, that a context keeps for later runs with copy=False.
MOST_ROOMS = 4

_run = _abi.lib.collage_context_run
_ndarray = np.ndarray


class Context:
    """A context and the memory that is bound to it. One thread at a time uses it; the runner hands it out."""

    def __init__(self, runner: FixedRunner) -> None:
        with runner.engine as engine:
            self.handle = _handles.Handle("context", "context_create", engine, None)
        self.pointer = self.handle.pointer
        # Name, dtype, shape, memory or None if the caller's is bound, port, index.
        self.inputs = tuple((p.name, p.dtype, p.shape, self._memory("input", k, p), p, k) for k, p in enumerate(runner.inputs))
        self.outputs = tuple((p.name, self._memory("output", k, p), p, k) for k, p in enumerate(runner.outputs))
        self.small = tuple((name, memory) for name, memory, _, _ in self.outputs if memory is not None)
        self.is_small = len(self.small) == len(self.outputs)
        self._rooms: list[list[arrays.Room]] = [[] for _ in runner.outputs]

    def _memory(self, kind: str, index: int, port: ports.Port) -> Optional[Array]:
        memory = arrays.empty(_shape(port), port.dtype)
        if memory.nbytes >= COPY_BELOW:
            return None
        self.bind(kind, index, port, memory)
        return memory

    def bind(self, kind: str, index: int, port: ports.Port, array: Array) -> None:
        """Binds an array, which must be alive while this context runs."""
        call = _abi.lib.collage_context_bind_input if kind == "input" else _abi.lib.collage_context_bind_output
        status = call(self.pointer, index, port.number, arrays.address_of(array), array.nbytes)
        if status:
            _abi.fail(status)

    def recycled(self, index: int, port: ports.Port) -> Array:
        """Memory for an output: that of an earlier one which nothing refers to any more, or new memory."""
        rooms = self._rooms[index]
        for room in rooms:
            if room.is_free():
                return room.array()
        if len(rooms) == MOST_ROOMS:
            del rooms[0]  # it lives as long as the caller's array
        rooms.append(room := arrays.Room(_shape(port), port.dtype))
        return room.array()


def _shape(port: ports.Port) -> tuple[int, ...]:
    return tuple(int(extent) for extent in port.shape or ())  # type: ignore[arg-type]


class FixedRunner:
    """An engine and its contexts: as many as run at the same time."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        with plan._handle as pointer:
            self.engine = _handles.Handle("engine", "engine_create", pointer, None)
        with self.engine as engine:
            self.info = _abi.filled("engine_get_info", _abi.EngineInfo, engine)
            self.inputs = ports.fixed_ports("engine", engine, "input", self.info.inputs)
            self.outputs = ports.fixed_ports("engine", engine, "output", self.info.outputs)
        self._count = len(self.inputs)
        self._free: list[Context] = []
        self._closed = False

    def run(self, feeds: Mapping[str, Any], copy: bool, how: Optional[How]) -> dict[str, Array]:
        """Runs once, in a context that no other thread uses."""
        try:
            context = self._free.pop()
        except IndexError:
            context = self._new_context()
        try:
            alive = self._feed(context, feeds)
            if copy and context.is_small:
                status = _run(context.pointer) if how is None else how.run_context(context.pointer)
                if status:
                    _abi.fail(status)
                return {name: memory.copy() for name, memory in context.small}
            results = self._bind_outputs(context, copy)
            status = _run(context.pointer) if how is None else how.run_context(context.pointer)
            if status:
                _abi.fail(status)
            del alive
            return {name: results[name] if small is None else small.copy() for name, small, _, _ in context.outputs}
        finally:
            if not self._closed:
                self._free.append(context)

    def _new_context(self) -> Context:
        if self._closed:
            raise errors.MisuseError("the session is closed; make another one")
        return Context(self)

    def _feed(self, context: Context, feeds: Mapping[str, Any]) -> list[Any]:
        """Copies or binds the inputs. The result keeps alive what is bound."""
        alive: list[Any] = []
        for name, dtype, shape, memory, port, index in context.inputs:
            try:
                value = feeds[name]
            except KeyError:
                break
            if type(value) is not _ndarray or value.dtype != dtype or value.shape != shape:
                value = arrays.of_port(value, port, "input " + name)
                if value.dtype != dtype:
                    value = value.view(dtype)
            if memory is not None:
                memory[...] = value
            else:
                if not value.flags.c_contiguous or not value.flags.aligned:
                    value = np.array(value, order="C", copy=True)
                alive.append(value)
                context.bind("input", index, port, value)
        else:
            if len(feeds) == self._count:
                return alive
        raise wrong_names(feeds, self.inputs)

    def _bind_outputs(self, context: Context, copy: bool) -> dict[str, Array]:
        """Fresh memory for large outputs."""
        results = {}
        for index, (name, memory, port, _) in enumerate(context.outputs):
            if memory is None:
                to = arrays.empty(_shape(port), port.dtype) if copy else context.recycled(index, port)
                context.bind("output", index, port, to)
                results[name] = to
        return results

    def profile(self, feeds: Mapping[str, Any]) -> list[float]:
        """The milliseconds of each step of one run."""
        context = self._free.pop() if self._free else self._new_context()
        try:
            alive = self._feed(context, feeds)
            results = self._bind_outputs(context, copy=True)
            ms = (ctypes.c_double * self.info.steps)()
            _abi.call("context_run_profiled", context.pointer, ms, self.info.steps)
            del alive, results
            return list(ms)
        finally:
            if not self._closed:
                self._free.append(context)

    def steps(self) -> list[Any]:
        """A collage_step for each step."""
        with self.engine as engine:
            return [_abi.filled("engine_step", _abi.Step, engine, index) for index in range(self.info.steps)]

    def close(self) -> None:
        self._closed = True
        self._free.clear()
        self.engine.close()

    @property
    def closed(self) -> bool:
        return self._closed


def wrong_names(feeds: Mapping[str, Any], inputs: tuple[ports.Port, ...]) -> errors.MisuseError:
    """The error for feeds whose names are not those of the inputs."""
    names = [port.name for port in inputs]
    missing = [name for name in names if name not in feeds]
    unknown = [str(name) for name in feeds if name not in names]
    faults = ([f"there is no input {', '.join(unknown)}"] if unknown else []) + (
        [f"input {', '.join(missing)} is missing"] if missing else [])
    return errors.MisuseError(f"{' and '.join(faults)}; the network takes {', '.join(names) or 'nothing'}")
