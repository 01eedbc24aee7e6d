"""What a comparison ran on."""
from __future__ import annotations

import datetime
import os
import pathlib


def processor_name(cpuinfo: str) -> str:
    """From the text of /proc/cpuinfo, with what of the instruction set matters most, as plans name it."""
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, sign, value = line.partition(":")
        if sign:
            fields.setdefault(name.strip(), value.strip())
    flags = fields.get("flags", "").split()
    kind = next((f" ({short})" for flag, short in (("avx512f", "avx512"), ("avx2", "avx2")) if flag in flags), "")
    return fields.get("model name", "unknown processor") + kind


def describe() -> dict[str, str | int]:
    try:
        name = processor_name(pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        name = "unknown processor"
    return {"processor": name, "processors": len(os.sched_getaffinity(0))}


def today() -> str:
    return datetime.date.today().isoformat()
