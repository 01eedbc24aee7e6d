"""Snippets about text, options, providers, threads and errors."""
import concurrent.futures
import functools
import json
import os
import pathlib
import pickle
import threading

import numpy as np


def sentence_embeddings(ort, here):
    session = ort.InferenceSession(here + "/encoder.onnx", providers=["CPUExecutionProvider"])
    encoded = {"input_ids": np.array([[1, 5, 7, 2], [1, 9, 2, 0]]), "attention_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]]),
               "token_type_ids": np.zeros((2, 4), dtype=np.int64)}
    names = {i.name for i in session.get_inputs()}
    feeds = {k: v.astype(np.int64) for k, v in encoded.items() if k in names}
    hidden = session.run(["last_hidden_state"], feeds)[0]
    mask = np.expand_dims(feeds["attention_mask"], -1).astype(np.float32)
    pooled = (hidden * mask).sum(axis=1) / np.clip(mask.sum(axis=1), 1e-9, None)
    return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)


def one_sentence_after_another(ort, here):
    session = ort.InferenceSession(here + "/encoder.onnx")
    lengths = []
    for ids in ([3, 4], [3, 4, 5, 6, 7, 8], [3], [3, 4]):
        ids = np.array([ids], dtype=np.int64)
        out = session.run(None, dict(input_ids=ids, attention_mask=np.ones_like(ids)))
        lengths.append(out[0].shape)
    return lengths


def lists_as_inputs(ort, here):
    sess = ort.InferenceSession(here + "/linear.onnx")
    ids = ort.InferenceSession(here + "/ids.onnx")
    return sess.run(None, {"x": [[1.0, 2.0, 3.0, 4.0]]}), ids.run(None, {"ids": [1, 2, 3]}), ids.run(None, {"ids": []})


def boolean_masks(ort, here):
    sess = ort.InferenceSession(here + "/mask.onnx")
    assert sess.get_inputs()[0].type == "tensor(bool)"
    return sess.run(None, {"m": np.arange(5) > 2})


def options_of_a_server(ort, here):
    options = ort.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("NO_SUCH_VARIABLE", 1))
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.enable_mem_pattern = False
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    session = ort.InferenceSession(here + "/fixed.onnx", options, ["CPUExecutionProvider"])
    return (session.run(None, {"x": np.ones((2, 4), np.float32)}), session.get_session_options().intra_op_num_threads,
            options.get_session_config_entry("session.intra_op.allow_spinning"))


def defaults_of_options(ort, here):
    so, ro = ort.SessionOptions(), ort.RunOptions()
    return (so.intra_op_num_threads, so.enable_mem_pattern, so.enable_cpu_mem_arena, so.enable_profiling, so.log_severity_level,
            so.graph_optimization_level.name, int(so.execution_mode), so.profile_file_prefix, so.use_deterministic_compute,
            so.optimized_model_filepath, ro.log_severity_level, ro.terminate, ro.only_execute_path_to_fetches)


def typing_errors_in_options(ort, here):
    so, seen = ort.SessionOptions(), []
    for name, value in (("intra_op_threads", 1), ("intra_op_num_threads", "4"), ("graph_optimization_level", 1)):
        try:
            setattr(so, name, value)
        except (AttributeError, TypeError) as e:
            seen.append(type(e).__name__)
    try:
        so.get_session_config_entry("no.such.key")
    except RuntimeError as e:
        seen.append(str(e))
    return seen


def no_optimisations(ort, here):
    so = ort.SessionOptions()
    so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    so.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    sess = ort.InferenceSession(here + "/two_inputs.onnx", sess_options=so)
    return sess.run(["y"], {"a": np.ones((1, 2), np.float32), "b": np.full((1, 2), 3, np.float32)})


def graphics_card_if_there_is_one(ort, here):
    providers = ["CPUExecutionProvider"]
    if "CUDAExecutionProvider" in ort.get_available_providers():
        providers.insert(0, "CUDAExecutionProvider")
    session = ort.InferenceSession(here + "/linear.onnx", providers=providers)
    return session.get_providers(), ort.get_device() == "GPU"


