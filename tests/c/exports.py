#!/usr/bin/env python3
"""Checks that the C library shows the functions of its headers and nothing else: exports.py LIBRARY HEADER..."""
import re
import subprocess
import sys

library, *headers = sys.argv[1:]
shown = set()
listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
for line in listed.splitlines():
    kind, name = line.split()[-2:]
    if kind != "A":  # the name of the version itself
        shown.add(name.split("@")[0])
declared = set()
for header in headers:
    with open(header) as file:
        found = set(re.findall(r"^COLLAGE_API[^;(]*?(\w+)\(", file.read(), flags=re.MULTILINE))
    if not found:
        sys.exit(f"{header} declares no function")
    declared |= found

wrong = [f"{name} is shown, and no header declares it" for name in sorted(shown - declared)]
wrong += [f"{name} is declared and not in the library" for name in sorted(declared - shown)]
wrong += [f"{name} does not begin with collage_" for name in sorted(declared) if not name.startswith("collage_")]
print("\n".join(wrong) or f"{len(shown)} functions, all of them declared")
sys.exit(1 if wrong or not declared else 0)
