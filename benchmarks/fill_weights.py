"""Gives weightless ONNX files their weights, by the rule that stands in workloads/README.md.

    python3 fill_weights.py FILE.onnx FILLED.onnx

Needs the packages onnx and numpy.
"""
import math
import sys
import zlib

import numpy as np
import onnx

GOLDEN_GAMMA = 0x9E3779B97F4A7C15  # by which the state of SplitMix64 moves on
LARGEST_MESSAGE = 2**31 - 2**20  # bytes: protobuf's limit, with room for everything that is no weight


def upper_bits(seed, count):
    """The upper 24 bits of SplitMix64's first `count` numbers."""
    state = np.arange(1, count + 1, dtype=np.uint64)
    state *= np.uint64(GOLDEN_GAMMA)
    state += np.uint64(seed)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state ^= state >> np.uint64(shift)
        state *= np.uint64(factor)
    state ^= state >> np.uint64(31)
    return state >> np.uint64(40)


def is_weightless(tensor):
    return (tensor.doc_string.startswith("uniform ") and tensor.data_type == onnx.TensorProto.FLOAT
            and not tensor.raw_data and not tensor.float_data and not tensor.external_data)


def weights_of(tensor):
    low, high = (np.float32(word) for word in tensor.doc_string.split()[1:3])
    u = upper_bits(zlib.crc32(tensor.name.encode()), math.prod(tensor.dims)).astype(np.float32) * np.float32(2**-24)
    return (low + (high - low) * u).reshape(tensor.dims)


def tensors_of(graph):
    """All tensors that a graph holds, those of its sub-graphs too."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from attribute.tensors
            if attribute.HasField("t"):
                yield attribute.t
            for inner in [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]:
                yield from tensors_of(inner)


def fill(model):
    """Fills a model in memory; answers how many bytes of weights it got, 0 where it had them all."""
    bytes_filled = 0
    for tensor in tensors_of(model.graph):
        if is_weightless(tensor):
            tensor.raw_data = weights_of(tensor).astype("<f4").tobytes()
            bytes_filled += len(tensor.raw_data)
    return bytes_filled


def fill_file(source, target):
    """Writes the filled model to `target`, with its weights in `target`.data where one file cannot hold them; answers
    whether there was anything to fill, and writes nothing where there was not."""
    model = onnx.load(source)
    filled = fill(model)
    if filled > LARGEST_MESSAGE:
        beside = target.with_name(f"{target.name}.data")
        beside.unlink(missing_ok=True)  # saving appends
        onnx.save(model, target, save_as_external_data=True, location=beside.name)
    elif filled:
        onnx.save(model, target)
    return bool(filled)


if __name__ == "__main__":
    import pathlib

    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        filled = fill_file(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    except OSError as problem:
        sys.exit(f"{problem.filename}: {problem.strerror}")
    if not filled:
        sys.exit(f"{sys.argv[1]} lacks no weights: nothing was written")
