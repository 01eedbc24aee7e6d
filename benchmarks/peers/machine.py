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


def lower_precision(cpuinfo: str) -> list[str]:
    """The instructions for bfloat16 and integers of 8 bits that the processor has, by the text of /proc/cpuinfo."""
    flags = next((line.partition(":")[2].split() for line in cpuinfo.splitlines() if line.startswith("flags")), [])
    return [flag for flag in LOWER_PRECISION if flag in flags]


def cpuinfo() -> str:
    try:
        return pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def describe() -> dict[str, str | int]:
    return {"processor": processor_name(cpuinfo()), "processors": len(os.sched_getaffinity(0))}


def today() -> str:
    return datetime.date.today().isoformat()
