"""The library and the machine."""
from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from typing import Any, Optional

from . import _abi, errors

LogListener = Callable[[str, str], object]

_LEVELS = {0: "note", 1: "warning"}
_listener: Any = None


def version() -> str:
    """The version of the library, such as "0.1.0"."""
    return _abi.text(_abi.lib.collage_version())


def system() -> dict[str, Any]:
    """The library and the machine: the JSON object of ``collage_system_json``, with the backends and networks of the zoo."""
    document: dict[str, Any] = _abi.document("system_json")
    return document


def set_log(function: Optional[LogListener]) -> None:
    """Sets the function that gets the library's log: ``function(level, text)``, with level "note" or "warning"; None: none.

    It must not call this package, and what it raises is printed by sys.excepthook: it cannot be passed on.
    """
    global _listener
    if not (function is None or callable(function)):
        raise errors.MisuseError(f"the function is of type {type(function).__name__}; give a function, or None")

    def listen(_: Any, level: int, text: bytes) -> None:
        try:
            assert function is not None
            function(_LEVELS.get(level, "warning"), _abi.text(text))
        except BaseException:
            sys.excepthook(*sys.exc_info())

    made = _abi.LogFunction() if function is None else _abi.LogFunction(listen)
    _abi.lib.collage_set_log(made, None)
    _listener = made  # the one before is not called any more


atexit.register(set_log, None)
