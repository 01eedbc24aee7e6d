#!/usr/bin/env python3
"""Measures what compiling with collage costs and prints it as tables for docs/compile-time.md.

usage: measure.py [--compiler COMPILER]... [--include FOLDER] [--rounds N] [--json FILE]

Without --compiler: g++, clang++-19 and nvcc, as far as they are here. Everything is compiled to objects with -O2. Times are
of the processor, all processes of a compilation together; sources are compiled in turn, and the median counts. The exact counts among these figures are
tested on every run, by tests/scale/.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import shutil
import sys
import tempfile

import compile_cost as cost

TOP = cost.HERE.parents[1]
INCLUDE_ROUNDS = 15
SIZES = [(nodes, patterns) for patterns in (8, 32) for nodes in (64, 128, 256, 512, 1024, 2000)]
ENUMERATED_SIZES = [(256, 32), (1024, 32)]
RECURSIVE_SIZES = [(64, 8), (128, 32), (256, 32)]
STEPS_NODES = 256
CLANG_STEPS = 1 << 20
GCC_OPERATIONS = 1 << 25


def print_table(title: str, head: list[str], rows: list[list[str]]) -> None:
    print(f"\n{title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def including(compiler: cost.Compiler, folder: pathlib.Path, rounds: int) -> dict:
    sources = {"an empty file": cost.write(folder, "empty.cpp", ""),
               "`<array> <span> <concepts> <type_traits>`": cost.write(folder, "standard.cpp", cost.STANDARD_FOUR),
               "`<collage/collage.hpp>`": cost.write(folder, "umbrella.cpp", cost.UMBRELLA)}
    costs = cost.compile_interleaved(compiler, sources, rounds)
    empty, standard, umbrella = (each.median for each in costs.values())
    rows = [[name, f"{each.median:.3f} ± {each.spread:.3f}", f"{each.median - empty:.3f}",
             f"{(each.median - empty) / (standard - empty):.2f}", str(cost.preprocessed_lines(compiler, sources[name])),
             f"{each.megabytes:.0f}"] for name, each in costs.items()]
    print_table(f"{compiler.name}: including ({compiler.version}; median of {rounds})",
                ["", "s", "s over empty", "of the four headers", "lines", "MB"], rows)
    return {"empty": empty, "standard_four": standard, "umbrella": umbrella,
            "ratio": (umbrella - empty) / (standard - empty)}


def matching(compiler: cost.Compiler, folder: pathlib.Path, rounds: int) -> dict:
    umbrella = cost.write(folder, "umbrella.cpp", cost.UMBRELLA)
    base_classes = 0 if compiler.is_nvcc else cost.class_instantiations(compiler, umbrella)
    seconds, rows, found = {}, [], {}
    for nodes, patterns in SIZES:
        source = cost.write(folder, f"match-{nodes}-{patterns}.cpp", cost.matching_source(nodes, patterns))
        costs = cost.compile_interleaved(compiler, {"umbrella": umbrella, "match": source}, rounds)
        over = costs["match"].median - costs["umbrella"].median
        memory = costs["match"].megabytes - costs["umbrella"].megabytes
        classes = "" if compiler.is_nvcc else str(cost.class_instantiations(compiler, source) - base_classes)
        seconds[nodes, patterns] = over
        rows.append([str(nodes), str(patterns), f"{over:.2f} ± {costs['match'].spread:.2f}", f"{memory:.0f}", classes])
        found[f"{nodes}x{patterns}"] = {"seconds": over, "megabytes": memory, "classes": classes}
    print_table(f"{compiler.name}: a static graph and its patterns, over the umbrella alone (median of {rounds})",
                ["nodes", "patterns", "s", "MB", "classes"], rows)

    small, middle, large = SIZES[1][0], SIZES[3][0], SIZES[5][0]
    slopes = []
    for patterns in (8, 32):
        first = (seconds[middle, patterns] - seconds[small, patterns]) / (middle - small)
        second = (seconds[large, patterns] - seconds[middle, patterns]) / (large - middle)
        slopes.append([f"a node, {patterns} patterns", f"{1e3 * first:.2f}", f"{1e3 * second:.2f}"])
    for nodes in (256, 2000):
        slope = (seconds[nodes, 32] - seconds[nodes, 8]) / 24
        slopes.append([f"a pattern, {nodes} nodes", f"{1e3 * slope:.2f}", ""])
    print_table(f"{compiler.name}: slopes", ["one more", f"ms ({small} to {middle} nodes)", f"ms ({middle} to {large} nodes)"],
                slopes)
    return found


def enumerating(compiler: cost.Compiler, folder: pathlib.Path, rounds: int) -> dict:
    umbrella = cost.write(folder, "umbrella.cpp", cost.UMBRELLA)
    rows, found = [], {}
    for nodes, patterns in ENUMERATED_SIZES:
        source = cost.write(folder, f"enumerate-{nodes}-{patterns}.cpp", cost.enumerating_source(nodes, patterns))
        costs = cost.compile_interleaved(compiler, {"umbrella": umbrella, "set": source}, rounds)
        over = costs["set"].median - costs["umbrella"].median
        memory = costs["set"].megabytes - costs["umbrella"].megabytes
        rows.append([str(nodes), str(patterns), f"{over:.2f} ± {costs['set'].spread:.2f}", f"{memory:.0f}"])
        found[f"{nodes}x{patterns}"] = {"seconds": over, "megabytes": memory}
    print_table(f"{compiler.name}: the candidates of a backend set, over the umbrella alone (median of {rounds})",
                ["nodes", "patterns", "s", "MB"], rows)
    return found


def symbols_and_steps(compiler: cost.Compiler, folder: pathlib.Path) -> dict:
    source = cost.write(folder, "symbols.cpp", cost.matching_source(256, 8) + cost.RUN_TIME_USE)
    longest = cost.longest_symbol(compiler, source)
    print(f"\n{compiler.name}: longest symbol of an object with a graph, patterns and the matcher: {len(longest)} characters")
    most, unit = (CLANG_STEPS, "steps") if compiler.is_clang else (GCC_OPERATIONS, "operations")
    rows, before, found = [], 0, {}
    for evaluation in cost.EVALUATIONS:
        source = cost.write(folder, f"{evaluation}.cpp", cost.evaluation_source(STEPS_NODES, evaluation))
        limit = cost.least_limit(compiler, source, most, STEPS_NODES)
        # What lies under the evaluations before it cannot be told apart.
        rows.append([evaluation, f"{'' if limit > before + STEPS_NODES else 'at most '}{limit / STEPS_NODES:.0f}"])
        found[evaluation] = limit / STEPS_NODES
        before = max(before, limit)
    print_table(f"{compiler.name}: {unit} a node of each evaluation, {STEPS_NODES} nodes; 2,000 nodes may take "
                f"{most // 2000} each", ["evaluation", unit], rows)
    return {"longest_symbol": len(longest), unit: found}


def recursive(compiler: cost.Compiler, folder: pathlib.Path, rounds: int) -> dict:
    """The same work by recursive specialisation; it includes no collage, so that its own includes are all it is over."""
    umbrella = cost.write(folder, "umbrella.cpp", cost.UMBRELLA)
    base = cost.write(folder, "recursive-base.cpp", "#include <type_traits>\n#include <utility>\n")
    rows, found = [], {}
    for nodes, patterns in RECURSIVE_SIZES:
        answers = cost.count_matches(compiler, folder, nodes, patterns)
        sources = {"base": base, "umbrella": umbrella,
                   "recursive": cost.write(folder, f"recursive-{nodes}-{patterns}.cpp",
                                           cost.recursive_source(nodes, patterns, answers)),
                   "arrays": cost.write(folder, f"arrays-{nodes}-{patterns}.cpp",
                                        cost.matching_source(nodes, patterns, answers))}
        costs = cost.compile_interleaved(compiler, sources, rounds)
        for name, over in (("recursive", "base"), ("arrays", "umbrella")):
            seconds = costs[name].median - costs[over].median
            memory = costs[name].megabytes - costs[over].megabytes
            classes = (cost.class_instantiations(compiler, sources[name]) - cost.class_instantiations(compiler, sources[over]))
            rows.append([f"{nodes} x {patterns}", "recursive specialisation" if name == "recursive" else "collage",
                         f"{seconds:.2f}", f"{memory:.0f}", str(classes)])
            found[f"{nodes}x{patterns} {name}"] = {"seconds": seconds, "megabytes": memory, "classes": classes}
    print_table(f"{compiler.name}: the same matches by recursive specialisation, each over its own includes (median of {rounds})",
                ["nodes x patterns", "", "s", "MB", "classes"], rows)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", action="append", help="a compiler to measure; may be given several times")
    parser.add_argument("--include", type=pathlib.Path, default=TOP / "include", help="where collage/ lies")
    parser.add_argument("--rounds", type=int, default=5, help=f"of graphs and patterns; includes take {INCLUDE_ROUNDS}")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures to this file")
    asked = parser.parse_args()

    wanted = asked.compiler or [name for name in ("g++", "clang++-19", cost.find_nvcc()) if name]
    compilers = []
    for name in wanted:
        if shutil.which(name):
            compilers.append(cost.Compiler(name, asked.include))
        elif asked.compiler:
            parser.error(f"{name} is not installed")
        else:
            print(f"left out: {name} is not installed")

    figures = {}
    with tempfile.TemporaryDirectory() as place:
        for compiler in compilers:
            folder = pathlib.Path(place) / compiler.name
            figures[compiler.name] = {"including": including(compiler, folder, INCLUDE_ROUNDS)}
            figures[compiler.name]["matching"] = matching(compiler, folder, asked.rounds)
            figures[compiler.name]["enumerating"] = enumerating(compiler, folder, asked.rounds)
            if compiler.is_nvcc:
                continue
            figures[compiler.name].update(symbols_and_steps(compiler, folder))
            figures[compiler.name]["recursive"] = recursive(compiler, folder, asked.rounds)
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
