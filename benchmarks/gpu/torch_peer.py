#!/usr/bin/env python3
"""Times ONNX networks in PyTorch on a CUDA device, as the peer of what `collage` takes there.

    python3 benchmarks/gpu/torch_peer.py NETWORK.onnx... [--precision fp32,tf32,bf16] [--modes eager,graph,compile]

The nodes of a network run in its order, each as one call of PyTorch. Weightless files get their weights first
(fill_weights.py). A line says the median of the times in ms, the 5th and the 95th percentile, of how many runs, how far
the outputs are from those of the network's first line, max|a - r| / max|r|, and after how many seconds it was ready.

Modes: `eager` times each run alone; `graph` makes a CUDA graph of the calls and times bundles of replays; `compile` is
torch.compile, each run alone; `max-autotune` is torch.compile with that mode, in bundles. The first two try two layouts
for convolutions, and the faster counts, for the others too. Exit status: 0 where all ran, 1 or 2 (a mistake) if not.
"""
import argparse
import concurrent.futures
import ctypes
import gc
import json
import operator
import pathlib
import subprocess
import sys
import tempfile
import time


def refuse(mistake):
    print(f"torch_peer: {mistake}", file=sys.stderr)
    sys.exit(2)


sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))  # where fill_weights is
try:
    import numpy as np
    import onnx
    import torch
    import torch.nn.functional as F

    import fill_weights
except (ImportError, OSError) as missing:  # OSError: a library that PyTorch needs is not there
    refuse(f"a Python package is missing ({missing}): python3 -m pip install torch onnx numpy")

PRECISIONS = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}
FORMATS = {("channels_last", 4): torch.channels_last, ("channels_last", 5): torch.channels_last_3d}  # by rank
WARM_UPS, WARM_SECONDS = 6, 0.2  # runs, and by when the clocks of a GPU have risen
TRIAL = 0.2  # of --seconds, for each layout
BUNDLE_MS, LEAST_ROUNDS = 10.0, 10


def plain(function):
    return lambda c, a, *xs: c.call(function, *map(c.value, xs))


def conv(c, a, x, kernel, bias=""):
    c.kernels.add(c.value(kernel).target)
    return c.call(getattr(F, f"conv{len(a['kernel_shape'])}d"), c.value(x), c.value(kernel), c.value(bias),
                  a["strides"], a["padding"], a["dilations"], a["group"])


def pool(c, a, x, kind, **more):
    function = getattr(F, f"{kind}_pool{len(a['kernel_shape'])}d")
    more["ceil_mode"] = bool(a["ceil_mode"])
    return c.call(function, c.value(x), a["kernel_shape"], a["strides"], a["padding"], **more)


def transpose(c, a, x):
    *front, one, other = a["perm"]
    if one < other:
        return c.call(torch.permute, c.value(x), a["perm"])
    # In two steps, as by hand: Inductor fuses attention wrongly where the key is permuted in one.
    return c.call(torch.transpose, c.call(torch.permute, c.value(x), [*front, other, one]), -2, -1)


OPERATORS = {  # each adds the call for a node with the attributes `a` to the converter `c`
    "Add": plain(operator.add), "Sub": plain(operator.sub), "Mul": plain(operator.mul), "Div": plain(operator.truediv),
    "MatMul": plain(torch.matmul), "Gemm": plain(F.linear), "Relu": plain(F.relu), "Clip": plain(torch.clamp),
    "Erf": plain(torch.erf), "Sigmoid": plain(torch.sigmoid), "Tanh": plain(torch.tanh), "Transpose": transpose,
    "Conv": conv, "MaxPool": lambda c, a, x: pool(c, a, x, "max", dilation=a["dilations"]),
    "AveragePool": lambda c, a, x: pool(c, a, x, "avg", count_include_pad=bool(a["count_include_pad"])),
    "Concat": lambda c, a, *xs: c.call(torch.cat, [c.value(x) for x in xs], a["axis"]),
    "LayerNormalization": lambda c, a, x, scale, bias: c.call(
        F.layer_norm, c.value(x), list(c.constants[scale].shape), c.value(scale), c.value(bias), a["epsilon"]),
    "ReduceMean": lambda c, a, x, axes: c.call(torch.mean, c.value(x), c.numbers(axes), bool(a["keepdims"])),
    "Reshape": lambda c, a, x, shape: c.call(torch.reshape, c.value(x), c.numbers(shape)),
    "Resize": lambda c, a, x, roi, scales: c.call(F.interpolate, c.value(x), None, c.numbers(scales)[2:], "nearest"),
    "Softmax": lambda c, a, x: c.call(F.softmax, c.value(x), a["axis"]),
}
DEMANDED = {  # what attributes must say for the calls above to be right
    **{kind: {"auto_pad": "NOTSET"} for kind in ("AveragePool", "Conv", "MaxPool")}, "Reshape": {"allowzero": 1},
    "Gemm": {"alpha": 1, "beta": 1, "transA": 0, "transB": 1}, "LayerNormalization": {"axis": -1},
    "Resize": {"coordinate_transformation_mode": "asymmetric", "mode": "nearest", "nearest_mode": "floor"},
}


