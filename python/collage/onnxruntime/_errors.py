"""The exceptions of ONNX Runtime. Programs import them from capi.onnxruntime_pybind11_state.

As there, they derive from Exception alone: `except RuntimeError` does not catch them.
"""

from __future__ import annotations

from typing import Type

__all__ = [
    "DeviceReset", "EPFail", "EngineError", "Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoadCanceled",
    "ModelLoaded", "ModelRequiresCompilation", "NoModel", "NoSuchFile", "NotFound", "NotImplemented", "RuntimeException",
]


class Fail(Exception):
    """A run failed, or RunOptions.terminate ended it."""


class InvalidArgument(Exception):
    """An input, an output's name or an option does not fit."""


class NoSuchFile(Exception):
    """The model's file does not exist."""


class NoModel(Exception):
    """No model is loaded. collage never raises it."""


class EngineError(Exception):
    """An engine failed. collage never raises it."""


class RuntimeException(Exception):
    """The machine or a library failed: memory, files, a kernel."""


class InvalidProtobuf(Exception):
    """The model's file is not an ONNX model, or is cut short."""


class ModelLoaded(Exception):
    """A model is loaded already. collage never raises it."""


class NotImplemented(Exception):  # ONNX Runtime's name, in its own module
    """The model or the call needs something that is not supported."""


class InvalidGraph(Exception):
    """The model's graph is wrong."""


class EPFail(Exception):
    """An execution provider failed. collage never raises it."""


class ModelLoadCanceled(Exception):
    """Loading was cancelled. collage never raises it."""


class ModelRequiresCompilation(Exception):
    """The model must be compiled first. collage never raises it."""


class NotFound(Exception):
    """Something that was named is not there. collage never raises it."""


class DeviceReset(Exception):
    """A device was reset. collage never raises it."""


# The words and numbers that ONNX Runtime prints for its status codes. Programs look for them in messages.
_STATUS = {
    Fail: (1, "FAIL"), InvalidArgument: (2, "INVALID_ARGUMENT"), NoSuchFile: (3, "NO_SUCHFILE"),
    RuntimeException: (6, "RUNTIME_EXCEPTION"), InvalidProtobuf: (7, "INVALID_PROTOBUF"),
    NotImplemented: (9, "NOT_IMPLEMENTED"), InvalidGraph: (10, "INVALID_GRAPH"),
}


def made(kind: Type[Exception], sentence: str) -> Exception:
    """An exception of this kind: the number and the word of its status, then the sentence."""
    number, word = _STATUS[kind]
    return kind(f"[collage] : {number} : {word} : {sentence}")
