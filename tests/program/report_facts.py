#!/usr/bin/env python3
"""What reports say about plans, beside what other commands say about them."""
import json
import pathlib
import re
import unittest

import models
from pages import as_measured
from program import BERT, Case, complete_backend, placed_backends


def branch(then_side, else_side):
    """A node that runs one of two subgraphs, each a list of nodes that ends with the value `side`."""
    def attribute(name, nodes):
        body = b"".join(nodes) + models.field(2, name) + models.port(12, "side", [64, 64])
        return models.field(5, models.field(1, name) + models.field(6, body) + models.field(20, 5))
    return models.field(1, models.field(1, "flag") + models.field(2, "y") + models.field(4, "If") + models.field(3, "choose") +
                        attribute("then_branch", then_side) + attribute("else_branch", else_side))


def branching(then_side, else_side, *after):
    return models.model(branch(then_side, else_side), *after, models.port(11, "flag", [1], kind=9), models.port(11, "x", [64, 64]),
                        models.port(11, "w", [64, 64]), models.port(12, "z", [64, 64]))


class Facts(Case):
    def written(self, name, contents):
        (self.folder / name).write_bytes(contents)
        return self.path(name)

    def tuned(self, network, name, *more):
        plan = self.path(name)
        self.succeeds("tune", network, "--plan", plan, "--place", "priority", "--store", "none", "--quiet", *(more or ("--threads", "1")))
        return plan

    def changed(self, plan, change):
        """A copy of a plan file after a change."""
        contents = json.loads(pathlib.Path(plan).read_text())
        change(contents)
        return self.written("changed.json", json.dumps(contents).encode())

    def page_of(self, network, plan, *more):
        page = self.path("page.html")
        done = self.succeeds("report", network, "--plan", plan, "-o", page, *more)
        self.assertEqual(done.stderr, "")
        return pathlib.Path(page).read_text()

    def data_of(self, page):
        return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])

    def has(self, page, text):
        """The page is too long for the message of assertIn."""
        self.assertTrue(text in page, f"the page is without {text}")

    def test_notes_about_times_are_for_commands_that_run(self):
        plan = self.tuned(BERT, "two.json", "--threads", "2")
        other = self.changed(plan, lambda p: p.update(waiting="brief"))
        self.page_of(BERT, other)  # without a note
        self.assertEqual(self.succeeds("explain", BERT, "--plan", other).stderr, "")
        self.assertIn('was measured while threads waited by policy "brief"', self.succeeds("run", BERT, "--plan", other).stderr)
        crowded = self.changed(plan, lambda p: p.update(threads=64))
        self.page_of(BERT, crowded)
        for more in ((), ("--threads", "64")):
            self.assertEqual(self.succeeds("explain", BERT, "--plan", crowded, *more).stderr, "")

    def test_differences_are_those_of_diff(self):
        sides = [models.node("Sin", ["x"], ["side"], "sin")], [models.node("Neg", ["x"], ["n"], "neg"), models.node("Abs", ["n"], ["side"], "abs")]
        network = self.written("sides.onnx", branching(*sides, models.node("Exp", ["y"], ["z"], "after")))
        first = self.tuned(network, "first.json", "--threads", "1", "--backends", "portable")
        second = self.tuned(network, "second.json", "--threads", "1", "--backends", complete_backend() + ",portable")
        # By hand, because both commands compare by one function: eigen takes all but the branch, onednn takes neg and abs.
        changed = {"eigen": (4, 1), "onednn": (2, 3)}[complete_backend()]
        for one, other, counts in ((first, second, changed), (second, first, changed), (first, first, (0, 5))):
            told = self.json_of("diff", one, other)
            self.assertEqual((len(told["other_kernels"]), told["same_kernels"]), counts)
            page = self.page_of(network, one, "--against", other)
            places = len(told["other_kernels"])
            self.has(page, f"other kernels run the nodes at {places} place{'' if places == 1 else 's'}")
            same = told["same_kernels"]
            self.has(page, f"{same} group{' has' if same == 1 else 's have'} the same kernel in both plans")
            marked = sum("other" in group for group in self.data_of(page)["groups"])
            self.assertEqual(marked, sum(len(region["first"]) for region in told["other_kernels"]))
        self.assertGreater(len(self.json_of("diff", first, second)["other_kernels"]), 1)  # in subgraphs, too

    def test_another_plan_that_runs_other_nodes(self):
        sides = [models.node("Sin", ["x"], ["side"], "sin")], [models.node("Abs", ["x"], ["side"], "abs")]
        network = self.written("whole.onnx", branching(*sides, models.node("Exp", ["y"], ["z"], "after")))
        plan = self.tuned(network, "whole.json")
        def change(contents):
            for group in contents["chosen"]["groups"]:
                if group["step"] == "control":
                    del group["bodies"]
                    group.update(step="kernel", backend="portable", pattern="if", configuration="0")
        other = self.changed(plan, change)
        for words in (("diff", plan, other), ("report", network, "--plan", plan, "--against", other, "-o", self.path("page.html"))):
            self.refused(*words, saying="does not run node ")

    @unittest.skipUnless("jit" in placed_backends(), "no backend is known to refuse a product of two inputs")
    def test_refusals_in_subgraphs(self):
        sides = [models.node("Sin", ["x"], ["side"], "mm")], [models.node("MatMul", ["x", "w"], ["side"], "inside")]
        network = self.written("products.onnx", branching(*sides, models.node("MatMul", ["y", "w"], ["z"], "mm")))
        plan = self.tuned(network, "products.json")
        page = self.page_of(network, plan)
        data = self.data_of(page)
        by_number = {group["n"]: [[data["texts"][text] for text in r] for r in group.get("refused", [])] for group in data["groups"]}
        def places(number):
            return {where for backend, _, where, _ in by_number[number] if backend == "jit"}
        self.assertEqual(places("2"), {"mm"})
        self.assertEqual(places("1.2.1"), {"inside"})
        for refusal in by_number["2"]:
            self.assertNotIn(refusal, by_number["1.1.1"])  # of a node with the same name
        told = [r for r in self.json_of("explain", network, "--plan", plan)["refusals"] if r["backend"] == "jit" and r["where"] in ("mm", "inside")]
        self.assertTrue(told)
        self.assertEqual({r["count"] for r in told}, {2})
        self.has(page, "<code>collage store list --refused</code>")  # those that were found while measuring

    @staticmethod
    def absurd(plan):
        plan.update(as_measured(plan))  # with runs, which have ratios
        for placed in [plan["chosen"], *plan["singles"]]:
            for i, group in enumerate(placed["groups"]):
                if group["step"] != "view":
                    cost = 1e308 if i < 5 else 1e-308
                    group.update(cost_ms=cost, low_ms=cost, high_ms=cost, alone_ms=cost)
            placed["cost_ms"] = 1e308
        for run in plan["runs"]:
            run.update(median_ms=1e308, ratio=1e299, ratio_low=1e298, ratio_high=1e308)

    def test_times_whose_sum_or_rate_is_infinite(self):
        page = self.page_of(BERT, self.changed(self.tuned(BERT, "bert.json"), self.absurd))
        self.assertLess(len(page), 3_000_000)
        self.assertIsNone(re.search(r"(?<!\w)-?(inf|nan)\b", page))  # also within sentences and cells
        missing = page[page.index('<section id="missing"'):page.index('<section id="plan"')]
        self.has(missing, '<td class="num">1000000000000000.0000</td>')  # the longest time
        self.assertIsNone(re.search(r"\d{20}", page))  # no number has so many digits
        self.has(page, '<td class="num">1000000.000</td>')  # the greatest ratio

    def test_numbers_that_are_absurd_are_short(self):
        told = self.succeeds("explain", BERT, "--plan", self.changed(self.tuned(BERT, "ratios.json"), self.absurd)).stdout
        self.assertIn("1e+298..1e+308", told)
        self.assertIsNone(re.search(r"\d{20}", told))


if __name__ == "__main__":
    unittest.main()
