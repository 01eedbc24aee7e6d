"""The structs and functions of collage.h, collage_precision.h, collage_session.h and collage_trace.h, for ctypes."""
from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64
from ctypes import c_void_p
from typing import Any, NoReturn

from . import _library, errors

MAX_RANK = 8
HOW = {"measure": 0, "priority": 1, "estimate": 2}
ALGORITHMS = {"accurate": 0, "direct": 1, "any": 2}
CONTINUE, STOP, CANCEL = range(3)
SAMPLE_END, SAMPLE_WRITTEN, SAMPLE_CANCEL = range(3)


class Port(Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("dtype", c_int32), ("rank", c_uint32),
                ("extents", c_int64 * MAX_RANK), ("bytes", c_size_t)]


class OpenPort(Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("dtype", c_int32), ("rank", c_int32),
                ("extents", c_int64 * MAX_RANK), ("symbols", c_char_p * MAX_RANK)]


class InputShape(Structure):
    _fields_ = [("input", c_char_p), ("extents", POINTER(c_int64)), ("rank", c_size_t)]


class InputValue(Structure):
    _fields_ = [("input", c_char_p), ("dtype", c_int32), ("rank", c_uint32), ("extents", POINTER(c_int64)), ("data", c_void_p),
                ("bytes", c_size_t)]


class NetworkOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("shapes", POINTER(InputShape)), ("shape_count", c_size_t),
                ("values", POINTER(InputValue)), ("value_count", c_size_t), ("requantise", c_int64)]


class Progress(Structure):
    _fields_ = [("struct_size", c_size_t), ("stage", c_char_p), ("what", c_char_p), ("done", c_uint64), ("remaining", c_uint64),
                ("remaining_s", c_double), ("best_ms", c_double)]


ProgressFunction = CFUNCTYPE(c_int, c_void_p, POINTER(Progress))
SampleFunction = CFUNCTYPE(c_int, c_void_p, c_size_t, POINTER(c_void_p), c_size_t)
LogFunction = CFUNCTYPE(None, c_void_p, c_int32, c_char_p)


class PlaceRule(Structure):
    _fields_ = [("action", c_int32), ("what", c_char_p), ("backend", c_char_p)]


class PrecisionOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("precision", c_char_p), ("error", c_double), ("sample", SampleFunction),
                ("sample_data", c_void_p), ("sample_count", c_uint64), ("files", c_char_p),
                ("keep", POINTER(c_char_p)), ("keep_count", c_size_t)]


class PlaceOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("threads", c_int32), ("how", c_int32), ("backends", c_char_p), ("store", c_char_p),
                ("budget_s", c_double), ("compare_s", c_double), ("seed", c_uint64), ("previous", c_void_p),
                ("rules", POINTER(PlaceRule)), ("rule_count", c_size_t), ("recheck", c_int32), ("complete", c_int32),
                ("progress", ProgressFunction), ("progress_data", c_void_p), ("regions_s", c_double),
                ("keep_non_finite", c_int32), ("algorithms", c_int64), ("memory_bytes", c_uint64), ("memory_ratio", c_double),
                ("precision", POINTER(PrecisionOptions)), ("autotune_s", c_double)]


class PlanLoadOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("threads", c_int32), ("accept_version_change", c_int32)]


class EngineInfo(Structure):
    _fields_ = [("struct_size", c_size_t), ("inputs", c_size_t), ("outputs", c_size_t), ("steps", c_size_t), ("threads", c_int32),
                ("waiting_policy", c_char_p), ("arena_bytes", c_size_t), ("arena_lower_bound", c_size_t)]


class Step(Structure):
    _fields_ = [("struct_size", c_size_t), ("backend", c_char_p), ("pattern", c_char_p), ("kernel", c_char_p), ("label", c_char_p),
                ("nodes", c_size_t), ("workspace_bytes", c_size_t), ("planned_ms", c_double)]


class RunLimits(Structure):
    _fields_ = [("struct_size", c_size_t), ("seconds", c_double), ("stop", c_void_p)]


class Carried(Structure):
    _fields_ = [("output", c_char_p), ("input", c_char_p)]


class SessionOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("placing", POINTER(PlaceOptions)), ("loading", POINTER(NetworkOptions)),
                ("most_engines", c_uint64), ("most_bytes", c_uint64), ("carried", POINTER(Carried)), ("carried_count", c_size_t)]


