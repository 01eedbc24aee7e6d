"""The inputs and outputs of a session, and the arrays for them."""

from __future__ import annotations

import numbers
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

import numpy as np

from collage import arrays

from . import _errors, _types
from ._values import OrtValue

Extent = Union[int, str, None]


class NodeArg:
    """An input or output: its name, its type such as "tensor(float)", and its shape.

    An open extent is its name in the model, or None. A shape of any rank is an empty list, as in ONNX Runtime.
    """

    __slots__ = ("name", "type", "shape", "_dtype", "_type_name", "_any_rank", "_is_scalar")

    def __init__(self, name: str, element_type: str, dtype: np.dtype, shape: Optional[Tuple[Extent, ...]]) -> None:
        self.name = name
        self.type = _types.spelled(element_type)
        self.shape: List[Extent] = list(shape or ())
        self._dtype = dtype
        self._type_name = element_type
        self._any_rank = shape is None
        self._is_scalar = shape == ()

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


def _from_list(arg: NodeArg, value: Any) -> np.ndarray:
    """A list as an array of the input's type. ONNX Runtime cuts 1.5 to 1 for a whole number; that is refused here."""
    try:
        plain = np.asarray(value)
    except ValueError:  # what newer numpy says of ragged lists
        plain = np.empty(1, object)
    if plain.dtype.kind == "O":
        raise _errors.made(_errors.InvalidArgument, f"the list for input '{arg.name}' is ragged, or has elements that are no numbers; "
                                                    "give rows of numbers of one length")
    if plain.size == 0:
        return plain.astype(arg._dtype)
    numeric = plain.dtype.kind in "biuf" or _types.name_of(plain.dtype) is not None
    if not numeric or (plain.dtype.kind == "f" and arg._dtype.kind in "biu"):
        _refuse_type(arg, plain.dtype)
    if plain.dtype.kind in "iu" and arg._dtype.kind in "iu":
        limits = np.iinfo(arg._dtype)
        if int(plain.min()) < limits.min or int(plain.max()) > limits.max:  # numpy may compare by rounded floats
            raise _errors.made(_errors.InvalidArgument, f"the list for input '{arg.name}' has numbers that {arg.type} cannot hold")
    return plain.astype(arg._dtype)


def _refuse_type(arg: NodeArg, dtype: np.dtype, foreign: Optional[str] = None) -> None:
    """Refuses an array. `foreign` is the type of its elements if numpy has no such type."""
    if dtype.kind in "OUS":
        remedy = "text is not supported"
    elif foreign or _types.is_foreign(arg._type_name):  # a cast of the bytes would give other numbers
        remedy = f"convert it to {arg._type_name}, as by the package ml_dtypes"
    else:
        remedy = f"convert it by .astype(numpy.{arg._dtype})"
    actual = _types.spelled(foreign) if foreign else _types.described(dtype)
    raise _errors.made(_errors.InvalidArgument, f"Unexpected input data type. Actual: ({actual}) , expected: ({arg.type}) for input "
                                                f"'{arg.name}'; {remedy}")


def array_for(arg: NodeArg, value: Any) -> np.ndarray:
    """What a program gives for an input, as an array of the input's type. Its shape is not checked here, but one element becomes a
    scalar where the input is one.

    Taken are arrays, OrtValues, lists, numbers for scalars, and tensors of other libraries that numpy can view. Raises
    InvalidArgument for another type of elements, RuntimeError for other objects.
    """
    given = _typed(arg, value)
    return given.reshape(()) if arg._is_scalar and given.size == 1 else given


