import os
import unittest

from peers import calm, statistics


class Statistics(unittest.TestCase):
    def test_quantiles_are_interpolated(self) -> None:
        self.assertEqual(statistics.median([3.0, 1.0, 2.0]), 2.0)
        self.assertEqual(statistics.median([4.0, 1.0, 2.0, 3.0]), 2.5)
        self.assertEqual(statistics.quantile([0.0, 10.0], 0.1), 1.0)
        self.assertEqual(statistics.quantile([7.0], 0.9), 7.0)

    def test_intervals_are_those_of_the_sign_test(self) -> None:
        # Tables of order statistics: so many samples at either end lie outside the 95 % interval of the median.
        for n, outside in ((1, 0), (5, 0), (6, 0), (8, 0), (9, 1), (11, 1), (12, 2), (15, 3), (17, 4), (20, 5), (25, 7),
                           (50, 17)):
            samples = [float(i) for i in range(n)]
            self.assertEqual(statistics.median_interval(samples), (outside, n - 1 - outside), n)

    def test_intervals_cover_the_median_as_often_as_they_say(self) -> None:
        import random

        generator, covered, trials = random.Random(1), 0, 4000
        for _ in range(trials):
            low, high = statistics.median_interval([generator.expovariate(1.0) for _ in range(12)])
            covered += low <= 0.6931 <= high
        self.assertGreater(covered / trials, 0.945)
        self.assertLess(covered / trials, 0.98)  # as sure as asked for, and not much surer: 0.961

    def test_pairs_cancel_what_slows_a_round(self) -> None:
        slow = [1.0, 1.0, 4.0, 1.0, 2.0, 1.0]
        ratio = statistics.paired_ratio([1.1 * s for s in slow], slow)
        self.assertAlmostEqual(ratio.low, 1.1)
        self.assertAlmostEqual(ratio.median, 1.1)
        self.assertAlmostEqual(ratio.high, 1.1)
        self.assertEqual(ratio.rounds, 6)
        with self.assertRaises(ValueError):
            statistics.paired_ratio([1.0], [1.0, 2.0])

    def test_geometric_mean(self) -> None:
        self.assertAlmostEqual(statistics.geometric_mean([0.5, 2.0, 8.0]), 2.0)

    def test_everyone_runs_first_last_and_behind_each_rival(self) -> None:
        for count in (1, 2, 3, 4):
            orders = [statistics.order_of_round(count, number) for number in range(2 * count)]
            for order in orders:
                self.assertEqual(sorted(order), list(range(count)))
            for position in (0, count - 1):
                self.assertEqual(sorted(order[position] for order in orders), sorted(2 * list(range(count))))
        orders = [statistics.order_of_round(3, number) for number in range(6)]
        before = {(a, b) for order in orders for a, b in zip(order, order[1:])}
        self.assertEqual(len(before), 6)


class Calm(unittest.TestCase):
    STAT = """cpu  9 9 9 9 9 9 9 9 0 0
cpu0 100 1 10 5000 70 2 3 4 50 0
cpu1 200 0 0 0 0 0 0 0 0 0
cpu10 7 0 0 0 0 0 0 0 0 0
intr 1
"""

    def test_ticks_of_our_processors_count_alone(self) -> None:
        self.assertEqual(calm.busy_ticks(self.STAT, {0}), 120)  # user, nice, system, interrupts, stolen; guests are in user
        self.assertEqual(calm.busy_ticks(self.STAT, {0, 1}), 320)
        self.assertEqual(calm.busy_ticks(self.STAT, {1}), 200)  # not cpu10
        self.assertEqual(calm.busy_ticks("", {0}), 0)

    def test_rounds_are_disturbed_by_others_or_by_slowness(self) -> None:
        readings = [calm.Reading(0.0, 1.0)] * 8 + [calm.Reading(0.2, 1.0), calm.Reading(0.0, 1.6), calm.Reading(0.04, 1.1)]
        self.assertEqual(calm.calm_rounds(readings), [True] * 8 + [False, False, True])

    def test_a_watch_sees_its_own_work_as_no_disturbance(self) -> None:
        before = os.sched_getaffinity(0)
        for threads in (1, 2):
            reading = calm.Watch(threads).reading()
            self.assertGreaterEqual(reading.by_others, 0.0)
            self.assertGreater(reading.work_ms, 0.0)
            self.assertEqual(reading.exchange_us > 0.0, threads > 1 and len(before) > 1)
        self.assertEqual(os.sched_getaffinity(0), before)


if __name__ == "__main__":
    unittest.main()
