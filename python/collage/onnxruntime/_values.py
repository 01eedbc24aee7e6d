"""OrtValue and OrtDevice: tensors in the memory of the processor."""

from __future__ import annotations

import ctypes
import enum
import operator
from typing import Any, List, Optional, Sequence, Union

import numpy as np

from collage import arrays

from . import _types

# ONNX Runtime's numbers of kinds of devices. Vendors tell those of one number apart.
_DEVICES = {"cpu": 0, "cuda": 1, "gpu": 1, "webgpu": 1, "fpga": 2, "npu": 3, "cann": 3, "dml": 4}


def get_ort_device_type(device_type: str) -> int:
    """ONNX Runtime's number of a kind of devices, by its name. Raises RuntimeError for a name that it does not know."""
    if device_type not in _DEVICES:
        raise RuntimeError(f"Unsupported device type: {device_type}")
    return _DEVICES[device_type]


def only_cpu(device_type: Union[str, int, OrtDevice]) -> None:
    """Refuses every device but the processor."""
    if isinstance(device_type, OrtDevice):
        return  # none of another device can be made
    if isinstance(device_type, int):
        device_type = next((name for name, number in _DEVICES.items() if number == device_type), str(device_type))
    if str(device_type).lower() != "cpu":
        known = "is not available: collage runs on the processor here" if device_type in _DEVICES else "is no device type"
        raise RuntimeError(f"the device '{device_type}' {known}; use 'cpu'")


def extents_of(shape: Sequence[int]) -> List[int]:
    """The extents of a shape. Raises ValueError if one is negative, and TypeError if it is no whole number."""
    try:
        extents = [operator.index(extent) for extent in shape]
    except TypeError:
        raise TypeError(f"the shape is {shape!r}; give a list of whole numbers") from None
    if any(extent < 0 for extent in extents):
        raise ValueError(f"the shape {extents} has a negative extent; give the extents of a tensor")
    return extents


def at_address(pointer: int, name: str, shape: Sequence[int], owner: Any = None) -> np.ndarray:
    """The memory at an address as an array of the type that collage calls `name`. The array keeps `owner` alive."""
    extents = extents_of(shape)
    dtype = _types.NUMPY[name]
    size = int(np.prod(extents, dtype=np.int64)) * dtype.itemsize
    if size == 0:
        return np.empty(extents, dtype)
    address = operator.index(pointer)
    if address == 0:
        raise ValueError("the address of a tensor with elements is 0; give that of its first element")
    memory: Any = (ctypes.c_byte * size).from_address(address)
    memory.owner = owner
    return np.frombuffer(memory, dtype=np.uint8).view(dtype).reshape(extents)


class OrtDeviceVendorId(enum.IntEnum):
    """Numbers of vendors."""

    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class OrtDevice:
    """A device: here always the processor.

    Args:
        device_type: its kind, by name or by the number of ONNX Runtime; or another device.
        memory_type: 0; kept, without effect.
        vendor_and_id: the number of the device, perhaps with a number of a vendor before it.
    """

    def __init__(self, device_type: Union[str, int, OrtDevice] = "cpu", memory_type: int = 0, *vendor_and_id: int) -> None:
        only_cpu(device_type)
        if len(vendor_and_id) > 2:
            raise TypeError("a device has a type, a type of memory, a vendor and a number; give at most these four")
        self._memory = operator.index(memory_type)
        self._id = operator.index(vendor_and_id[-1]) if vendor_and_id else 0
        if isinstance(device_type, OrtDevice):
            self._memory, self._id = device_type._memory, device_type._id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """The device of a name. Raises RuntimeError for all but "cpu"."""
        return OrtDevice(ort_device_name, 0, device_id)

    @staticmethod
    def cpu() -> int:
        """0, the number of the processor."""
        return _DEVICES["cpu"]

    @staticmethod
    def cuda() -> int:
        """1. No such device can be made."""
        return _DEVICES["cuda"]

    @staticmethod
    def default_memory() -> int:
        """0, the number of ordinary memory."""
        return 0

    def device_id(self) -> int:
        """The number of the device."""
        return self._id

    def device_type(self) -> int:
        """0, ONNX Runtime's number of the processor."""
        return 0

    def device_vendor_id(self) -> int:
        """0: none."""
        return 0

    def mem_type(self) -> int:
        """The number of the type of memory; 0: ordinary memory."""
        return self._memory

    # ONNX Runtime has one class of devices for programs, and another one inside. This is both.
    vendor_id, device_mem_type = device_vendor_id, mem_type


