"""Ranges of extents, and the shapes that are drawn from them."""
import random
import unittest

from peers.errors import Mistake
from shapes import ranges
from shapes.ranges import Extent


class Ranges(unittest.TestCase):
    def test_words(self) -> None:
        port = ranges.port_of("x=1x3x48x16..640/8")
        self.assertEqual((port.name, port.extents), ("x", (Extent(1, 1), Extent(3, 3), Extent(48, 48), Extent(16, 640, 8))))
        self.assertEqual(ranges.port_of("a=b=1..2").name, "a=b")

    def test_mistakes(self) -> None:
        for word in ("x", "=1", "x=", "x=1x", "x=a", "x=1..", "x=3..1", "x=1..8/0", "x=9..15/8", "x=0", "x=-1..3", "x=1/"):
            self.assertRaises(Mistake, ranges.port_of, word)

    def test_extents_are_multiples_within_their_bounds(self) -> None:
        generator = random.Random(3)
        drawn = {Extent(10, 40, 8).draw(generator, 1000) for _ in range(200)}
        self.assertEqual(drawn, {16, 24, 32, 40})
        self.assertEqual({Extent(10, 40, 8).draw(generator, 25) for _ in range(50)}, {16, 24})

    def test_no_shape_has_too_many_elements(self) -> None:
        ports = [ranges.port_of("input=1..1024x1..512x768")]
        found = ranges.shapes(ports, 300, 1, 1024 * 768)
        self.assertEqual(len({shape["input"] for shape in found}), 300)
        self.assertLessEqual(max(batch * length for batch, length, _ in (shape["input"] for shape in found)), 1024)
        # Lengths are uniform, because they are drawn first.
        self.assertAlmostEqual(sum(shape["input"][1] for shape in found) / 300, 256, delta=30)
        self.assertGreater(max(shape["input"][0] for shape in found), 16)

    def test_equal_ranges_get_equal_extents(self) -> None:
        ports = [ranges.port_of("a=1..9x5..90"), ranges.port_of("b=1..9x5..90x2"), ranges.port_of("c=5..91")]
        found = ranges.shapes(ports, 20, 1, None)
        self.assertTrue(all(shape["a"] == shape["b"][:2] for shape in found))
        self.assertTrue(any(shape["a"][1] != shape["c"][0] for shape in found))

    def test_more_shapes_begin_with_the_fewer(self) -> None:
        ports = [ranges.port_of("x=1x1..500")]
        self.assertEqual(ranges.shapes(ports, 30, 1, None)[:10], ranges.shapes(ports, 10, 1, None))
        self.assertNotEqual(ranges.shapes(ports, 10, 2, None), ranges.shapes(ports, 10, 1, None))

    def test_too_few_shapes(self) -> None:
        ports = [ranges.port_of("x=1x8..32/8")]
        self.assertEqual(len(ranges.shapes(ports, 4, 1, None)), 4)
        with self.assertRaisesRegex(Mistake, "only 4 different"):
            ranges.shapes(ports, 5, 1, None)

    def test_shapes_that_are_tuned(self) -> None:
        ports = [ranges.port_of("x=1x8..32"), ranges.port_of("y=2x2")]
        self.assertEqual(ranges.shape_of("x=1x16", ports), {"x": (1, 16), "y": (2, 2)})
        for text in ("y=2x2", "x=1x8..9", "x=1x8 z=3", "16"):
            self.assertRaises(Mistake, ranges.shape_of, text, ports)

    def test_text(self) -> None:
        shape = {"x": (1, 8), "y": (2,)}
        self.assertEqual(ranges.text_of(shape), "x=1x8 y=2")
        self.assertEqual(ranges.label_of(shape, [ranges.port_of("x=1x8..9"), ranges.port_of("y=2")]), "1x8")
        self.assertEqual(ranges.label_of(shape, [ranges.port_of("x=1x8..9"), ranges.port_of("y=1..2")]), "x 1x8, y 2")


if __name__ == "__main__":
    unittest.main()
