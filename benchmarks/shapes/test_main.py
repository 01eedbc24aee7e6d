"""The command's options, its figures and tables, with engines that only say what they would."""
import json
import pathlib
import types
import unittest
from typing import Any

from peers.errors import Mistake
from shapes import bert, main, memory, plans, ranges, report, study, times
from shapes.study import ENGINES, ONNXRUNTIME, OPENVINO, OURS, PER_SHAPE

ABOUT = {"network": "net", "threads": 2, "backends": "without openvino", "seed": 1, "tuned": ["1x8"], "tune_seconds": 60.0,
         "store": "", "machine": {"processor": "AMD EPYC", "processors": 2, "date": "2026-01-02",
                                  "versions": {"onnxruntime": "1.0", "collage": "0.1.0"}}}


def row(shape: str, ours: float, others: float, **more: Any) -> dict[str, Any]:
    """A shape at which ours takes `ours` ms, and the fastest peer `others` ms; first runs take ten times as long."""
    at = {OURS: ours, ONNXRUNTIME: 2 * others, OPENVINO: others, PER_SHAPE: 3 * others}
    return {"shape": shape, "tuned": shape == "1x8", "first": {name: {"first_ms": 10 * ms, "second_ms": ms} for name, ms in at.items()},
            "by_others": 0.01, "worst_difference": 2e-6, "disagreements": [], "calm": True,
            "rounds_ms": {name: [ms * (1 + round / 100) for round in range(6)] for name, ms in at.items()}, **more}


class Options(unittest.TestCase):
    def given(self, *words: str) -> Any:
        return main.checked(main.parser().parse_args(["times", "bert", *words]))

    def test_mistakes(self) -> None:
        for words in (("--engines", "tvm"), ("--shapes", "0"), ("--rounds", "-1"), ("--threads", "100000"), ("--seconds", "0"),
                      ("--tune-seconds", "0"), ("--limit-engines", "0")):
            self.assertRaises(Mistake, self.given, *words)

    def test_a_program_that_is_not_there(self) -> None:
        here = __file__
        with self.assertRaisesRegex(Mistake, "--child /nowhere/child"):
            self.given("--library", here, "--program", here, "--child", "/nowhere/child", "--threads", "1")
        given = self.given("--library", here, "--program", here, "--child", here, "--threads", "1")
        self.assertEqual(given.engines, list(ENGINES))


class Figures(unittest.TestCase):
    def test_means_and_the_better_peer(self) -> None:
        rows = [row("1x8", 1, 2), row("1x16", 4, 3)]
        found = report.mean_summary(rows)
        self.assertEqual(found["better_peer"], OPENVINO)
        self.assertAlmostEqual(found["ratio"], 1.0)
        self.assertFalse(found["holds"])
        self.assertAlmostEqual(found["by_shape"]["worst"], 4 / 3)
        self.assertTrue(report.mean_summary([row("1x8", 0.95, 1)])["holds"])
        self.assertFalse(report.mean_summary([row("1x8", 0.96, 1)])["holds"])
        self.assertEqual(times.better_peer({"rounds_ms": {OURS: [1], OPENVINO: [3], PER_SHAPE: [2]}}), PER_SHAPE)

    def test_tables_of_times(self) -> None:
        page = report.markdown("times", [row("1x8", 1, 2), row("1x16", 4, 3)], 3, ABOUT)
        for text in ("| collage ", "| OpenVINO, compiled per shape ", "2 random shapes, of which 1 were tuned", "Tuned before, for at most 60 s each: 1x8",
                     "| 1x16 ", "| **mean** ", "bar 0.952: **no**", "2 of 3 are finished", "ONNX Runtime 1.0", "2 threads"):
            self.assertIn(text, page)
        first = next(line for line in page.splitlines() if line.startswith("| ONNX Runtime "))
        self.assertEqual([cell.strip() for cell in first.split("|")][2:7], ["2", "50.0 [40.0, 60.0]", "60.0", "5.00 [4.00, 6.00]", "6.00"])

    def test_first_runs_alone(self) -> None:
        bare = {key: value for key, value in row("1x8", 1, 2).items() if key not in ("rounds_ms", "calm")}
        page = report.markdown("times", [bare], 1, ABOUT)
        self.assertNotIn("bar 0.952", page)
        self.assertEqual(json.loads(report.as_json("times", [bare], 1, ABOUT))["summary"]["first"][OURS]["first_ms"]["most"], 10)

    def test_disagreement_is_an_error(self) -> None:
        rows = [row("1x8", 1, 2, disagreements=["collage and ONNX Runtime: output y: 1 apart"])]
        self.assertIn("- 1x8: outputs disagree: collage and", report.markdown("times", rows, 1, ABOUT))
        self.assertEqual(main.status_of(rows, 1), 1)
        self.assertEqual(main.status_of([row("1x8", 1, 2)], 1), 0)
        self.assertEqual(main.status_of([row("1x8", 1, 2)], 2), main.PAUSED)

    def test_tables_of_memory(self) -> None:
        last = {"resident_mb": 300.0, "most_mb": 310.0, "engines": 8, "packed_mb": 20.0}
        rows = [{"engine": "collage", "bare_mb": 20.0, "loaded_mb": 50.0, "one_mb": 90.0, "last": last, "shapes": 100, "ended_at": None},
                {"engine": "OpenVINO", "bare_mb": 20.0, "loaded_mb": 50.0, "one_mb": 90.0, "shapes": 7, "ended_at": 8000,
                 "last": {"resident_mb": 8100.0, "most_mb": 8100.0}}]
        page = report.markdown("memory", rows, 2, ABOUT)
        self.assertIn("- OpenVINO: ended after 7 shapes, with more than 8000 MB", page)
        line = next(line for line in page.splitlines() if line.startswith("| collage "))
        self.assertEqual([cell.strip() for cell in line.split("|")][2:-1], ["20.0", "50.0", "90.0", "300", "100", "310", "8", "20.0"])

    def test_tables_of_plans(self) -> None:
        def found(loss: float) -> dict[str, Any]:
            ratio = {"median": 1 + loss, "low": 1.0, "high": 1.2, "rounds": 20}
            return {"shape": "1x8", "tuned": False, "place_ms": 5.0, "estimated_ms": 1.0, "tuned_ms": 1.1, "ratio": ratio, "known_ratio": ratio}

        for losses, holds in (((0.01, 0.04, 0.14), True), ((0.01, 0.04, 0.16), False), ((0.06, 0.06, 0.06), False)):
            self.assertEqual(report.plans(list(map(found, losses)))[1]["holds"], holds, losses)
        self.assertIn("+4.0 % in the median and +14.0 % at most", report.markdown("plans", list(map(found, (0.01, 0.04, 0.14))), 3, ABOUT))

    def test_nothing_is_finished(self) -> None:
        self.assertEqual(report.markdown("times", [], 3, ABOUT), "net: nothing is finished\n")


