"""The engines behind one face, each set up as its makers recommend for the time of a single run: the same threads, float32,
inputs and outputs bound once. A library is imported only where its engine is made."""
from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from . import arrays
from .collage_library import EngineOptions, Library
from .errors import Failure

ONNXRUNTIME = "onnxruntime"
OPENVINO = "openvino"


class Engine(Protocol):
    """A network that is loaded. `bind` binds inputs and outputs for good and runs it once; `run` reads and writes them in
    place from then on, as long as the engine lives, which owns the outputs."""

    outputs: dict[str, np.ndarray]
    run: Callable[[], Any]

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None: ...


def onnxruntime_session(model: str, threads: int, overrides: Mapping[str, int]) -> Any:
    """One pool of `threads`, of which the caller is one; all graph optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    for name, extent in overrides.items():
        options.add_free_dimension_override_by_name(name, extent)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def openvino_settings(threads: int, precision: str = "f32") -> dict[str, Any]:
    """The hint for latency, one stream, and the element type in which it may compute what the file has in float32."""
    return {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": precision}


class OnnxRuntime:
    """A session with IO binding."""

    def __init__(self, model: str, threads: int, overrides: Mapping[str, int]) -> None:
        import onnxruntime

        self._session = onnxruntime_session(model, threads, overrides)
        self._value = onnxruntime.OrtValue.ortvalue_from_numpy
        self.outputs: dict[str, np.ndarray] = {}

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        names = [output.name for output in self._session.get_outputs()]
        found = self._session.run(names, dict(inputs))  # shapes may depend on what the inputs hold
        binding = self._session.io_binding()
        for name, array in inputs.items():
            binding.bind_cpu_input(name, array)
        for name, value in zip(names, found):
            self.outputs[name] = array = arrays.aligned(value.shape, arrays.number_array(name, value).dtype)
            binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        self.run: Callable[[], Any] = functools.partial(self._session.run_with_iobinding, binding)


class OpenVino:
    """A request with tensors over the caller's memory."""

    def __init__(self, model: str, threads: int, shapes: Mapping[str, Sequence[int]], outputs: Sequence[str],
                 precision: str = "f32") -> None:
        """`outputs` are their names in the order of the file, which the library keeps."""
        import openvino

        self._tensor, self._names = openvino.Tensor, outputs
        core = openvino.Core()
        settings = openvino_settings(threads, precision)
        if shapes:
            read = core.read_model(model)
            read.reshape({name: list(extents) for name, extents in shapes.items()})
            self._compiled = core.compile_model(read, "CPU", settings)
        else:
            self._compiled = core.compile_model(model, "CPU", settings)
        self.outputs: dict[str, np.ndarray] = {}

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        request = self._compiled.create_infer_request()
        for name, array in inputs.items():
            request.set_tensor(name, self._tensor(array, shared_memory=True))
        request.infer()  # shapes may depend on what the inputs hold
        for index, name in enumerate(self._names):
            found = request.get_output_tensor(index).data
            self.outputs[name] = array = arrays.aligned(found.shape, arrays.number_array(name, found).dtype)
            request.set_output_tensor(index, self._tensor(array, shared_memory=True))
        # Without `share_outputs` the Python call copies every output once more.
        self.run: Callable[[], Any] = functools.partial(request.infer, share_outputs=True)


class Collage:
    """Our engine, by a plan that was made before. `plan_from` makes the plan's handle from the network's."""

    def __init__(self, library: Library, model: str, shapes: Mapping[str, Sequence[int]],
                 plan_from: Callable[[ctypes.c_void_p], ctypes.c_void_p]) -> None:
        start = time.perf_counter()
        network = library.network(model, shapes)
        read = time.perf_counter()
        plan = plan_from(network)
        placed = time.perf_counter()
        options = EngineOptions(ctypes.sizeof(EngineOptions), 1)  # the engine keeps what it needs of the weights, packed
        engine = library.made("collage_engine_create", plan, ctypes.byref(options))
        library.release("plan", plan)
        library.release("network", network)
        context = library.made("collage_context_create", engine, None)
        built = time.perf_counter()
        self.stages_ms = {"network": 1e3 * (read - start), "plan": 1e3 * (placed - read),
                          "engine": 1e3 * (built - placed)}
        self.outputs: dict[str, np.ndarray] = {}
        self._library, self._engine, self._context = library, engine, context

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        library, engine, context = self._library, self._engine, self._context
        info = library.info(engine)
        for index in range(info.inputs):
            port = library.port("collage_engine_input", engine, index)
            if port.name not in inputs:
                raise Failure(f"collage asks for an input {port.name}, which the file does not have")
            library.bind("collage_context_bind_input", context, index, inputs[port.name])
        for index in range(info.outputs):
            port = library.port("collage_engine_output", engine, index)
            self.outputs[port.name] = array = arrays.aligned(port.shape, port.type)
            library.bind("collage_context_bind_output", context, index, array)
        self._inputs = inputs  # as long as they are bound
        library.call("collage_context_run", context)
        run, handle = library.run, context

        def checked() -> None:
            if run(handle) != 0:
                library.call("collage_context_run", handle)  # raises with the sentence

        self.run: Callable[[], Any] = checked
