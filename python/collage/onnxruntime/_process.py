"""What ONNX Runtime's module says about itself and the machine, and what it sets for the whole process."""

from __future__ import annotations

from typing import Any, List

import collage

from . import _notes

__all__ = [
    "disable_telemetry_events", "enable_telemetry_events", "get_all_providers", "get_available_providers", "get_build_info",
    "get_device", "get_ep_devices", "get_version_string", "has_collective_ops", "set_default_logger_severity",
    "set_default_logger_verbosity", "set_seed",
]

VERSION = "1.32.0"
"""The version of ONNX Runtime whose interface this is. collage.version() is collage's own."""


def get_available_providers() -> List[str]:
    """["CPUExecutionProvider"]: all kernels run on the processor."""
    return ["CPUExecutionProvider"]


def get_all_providers() -> List[str]:
    """The same: collage chooses between backends itself."""
    return ["CPUExecutionProvider"]


def get_ep_devices() -> List[Any]:
    """[]: there are no devices of other providers."""
    return []


def get_device() -> str:
    """"CPU"."""
    return "CPU"


def has_collective_ops() -> bool:
    """False: operators of several machines are not supported."""
    return False


def get_version_string() -> str:
    """The version of ONNX Runtime whose interface this is."""
    return VERSION


def get_build_info() -> str:
    """Which collage this is."""
    return f"collage {collage.version()}, with the interface of ONNX Runtime {VERSION}"


def set_default_logger_severity(severity: int) -> None:
    """Sets the least severity of notes: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal."""
    _notes.set_severity(severity)


def set_default_logger_verbosity(verbosity: int) -> None:
    """Without effect."""


def set_seed(seed: int) -> None:
    """Without effect: no operator that collage runs draws random numbers of its own."""


def enable_telemetry_events() -> None:
    """Without effect: nothing is ever sent."""


def disable_telemetry_events() -> None:
    """Without effect: nothing is ever sent."""
