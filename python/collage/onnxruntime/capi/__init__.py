"""The place of ONNX Runtime's exceptions, for programs that name it."""

from . import onnxruntime_pybind11_state

__all__ = ["onnxruntime_pybind11_state"]
