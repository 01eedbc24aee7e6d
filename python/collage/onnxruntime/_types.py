"""Element types by their names in collage, in ONNX Runtime and in ONNX."""

from __future__ import annotations

import math
from typing import Any, Dict, Optional, Sequence

import numpy as np

ml_dtypes: Any
try:  # types that numpy lacks; without this package, arrays of them hold their bytes
    import ml_dtypes
except ImportError:
    ml_dtypes = None

# collage's name: the word in ONNX Runtime's "tensor(...)", ONNX's number, and the numpy type that holds the bytes.
_TABLE = {
    "float32": ("float", 1, "float32"), "uint8": ("uint8", 2, "uint8"), "int8": ("int8", 3, "int8"),
    "uint16": ("uint16", 4, "uint16"), "int16": ("int16", 5, "int16"), "int32": ("int32", 6, "int32"),
    "int64": ("int64", 7, "int64"), "bool": ("bool", 9, "bool"), "float16": ("float16", 10, "float16"),
    "float64": ("double", 11, "float64"), "uint32": ("uint32", 12, "uint32"), "uint64": ("uint64", 13, "uint64"),
    "bfloat16": ("bfloat16", 16, "uint16"), "float8e4m3fn": ("float8e4m3fn", 17, "uint8"),
    "float8e4m3fnuz": ("float8e4m3fnuz", 18, "uint8"), "float8e5m2": ("float8e5m2", 19, "uint8"),
    "float8e5m2fnuz": ("float8e5m2fnuz", 20, "uint8"), "uint4": ("uint4", 21, "uint8"),
    "int4": ("int4", 22, "int8"), "float4e2m1": ("float4e2m1", 23, "uint8"),
    "float8e8m0": ("float8e8m0", 24, "uint8"), "uint2": ("uint2", 25, "uint8"), "int2": ("int2", 26, "int8"),
}

# ml_dtypes spells the small floats in its own way.
_SPELLED = {
    "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz", "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz", "float8e8m0": "float8_e8m0fnu", "float4e2m1": "float4_e2m1fn",
}


def _numpy_type(name: str) -> np.dtype:
    """The numpy type of a collage type: numpy's own, that of ml_dtypes, or the type of its bytes."""
    holder = _TABLE[name][2]
    if holder != name and ml_dtypes is not None:
        special = getattr(ml_dtypes, _SPELLED.get(name, name), None)
        if special is not None:
            return np.dtype(special)  # type: ignore[no-any-return]
    return np.dtype(holder)


NUMPY: Dict[str, np.dtype] = {name: _numpy_type(name) for name in _TABLE}
"""The numpy type of each collage type."""

NUMBER: Dict[str, int] = {name: row[1] for name, row in _TABLE.items()}
"""ONNX's number of each collage type."""

_BITS = {"uint4": 4, "int4": 4, "float4e2m1": 4, "uint2": 2, "int2": 2}  # of types that share bytes in a file

_BY_NUMBER = {row[1]: name for name, row in _TABLE.items()}
_BY_DTYPE = {NUMPY[name]: name for name in reversed(list(_TABLE))}  # where two share bytes, the first of the table


def spelled(name: str) -> str:
    """ONNX Runtime's spelling of a collage type, as "tensor(float)" for "float32"."""
    return f"tensor({_TABLE[name][0]})"


def is_foreign(name: str) -> bool:
    """Whether numpy has no such type."""
    return _TABLE[name][2] != name


def name_of(dtype: np.dtype) -> Optional[str]:
    """The collage type of a numpy type; None if there is none, as for text."""
    return _BY_DTYPE.get(dtype.newbyteorder("=") if dtype.byteorder in "<>" else dtype)


def described(dtype: np.dtype) -> str:
    """ONNX Runtime's spelling of a numpy type, for messages."""
    name = name_of(dtype)
    if name is not None:
        return spelled(name)
    return "tensor(string)" if dtype.kind in "OUST" else f"numpy's {dtype}"


def element_type(given: Any) -> str:
    """The collage type of what programs give as element type: a numpy type, its name, or ONNX's number.

    Raises TypeError if it is none of them.
    """
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        name = _BY_NUMBER.get(int(given))
    else:
        name = name_of(np.dtype(given))
    if name is None:
        raise TypeError(f"{given!r} is no element type that collage has: give a numpy type or the number of a type of ONNX")
    return name


def bytes_of(number: int, extents: Sequence[int]) -> Optional[int]:
    """The bytes of a tensor in a model's file, by ONNX's number of its type; None if collage has no such type."""
    name = _BY_NUMBER.get(number)
    if name is None:
        return None
    return (math.prod(extents) * _BITS.get(name, NUMPY[name].itemsize * 8) + 7) // 8
