"""A process that holds ONNX Runtime or OpenVINO and does what lines on standard input say.

    python3 -m shapes.peer DESCRIPTOR KIND MODEL.onnx THREADS KEPT TYPES

KIND is onnxruntime, openvino (one model compiled with open extents) or openvino-per-shape (reshaped and compiled for each
shape, of which the last KEPT are kept; 0: all). TYPES are those of its inputs, as JSON. It reads the same lines as
benchmarks/session_child.cpp, and returns the same JSON. One more line is

    compare TOLERANCE JSON    compares the last run's outputs with those that another engine wrote: {"worst", "why"}
"""
from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from peers.errors import Failure, sentence_of

if TYPE_CHECKING:
    import numpy as np

DIED_WITH_PARENT = 1  # PR_SET_PDEATHSIG: stopped processes do not see that their pipe is closed
DROPPED_S = 0.05  # at the start of a slice: caches hold what ran before
LEAST_RUNS = 1  # that count in a slice, however long they take
ONNXRUNTIME, OPENVINO, PER_SHAPE = "onnxruntime", "openvino", "openvino-per-shape"


def memory_mb(field: str) -> float:
    """A memory figure of this process, as /proc/self/status calls it."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024 / 1e6
    raise Failure(f"/proc/self/status: says nothing of {field}")


class OnnxRuntime:
    """One session with open extents."""

    def __init__(self, model: str, threads: int) -> None:
        from peers.engines import onnxruntime_session

        self._session = onnxruntime_session(model, threads, {})

    def set_inputs(self, inputs: Mapping[str, np.ndarray]) -> None:
        self._binding = self._session.io_binding()
        for name, array in inputs.items():
            self._binding.bind_cpu_input(name, array)
        for output in self._session.get_outputs():
            self._binding.bind_output(output.name, "cpu")

    def run(self) -> None:
        self._session.run_with_iobinding(self._binding)

    def outputs(self) -> dict[str, np.ndarray]:
        names = [output.name for output in self._session.get_outputs()]
        return dict(zip(names, self._binding.copy_outputs_to_cpu()))


class OpenVino:
    """One compiled model with open extents, or one for each shape, compiled by the first run at it."""

    def __init__(self, model: str, threads: int, kept: int | None) -> None:
        import openvino
        from peers.engines import openvino_settings

        self._openvino, self._core, self._settings = openvino, openvino.Core(), openvino_settings(threads)
        self._model = self._core.read_model(model)
        self._kept = kept
        self._requests: dict[tuple[Any, ...], Any] = {}
        if kept is None:
            self._request = self._core.compile_model(self._model, "CPU", self._settings).create_infer_request()

    def set_inputs(self, inputs: Mapping[str, np.ndarray]) -> None:
        self._inputs = inputs
        if self._kept is None:
            self._bind()
            return
        self._shape = tuple((name, array.shape) for name, array in inputs.items())
        # What another shape leaves behind is no part of the first run at this one.
        while self._kept and len(self._requests) >= self._kept and self._shape not in self._requests:
            del self._requests[next(iter(self._requests))]
        self._request = self._requests.get(self._shape)

    def _bind(self) -> None:
        for name, array in self._inputs.items():
            self._request.set_tensor(name, self._openvino.Tensor(array, shared_memory=True))

    def run(self) -> None:
        if self._request is None:
            model = self._model.clone()
            model.reshape({name: list(array.shape) for name, array in self._inputs.items()})
            compiled = self._core.compile_model(model, "CPU", self._settings)
            self._request = self._requests[self._shape] = compiled.create_infer_request()
            self._bind()
        self._request.infer(share_outputs=True)

    def outputs(self) -> dict[str, np.ndarray]:
        ports = self._request.model_outputs
        return {port.get_any_name(): self._request.get_output_tensor(i).data for i, port in enumerate(ports)}


def made(kind: str, model: str, threads: int, kept: int) -> OnnxRuntime | OpenVino:
    if kind == ONNXRUNTIME:
        return OnnxRuntime(model, threads)
    return OpenVino(model, threads, kept if kind == PER_SHAPE else None)


class Child:
    """An engine, and the inputs of its last run. `types` are those of the network's inputs, by name."""

    def __init__(self, engine: OnnxRuntime | OpenVino, types: Mapping[str, str]) -> None:
        self.engine, self.types = engine, types

    def obey(self, line: str) -> dict[str, Any]:
        word, _, rest = line.strip().partition(" ")
        return getattr(self, f"do_{word}")(rest)

    def run_ms(self) -> float:
        start = time.perf_counter()
        self.engine.run()
        return 1e3 * (time.perf_counter() - start)

    def do_first(self, rest: str) -> dict[str, Any]:
        from shapes.contents import filled

        seed, *words = rest.split()
        inputs = {}
        for i, word in enumerate(words):
            name, _, extents = word.rpartition("=")
            dims = [int(extent) for extent in extents.split("x")] if extents else []
            inputs[name] = filled(self.types[name], dims, int(seed) + i)
        self.engine.set_inputs(inputs)
        return {"first_ms": self.run_ms(), "second_ms": self.run_ms()}

    def do_slice(self, rest: str) -> dict[str, Any]:
        times: list[float] = []
        gc.disable()
        start = began = time.perf_counter()
        while began < start + float(rest) or len(times) < LEAST_RUNS:
            took = self.run_ms()
            if began >= start + DROPPED_S:
                times.append(took)
            began = time.perf_counter()
        gc.enable()
        return {"ms": times}

    def do_outputs(self, rest: str) -> dict[str, Any]:
        described = []
        for i, (name, array) in enumerate(self.engine.outputs().items()):
            file = f"{rest}/{i}.raw"
            array.tofile(file)
            described.append({"name": name, "type": array.dtype.name, "shape": list(array.shape), "file": file})
        return {"outputs": described}

    def do_compare(self, rest: str) -> dict[str, Any]:
        tolerance, _, text = rest.partition(" ")
        return compared(json.loads(text), self.engine.outputs(), float(tolerance))

    def do_memory(self, _rest: str) -> dict[str, Any]:
        return {"resident_mb": memory_mb("VmRSS"), "most_mb": memory_mb("VmHWM")}


