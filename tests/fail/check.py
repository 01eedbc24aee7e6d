#!/usr/bin/env python3
"""Checks one pair of files: every compiler must refuse NAME.cpp with the text it expects, and accept NAME.ok.cpp.

usage: check.py --source NAME.cpp --compiler COMPILER... [--accepting COMPILER...] [--precompiled FOLDER] [--as-users] -- ARGUMENT...
       check.py --precompile HEADER --compiler COMPILER... --precompiled FOLDER -- ARGUMENT...

The second form precompiles a header, which the files then need not read. With --as-users refused files read it none the less.
With --accepting only these compilers must accept NAME.ok.cpp.

What is expected must stand in the first 16 lines that a compiler prints, and the file's own line in the first 12 (or as
many as its line `// own line within: N` says): further down nobody looks for them.
"""
import argparse
import pathlib
import re
import subprocess
import sys

LINES_READ = 16
LINES_TO_OWN = 12
PREFIX = "// expect: "
OWN_PREFIX = "// own line within: "


def compile_file(command: list[str], source: pathlib.Path) -> tuple[bool, list[str]]:
    done = subprocess.run([*command, str(source)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout.splitlines()


def as_users_read_it(output: list[str], source: pathlib.Path) -> list[str]:
    """What g++ prints without a precompiled header: the first chain of includes then ends with the file itself, on one more line."""
    for i, line in enumerate(output):
        if re.search(r" from .*collage/collage\.hpp:\d+:$", line):
            return [*output[:i], line[:-1] + ",", f"                 from {source}:1:", *output[i + 1:]]
    return output


def names_own_line(output: list[str], name: str) -> bool:
    """Whether a compiler points at a line of the file, beside saying that the file includes another."""
    return any(re.search(re.escape(name) + r":\d+:\d+: ", line) for line in output)


def is_clang(compiler: str) -> bool:
    return "clang" in pathlib.Path(compiler).name


def precompiled_file(folder: pathlib.Path, compiler: str) -> pathlib.Path:
    """What a compiler makes of the header; g++ finds it by its name, as if it were the header."""
    return folder / "clang.pch" if is_clang(compiler) else folder / "collage" / "collage.hpp.gch"


def precompile(header: pathlib.Path, folder: pathlib.Path, command: list[str]) -> bool:
    made = precompiled_file(folder, command[0])
    made.parent.mkdir(parents=True, exist_ok=True)
    arguments = [argument for argument in command if argument != "-fsyntax-only"]
    return subprocess.run([*arguments, "-w", "-x", "c++-header", str(header), "-o", str(made)]).returncode == 0


def with_precompiled(command: list[str], folder: pathlib.Path, source: pathlib.Path) -> list[str]:
    """The command for a file, which reads the precompiled header in place of the header if it includes that first."""
    includes = [line for line in source.read_text().splitlines() if line.startswith("#include")]
    made = precompiled_file(folder, command[0])
    if includes[:1] != ["#include <collage/collage.hpp>"] or not made.exists():
        return command
    return [*command, "-include-pch", str(made)] if is_clang(command[0]) else [command[0], "-I", str(folder), *command[1:]]


def check_refused(bad: pathlib.Path, expected: list[str], to_own: int, command: list[str], precompiled: pathlib.Path | None,
                  as_users: bool) -> str:
    """What is wrong with the refusal of this compiler; empty if nothing is."""
    refusing = command if as_users or not precompiled else with_precompiled(command, precompiled, bad)
    accepted, output = compile_file(refusing, bad)
    if refusing is not command and not is_clang(command[0]):
        output = as_users_read_it(output, bad)
    if accepted:
        return f"{bad.name} compiles, and must not."
    first = "\n".join(output[:LINES_READ])
    for text in expected:
        if text not in first:
            return f"{bad.name} is refused without '{text}' in the first {LINES_READ} lines; it was told:\n{first}"
    if not names_own_line(output[:to_own], bad.name):
        return f"{bad.name} is refused, and none of its lines is named in the first {to_own} lines:\n{first}"
    return ""


def check_accepted(good: pathlib.Path, command: list[str], precompiled: pathlib.Path | None) -> str:
    accepted, output = compile_file(with_precompiled(command, precompiled, good) if precompiled else command, good)
    return "" if accepted else f"{good.name} must compile; it was told:\n" + "\n".join(output)


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--source", type=pathlib.Path)
    parser.add_argument("--compiler", nargs="+", required=True)
    parser.add_argument("--accepting", nargs="+")
    parser.add_argument("--precompiled", type=pathlib.Path)
    parser.add_argument("--precompile", type=pathlib.Path)
    parser.add_argument("--as-users", action="store_true")
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    asked, arguments = parser.parse_args(sys.argv[1:split]), sys.argv[split + 1:]

    if asked.precompile:
        return int(not all([precompile(asked.precompile, asked.precompiled, [compiler, *arguments]) for compiler in asked.compiler]))
    bad = asked.source
    good = bad.with_name(bad.stem + ".ok.cpp")
    lines = bad.read_text().splitlines()
    expected = [line[len(PREFIX):].rstrip() for line in lines if line.startswith(PREFIX)]
    to_own = max([int(line[len(OWN_PREFIX):]) for line in lines if line.startswith(OWN_PREFIX)], default=LINES_TO_OWN)
    if not expected:
        print(f"{bad.name} has no line '{PREFIX}TEXT': it would pass for any reason.")
        return 1
    if not good.exists():
        print(f"{bad.name} has no twin {good.name}: nothing shows that it fails for the reason it means to.")
        return 1

    failed = 0
    for compiler in asked.compiler:
        command = [compiler, *arguments]
        wrong = check_refused(bad, expected, to_own, command, asked.precompiled, asked.as_users)
        if not wrong and compiler in (asked.accepting or asked.compiler):
            wrong = check_accepted(good, command, asked.precompiled)
        if wrong:
            print(f"{compiler}: {wrong}")
            failed = 1
    return failed


sys.exit(main())
