"""What a file of ONNX asks for: its weights filled in where it comes without, its inputs, its operations. Needs onnx."""
from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import fill_weights
import onnx
import onnx.shape_inference

from . import flops
from .errors import Failure

LARGEST_SHAPE_TENSOR = 4096  # elements: larger ones decide no shape, and inference need not see them


def element_type(number: int) -> str:
    """The element type of ONNX as numpy calls it; a Failure for those that engines are not compared on."""
    kind = onnx.helper.tensor_dtype_to_np_dtype(number) if number != onnx.TensorProto.STRING else None
    if kind is None or kind.kind not in "fiub" or kind.name not in (
            "bool", "float16", "float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))):
        raise Failure(f"has an input of {onnx.TensorProto.DataType.Name(number)}, for which there are no random values")
    return kind.name


def free_extents(graph: Any, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The values of extents that have names, from the shapes that are given."""
    values: dict[str, int] = {}
    for port in graph.input:
        for extent, given in zip(port.type.tensor_type.shape.dim, shapes.get(port.name, ())):
            if extent.dim_param:
                values[extent.dim_param] = given
    return values


def shape_of(port: Any, shapes: Mapping[str, Sequence[int]], named: Mapping[str, int]) -> tuple[int, ...]:
    """The concrete shape of an input; a Failure that says which option gives it where it is not known."""
    kind = port.type.tensor_type
    if port.name in shapes:
        return tuple(shapes[port.name])
    if kind.HasField("shape"):
        extents = [e.dim_value if e.HasField("dim_value") else named.get(e.dim_param, -1) for e in kind.shape.dim]
        if min(extents, default=0) >= 0:
            return tuple(extents)
        declared = "x".join(str(e.dim_value) if e.HasField("dim_value") else e.dim_param or "?" for e in kind.shape.dim)
    else:
        declared = "of unknown rank"
    raise Failure(f"has an input {port.name} ({declared}) whose extents are not all known; give them with "
                  f"--shape {port.name}=...")


def without_weights(model: Any) -> None:
    """Drops the contents of large constants: inference of shapes looks at their dimensions alone, and cannot take models
    above 2 GB."""
    for tensor in fill_weights.tensors_of(model.graph):
        elements = 1
        for extent in tensor.dims:
            elements *= extent
        if elements > LARGEST_SHAPE_TENSOR:
            for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data",
                          "external_data", "data_location"):
                tensor.ClearField(field)


def set_shapes(graph: Any, concrete: Mapping[str, Sequence[int]]) -> None:
    """Makes the inputs' shapes concrete, and forgets what the file says of values that follow from them."""
    for port in graph.input:
        if port.name in concrete:
            port.type.tensor_type.ClearField("shape")
            for extent in concrete[port.name]:
                port.type.tensor_type.shape.dim.add().dim_value = extent
    del graph.value_info[:]


def describe(file: str, room: str, shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Describes a file as JSON can hold it; one that lacks its weights is filled into `room`."""
    source = pathlib.Path(file)
    weightless = onnx.load(source, load_external_data=False)
    model_file = source
    if any(fill_weights.is_weightless(tensor) for tensor in fill_weights.tensors_of(weightless.graph)):
        model_file = pathlib.Path(room) / source.name
        model_file.parent.mkdir(parents=True, exist_ok=True)
        fill_weights.fill_file(source, model_file)
    graph = weightless.graph
    constants = {tensor.name for tensor in graph.initializer}
    ports = [port for port in graph.input if port.name not in constants]
    for port in ports:
        if not port.type.HasField("tensor_type"):
            raise Failure(f"has an input {port.name} that is no tensor")
    given = {port.name: shapes[port.name] for port in ports if port.name in shapes}
    named = free_extents(graph, given)
    concrete = {port.name: shape_of(port, given, named) for port in ports}
    # Engines are told those shapes that the file leaves open, and no others.
    opened = {port.name: concrete[port.name] for port in ports
              if not port.type.tensor_type.HasField("shape")
              or not all(extent.HasField("dim_value") for extent in port.type.tensor_type.shape.dim)}
    without_weights(weightless)
    set_shapes(graph, concrete)
    try:
        operations = flops.count(onnx.shape_inference.infer_shapes(weightless, data_prop=True).graph)
    except Exception:  # of many types; a file whose shapes cannot be inferred is compared all the same
        operations = None
    return {"model": str(model_file), "bytes": model_file.stat().st_size,
            "inputs": [{"name": port.name, "type": element_type(port.type.tensor_type.elem_type),
                        "shape": list(concrete[port.name])} for port in ports],
            "outputs": [port.name for port in graph.output],
            "open": {name: list(extents) for name, extents in opened.items()}, "overrides": named,
            "gflop": operations / 1e9 if operations else None}
