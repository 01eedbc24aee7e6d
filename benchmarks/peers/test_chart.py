import re
import unittest
from xml.etree import ElementTree

from peers import chart, samples

SVG = "{http://www.w3.org/2000/svg}"


class Chart(unittest.TestCase):
    def drawn(self, *rows: dict) -> ElementTree.Element:
        return ElementTree.fromstring(chart.chart(list(rows), "AMD EPYC <avx512> & others"))

    @staticmethod
    def texts(drawing: ElementTree.Element) -> list[str]:
        return [element.text or "" for element in drawing.iter(f"{SVG}text")]

    @staticmethod
    def bars(drawing: ElementTree.Element) -> list[tuple[str, float]]:
        return [(element.get("fill", ""), float(element.get("width", "0"))) for element in drawing.iter(f"{SVG}rect")
                if element.get("height") == str(chart.BAR)]

    def test_bars_are_as_long_as_their_ratios(self) -> None:
        bars = self.bars(self.drawn(samples.row("net", ours=4.0, onnxruntime=6.0, openvino=5.0)))
        self.assertEqual([colour for colour, _ in bars], [chart.OURS[0], *chart.PEERS.values()])
        lengths = [length for _, length in bars]
        self.assertAlmostEqual(lengths[1] / lengths[0], 1.5, places=3)
        self.assertAlmostEqual(lengths[2] / lengths[0], 1.25, places=3)

    def test_the_mean_stands_below_several_workloads(self) -> None:
        drawing = self.drawn(samples.row("a", ours=4.0, openvino=8.0), samples.row("b", ours=4.0, openvino=4.0))
        self.assertIn("geometric mean", self.texts(drawing))
        bars = self.bars(drawing)
        self.assertEqual(len(bars), 9)
        self.assertAlmostEqual(bars[-1][1] / bars[-3][1], 2**0.5, places=2)
        self.assertNotIn("geometric mean", self.texts(self.drawn(samples.row("a"))))

    def test_everything_lies_inside(self) -> None:
        drawing = self.drawn(*(samples.row("a rather long name of a network that nobody would type", threads, openvino=100.0)
                               for threads in (1, 2)))
        height = float(drawing.get("height", "0"))
        for element in drawing.iter():
            for at, most in (("x", chart.WIDTH), ("y", height)):
                self.assertTrue(0 <= float(element.get(at, "0")) <= most)
        for _, length in self.bars(drawing):
            self.assertLessEqual(chart.LEFT + length + chart.RIGHT, chart.WIDTH)
        self.assertTrue(any(text.endswith("\u2026") for text in self.texts(drawing)))

    def test_panels_follow_the_threads_and_sets_the_legend(self) -> None:
        drawing = self.drawn(samples.row("net", 2), samples.row("net", 1), samples.row("net", 1, "without openvino", ours=4.2))
        texts = self.texts(drawing)
        self.assertLess(texts.index("1 thread"), texts.index("2 threads"))
        for name in ("collage, all backends", "collage, without openvino", "ONNX Runtime", "OpenVINO"):
            self.assertIn(name, texts)
        self.assertIn("AMD EPYC <avx512> & others", texts)

    def test_a_longer_bar_is_cut_and_says_its_length(self) -> None:
        drawing = self.drawn(samples.row("net", ours=1.0, onnxruntime=40.0))
        self.assertIn("40.00\u00d7", self.texts(drawing))

    def test_a_failure_has_no_bar(self) -> None:
        row = samples.row("net")
        row["peers"]["openvino"] = None
        del row["ratios"]["openvino"]
        drawing = self.drawn(row)
        self.assertEqual(len(self.bars(drawing)), 2)
        self.assertIn("failed", self.texts(drawing))
        blank = {"workload": "net", "threads": 1, "backends": "all", "failures": {"": "no"}}
        self.assertEqual(self.bars(self.drawn(blank)), [])

    def test_it_needs_nothing_from_elsewhere(self) -> None:
        text = chart.chart([samples.row("net")], "")
        self.assertFalse(re.search(r"href|<style|<script|url\(|http(?!://www\.w3\.org/2000/svg)", text))


if __name__ == "__main__":
    unittest.main()
