"""What programs take from ONNX Runtime's inner module: options, values and exceptions."""

from .._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from .._ports import NodeArg
from .._values import OrtDevice, OrtValue
from .onnxruntime_pybind11_state import *  # noqa: F401,F403
from .onnxruntime_pybind11_state import __all__ as _exceptions

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "NodeArg", "OrtDevice", "OrtValue", "RunOptions",
           "SessionOptions", *_exceptions]