class Parts(unittest.TestCase):
    def test_ours_counts_with_and_without_limits(self) -> None:
        found = memory.variants_of([OURS, OPENVINO], 8, 100)
        self.assertEqual([one.title for one in found], ["collage, no limit", "collage, at most 8 engines, 100 MB of packed weights",
                                                        "OpenVINO, open shapes"])
        self.assertEqual(found[1].limits, ("--most-engines", "8", "--most-bytes", "100000000"))

    def test_templates_of_plans(self) -> None:
        network = study.Network("net", "net.onnx", (ranges.port_of("input=1..1024x1..512x768"),), {}, None)
        template, at = plans.template_of(network)
        self.assertEqual((template, plans.point_of({"input": (8, 128, 768)}, at)), ("net.onnx:input=@x@x768", "8x128"))
        two = study.Network("net", "net.onnx", (ranges.port_of("a=1..2"), ranges.port_of("b=1")), {}, None)
        self.assertRaises(Mistake, plans.template_of, two)

    def test_reshapes_of_bert(self) -> None:
        self.assertEqual(bert.opened_target([1, 128, 12, 64]), [0, 0, 12, 64])
        self.assertRaises(ValueError, bert.opened_target, [128, 768])

    def test_files_of_shapes_differ(self) -> None:
        names = {study.fit_for_a_file(text) for text in ("x=1x2", "x=1 x=2", "x" * 100 + "1", "x" * 100 + "2")}
        self.assertEqual(len(names), 4)
        self.assertTrue(all(pathlib.PurePath(name).name == name for name in names))

    def test_rounds_take_turns_until_enough_are_calm(self) -> None:
        order: list[str] = []

        def engine(name: str, ms: float) -> Any:
            def ask(line: str) -> dict[str, Any]:
                order.append(name)
                self.assertEqual(line, "slice 0.1")
                return {"ms": [ms, ms + 1, ms + 2]}

            return types.SimpleNamespace(ask=ask, processor_s=lambda: 0.0)

        found = times.rounds_of({"a": engine("a", 1), "b": engine("b", 5)}, 3, 0.1, 1)
        count = len(found["rounds_ms"]["a"])
        self.assertGreaterEqual(count, 3)
        self.assertEqual(found["rounds_ms"], {"a": [2] * count, "b": [6] * count})
        self.assertEqual(order[:6], ["a", "b", "b", "a", "b", "a"])


if __name__ == "__main__":
    unittest.main()
