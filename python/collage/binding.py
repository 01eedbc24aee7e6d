"""Runs in memory that is bound once: nothing is copied or allocated."""
from __future__ import annotations

import threading
from collections.abc import Iterator, MutableMapping
from typing import Any, Optional

from . import _abi, _handles, arrays, errors, ports
from .arrays import Array
from .trace import How, Trace

__all__ = ["Binding"]

_run = _abi.lib.collage_context_run


class Context:
    """The context of a binding, which its inputs and outputs share with it."""

    def __init__(self, engine: int) -> None:
        self.handle: Optional[_handles.Handle] = _handles.Handle("context", "context_create", engine, None)
        self.pointer = self.handle.pointer
        self.lock = threading.RLock()
        _handles.tell_after_fork(self)

    def check(self) -> None:
        if self.handle is None:
            raise errors.MisuseError("the binding is closed; make another one")

    def close(self) -> None:
        with self.lock:
            self.pointer, self.handle = 0, None

    def _after_fork(self) -> None:
        self.lock = threading.RLock()


class BoundArrays(MutableMapping[str, Array]):
    """The arrays that are bound to the inputs or outputs. Setting one binds the caller's array, without a copy."""

    def __init__(self, context: Context, kind: str, of: tuple[ports.Port, ...]) -> None:
        self._context, self._kind = context, kind
        self._ports = {port.name: (index, port) for index, port in enumerate(of)}
        self._arrays: dict[str, Array] = {}
        for index, port in enumerate(of):
            shape = tuple(int(extent) for extent in port.shape or ())  # type: ignore[arg-type]
            self._set(index, port, arrays.empty(shape, port.dtype))

    def _set(self, index: int, port: ports.Port, array: Array) -> None:
        address = arrays.address_of(array) if array.nbytes else arrays.address_of(arrays.empty((1,), port.dtype))
        _abi.call(f"context_bind_{self._kind}", self._context.pointer, index, port.number, address, array.nbytes)
        self._arrays[port.name] = array

    def _find(self, name: str) -> tuple[int, ports.Port]:
        try:
            return self._ports[name]
        except (KeyError, TypeError):
            raise errors.MisuseError(f"there is no {self._kind} {name}; the network has {', '.join(self._ports) or 'none'}") from None

    def __getitem__(self, name: str) -> Array:
        self._find(name)
        return self._arrays[name]

    def __contains__(self, name: object) -> bool:
        return name in self._ports

    def get(self, name: str, default: Any = None) -> Any:
        """The array; `default` if there is no such name."""
        return self._arrays.get(name, default)

    def __setitem__(self, name: str, value: Any) -> None:
        index, port = self._find(name)
        what = f"{self._kind} {name}"
        array = arrays.as_array(value, what)
        dense = arrays.of_port(array, port, what)
        if dense is not array:
            raise errors.MisuseError(f"{what} cannot be bound: the array is not dense in C order, or not aligned to its elements; bind "
                                     "numpy.ascontiguousarray(array), or copy it into the bound array")
        if self._kind == "output" and not array.flags.writeable:
            raise errors.MisuseError(f"{what} cannot be bound: the array is read-only; give an array that can be written")
        with self._context.lock:
            self._context.check()
            self._set(index, port, array)

    def __delitem__(self, name: str) -> None:
        raise errors.MisuseError(f"the {self._kind} {name} stays bound; bind another array")

    def __iter__(self) -> Iterator[str]:
        return iter(self._ports)

    def __len__(self) -> int:
        return len(self._ports)

    def __repr__(self) -> str:
        return f"<{self._kind}s {', '.join(self._ports)}>"


class Binding(_handles.Unpicklable, ports.InputsAndOutputs[BoundArrays]):
    """Arrays bound to the inputs and outputs of one context.

    Fill ``binding.inputs["x"]``, call ``binding.run()``, read ``binding.outputs["y"]``. Or bind arrays of your own, once:
    ``binding.inputs["x"] = array``. A bound array is kept alive, and must not change while a run goes on. Threads that share
    a binding run one after another; a binding for each thread runs at the same time.
    """

    def __init__(self, runner: Any) -> None:
        with runner.engine as engine:
            self._context = Context(engine)
        self._inputs = BoundArrays(self._context, "input", runner.inputs)
        self._outputs = BoundArrays(self._context, "output", runner.outputs)

    def run(self, *, timeout: Optional[float] = None, stop: Optional[arrays.StopFlag] = None,
            trace: Optional[Trace] = None) -> None:
        """Runs once: reads the bound inputs, and writes the bound outputs.

        Raises:
            CancelledError: `timeout` seconds have passed, or `stop` is set. The outputs are then of no use.
            CollageError: a kernel failed.
        """
        context = self._context
        with context.lock:
            if timeout is None and stop is None and trace is None:
                status = _run(context.pointer)
            else:
                context.check()
                status = How(timeout, stop, trace).run_context(context.pointer)
            if status:
                context.check()
                _abi.fail(status)

    def close(self) -> None:
        """Releases the context. The arrays stay."""
        self._context.close()

    def __enter__(self) -> Binding:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