class Converter:
    """Writes a network as a graph of torch.fx, whose code is plain Python and lets go of a value after its last use.
    Shapes become numbers in it, so that a run never waits for the device."""

    def __init__(self, network):
        self.constants = network.constants
        self.graph = torch.fx.Graph()
        self.values = {name: self.graph.placeholder(f"input_{i}") for i, name in enumerate(network.inputs)}
        self.weights = {}  # arrays by the names of the module's attributes
        self.kernels = set()  # those of them that convolutions have
        for node in network.nodes:
            a = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
            a = {key: value.decode() if isinstance(value, bytes) else value for key, value in a.items()}
            a["padding"] = a.get("pads", [])[: len(a.get("pads", [])) // 2]  # the same at both ends in PyTorch
            try:
                for key, value in {"pads": a["padding"] * 2, **DEMANDED.get(node.op_type, {})}.items():
                    if a.get(key, []) != value:
                        raise ValueError(f"{key} {a.get(key)}")
                self.values[node.output[0]] = OPERATORS[node.op_type](self, a, *node.input)
            except (KeyError, TypeError, ValueError) as problem:
                raise ValueError(f"{node.op_type} `{node.output[0]}` is not known in this form: {problem}") from None
        self.graph.output(tuple(self.value(name) for name in network.outputs))

    def call(self, function, *arguments, **named):
        return self.graph.call_function(function, arguments, named)

    def numbers(self, name):
        return self.constants[name].tolist()

    def value(self, name):
        """An operand: None where it is left out, a number for a constant without axes, which kernels take along as an
        argument, and else a value of the graph, which other constants become with it."""
        if not name or name in self.constants and self.constants[name].ndim == 0:
            return self.numbers(name) if name else None
        if name not in self.values:
            attribute = f"constant_{len(self.weights)}"
            self.weights[attribute] = self.constants[name]
            self.values[name] = self.graph.get_attr(attribute)
        return self.values[name]


class Network:
    """An ONNX file with its weights and inputs, all in the memory of the host."""

    def __init__(self, file, options):
        self.name, graph = file.stem, onnx.load(file).graph
        self.nodes = [node for node in graph.node if node.op_type != "Constant"]
        self.convolves = any(node.op_type == "Conv" for node in self.nodes)
        self.outputs = [port.name for port in graph.output]
        tensors = {tensor.name: tensor for tensor in graph.initializer}
        tensors.update((node.output[0], node.attribute[0].t) for node in graph.node if node.op_type == "Constant")
        with concurrent.futures.ThreadPoolExecutor() as threads:
            self.constants = dict(zip(tensors, threads.map(array_of, tensors.values())))
        generator = np.random.default_rng(options.seed)
        self.inputs = {}
        for port in graph.input:
            shape = [extent.dim_value for extent in port.type.tensor_type.shape.dim]
            if 0 in shape or port.type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
                raise ValueError(f"its input `{port.name}` is not of type float or has unknown extents")
            file = options.inputs and options.inputs / f"{self.name}.{port.name}.npy"
            given = file and file.exists()
            self.inputs[port.name] = np.load(file) if given else generator.standard_normal(shape).astype(np.float32)
            if file and not given:
                np.save(file, self.inputs[port.name])

    def built(self, precision, layout, device):
        """The network as a module on the device, and its inputs there."""
        dtype = PRECISIONS[precision]
        with torch.inference_mode(False):  # parameters are ordinary tensors then, which torch.compile knows best
            converter = Converter(self)
            root = {}
            for name, array in converter.weights.items():
                tensor = on_device(array, device, dtype, layout if name in converter.kernels else "contiguous")
                root[name] = torch.nn.Parameter(tensor, requires_grad=False)
            inputs = [on_device(array, device, dtype, layout) for array in self.inputs.values()]
            return torch.fx.GraphModule(root, converter.graph).eval(), inputs


def array_of(tensor):
    if fill_weights.is_weightless(tensor):
        return fill_weights.weights_of(tensor)
    return onnx.numpy_helper.to_array(tensor).copy()  # PyTorch warns of arrays that it must not write


def on_device(array, device, dtype, layout):
    memory_format = FORMATS.get((layout, array.ndim), torch.contiguous_format)
    return torch.from_numpy(array).to(device, dtype).contiguous(memory_format=memory_format)


def set_precision(precision):
    """Lets float32 be rounded to TF32 or not. PyTorch has two interfaces for that, whose values must agree: the older
    sets the newer one's of products and convolutions too, but not that of cuDNN as a whole, which Inductor reads."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    if hasattr(torch.backends.cudnn, "fp32_precision"):
        torch.backends.cudnn.fp32_precision = "tf32" if precision == "tf32" else "none"


def prepared(mode, module, inputs):
    """A function that runs the network once, warm."""
    run = lambda: module(*inputs)  # noqa: E731
    if mode in ("compile", "max-autotune"):
        torch.compiler.reset()  # else the ninth network finds the cache full and runs eagerly without a word
        compiled = torch.compile(module, fullgraph=True, dynamic=False, mode=None if mode == "compile" else mode)
        # The mark says that the outputs of the run before are done with.
        run = lambda: (torch.compiler.cudagraph_mark_step_begin(), compiled(*inputs))[1]  # noqa: E731
    side = torch.cuda.Stream() if mode == "graph" else None  # what is done for the first time cannot be captured
    if side:
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # of None: does nothing
        for _ in range(WARM_UPS):
            run()
    if not side:
        return run
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = module(*inputs)
    return lambda: (graph.replay(), outputs, module, inputs)[1]  # it reads the memory of these


def timed(run, count, device):
    """ms of each of some runs, timed together."""
    if device == "cpu":
        begun = time.perf_counter()
        run()
        return (time.perf_counter() - begun) * 1e3
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / count


def sampled(run, seconds, bundled, device):
    """Times in ms of many rounds, each the mean of a bundle of runs, and how many runs a bundle has."""
    begun = time.perf_counter()
    last = timed(run, 1, device)
    while time.perf_counter() - begun < min(WARM_SECONDS, seconds):
        last = timed(run, 5 if bundled else 1, device)
    bundle = max(1, min(1000, round(BUNDLE_MS / last))) if bundled else 1
    samples = []
    begun = time.perf_counter()
    while len(samples) < LEAST_ROUNDS or time.perf_counter() - begun < seconds:
        samples.append(timed(run, bundle, device))
    return samples, bundle


def measure(network, precision, mode, layouts, options):
    """What a row says of the times, and the outputs."""
    bundled = mode in ("graph", "max-autotune") and options.device != "cpu"  # one launch, too short to be timed alone
    begun = time.perf_counter()
    runs = {layout: prepared(mode, *network.built(precision, layout, options.device)) for layout in layouts}
    row = {"layout": layouts[0], "prepared_s": time.perf_counter() - begun}
    if len(layouts) > 1:
        short = options.seconds * TRIAL
        tried = {layout: sampled(run, short, bundled, options.device)[0] for layout, run in runs.items()}
        row["layouts_ms"] = {layout: float(np.median(samples)) for layout, samples in tried.items()}
        row["layout"] = min(row["layouts_ms"], key=row["layouts_ms"].get)
    run = runs[row["layout"]]
    outputs = [output.float().cpu().numpy() for output in run()]
    samples, bundle = sampled(run, options.seconds, bundled, options.device)
    low, median, high = (float(ms) for ms in np.percentile(samples, [5, 50, 95]))
    row.update(median_ms=median, p5_ms=low, p95_ms=high, runs=len(samples) * bundle, bundle=bundle)
    return row, outputs


def profiled(network, row):
    """What the device does in one run, in order of time."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities):  # it must be there before a graph is captured, to see into it
        torch.ones(1, device="cuda").add_(1)
        torch.cuda.synchronize()
    run = prepared(row["mode"], *network.built(row["precision"], row["layout"], "cuda"))
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=activities) as profile:
        run()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as room:
        trace = pathlib.Path(room) / "trace.json"
        profile.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text(errors="replace"))["traceEvents"]
    events = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    return [{"name": event["name"], "us": event["dur"]} for event in sorted(events, key=lambda event: event["ts"])]


