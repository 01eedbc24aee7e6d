#!/usr/bin/env python3
"""Checks that nvcc compiles the umbrella, and a static graph with patterns; skipped where nvcc is not installed.

usage: nvcc.py INCLUDE_FOLDER WORK_FOLDER
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "compile"))
import compile_cost as cost  # noqa: E402

SKIPPED = 77


def main() -> int:
    command = cost.find_nvcc()
    if command is None:
        print("skipped: nvcc is not installed")
        return SKIPPED
    compiler, folder = cost.Compiler(command, pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2]) / "nvcc"
    for name, text in (("umbrella.cu", cost.UMBRELLA), ("match.cu", cost.matching_source(64, 8) + cost.RUN_TIME_USE)):
        compiler.compile(cost.write(folder, name, text), cost.Cost())
    print(f"{compiler.version}: compiles the umbrella, and a static graph with patterns")
    return 0


sys.exit(main())