class _Capsule:
    """A DLPack capsule, as the object that would return it."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> Any:
        return 1, 0


class OrtValue:
    """A tensor: an array with its element type. Sequences, maps and sparse tensors are not supported."""

    __slots__ = ("_array", "_type")

    def __init__(self, array: np.ndarray, type: Optional[str] = None) -> None:
        name = type or _types.name_of(array.dtype)
        if name is None:
            raise RuntimeError(f"arrays of {_types.described(array.dtype)} are not supported; give numbers or bool")
        self._array = array
        self._type = name

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: np.ndarray, device_type: Union[str, OrtDevice] = "cpu", device_id: int = 0,
                            vendor_id: int = -1) -> OrtValue:
        """A value in the array's own memory: later changes of either show in the other. Others than dense ones are copied."""
        only_cpu(device_type)
        if not isinstance(numpy_obj, np.ndarray):
            raise TypeError(f"a value is made from a numpy array, not from {type(numpy_obj).__name__}")
        native = numpy_obj.dtype.newbyteorder("=") if numpy_obj.dtype.byteorder in "<>" else numpy_obj.dtype
        return cls(np.require(numpy_obj, dtype=native, requirements=["C", "A"]))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, onnx_element_type: int) -> OrtValue:
        """A value in the array's memory whose elements have a type of ONNX that has as many bytes as the array's."""
        name = _types.element_type(onnx_element_type)
        dtype = _types.NUMPY[name]
        if data.dtype.itemsize != dtype.itemsize:
            raise RuntimeError(f"elements of {data.dtype} have {data.dtype.itemsize} bytes, and those of {_types.spelled(name)} "
                               f"{dtype.itemsize}; give an array of {dtype}")
        return cls(np.ascontiguousarray(data).view(dtype), name)

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any = None,
                                     device_type: Union[str, OrtDevice] = "cpu", device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        """A value of zeros."""
        only_cpu(device_type)
        name = _types.element_type(np.float32 if element_type is None else element_type)
        return cls(arrays.empty(tuple(extents_of(shape)), _types.NUMPY[name]), name)

    @classmethod
    def from_dlpack(cls, data: Any, is_bool_tensor: bool = False) -> OrtValue:
        """A value in the memory of a tensor of another library, or of a DLPack capsule. It must be on the processor, and dense."""
        array = arrays.as_array(data if hasattr(data, "__dlpack__") else _Capsule(data), "the tensor")
        if not array.flags.c_contiguous:
            raise RuntimeError("the tensor is not dense and row-major; make it contiguous first")
        return cls(array.view(np.bool_) if is_bool_tensor and array.dtype == np.uint8 else array, arrays.foreign_type(array))

    def numpy(self) -> np.ndarray:
        """The tensor as an array, in the same memory."""
        return self._array

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        wanted = self._array.dtype if dtype is None else np.dtype(dtype)
        if copy or (wanted != self._array.dtype and copy is None):
            return self._array.astype(wanted)
        if wanted != self._array.dtype:
            raise ValueError(f"a view of {self._array.dtype} as {wanted} needs a copy")
        return self._array

    def __dlpack__(self, **words: Any) -> Any:
        try:
            return self._array.__dlpack__(**words)
        except BufferError:
            if self._array.dtype != np.bool_:
                raise
            return self._array.view(np.uint8).__dlpack__(**words)  # older numpy exports no bool

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def to_dlpack(self) -> Any:
        """A DLPack capsule of the tensor."""
        return self.__dlpack__()

    @property
    def _ortvalue(self) -> OrtValue:
        # Programs reach for the inner object of ONNX Runtime's class, which has to_dlpack.
        return self

    def shape(self) -> List[int]:
        """The extents, outermost first."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """The type, such as "tensor(float)"."""
        return _types.spelled(self._type)

    def element_type(self) -> int:
        """ONNX's number of the element type."""
        return _types.NUMBER[self._type]

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._array.ctypes.data)

    def tensor_size_in_bytes(self) -> int:
        """The bytes of all elements."""
        return int(self._array.nbytes)

    def device_name(self) -> str:
        """"cpu"."""
        return "cpu"

    def has_value(self) -> bool:
        """True: a value always holds a tensor."""
        return True

    def is_tensor(self) -> bool:
        """True."""
        return True

    def is_sparse_tensor(self) -> bool:
        """False."""
        return False

    def is_tensor_sequence(self) -> bool:
        """False."""
        return False

    def update_inplace(self, np_arr: np.ndarray) -> None:
        """Copies an array of the same type and shape to the value's memory.

        ONNX Runtime copies the bytes of any array with as many; that is refused here.
        """
        update_all([self], [np_arr])


