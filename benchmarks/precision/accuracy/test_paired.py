"""Paired outcomes whose drop and interval are known."""
import random
import unittest

from precision.accuracy import paired
from precision.accuracy.paired import Outcome


class Drops(unittest.TestCase):
    def test_equal_engines_drop_by_nothing_but_are_not_surely_equal(self):
        found = paired.drop_of([Outcome(3, 3, 4)] * 100, seed=1, resamples=100)
        self.assertEqual((found.first, found.second, found.drop, found.low, found.high), (0.75, 0.75, 0, 0, 0))
        self.assertEqual((found.units, found.items, found.worse, found.better), (100, 400, 0, 0))
        self.assertAlmostEqual(found.upper, 1 - 0.025**0.01)

    def test_units_count_by_their_items(self):
        found = paired.drop_of([Outcome(10, 5, 10), Outcome(0, 1, 90)], seed=1, resamples=100)
        self.assertAlmostEqual(found.first, 0.10)
        self.assertAlmostEqual(found.drop, 0.04)
        self.assertEqual((found.worse, found.better), (1, 1))

    def test_the_interval_is_that_of_the_binomial_where_units_only_get_worse(self):
        outcomes = [Outcome(1, 0, 1)] * 80 + [Outcome(1, 1, 1)] * 320
        found = paired.drop_of(outcomes, seed=1, resamples=4000)
        self.assertAlmostEqual(found.drop, 0.2)
        self.assertAlmostEqual(found.low, 0.2 - 1.96 * 0.02, delta=0.003)
        self.assertAlmostEqual(found.high, 0.2 + 1.96 * 0.02, delta=0.003)
        self.assertEqual(found.upper, found.high)

    def test_pairs_cancel_what_both_get_wrong(self):
        draw = random.Random(1)
        outcomes = [Outcome(right, right, 1) for right in (draw.randint(0, 1) for _ in range(200))]
        outcomes[0] = Outcome(1, 0, 1)
        low, high = paired.bootstrap(outcomes, seed=1, resamples=1000)
        self.assertEqual(low, 0)
        self.assertLess(high, 0.025)  # unpaired, the interval would reach 0.1

    def test_the_interval_covers_the_truth_as_often_as_it_says(self):
        draw = random.Random(2)
        covered = 0
        for trial in range(200):
            outcomes = [Outcome(int(p < 0.95), int(p < 0.85), 1) for p in (draw.random() for _ in range(100))]
            low, high = paired.bootstrap(outcomes, seed=trial, resamples=200)
            covered += low <= 0.1 <= high
        self.assertGreater(covered, 176)
        self.assertLess(covered, 200)

    def test_the_same_seed_gives_the_same_interval(self):
        outcomes = [Outcome(i % 3, i % 2, 3) for i in range(50)]
        self.assertEqual(paired.bootstrap(outcomes, 7, 300), paired.bootstrap(outcomes, 7, 300))
        self.assertNotEqual(paired.bootstrap(outcomes, 7, 300), paired.bootstrap(outcomes, 8, 300))

    def test_outcomes_that_cannot_be(self):
        for outcomes in ([], [Outcome(0, 0, 0)], [Outcome(2, 0, 1)], [Outcome(0, -1, 1)]):
            self.assertRaises(ValueError, paired.drop_of, outcomes, 1, 10)


class Sequences(unittest.TestCase):
    def test_distances(self):
        for one, other, expected in (("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("flaw", "lawn", 2), ("abc", "abc", 0)):
            self.assertEqual(paired.distance(one, other), expected)
            self.assertEqual(paired.distance(other, one), expected)

    def test_gaps(self):
        self.assertEqual("".join(".#"[mark] for mark in paired.close_gaps([c == "#" for c in "..#..##...#.."], 2)), "..#####...#..")
        self.assertEqual(paired.close_gaps([False, False], 9), [False, False])


if __name__ == "__main__":
    unittest.main()
