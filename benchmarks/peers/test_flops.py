import types
import unittest

from peers import flops


def node(kind: str, inputs: list[str], **attributes: int) -> types.SimpleNamespace:
    return types.SimpleNamespace(op_type=kind, input=inputs, output=["y"], attribute=[
        types.SimpleNamespace(name=name, i=value) for name, value in attributes.items()])


class Flops(unittest.TestCase):
    def count(self, kind: str, *shapes: tuple[int, ...], **attributes: int) -> int:
        names = ["a", "b", "y"]
        return flops.of_node(node(kind, names[:2], **attributes), dict(zip(names, shapes)))

    def test_convolutions(self) -> None:
        # The first layer of ResNet-50: 118 M multiply-adds.
        self.assertEqual(self.count("Conv", (1, 3, 224, 224), (64, 3, 7, 7), (1, 64, 112, 112)), 2 * 118013952)
        # Depthwise: one channel in each group.
        self.assertEqual(self.count("Conv", (1, 32, 8, 8), (32, 1, 3, 3), (1, 32, 8, 8)), 2 * 32 * 64 * 9)
        self.assertEqual(self.count("ConvTranspose", (1, 16, 4, 4), (16, 8, 2, 2), (1, 8, 8, 8)), 2 * 16 * 16 * 8 * 4)

    def test_products(self) -> None:
        self.assertEqual(self.count("MatMul", (2, 5, 3), (3, 4), (2, 5, 4)), 2 * 2 * 5 * 4 * 3)
        self.assertEqual(self.count("MatMul", (5, 3), (3,), (5,)), 2 * 5 * 3)
        self.assertEqual(self.count("MatMul", (3,), (3,), ()), 2 * 3)
        self.assertEqual(self.count("Gemm", (5, 3), (3, 4), (5, 4)), 2 * 5 * 4 * 3)
        self.assertEqual(self.count("Gemm", (3, 5), (3, 4), (5, 4), transA=1), 2 * 5 * 4 * 3)

    def test_other_operators_are_free(self) -> None:
        self.assertEqual(self.count("Relu", (5,), (5,)), 0)

    def test_an_unknown_shape_is_no_number(self) -> None:
        graph = types.SimpleNamespace(initializer=[], input=[], value_info=[], output=[], node=[node("MatMul", ["a", "b"])])
        self.assertIsNone(flops.count(graph))
        graph.node = [node("Relu", ["a"])]
        self.assertEqual(flops.count(graph), 0)


if __name__ == "__main__":
    unittest.main()