class OrtValueVector(List[OrtValue]):
    """Values in a row, as a binding returns them: a list, with ONNX Runtime's names for what lists do."""

    def push_back(self, value: Any, is_bool_tensor: bool = False) -> None:
        """Adds a value, or one in the memory of a DLPack capsule or of a tensor of another library."""
        self.append(value if isinstance(value, OrtValue) else OrtValue.from_dlpack(value, is_bool_tensor))

    def push_back_batch(self, tensors: Sequence[Any], data_ptrs: Sequence[int], element_types: Sequence[Any],
                        shapes: Sequence[Sequence[int]], devices: Sequence[OrtDevice]) -> None:
        """Adds values in the memory of dense tensors of another library, and keeps these alive."""
        if not len(tensors) == len(data_ptrs) == len(element_types) == len(shapes) == len(devices):
            raise ValueError("the tensors, addresses, types, shapes and devices differ in number; give one of each for each value")
        for tensor, address, kind, shape in zip(tensors, data_ptrs, element_types, shapes):
            name = _types.element_type(kind)
            self.append(OrtValue(at_address(address, name, shape, tensor), name))

    def bool_tensor_indices(self) -> List[int]:
        """Which of the values are of bool."""
        return [at for at, value in enumerate(self) if value.element_type() == _types.NUMBER["bool"]]

    def reserve(self, count: int) -> None:
        """Without effect: lists grow by themselves."""

    def shrink_to_fit(self) -> None:
        """Without effect."""

    def element_type_at(self, at: int) -> int:
        """ONNX's number of the element type of a value."""
        return self[at].element_type()

    def dlpack_at(self, at: int) -> Any:
        """A DLPack capsule of a value."""
        return self[at].to_dlpack()

    def to_dlpacks(self, to_tensor: Any = None) -> List[Any]:
        """DLPack capsules of all values, or what `to_tensor` makes of each capsule."""
        capsules = [value.to_dlpack() for value in self]
        return capsules if to_tensor is None else [to_tensor(capsule) for capsule in capsules]


def update_all(values: Sequence[OrtValue], given: Sequence[Any]) -> None:
    """Copies arrays, or other values, to the memory of values. Raises RuntimeError, before anything is written, if one does not fit."""
    new = [np.asarray(one) for one in given]
    for at, (value, one, array) in enumerate(zip(values, given, new)):
        which = f"value {at}" if len(new) > 1 else "the value"
        if not isinstance(value, OrtValue):
            raise TypeError(f"{which} is of type {type(value).__name__}; give an OrtValue")
        into = value.numpy()
        kind = one.data_type() if isinstance(one, OrtValue) else _types.described(array.dtype)
        is_other = isinstance(one, OrtValue) and one.data_type() != value.data_type()
        if is_other or array.dtype != into.dtype or array.shape != into.shape:
            raise RuntimeError(f"{which} is {value.data_type()} of shape {value.shape()}, and the array {kind} of shape "
                               f"{list(array.shape)}; give an array that fits")
        if not into.flags.writeable:
            raise RuntimeError(f"{which} is in memory that cannot be written; give a value of an array that can")
    for value, array in zip(values, new):
        np.copyto(value.numpy(), array)


def array_of(value: Union[OrtValue, np.ndarray]) -> np.ndarray:
    """The array of a value, or the array itself."""
    return value.numpy() if isinstance(value, OrtValue) else value
