"""Ownership of the library's handles, and what a fork changes."""
from __future__ import annotations

import ctypes
import os
import threading
import weakref
from typing import Any, NoReturn

from . import _abi, errors

_forked: weakref.WeakSet[Any] = weakref.WeakSet()


def tell_after_fork(thing: Any) -> None:
    """Has ``thing._after_fork()`` called in each child, where other threads, and what they hold, do not exist."""
    _forked.add(thing)


def _in_child() -> None:
    for thing in list(_forked):
        thing._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class Handle:
    """Owns one handle of the library. ``with handle as pointer:`` keeps it alive during a call."""

    __slots__ = ("_pointer", "_release", "_users", "_closed", "_lock", "_what", "__weakref__")

    def __init__(self, kind: str, maker: str, *arguments: Any) -> None:
        self._pointer = 0
        to = ctypes.c_void_p()
        _abi.call(maker, *arguments, ctypes.byref(to))
        self._pointer = int(to.value or 0)
        self._release = getattr(_abi.lib, f"collage_{kind}_release")
        self._what = kind.replace("_", " ")
        self._users = 0
        self._closed = False
        self._lock = threading.Lock()
        tell_after_fork(self)

    def __enter__(self) -> int:
        with self._lock:
            if self._closed:
                raise errors.MisuseError(f"the {self._what} is closed; make another one")
            self._users += 1
        return self._pointer

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            last = self._closed and self._users == 0
        if last:
            self._free()

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def pointer(self) -> int:
        """The address, for callers that keep this object alive and never close it."""
        return self._pointer

    def close(self) -> None:
        """Releases the handle, at the end of the calls that use it now."""
        with self._lock:
            last = not self._closed and self._users == 0
            self._closed = True
        if last:
            self._free()

    def _free(self) -> None:
        pointer, self._pointer = self._pointer, 0
        if pointer:
            self._release(pointer)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._users = 0

    def __del__(self) -> None:
        if getattr(self, "_pointer", 0):
            self._free()


class Unpicklable:
    """What holds memory and kernels of this process."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f"a collage.{type(self).__name__} cannot be pickled or copied: it holds memory and kernels of this process; "
                        "load the model in each process, with a plan that Plan.save has written")
