"""Caches that grow with every run, such as the keys and values of attention."""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from . import _abi, _handles, _options, arrays, errors, ports
from ._open import Inputs, OpenRunner
from .arrays import Array, ArrayLike, StopFlag
from .trace import How, Trace, how_of

__all__ = ["Growing"]

#: By the input: the output with new elements behind those of the input, and the dimension in which they are.
Caches = Mapping[str, tuple[str, int]]
#: By the input: the dimension that counts old and new elements, and the value that says "does not count".
Masks = Optional[Mapping[str, tuple[int, float]]]


class Growing(_handles.Unpicklable, ports.InputsAndOutputs[tuple[ports.Port, ...]]):
    """Runs of an open session whose caches grow. ``Session.growing`` makes it.

    Caches are kept in memory of a larger extent, their capacity, and the network runs at that extent: so there is an engine for
    each capacity, and not for each length. Its inputs and outputs are those of the session without the caches. Threads may share it;
    their runs follow one another.
    """

    def __init__(self, runner: OpenRunner, caches: Caches, capacities: Sequence[int], masks: Masks, shapes: _options.Shapes) -> None:
        options, self._alive = _options_of(caches, capacities, masks, shapes)
        self._runner = runner
        with runner.session as session:
            self._handle: Optional[_handles.Handle] = _handles.Handle("growing_context", "growing_context_create", session, options)
        self._pointer = self._handle.pointer
        info = self._info()
        self._inputs = ports.open_ports(self._pointer, "input", info.inputs, "growing_context")
        grown = {output for output, _ in caches.values()}
        self._outputs = tuple(port for port in runner.outputs if port.name not in grown)
        self._caches = tuple(caches)
        self._described = Inputs(self._inputs)
        self._lock = threading.RLock()
        _handles.tell_after_fork(self)

    @property
    def length(self) -> int:
        """The number of elements of each cache."""
        return int(self._info().length)

    @property
    def capacity(self) -> int:
        """The extent at which the next run computes."""
        return int(self._info().capacity)

    def run(self, feeds: Optional[Mapping[str, ArrayLike]] = None, *, timeout: Optional[float] = None,
            stop: Optional[StopFlag] = None, trace: Optional[Trace] = None, **named: ArrayLike) -> dict[str, Array]:
        """Runs the network once, and adds the new elements to the caches.

        After a failure the caches are as before. The arguments are those of ``Session.run``; outputs are the caller's own.

        Raises:
            MisuseError: an input is wrong, or the caches would be longer than the largest capacity.
            CancelledError: a limit was reached.
            CollageError: a kernel failed.
        """
        given = _options.named_feeds(feeds, named)
        how = how_of(timeout, stop, trace)
        with self._lock:
            self._check()
            alive = self._described.describe(given)
            if self._runner.watch is None:
                self._run(how)
            else:
                with self._runner.watch.watching():
                    self._run(how)
            del alive
            results, output = {}, _abi.Tensor()
            for index, port in enumerate(self._outputs):
                _abi.call("growing_context_output", self._pointer, index, None, ctypes.byref(output))
                results[port.name] = arrays.copy_of_tensor(output)
        return results

    def _run(self, how: Optional[How]) -> None:
        tensors, count = self._described.tensors, self._described.count
        if how is None:
            _abi.call("growing_context_run", self._pointer, tensors, count, None)
        elif status := how.run_growing(self._pointer, tensors, count):
            _abi.fail(status)

    @property
    def caches(self) -> dict[str, Array]:
        """Copies of the caches at their length, by the names of their inputs."""
        found, contents = {}, _abi.Tensor()
        with self._lock:
            self._check()
            for name in self._caches:
                _abi.call("growing_context_cache", self._pointer, name.encode("utf-8", "surrogateescape"), ctypes.byref(contents))
                found[name] = arrays.copy_of_tensor(contents)
        return found

    def restore(self, caches: Mapping[str, ArrayLike]) -> None:
        """Replaces all caches by copies of these arrays, which have one length: those that ``caches`` returned before."""
        if set(_options._mapping(caches, "caches")) != set(self._caches):
            raise errors.MisuseError(f"restore takes all caches: {', '.join(self._caches)}")
        tensors = (_abi.Tensor * len(self._caches))()
        alive = []
        for tensor, name in zip(tensors, self._caches):
            port = next(p for p in self._runner.inputs if p.name == name)
            array = arrays.of_port(caches[name], port, f"cache {name}")
            arrays.fill_tensor(tensor, array, port.number)
            alive.append(array)
        with self._lock:
            self._check()
            _abi.call("growing_context_restore", self._pointer, tensors, len(tensors))
        del alive

    def shorten(self, length: int) -> None:
        """Keeps the first `length` elements of the caches, to go on from there with other inputs."""
        with self._lock:
            self._check()
            _abi.call("growing_context_shorten", self._pointer, _options.whole(length, "length", most=2**63 - 1))

    def reset(self) -> None:
        """Empties the caches: a new sequence begins."""
        with self._lock:
            self._check()
            _abi.call("growing_context_reset", self._pointer)

    def close(self) -> None:
        """Releases the memory of the caches."""
        with self._lock:
            self._pointer, self._handle = 0, None

    def _info(self) -> Any:
        if self._handle is None:
            raise errors.MisuseError("the growing context is closed; make another one")
        with self._handle as pointer:
            return _abi.filled("growing_context_get_info", _abi.GrowingInfo, pointer)

    def _check(self) -> None:
        if self._handle is None:
            raise errors.MisuseError("the growing context is closed; make another one")

    def _after_fork(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> Growing:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _options_of(caches: Caches, capacities: Sequence[int], masks: Masks, shapes: _options.Shapes) -> tuple[Any, list[Any]]:
    """A collage_growing_options, and what it points to."""
    given = {name: arrays.extents_of(shape, f"cache {name}") for name, shape in _options._mapping(shapes, "shapes").items()}
    alive: list[Any] = []

    def extents(name: str) -> Any:
        of = (ctypes.c_int64 * max(1, len(given.get(name, ()))))(*given.get(name, ()))
        alive.append(of)
        return ctypes.cast(of, ctypes.POINTER(ctypes.c_int64))

    if unknown := [name for name in given if name not in caches]:
        raise errors.MisuseError(f"shapes: there is no cache {', '.join(unknown)}; the caches are {', '.join(caches)}")
    grow = [_abi.Cache(_text(name), _text(output), _options.whole(dimension, "the dimension of a cache"), len(given.get(name, ())),
                       extents(name))
            for name, (output, dimension) in _pairs(caches, "caches", '{"past": ("present", 2)}')]
    hide = [_abi.CacheMask(_text(name), _options.whole(dimension, "the dimension of a mask"), _number(name, value))
            for name, (dimension, value) in _pairs(masks, "masks", '{"mask": (1, 0)}')]
    sizes = [_options.whole(size, "a capacity", most=2**63 - 1) for size in _listed(capacities)]
    return _abi.new(_abi.GrowingOptions, caches=(_abi.Cache * max(1, len(grow)))(*grow), cache_count=len(grow),
                    capacities=(ctypes.c_int64 * max(1, len(sizes)))(*sizes), capacity_count=len(sizes),
                    masks=(_abi.CacheMask * max(1, len(hide)))(*hide), mask_count=len(hide)), alive


def _pairs(given: Any, what: str, example: str) -> list[tuple[str, tuple[Any, Any]]]:
    pairs = list(_options._mapping(given, what).items())
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for _, pair in pairs):
        raise errors.MisuseError(f"{what} is {given!r}; give a pair for each name, such as {example}")
    return pairs


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise errors.MisuseError(f"masks has the value {value!r} for {name}; give a number that says \"does not count\"") from None


def _listed(capacities: Union[Sequence[int], int]) -> list[Any]:
    try:
        return list(capacities)  # type: ignore[arg-type]
    except TypeError:
        raise errors.MisuseError(f"capacities is {capacities!r}; give a list of extents, such as [0, 128, 512]") from None


def _text(name: Any) -> bytes:
    return _abi.encoded(name, "the name of a cache or mask")
