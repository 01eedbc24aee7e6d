#!/usr/bin/env python3
"""What a run from Python costs beyond the run: overhead.py [--rounds N]

A network of one addition, whose run takes the library well below a microsecond of computing, is run by the C function alone (by ctypes,
with everything bound), by a binding, by `session.run` and by ONNX Runtime, one after another in each round. ONNX Runtime is left
out if it is not installed. The figures are medians over rounds, in microseconds per call.
"""
import argparse
import pathlib
import statistics
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "python"))
import models  # noqa: E402

import collage  # noqa: E402
from collage import _abi  # noqa: E402

CALLS = 30  # few, so that most rounds are not interrupted by other programs


def onnxruntime_runs(model, feeds):
    """The ways to run ONNX Runtime, by name."""
    try:
        import onnxruntime
        if onnxruntime.__file__ is None:  # the folder of tests by this name
            raise ImportError
    except ImportError:
        print("ONNX Runtime is not installed here, so its figures are left out", file=sys.stderr)
        return {}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_cpu_input(name, array)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    return {"ONNX Runtime, session.run({...})": lambda: session.run(None, feeds),
            "ONNX Runtime, bound": lambda: session.run_with_iobinding(binding)}


def time_of(run):
    start = time.perf_counter()
    for _ in range(CALLS):
        run()
    return (time.perf_counter() - start) / CALLS * 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1000)
    rounds = parser.parse_args().rounds
    model = models.added([4, 4])
    x = np.ones((4, 4), np.float32)
    session = collage.session(model, how="priority", threads=1, store=False)
    binding = session.bind()
    binding.inputs["x"] = x
    pointer, run = binding._context.pointer, _abi.lib.collage_context_run
    opened = collage.session(models.added(["N", 4]), how="priority", threads=1, store=False)
    feeds = {"x": x}
    ways = {"the C function alone": lambda: run(pointer),
            "binding.run()": binding.run,
            "session.run({...})": lambda: session.run(feeds),
            "session.run({...}), timeout": lambda: session.run(feeds, timeout=10),
            "session(x)": lambda: session(x),
            "session.run({...}), open shapes": lambda: opened.run(feeds),
            "session.run({...}), open shapes, copy=False": lambda: opened.run(feeds, copy=False),
            **onnxruntime_runs(model, feeds)}
    times = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            times[name].append(time_of(way))
    alone = statistics.median(times["the C function alone"])
    print(f"{'':44}{'median':>9}{'lowest':>9}{'over C':>9}")
    for name, each in times.items():
        median = statistics.median(each)
        print(f"{name:44}{median:9.2f}{min(each):9.2f}{median - alone:9.2f}")


main()
