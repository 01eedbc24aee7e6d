"""Options of loading and placing, from Python's values to the library's structs."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

import numpy as np

from . import _abi, arrays, errors, ports

Shapes = Optional[Mapping[str, arrays.Shape]]
Values = Optional[Mapping[str, arrays.ArrayLike]]
Backends = Union[str, Iterable[str], None]
Store = Union[str, "os.PathLike[str]", bool, None]
Rules = Optional[Mapping[str, Union[str, Iterable[str]]]]

_TINY = 1e-6  # seconds; 0 is the default in C


class Loading:
    """A collage_network_options with all that it points to."""

    def __init__(self, shapes: Shapes, values: Values, requantise: bool = False, numbers: Optional[Mapping[str, int]] = None) -> None:
        self.shapes = {name: arrays.extents_of(shape, f"input {name}") for name, shape in _mapping(shapes, "shapes").items()}
        self.values = {name: _value(value, name) for name, value in _mapping(values, "values").items()}
        self.requantise = bool(requantise)
        self.numbers = {name: (numbers or {}).get(name) or _number(value) for name, value in self.values.items()}
        self._alive: list[Any] = []
        self.struct = _abi.new(_abi.NetworkOptions, requantise=self.requantise)
        if self.shapes:
            self.struct.shapes = (_abi.InputShape * len(self.shapes))(*(
                _abi.InputShape(_name(name), self._extents(shape), len(shape)) for name, shape in self.shapes.items()))
            self.struct.shape_count = len(self.shapes)
        if self.values:
            self.struct.values = (_abi.InputValue * len(self.values))(*(
                _abi.InputValue(_name(name), self.numbers[name], value.ndim, self._extents(value.shape),
                                arrays.address_of(value), value.nbytes) for name, value in self.values.items()))
            self.struct.value_count = len(self.values)

    def _extents(self, shape: tuple[int, ...]) -> Any:
        extents = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        self._alive.append(extents)
        return ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64))

    def with_shapes(self, shapes: Shapes) -> Loading:
        """The same with more shapes."""
        return Loading({**self.shapes, **_mapping(shapes, "shapes")}, self.values, self.requantise, self.numbers)

    def with_numbers(self, numbers: Mapping[str, int]) -> Loading:
        """The same with element types of values, for types that numpy lacks: their dtype does not say which one it is."""
        return Loading(self.shapes, self.values, self.requantise, numbers)


def _mapping(given: Any, what: str) -> Mapping[Any, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise errors.MisuseError(f'{what} is of type {type(given).__name__}; give a dictionary by names, such as {{"input": ...}}')
    return given


def named_feeds(feeds: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of a run: a dictionary, and arrays by name."""
    return {**_mapping(feeds, "feeds"), **named}


def _name(name: Any) -> bytes:
    return _abi.encoded(name, "the name of an input")


def _value(value: Any, name: str) -> arrays.Array:
    what = f"the value of input {name}"
    array = arrays.as_array(value, what)
    if ports.number_of(array.dtype) is None:
        raise errors.MisuseError(f"{what} has elements of type {array.dtype.str}, which networks do not have; convert it first")
    if array.ndim > _abi.MAX_RANK:
        raise errors.MisuseError(f"{what} has {array.ndim} dimensions, and networks have at most {_abi.MAX_RANK}")
    return np.array(array, order="C", copy=True)  # the network is made later, and again for other shapes


def _number(value: arrays.Array) -> int:
    number = ports.number_of(value.dtype)
    assert number is not None  # _value has refused others
    return number


def path_of(path: Any, what: str) -> bytes:
    """A path for the library."""
    try:
        encoded = os.fsencode(path)
    except TypeError:
        raise errors.MisuseError(f"{what} is of type {type(path).__name__}; give a path") from None
    except UnicodeEncodeError:
        raise errors.MisuseError(f"{what} is {path!r}, which no file is called; give a path") from None
    if b"\0" in encoded:
        raise errors.MisuseError(f"{what} contains a zero character; leave it out")
    return encoded


def absolute(path: bytes) -> bytes:
    """The path from the root, for files that are opened again when the process may have another folder."""
    try:
        return os.path.abspath(path)
    except OSError:  # the current folder was removed
        return path


