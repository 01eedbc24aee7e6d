"""Snippets of whole pipelines: what programs do before and after a run, and the inner names that they reach for."""
import json

import numpy as np


def letterboxed(image, size):
    """The picture in a grey square, how much it was scaled, and where it lies."""
    h, w = image.shape[:2]
    scale = min(size / h, size / w)
    new_h, new_w = int(round(h * scale)), int(round(w * scale))
    rows, columns = (np.arange(new_h) / scale).astype(int).clip(0, h - 1), (np.arange(new_w) / scale).astype(int).clip(0, w - 1)
    top, left = (size - new_h) // 2, (size - new_w) // 2
    square = np.full((size, size, 3), 114, np.uint8)
    square[top : top + new_h, left : left + new_w] = image[rows][:, columns]
    return square, scale, (left, top)


def suppressed(boxes, scores, limit):
    order, kept = scores.argsort()[::-1], []
    while order.size:
        i, order = order[0], order[1:]
        kept.append(int(i))
        corner, far = np.maximum(boxes[i, :2], boxes[order, :2]), np.minimum(boxes[i, 2:], boxes[order, 2:])
        common = np.prod(np.clip(far - corner, 0, None), axis=1)
        areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
        order = order[common / (areas[i] + areas[order] - common + 1e-9) <= limit]
    return kept


def detection_with_a_letterbox(ort, here):
    session = ort.InferenceSession(here + "/detector.onnx", providers=ort.get_available_providers())
    size = session.get_inputs()[0].shape[-1]
    image = np.random.default_rng(3).integers(0, 256, (21, 40, 3), dtype=np.uint8)
    square, scale, (left, top) = letterboxed(image, size)
    blob = np.ascontiguousarray(square[..., ::-1].transpose(2, 0, 1)[None], dtype=np.float32) / 255
    rows = session.run([session.get_outputs()[0].name], {session.get_inputs()[0].name: blob})[0][0].T
    boxes, scores = rows[:, :4] * size, rows[:, 4:].max(axis=1)
    corners = np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], axis=1)
    kept = suppressed(corners, scores, 0.45)
    return kept, (corners[kept] - [left, top, left, top]) / scale, rows[kept, 4:].argmax(axis=1)


def lines_of_text(ort, here):
    session = ort.InferenceSession(here + "/reader.onnx")
    characters = session.get_modelmeta().custom_metadata_map["character"].split(",")
    rng, texts = np.random.default_rng(5), []
    for widths in ((16, 24, 20), (32,)):  # a batch has the width of its widest line
        batch = np.zeros((len(widths), 3, 8, max(widths)), np.float32)
        for i, width in enumerate(widths):
            batch[i, :, :, :width] = (rng.random((3, 8, width), np.float32) - 0.5) / 0.5
        probabilities = session.run(None, {session.get_inputs()[0].name: batch})[0]
        for row in probabilities.argmax(axis=2):
            texts.append("".join(characters[c] for i, c in enumerate(row) if c and (i == 0 or c != row[i - 1])))
    return texts, session.get_inputs()[0].shape


class Encoding:
    """What tokenizers return: lists of numbers."""

    def __init__(self, ids):
        self.ids, self.attention_mask, self.type_ids = ids, [1 if i else 0 for i in ids], [0] * len(ids)


def embeddings_of_token_lists(ort, here):
    session = ort.InferenceSession(here + "/encoder.onnx")
    encoded = [Encoding([1, 7, 9, 2]), Encoding([1, 3, 2, 0])]
    feed = {"input_ids": [e.ids for e in encoded], "attention_mask": [e.attention_mask for e in encoded]}
    by_lists = session.run(None, feed)[0]
    by_arrays = session.run(None, {k: np.array(v, dtype=np.int64) for k, v in feed.items()})[0]
    return np.array_equal(by_lists, by_arrays), by_lists[:, 0] / np.linalg.norm(by_lists[:, 0], axis=1, keepdims=True)


def streamed_speech(ort, here):
    # The rate is given as an array of one element, although the model's input has no dimensions.
    session = ort.InferenceSession(here + "/recurrent.onnx")
    state, context = np.zeros((2, 1, 4), np.float32), np.zeros((1, 8), np.float32)
    sound = np.sin(np.arange(128, dtype=np.float32) / 3).astype(np.float32)
    heard = []
    for start in range(0, len(sound), 32):
        piece = np.concatenate([context, sound[None, start : start + 32]], axis=1)
        feed = {"input": piece, "state": state, "sr": np.array([16000], dtype=np.int64)}
        out, state = session.run(None, feed)
        context = piece[:, -8:]
        heard.append(float(out[0][0]))
    return heard, state


