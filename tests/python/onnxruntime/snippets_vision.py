"""Snippets with pictures, sound and classes: how programs prepare inputs and read outputs."""
import ast
import io
import time

import numpy as np


def picture(height=8, width=8, seed=0):
    """Pixels as a picture's file has them."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def first_steps(ort, here):
    sess = ort.InferenceSession(here + "/linear.onnx")
    input_name = sess.get_inputs()[0].name
    label_name = sess.get_outputs()[0].name
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    pred_onx = sess.run([label_name], {input_name: x})[0]
    return pred_onx


def classify_a_picture(ort, here):
    session = ort.InferenceSession(here + "/classifier.onnx", providers=["CPUExecutionProvider"])
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    img = picture().astype(np.float32) / 255.0
    img = (img - mean) / std
    img = np.transpose(img, (2, 0, 1))
    batch = np.expand_dims(img, axis=0).astype(np.float32)
    logits = session.run(None, {session.get_inputs()[0].name: batch})[0]
    e = np.exp(logits - np.max(logits, axis=1, keepdims=True))
    scores = np.squeeze(e / e.sum(axis=1, keepdims=True))
    ranking = np.argsort(scores)[::-1]
    return [int(i) for i in ranking[:3]], scores


def transposed_without_a_copy(ort, here):
    # The array stays a view with strides: nothing makes it contiguous here.
    session = ort.InferenceSession(here + "/classifier.onnx")
    blob = (picture().astype(np.float32) / 255).transpose(2, 0, 1)[None]
    assert not blob.flags["C_CONTIGUOUS"]
    return session.run(None, {"images": blob})


def size_of_the_input(ort, here):
    sizes = []
    for file in ("classifier", "any_image"):
        shape = ort.InferenceSession(f"{here}/{file}.onnx").get_inputs()[0].shape
        h, w = shape[2], shape[3]
        if isinstance(h, str) or h is None:  # the model takes any size
            h, w = 16, 24
        sizes.append((h, w))
    return sizes


def any_batch_and_size(ort, here):
    session = ort.InferenceSession(here + "/any_image.onnx")
    outs = []
    for n, h, w in ((1, 8, 8), (3, 8, 12), (1, 8, 8), (2, 5, 7)):
        blob = np.stack([picture(h, w, i) for i in range(n)]).transpose(0, 3, 1, 2).astype(np.float32) / 255
        outs.append(session.run(["logits"], {"images": blob})[0])
    return outs


class Detector:
    """The class that programs write around a session."""

    def __init__(self, ort, path, threshold=0.0):
        self.threshold = threshold
        self.session = ort.InferenceSession(path, providers=ort.get_available_providers())
        self.get_input_details()
        self.get_output_details()

    def __call__(self, image):
        return self.detect(image)

    def get_input_details(self):
        model_inputs = self.session.get_inputs()
        self.input_names = [model_inputs[i].name for i in range(len(model_inputs))]
        self.input_shape = model_inputs[0].shape
        self.input_height, self.input_width = self.input_shape[2:]

    def get_output_details(self):
        model_outputs = self.session.get_outputs()
        self.output_names = [model_outputs[i].name for i in range(len(model_outputs))]

    def detect(self, image):
        tensor = image[: self.input_height, : self.input_width].astype(np.float32).transpose(2, 0, 1)[np.newaxis] / 255.0
        outputs = self.session.run(self.output_names, {self.input_names[0]: tensor})
        scores = np.squeeze(outputs[0]).T
        return [int(i) for i in np.where(scores > self.threshold)[0]]


def detector_class(ort, here):
    return Detector(ort, here + "/classifier.onnx")(picture(10, 10))


def names_of_classes(ort, here):
    session = ort.InferenceSession(here + "/classifier.onnx")
    meta = session.get_modelmeta().custom_metadata_map
    stride, names = int(meta["stride"]), ast.literal_eval(meta["names"])
    return stride, names, meta.get("batch"), "task" in meta


def description_of_the_model(ort, here):
    meta = ort.InferenceSession(here + "/linear.onnx").get_modelmeta()
    return (meta.producer_name, meta.graph_name, meta.domain, meta.description, meta.graph_description, meta.version,
            meta.custom_metadata_map)


def label_and_probabilities(ort, here):
    # As converted classifiers have them: the label first, then the probabilities.
    sess = ort.InferenceSession(here + "/two_outputs.onnx")
    X_test = np.linspace(-1, 1, 12).reshape(3, 4)
    res = sess.run(None, {"x": X_test.astype(np.float32)})
    predicted, probabilities = res[0], res[1]
    assert predicted.dtype == np.int64
    return [int(p) for p in predicted], probabilities.max(axis=1)


def outputs_by_name(ort, here):
    sess = ort.InferenceSession(here + "/two_outputs.onnx")
    names = [o.name for o in sess.get_outputs()]
    x = np.ones((1, 4), np.float32)
    by_name = dict(zip(names, sess.run(names, {"x": x})))
    other_order = sess.run(["probabilities", "label"], {"x": x})
    only_one, = sess.run(["label"], {"x": x})
    return by_name, other_order, only_one, names


def quantised_pixels(ort, here):
    session = ort.InferenceSession(here + "/quantised.onnx")
    inp = session.get_inputs()[0]
    dtype = {"tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(float)": np.float32}[inp.type]
    pixels = np.array([[0, 64, 128, 192, 250, 255]]).astype(dtype)
    return session.run(None, {inp.name: pixels})[0]


def half_precision(ort, here):
    session = ort.InferenceSession(here + "/half.onnx")
    is_half = session.get_inputs()[0].type == "tensor(float16)"
    img = np.linspace(0, 1, 5)
    img = img.astype(np.float16 if is_half else np.float32)
    out = session.run(None, {"x": img})[0]
    return out, str(out.dtype)


def voice_with_state(ort, here):
    opts = ort.SessionOptions()
    opts.inter_op_num_threads = 1
    opts.intra_op_num_threads = 1
    session = ort.InferenceSession(here + "/recurrent.onnx", providers=["CPUExecutionProvider"], sess_options=opts)
    sound = np.sin(np.arange(96) / 5).astype(np.float32)
    state = np.zeros((2, 1, 4), dtype=np.float32)
    probabilities = []
    for start in range(0, len(sound), 32):
        chunk = sound[start : start + 32][None]
        out, state = session.run(None, {"input": chunk, "state": state, "sr": np.array(16000, dtype="int64")})
        probabilities.append(out.item())
    return probabilities, state


def last_piece_padded(ort, here):
    session = ort.InferenceSession(here + "/recurrent.onnx")
    sound, window = np.cos(np.arange(70)).astype(np.float32), 32
    feeds = {"state": np.zeros((2, 1, 4), np.float32), "sr": np.array(8000)}
    probabilities = []
    for i in range(0, sound.size, window):
        piece = sound[i : i + window]
        if len(piece) < window:
            piece = np.pad(piece, (0, window - len(piece)))
        prob, feeds["state"] = session.run(["output", "stateN"], {"input": piece.reshape(1, -1), **feeds})
        probabilities.append(float(prob[0, 0]))
    return probabilities


def model_from_bytes(ort, here):
    with open(here + "/linear.onnx", "rb") as f:
        content = f.read()
    buffer = io.BytesIO(content)
    session = ort.InferenceSession(buffer.getvalue(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.eye(4, dtype=np.float32)})


def timing_loop(ort, here):
    session = ort.InferenceSession(here + "/classifier.onnx")
    inputs = {session.get_inputs()[0].name: np.zeros(session.get_inputs()[0].shape, np.float32)}
    for _ in range(3):  # warm-up
        session.run(None, inputs)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        session.run(None, inputs)
        times.append((time.perf_counter() - start) * 1000)
    return 0 < np.percentile(times, 50) <= np.max(times)


def two_models_in_a_row(ort, here):
    so = ort.SessionOptions()
    encoder, head = (ort.InferenceSession(f"{here}/{name}.onnx", so) for name in ("any_image", "scaled"))
    features = encoder.run(None, {"images": np.ones((1, 3, 6, 6), np.float32)})[0][0, :3]
    return head.run(None, {"x": features, "factor": np.array(2, dtype=np.float32)})


SNIPPETS = [first_steps, classify_a_picture, transposed_without_a_copy, size_of_the_input, any_batch_and_size, detector_class,
            names_of_classes, description_of_the_model, label_and_probabilities, outputs_by_name, quantised_pixels, half_precision,
            voice_with_state, last_piece_padded, model_from_bytes, timing_loop, two_models_in_a_row]
