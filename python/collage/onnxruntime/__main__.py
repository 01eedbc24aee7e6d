"""Runs a program for ONNX Runtime over collage: python -m collage.onnxruntime (FILE | -m MODULE) ARGUMENT..."""

from __future__ import annotations

import os
import runpy
import sys

import collage.onnxruntime


def main() -> None:
    words = sys.argv[1:]
    is_module = words[:1] == ["-m"]
    if len(words) <= is_module or (words[0].startswith("-") and not is_module):
        print("usage: python -m collage.onnxruntime (FILE | -m MODULE) ARGUMENT...", file=sys.stderr)
        sys.exit(2)
    collage.onnxruntime.install()
    sys.argv = words[is_module:]
    if is_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif not os.path.exists(sys.argv[0]):
        print(f"collage.onnxruntime: {sys.argv[0]} does not exist", file=sys.stderr)
        sys.exit(2)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")


main()
