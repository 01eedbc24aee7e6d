#!/usr/bin/env python3
"""Runs an example of docs/start-python.md in an empty folder.

usage: python_example.py EXAMPLE [FILE...]

Ends with status 77 if a FILE is not there.
"""
import os
import subprocess
import sys
import tempfile

example, *files = sys.argv[1:]
for file in files:
    if not os.path.exists(file):
        print(f"there is no {file}: tools/setup fetches it")
        sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    environment = {**os.environ, "XDG_CACHE_HOME": folder}
    sys.exit(subprocess.run([sys.executable, example, *files], cwd=folder, env=environment, check=False).returncode)
