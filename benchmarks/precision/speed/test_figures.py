"""The greedy way against the exact search, bars, and errors."""
import math
import unittest
from typing import Any

from peers.errors import Failure
from precision.speed import greedy
from precision.speed.bars import bars
from precision.speed.networks import NETWORKS, ours_of, peers_of, two_digits

try:
    import numpy as np
except ImportError:
    np = None  # type: ignore[assignment]


def point(error: float, ms: float) -> dict[str, float]:
    return {"most_error": error, "cost_ms": ms, "lower_bound_ms": ms - 0.1}


class Greedy(unittest.TestCase):
    curve = {"exact": point(0, 9.0), "points": [point(0.01, 8.0), point(0.02, 6.0), point(0.03, 5.0)]}

    def test_the_first_step_within_each_budget_counts(self) -> None:
        steps = [{"cost_ms": 6.6, "nmse": 0.019**2}, {"cost_ms": 7.0, "nmse": 0.015**2}, {"cost_ms": 9.0, "nmse": 0.0}]
        rows = greedy.against_exact(self.curve, steps, 0.03**2 * 0.999)
        self.assertEqual([row["groups"] for row in rows], [3, 1, 0])
        self.assertEqual([row["greedy_ms"] for row in rows], [9.0, 6.6, 5.0])
        self.assertAlmostEqual(rows[1]["ratio"], 1.1)

    def test_an_error_that_is_not_reached_has_no_time(self) -> None:
        rows = greedy.against_exact(self.curve, [{"cost_ms": 6.6, "nmse": 0.019**2}], 0.03**2 * 0.999)
        self.assertEqual([row["greedy_ms"] for row in rows], [None, 6.6, 5.0])
        self.assertIsNone(rows[0]["ratio"])

    def test_without_errors_there_is_nothing_to_compare(self) -> None:
        self.assertEqual(greedy.against_exact(self.curve, [], None), [])
        self.assertEqual(greedy.against_exact({"points": []}, [], 1e-4), [])


class Engines(unittest.TestCase):
    def test_errors_are_rounded_down(self) -> None:
        self.assertEqual([two_digits(error) for error in (0.02215, 0.022, 0.0109, 0.5, 0.00123, 0.0)], [0.022, 0.022, 0.01, 0.5, 0.0012, 1e-5])

    def test_plans_within_the_errors_of_the_bar_and_of_the_rivals(self) -> None:
        network = NETWORKS["mobilenet-v2"]
        self.assertEqual([one.error for one in ours_of(network, 0.0222, ["any"])], [None, 0.03, 0.022, 0.01])
        self.assertEqual([one.error for one in ours_of(network, 0.04, ["any"])], [None, 0.03, 0.01])
        self.assertEqual([one.name for one in ours_of(network, None, ["files"])], ["collage float32", "collage u8s8 file"])
        self.assertEqual([one.precision for one in ours_of(network, None, ["bf16", "int8"])], ["float32", "bf16", "int8"])

    def test_all_names_differ(self) -> None:
        for network in NETWORKS.values():
            names = [one.name for one in [*peers_of(network), *ours_of(network, 0.005, ["bf16", "int8", "any", "files"])]]
            self.assertEqual(len(names), len(set(names)))
            self.assertTrue(network.file.is_file(), network.file)


def row_of(errors: dict[str, float], times: dict[str, float], name: str = "mobilenet-v2") -> dict[str, Any]:
    """A network with these errors of engines on held-out samples, and times that are the same in all rounds."""
    network = NETWORKS[name]
    engines = [*peers_of(network), *ours_of(network, 0.022, ["bf16", "int8", "any", "files"])]
    return {"network": network.name, "threads": 1, "rounds_ms": {name: [ms] * 7 for name, ms in times.items()}, "engines": [
        {"name": one.name, "kind": one.kind, "precision": one.precision, "file": one.file, "error": one.error,
         "measured": errors.get(one.name, 0.02), "plan": None} for one in engines]}