def graphics_card_without_looking(ort, here):
    session = ort.InferenceSession(here + "/linear.onnx", providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    return session.get_providers()[-1], session.run(None, {"x": np.zeros((1, 4), np.float32)})


def options_of_providers(ort, here):
    pairs = [("CUDAExecutionProvider", {"device_id": 0, "arena_extend_strategy": "kNextPowerOfTwo"}), "CPUExecutionProvider"]
    first = ort.InferenceSession(here + "/linear.onnx", providers=pairs)
    second = ort.InferenceSession(here + "/linear.onnx", providers=["CPUExecutionProvider"], provider_options=[{}])
    second.set_providers(["CPUExecutionProvider"])
    x = {"x": np.ones((1, 4), np.float32)}
    return first.run(None, x), second.run(None, x), list(second.get_provider_options())


def version_check(ort, here):
    return tuple(int(part) for part in ort.__version__.split(".")[:2]) >= (1, 10), ort.get_version_string() == ort.__version__


def print_all_ports(ort, here):
    lines = []
    for file in ("recurrent", "encoder", "half", "quantised"):
        session = ort.InferenceSession(f"{here}/{file}.onnx")
        for kind, ports in (("in", session.get_inputs()), ("out", session.get_outputs())):
            for i, arg in enumerate(ports):
                lines.append(f"{kind} {i}: {arg.name} {arg.shape} {arg.type}")
    return lines


def random_inputs_for_any_model(ort, here):
    types = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(float16)": np.float16, "tensor(bool)": bool}
    shapes = []
    for file in ("linear", "encoder", "recurrent", "mask", "half"):
        session = ort.InferenceSession(f"{here}/{file}.onnx")
        feeds = {i.name: np.ones([d if isinstance(d, int) and d > 0 else 1 for d in i.shape], dtype=types[i.type])
                 for i in session.get_inputs()}
        shapes.append([list(o.shape) for o in session.run([], feeds)])
    return shapes


def fixed_batch(ort, here):
    so = ort.SessionOptions()
    so.add_free_dimension_override_by_name("N", 2)
    session = ort.InferenceSession(here + "/linear.onnx", so)
    by_word = ort.SessionOptions()
    by_word.add_free_dimension_override_by_denotation("DATA_BATCH", 5)
    other = ort.InferenceSession(here + "/denoted.onnx", by_word)
    try:
        session.run(None, {"x": np.ones((3, 4), np.float32)})
        kind = "no exception"
    except Exception as e:
        kind = type(e).__name__
    return session.get_inputs()[0].shape, session.get_outputs()[0].shape, other.get_inputs()[0].shape, kind, session.run(
        None, {"x": np.ones((2, 4), np.float32)})


def names_from_modules(ort, here):
    # from onnxruntime import ...; from onnxruntime.capi.... import ...
    from importlib import import_module
    InferenceSession, SessionOptions, GraphOptimizationLevel = (
        getattr(import_module(ort.__name__), name) for name in ("InferenceSession", "SessionOptions", "GraphOptimizationLevel"))
    NoSuchFile = import_module(ort.__name__ + ".capi.onnxruntime_pybind11_state").NoSuchFile
    same = import_module(ort.__name__ + ".capi.onnxruntime_inference_collection").InferenceSession is InferenceSession
    if hasattr(ort, "preload_dlls"):
        ort.preload_dlls(cuda=False, cudnn=False)
    opts = SessionOptions()
    opts.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    try:
        InferenceSession(here + "/not_downloaded_yet.onnx", opts)
    except NoSuchFile:
        return same, InferenceSession(here + "/linear.onnx", opts).run(["y"], {"x": np.ones((1, 4), dtype=np.float32)})


def zipped_inputs(ort, here):
    session = ort.InferenceSession(here + "/two_inputs.onnx", None)

    def infer(*inputs):
        feeds = {i.name: x for i, x in zip(session.get_inputs(), inputs)}
        return session.run(None, input_feed=feeds)[0]
    return np.array(infer(np.eye(2, dtype="f4"), np.ones((2, 2), "f4"))).squeeze()


def path_objects(ort, here):
    model = pathlib.Path(here).resolve() / "linear.onnx"
    return ort.InferenceSession(model).get_inputs()[0].name, ort.InferenceSession(str(model)).get_outputs()[0].name


@functools.lru_cache(maxsize=None)
def cached_session(ort, path):
    return ort.InferenceSession(path)


def one_session_for_many_threads(ort, here):
    def predict(i):
        sess = cached_session(ort, here + "/linear.onnx")
        return float(sess.run(None, {"x": np.full((1 + i % 3, 4), i, np.float32)})[0].sum())
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(predict, range(24)))


def asynchronous(ort, here):
    session = ort.InferenceSession(here + "/linear.onnx")
    done, kept = threading.Event(), {}

    def finished(results, user_data, err):
        kept["error"], kept["results"], kept["of"] = err, results, user_data
        done.set()
    session.run_async(["y"], {"x": np.ones((1, 4), np.float32)}, finished, "request 7")
    assert done.wait(60)
    return kept


class PickableInferenceSession:
    """A session that goes to other processes by its path."""

    def __init__(self, ort, model_path):
        self.ort, self.model_path = ort, model_path
        self.sess = ort.InferenceSession(model_path)

    def run(self, *args):
        return self.sess.run(*args)

    def __getstate__(self):
        return {"module": self.ort.__name__, "model_path": self.model_path}

    def __setstate__(self, values):
        import importlib
        self.ort, self.model_path = importlib.import_module(values["module"]), values["model_path"]
        self.sess = self.ort.InferenceSession(self.model_path)


def pickled_by_its_path(ort, here):
    copy = pickle.loads(pickle.dumps(PickableInferenceSession(ort, here + "/linear.onnx")))
    try:
        pickle.dumps(copy.sess)
        return "was pickled"
    except TypeError:
        return copy.run(None, {"x": np.ones((1, 4), np.float32)})


