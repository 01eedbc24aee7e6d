#!/usr/bin/env python3
"""Checks one pair of files: NAME.cpp must be refused by the compiler with the text it expects, NAME.ok.cpp accepted.

usage: check.py NAME.cpp COMPILER ARGUMENT...
"""
import pathlib
import subprocess
import sys


def compile_file(command: list[str], source: pathlib.Path) -> tuple[bool, str]:
    done = subprocess.run([*command, str(source)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode == 0, done.stdout


def main() -> int:
    bad, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    good = bad.with_name(bad.stem + ".ok.cpp")

    prefix = "// expect: "
    expected = [line[len(prefix):].rstrip() for line in bad.read_text().splitlines() if line.startswith(prefix)]
    if not expected:
        print(f"{bad.name} has no line '{prefix}TEXT': it would pass for any reason.")
        return 1
    if not good.exists():
        print(f"{bad.name} has no twin {good.name}: nothing shows that it fails for the reason it means to.")
        return 1

    accepted, output = compile_file(command, bad)
    if accepted:
        print(f"{bad.name} compiles, and must not.")
        return 1
    for text in expected:
        if text not in output:
            print(f"{bad.name} is refused without the text '{text}'; the compiler said:\n{output}")
            return 1

    accepted, output = compile_file(command, good)
    if not accepted:
        print(f"{good.name} must compile; the compiler said:\n{output}")
        return 1
    return 0


sys.exit(main())