def one_element_for_a_scalar(ort, here):
    session = ort.InferenceSession(here + "/scaled.onnx")
    three, outs = np.arange(3, dtype=np.float32), []
    for factor in (np.array([2], np.float32), [2.0], ort.OrtValue.ortvalue_from_numpy(np.array([2], np.float32))):
        outs += session.run(None, {"x": three, "factor": factor})
    value = ort.OrtValue.ortvalue_from_numpy(np.array([[3]], np.float32))
    outs += [v.numpy().ravel() for v in session.run_with_ort_values(
        None, {"x": ort.OrtValue.ortvalue_from_numpy(three), "factor": value})]
    factor, binding = np.array([4], np.float32), session.io_binding()
    binding.bind_cpu_input("x", three)
    binding.bind_cpu_input("factor", factor)
    binding.bind_output("y")
    for number in 4, 5:
        factor[0] = number
        session.run_with_iobinding(binding)
        outs += binding.copy_outputs_to_cpu()
    return outs


def enlarged_in_tiles(ort, here):
    session = ort.InferenceSession(here + "/enlarger.onnx")
    image = np.random.default_rng(1).random((3, 20, 28), dtype=np.float32)
    tile, border, factor = 12, 2, 2
    result = np.zeros((3, image.shape[1] * factor, image.shape[2] * factor), np.float32)
    for y in range(0, image.shape[1], tile):
        for x in range(0, image.shape[2], tile):
            y0, x0 = max(y - border, 0), max(x - border, 0)
            part = image[None, :, y0 : y + tile + border, x0 : x + tile + border]
            big = session.run(["sr"], {"lr": part})[0][0]
            inner = big[:, (y - y0) * factor :, (x - x0) * factor :][:, : tile * factor, : tile * factor]
            into = result[:, y * factor : (y + tile) * factor, x * factor : (x + tile) * factor]
            into[:] = inner[:, : into.shape[1], : into.shape[2]]
    return (result.clip(0, 1) * 255).round()


def segmented(ort, here):
    session = ort.InferenceSession(here + "/segmenter.onnx")
    palette = np.array([[0, 0, 0], [128, 0, 0], [0, 128, 0], [0, 0, 128]], np.uint8)
    picture = np.random.default_rng(2).integers(0, 256, (9, 13, 3), dtype=np.uint8)
    tensor = (picture.astype("float32").transpose(2, 0, 1)[None] - 127.5) / 127.5
    classes, logits = session.run(None, {"input": tensor})
    return palette[classes[0]], logits.argmax(1)[0], classes.dtype.name


def values_bound_for_a_loop(ort, here):
    session = ort.InferenceSession(here + "/fixed.onnx")
    x_ortvalue = ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 4), np.float32), "cpu", 0)
    io_binding = session.io_binding()
    io_binding.bind_input(name="x", device_type=x_ortvalue.device_name(), device_id=0, element_type=np.float32,
                          shape=x_ortvalue.shape(), buffer_ptr=x_ortvalue.data_ptr())
    io_binding.bind_output("y", "cpu")
    sums = []
    for i in range(3):
        x_ortvalue.update_inplace(np.full((2, 4), i, np.float32))
        session.run_with_iobinding(io_binding)
        values = io_binding.get_outputs_as_ortvaluevector()
        sums.append((len(values), values[0].shape(), values.element_type_at(0), float(values[0].numpy().sum())))
    return sums


def runs_with_names(ort, here):
    session, run_options = ort.InferenceSession(here + "/linear.onnx"), ort.RunOptions()
    run_options.logid, run_options.log_severity_level, run_options.log_verbosity_level = "request-17", 3, 0
    run_options.only_execute_path_to_fetches = 1
    run_options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    out = session.run(["y"], {"x": np.ones((2, 4), np.float32)}, run_options=run_options)
    return (out, run_options.logid, run_options.only_execute_path_to_fetches,
            run_options.get_run_config_entry("memory.enable_memory_arena_shrinkage"))


def options_as_numbers(ort, here):
    so = ort.SessionOptions()
    so.enable_profiling, so.enable_mem_pattern, so.use_deterministic_compute = 0, 0, 1
    so.enable_cpu_mem_arena = None
    names = [str(v) for v in (so.graph_optimization_level, so.execution_mode, so.execution_order)]
    try:
        so.enable_mem_reuse = "yes"
    except TypeError:
        names.append("TypeError")
    return (names, f"{so.graph_optimization_level}", so.enable_profiling, so.enable_mem_pattern, so.enable_cpu_mem_arena,
            so.use_deterministic_compute)


def settings_in_the_metadata(ort, here):
    meta = ort.InferenceSession(here + "/detector.onnx").get_modelmeta().custom_metadata_map
    return {"imgsz": json.loads(meta["imgsz"]), "stride": int(meta.get("stride", 32)), "task": meta.get("task", "detect")}, sorted(meta)


