"""What programs take from ONNX Runtime's inner module: exceptions, options, values, devices and functions."""

from .. import _errors
from .._errors import *  # noqa: F401,F403
from .._inner import SessionIOBinding
from .._model_file import ModelMetadata
from .._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from .._ports import NodeArg
from .._process import *  # noqa: F401,F403
from .._process import __all__ as _functions
from .._values import OrtDevice, OrtValue, OrtValueVector

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "ModelMetadata", "NodeArg", "OrtDevice", "OrtValue",
           "OrtValueVector", "RunOptions", "SessionIOBinding", "SessionOptions", *_errors.__all__, *_functions]

for _name in _errors.__all__:  # traces of exceptions name the module from which programs import them
    getattr(_errors, _name).__module__ = __name__
