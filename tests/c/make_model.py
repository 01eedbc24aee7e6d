#!/usr/bin/env python3
"""Writes the ONNX models that the tests and examples of the C interface read: make_model.py FILE PLAIN_FILE STATE_FILE WIDE_FILE PORTS_FILE

y = reshape(relu(x w + b), dims), where x is float32[N, 4] and dims, int64[2], is an input as well: its value and N are
left to the user. w[i][j] = (3 i + j) / 4 - 1 and b[j] = j / 2 - 1/2. The second model goes without the reshape. The third has
state: h_next = relu(x w + b) - h, and present is past, float32[past_length, 3], with h_next below it. The fourth is
y = relu(x w) v of float32[N, 512], products so large that lower precision pays. The fifth has 2,000 inputs x0, x1 ... of
float32[4], and as many outputs, which are their relus. The files are written field by field, as protobuf's wire format and onnx.proto have them, so that no package is needed.
"""
import pathlib
import struct
import sys


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, content) -> bytes:
    """One field: an integer, or text, bytes or a message with its length in front."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    data = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(data)) + data


FLOAT, INT64 = 1, 7
ATTRIBUTE_INT = 2


def value(name: str, kind: int, dims: list) -> bytes:
    extents = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, extents)))


def weight(name: str, dims: list, numbers: list) -> bytes:
    data = struct.pack(f"<{len(numbers)}f", *numbers)
    return b"".join(field(1, d) for d in dims) + field(2, FLOAT) + field(8, name) + field(9, data)


def node(kind: str, inputs: list, outputs: list, **integers: int) -> bytes:
    attributes = [field(1, name) + field(3, i) + field(20, ATTRIBUTE_INT) for name, i in integers.items()]
    return (b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(4, kind) +
            b"".join(field(5, a) for a in attributes))


def wide() -> bytes:
    size = 512
    numbers = [[(k * factor % 1009) / 1009 - 0.5 for k in range(size * size)] for factor in (7, 11)]
    graph = [
        field(1, node("MatMul", ["x", "w"], ["p"])),
        field(1, node("Relu", ["p"], ["r"])),
        field(1, node("MatMul", ["r", "v"], ["y"])),
        field(2, "wide"),
        *(field(5, weight(name, [size, size], list_)) for name, list_ in zip("wv", numbers)),
        field(11, value("x", FLOAT, ["N", size])),
        field(12, value("y", FLOAT, ["N", size])),
    ]
    return framed(graph)


def ports() -> bytes:
    count = 2000
    return framed([
        *(field(1, node("Relu", [f"x{i}"], [f"y{i}"])) for i in range(count)),
        field(2, "ports"),
        *(field(11, value(f"x{i}", FLOAT, [4])) for i in range(count)),
        *(field(12, value(f"y{i}", FLOAT, [4])) for i in range(count)),
    ])


def framed(graph: list) -> bytes:
    return (field(1, 8) + field(2, "collage's tests") + field(7, b"".join(graph)) +
            field(8, field(1, "") + field(2, 17)))


def model(kind: str) -> bytes:
    if kind in ("wide", "ports"):
        return {"wide": wide, "ports": ports}[kind]()
    graph = [
        field(1, node("Gemm", ["x", "w", "b"], ["g"])),
        field(1, node("Relu", ["g"], ["y" if kind == "plain" else "r"])),
        field(2, "tiny"),
        field(5, weight("w", [4, 3], [k / 4 - 1 for k in range(12)])),
        field(5, weight("b", [3], [k / 2 - 0.5 for k in range(3)])),
        field(11, value("x", FLOAT, ["N", 4])),
    ]
    if kind == "state":
        graph += [
            field(1, node("Sub", ["r", "h"], ["h_next"])),
            field(1, node("Concat", ["past", "h_next"], ["present"], axis=0)),
            field(11, value("h", FLOAT, ["N", 3])),
            field(11, value("past", FLOAT, ["past_length", 3])),
            field(12, value("h_next", FLOAT, ["N", 3])),
            field(12, value("present", FLOAT, ["length", 3])),
        ]
    else:
        graph.append(field(12, value("y", FLOAT, ["rows", "columns"])))
    if kind == "reshaped":
        graph += [field(1, node("Reshape", ["r", "dims"], ["y"])), field(11, value("dims", INT64, [2]))]
    return framed(graph)


for file, kind in zip(sys.argv[1:], ("reshaped", "plain", "state", "wide", "ports"), strict=True):
    pathlib.Path(file).write_bytes(model(kind))
