"""The figures and bars of the comparison beside busy processes."""
import unittest

from busy import main
from peers.errors import Mistake


def turn(median: float, tail: float) -> list[float]:
    """A hundred times: 90 of `median`, 10 of `tail`."""
    return [median] * 90 + [tail] * 10


def found(ours: tuple[float, float], default: tuple[float, float], one: tuple[float, float], other: tuple[float, float]):
    names = (main.OURS, main.LONG_WAITING, *main.PEERS)
    return {name: main.figures([turn(*times)] * 6) for name, times in zip(names, (ours, default, one, other))}


class Figures(unittest.TestCase):
    def test_median_of_each_percentile(self):
        figures = main.figures([turn(1, 5), turn(2, 40), turn(3, 9)])
        self.assertEqual((figures["runs"], figures["medians"], figures["median"], figures["tail"]), (300, [1, 2, 3], 2, 9))

    def test_bars_beside_busy_processes(self):
        for ours, holds in (((10, 20), True), ((11, 26), True), ((11.2, 20), False), ((10, 27), False)):
            ratios, does = main.verdict(found(ours, (50, 500), (10, 30), (20, 20)), 2)
            self.assertEqual(does, holds, (ours, ratios))

    def test_bar_alone(self):
        for ours, holds in (((10, 10), True), ((10.2, 10), True), ((10.3, 10), False)):
            self.assertEqual(main.verdict(found(ours, (10, 10), (1, 1), (1, 1)), 0)[1], holds, ours)

    def test_row(self):
        cells, holds = main.row_of("net", 2, found((12, 20), (50, 500), (10, 30), (20, 20)))
        self.assertEqual(cells, ["net", "2", "12.0 / 20.0 (600)", "50.0 / 500 (600)", "10.0 / 30.0 (600)", "20.0 / 20.0 (600)",
                                 "1.20 / 1.00", "-", "**no**"])
        self.assertFalse(holds)

    def test_counts(self):
        self.assertEqual(main.counts_of("0,12"), [0, 12])
        for text in ("", "1,", "-1", "a"):
            self.assertRaises(Mistake, main.counts_of, text)

    def test_competitors_end(self):
        with main.competitors(2):
            pass
        with main.competitors(0):
            pass
