"""The place of ONNX Runtime's classes, for programs that name it, as in the types of arguments."""

from .._binding import IOBinding
from .._placing import check_and_normalize_provider_args
from .._session import InferenceSession
from .._values import OrtDevice, OrtDeviceVendorId, OrtValue, get_ort_device_type

Session = InferenceSession

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtDeviceVendorId", "OrtValue", "Session",
           "check_and_normalize_provider_args", "get_ort_device_type"]
