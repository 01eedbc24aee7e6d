#!/usr/bin/env python3
"""Runs pieces of code as programs have them for ONNX Runtime, over collage; and over ONNX Runtime itself if it is installed.

usage: snippets_test.py [WORD...]      only the snippets with one of the words in their names
"""
import importlib
import os
import sys
import tempfile
import warnings

import numpy as np

room = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = room.name  # not the user's own store of costs
os.environ["COLLAGE_ORT_HOW"] = "priority"  # placing by priority times nothing: these tests compare outputs

import collage.onnxruntime  # noqa: E402

import networks  # noqa: E402
import snippets_interface  # noqa: E402
import snippets_memory  # noqa: E402
import snippets_pipelines  # noqa: E402
import snippets_vision  # noqa: E402

SNIPPETS = snippets_vision.SNIPPETS + snippets_interface.SNIPPETS + snippets_memory.SNIPPETS + snippets_pipelines.SNIPPETS


def peer():
    """ONNX Runtime, if it is installed. Otherwise Python may take a folder of this name for a package, which has no file."""
    try:
        found = importlib.import_module("onnxruntime")
    except ImportError:
        return None
    return found if getattr(found, "__file__", None) else None


def difference(ours, theirs, where="result"):
    """What differs between two results; None if nothing does. Numbers agree within rounding."""
    if isinstance(ours, np.ndarray) or isinstance(theirs, np.ndarray):
        if type(ours) is not type(theirs) or ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            return f"{where}: {ours!r} and {theirs!r}"
        same = np.allclose(ours, theirs, rtol=1e-4, atol=1e-5) if ours.dtype.kind == "f" else np.array_equal(ours, theirs)
        return None if same else f"{where}: {ours!r} and {theirs!r}"
    if type(ours) is not type(theirs):
        return f"{where}: {ours!r} and {theirs!r}"
    if isinstance(ours, dict):
        if list(ours) != list(theirs):
            return f"{where}: {list(ours)} and {list(theirs)}"
        return next(filter(None, (difference(ours[k], theirs[k], f"{where}[{k!r}]") for k in ours)), None)
    if isinstance(ours, (list, tuple)):
        if len(ours) != len(theirs):
            return f"{where}: {ours!r} and {theirs!r}"
        return next(filter(None, (difference(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(ours, theirs)))), None)
    if isinstance(ours, float):
        return None if abs(ours - theirs) <= 1e-5 + 1e-4 * abs(theirs) else f"{where}: {ours!r} and {theirs!r}"
    return None if ours == theirs else f"{where}: {ours!r} and {theirs!r}"


def main(words):
    networks.write(room.name)
    real, failed, compared = peer(), 0, 0
    if real is not None:
        real.set_default_logger_severity(4)
    chosen = [s for s in SNIPPETS if not words or any(word in s.__name__ for word in words)]
    assert len({s.__name__ for s in chosen}) == len(chosen) and (words or len(chosen) >= 40), len(chosen)
    for snippet in chosen:
        problem = None
        try:
            ours = snippet(collage.onnxruntime, room.name)
            if ours is None:
                problem = "it has no result"
            elif real is not None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    problem = difference(ours, snippet(real, room.name))
                compared += 1
        except Exception as e:
            problem = f"{type(e).__name__}: {e}"
        if problem:
            failed += 1
            print(f"{snippet.__name__}: {problem}")
    print(f"{len(chosen)} snippets, {compared} of them compared with ONNX Runtime, {failed} failed")
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
