"""The small ONNX models of the snippets, written field by field as onnx.proto has them, so that no package is needed."""
import pathlib
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))  # the tests of the package itself
from models import field  # noqa: E402

KINDS = {np.dtype(name): kind for name, kind in (
    ("float32", 1), ("uint8", 2), ("int8", 3), ("int32", 6), ("int64", 7), ("bool", 9), ("float16", 10), ("float64", 11))}
TEXT = 8


def node(kind, inputs, outputs, **attributes):
    def attribute(name, value):
        if isinstance(value, int):
            return field(1, name) + field(3, value) + field(20, 2)
        return field(1, name) + b"".join(field(8, n) for n in value) + field(20, 7)
    return field(1, b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(4, kind) +
                 b"".join(field(5, attribute(*item)) for item in attributes.items()))


def port(number, name, dtype, *extents):
    """An input (11) or output (12). An extent is a number, a name, None, or a pair of a name and a denotation."""
    def extent(e):
        if isinstance(e, tuple):
            return field(2, e[0]) + field(3, e[1])
        return b"" if e is None else field(2, e) if isinstance(e, str) else field(1, e)
    kind = TEXT if dtype == "text" else KINDS[np.dtype(dtype)]
    shape = b"".join(field(1, extent(e)) for e in extents)
    return field(number, field(1, name) + field(2, field(1, field(1, kind) + field(2, shape))))


def takes(name, dtype, *extents):
    return port(11, name, dtype, *extents)


def gives(name, dtype, *extents):
    return port(12, name, dtype, *extents)


def weight(name, value):
    value = np.asarray(value)
    dims = b"".join(field(1, d) for d in value.shape)
    return field(5, dims + field(2, KINDS[value.dtype]) + field(8, name) + field(9, value.tobytes()))


def outside(name, shape, location, offset, length):
    """A weight of floats whose bytes lie in another file. Without a length, it has as many as its elements need."""
    entries = [("location", location), ("offset", str(offset))] + ([("length", str(length))] if length else [])
    return (b"".join(field(1, d) for d in shape) + field(2, 1) + field(8, name) + field(14, 1) +
            b"".join(field(13, field(1, key) + field(2, text)) for key, text in entries))


def model(*graph, name="graph", opset=17, **metadata):
    entries = b"".join(field(14, field(1, key) + field(2, text)) for key, text in metadata.items())
    return (field(1, 8) + field(2, "collage tests") + field(4, "org.example") + field(5, 3) + field(6, "a small model") +
            field(7, b"".join(graph) + field(2, name)) + field(8, field(1, "") + field(2, opset)) + entries)


def numbers(*shape, scale=1.0):
    """Weights that are the same everywhere."""
    return (np.sin(np.arange(int(np.prod(shape)), dtype=np.float64)).reshape(shape) * scale).astype(np.float32)


def attention_free_encoder():
    """Embeds tokens and mixes them: what exported sentence encoders look like from outside."""
    return model(
        takes("input_ids", "int64", "batch", "sequence"), takes("attention_mask", "int64", "batch", "sequence"),
        weight("table", numbers(50, 8)), weight("w", numbers(8, 8, scale=0.4)), weight("last", np.array([2], np.int64)),
        node("Gather", ["table", "input_ids"], ["embedded"], axis=0), node("Cast", ["attention_mask"], ["mask"], to=1),
        node("Unsqueeze", ["mask", "last"], ["column"]), node("Mul", ["embedded", "column"], ["kept"]),
        node("MatMul", ["kept", "w"], ["mixed"]), node("Tanh", ["mixed"], ["last_hidden_state"]),
        gives("last_hidden_state", "float32", "batch", "sequence", 8))


def classifier(*size):
    """A convolution, the average of each channel, and class scores."""
    return model(
        takes("images", "float32", *size), weight("k", numbers(4, 3, 3, 3)), weight("b", numbers(4)),
        weight("w", numbers(4, 5)), node("Conv", ["images", "k", "b"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]), node("GlobalAveragePool", ["r"], ["p"]), node("Flatten", ["p"], ["f"], axis=1),
        node("MatMul", ["f", "w"], ["logits"]), gives("logits", "float32", size[0], 5),
        names="{0: 'ant', 1: 'bee', 2: 'cat', 3: 'dog', 4: 'eel'}", stride="32", task="classify")