def stopped(ort, here):
    session, options = ort.InferenceSession(here + "/linear.onnx"), ort.RunOptions()
    x = {"x": np.ones((1, 4), np.float32)}
    options.terminate = True
    try:
        session.run(None, x, run_options=options)
    except Exception as e:
        told = type(e).__name__, "terminate flag" in str(e)
    options.terminate = False
    return told, session.run(None, x, options)


def profiled(ort, here):
    so = ort.SessionOptions()
    so.enable_profiling = True
    so.profile_file_prefix = here + "/profile"
    session = ort.InferenceSession(here + "/fixed.onnx", so)
    session.run(None, {"x": np.ones((2, 4), np.float32)})
    file = session.end_profiling()
    with open(file) as f:
        events = json.load(f)
    nodes = [e for e in events if e["cat"] == "Node" and e["name"].endswith("_kernel_time")]
    total = sum(e["dur"] for e in nodes)
    os.remove(file)
    return (bool(nodes) and total >= 0, {e["args"]["provider"] for e in nodes}, any(e["name"] == "model_run" for e in events),
            file.startswith(here + "/profile") and file.endswith(".json"), session.end_profiling())


def quiet(ort, here):
    ort.set_default_logger_severity(3)
    so = ort.SessionOptions()
    so.log_severity_level, so.log_verbosity_level, so.logid = 3, 0, "quiet"
    run_options = ort.RunOptions()
    run_options.log_severity_level = 4
    out = ort.InferenceSession(here + "/linear.onnx", so).run(None, {"x": np.ones((1, 4), np.float32)}, run_options)
    ort.set_default_logger_severity(2)
    return out


def no_rows(ort, here):
    sess = ort.InferenceSession(here + "/linear.onnx")
    return sess.run(None, {"x": np.zeros((0, 4), np.float32)})[0].shape


def shapes_that_values_decide(ort, here):
    reshaped, nonzero = (ort.InferenceSession(f"{here}/{name}.onnx") for name in ("reshaped", "nonzero"))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    outs = [reshaped.run(None, {"x": x, "shape": np.array(shape)})[0] for shape in ([3, 2], [1, -1], [3, 2])]
    return outs, [nonzero.run(None, {"x": np.array(row, np.float32)})[0] for row in ([0, 1, 2, 0], [0, 0, 0, 0], [1, 1, 1, 1])]


def forgotten_inputs(ort, here):
    sess = ort.InferenceSession(here + "/two_inputs.onnx")
    try:
        sess.run(None, {"a": np.zeros((1, 2), np.float32)})
    except ValueError as e:
        return str(e)


def wrong_inputs(ort, here):
    errors = ort.capi.onnxruntime_pybind11_state
    sess, seen = ort.InferenceSession(here + "/linear.onnx"), []
    for feed, words in (({"x": np.zeros((1, 4))}, "Unexpected input data type. Actual: (tensor(double))"),
                        ({"x": np.zeros((1, 4), np.int64)}, "expected: (tensor(float))"),
                        ({"x": np.zeros(4, np.float32)}, "Invalid rank for input: x Got: 1 Expected: 2"),
                        ({"x": np.zeros((1, 5), np.float32)}, "Got invalid dimensions for input: x"),
                        ({"x": np.zeros((1, 4), np.float32), "extra": np.zeros(1)}, "Invalid input name: extra")):
        try:
            sess.run(None, feed)
        except errors.InvalidArgument as e:
            seen.append((words in str(e), "INVALID_ARGUMENT" in str(e)))
    try:
        sess.run(["no such output"], {"x": np.zeros((1, 4), np.float32)})
    except errors.InvalidArgument as e:
        seen.append("Invalid output name:no such output" in str(e))
    return seen


def try_float64_first(ort, here):
    sess = ort.InferenceSession(here + "/linear.onnx")
    data = np.ones((1, 4))
    try:
        return sess.run(None, {"x": data})
    except Exception as e:
        assert "tensor(float)" in str(e)
        return sess.run(None, {"x": data.astype(np.float32)})


def models_that_cannot_be_loaded(ort, here):
    seen = []
    pathlib.Path(here, "broken.onnx").write_bytes(b"these bytes are no model")
    for given in (here + "/no_such_model.onnx", here + "/broken.onnx", b"neither are these", 3):
        try:
            ort.InferenceSession(given)
        except Exception as e:
            seen.append(type(e).__name__)
    return seen


SNIPPETS = [sentence_embeddings, one_sentence_after_another, lists_as_inputs, boolean_masks, options_of_a_server,
            defaults_of_options, typing_errors_in_options, no_optimisations, graphics_card_if_there_is_one,
            graphics_card_without_looking, options_of_providers, version_check, print_all_ports, random_inputs_for_any_model,
            fixed_batch, names_from_modules, zipped_inputs, path_objects, one_session_for_many_threads, asynchronous,
            pickled_by_its_path, stopped, profiled, quiet, no_rows, shapes_that_values_decide, forgotten_inputs, wrong_inputs, try_float64_first,
            models_that_cannot_be_loaded]
