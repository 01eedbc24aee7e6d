"""The figures, the table's cells and the chart of how good plans are after some tuning."""
import unittest
import xml.etree.ElementTree

from peers.errors import Mistake
from quality import curve, main


class Figures(unittest.TestCase):
    def test_budgets(self):
        self.assertEqual(main.budgets_of("20,2,2"), [2, 20])
        for text in ("", "0", "-1", "a", "nan", "900"):
            self.assertRaises(Mistake, main.budgets_of, text)

    def test_points_are_relative_to_the_last_plan(self):
        tuned = {2.0: {"seconds": 2.5, "interrupted": True}, main.COMPLETE_S: {"seconds": 30.0, "interrupted": False}}
        raced = {"names": ["2 s", "900 s"], "rounds_ms": [[2.2] * 6, [2.0] * 6]}
        points = main.points_of(tuned, raced)
        self.assertAlmostEqual(points[0].ratio.median, 1.1)
        self.assertEqual([point.cell for point in points],
                         ["1.100 [1.100, 1.100], 2.50", "1.000 [1.000, 1.000], 30.0 (done)"])

    def test_chart(self):
        page = curve.chart({"a < b": [(2, 1.2), (20, 1.0)], "other": [(2, 9.0), (20, 0.99)]}, "a machine")
        root = xml.etree.ElementTree.fromstring(page)
        lines = [path for path in root.iter("{http://www.w3.org/2000/svg}path") if path.get("stroke-width") == "2"]
        self.assertEqual(len(lines), 2)
        self.assertIn("a < b", "".join(root.itertext()))

    def test_labels_do_not_overlap(self):
        self.assertEqual(curve.positions([10, 0, 10, 30], 5, 40), [10, 0, 15, 30])
        self.assertEqual(curve.positions([30, 29, 0, 31], 5, 32), [27, 22, 0, 32])


if __name__ == "__main__":
    unittest.main()