def recurrent():
    """A voice detector's interface: sound and state in, a probability and the next state out."""
    return model(
        takes("input", "float32", "batch", "length"), takes("state", "float32", 2, "batch", 4), takes("sr", "int64"),
        weight("one", np.array([1], np.int64)), weight("w", numbers(1, 4)),
        node("ReduceMean", ["input"], ["mean"], axes=[1], keepdims=1), node("MatMul", ["mean", "w"], ["heard"]),
        node("Cast", ["sr"], ["rate"], to=1), node("Div", ["heard", "rate"], ["part"]), node("Add", ["state", "part"], ["sum"]),
        node("Tanh", ["sum"], ["stateN"]), node("ReduceMean", ["stateN"], ["level"], axes=[0, 2], keepdims=0),
        node("Unsqueeze", ["level", "one"], ["column"]), node("Sigmoid", ["column"], ["output"]),
        gives("output", "float32", "batch", 1), gives("stateN", "float32", 2, "batch", 4))


def detector():
    """Rows of boxes for cells of a picture: four coordinates and the scores of three classes, as exported detectors have them."""
    return model(
        takes("images", "float32", 1, 3, 32, 32), weight("k", numbers(7, 3, 8, 8, scale=0.2)),
        weight("cells", np.array([1, 7, 16], np.int64)), node("Conv", ["images", "k"], ["c"], strides=[8, 8]),
        node("Sigmoid", ["c"], ["s"]), node("Reshape", ["s", "cells"], ["output0"]), gives("output0", "float32", 1, 7, 16),
        names="{0: 'person', 1: 'bicycle', 2: 'car'}", imgsz="[32, 32]", stride="8")


def reader():
    """Class probabilities of each column of a line of text; class 0 is the blank."""
    return model(
        takes("x", "float32", "DynamicDimension.0", 3, 8, "DynamicDimension.1"), weight("k", numbers(6, 3, 8, 4)),
        node("Conv", ["x", "k"], ["c"], strides=[8, 4]), weight("row", np.array([2], np.int64)), node("Squeeze", ["c", "row"], ["s"]),
        node("Transpose", ["s"], ["t"], perm=[0, 2, 1]), node("Softmax", ["t"], ["y"], axis=2),
        gives("y", "float32", "DynamicDimension.0", "columns", 6), character="blank,a,b,c,d,e")


def segmenter():
    """The class of each pixel."""
    return model(
        takes("input", "float32", "batch_size", 3, "height", "width"), weight("k", numbers(4, 3, 3, 3)),
        node("Conv", ["input", "k"], ["logits"], pads=[1, 1, 1, 1]), node("ArgMax", ["logits"], ["classes"], axis=1, keepdims=0),
        gives("classes", "int64", "batch_size", "height", "width"), gives("logits", "float32", "batch_size", 4, "height", "width"))


def enlarger():
    """A picture of twice the size."""
    return model(
        takes("lr", "float32", 1, 3, "h", "w"), weight("k", numbers(12, 3, 3, 3, scale=0.1)),
        node("Conv", ["lr", "k"], ["c"], pads=[1, 1, 1, 1]), node("DepthToSpace", ["c"], ["sr"], blocksize=2),
        gives("sr", "float32", 1, 3, "2h", "2w"))


