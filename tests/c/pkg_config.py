#!/usr/bin/env python3
"""Compiles and runs a program in C by pkg-config alone, in an installed tree that was moved: pkg_config.py PREFIX COMPILER VERSION"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

prefix, compiler, version = sys.argv[1:]
if shutil.which("pkg-config") is None:
    print("skipped: pkg-config is not installed")
    sys.exit(77)
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    moved = folder / "moved"
    moved.symlink_to(prefix)
    files = list(moved.glob("lib*/pkgconfig/collage.pc")) + list(moved.glob("lib/*/pkgconfig/collage.pc"))
    if len(files) != 1:
        sys.exit(f"{prefix} has {len(files)} files collage.pc, not 1")

    def told(*words: str) -> str:
        return subprocess.run(["pkg-config", *words, "collage"], capture_output=True, text=True, check=True,
                              env={**os.environ, "PKG_CONFIG_PATH": str(files[0].parent)}).stdout.strip()

    if told("--modversion") != version:
        sys.exit(f"the version is {told('--modversion')}, not {version}")
    flags = told("--cflags", "--libs").split()
    folders = [f[2:] for f in flags if f.startswith(("-I", "-L"))]
    if len(folders) != 2 or not all(pathlib.Path(f).is_dir() and str(moved) in f for f in folders):
        sys.exit(f"flags of another folder than {moved}: {flags}")
    source = pathlib.Path(__file__).parent / "installed" / "main.c"
    program = folder / "program"
    subprocess.run([compiler, "-Wall", "-Werror", source, "-o", program, *flags], check=True)
    done = subprocess.run([program], env={**os.environ, "LD_LIBRARY_PATH": folders[1]}, check=False)
    sys.exit(done.returncode)
