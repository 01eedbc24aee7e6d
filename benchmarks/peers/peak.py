"""What the processor can do at most, as far as a library at hand gets it: a large product of float32 matrices."""
from __future__ import annotations

import pathlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from . import arrays, calm
from .engines import Engine, OnnxRuntime, OpenVino
from .errors import sentence_of

SIZE = 2048
SECONDS = 2.0


def fastest_s(run: Callable[[], Any]) -> float:
    """The fastest of the runs of some seconds: the peak is what is possible, not what is usual."""
    run()
    fastest, end = float("inf"), time.perf_counter() + SECONDS
    while (start := time.perf_counter()) < end:
        run()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def product(file: pathlib.Path) -> None:
    """Writes a model that multiplies its input by a constant matrix."""
    matrix = np.random.default_rng(1).standard_normal((SIZE, SIZE)).astype(np.float32)
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["input", "matrix"], ["output"])], "peak",
        [onnx.helper.make_tensor_value_info("input", kind, [SIZE, SIZE])],
        [onnx.helper.make_tensor_value_info("output", kind, [SIZE, SIZE])], [onnx.numpy_helper.from_array(matrix, "matrix")])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8), file)


def peak(threads: int, room: str) -> dict[str, Any]:
    """GFLOP/s by library, with so many threads. numpy's library took their number from the environment."""
    file = pathlib.Path(room) / "peak.onnx"
    product(file)
    left = arrays.random_input(arrays.Input("input", "float32", (SIZE, SIZE)))
    right, out = arrays.random_input(arrays.Input("right", "float32", (SIZE, SIZE))), arrays.aligned((SIZE, SIZE), "float32")

    def rate(run: Callable[[], Any]) -> float:
        return 2e-9 * SIZE**3 / fastest_s(run)

    def of_engine(make: Callable[[], Engine]) -> float:
        engine = make()  # which owns the memory of its outputs
        engine.bind({"input": left})
        return rate(engine.run)

    watch = calm.Watch(1)
    rates: dict[str, float] = {"numpy": rate(lambda: np.matmul(left, right, out=out))}
    refused: dict[str, str] = {}
    for name, make in (("onnxruntime", lambda: OnnxRuntime(str(file), threads, {})),
                       ("openvino", lambda: OpenVino(str(file), threads, {}, ["output"]))):
        try:
            rates[name] = of_engine(make)
        except Exception as problem:  # one library less
            refused[name] = sentence_of(problem)
    file.unlink()
    best = max(rates, key=rates.__getitem__)
    return {"gflops": rates[best], "by": best, "rates": rates, "refused": refused,
            "calm": watch.reading().by_others <= calm.MOST_BY_OTHERS}
