#!/usr/bin/env python3
"""What lower precision costs: the curve of tune --curve, the prices of explain, and the differences that diff shows."""
import json
import pathlib
import unittest
import xml.etree.ElementTree as xml

import models
from program import BERT, Case, collage, placed_backends


class Curve(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if "onednn" not in placed_backends():
            raise unittest.SkipTest("this build has no kernels in bfloat16")
        # Products large enough that bfloat16 pays where the processor has instructions for it.
        (cls.folder / "products.onnx").write_bytes(models.model(
            models.node("MatMul", ["a", "b"], ["p"]), models.node("Relu", ["p"], ["r"]), models.node("MatMul", ["r", "c"], ["y"]),
            models.port(11, "a", [256, 512]), models.port(11, "b", [512, 512]), models.port(11, "c", [512, 256]),
            models.port(12, "y", [256, 256])))
        cls.network = str(cls.folder / "products.onnx")
        if "built without ONNX" in collage("inspect", cls.network).stderr:
            raise unittest.SkipTest("this build reads no files of ONNX")
        cls.words = ("--backends", "onednn,portable", "--threads", "1", "--store", str(cls.folder / "costs.db"))
        cls.plan, cls.picture = str(cls.folder / "plan.json"), str(cls.folder / "curve.svg")
        done = collage("tune", cls.network, "--plan", cls.plan, "--precision", "bf16", "--error", "5%", "--curve", cls.picture,
                       "--budget", "6", "--json", *cls.words)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.curve = json.loads(done.stdout)["curve"]
        cls.rounds = "error" in json.loads(pathlib.Path(cls.plan).read_text())

    def test_time_falls_as_the_error_allowed_grows(self):
        self.assertEqual(self.curve["exact"]["rounded_groups"], 0)
        self.assertEqual(self.curve["exact"]["most_error"], 0)
        before = self.curve["exact"]
        for point in self.curve["points"]:
            self.assertLessEqual(point["cost_ms"], before["cost_ms"])
            self.assertGreater(point["most_error"], before["most_error"])
            self.assertLessEqual(point["predicted"], point["most_error"])
            self.assertLessEqual(point["lower_bound_ms"], point["cost_ms"])
            self.assertLessEqual(point["gap"], 0.01)
            before = point
        if self.rounds:
            self.assertGreater(len(self.curve["points"]), 0)

    def test_the_picture_has_a_mark_for_each_point(self):
        space = "{http://www.w3.org/2000/svg}"
        picture = xml.parse(self.picture).getroot()
        self.assertEqual(picture.tag, space + "svg")
        self.assertEqual(len(picture.findall(space + "circle")), len(self.curve["points"]))
        self.assertNotIn("http", pathlib.Path(self.picture).read_text().replace("http://www.w3.org/2000/svg", ""))

    def test_the_table_is_on_the_page(self):
        again = self.path("again.svg")
        done = self.succeeds("tune", self.network, "--plan", self.path("again.json"), "--precision", "bf16", "--error", "5%",
                             "--curve", again, "--budget", "6", *self.words)
        self.fits_page(done.stdout)
        page = " ".join(done.stdout.split())
        self.assertIn("The fastest plans within other errors", page)
        self.assertIn("fp32", page)
        self.assertIn(f"The curve is in {again}.", page)
        self.assertIn("None of them ran." if self.curve["points"] else "No plan that rounds values is faster", page)

    def test_prices_of_groups(self):
        explained = self.json_of("explain", self.network, "--plan", self.plan, *self.words)
        if not self.rounds:
            self.assertNotIn("precision_prices", explained)
            return
        prices = explained["precision_prices"]
        self.assertGreater(len(prices["groups"]), 0)
        self.assertGreater(prices["nmse"], 0)
        rates = []
        for group in prices["groups"]:
            self.assertEqual(group["element"], "bf16")
            self.assertGreater(group["cost_ms"], 0)
            self.assertGreater(group["nmse"], 0)
            self.assertEqual(group["next"]["element"], "fp32")
            rates.append(group["next"]["less_nmse"] / group["next"]["more_ms"] if group["next"]["more_ms"] > 0 else float("inf"))
        self.assertEqual(rates, sorted(rates, reverse=True))
        steps = explained["greedy_steps"]
        self.assertEqual({step["group"] for step in steps}, {group["group"] for group in prices["groups"]})
        self.assertEqual(steps[-1]["nmse"], 0)
        self.assertLess(abs(steps[-1]["cost_ms"] / self.curve["exact"]["cost_ms"] - 1), 0.01)
        done = self.succeeds("explain", self.network, "--plan", self.plan, *self.words)
        self.fits_page(done.stdout)
        page = " ".join(done.stdout.split())
        self.assertIn("What lower precision saves, and the next precision up", page)
        self.assertIn("add up to", page)
        # Without a store nothing is known but the plan.
        without = self.json_of("explain", self.network, "--plan", self.plan, *self.words[:-1], "none")
        self.assertEqual(without["greedy_steps"], [])
        unknown = without["precision_prices"]
        self.assertIsNone(unknown["nmse"])
        self.assertTrue(all(g["next"] is None and g["exact_ms"] is None for g in unknown["groups"]))

    def test_differences_between_budgets(self):
        exact = self.path("exact.json")
        self.succeeds("tune", self.network, "--plan", exact, "--budget", "3", *self.words)
        found = self.json_of("diff", exact, self.plan)["precision"]
        self.assertIsNone(found["first"])
        done = self.succeeds("diff", exact, self.plan)
        self.fits_page(done.stdout)
        if not self.rounds:
            self.assertEqual(found["changes"], [])
            return
        self.assertEqual(found["second"]["most"], 0.05)
        self.assertTrue(any(change["from"] == "fp32" and "bf16" in change["to"] for change in found["changes"]), found)
        for text in ("Groups that compute in other element types", "changes from", "allowed", "measured"):
            self.assertIn(text, done.stdout)
        back = self.json_of("diff", self.plan, exact)["precision"]["changes"]
        self.assertAlmostEqual(sum(c["more_ms"] for c in back), -sum(c["more_ms"] for c in found["changes"]))
        self.assertEqual(self.json_of("diff", self.plan, self.plan)["precision"]["changes"], [])

    def test_bad_input(self):
        plan = ("--plan", self.path("bad.json"))
        self.refused("tune", BERT, *plan, "--curve", self.path("bad.svg"),
                     saying="--curve: it shows plans of lower precision; add --precision bf16, or leave it out")
        self.refused("tune", BERT, *plan, "--precision", "bf16", "--curve", self.path("nowhere/bad.svg"), saying="bad.svg: cannot be written")


if __name__ == "__main__":
    unittest.main(verbosity=2)