def models():
    """All models by their names."""
    n4 = ("N", 4)
    return {
        "linear": model(takes("x", "float32", *n4), weight("w", numbers(4, 3)), weight("b", numbers(3)),
                        node("Gemm", ["x", "w", "b"], ["y"]), gives("y", "float32", "N", 3), name="linear", labels="a,b,c"),
        "two_outputs": model(takes("x", "float32", *n4), weight("w", numbers(4, 3)), node("MatMul", ["x", "w"], ["scores"]),
                             node("Softmax", ["scores"], ["probabilities"], axis=1),
                             node("ArgMax", ["scores"], ["label"], axis=1, keepdims=0), gives("label", "int64", "N"),
                             gives("probabilities", "float32", "N", 3)),
        "two_inputs": model(takes("a", "float32", "N", 2), takes("b", "float32", "N", 2), node("Sub", ["a", "b"], ["y"]),
                            gives("y", "float32", "N", 2)),
        "fixed": model(takes("x", "float32", 2, 4), weight("w", numbers(4, 3)), node("MatMul", ["x", "w"], ["h"]),
                       node("Relu", ["h"], ["y"]), gives("y", "float32", 2, 3)),
        "classifier": classifier(1, 3, 8, 8), "any_image": classifier("batch", 3, "height", "width"),
        "encoder": attention_free_encoder(), "recurrent": recurrent(),
        "ids": model(takes("ids", "int64", "n"), node("Add", ["ids", "ids"], ["twice"]), gives("twice", "int64", "n")),
        "half": model(takes("x", "float16", "n"), node("Add", ["x", "x"], ["y"]), gives("y", "float16", "n")),
        "mask": model(takes("m", "bool", "n"), node("Not", ["m"], ["y"]), gives("y", "bool", "n")),
        "quantised": model(takes("pixels", "uint8", 1, 6), weight("scale", np.float32(0.5)), weight("zero", np.uint8(128)),
                           node("DequantizeLinear", ["pixels", "scale", "zero"], ["x"]), node("Relu", ["x"], ["y"]),
                           node("QuantizeLinear", ["y", "scale", "zero"], ["q"]), gives("q", "uint8", 1, 6)),
        "scaled": model(takes("x", "float32", 3), takes("factor", "float32"), node("Mul", ["x", "factor"], ["y"]),
                        gives("y", "float32", 3)),
        "overridable": model(takes("x", "float32", 2), takes("w", "float32", 2), weight("w", np.array([1, 2], np.float32)),
                             node("Add", ["x", "w"], ["y"]), gives("y", "float32", 2)),
        "denoted": model(takes("x", "float32", ("N", "DATA_BATCH"), 2), node("Relu", ["x"], ["y"]), gives("y", "float32", "N", 2)),
        "detector": detector(), "reader": reader(), "segmenter": segmenter(), "enlarger": enlarger(),
        "keeps": model(takes("x", "float32", 1, 8, 16, 16), weight("k", numbers(16, 8, 3, 3)), weight("b", numbers(16)),
                       node("Conv", ["x", "k", "b"], ["c"], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["y"]),
                       gives("y", "float32", 1, 16, 16, 16)),
        "outside": model(takes("x", "float32", *n4), field(5, outside("w", (4, 3), "sub/weights.bin", 8, 48)),
                         field(5, outside("b", (3,), "sub/weights.bin", 56, 0)), node("Gemm", ["x", "w", "b"], ["y"]),
                         gives("y", "float32", "N", 3)),
        "text": model(takes("t", "text", "n"), node("Identity", ["t"], ["y"]), gives("y", "text", "n")),
        # The value of an input decides the shape of the output.
        "reshaped": model(takes("x", "float32", 2, 3), takes("shape", "int64", 2), node("Reshape", ["x", "shape"], ["r"]),
                          node("Relu", ["r"], ["y"]), gives("y", "float32", "rows", "columns")),
        "nonzero": model(takes("x", "float32", 4), node("NonZero", ["x"], ["y"]), gives("y", "int64", 1, "found")),
        "unknown_operator": model(takes("x", "float32", 2), node("Frobnicate", ["x"], ["y"]), gives("y", "float32", 2)),
        "wrong_graph": model(takes("x", "float32", 2), node("Relu", ["nowhere"], ["y"]), gives("y", "float32", 2)),
    }


def write(folder):
    """Writes all models to a folder, and the weights of one to "far" in it."""
    weights = pathlib.Path(folder, "far", "sub", "weights.bin")
    weights.parent.mkdir(parents=True, exist_ok=True)
    weights.write_bytes(bytes(8) + numbers(4, 3).tobytes() + numbers(3).tobytes() + bytes(4))
    for name, contents in models().items():
        (pathlib.Path(folder) / f"{name}.onnx").write_bytes(contents)
