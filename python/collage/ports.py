"""Inputs and outputs, and their element types."""
from __future__ import annotations

import dataclasses
import functools
from typing import Any, Generic, Optional, TypeVar, Union

import numpy as np

from . import _abi, errors

__all__ = ["Port"]

Extent = Union[int, str, None]

# In the order of the numbers of collage_dtype, from 1 on: the name, the type in numpy or in ml_dtypes, the type of the bytes.
_TYPES = (
    ("float32", "float32", "float32"), ("float64", "float64", "float64"), ("float16", "float16", "float16"),
    ("bfloat16", "ml:bfloat16", "uint16"), ("int8", "int8", "int8"), ("int16", "int16", "int16"), ("int32", "int32", "int32"),
    ("int64", "int64", "int64"), ("uint8", "uint8", "uint8"), ("uint16", "uint16", "uint16"), ("uint32", "uint32", "uint32"),
    ("uint64", "uint64", "uint64"), ("bool", "bool", "bool"), ("int4", "ml:int4", "int8"), ("uint4", "ml:uint4", "uint8"),
    ("int2", "ml:int2", "int8"), ("uint2", "ml:uint2", "uint8"), ("float8e4m3fn", "ml:float8_e4m3fn", "uint8"),
    ("float8e4m3fnuz", "ml:float8_e4m3fnuz", "uint8"), ("float8e5m2", "ml:float8_e5m2", "uint8"),
    ("float8e5m2fnuz", "ml:float8_e5m2fnuz", "uint8"), ("float8e8m0", "ml:float8_e8m0fnu", "uint8"),
    ("float4e2m1", "ml:float4_e2m1fn", "uint8"),
)
_NUMBERS = {name: number for number, (name, _, _) in enumerate(_TYPES, 1)}


@functools.lru_cache(maxsize=None)
def accepted(number: int) -> tuple[np.dtype[Any], ...]:
    """The dtypes that hold elements of this collage_dtype: first the one that outputs have."""
    _, best, raw = _TYPES[number - 1]
    bytes_of = np.dtype(raw)
    if not best.startswith("ml:"):
        return (bytes_of,)
    try:
        import ml_dtypes
        return np.dtype(getattr(ml_dtypes, best[3:])), bytes_of
    except (ImportError, AttributeError):
        return (bytes_of,)


def is_foreign(number: int) -> bool:
    """Whether numpy has no such type, so that without ml_dtypes arrays of it have the dtype of their bytes."""
    return _TYPES[number - 1][1].startswith("ml:")


@functools.lru_cache(maxsize=None)
def number_of(dtype: np.dtype[Any]) -> Optional[int]:
    """The collage_dtype of a dtype; None if it has none."""
    if not dtype.isnative:
        return None
    # Types of numpy first: without ml_dtypes, those that numpy lacks have the dtype of their bytes.
    for foreign in False, True:
        for number, (_, best, _) in enumerate(_TYPES, 1):
            if best.startswith("ml:") == foreign and accepted(number)[0] == dtype:
                return number
    return None


@dataclasses.dataclass(frozen=True)
class Port:
    """An input or output of a network.

    Attributes:
        name: its name in the file.
        shape: its extents, outermost first: an int where it is fixed, the file's symbol (str) or None where it is open.
            The shape itself is None if any rank is allowed.
        type: the name of the element type, such as "float32" or "bfloat16".
        dtype: the numpy dtype of arrays for it. For types that numpy does not have it is that of ml_dtypes if this package is
            installed, and otherwise one of the same bytes: uint16 for bfloat16, uint8 or int8 for types of 8 bits and less.
    """

    name: str
    shape: Optional[tuple[Extent, ...]]
    type: str

    @property
    def dtype(self) -> np.dtype[Any]:
        return accepted(self.number)[0]

    @property
    def number(self) -> int:
        """The ``collage_dtype`` of the C interface."""
        return _NUMBERS[self.type]

    @property
    def is_open(self) -> bool:
        """Whether an extent, or the rank, may change from run to run."""
        return self.shape is None or not all(isinstance(extent, int) for extent in self.shape)

    @property
    def rank(self) -> Optional[int]:
        """The number of extents; None if any is allowed."""
        return None if self.shape is None else len(self.shape)

    def __str__(self) -> str:
        extents = "any" if self.shape is None else "x".join("?" if e is None else str(e) for e in self.shape) or "scalar"
        return f"{self.name}: {self.type} {extents}"


Ports = TypeVar("Ports")


class InputsAndOutputs(Generic[Ports]):
    """What has inputs and outputs, and sets ``_inputs`` and ``_outputs`` to them."""

    _inputs: Ports
    _outputs: Ports

    @property
    def inputs(self) -> Ports:
        """What a run takes, in the order of the file; of a binding, the arrays by name."""
        return self._inputs

    @property
    def outputs(self) -> Ports:
        """What a run returns, in the order of the file; of a binding, the arrays by name."""
        return self._outputs


def type_name(number: int) -> str:
    if not 1 <= number <= len(_TYPES):
        raise errors.CollageError(f"the library has the element type {number}, which this package does not know; install the same "
                                  "release of both")
    return _TYPES[number - 1][0]


def fixed_ports(owner: str, pointer: int, kind: str, count: int) -> tuple[Port, ...]:
    """The inputs or outputs (`kind`) of a network or an engine (`owner`)."""
    ports = []
    for index in range(count):
        of = _abi.filled(f"{owner}_{kind}", _abi.Port, pointer, index)
        ports.append(Port(_abi.text(of.name), tuple(of.extents[:of.rank]), type_name(of.dtype)))
    return tuple(ports)


def open_ports(pointer: int, kind: str, count: int, owner: str = "session") -> tuple[Port, ...]:
    """The inputs, outputs or states (`kind`) of a session or a growing context (`owner`)."""
    ports = []
    for index in range(count):
        of = _abi.filled(f"{owner}_{kind}", _abi.OpenPort, pointer, index)
        shape: Optional[tuple[Extent, ...]] = None
        if of.rank >= 0:
            shape = tuple(int(of.extents[k]) if of.extents[k] >= 0 else _abi.text(of.symbols[k]) or None for k in range(of.rank))
        ports.append(Port(_abi.text(of.name), shape, type_name(of.dtype)))
    return tuple(ports)


def number_of_name(name: str) -> int:
    """The collage_dtype of an element type's name."""
    return _NUMBERS[name]