def named_extents(ort, here):
    # Sizes by the names of open extents, for inputs and outputs alike.
    session = ort.InferenceSession(here + "/segmenter.onnx")
    sizes = {"batch_size": 2, "height": 6, "width": 5}
    shapes = {i.name: [d if isinstance(d, int) else sizes[d] for d in i.shape] for i in session.get_inputs()}
    outs = session.run(None, {name: np.zeros(shape, np.float32) for name, shape in shapes.items()})
    said = [[d if isinstance(d, int) else sizes.get(d, d) for d in o.shape] for o in session.get_outputs()]
    return said == [list(o.shape) for o in outs], said, [any(isinstance(d, str) for d in i.shape) for i in session.get_inputs()]


def weights_in_another_folder(ort, here):
    # A model that is downloaded as bytes, and its weights as a file.
    so = ort.SessionOptions()
    so.add_session_config_entry("session.model_external_initializers_file_folder_path", here + "/far")
    with open(here + "/outside.onnx", "rb") as file:
        contents = file.read()
    outs = [ort.InferenceSession(given, so).run(None, {"x": np.ones((1, 4), np.float32)})[0]
            for given in (contents, here + "/outside.onnx")]
    try:
        ort.InferenceSession(contents)
    except ort.capi.onnxruntime_pybind11_state.Fail as e:
        return outs, "weights.bin" in str(e)


def inner_names(ort, here):
    from importlib import import_module
    C = import_module(ort.__name__ + ".capi._pybind_state")
    state = import_module(ort.__name__ + ".capi.onnxruntime_pybind11_state")
    collection = import_module(ort.__name__ + ".capi.onnxruntime_inference_collection")
    session = ort.InferenceSession(here + "/linear.onnx")
    device = state.OrtDevice(state.OrtDevice.cpu(), state.OrtDevice.default_memory(), 0)
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.ones((1, 4), np.float32))
    binding._iobinding.bind_output("y", device)
    session._sess.run_with_iobinding(binding._iobinding, None)
    x = np.ones((1, 4), np.float32)  # inner values do not keep their arrays alive
    value = C.OrtValue.ortvalue_from_numpy(x, device)
    own = C.SessionIOBinding(session._sess)
    own.bind_ortvalue_input("x", value)
    into = np.zeros((1, 3), np.float32)
    own.bind_output("y", device, np.float32, into.shape, into.ctypes.data)
    session._sess.run_with_iobinding(own, None)
    feeds, fetches = C.OrtValueVector(), C.OrtValueVector()
    feeds.push_back(value)
    session.run_with_ortvaluevector(ort.RunOptions(), ["x"], feeds, ["y"], fetches, [device])
    return (session._model_path == here + "/linear.onnx", session._model_bytes, [i.name for i in session._inputs_meta],
            [o.name for o in session._outputs_meta], session._model_meta.graph_name, session._providers, session._provider_options,
            "CPUExecutionProvider" in C.get_available_providers(), C.get_device() == ort.get_device(),
            [v.numpy() for v in binding._iobinding.get_outputs()], binding._iobinding.copy_outputs_to_cpu(), into, fetches[0].numpy(),
            session._sess.run(["y"], {"x": np.ones((1, 4), np.float32)}, None), device.device_type(), device.mem_type(), device.device_id(),
            ort.OrtDevice(device).device_id(), collection.get_ort_device_type("cpu"),
            collection.check_and_normalize_provider_args([("CPUExecutionProvider", {"a": 1})], None, ["CPUExecutionProvider"]),
            all(hasattr(state, name) for name in ("SessionOptions", "RunOptions", "OrtValue", "ModelMetadata", "NodeArg", "NotFound",
                                                  "DeviceReset", "ModelLoadCanceled", "ModelRequiresCompilation")),
            session.get_tuning_results())


def providers_that_are_wrong(ort, here):
    seen = []
    for given in ("CPUExecutionProvider", [{"device_id": 0}], [("CPUExecutionProvider",)]):
        seen.append(ort.InferenceSession(here + "/linear.onnx", providers=given).get_providers())
    try:
        ort.InferenceSession(here + "/linear.onnx", providers=[{}], enable_fallback=0)
    except ValueError as e:
        seen.append(str(e))
    return seen


SNIPPETS = [detection_with_a_letterbox, lines_of_text, embeddings_of_token_lists, streamed_speech, one_element_for_a_scalar,
            enlarged_in_tiles, segmented, values_bound_for_a_loop, runs_with_names, options_as_numbers, settings_in_the_metadata,
            named_extents, weights_in_another_folder, inner_names, providers_that_are_wrong]
