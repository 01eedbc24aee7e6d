"""The place of ONNX Runtime's classes, for programs that name it, as in the types of arguments."""

from .._binding import IOBinding
from .._session import InferenceSession
from .._values import OrtDevice, OrtValue

Session = InferenceSession

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue", "Session"]
