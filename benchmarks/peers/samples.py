"""Rows as comparisons make them, for the tests."""
from __future__ import annotations

from typing import Any

from .comparison import row_of


def raced(**factors: float) -> dict[str, Any]:
    """A race in which each engine takes so many milliseconds in the first round, and 1 % more in each further one."""
    names = [name.replace("_", " ") for name in factors]
    rounds = [[factor * 1.01**number for number in range(9)] for factor in factors.values()]
    pairs = [{"engines": [a, b], "worst": 2e-6, "why": ""} for i, b in enumerate(names) for a in names[i + 1:]]
    return {"names": names, "rounds_ms": rounds, "pairs": pairs, "rounds": 9, "calm": True, "disturbed_rounds": 0}


def row(workload: str, threads: int = 1, backends: str = "all", *, ours: float = 4.0, onnxruntime: float = 5.0,
        openvino: float = 4.4, **more: Any) -> dict[str, Any]:
    figures = row_of(raced(onnxruntime=onnxruntime, openvino=openvino, collage_all=ours), "collage all", {})
    return {"workload": workload, "threads": threads, "backends": backends, **figures, "gflop": 0.84, "model_mb": 25.0,
            "tune_s": 20.0, "tune_interrupted": False, **more}


MACHINE: dict[str, Any] = {"processor": "AMD EPYC (avx512)", "processors": 2, "date": "2026-01-02",
                           "versions": {"onnxruntime": "1.0", "openvino": "2.0", "collage": "0.1.0"},
                           "peaks": {"1": {"gflops": 210.0, "by": "numpy", "calm": True},
                                     "2": {"gflops": 420.0, "by": "openvino", "calm": False}}}