def _typed(arg: NodeArg, value: Any) -> np.ndarray:
    if isinstance(value, OrtValue):
        given = value.numpy()
        if value.data_type() != arg.type:
            _refuse_type(arg, given.dtype, value._type if _types.is_foreign(value._type) else None)
        return given.view(arg._dtype)
    if isinstance(value, np.ndarray):
        given = value
    elif isinstance(value, (list, numbers.Real, np.generic)):
        if isinstance(value, np.generic) and value.dtype != arg._dtype:
            _refuse_type(arg, value.dtype)
        return _from_list(arg, value)
    else:
        given = arrays.as_array(value, f"input '{arg.name}'")
        foreign = arrays.foreign_type(given)
        if foreign not in (None, arg._type_name):
            _refuse_type(arg, given.dtype, foreign)
    if given.dtype == arg._dtype:
        return given
    if given.dtype.byteorder in "<>" and given.dtype.newbyteorder("=") == arg._dtype:
        return given.astype(arg._dtype)  # of the other order of bytes, which ONNX Runtime takes for its own
    if arg._dtype.kind == "V" and given.dtype.itemsize == arg._dtype.itemsize and given.dtype.kind == "u":
        return given.view(arg._dtype)  # the bytes of a type that numpy lacks
    _refuse_type(arg, given.dtype)
    raise AssertionError


def check_shape(arg: NodeArg, shape: Tuple[int, ...]) -> None:
    """Raises InvalidArgument in ONNX Runtime's words if an array of this shape does not fit the input."""
    if arg._any_rank:
        return
    if arg._is_scalar and shape:
        raise _errors.made(_errors.InvalidArgument, f"Invalid rank for input: {arg.name} Got: {len(shape)} Expected: 0; the input is "
                                                    f"one number, and the array has the shape {list(shape)}")
    if len(shape) != len(arg.shape):
        raise _errors.made(_errors.InvalidArgument, f"Invalid rank for input: {arg.name} Got: {len(shape)} Expected: {len(arg.shape)}; "
                                                    f"the shape is {list(shape)}, and the model's is {arg.shape}")
    wrong = [f"index: {i} Got: {have} Expected: {want}" for i, (have, want) in enumerate(zip(shape, arg.shape))
             if isinstance(want, int) and have != want]
    if wrong:
        raise _errors.made(_errors.InvalidArgument, f"Got invalid dimensions for input: {arg.name} for the following indices "
                                                    f"{', '.join(wrong)}; the shape is {list(shape)}, and the model's is {arg.shape}")


class Inputs:
    """The inputs of a session by their names."""

    def __init__(self, args: List[NodeArg]) -> None:
        self._by_name: Dict[str, NodeArg] = {arg.name: arg for arg in args}

    def arrays(self, feed: Mapping[str, Any], why_unknown: Callable[[str], str]) -> Dict[str, np.ndarray]:
        """The arrays of a run. Raises ValueError if inputs are missing, InvalidArgument for a name or value that does not fit, and
        TypeError for what is no dict. `why_unknown` returns a sentence about a name that no input has."""
        if not isinstance(feed, Mapping):
            raise TypeError(f"the input feed is of type {type(feed).__name__}; give a dict of arrays by the names of the inputs")
        for name in self._by_name:
            if name not in feed:
                missing = [name for name in self._by_name if name not in feed]
                raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")
        found = {}
        for name, value in feed.items():
            arg = self._by_name.get(name)
            if arg is None:
                raise _errors.made(_errors.InvalidArgument, why_unknown(name))
            if type(value) is not np.ndarray or value.dtype != arg._dtype or arg._is_scalar:
                value = array_for(arg, value)
            found[name] = value
        return found

    def check_shapes(self, given: Mapping[str, np.ndarray]) -> None:
        """Raises InvalidArgument if an array has another shape than the model says."""
        for name, array in given.items():
            check_shape(self._by_name[name], array.shape)


def is_fixed(shape: Optional[Tuple[Extent, ...]]) -> bool:
    """Whether all extents are known."""
    return shape is not None and all(isinstance(extent, int) for extent in shape)


def fixed_shape(shape: Optional[Tuple[Extent, ...]]) -> Tuple[int, ...]:
    """A shape all of whose extents are known."""
    return tuple(extent for extent in shape or () if isinstance(extent, int))


def named_shape(shape: Optional[Tuple[Extent, ...]], extents: Mapping[str, Any]) -> Optional[Tuple[Extent, ...]]:
    """A shape in which named extents are replaced."""
    if shape is None:
        return None
    return tuple(extents.get(extent, extent) if isinstance(extent, str) else extent for extent in shape)