def rows_of(file, options):
    """A row for each precision and mode, as they come."""
    try:
        network, reference = Network(file, options), None
    except Exception as problem:  # protobuf's are of many types
        yield {"network": file.stem, "precision": "", "mode": "", "error": one_line(problem)}
        return
    for precision in options.precision:
        set_precision(precision)
        layout = options.layouts[0]
        for mode in options.modes:
            row = {"network": network.name, "precision": precision, "mode": mode}
            tries = options.layouts if network.convolves and mode in ("eager", "graph") else [layout]
            try:
                if options.device == "cpu" and (mode == "graph" or precision == "tf32"):
                    yield {**row, "skipped": "the CPU has neither CUDA graphs nor TF32"}
                    continue
                found, outputs = measure(network, precision, mode, tries, options)
                reference, layout = reference or outputs, found["layout"]
                apart = max(np.abs(a - r).max() / (np.abs(r).max() or 1) for a, r in zip(outputs, reference))
                row.update(found, apart=float(apart))
                for name, output in zip(network.outputs, outputs) if options.outputs else ():
                    np.save(options.outputs / f"{network.name}.{precision}.{mode}.{name}.npy", output)
            except Exception as problem:  # the other modes may run
                row["error"] = one_line(problem)
            gc.collect()  # graphs go, and with them their memory
            torch.cuda.empty_cache()
            yield row


