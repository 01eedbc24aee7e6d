#!/usr/bin/env python3
"""A network of the zoo, placed and run from Python with nothing but ctypes: run_network.py LIBRARY"""
import array
import ctypes
import sys

collage = ctypes.CDLL(sys.argv[1])  # "libcollage.so.0" where it is installed
collage.collage_last_error.restype = ctypes.c_char_p


class Port(ctypes.Structure):  # collage_port
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_uint32), ("extents", ctypes.c_int64 * 8), ("bytes", ctypes.c_size_t)]


class PlaceOptions(ctypes.Structure):  # collage_place_options; what is not set is zero
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_int32), ("how", ctypes.c_int32),
                ("backends", ctypes.c_char_p), ("store", ctypes.c_char_p), ("budget_s", ctypes.c_double),
                ("compare_s", ctypes.c_double), ("seed", ctypes.c_uint64), ("previous", ctypes.c_void_p),
                ("rules", ctypes.c_void_p), ("rule_count", ctypes.c_size_t), ("recheck", ctypes.c_int32),
                ("complete", ctypes.c_int32), ("progress", ctypes.c_void_p), ("progress_data", ctypes.c_void_p)]


def call(name, *arguments):
    """Calls a function; an error becomes an exception with its sentence."""
    if getattr(collage, name)(*arguments) != 0:
        raise RuntimeError(collage.collage_last_error().decode())


def made(name, *arguments):
    """Calls a function that makes a handle."""
    handle = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(handle))
    return handle


network = made("collage_network_from_zoo", b"bert-paper")
# PRIORITY, so that this example is quick: how=0 measures, and `collage tune` makes plans for collage_plan_load.
how = PlaceOptions(struct_size=ctypes.sizeof(PlaceOptions), how=1)
plan = made("collage_plan_place", network, ctypes.byref(how))
engine = made("collage_engine_create", plan, None)
context = made("collage_context_create", engine, None)

memory = []
for kind in "input", "output":
    port = Port(struct_size=ctypes.sizeof(Port))
    call(f"collage_engine_{kind}", engine, ctypes.c_size_t(0), ctypes.byref(port))
    print(kind, port.name.decode(), list(port.extents[:port.rank]))
    memory.append(array.array("f", bytes(port.bytes)))  # or a numpy array: its address is array.ctypes.data
    address, _ = memory[-1].buffer_info()
    call(f"collage_context_bind_{kind}", context, ctypes.c_size_t(0), port.dtype, ctypes.c_void_p(address),
         ctypes.c_size_t(port.bytes))

x, y = memory
for k in range(len(x)):
    x[k] = k % 7 - 3
call("collage_context_run", context)
print("the output begins with", [round(number, 4) for number in y[:4]])

for name, handle in ("context", context), ("engine", engine), ("plan", plan), ("network", network):
    getattr(collage, f"collage_{name}_release")(handle)
