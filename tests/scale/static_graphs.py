#!/usr/bin/env python3
"""Checks how the work of the compiler grows with the nodes of a static graph and with the patterns matched in it.

usage: static_graphs.py COMPILER INCLUDE_FOLDER WORK_FOLDER

All figures are exact counts, the same on every machine: classes made from templates, lengths of symbols, and, with
clang, steps of constant evaluation.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "compile"))
import compile_cost as cost  # noqa: E402

CLASSES_PER_NODE = 2
CLASSES_PER_PATTERN = 2
CLASSES_PER_PATTERN_SIZE = 3
LONGEST_SYMBOL = 256
STEPS_PER_NODE = 400
LARGEST_GRAPH = 2000


def check_classes(compiler: cost.Compiler, folder: pathlib.Path) -> list[str]:
    """Of patterns matched at every node, and of a backend set whose candidates are listed."""
    few, many = 8, 32
    umbrella = cost.class_instantiations(compiler, cost.write(folder, "umbrella.cpp", cost.UMBRELLA))
    sizes = len(cost.pattern_sizes(many) - cost.pattern_sizes(few))
    most = CLASSES_PER_PATTERN * (many - few) + CLASSES_PER_PATTERN_SIZE * sizes
    wrong = []
    for work, source_of, larger in (("matching", cost.matching_source, (256, 512, 1024)),
                                    ("enumerating", cost.enumerating_source, (256,))):
        made = {}
        for nodes, patterns in [(128, few), *((nodes, few) for nodes in larger), (128, many), (256, many)]:
            source = cost.write(folder, f"{work}-{nodes}-{patterns}.cpp", source_of(nodes, patterns))
            made[nodes, patterns] = cost.class_instantiations(compiler, source)
        print(f"{compiler.name}: {work}, classes made from templates, {umbrella} of them for the umbrella: "
              + ", ".join(f"{nodes} x {patterns}: {count}" for (nodes, patterns), count in made.items()))

        if made[128, few] <= umbrella:
            wrong.append("a static graph makes no class at all: the classes are not counted rightly")
        for nodes in larger:
            more = made[nodes, few] - made[128, few]
            if more > CLASSES_PER_NODE * (nodes - 128):
                wrong.append(f"{work}: {nodes - 128} nodes more make {more} classes, more than {CLASSES_PER_NODE} a node")
        per_patterns = made[128, many] - made[128, few]
        if per_patterns > most:
            wrong.append(f"{work}: {many - few} patterns more, of {sizes} more sizes, make {per_patterns} classes, more than {most}")
        if made[256, many] - made[256, few] != per_patterns:
            wrong.append(f"{work}: {many - few} patterns more make {per_patterns} classes with 128 nodes and "
                         f"{made[256, many] - made[256, few]} with 256: there are classes for pairs of node and pattern")
    return wrong


def check_symbols(compiler: cost.Compiler, folder: pathlib.Path) -> list[str]:
    sources = [cost.write(folder, "match-symbols.cpp", cost.matching_source(128, 8) + cost.RUN_TIME_USE),
               cost.write(folder, "enumerate-symbols.cpp", cost.enumerating_source(128, 8))]
    longest = max((cost.longest_symbol(compiler, source) for source in sources), key=len)
    print(f"{compiler.name}: the longest symbol has {len(longest)} characters: {longest}")
    if "network" not in longest and len(longest) < 20:
        return ["an object without symbols: the symbols are not listed rightly"]
    return [f"a symbol has {len(longest)} characters, more than {LONGEST_SYMBOL}"] if len(longest) > LONGEST_SYMBOL else []


def check_steps(compiler: cost.Compiler, folder: pathlib.Path) -> list[str]:
    """Every evaluation (counting, writing, checking, inferring, finishing, matching) has to stay below the limit."""
    wrong = []
    for nodes in (128, 1024):
        source = cost.write(folder, f"steps-{nodes}.cpp", cost.matching_source(nodes, 8))
        if compiler.accepts(source, "-fsyntax-only", f"-fconstexpr-steps={nodes}"):
            wrong.append(f"{nodes} nodes take less than a step each: the limit has no effect")
        if not compiler.accepts(source, "-fsyntax-only", f"-fconstexpr-steps={STEPS_PER_NODE * nodes}"):
            wrong.append(f"a graph of {nodes} nodes takes more than {STEPS_PER_NODE} steps a node in one evaluation")
    return wrong


def check_largest(compiler: cost.Compiler, folder: pathlib.Path) -> list[str]:
    wrong = []
    for way, text in (("one statement each", cost.matching_source(LARGEST_GRAPH, 2)),
                      ("in a loop", cost.matching_source(LARGEST_GRAPH, 2, with_loop=True)),
                      ("one statement each, with a backend set", cost.enumerating_source(LARGEST_GRAPH, 2))):
        if not compiler.accepts(cost.write(folder, "largest.cpp", text), "-fsyntax-only"):
            wrong.append(f"{LARGEST_GRAPH} nodes, {way}, do not compile with the default limits")
    return wrong


def main() -> int:
    compiler = cost.Compiler(sys.argv[1], pathlib.Path(sys.argv[2]))
    folder = pathlib.Path(sys.argv[3]) / f"static_graphs-{compiler.name}"
    wrong = check_classes(compiler, folder) + check_symbols(compiler, folder) + check_largest(compiler, folder)
    if compiler.is_clang:
        wrong += check_steps(compiler, folder)
    print("\n".join(wrong) or f"{compiler.name}: all counts are within their bounds")
    return 1 if wrong else 0


sys.exit(main())
