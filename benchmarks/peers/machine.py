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


LOWER_PRECISION = ("avx512_bf16", "avx512_vnni", "avx_vnni", "amx_bf16", "amx_int8")


def lower_precision() -> str:
    """The instructions for bfloat16 and integers of 8 bits that the processor has, as the system calls them."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    line = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return ", ".join(flag for flag in LOWER_PRECISION if flag in line.split())


def describe() -> dict[str, str | int]:
    try:
        name = processor_name(pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        name = "unknown processor"
    return {"processor": name, "processors": len(os.sched_getaffinity(0))}


def today() -> str:
    return datetime.date.today().isoformat()