class SessionInfo(Structure):
    _fields_ = [("struct_size", c_size_t), ("inputs", c_size_t), ("outputs", c_size_t), ("states", c_size_t),
                ("engines", c_uint64), ("made", c_uint64), ("given_back", c_uint64), ("packed_bytes", c_uint64),
                ("making_ms", c_double)]


class SessionTuningInfo(Structure):
    _fields_ = [("struct_size", c_size_t), ("improved", c_uint64), ("failed", c_uint64), ("tuning", c_char * 256),
                ("failure", c_char * 768)]


class Cache(Structure):
    _fields_ = [("input", c_char_p), ("output", c_char_p), ("dimension", c_uint32), ("rank", c_uint32),
                ("extents", POINTER(c_int64))]


class CacheMask(Structure):
    _fields_ = [("input", c_char_p), ("dimension", c_uint32), ("value", c_double)]


class GrowingOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("caches", POINTER(Cache)), ("cache_count", c_size_t), ("capacities", POINTER(c_int64)),
                ("capacity_count", c_size_t), ("masks", POINTER(CacheMask)), ("mask_count", c_size_t)]


class GrowingInfo(Structure):
    _fields_ = [("struct_size", c_size_t), ("inputs", c_size_t), ("outputs", c_size_t), ("length", c_int64), ("capacity", c_int64)]


class TraceOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("process", c_char_p), ("most_events", c_uint64)]


class TraceInfo(Structure):
    _fields_ = [("struct_size", c_size_t), ("runs", c_uint64), ("events", c_uint64), ("dropped_runs", c_uint64)]


class Tensor(Structure):
    _fields_ = [("dtype", c_int32), ("rank", c_uint32), ("extents", c_int64 * MAX_RANK), ("data", c_void_p), ("bytes", c_size_t)]


_TEXT = POINTER(c_char_p)
_HANDLE = POINTER(c_void_p)
_AT = [c_void_p, c_size_t]

# The arguments of each function that returns a status.
_CALLS: dict[str, list[Any]] = {
    "system_json": [_TEXT],
    "set_waiting": [c_char_p],
    "network_from_file": [c_char_p, c_void_p, _HANDLE],
    "network_from_memory": [c_char_p, c_size_t, c_void_p, _HANDLE],
    "network_from_zoo": [c_char_p, _HANDLE],
    "network_input_count": [c_void_p, POINTER(c_size_t)],
    "network_output_count": [c_void_p, POINTER(c_size_t)],
    "network_input": [*_AT, POINTER(Port)],
    "network_output": [*_AT, POINTER(Port)],
    "network_json": [c_void_p, _TEXT],
    "plan_place": [c_void_p, POINTER(PlaceOptions), _HANDLE],
    "plan_load": [c_void_p, c_char_p, POINTER(PlanLoadOptions), _HANDLE],
    "plan_save": [c_void_p, c_char_p],
    "plan_json": [c_void_p, _TEXT],
    "engine_create": [c_void_p, c_void_p, _HANDLE],
    "engine_get_info": [c_void_p, POINTER(EngineInfo)],
    "engine_input": [*_AT, POINTER(Port)],
    "engine_output": [*_AT, POINTER(Port)],
    "engine_step": [*_AT, POINTER(Step)],
    "context_create": [c_void_p, c_void_p, _HANDLE],
    "context_bind_input": [*_AT, c_int32, c_void_p, c_size_t],
    "context_bind_output": [*_AT, c_int32, c_void_p, c_size_t],
    "context_run": [c_void_p],
    "context_run_limited": [c_void_p, c_void_p],
    "context_run_profiled": [c_void_p, POINTER(c_double), c_size_t],
    "session_from_file": [c_char_p, POINTER(SessionOptions), _HANDLE],
    "session_from_memory": [c_char_p, c_size_t, POINTER(SessionOptions), _HANDLE],
    "session_get_info": [c_void_p, POINTER(SessionInfo)],
    "session_input": [*_AT, POINTER(OpenPort)],
    "session_output": [*_AT, POINTER(OpenPort)],
    "session_state": [*_AT, POINTER(OpenPort)],
    "session_json": [c_void_p, _TEXT],
    "session_context_create": [c_void_p, _HANDLE],
    "session_context_run": [c_void_p, c_void_p, c_size_t, c_void_p],
    "session_context_run_into": [c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p],
    "session_context_output": [*_AT, c_void_p, POINTER(Tensor)],
    "session_context_start": [c_void_p, c_char_p, c_void_p, c_size_t],
    "session_context_set_state": [c_void_p, c_char_p, POINTER(Tensor)],
    "session_context_state": [c_void_p, c_char_p, POINTER(Tensor)],
    "session_context_reset": [c_void_p],
    "session_tuning_start": [c_void_p, POINTER(PlaceOptions), _HANDLE],
    "session_tuning_get_info": [c_void_p, POINTER(SessionTuningInfo)],
    "growing_context_create": [c_void_p, POINTER(GrowingOptions), _HANDLE],
    "growing_context_get_info": [c_void_p, POINTER(GrowingInfo)],
    "growing_context_input": [*_AT, POINTER(OpenPort)],
    "growing_context_run": [c_void_p, c_void_p, c_size_t, c_void_p],
    "growing_context_output": [*_AT, c_void_p, POINTER(Tensor)],
    "growing_context_cache": [c_void_p, c_char_p, POINTER(Tensor)],
    "growing_context_restore": [c_void_p, c_void_p, c_size_t],
    "growing_context_shorten": [c_void_p, c_int64],
    "growing_context_reset": [c_void_p],
    "trace_create": [POINTER(TraceOptions), _HANDLE],
    "trace_get_info": [c_void_p, POINTER(TraceInfo)],
    "trace_json": [c_void_p, _TEXT],
    "trace_save": [c_void_p, c_char_p],
    "context_run_traced": [c_void_p, c_void_p, c_void_p],
    "session_context_run_traced": [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p],
    "growing_context_run_traced": [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p],
}
# Functions that came later with the same version of the interface: an older library may lack them.
_NEWER = {"session_context_run_into",
          *(_name for _name in _CALLS if "trace" in _name or _name.startswith(("growing_context_", "session_tuning_")))}
