#!/usr/bin/env python3
"""Checks the formatting of all C++ files of the project: check_format.py CLANG_FORMAT PROJECT_FOLDER"""
import pathlib
import subprocess
import sys

formatter, top = sys.argv[1], pathlib.Path(sys.argv[2])
files = sorted(str(path) for folder in ("include", "src", "tools", "examples", "tests", "benchmarks")
               for path in (top / folder).rglob("*") if path.suffix in (".cpp", ".hpp"))
done = subprocess.run([formatter, "--dry-run", "-Werror", "--style=file", *files])
if done.returncode != 0:
    print(f"put these files in order with: {formatter} -i FILE...")
sys.exit(done.returncode)
