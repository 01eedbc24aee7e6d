"""Opens the batch and the length of benchmarks/workloads/bert-base-128.onnx, and fills in its weights. Needs onnx.

    python3 -m shapes.bert SOURCE.onnx TARGET.onnx
"""
from __future__ import annotations

import pathlib
import sys
from collections.abc import Sequence

BATCH, LENGTH = 1, 128  # the extents that the file has
NAMES = ("batch", "length")


def opened_target(dims: Sequence[int]) -> list[int]:
    """The target of a reshape, of which the first two extents become those of the operand."""
    if tuple(dims[:2]) != (BATCH, LENGTH):
        raise ValueError(f"the reshape to {list(dims)} does not keep batch and length")
    return [0, 0, *dims[2:]]


def main() -> int:
    import fill_weights
    import onnx

    source, target = map(pathlib.Path, sys.argv[1:])
    model = onnx.load(source)
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    targets = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for name in targets:
        dims = opened_target(onnx.numpy_helper.to_array(constants[name]).tolist())
        constants[name].CopyFrom(onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [len(dims)], dims))
    for node in graph.node:
        if node.op_type == "Reshape":
            del node.attribute[:]  # by `allowzero`, 0 would be an extent
    for port in (*graph.input, *graph.output):
        for extent, name in zip(port.type.tensor_type.shape.dim, NAMES):
            extent.dim_param = name
    del graph.value_info[:]
    fill_weights.fill(model)
    onnx.checker.check_model(model)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.new")
    onnx.save(model, unfinished)
    unfinished.replace(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
