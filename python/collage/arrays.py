"""Inputs and outputs of runs as numpy arrays."""
from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Optional, Union

import numpy as np

from . import _abi, _dlpack, errors
from .ports import Port, accepted, is_foreign, type_name

Array = np.ndarray[Any, Any]
#: What a run takes for an input: a numpy array, or anything with ``__dlpack__``, the buffer protocol or ``__array__``.
ArrayLike = Any
Shape = Union[int, Sequence[int]]

ALIGNMENT = 64


class Room:
    """Memory for arrays of one shape, aligned to 64 bytes, with which kernels are the fastest. It is zero at first."""

    __slots__ = ("_bytes", "_start", "_end", "_shape", "_dtype")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        self._bytes = np.zeros(size + ALIGNMENT, np.uint8)
        self._start = -address_of(self._bytes) % ALIGNMENT
        self._end, self._shape, self._dtype = self._start + size, shape, dtype

    def array(self) -> Array:
        """An array in this memory."""
        return self._bytes[self._start:self._end].view(self._dtype).reshape(self._shape)

    def is_free(self) -> bool:
        """Whether no array, and no view of one, is left: each of them refers to the bytes."""
        return sys.getrefcount(self._bytes) <= 2  # this object, and the argument


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array of zeros aligned to 64 bytes."""
    return Room(shape, dtype).array()


def address_of(array: Array) -> int:
    """The address of the first element; faster than ``array.ctypes.data``."""
    address: int = array.__array_interface__["data"][0]
    return address


def as_array(value: ArrayLike, what: str) -> Array:
    """A numpy array of `value`, without a copy where its memory can be used. `what` is "input x"."""
    if isinstance(value, (np.ndarray, np.generic)):
        if isinstance(value, np.ma.MaskedArray):
            raise errors.MisuseError(f"{what} is a masked array, and networks know no masks; give array.filled(number)")
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return _dlpack.to_array(value, what)
    memory = None if isinstance(value, (str, Mapping)) else _memory_of(value)
    if memory is None:
        raise errors.MisuseError(f"{what} is of type {type(value).__name__}, whose element type is not known; give a numpy array, as "
                                 "by numpy.asarray(value, dtype), or an object with __dlpack__ or the buffer protocol")
    try:
        return np.asarray(memory)
    except Exception as fault:
        raise errors.MisuseError(f"{what} of type {type(value).__name__} is no array: {fault}; give a numpy array") from fault


def _memory_of(value: Any) -> Any:
    """What numpy makes an array of: an object of a protocol of numpy, or a buffer. None if it is neither."""
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__") or hasattr(value, "__array_struct__"):
        return value
    try:
        return memoryview(value)
    except (TypeError, ValueError, BufferError):
        return None


def foreign_type(array: Array) -> Optional[str]:
    """The element type of an array of another package if numpy has no such type; otherwise None."""
    number = _dlpack.foreign_type(array)
    return None if number is None else type_name(number)


def wrong_type(what: str, array: Array, port: Port) -> errors.MisuseError:
    wanted, dtype, foreign = accepted(port.number), array.dtype, foreign_type(array)
    if not dtype.isnative and dtype.newbyteorder() in wanted:
        return errors.MisuseError(f"{what} has the other byte order ({dtype.str}); convert it, as by array.astype("
                                  f"{wanted[0].name!r})")
    names = port.type if len(wanted) == 1 and wanted[0].name == port.type else (
        f"{port.type} (as dtype {' or '.join(d.name for d in wanted)})")
    have = foreign or dtype.name or dtype.str
    remedy = f"convert it, as by array.astype({wanted[0].name!r})"
    if foreign is not None or (len(wanted) == 1 and is_foreign(port.number)):  # a cast of the bytes would give other numbers
        remedy = f"convert it to {port.type}, as by the package ml_dtypes"
    return errors.MisuseError(f"{what} has elements of type {have}, and the network takes {names}; {remedy}")


def wrong_shape(what: str, shape: Sequence[int], wanted: str) -> errors.MisuseError:
    return errors.MisuseError(f"{what} has the shape {shape_text(shape)}, and the network takes {wanted}; give an array of that shape")


def shape_text(shape: Optional[Sequence[Any]]) -> str:
    if shape is None:
        return "any shape"
    return "(" + ", ".join("?" if e is None else str(e) for e in shape) + ("," if len(shape) == 1 else "") + ")"


def of_port(value: ArrayLike, port: Port, what: str) -> Array:
    """An array with the port's element type and a shape that fits: dense, aligned, in native byte order.

    It is `value`'s own memory where that is dense and aligned, and otherwise a copy.
    """
    array = as_array(value, what)
    foreign = None if isinstance(value, np.ndarray) else foreign_type(array)
    if array.dtype not in accepted(port.number) or foreign not in (None, port.type):
        raise wrong_type(what, array, port)
    check_shape(array.shape, port, what)
    if not (array.flags.c_contiguous and array.flags.aligned):
        array = np.array(array, order="C", copy=True)
    return array


def check_shape(shape: tuple[int, ...], port: Port, what: str) -> None:
    """Refuses a shape that contradicts the fixed extents of a port."""
    wanted = port.shape
    if len(shape) > _abi.MAX_RANK:
        raise errors.MisuseError(f"{what} has {len(shape)} dimensions, and networks have at most {_abi.MAX_RANK}")
    if wanted is None:
        return
    if len(shape) != len(wanted) or any(isinstance(w, int) and w != s for w, s in zip(wanted, shape)):
        raise wrong_shape(what, shape, shape_text(wanted))


def fill_tensor(tensor: Any, array: Array, number: int) -> None:
    """Describes a dense array to the library. The array must live as long as the description is used."""
    tensor.dtype = number
    tensor.rank = array.ndim
    for k, extent in enumerate(array.shape):
        tensor.extents[k] = extent
    tensor.data = address_of(array) if array.nbytes else None
    tensor.bytes = array.nbytes


def over_tensor(tensor: Any, owner: Any) -> Array:
    """An array over a tensor of the library, without a copy, which keeps `owner` alive."""
    return _dlpack.array_over(tensor.data or 0, tuple(tensor.extents[:tensor.rank]), tensor.dtype, owner)


def copy_of_tensor(tensor: Any) -> Array:
    """A copy of a tensor of the library."""
    array: Array = np.empty(tuple(tensor.extents[:tensor.rank]), accepted(tensor.dtype)[0])
    if array.nbytes:
        ctypes.memmove(address_of(array), tensor.data, array.nbytes)
    return array


def extents_of(shape: Shape, what: str) -> tuple[int, ...]:
    """A shape as the user gives it: a sequence of integers, or one integer."""
    given = (shape,) if isinstance(shape, (int, np.integer)) else shape
    try:
        extents = tuple(int(e.__index__()) for e in given)
    except (TypeError, AttributeError):
        raise errors.MisuseError(f"the shape of {what} is {shape!r}; give a sequence of integers, such as (1, 3, 224, 224)") from None
    if len(extents) > _abi.MAX_RANK:
        raise errors.MisuseError(f"the shape of {what} has {len(extents)} extents, and networks have at most {_abi.MAX_RANK}")
    if any(not 0 <= e < 2**63 for e in extents):
        raise errors.MisuseError(f"the shape of {what} is {shape_text(extents)}; give extents that are not negative, below 2**63")
    return extents


class StopFlag:
    """Ends runs that are under way: give it to ``run(..., stop=flag)`` and call ``flag.set()`` in another thread.

    A run that it ends raises CancelledError. Steps that have begun are completed. A copy is a flag of its own.
    """

    def __init__(self) -> None:
        self._byte = ctypes.c_ubyte(0)

    @property
    def address(self) -> int:
        """Where runs look: a byte that lives as long as this flag."""
        return ctypes.addressof(self._byte)

    def __copy__(self) -> StopFlag:
        other = StopFlag()
        other._byte.value = self._byte.value
        return other

    def __deepcopy__(self, _: Any) -> StopFlag:
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a collage.StopFlag cannot be pickled: it ends runs of its own process only; make one in each process")

    def set(self) -> None:
        """Ends all runs that have this flag, now and until ``clear()``."""
        self._byte.value = 1

    def clear(self) -> None:
        """Lets runs go on again."""
        self._byte.value = 0

    def is_set(self) -> bool:
        return bool(self._byte.value)
