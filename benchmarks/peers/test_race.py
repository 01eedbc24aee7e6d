import itertools
import unittest
from collections.abc import Iterator
from unittest import mock

from peers import calm, race


class Slices(unittest.TestCase):
    def slice(self, run_ms: float, seconds: float) -> tuple[list[float], int]:
        """The times of a slice of runs that take so long by a clock of our own, and how many runs there were."""
        now, runs = 0, 0

        def run() -> None:
            nonlocal now, runs
            now, runs = now + int(1e6 * run_ms), runs + 1

        with mock.patch.object(race.time, "perf_counter_ns", lambda: now):
            return race.slice_ms(run, seconds), runs

    def test_the_start_of_a_slice_does_not_count(self) -> None:
        times, runs = self.slice(10, 0.5)
        self.assertEqual(runs, 50)
        self.assertEqual(times, [10.0] * 45)

    def test_long_runs_are_repeated_until_some_count(self) -> None:
        times, runs = self.slice(400, 0.5)
        self.assertEqual(len(times), race.LEAST_RUNS)
        self.assertEqual(runs, race.LEAST_RUNS + 1)  # the first one began at the start


class Rounds(unittest.TestCase):
    def raced(self, readings: list[calm.Reading], rounds: int, second: Iterator[float] = itertools.repeat(2.0),
              exchange_us: float | None = None) -> dict:
        """A race of two engines that take 1 ms and what `second` says, in rounds that are as calm as `readings` say."""
        watch = mock.Mock()
        watch.return_value.reading.side_effect = readings
        with mock.patch.object(calm, "Watch", watch), \
                mock.patch.object(race, "slice_ms", lambda run, _seconds: [run()]):
            return race.race([lambda: 1.0, lambda: next(second)], rounds, 0.5, lambda *_: None, 2, exchange_us)

    def test_calm_rounds_run_as_often_as_asked_for(self) -> None:
        result = self.raced([calm.Reading(0.0, 1.0)] * 6, 6)
        self.assertEqual(result["rounds_ms"], [[1.0] * 6, [2.0] * 6])
        self.assertTrue(result["calm"])
        self.assertEqual(result["disturbed_rounds"], 0)

    def test_disturbed_rounds_run_again(self) -> None:
        result = self.raced([calm.Reading(0.0, 1.0)] * 3 + [calm.Reading(0.5, 1.0)] * 2 + [calm.Reading(0.0, 1.0)] * 3, 6)
        self.assertEqual(result["rounds"], 6)
        self.assertEqual(result["disturbed_rounds"], 2)
        self.assertTrue(result["calm"])

    def test_rounds_run_again_in_which_processors_are_far_apart(self) -> None:
        near, far = calm.Reading(0.0, 1.0, 7.0), calm.Reading(0.0, 1.0, 15.0)
        result = self.raced([near, near, far, far, far, near, near, near, near], 6)
        self.assertEqual((result["rounds"], result["disturbed_rounds"], result["calm"]), (6, 3, True))
        self.assertEqual(result["exchange_us"], 7.0)
        # A race that sees nothing else takes it as usual, unless more is known.
        self.assertEqual(self.raced([far] * 6, 6)["disturbed_rounds"], 0)
        result = self.raced([far] * 6 + [near] * 6, 6, exchange_us=6.8)
        self.assertEqual((result["rounds"], result["disturbed_rounds"], result["exchange_us"]), (6, 6, 6.8))

    def test_rounds_with_processors_far_apart_are_kept_for_themselves(self) -> None:
        near, far = calm.Reading(0.0, 1.0, 7.0, 6.9), calm.Reading(0.0, 1.0, 15.0, 14.0)
        parting, busy = calm.Reading(0.0, 1.0, 15.0, 7.0), calm.Reading(0.5, 1.0, 15.0, 14.0)
        readings = [near] + [far, parting, busy] * 3 + [near] * 5
        result = self.raced(readings, 6, (float(2 + (number in (1, 4, 7))) for number in itertools.count()))
        self.assertEqual((result["rounds"], result["disturbed_rounds"]), (6, 9))
        self.assertEqual(result["rounds_ms"], [[1.0] * 6, [2.0] * 6])
        self.assertEqual(result["apart_ms"], [[1.0] * 3, [3.0] * 3])
        self.assertEqual(self.raced([near] * 6, 6)["apart_ms"], [])

    def test_on_a_busy_machine_all_rounds_count_and_that_is_said(self) -> None:
        result = self.raced([calm.Reading(0.5, 1.0)] * 24, 6)
        self.assertEqual(result["rounds"], 24)
        self.assertFalse(result["calm"])

    def test_more_rounds_run_until_ratios_are_sure(self) -> None:
        readings = [calm.Reading(0.0, 1.0)] * 80
        # The interval is from the third lowest to the third highest of 12 ratios, and to the fifth of 17.
        result = self.raced(readings, 12, itertools.chain([2.2] * 2, itertools.repeat(2.0)))
        self.assertEqual(result["rounds"], 12)
        result = self.raced(readings, 12, itertools.chain([2.2] * 4, itertools.repeat(2.0)))
        self.assertEqual(result["rounds"], 17)
        result = self.raced(readings, 12, itertools.cycle([2.0, 2.2]))
        self.assertEqual(result["rounds"], 48)
        self.assertTrue(result["calm"])


if __name__ == "__main__":
    unittest.main()
