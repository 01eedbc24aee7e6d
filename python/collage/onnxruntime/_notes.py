"""Notes for the user, by Python's logging: each is written once in a process."""

from __future__ import annotations

import logging
import operator
from typing import Set

log = logging.getLogger("collage.onnxruntime")
_written: Set[str] = set()


def once(text: str, level: int = logging.WARNING) -> None:
    """Logs a note, unless the same one was logged before."""
    if text not in _written:
        _written.add(text)
        log.log(level, "%s", text)


def set_severity(severity: int) -> None:
    """Sets the least severity of notes, by ONNX Runtime's numbers: 0 for everything, 4 for almost nothing."""
    try:
        severity = operator.index(severity)
    except TypeError:
        raise TypeError(f"the severity is {severity!r}; give a number from 0 (verbose) to 4 (fatal)") from None
    if not 0 <= severity <= 4:
        raise RuntimeError(f"{severity} is no severity: give a number from 0 (verbose) to 4 (fatal)")
    log.setLevel((logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)[severity])
