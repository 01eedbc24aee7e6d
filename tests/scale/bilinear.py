#!/usr/bin/env python3
"""Checks what bilinear algorithms cost the compiler: including them proves nothing, and each proof stays small.

usage: bilinear.py COMPILER INCLUDE_FOLDER WORK_FOLDER

All figures are exact counts: lines, headers, classes made from templates and, with clang, steps of constant evaluation.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "compile"))
import compile_cost as cost  # noqa: E402

INCLUDE = "#include <collage/bilinear/all.hpp>\nnamespace b = collage::bilinear;\n"
WITHOUT_SHIPPED = "".join(f"#include <collage/bilinear/{name}.hpp>\n" for name in ("apply", "combine", "direct", "scheme", "toom_cook"))
MOST_LINES = 10_000
MOST_CLASSES = 10  # of declarations: their problems and products, and no algorithm
STEPS_OF_INCLUDING = 1_000
STEPS_OF_A_PROOF = 110_000  # a tenth of what clang allows by default
STEPS_OF_A_PROGRAM = 170_000

# Proved by themselves; and made of them, where the proof of the parts must do.
PROVED = ("strassen", "winograd", "laderman", "hopcroft_kerr", "f_2_2", "f_3_2", "f_4_2", "f_2_3", "f_4_3", "f_4_3_accurate", "f_6_3",
          "f_2_5", "f_4_5")
MADE = {"two_strassen": "strassen", "strassen_2_2_3": "strassen", "strassen_4_2_2": "strassen",
        "up2_f_4_2": "f_4_2", "in_two_dimensions<b::up2_f_4_2>": "f_4_2", "in_two_dimensions<b::f_4_3>": "f_4_3", "in_two_dimensions<b::f_6_3>": "f_6_3"}
# So large that the search for shared subexpressions ends early.
LARGE = ("rotated<b::nested<b::laderman, b::strassen>>", "nested<b::two_strassen, b::strassen>")


def is_named(algorithm: str) -> str:
    return f"static_assert(b::{algorithm}::rank > 0);\n"


def is_counted(algorithm: str) -> str:
    return f"static_assert(b::{algorithm}::counts.additions() > 0 && b::{algorithm}::error.growth > 0);\n"


def check_including(compiler: cost.Compiler, folder: pathlib.Path) -> list[str]:
    source = cost.write(folder, "include.cpp", INCLUDE)
    lines, classes = cost.preprocessed_lines(compiler, source), cost.class_instantiations(compiler, source)
    without = cost.class_instantiations(compiler, cost.write(folder, "without.cpp", WITHOUT_SHIPPED))
    print(f"{compiler.name}: including all algorithms reads {lines} lines, and those that are shipped make {classes - without} classes")
    wrong = []
    if lines > MOST_LINES:
        wrong.append(f"including all algorithms reads {lines} lines, more than {MOST_LINES}")
    if classes - without > MOST_CLASSES:
        wrong.append(f"the shipped algorithms make {classes - without} classes, more than {MOST_CLASSES}: something is proved")
    named = cost.class_instantiations(compiler, cost.write(folder, "named.cpp", INCLUDE + is_named("strassen")))
    if named == classes:
        wrong.append("naming strassen makes no class: the classes are not counted rightly")
    read = {pathlib.Path(header).name for header in cost.headers_read(compiler, source) if "/bits/" not in header}
    wrong += [f"including all algorithms reads <{name}>" for name in sorted(read & cost.FORBIDDEN)]
    return wrong


def check_default_limits(compiler: cost.Compiler, folder: pathlib.Path) -> list[str]:
    text = INCLUDE + "".join(is_counted(name) for name in (*PROVED, *MADE, *LARGE))
    if compiler.accepts(cost.write(folder, "all.cpp", text), "-fsyntax-only"):
        return []
    return ["not all algorithms can be counted with the default limits"]


def check_steps(compiler: cost.Compiler, folder: pathlib.Path) -> list[str]:
    def within(text: str, steps: int) -> bool:
        return compiler.accepts(cost.write(folder, "steps.cpp", INCLUDE + text), "-fsyntax-only", f"-fconstexpr-steps={steps}")

    wrong = []
    if not within("", STEPS_OF_INCLUDING):
        wrong.append(f"including all algorithms takes more than {STEPS_OF_INCLUDING} steps: something is proved")
    if within(is_named("strassen"), STEPS_OF_INCLUDING):
        wrong.append(f"the proof of strassen takes at most {STEPS_OF_INCLUDING} steps: the limit has no effect")
    for name in PROVED:
        if not within(is_named(name), STEPS_OF_A_PROOF):
            wrong.append(f"the proof of {name} takes more than {STEPS_OF_A_PROOF} steps")
        if not within(is_counted(name), STEPS_OF_A_PROGRAM):
            wrong.append(f"the programs of {name} take more than {STEPS_OF_A_PROGRAM} steps in one evaluation")
    for name, part in MADE.items():
        # A proof of its own would take ten times as many.
        if not within(is_counted(name), STEPS_OF_A_PROGRAM if part == "f_6_3" else STEPS_OF_A_PROOF // 2):
            wrong.append(f"{name} takes more steps than its programs: is it proved again?")
    return wrong


def main() -> int:
    compiler = cost.Compiler(sys.argv[1], pathlib.Path(sys.argv[2]))
    folder = pathlib.Path(sys.argv[3]) / f"bilinear-{compiler.name}"
    wrong = check_including(compiler, folder) + check_default_limits(compiler, folder)
    if compiler.is_clang:
        wrong += check_steps(compiler, folder)
    print("\n".join(wrong) or f"{compiler.name}: all counts are within their bounds")
    return 1 if wrong else 0


sys.exit(main())
