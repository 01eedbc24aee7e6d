"""The place of ONNX Runtime's inner modules, for programs that name them."""

from . import onnxruntime_pybind11_state

__all__ = ["onnxruntime_pybind11_state"]
