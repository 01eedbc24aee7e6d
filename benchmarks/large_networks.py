"""Writes networks of any number of operators as files of ONNX, to see how loading, placing and running grow with them.

    python3 large_networks.py KIND COUNT FILE.onnx
    python3 large_networks.py --table PROGRAM COUNT...

KIND is one of the functions below. The second form runs the program on each kind and count, once and without measuring.
It prints the processor time and the memory of each run. docs/scale.md has such a table. Needs no packages.
"""
import os
import struct
import subprocess
import sys
import tempfile

SHAPE = (1, 64)


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, payload):
    """One field of a protobuf message: text, bytes, a nested message, or a natural number."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    payload = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(payload)) + payload


class Network:
    def __init__(self):
        self.parts = []

    def node(self, operator, operands, result, attributes=b""):
        parts = [field(1, i) for i in operands] + [field(2, result), field(3, "node " + result), field(4, operator)]
        self.parts.append(field(1, b"".join(parts) + attributes))
        return result

    def port(self, number, name, shape=SHAPE):
        dims = b"".join(field(1, field(1, extent)) for extent in shape)
        self.parts.append(field(number, field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))))
        return name

    def input(self, name):
        return self.port(11, name)

    def output(self, name, shape=SHAPE):
        self.port(12, name, shape)

    def constant(self, name, number):
        count = SHAPE[0] * SHAPE[1]
        self.parts.append(field(5, b"".join(field(1, extent) for extent in SHAPE) + field(2, 1) + field(8, name) +
                                field(9, struct.pack(f"<{count}f", *[number] * count))))
        return name

    def bytes(self):
        return field(1, 8) + field(8, field(2, 17)) + field(7, b"".join(self.parts) + field(2, "g"))


def chain(count):
    """Relu, addition of a constant and sigmoid in turn."""
    n = Network()
    at, more = n.input("x"), n.constant("c", 0.5)
    for i in range(count):
        kind = ("Relu", "Add", "Sigmoid")[i % 3]
        at = n.node(kind, [at, more] if kind == "Add" else [at], f"v{i}")
    n.output(at)
    return n


def same(count):
    """One operator again and again."""
    n = Network()
    at = n.input("x")
    for i in range(count):
        at = n.node("Sigmoid", [at], f"v{i}")
    n.output(at)
    return n


def residual(count):
    """Blocks of two operators and an addition of what came before them."""
    n = Network()
    at = n.input("x")
    for i in range(count // 3):
        inner = n.node("Sigmoid", [n.node("Relu", [at], f"a{i}")], f"b{i}")
        at = n.node("Add", [at, inner], f"v{i}")
    n.output(at)
    return n


def parallel(n, count):
    x = n.input("x")
    return [n.node(("Mul", "Add")[i % 2], [x, n.constant(f"c{i}", 1 + i / count)], f"p{i}") for i in range(count)]


def concat(count):
    """Operators beside each other, and a concatenation of their results."""
    n = Network()
    axis = field(5, field(1, "axis") + field(3, 0) + field(20, 2))
    n.output(n.node("Concat", parallel(n, count), "y", axis), (count * SHAPE[0], SHAPE[1]))
    return n


def tree(count):
    """Operators beside each other, and a tree of additions. With the additions, there are twice as many operators."""
    n = Network()
    left = parallel(n, count)
    number = 0
    while len(left) > 1:
        above = []
        for a, b in zip(left[::2], left[1::2]):
            above.append(n.node("Add", [a, b], f"s{number}"))
            number += 1
        left = above + left[len(above) * 2:]
    n.output(left[0])
    return n


def ports(count):
    """As many inputs and outputs as operators."""
    n = Network()
    for i in range(count):
        n.output(n.node("Relu", [n.input(f"x{i}")], f"y{i}"))
    return n


KINDS = (chain, same, residual, concat, tree, ports)


def measure(program, path):
    done = subprocess.Popen([program, "run", path, "--place", "priority", "--store", "none", "--threads", "1", "--quiet"],
                            stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(done.pid, 0)
    if status != 0:
        return "failed"
    return f"{used.ru_utime + used.ru_stime:.2f} s, {used.ru_maxrss / 1024:.0f} MB"


def main():
    if sys.argv[1:2] == ["--table"]:
        counts = [int(word) for word in sys.argv[3:]]
        print("| network | " + " | ".join(f"{count:,}" for count in counts) + " |")
        print("|---|" + "---|" * len(counts))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "network.onnx")
            for kind in KINDS:
                cells = []
                for count in counts:
                    with open(path, "wb") as file:
                        file.write(kind(count).bytes())
                    cells.append(measure(sys.argv[2], path))
                print(f"| {kind.__name__} | " + " | ".join(cells) + " |", flush=True)
        return
    kinds = {kind.__name__: kind for kind in KINDS}
    if len(sys.argv) != 4 or sys.argv[1] not in kinds:
        sys.exit(__doc__ + "\nThe kinds are " + ", ".join(kinds) + ".")
    with open(sys.argv[3], "wb") as file:
        file.write(kinds[sys.argv[1]](int(sys.argv[2])).bytes())


main()