def compared(theirs: Sequence[Mapping[str, Any]], ours: Mapping[str, np.ndarray], tolerance: float) -> dict[str, Any]:
    """All outputs, by their order: names may differ."""
    import numpy as np
    from peers import arrays

    if len(theirs) != len(ours):
        return {"worst": 0.0, "why": f"{len(theirs)} and {len(ours)} outputs"}
    tolerances = {kind: (tolerance, absolute) for kind, (_, absolute) in arrays.TOLERANCES.items()}
    found = []
    for port, (name, expected) in zip(theirs, ours.items()):
        actual = np.fromfile(port["file"], dtype=port["type"]).reshape(port["shape"])
        found.append(arrays.difference(name, actual, expected, tolerances))
    return {"worst": max((one.worst for one in found), default=0.0), "why": next((one.why for one in found if one.why), "")}


def main() -> int:
    ctypes.CDLL(None).prctl(DIED_WITH_PARENT, signal.SIGKILL)
    descriptor, kind, model, threads, kept, types = sys.argv[1:]
    events = os.fdopen(int(descriptor), "w", buffering=1, encoding="utf-8")
    try:
        import numpy  # noqa: F401  part of what is there before a network

        bare_mb = memory_mb("VmRSS")
        start = time.perf_counter()
        child = Child(made(kind, model, int(threads), int(kept)), json.loads(types))
        events.write(json.dumps({"ready_ms": 1e3 * (time.perf_counter() - start), "bare_mb": bare_mb}) + "\n")
        for line in sys.stdin:
            events.write(json.dumps(child.obey(line)) + "\n")
    except Exception as problem:  # what the parent has to tell, whatever its type
        events.write(json.dumps({"failed": sentence_of(problem)}) + "\n")
        return 1
    return 0


if __name__ == "__main__":
    os._exit(main())  # libraries that end their threads in each other's way have told everything by now
