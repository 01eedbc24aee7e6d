"""Arrays over the memory of other packages, by DLPack: a tensor of PyTorch in host memory needs neither a copy nor PyTorch here."""
from __future__ import annotations

import ctypes
import math
from ctypes import POINTER, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object
from typing import Any, Optional

import numpy as np

from . import errors, ports

CPU, CUDA_HOST = 1, 3
READ_ONLY, SUBBYTE_PADDED = 1, 4

# (code, bits) of DLPack's types.
_NAMES = {(0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64", (1, 8): "uint8", (1, 16): "uint16",
          (1, 32): "uint32", (1, 64): "uint64", (2, 16): "float16", (2, 32): "float32", (2, 64): "float64", (4, 16): "bfloat16",
          (6, 8): "bool", (10, 8): "float8e4m3fn", (11, 8): "float8e4m3fnuz", (12, 8): "float8e5m2", (13, 8): "float8e5m2fnuz",
          (14, 8): "float8e8m0", (0, 4): "int4", (1, 4): "uint4", (0, 2): "int2", (1, 2): "uint2", (17, 4): "float4e2m1"}


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
                ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class Managed(Structure):
    """DLManagedTensor, of versions of DLPack before 1.0."""
    _fields_ = [("tensor", Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class Versioned(Structure):
    """DLManagedTensorVersioned, from version 1.0 on."""
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
                ("tensor", Tensor)]


# With Python's lock held, as other consumers call it.
_Deleter = ctypes.PYFUNCTYPE(None, c_void_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = [py_object, ctypes.c_char_p], ctypes.c_int
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes, _pointer_of.restype = [py_object, ctypes.c_char_p], c_void_p
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.argtypes, _rename.restype = [py_object, ctypes.c_char_p], ctypes.c_int
# A capsule keeps the address of its name, so these objects live as long as the module.
_USED, _USED_VERSIONED = b"used_dltensor", b"used_dltensor_versioned"


class Memory:
    """Memory of others for ``numpy.asarray``, which keeps this object, and so `owner`, alive."""

    def __init__(self, address: int, shape: tuple[int, ...], number: int, owner: Any,
                 strides: Optional[tuple[int, ...]] = None, read_only: bool = False) -> None:
        self.owner, self.number = owner, number
        dtype = ports.accepted(number)[-1]
        self.__array_interface__ = {"version": 3, "data": (address, read_only), "shape": shape, "typestr": dtype.str,
                                    "strides": strides}


def array_over(address: int, shape: tuple[int, ...], number: int, owner: Any, strides: Optional[tuple[int, ...]] = None,
               read_only: bool = False) -> np.ndarray[Any, Any]:
    """An array without a copy, which keeps `owner` alive. `number` is a collage_dtype; strides are in bytes."""
    dtypes = ports.accepted(number)
    if 0 in shape or not address:
        return np.empty(shape, dtypes[0])
    array = np.asarray(Memory(address, shape, number, owner, strides, read_only))
    return array if len(dtypes) == 1 else array.view(dtypes[0])


def foreign_type(array: np.ndarray[Any, Any]) -> Optional[int]:
    """The collage_dtype of an array of `array_over` if numpy has no such type: its dtype may be that of the bytes."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base.number if isinstance(base, Memory) and ports.is_foreign(base.number) else None


class _Owner:
    """Gives a tensor back to its package when nothing refers to it any more."""

    def __init__(self, address: int, deleter: int) -> None:
        self._address, self._deleter = address, deleter

    def __del__(self) -> None:
        if self._deleter:
            _Deleter(self._deleter)(self._address)


def _capsule_of(value: Any, what: str) -> Any:
    try:
        device = int(value.__dlpack_device__()[0]) if hasattr(value, "__dlpack_device__") else CPU
    except Exception as fault:
        raise errors.MisuseError(f"{what} does not say on which device it is: {fault}; give an array in host memory") from fault
    if device not in (CPU, CUDA_HOST):
        raise errors.MisuseError(f"{what} is not in host memory (its DLPack device is {device}); copy it to the host first")
    try:
        try:
            return value.__dlpack__(max_version=(1, 1))
        except TypeError:  # made for a version before 1.0
            return value.__dlpack__()
    except Exception as fault:
        raise errors.MisuseError(f"{what} of type {type(value).__name__} cannot be passed by DLPack: {fault}") from fault


def to_array(value: Any, what: str) -> np.ndarray[Any, Any]:
    """An array over the memory of an object with ``__dlpack__``, without a copy."""
    capsule = _capsule_of(value, what)
    if _is_valid(capsule, b"dltensor_versioned"):
        address = _pointer_of(capsule, b"dltensor_versioned")
        managed: Any = Versioned.from_address(address)
        if managed.major != 1:
            raise errors.MisuseError(f"{what} is passed by DLPack {managed.major}.{managed.minor}, and this package reads versions "
                                     "0 and 1; give a numpy array")
        _rename(capsule, _USED_VERSIONED)
        flags = int(managed.flags)
    elif _is_valid(capsule, b"dltensor"):
        address = _pointer_of(capsule, b"dltensor")
        managed = Managed.from_address(address)
        _rename(capsule, _USED)
        flags = 0
    else:
        raise errors.MisuseError(f"{what}: its __dlpack__ returns no DLPack tensor; give a numpy array")
    owner = _Owner(address, managed.deleter or 0)
    return _array_of(managed.tensor, flags, owner, what)


def _array_of(tensor: Any, flags: int, owner: _Owner, what: str) -> np.ndarray[Any, Any]:
    if tensor.device_type not in (CPU, CUDA_HOST):
        raise errors.MisuseError(f"{what} is not in host memory (its DLPack device is {tensor.device_type}); copy it to the host first")
    name = _NAMES.get((tensor.code, tensor.bits))
    if name is None or tensor.lanes != 1 or (tensor.bits < 8 and not flags & SUBBYTE_PADDED):
        raise errors.MisuseError(f"{what} has elements of DLPack's type ({tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes), "
                                 "which cannot be read; convert it first")
    if not 0 <= tensor.ndim <= 32:
        raise errors.MisuseError(f"{what} has {tensor.ndim} dimensions, and networks have at most 8")
    if tensor.ndim and not tensor.shape:
        raise errors.MisuseError(f"{what} has {tensor.ndim} dimensions and no shape in DLPack; give a numpy array")
    number = ports.number_of_name(name)
    shape = tuple(tensor.shape[:tensor.ndim])
    size = ports.accepted(number)[0].itemsize
    if any(extent < 0 for extent in shape) or math.prod(shape) * size >= 2**63:
        raise errors.MisuseError(f"{what} has the shape {shape} in DLPack, which no array has; give a numpy array")
    if not tensor.data and 0 not in shape:
        raise errors.MisuseError(f"{what} has the shape {shape} and no memory in DLPack; give a tensor that holds its elements")
    strides = tuple(step * size for step in tensor.strides[:tensor.ndim]) if tensor.strides else None
    try:
        return array_over((tensor.data or 0) + tensor.byte_offset, shape, number, owner, strides, bool(flags & READ_ONLY))
    except (ValueError, OverflowError) as fault:
        raise errors.MisuseError(f"{what} cannot be read by DLPack: {fault}; give a numpy array") from fault
