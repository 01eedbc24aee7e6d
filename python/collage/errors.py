"""Exceptions: each has the library's one sentence about what is wrong, where, and what to do."""
from __future__ import annotations

__all__ = ["CancelledError", "CollageError", "MisuseError"]

OK, FAILURE, MISUSE, CANCELLED = range(4)


class CollageError(RuntimeError):
    """The machine, another library or collage failed: memory, files, a kernel.

    Attributes:
        status: the ``collage_status`` of the C interface: 1 failure, 2 misuse, 3 cancelled.
    """

    status: int = FAILURE


class MisuseError(CollageError, ValueError):
    """A mistake of the caller, or a request that is not supported."""

    status = MISUSE


class CancelledError(CollageError):
    """The caller ended the call: by ``timeout``, by a ``StopFlag``, or by a progress function that returned "cancel"."""

    status = CANCELLED


class ProgramEndsError(CancelledError):
    """The program ends, and this call would keep it from its end."""


def of_status(status: int, sentence: str) -> CollageError:
    """The exception of a status of the C interface."""
    kind = {MISUSE: MisuseError, CANCELLED: CancelledError}.get(status, CollageError)
    return kind(sentence or f"collage failed with status {status}, and says nothing more")
