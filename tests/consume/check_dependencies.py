#!/usr/bin/env python3
"""Checks that an application reads no header and loads no library that only placing needs.

usage: check_dependencies.py BUILD_FOLDER PROGRAM
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys

UNWANTED = re.compile(r"/boost|libboost|sqlite|protobuf|/collage/(search|measure)/|/collage/place")


def main() -> int:
    build, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    read = []
    for unit in json.loads((build / "compile_commands.json").read_text()):
        command = shlex.split(unit["command"])
        at = command.index("-o")
        command = command[:at] + command[at + 2:]
        done = subprocess.run([*command, "-M"], cwd=unit["directory"], capture_output=True, text=True, check=True)
        read += done.stdout.replace("\\\n", " ").split()
    loaded = subprocess.run(["ldd", str(build / program)], capture_output=True, text=True, check=True).stdout.splitlines()

    if not any("/collage/run/" in file for file in read) or not loaded:
        print("the application reads no header of the engine or loads nothing: this test looks at the wrong files")
        return 1
    unwanted = sorted({entry.strip() for entry in [*read, *loaded] if UNWANTED.search(entry)})
    print("\n".join(unwanted) or f"{len(read)} headers and {len(loaded)} libraries, none of them unwanted")
    return 1 if unwanted else 0


sys.exit(main())