_HANDLES = ("network", "plan", "engine", "context", "session", "session_context", "growing_context", "trace",
            "session_tuning")

lib: Any = _library.load()
for _name, _arguments in _CALLS.items():
    if _name in _NEWER and not hasattr(lib, "collage_" + _name):
        continue
    _function = getattr(lib, "collage_" + _name)
    _function.argtypes, _function.restype = _arguments, c_int
for _name in _HANDLES:
    if not hasattr(lib, f"collage_{_name}_release"):
        continue
    _function = getattr(lib, f"collage_{_name}_release")
    _function.argtypes, _function.restype = [c_void_p], None
lib.collage_last_error.argtypes, lib.collage_last_error.restype = [], c_char_p
lib.collage_version.argtypes, lib.collage_version.restype = [], c_char_p
lib.collage_set_log.argtypes, lib.collage_set_log.restype = [LogFunction, c_void_p], None


def has(name: str) -> bool:
    """Whether the library has one of the newer functions."""
    return hasattr(lib, "collage_" + name)


def text(value: Any) -> str:
    """A text of the library. Names in files may be no UTF-8; those bytes survive the way back by `encoded`."""
    return (value or b"").decode("utf-8", "surrogateescape")


def encoded(value: str, what: str) -> bytes:
    """A text for the library, which ends texts at a zero byte."""
    if not isinstance(value, str):
        raise errors.MisuseError(f"{what} is of type {type(value).__name__}; give a text")
    if "\0" in value:
        raise errors.MisuseError(f"{what} contains a zero character, {value!r}; leave it out")
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise errors.MisuseError(f"{what} is {value!r}, which is no text in UTF-8; leave out the surrogates") from None


def fail(status: int) -> NoReturn:
    """Raises the exception for a status of the last call in this thread."""
    raise errors.of_status(status, text(lib.collage_last_error()))


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a status, and raises its error."""
    status = getattr(lib, "collage_" + name)(*arguments)
    if status:
        fail(status)


def new(kind: Any, **members: Any) -> Any:
    """A struct that may grow, with its size in it."""
    return kind(struct_size=ctypes.sizeof(kind), **members)


def filled(name: str, kind: Any, *arguments: Any) -> Any:
    """A struct that a function has filled."""
    to = new(kind)
    call(name, *arguments, ctypes.byref(to))
    return to


def document(name: str, *arguments: Any) -> Any:
    """The JSON that a function returns, as Python data."""
    import json
    to = c_char_p()
    call(name, *arguments, ctypes.byref(to))
    return json.loads(text(to.value))
