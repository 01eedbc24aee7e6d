"""Runs a program for ONNX Runtime over collage: python -m collage.onnxruntime (FILE | -m MODULE) ARGUMENT..."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from typing import NoReturn

import collage.onnxruntime

USAGE = "usage: python -m collage.onnxruntime (FILE | -m MODULE) ARGUMENT..."


def _refuse(sentence: str) -> NoReturn:
    print(sentence, file=sys.stderr)
    sys.exit(2)


def _for_children() -> None:
    """Lets processes that the program starts find this interface, also those that get sys.path from their parent."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_children")
    sys.path.insert(1, folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError as fault:  # its package, or what that imports: then it says so by itself
        return not f"{module}.".startswith(f"{fault.name}.")
    except ValueError:  # no name of a module
        return False


def main() -> None:
    words = sys.argv[1:]
    if words[:1] in (["-h"], ["--help"]):
        print(USAGE)
        return
    is_module = words[:1] == ["-m"]
    if len(words) <= is_module or (words[0].startswith("-") and not is_module):
        _refuse(USAGE)
    collage.onnxruntime.install()
    _for_children()
    name = words[is_module]
    sys.argv = words[is_module:]
    if is_module:
        sys.path[0] = os.getcwd()
        if not _is_there(name):
            _refuse(f"collage.onnxruntime: there is no module {name}")
        runpy.run_module(name, run_name="__main__", alter_sys=True)
        return
    if not os.path.exists(name):
        _refuse(f"collage.onnxruntime: {name} does not exist")
    if os.path.isdir(name) and not os.path.exists(os.path.join(name, "__main__.py")):
        _refuse(f"collage.onnxruntime: {name} is a folder without a __main__.py; give the file of a program")
    sys.path[0] = os.path.dirname(os.path.abspath(name))
    runpy.run_path(name, run_name="__main__")


if __name__ == "__main__":
    main()
