"""How many floating-point operations a network needs: multiply-adds of convolutions and products, counted twice.

Functions take shapes; `count` takes a model whose values have shapes (onnx.shape_inference) and knows it by its
attributes alone, so that tests need no package.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Shape = Sequence[int]


def conv(weights: Shape, output: Shape) -> int:
    """Every element of the output is one product over the window and the channels of its group."""
    return 2 * math.prod(output) * math.prod(weights[1:])


def conv_transpose(inputs: Shape, weights: Shape) -> int:
    """Every element of the input is spread over the window and the channels of its group."""
    return 2 * math.prod(inputs) * math.prod(weights[1:])


def matmul(left: Shape, output: Shape) -> int:
    return 2 * math.prod(output) * left[-1]


def gemm(left: Shape, output: Shape, transposed: bool) -> int:
    return 2 * math.prod(output) * (left[0] if transposed else left[1])


def of_node(node: Any, shapes: Mapping[str, Shape]) -> int:
    """Of one node of ONNX; 0 for other operators. KeyError where a shape is not known."""
    if node.op_type not in ("Conv", "ConvTranspose", "MatMul", "Gemm"):
        return 0
    first, second, output = shapes[node.input[0]], shapes[node.input[1]], shapes[node.output[0]]
    if node.op_type == "Conv":
        return conv(second, output)
    if node.op_type == "ConvTranspose":
        return conv_transpose(first, second)
    if node.op_type == "MatMul":
        # A vector on the right leaves no extent of its own, which changes nothing: the output has the others.
        return matmul(first, output)
    return gemm(first, output, any(a.name == "transA" and a.i for a in node.attribute))


def known_shapes(graph: Any) -> dict[str, Shape]:
    """The shapes of all values whose extents are all known."""
    shapes: dict[str, Shape] = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if kind.HasField("shape") and all(extent.HasField("dim_value") for extent in kind.shape.dim):
            shapes[value.name] = tuple(extent.dim_value for extent in kind.shape.dim)
    for node in graph.node:
        if node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].HasField("t"):
            shapes[node.output[0]] = tuple(node.attribute[0].t.dims)
    return shapes


def count(graph: Any) -> int | None:
    """Of all nodes of a graph, without those inside branches and loops; None where shapes are missing."""
    shapes = known_shapes(graph)
    try:
        return sum(of_node(node, shapes) for node in graph.node)
    except (KeyError, IndexError):
        return None
