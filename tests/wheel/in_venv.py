"""Run by the Python in which the wheel is installed: in_venv.py [MODEL | --other-openmp]

Runs a built-in network, or with MODEL a trained one that reads lines of text. The last line of the output is a JSON object about it.
With --other-openmp, the system's OpenMP library becomes global before the first network, as other packages make theirs.
"""
import ctypes
import json
import pathlib
import sys
import time

START = time.monotonic()

import numpy  # noqa: E402

import collage  # noqa: E402


def loaded():
    """The files of shared objects in this process."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return sorted({line.split(maxsplit=5)[5].strip() for line in maps if ".so" in line})


def built_in():
    session = collage.load("zoo:bert-paper").session(threads=1, budget=2, store=False)
    one = session.inputs[0]
    result = next(iter(session.run({one.name: numpy.ones(one.shape, one.dtype)}).values()))
    plan = collage.load("zoo:bert-paper").tune(threads=1, budget=1, compare=0.1, store=False)
    return {"where": plan.data["placing"]["where"], "finite": bool(numpy.isfinite(result).all()),
            "backends": {b["name"]: b["reason"] for b in collage.system()["backends"]}, "loaded": loaded()}


def trained(model):
    """All that a user waits for, with the budget for measuring that a session has by itself."""
    network = collage.load(model, shapes={"x": (1, 3, 48, 320)})
    start = time.monotonic()
    session = network.session(store=False)
    measured = time.monotonic() - start
    scores = session(numpy.random.default_rng(1).standard_normal((1, 3, 48, 320), numpy.float32))
    return {"measured_s": measured, "all_s": time.monotonic() - START, "sums": [float(scores.sum(-1).min()), float(scores.sum(-1).max())]}


if sys.argv[1:] == ["--other-openmp"]:
    ctypes.CDLL("libgomp.so.1", mode=ctypes.RTLD_GLOBAL)
    found = built_in()
else:
    found = trained(sys.argv[1]) if len(sys.argv) > 1 else built_in()
print(json.dumps({"package": str(pathlib.Path(collage.__file__).parent), "version": collage.version(), **found}))