def whole(value: Any, what: str, least: int = 0, most: int = 2**31 - 1) -> int:
    """An integer within bounds."""
    try:
        number = int(value.__index__())
    except (TypeError, AttributeError):
        raise errors.MisuseError(f"{what} is {value!r}; give an integer") from None
    if not least <= number <= most:
        raise errors.MisuseError(f"{what} is {number}; give an integer from {least} to {most}")
    return number


def seconds(value: Optional[float], what: str, unlimited: bool = True) -> float:
    """Seconds for the library, in which 0 is the default and a negative number means none."""
    if value is None:
        return -1.0 if unlimited else 0.0
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise errors.MisuseError(f"{what} is {value!r}; give a number of seconds") from None
    if not 0 <= number < float("inf"):
        raise errors.MisuseError(f"{what} is {value!r}; give a number of seconds that is not negative")
    return max(number, _TINY)


def choice(value: Any, among: Mapping[str, int], what: str) -> int:
    if not isinstance(value, str) or value not in among:
        names = ", ".join(f'"{name}"' for name in among)
        raise errors.MisuseError(f"{what} is {value!r}; give one of {names}")
    return among[value]


def backends_of(given: Backends) -> Optional[bytes]:
    if given is None:
        return None
    if not isinstance(given, str):
        try:
            given = ",".join(given)
        except TypeError:
            raise errors.MisuseError(f"backends is {given!r}; give names, such as [\"onednn\", \"eigen\"]") from None
    if not given:
        raise errors.MisuseError("backends names none; give names, or None for all")
    return _abi.encoded(given, "backends")


def store_of(given: Store) -> Optional[bytes]:
    if given is None or given is True:
        return None
    path = b"none" if given is False else path_of(given, "store")
    return path if path in (b"", b"none") else absolute(path)  # an open session opens it at each new shape


class Placing:
    """A collage_place_options with all that it points to."""

    def __init__(self, *, how: str = "measure", threads: int = 0, backends: Backends = None, store: Store = None,
                 budget: Optional[float] = 20.0, compare: Optional[float] = None, regions: Optional[float] = None,
                 autotune: float = 0, seed: int = 1, pin: Rules = None, exclude: Rules = None, algorithms: str = "accurate",
                 memory: Union[int, float, None] = None, keep_non_finite: bool = False, recheck: bool = False,
                 complete: bool = False) -> None:
        self.struct = _abi.new(
            _abi.PlaceOptions, how=choice(how, _abi.HOW, "how"), threads=whole(threads, "threads"), backends=backends_of(backends),
            store=store_of(store), budget_s=seconds(budget, "budget"), compare_s=seconds(compare, "compare", unlimited=False),
            seed=whole(seed, "seed", most=2**64 - 1), algorithms=choice(algorithms, _abi.ALGORITHMS, "algorithms"),
            keep_non_finite=bool(keep_non_finite), recheck=bool(recheck), complete=bool(complete))
        if autotune is None:
            raise errors.MisuseError("autotune is None; give a number of seconds, or 0 for none")
        if autotune != 0:
            self.struct.autotune_s = seconds(autotune, "autotune")
        if regions is not None:
            limit = seconds(regions, "regions")
            self.struct.regions_s = limit if limit > _TINY else -1.0
        if isinstance(memory, (float, np.floating)):
            if not 0 < memory < float("inf"):
                raise errors.MisuseError(f"memory is {memory!r}; give bytes as an integer, or a positive ratio as a float")
            self.struct.memory_ratio = float(memory)
        elif memory is not None:
            self.struct.memory_bytes = whole(memory, "memory", least=1, most=2**63)
        rules = [*_rules(pin, 0, "pin"), *_rules(exclude, 1, "exclude")]
        if rules:
            self.struct.rules = (_abi.PlaceRule * len(rules))(*rules)
            self.struct.rule_count = len(rules)


def _rules(given: Rules, action: int, what: str) -> list[Any]:
    rules = []
    for name, by in _mapping(given, what).items():
        try:
            backends = [by] if isinstance(by, str) else list(by)
        except TypeError:
            raise errors.MisuseError(f"{what} has {by!r} for {name}; give the name of a backend, or a list of names") from None
        for backend in backends:
            rules.append(_abi.PlaceRule(action, _abi.encoded(name, what), _abi.encoded(backend, what)))
    return rules