class Bars(unittest.TestCase):
    times = {"ONNX Runtime float32": 8.0, "OpenVINO float32": 7.0, "OpenVINO bf16": 4.0, "ONNX Runtime u8s8": 3.6, "OpenVINO u8s8": 3.0,
             "collage float32": 6.0, "collage bf16 1 %": 3.0, "collage int8 3 %": 2.0, "collage any 3 %": 2.5, "collage any 2.2 %": 2.4,
             "collage any 1 %": 4.0, "collage u8s8 file": 3.0}

    def lines(self, errors: dict[str, float], **more: float) -> dict[str, dict[str, Any]]:
        return {line["what"]: line for line in bars(row_of({"collage bf16 1 %": 0.005, "collage any 1 %": 0.009, **errors}, {**self.times, **more}))}

    def test_the_fastest_plan_within_the_error_counts(self) -> None:
        lines = self.lines({})
        line = lines["int8 or any over float32"]
        self.assertEqual((line["ours"], line["ratio"], line["bar"], line["holds"]), ("collage int8 3 %", 3.0, 2.2, True))
        self.assertEqual(lines["any precision at 1 %, over float32"]["ours"], "collage bf16 1 %")
        self.assertIsNone(lines["any precision at 1 %, over float32"]["holds"])
        self.assertEqual(lines["bf16 over float32"]["ratio"], 2.0)
        self.assertAlmostEqual(lines["the file u8s8 over ONNX Runtime"]["ratio"], 1.2)

    def test_a_plan_that_errs_more_on_held_out_samples_does_not_count(self) -> None:
        line = self.lines({"collage int8 3 %": 0.031})["int8 or any over float32"]
        self.assertEqual((line["ours"], line["ratio"]), ("collage any 2.2 %", 2.5))

    def test_a_rival_is_met_at_no_larger_error_than_its_own(self) -> None:
        line = self.lines({"OpenVINO u8s8": 0.021, "collage int8 3 %": 0.025, "collage any 3 %": 0.025})["over the better peer in integers"]
        self.assertEqual((line["ours"], line["other"], line["most_error"]), ("collage any 2.2 %", "OpenVINO u8s8", 0.021))
        self.assertAlmostEqual(line["ratio"], 1.25)
        self.assertTrue(line["holds"])

    def test_peers_on_each_of_several_files(self) -> None:
        network = NETWORKS["bert-base-128"]
        times = {"ONNX Runtime u8s8": 9.0, "OpenVINO u8s8 products": 6.0, "collage float32": 20.0, "collage int8 7 %": 5.0, "collage any 1 %": 8.0}
        row = {**row_of({"ONNX Runtime u8s8": 0.068, "OpenVINO u8s8 products": 0.04, "collage int8 7 %": 0.05, "collage any 1 %": 0.01}, times,
                        network.name)}
        lines = {line["what"]: line for line in bars(row)}
        self.assertEqual(lines["over the better peer in integers"]["ratio"], 0.75)
        self.assertEqual(lines["over the better peer on u8s8 products"]["bar"], None)
        self.assertEqual((lines["over the better peer on u8s8"]["ours"], lines["over the better peer on u8s8"]["ratio"]), ("collage int8 7 %", 1.8))

    def test_a_bar_does_not_hold_where_no_plan_is_good_enough(self) -> None:
        line = self.lines({"OpenVINO u8s8": 0.0001})["over the better peer in integers"]
        self.assertEqual((line["ours"], line["ratio"], line["holds"]), (None, None, False))

    def test_without_peers_their_lines_are_left_out_or_do_not_hold(self) -> None:
        ours = {name: ms for name, ms in self.times.items() if name.startswith("collage")}
        lines = {line["what"]: line for line in bars(row_of({}, ours))}
        self.assertNotIn("bf16 over OpenVINO's", lines)
        self.assertFalse(lines["over the better peer in integers"]["holds"])


@unittest.skipIf(np is None, "needs numpy")
class Errors(unittest.TestCase):
    def test_the_error_of_a_sample(self) -> None:
        from precision.speed.errors import nmse

        expected = np.array([3.0, 4.0], np.float32)
        self.assertAlmostEqual(nmse(expected + np.array([0.0, 0.5], np.float32), expected), 0.01)
        self.assertEqual(nmse(np.zeros(2), np.zeros(2)), 0)
        self.assertEqual(nmse(np.ones(2), np.zeros(2)), 1)
        self.assertEqual(nmse(np.array([np.nan, 4.0]), expected), math.inf)
        self.assertEqual(nmse(np.zeros(3), expected), math.inf)

    def test_the_error_over_samples_is_that_of_the_worst_output(self) -> None:
        from precision.speed.errors import relative_rms

        self.assertAlmostEqual(relative_rms({"0": [1e-4, 3e-4], "1": [1e-4, 1e-4]}), math.sqrt(2e-4))
        self.assertEqual(relative_rms({}), 0)

    def test_samples_follow_from_name_seed_and_number(self) -> None:
        from precision.speed.prepare import sample

        port = {"name": "x", "type": "float32", "shape": [2, 3]}
        self.assertTrue(np.array_equal(sample(port, 1, 0), sample(port, 1, 0)))
        for other in ((port, 1, 1), (port, 2, 0), ({**port, "name": "y"}, 1, 0)):
            self.assertFalse(np.array_equal(sample(port, 1, 0), sample(*other)))
        with self.assertRaisesRegex(Failure, "input x is int64"):
            sample({**port, "type": "int64"}, 1, 0)


if __name__ == "__main__":
    unittest.main()
