#!/usr/bin/env python3
"""Checks what including <collage/collage.hpp> reads: how many lines, and which headers besides our own.

usage: include_cost.py COMPILER INCLUDE_FOLDER WORK_FOLDER

How long it takes is measured by benchmarks/compile/measure.py; these are the counts that the time follows from.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "compile"))
import compile_cost as cost  # noqa: E402

MOST_LINES = 20_000
# <span> alone would cost more than all headers of the umbrella together; <exception> and <new> are collage::error's.
MAY_READ = ("concepts", "cstddef", "cstdint", "exception", "initializer_list", "new", "type_traits")


def main() -> int:
    include = pathlib.Path(sys.argv[2])
    compiler = cost.Compiler(sys.argv[1], include)
    folder = pathlib.Path(sys.argv[3]) / f"include_cost-{compiler.name}"
    umbrella = cost.write(folder, "umbrella.cpp", cost.UMBRELLA)
    allowed = cost.write(folder, "allowed.cpp", "".join(f"#include <{name}>\n" for name in MAY_READ))

    wrong = []
    lines = cost.preprocessed_lines(compiler, umbrella)
    if lines > MOST_LINES:
        wrong.append(f"the umbrella has {lines} lines after preprocessing, more than {MOST_LINES}")
    read = cost.headers_read(compiler, umbrella)
    known = set(cost.headers_read(compiler, allowed))
    ours = [header for header in read if pathlib.Path(header).is_relative_to(include)]
    if len(ours) < 20:
        wrong.append(f"only {len(ours)} headers of {include} are read: the list of headers is not understood")
    for header in sorted(set(read) - set(ours) - known):
        name = pathlib.Path(header).name
        say = "which costs its includer too much" if name in cost.FORBIDDEN else "which none of its few headers reads"
        wrong.append(f"the umbrella reads {header}, {say}")
    print("\n".join(wrong) or f"{compiler.name}: {lines} lines, {len(ours)} headers of ours, {len(read) - len(ours)} others")
    return 1 if wrong else 0


sys.exit(main())
