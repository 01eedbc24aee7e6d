"""The functions of collage.h for tests in Python, with nothing but what Python brings along.

The first two arguments of the test are the library and the model of make_model.py.
"""
import ctypes
import json
import sys

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
