#!/usr/bin/env python3
"""The C interface from Python, with nothing but what Python brings along: ctypes_test.py LIBRARY MODEL

The model is that of make_model.py. Placing measures in this process, as it does for every program in Python.
"""
import ctypes
import json
import pathlib
import sys
import tempfile
import threading
import unittest

LIBRARY, MODEL = sys.argv[1:3]
ROWS, IN, OUT = 5, 4, 3
F32, I64 = 1, 8
Handle = ctypes.c_void_p


class Port(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_uint32), ("extents", ctypes.c_int64 * 8), ("bytes", ctypes.c_size_t)]


class InputShape(ctypes.Structure):
    _fields_ = [("input", ctypes.c_char_p), ("extents", ctypes.POINTER(ctypes.c_int64)), ("rank", ctypes.c_size_t)]


class InputValue(ctypes.Structure):
    _fields_ = [("input", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_uint32),
                ("extents", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class NetworkOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("shapes", ctypes.POINTER(InputShape)), ("shape_count", ctypes.c_size_t),
                ("values", ctypes.POINTER(InputValue)), ("value_count", ctypes.c_size_t)]


class Progress(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("stage", ctypes.c_char_p), ("what", ctypes.c_char_p),
                ("done", ctypes.c_uint64), ("remaining", ctypes.c_uint64), ("remaining_s", ctypes.c_double),
                ("best_ms", ctypes.c_double)]


ProgressFunction = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Progress))


class PlaceOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_int32), ("how", ctypes.c_int32),
                ("backends", ctypes.c_char_p), ("store", ctypes.c_char_p), ("budget_s", ctypes.c_double),
                ("compare_s", ctypes.c_double), ("seed", ctypes.c_uint64), ("previous", Handle), ("rules", ctypes.c_void_p),
                ("rule_count", ctypes.c_size_t), ("recheck", ctypes.c_int32), ("complete", ctypes.c_int32),
                ("progress", ProgressFunction), ("progress_data", ctypes.c_void_p)]


class EngineOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("release_weights", ctypes.c_int32)]


collage = ctypes.CDLL(LIBRARY)
collage.collage_last_error.restype = ctypes.c_char_p
SIZE = ctypes.c_size_t
for name, kinds in {
    "network_from_file": [ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(Handle)],
    "network_from_zoo": [ctypes.c_char_p, ctypes.POINTER(Handle)],
    "network_input": [Handle, SIZE, ctypes.POINTER(Port)],
    "network_json": [Handle, ctypes.POINTER(ctypes.c_char_p)],
    "plan_place": [Handle, ctypes.c_void_p, ctypes.POINTER(Handle)],
    "plan_save": [Handle, ctypes.c_char_p],
    "plan_load": [Handle, ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(Handle)],
    "plan_json": [Handle, ctypes.POINTER(ctypes.c_char_p)],
    "engine_create": [Handle, ctypes.c_void_p, ctypes.POINTER(Handle)],
    "engine_input": [Handle, SIZE, ctypes.POINTER(Port)],
    "engine_output": [Handle, SIZE, ctypes.POINTER(Port)],
    "context_create": [Handle, ctypes.c_void_p, ctypes.POINTER(Handle)],
    "context_bind_input": [Handle, SIZE, ctypes.c_int32, ctypes.c_void_p, SIZE],
    "context_bind_output": [Handle, SIZE, ctypes.c_int32, ctypes.c_void_p, SIZE],
    "context_run": [Handle],
    "system_json": [ctypes.POINTER(ctypes.c_char_p)],
}.items():
    getattr(collage, "collage_" + name).argtypes = kinds
for name in "network", "plan", "engine", "context":
    release = getattr(collage, f"collage_{name}_release")
    release.argtypes, release.restype = [Handle], None


class Refused(Exception):
    pass


def call(name, *arguments):
    if getattr(collage, "collage_" + name)(*arguments) != 0:
        raise Refused(collage.collage_last_error().decode())


def made(name, *arguments):
    handle = Handle()
    call(name, *arguments, ctypes.byref(handle))
    return handle


def document(name, *arguments):
    text = ctypes.c_char_p()
    call(name, *arguments, ctypes.byref(text))
    return json.loads(text.value)


def port_of(name, handle, index=0):
    port = Port(struct_size=ctypes.sizeof(Port))
    call(name, handle, index, ctypes.byref(port))
    return port


def options_for_model():
    rows, pair, dims = (ctypes.c_int64 * 2)(ROWS, IN), (ctypes.c_int64 * 1)(2), (ctypes.c_int64 * 2)(OUT, ROWS)
    shape = InputShape(b"x", rows, 2)
    value = InputValue(b"dims", I64, 1, pair, ctypes.addressof(dims), ctypes.sizeof(dims))
    options = NetworkOptions(ctypes.sizeof(NetworkOptions), ctypes.pointer(shape), 1, ctypes.pointer(value), 1)
    options.alive = rows, pair, dims, shape, value
    return options