def one_line(problem):
    return f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"


def shown(row):
    head = f"{row['network']:<20} {row['precision']:<4} {row['mode']:<12}"
    if "error" in row or "skipped" in row:
        return f"{head} failed: {row['error']}" if "error" in row else f"{head} skipped: {row['skipped']}"
    return (f"{head} {row['layout']:<13} {row['median_ms']:9.4f} {row['p5_ms']:9.4f} {row['p95_ms']:9.4f} "
            f"{row['runs']:7} {row['apart']:8.1e} {row['prepared_s']:8.1f}")


def described():
    """The device and the versions that the times hold for."""
    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda,
             "cudnn": torch.backends.cudnn.version()}
    try:
        ask = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        about["driver"] = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.split()[0]
        library, number = ctypes.CDLL(f"libcublas.so.{torch.version.cuda.split('.')[0]}"), ctypes.c_int()
        parts = [library.cublasGetProperty(part, ctypes.byref(number)) or number.value for part in range(3)]
        about["cublas"] = ".".join(map(str, parts))
    except (OSError, subprocess.CalledProcessError, IndexError) as problem:
        print(f"torch_peer: a version is unknown: {one_line(problem)}", file=sys.stderr)
    return about


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = refuse
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="NETWORK.onnx")
    lists = {"precision": (PRECISIONS, "fp32,tf32"),
             "modes": (("eager", "graph", "compile", "max-autotune"), "eager,graph"),
             "layouts": (("contiguous", "channels_last"), "contiguous,channels_last")}
    for option, (known, usual) in lists.items():
        parser.add_argument(f"--{option}", action="append", help=f"some of {','.join(known)} ({usual})")
    parser.add_argument("--seconds", type=float, default=2, help="for each measurement (2)")
    parser.add_argument("--seed", type=int, default=1, help="of the random inputs (1)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    for option, what in (("json", "write the rows to this file"), ("profile", "write a run's kernels to this one"),
                         ("inputs", "folder of NETWORK.INPUT.npy: read where they are there, written where not"),
                         ("outputs", "folder to write NETWORK.PRECISION.MODE.OUTPUT.npy to")):
        parser.add_argument(f"--{option}", type=pathlib.Path, help=what)
    options = parser.parse_args()
    for option, (known, usual) in lists.items():
        setattr(options, option, ",".join(getattr(options, option) or [usual]).split(","))
        for word in set(getattr(options, option)) - set(known):
            refuse(f"--{option} {word}: is none of {', '.join(known)}")
    for file in (file for file in options.files if not file.is_file()):
        refuse(f"{file}: there is no such file")
    if options.device == "cuda" and not torch.cuda.is_available():
        refuse("PyTorch sees no CUDA device; --device cpu needs none")
    for folder in filter(None, (options.inputs, options.outputs)):
        folder.mkdir(parents=True, exist_ok=True)
    return options


def main():
    options = parse()
    torch.backends.cudnn.benchmark = True
    about = {"device": "cpu", "torch": torch.__version__} if options.device == "cpu" else described()
    print(", ".join(f"{key} {what}" for key, what in about.items()))
    print(f"{'':39}layout           median       5 %      95 %    runs    apart  ready in s", flush=True)
    rows, profiles = [], []
    with torch.inference_mode():
        for file in options.files:
            for row in rows_of(file, options):
                print(shown(row), flush=True)
                rows.append({**row, "file": str(file)})
                if options.json:  # each time, since a run may be cut short
                    options.json.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
        # Profiles come last: a profiler may slow down what follows it. Of graphs, where they were asked for.
        mode = "graph" if "graph" in options.modes else options.modes[0]
        for row in rows if options.profile else ():
            if row["mode"] == mode and "error" not in row:
                try:
                    set_precision(row["precision"])
                    kernels = profiled(Network(pathlib.Path(row["file"]), options), row)
                    profiles.append({**row, "kernels_us": sum(kernel["us"] for kernel in kernels), "kernels": kernels})
                    options.profile.write_text(json.dumps(profiles, indent=1) + "\n")
                except Exception as problem:
                    row["error"] = f"no profile: {one_line(problem)}"
                    print(shown(row), flush=True)
    return 1 if any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
