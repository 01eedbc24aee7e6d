"""ONNX Runtime's interface over collage: `import collage.onnxruntime as ort`.

What programs usually need is here: InferenceSession with run, run_async and bound memory, OrtValue, options, metadata and
profiles. docs/python-onnxruntime.md lists what works, what is accepted without effect and what is refused. Notes are written by
the logger "collage.onnxruntime".
"""

from __future__ import annotations

import sys
from typing import Any

from . import _binding, _inner, capi
from ._binding import IOBinding
from ._inner import SessionIOBinding
from ._model_file import ModelMetadata
from ._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from ._ports import NodeArg
from ._process import (VERSION, disable_telemetry_events, enable_telemetry_events, get_all_providers, get_available_providers,
                       get_build_info, get_device, get_ep_devices, get_version_string, has_collective_ops,
                       set_default_logger_severity, set_default_logger_verbosity, set_seed)
from ._session import InferenceSession
from ._values import OrtDevice, OrtDeviceVendorId, OrtValue
from .capi import _pybind_state, onnxruntime_inference_collection  # noqa: F401  (programs find them by their names)

__all__ = [
    "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata", "NodeArg",
    "OrtDevice", "OrtDeviceVendorId", "OrtValue", "RunOptions", "SessionIOBinding", "SessionOptions", "capi",
    "disable_telemetry_events", "enable_telemetry_events", "get_all_providers", "get_available_providers", "get_build_info",
    "get_device", "get_ep_devices", "get_version_string", "has_collective_ops", "install", "preload_dlls",
    "set_default_logger_severity", "set_default_logger_verbosity", "set_seed",
]

__version__ = VERSION

# Annotations name classes of modules that need each other. Here typing.get_type_hints finds all of them.
vars(_binding).update(InferenceSession=InferenceSession)
vars(_inner).update(InferenceSession=InferenceSession, IOBinding=IOBinding)

_NAME = __name__


def preload_dlls(*_: Any, **__: Any) -> None:
    """Without effect: there are no libraries of a graphics card to load."""


def install() -> None:
    """Makes `import onnxruntime` find this module, also in other packages. Call it before they are imported.

    Raises RuntimeError if ONNX Runtime itself is imported already.
    """
    found: Any = sys.modules.get("onnxruntime")
    if found is not None and found.__name__ != _NAME:
        raise RuntimeError("onnxruntime is imported already; call collage.onnxruntime.install() before the first import of it")
    for name, module in list(sys.modules.items()):
        if name == _NAME or name.startswith(_NAME + ".capi"):
            sys.modules["onnxruntime" + name[len(_NAME):]] = module
