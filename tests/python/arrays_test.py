#!/usr/bin/env python3
"""Element types, DLPack without PyTorch, buffers, and views whose memory is collected."""
import array
import ctypes
import gc
import unittest

import numpy as np

import collage
import models
from collage import _dlpack, ports

UINT16 = 4  # of ONNX
QUICK = {"how": "priority", "threads": 1, "store": False}

_new = ctypes.pythonapi.PyCapsule_New
_new.argtypes, _new.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object
NAMES = {False: b"dltensor", True: b"dltensor_versioned"}


class Producer:
    """A tensor of another package: memory of ctypes, passed by DLPack of before or after version 1.0."""

    given_back = 0
    made = []  # keeps the structs and functions

    def __init__(self, memory, dtype, versioned=False, flags=0, device=1, offset=0, major=1, dense=False,
                 address=None, shape=None):
        self.address, self.shape = address, memory.shape if shape is None else shape
        self.memory, self.versioned, self.flags, self.device = memory, versioned, flags, device
        self.dtype, self.offset, self.major, self.dense = dtype, offset, major, dense

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **settings):
        if settings and not self.versioned:
            raise TypeError("unexpected keyword argument")
        kind = _dlpack.Versioned if self.versioned else _dlpack.Managed
        managed, memory = kind(), self.memory
        shape = (ctypes.c_int64 * max(1, memory.ndim))(*self.shape)
        strides = (ctypes.c_int64 * max(1, memory.ndim))(*(s // memory.itemsize for s in memory.strides))
        code, bits = self.dtype
        managed.tensor = _dlpack.Tensor(memory.ctypes.data - self.offset if self.address is None else self.address, self.device, 0, memory.ndim, code, bits, 1,
                                        shape if self.shape else None, None if self.dense else strides, self.offset)
        if self.versioned:
            managed.major, managed.flags = self.major, self.flags

        def give_back(_):
            Producer.given_back += 1

        deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(give_back)
        managed.deleter = ctypes.cast(deleter, ctypes.c_void_p)
        Producer.made.append((managed, shape, strides, deleter, memory))
        return _new(ctypes.addressof(managed), NAMES[self.versioned], None)


def double(dims, kind):
    return collage.session(models.added(dims, kind), **QUICK)


class DLPack(unittest.TestCase):
    def test_without_a_copy_and_given_back(self):
        gc.collect()  # what other cases left
        before = Producer.given_back
        for versioned in False, True:
            for dense in False, True:
                x = np.arange(12, dtype=np.float32).reshape(3, 4)
                seen = _dlpack.to_array(Producer(x, (2, 32), versioned, dense=dense), "x")
                self.assertEqual(seen.ctypes.data, x.ctypes.data)
                np.testing.assert_array_equal(seen, x)
                view = seen[1:]
                del seen
                gc.collect()
                np.testing.assert_array_equal(view, x[1:])
                del view
        gc.collect()
        self.assertEqual(Producer.given_back, before + 4)

    def test_in_runs(self):
        for rows in 3, 9000:  # copied, and bound
            session = double([rows, 4], models.FLOAT)
            x = np.arange(rows * 8, dtype=np.float32).reshape(rows, 8)
            for memory in x[:, :4].copy(), x[:, ::2], x[::-1, 4:], x.reshape(8, rows).T[:, 1:5]:
                np.testing.assert_array_equal(session(Producer(memory, (2, 32))), 2 * memory)
            np.testing.assert_array_equal(session(Producer(x[:, :4].copy(), (2, 32), True, flags=1)), 2 * x[:, :4])
            np.testing.assert_array_equal(session(Producer(x[:, :4].copy(), (2, 32), offset=32)), 2 * x[:, :4])

    def test_read_only(self):
        x = np.zeros((3, 4), np.float32)
        self.assertFalse(_dlpack.to_array(Producer(x, (2, 32), True, flags=1), "x").flags.writeable)
        binding = double([3, 4], models.FLOAT).bind()
        binding.inputs["x"] = Producer(x, (2, 32), True, flags=1)
        y = np.empty((3, 4), np.float32)
        binding.outputs["y"] = Producer(y, (2, 32))
        x += 3
        binding.run()
        np.testing.assert_array_equal(y, 2 * x)
        with self.assertRaisesRegex(collage.MisuseError, "output y cannot be bound: the array is read-only"):
            binding.outputs["y"] = Producer(y, (2, 32), True, flags=1)

    def test_other_types(self):
        session = double([2, 2], models.BFLOAT16)
        ones = np.full((2, 2), 0x3F80, np.uint16)
        twice = session(Producer(ones, (4, 16)))
        np.testing.assert_array_equal(twice.view(np.uint16), np.full((2, 2), 0x4000))
        whole = double([3], models.INT64)
        np.testing.assert_array_equal(whole(Producer(np.arange(3), (0, 64))), [0, 2, 4])

    def test_the_names_of_other_types(self):
        """Without ml_dtypes their dtype is that of the bytes. Such a tensor is not taken for one of that type."""
        bits, small = np.full((2, 2), 0x3F80, np.uint16), np.full((2, 2), 0x38, np.uint8)
        for tensor, name in (Producer(bits, (4, 16)), "bfloat16"), (Producer(small, (10, 8)), "float8"):
            for kind in models.FLOAT, UINT16 if name == "bfloat16" else models.UINT8:
                with self.assertRaisesRegex(collage.MisuseError, f"input x has elements of type {name}.*, and the network takes [a-z0-9]+; "
                                                                 "convert it"):
                    double([2, 2], kind)(tensor)
        lent = double([2, 2], models.BFLOAT16).run(bits)["y"]
        np.testing.assert_array_equal(double([2, 2], models.BFLOAT16)(lent).view(np.uint16), bits + 0x100)

    def test_values_of_other_types(self):
        bits = np.full((2, 2), 0x3F80, np.uint16)
        other = models.value("z", models.FLOAT, [3])
        summed = models.model([models.node("Add", ["x", "x"], ["y"]), models.node("Add", ["z", "z"], ["w"])],
                              [models.value("x", models.BFLOAT16, ["N", 2]), other], [models.value("y", models.BFLOAT16, ["N", 2]),
                                                                                      models.value("w", models.FLOAT, [3])])
        for value in bits, Producer(bits, (4, 16)):
            network = collage.load(summed, values={"x": value})
            y = network.session(**QUICK).run({"z": np.ones(3, np.float32)})["y"]
            np.testing.assert_array_equal(y.view(np.uint16), bits + 0x80)

    def test_a_tensor_of_numpy(self):
        class Foreign:
            def __init__(self, of):
                self.of = of
                self.__dlpack__, self.__dlpack_device__ = of.__dlpack__, of.__dlpack_device__

        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        np.testing.assert_array_equal(double([3, 4], models.FLOAT)(Foreign(x)), 2 * x)

    def test_what_is_refused(self):
        x = np.zeros((3, 4), np.float32)

        class Angry:
            def __dlpack__(self):
                raise RuntimeError("it requires a gradient")

        class Liar:
            def __dlpack__(self, **_):
                return "nothing"

        session = double([3, 4], models.FLOAT)
        for wrong, sentence in [(Producer(x, (2, 32), device=2), r"input x is not in host memory \(its DLPack device is 2\)"),
                                (Producer(x, (5, 32)), r"DLPack's type \(5, 32 bits"), (Producer(x, (0, 4)), r"\(0, 4 bits"),
                                (Producer(x, (0, 32)), "elements of type int32"), (Producer(x, (2, 32), True, major=2), "DLPack 2.0"),
                                (Producer(x.T.copy(), (2, 32)), r"shape \(4, 3\)"), (Angry(), "it requires a gradient"),
                                (Producer(x, (2, 32), address=0), r"input x has the shape \(3, 4\) and no memory"),
                                (Producer(x, (2, 32), shape=(3, -4)), r"the shape \(3, -4\) in DLPack, which no array has"),
                                (Producer(x, (2, 32), shape=(2**40, 2**40)), "in DLPack, which no array has"),
                                (Producer(x, (2, 32), shape=()), "input x has 2 dimensions and no shape in DLPack"),
                                (Producer(x, (2, 32), device="cpu"), "input x does not say on which device it is"),
                                (Liar(), "returns no DLPack tensor")]:
            with self.subTest(sentence), self.assertRaisesRegex(collage.MisuseError, sentence):
                session(wrong)


class Types(unittest.TestCase):
    def test_types_of_numpy(self):
        for kind, dtype in [(models.FLOAT, "float32"), (models.DOUBLE, "float64"), (models.FLOAT16, "float16"),
                            (models.INT32, "int32"), (models.INT64, "int64"), (models.INT8, "int8"), (models.UINT8, "uint8")]:
            session = double([2, 3], kind)
            port = session.inputs[0]
            self.assertEqual((port.type, port.dtype, port.shape, port.is_open), (dtype, np.dtype(dtype), (2, 3), False))
            x = np.arange(6).reshape(2, 3).astype(dtype)
            y = session(x)
            self.assertEqual(y.dtype, x.dtype)
            np.testing.assert_array_equal(y, x + x)

    def test_bfloat16(self):
        session = double([2], models.BFLOAT16)
        port = session.inputs[0]
        bits = np.array([0x3F80, 0xC000], np.uint16)  # 1 and -2
        y = session(bits)
        self.assertEqual((port.type, y.dtype), ("bfloat16", port.dtype))
        np.testing.assert_array_equal(y.view(np.uint16), [0x4000, 0xC080])
        with self.assertRaisesRegex(collage.MisuseError, r"the network takes bfloat16.*; convert it"):
            session(np.ones(2, np.float32))
        try:
            import ml_dtypes
        except ImportError:
            self.assertEqual(port.dtype, np.uint16)
            return
        np.testing.assert_array_equal(session(np.array([1, -2], ml_dtypes.bfloat16)).astype(np.float32), [2, -4])

    def test_small_types(self):
        """A cast from float8 and from int4: their elements take a byte each."""
        for kind, name, raw, wanted in [(models.FLOAT8E4M3FN, "float8e4m3fn", [0x38, 0xC0], [1, -2]), (models.INT4, "int4", [7, -8], [7, -8])]:
            cast = models.model([models.node("Cast", ["x"], ["y"], to=models.FLOAT)], [models.value("x", kind, [2])],
                                [models.value("y", models.FLOAT, [2])])
            session = collage.session(cast, **QUICK)
            port = session.inputs[0]
            self.assertEqual((port.type, port.dtype.itemsize), (name, 1))
            np.testing.assert_array_equal(session(np.array(raw, ports.accepted(port.number)[-1])), wanted)

    def test_each_number_has_a_name(self):
        from collage import _abi
        _abi.lib.collage_dtype_name.restype = ctypes.c_char_p
        _abi.lib.collage_dtype_size.restype = ctypes.c_size_t
        number = 1
        while name := _abi.lib.collage_dtype_name(number):
            self.assertEqual(ports.type_name(number), name.decode())
            self.assertEqual(ports.accepted(number)[-1].itemsize, _abi.lib.collage_dtype_size(number))
            number += 1
        with self.assertRaisesRegex(collage.CollageError, f"element type {number}"):
            ports.type_name(number)
        self.assertEqual(ports.number_of(np.dtype("uint16")), 10)
        self.assertIsNone(ports.number_of(np.dtype(">i4")))

    def test_buffers(self):
        session = double([2, 2], models.FLOAT)
        given = array.array("f", [1, 2, 3, 4])
        view = memoryview(given).cast("B").cast("f", [2, 2])
        np.testing.assert_array_equal(session(view), [[2, 4], [6, 8]])
        with self.assertRaisesRegex(collage.MisuseError, r"shape \(4,\)"):
            session(given)
        with self.assertRaisesRegex(collage.MisuseError, "input x has elements of type uint8"):
            session(bytes(16))

    def test_shapes_at_the_edge(self):
        scalar = double([], models.FLOAT)
        np.testing.assert_array_equal(scalar(np.float32(1.5)), 3)
        self.assertEqual(scalar(np.array(2, np.float32)).shape, ())
        for session in collage.session(models.added(["N", 3]), **QUICK), double([0, 3], models.FLOAT):
            self.assertEqual(session(np.zeros((0, 3), np.float32)).shape, (0, 3))
            self.assertEqual(session.run(np.zeros((0, 3), np.float32), copy=False)["y"].shape, (0, 3))


unittest.main()
