"""Small ONNX models as bytes, written field by field as onnx.proto has them, so that no package is needed."""
import struct

FLOAT, UINT8, INT8, INT32, INT64, BOOL, FLOAT16, DOUBLE, BFLOAT16, FLOAT8E4M3FN, INT4 = 1, 2, 3, 6, 7, 9, 10, 11, 16, 17, 22


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number, content):
    """One field: an integer, or text, bytes or a message with its length in front."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    data = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(data)) + data


def value(name, kind, dims):
    extents = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, extents)))


def floats(name, dims, numbers):
    data = struct.pack(f"<{len(numbers)}f", *numbers)
    return b"".join(field(1, d) for d in dims) + field(2, FLOAT) + field(8, name) + field(9, data)


def node(kind, inputs, outputs, **integers):
    attributes = [field(1, name) + field(3, i) + field(20, 2) for name, i in integers.items()]
    return (b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(4, kind)
            + b"".join(field(5, a) for a in attributes))


def model(nodes, inputs, outputs, weights=(), opset=21):
    """Nodes, weights, inputs and outputs are the bytes of the functions above."""
    graph = [*(field(1, n) for n in nodes), field(2, "tiny"), *(field(5, w) for w in weights), *(field(11, i) for i in inputs),
             *(field(12, o) for o in outputs)]
    about = field(14, field(1, "made by") + field(2, "tests"))
    return field(1, 10) + field(2, "collage's tests") + field(7, b"".join(graph)) + field(8, field(1, "") + field(2, opset)) + about


def added(dims, kind=FLOAT, x="x", y="y"):
    """y = x + x, of any shape and type."""
    return model([node("Add", [x, x], [y])], [value(x, kind, dims)], [value(y, kind, dims)])


def dense(rows="N"):
    """y = relu(x w + b), where w[i][j] = (3 i + j) / 4 - 1 and b[j] = j / 2 - 1/2; x is float32[rows, 4], y float32[rows, 3]."""
    return model([node("Gemm", ["x", "w", "b"], ["g"]), node("Relu", ["g"], ["y"])], [value("x", FLOAT, [rows, 4])],
                 [value("y", FLOAT, [rows, 3])],
                 [floats("w", [4, 3], [k / 4 - 1 for k in range(12)]), floats("b", [3], [k / 2 - 0.5 for k in range(3)])])


def wide(rows="N", size=512):
    """y = relu(x w) v of float32[rows, size], products so large that lower precision pays."""
    weights = [floats(name, [size, size], [(k * factor % 1009) / 1009 - 0.5 for k in range(size * size)])
               for name, factor in (("w", 7), ("v", 11))]
    return model([node("MatMul", ["x", "w"], ["p"]), node("Relu", ["p"], ["r"]), node("MatMul", ["r", "v"], ["y"])],
                 [value("x", FLOAT, [rows, size])], [value("y", FLOAT, [rows, size])], weights)


def number(name, kind, content):
    """A scalar of one byte or a float."""
    return field(2, kind) + field(8, name) + field(9, content)


def quantised(rows="N", size=64):
    """y = relu(x w), float32[rows, size]. x is rounded to uint8 in steps of 1/8 around 128, w holds integers from -8 to 8 in steps of 1/16."""
    integers = bytes((k * 7 % 17 - 8) % 256 for k in range(size * size))
    weights = [number("step", FLOAT, struct.pack("<f", 0.125)), number("zero", UINT8, b"\x80"),
               number("w_step", FLOAT, struct.pack("<f", 0.0625)), number("w_zero", INT8, b"\x00"),
               field(1, size) + field(1, size) + field(2, INT8) + field(8, "w_integers") + field(9, integers)]
    return model([node("QuantizeLinear", ["x", "step", "zero"], ["q"]), node("DequantizeLinear", ["q", "step", "zero"], ["d"]),
                  node("DequantizeLinear", ["w_integers", "w_step", "w_zero"], ["w"]), node("MatMul", ["d", "w"], ["p"]),
                  node("Relu", ["p"], ["y"])],
                 [value("x", FLOAT, [rows, size])], [value("y", FLOAT, [rows, size])], weights)


def two(rows):
    """total = a + b and difference = a - b, float32[rows, 2] each."""
    ports = [value(name, FLOAT, [rows, 2]) for name in ("a", "b", "total", "difference")]
    return model([node("Add", ["a", "b"], ["total"]), node("Sub", ["a", "b"], ["difference"])], ports[:2], ports[2:])


def reshaped():
    """y = reshape(x, dims): dims decides the shape."""
    return model([node("Reshape", ["x", "dims"], ["y"])], [value("x", FLOAT, ["N", 4]), value("dims", INT64, [2])],
                 [value("y", FLOAT, ["rows", "columns"])])


def carried():
    """total_next = total + x, and seen_next is seen with x below it."""
    return model([node("Add", ["total", "x"], ["total_next"]), node("Concat", ["seen", "x"], ["seen_next"], axis=0)],
                 [value("x", FLOAT, ["N", 2]), value("total", FLOAT, ["N", 2]), value("seen", FLOAT, ["past", 2])],
                 [value("total_next", FLOAT, ["N", 2]), value("seen_next", FLOAT, ["length", 2])])


def attended():
    """present is past with x behind it, float32[length, 2], and y is the sum of present where mask is 1."""
    return model([node("Concat", ["past", "x"], ["present"], axis=0), node("Mul", ["present", "mask"], ["seen"]),
                  node("ReduceSum", ["seen"], ["y"], keepdims=0)],
                 [value("x", FLOAT, ["new", 2]), value("mask", FLOAT, ["all", 1]), value("past", FLOAT, ["past", 2])],
                 [value("y", FLOAT, []), value("present", FLOAT, ["length", 2])])


def positions(count=6):
    """The places where x is not zero: as many as the data says."""
    return model([node("NonZero", ["x"], ["y"])], [value("x", FLOAT, [count])], [value("y", INT64, [1, "count"])])
