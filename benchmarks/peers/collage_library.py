"""libcollage.so through its C interface (include/collage.h), as far as the comparison needs it."""
from __future__ import annotations

import ctypes
import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import Failure

ABI_VERSION = 1
MAX_RANK = 8
ANY_TYPE = 0


class Port(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_uint32), ("extents", ctypes.c_int64 * MAX_RANK), ("bytes", ctypes.c_size_t)]


class InputShape(ctypes.Structure):
    _fields_ = [("input", ctypes.c_char_p), ("extents", ctypes.POINTER(ctypes.c_int64)), ("rank", ctypes.c_size_t)]


class NetworkOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("shapes", ctypes.POINTER(InputShape)),
                ("shape_count", ctypes.c_size_t), ("values", ctypes.c_void_p), ("value_count", ctypes.c_size_t)]


class PlanLoadOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_int32),
                ("accept_version_change", ctypes.c_int32)]


ProgressFunction = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class PlaceOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_int32), ("how", ctypes.c_int32),
                ("backends", ctypes.c_char_p), ("store", ctypes.c_char_p), ("budget_s", ctypes.c_double),
                ("compare_s", ctypes.c_double), ("seed", ctypes.c_uint64), ("previous", ctypes.c_void_p),
                ("rules", ctypes.c_void_p), ("rule_count", ctypes.c_size_t), ("recheck", ctypes.c_int32),
                ("complete", ctypes.c_int32), ("progress", ProgressFunction), ("progress_data", ctypes.c_void_p)]


class EngineOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("release_weights", ctypes.c_int32)]


class EngineInfo(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("inputs", ctypes.c_size_t), ("outputs", ctypes.c_size_t),
                ("steps", ctypes.c_size_t), ("threads", ctypes.c_int32), ("waiting_policy", ctypes.c_char_p),
                ("arena_bytes", ctypes.c_size_t), ("arena_lower_bound", ctypes.c_size_t)]


@dataclasses.dataclass(frozen=True)
class PortInfo:
    """An input or output: its element type as numpy calls it."""

    name: str
    type: str
    shape: tuple[int, ...]
    bytes: int


class Library:
    """The library, opened: every call that fails becomes a Failure with the library's own sentence."""

    def __init__(self, path: str) -> None:
        try:
            self._library = ctypes.CDLL(path)
        except OSError as problem:
            raise Failure(f"{path}: cannot be opened: {problem}") from None
        try:
            abi = self._library.collage_abi_version()
        except AttributeError:
            raise Failure(f"{path}: is no libcollage.so: it lacks the C interface") from None
        if abi != ABI_VERSION:
            raise Failure(f"{path}: has version {abi} of the C interface, and this program knows version {ABI_VERSION}")
        for text in ("collage_version", "collage_last_error", "collage_dtype_name"):
            getattr(self._library, text).restype = ctypes.c_char_p
        self.path = path
        self.version: str = self._library.collage_version().decode()
        self.run = self._library.collage_context_run  # looked up once: it stands in what is timed
        self.run.argtypes = [ctypes.c_void_p]

    def call(self, name: str, *arguments: Any) -> None:
        if getattr(self._library, name)(*arguments) != 0:
            raise Failure(self._library.collage_last_error().decode())

    def made(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        """Calls a function whose last parameter receives a handle."""
        handle = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(handle))
        return handle

    def release(self, kind: str, handle: ctypes.c_void_p) -> None:
        function = getattr(self._library, f"collage_{kind}_release")
        function.restype = None
        function(handle)

    def json(self, name: str, *arguments: Any) -> Any:
        text = ctypes.c_char_p()
        self.call(name, *arguments, ctypes.byref(text))
        return json.loads(text.value or b"null")

    def system(self) -> Any:
        return self.json("collage_system_json")

    def network(self, path: str, shapes: Mapping[str, Sequence[int]]) -> ctypes.c_void_p:
        """Reads a file of ONNX; `shapes` are those of the inputs that it leaves open."""
        given = (InputShape * max(1, len(shapes)))()
        for entry, (name, extents) in zip(given, shapes.items()):
            entry.input = name.encode()
            entry.extents = (ctypes.c_int64 * max(1, len(extents)))(*extents)
            entry.rank = len(extents)
        options = NetworkOptions(ctypes.sizeof(NetworkOptions), given, len(shapes), None, 0)
        return self.made("collage_network_from_file", path.encode(), ctypes.byref(options))

    def plan_from_file(self, network: ctypes.c_void_p, path: str, threads: int) -> ctypes.c_void_p:
        options = PlanLoadOptions(ctypes.sizeof(PlanLoadOptions), threads, 0)
        return self.made("collage_plan_load", network, path.encode(), ctypes.byref(options))

    def plan_from_store(self, network: ctypes.c_void_p, store: str, threads: int,
                        backends: str | None) -> ctypes.c_void_p:
        """Places a network by what a store holds; a Failure where anything would have to be measured."""
        asked = []

        def stop(_data: Any, _now: Any) -> int:
            asked.append(True)
            return 1

        options = PlaceOptions(ctypes.sizeof(PlaceOptions), threads, 0, backends.encode() if backends else None,
                               store.encode())
        options.progress = ProgressFunction(stop)
        plan = self.made("collage_plan_place", network, ctypes.byref(options))
        placing = self.json("collage_plan_json", plan)["placing"]
        if placing["measured"] or placing["interrupted"]:
            self.release("plan", plan)
            raise Failure(f"{store}: does not hold all that placing this network needs")
        return plan

    def port(self, name: str, engine: ctypes.c_void_p, index: int) -> PortInfo:
        """`name` is collage_engine_input or collage_engine_output."""
        port = Port(ctypes.sizeof(Port))
        self.call(name, engine, ctypes.c_size_t(index), ctypes.byref(port))
        element = self._library.collage_dtype_name(port.dtype).decode()
        return PortInfo(port.name.decode(), element, tuple(port.extents[:port.rank]), port.bytes)

    def info(self, engine: ctypes.c_void_p) -> EngineInfo:
        info = EngineInfo(ctypes.sizeof(EngineInfo))
        self.call("collage_engine_get_info", engine, ctypes.byref(info))
        return info

    def bind(self, name: str, context: ctypes.c_void_p, index: int, array: Any) -> None:
        """`name` is collage_context_bind_input or collage_context_bind_output; the array has to outlive the binding."""
        self.call(name, context, ctypes.c_size_t(index), ctypes.c_int32(ANY_TYPE), ctypes.c_void_p(array.ctypes.data),
                  ctypes.c_size_t(array.nbytes))
