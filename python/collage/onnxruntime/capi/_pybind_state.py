"""The same as onnxruntime_pybind11_state, under the name by which ONNX Runtime's own Python has it."""

from .onnxruntime_pybind11_state import *  # noqa: F401,F403
from .onnxruntime_pybind11_state import __all__ as __all__