def place(network, **settings):
    settings = {"threads": 1, "compare_s": 0.05, **settings}
    options = PlaceOptions(struct_size=ctypes.sizeof(PlaceOptions), **settings)
    return made("plan_place", network, ctypes.byref(options))


def run(context, x, count):
    given, y = (ctypes.c_float * len(x))(*x), (ctypes.c_float * count)()
    call("context_bind_input", context, 0, F32, given, ctypes.sizeof(given))
    call("context_bind_output", context, 0, F32, y, ctypes.sizeof(y))
    call("context_run", context)
    return list(y)


class CInterface(unittest.TestCase):
    def test_version(self):
        self.assertEqual(collage.collage_abi_version(), 1)

    def test_a_model_of_ones_own(self):
        if not document("system_json")["onnx"]:
            self.skipTest("built without ONNX")
        with self.assertRaisesRegex(Refused, "x"):
            made("network_from_file", MODEL.encode(), None)
        network = made("network_from_file", MODEL.encode(), ctypes.byref(options_for_model()))
        self.assertEqual(list(port_of("network_input", network).extents)[:3], [ROWS, IN, 0])
        self.assertEqual(document("network_json", network)["outputs"], [{"name": "y", "type": "float32", "shape": [OUT, ROWS]}])

        told = []
        plan = place(network, store=b"none", progress=ProgressFunction(lambda _, now: told.append(now[0].stage) or 0))
        self.assertIn(b"measuring", told)
        placing = document("plan_json", plan)["placing"]
        self.assertGreater(placing["measured"], 0)
        with tempfile.TemporaryDirectory() as folder:
            file = str(pathlib.Path(folder) / "plan.json").encode()
            call("plan_save", plan, file)
            again = made("plan_load", network, file, None)
        engine = made("engine_create", again, None)
        context = made("context_create", engine, None)
        x = [(k * 7 % 11) / 4 - 1 for k in range(ROWS * IN)]
        wanted = [max(0, j / 2 - 0.5 + sum(x[n * IN + i] * ((3 * i + j) / 4 - 1) for i in range(IN)))
                  for n in range(ROWS) for j in range(OUT)]
        for have, want in zip(run(context, x, ROWS * OUT), wanted, strict=True):
            self.assertAlmostEqual(have, want, places=5)
        for name, handle in ("plan", plan), ("plan", again), ("engine", engine), ("network", network), ("context", context):
            getattr(collage, f"collage_{name}_release")(handle)

    def test_threads(self):
        """Contexts of one engine, and engines for one and for two threads, at the same time: the same to the bit as alone."""
        network = made("network_from_zoo", b"bert-paper")
        engines = [made("engine_create", place(network, how=1, threads=threads), None) for threads in (1, 2)]
        elements = port_of("engine_input", engines[0]).bytes // 4
        count = port_of("engine_output", engines[0]).bytes // 4
        inputs = [[((k * 37 + seed * 101) % 257) / 128 - 1 for k in range(elements)] for seed in range(2)]
        work = [(engine, x) for engine in engines for x in inputs]
        alone = [run(made("context_create", engine, None), x, count) for engine, x in work]
        together = [[] for _ in work]

        def repeat(i):
            engine, x = work[i]
            context = made("context_create", engine, None)
            for _ in range(5):
                together[i].append(run(context, x, count))

        threads = [threading.Thread(target=repeat, args=(i,)) for i in range(len(work))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for one, others in zip(alone, together, strict=True):
            self.assertEqual(others, [one] * 5)
        self.assertNotEqual(alone[0], alone[1])

    def test_released_weights(self):
        network = made("network_from_zoo", b"bert-paper")
        plan = place(network, how=1)
        kept = made("engine_create", plan, None)
        options = EngineOptions(ctypes.sizeof(EngineOptions), 1)
        alone = made("engine_create", plan, ctypes.byref(options))
        x = [(k * 37 % 257) / 128 - 1 for k in range(port_of("engine_input", kept).bytes // 4)]
        count = port_of("engine_output", kept).bytes // 4
        answers = [run(made("context_create", engine, None), x, count) for engine in (kept, alone)]
        self.assertEqual(*answers)
        self.assertEqual(list(port_of("network_input", network).extents)[:1], [1])
        with self.assertRaisesRegex(Refused, "its weights were released to another engine; load the network again"):
            made("engine_create", plan, None)
        with self.assertRaisesRegex(Refused, "its weights were released to another engine"):
            place(network, how=1)

    def test_mistakes(self):
        network = made("network_from_zoo", b"bert-paper")
        with self.assertRaisesRegex(Refused, "network is NULL"):
            port_of("network_input", None)
        with self.assertRaisesRegex(Refused, "there is no input 5"):
            port_of("network_input", network, 5)
        with self.assertRaisesRegex(Refused, "plan is a handle of a network"):
            made("engine_create", network, None)
        with self.assertRaisesRegex(Refused, "nonsense"):
            place(network, how=1, backends=b"nonsense")
        with self.assertRaisesRegex(Refused, "name one of"):
            made("network_from_zoo", b"nonsense")


unittest.main(argv=sys.argv[:1])
