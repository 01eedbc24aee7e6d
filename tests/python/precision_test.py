#!/usr/bin/env python3
"""Tuning with lower precision: samples of all kinds, what they raise, how it is ended, and what the plan says."""
import json
import os
import pathlib
import signal
import tempfile
import unittest

import numpy as np

import collage
import models

ROWS, SIZE = 64, 512
WHY = "no plan within the bound was faster|none of the plans was confirmed|no kernel that can run here rounds anything"


def numbers(which, rows=ROWS):
    return np.random.default_rng(which).normal(size=(rows, SIZE)).astype(np.float32)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.network = collage.load(models.wide(ROWS))
        cls.many = [{"x": numbers(k)} for k in range(12)]
        if "onednn" not in {b["name"] for b in collage.system()["backends"] if b["available"]}:
            raise unittest.SkipTest("this build has no kernels in bfloat16")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def tune(self, samples, network=None, **options):
        settings = {"threads": 1, "store": pathlib.Path(self.folder.name) / "costs.db", "compare": 0.05, "backends": "onednn,portable",
                    "precision": "bf16", "error": 0.02}
        return (network or self.network).tune(samples=samples, **{**settings, **options})

    def holds(self, plan, held_back):
        """The plan is within the error, or says why it is in float32."""
        if plan.error is None:
            self.assertEqual(plan.precision, "fp32")
            self.assertRegex(plan.why_unrounded, WHY)
            self.assertIn("in float32: " + plan.why_unrounded, plan.explain())
            return
        self.assertEqual((plan.precision, plan.why_unrounded), ("bf16, error at most 2 %", None))
        self.assertEqual((plan.error.allowed, plan.error.samples), (0.02, held_back))
        self.assertLess(0, plan.error.measured)
        self.assertLessEqual(plan.error.measured, plan.error.upper)
        self.assertLessEqual(plan.error.upper, 0.02)
        self.assertIn(f"on {held_back} samples that were held back, the outputs err by", plan.explain())


class Plans(Case):
    def test_list_of_dictionaries(self):
        plan = self.tune(self.many)
        self.holds(plan, 6)
        x = numbers(99)
        exact, rounded = self.network.session(how="priority", threads=1)(x), self.network.session(plan)(x)
        found = np.sqrt(np.square(rounded - exact).sum() / np.square(exact).sum())
        if plan.error:
            self.assertTrue(plan.error.measured / 2 < found < plan.error.measured * 2, (found, plan.error))
        path = pathlib.Path(self.folder.name) / "plan.json"
        plan.save(path)
        again = self.network.load_plan(path)
        self.assertEqual((again.precision, again.why_unrounded, again.error is None), (plan.precision, None, plan.error is None))

    def test_other_kinds(self):
        stacked = np.stack([one["x"] for one in self.many])
        read = []

        def by_number(which):
            read.append(which)
            return self.many[which] if which < 12 else None

        class Lazy:
            def __len__(self):
                return 1000

            def __getitem__(self, which):
                read.append(which)
                return (numbers(which),)

        shared = np.empty((ROWS, SIZE), np.float32)

        def generated():
            for one in self.many:
                shared[...] = one["x"]  # as readers do that use their memory again
                yield shared

        folder = pathlib.Path(self.folder.name) / "samples"
        folder.mkdir()
        np.save(folder / "some.npy", stacked)
        expected = self.tune(self.many)
        for samples in (stacked, stacked.reshape(-1, SIZE), {"x": stacked}, list(stacked), [(one,) for one in stacked], generated(),
                        iter(self.many), by_number, folder, str(folder)):
            with self.subTest(type(samples)):
                plan = self.tune(samples)
                self.holds(plan, 6)
                if plan.error and expected.error:  # they may round different values
                    self.assertTrue(1 / 4 < plan.error.measured / expected.error.measured < 4, (plan.error, expected.error))
        self.assertEqual(max(read), 12)
        self.holds(self.tune(Lazy()), 32)
        self.assertGreater(max(read), 900)  # spread over all

    def test_several_inputs(self):
        network = collage.load(models.two(4))
        x = np.ones((4, 2), np.float32)
        for sample in {"a": x, "b": x}, (x, x), [x, x]:
            plan = self.tune([sample] * 4, network)
            self.assertTrue(plan.why_unrounded if plan.error is None else plan.error.upper <= 0.02)
        for samples, sentence in [
                ([x] * 4, "sample 0 is of type ndarray, and the network has 2 inputs; give a dictionary by their names, or a tuple"),
                ([(x,)] * 4, "sample 0 has 1 array, and the network has 2 inputs; give a, b"),
                ([{"a": x}] * 4, "sample 0: input b is missing; the network takes a, b"),
                (np.ones((4, 4, 2), np.float32), "samples is one array, and the network has 2 inputs; give a dictionary"),
                ({"a": np.stack([x] * 4)}, "input b is missing"),
                ({"a": np.stack([x] * 4), "b": np.stack([x] * 5)}, "samples has 4 for input a and 5 for input b; give as many"),
        ]:
            with self.subTest(sentence), self.assertRaisesRegex(collage.MisuseError, sentence):
                self.tune(samples, network)

    def test_a_tight_bound(self):
        plan = self.tune(self.many, error=0.006)  # the fastest plan exceeds it: errors of single values are measured
        if plan.error:
            self.assertLessEqual(plan.error.upper, 0.006)
            self.assertTrue(plan.error.predicted == 0 or f"{100 * plan.error.predicted:.2g} % was predicted" in plan.explain())
        else:
            self.assertRegex(plan.why_unrounded, WHY)

    def test_what_is_kept(self):
        def layouts(plan):
            path = pathlib.Path(self.folder.name) / "kept.json"
            plan.save(path)
            return " ".join(g.get("layout", "") for g in json.loads(path.read_text())["chosen"]["groups"] if "matmul" in g.get("pattern", ""))

        free, plan = self.tune(self.many), self.tune(self.many, keep="kind:matmul")
        if free.error:
            self.assertIn("bf16", layouts(free))
        self.assertNotIn("bf16", layouts(plan))
        self.assertIn(plan.precision, ("fp32", "bf16, error at most 2 %, kept in fp32: kind:matmul"))
        everything = self.tune(self.many, keep=iter(["kind:matmul", "*"]))
        self.assertEqual((everything.precision, everything.why_unrounded), ("fp32", "no kernel that can run here rounds anything"))

    def test_shapes_that_were_open(self):
        opened = collage.load(models.wide())
        self.holds(self.tune([numbers(k, 8) for k in range(6)], opened, shapes={"x": (8, SIZE)}), 3)
        with self.assertRaisesRegex(collage.MisuseError, "tuning needs fixed shapes"):
            self.tune([numbers(k) for k in range(6)], opened)

    def test_float32_is_the_default(self):
        plan = self.network.tune(threads=1, store=False, how="priority")
        self.assertEqual((plan.precision, plan.error, plan.why_unrounded), ("fp32", None, None))
        for options in {"error": 0.01}, {"samples": self.many}, {"keep": "kind:matmul"}:
            with self.assertRaisesRegex(collage.MisuseError, 'only affect plans of lower precision; add precision="bf16"'):
                self.network.tune(threads=1, store=False, how="priority", **options)


class Refused(Case):
    def test_options(self):
        for options, sentence in [
                ({"precision": "bf17"}, "precision is 'bf17', which is unknown; give one of fp32, bf16"),
                ({"precision": 16}, "precision is of type int; give a text"),
                ({"samples": None}, "precision is bf16, and there are no samples; give at least three"),
                ({"error": 0}, "error is 0; give a number above 0 and at most 1, such as 0.01 for 1 %"),
                ({"error": -0.1}, "error is -0.1"), ({"error": 1.5}, "error is 1.5"), ({"error": float("nan")}, "error is nan"),
                ({"error": "1%"}, "error is '1%'; give a number above 0"), ({"error": np.ones(2)}, "give a number above 0"),
                ({"samples": 5}, "samples is of type int; give a list of samples"), ({"samples": []}, "samples is empty"),
                ({"samples": np.ones((0, ROWS, SIZE), np.float32)}, "samples is empty"), ({"samples": iter([])}, "samples is empty"),
                ({"samples": "/nowhere"}, "/nowhere: there is no such file or folder; check the path"),
                ({"keep": "kind:matmull"}, "keep kind:matmull: the network has no operator 'matmull'; the nearest operators are matmul"),
                ({"keep": 3}, "keep is of type int; give names"), ({"keep": [3]}, "a name in keep is of type int; give a text"),
                ({"how": "priority"}, "precision is bf16, and only measuring shows whether it pays"),
                ({"keep_non_finite": True}, "kernels that round values need not keep NaN and infinity")]:
            with self.subTest(sentence), self.assertRaisesRegex(collage.MisuseError, sentence):
                self.tune(**{"samples": self.many, **options})

    def test_samples(self):
        x = numbers(0)
        bad = x.copy()
        bad[0, 5] = np.nan
        for samples, sentence in [
                (self.many[:2], "there are 2 samples, and the error of lower precision needs at least 3"),
                ([{"y": x}] * 4, "sample 0: there is no input y and input x is missing; the network takes x"),
                ([x[:3]] * 4, r"input x of sample 0 has the shape \(3, 512\), and the network takes \(64, 512\)"),
                ([x.astype(np.float64)] * 4, "input x of sample 0 has elements of type float64, and the network takes float32"),
                ([x, x, None, x], "input x of sample 2 is of type NoneType"),
                ([x, x, "text", x], "input x of sample 2 is of type str"),
                (np.ones((4, 3, SIZE), np.float32), r"samples of input x has the shape \(4, 3, 512\), and the network takes several of"),
                (np.ones((4, ROWS, SIZE)), "input x of sample 0 has elements of type float64"),
                ([x, x, bad, x, x], "sample 2: has NaN at element 5 of input x; give samples whose numbers are finite"),
                (lambda which: x if which < 2 else None, "there are 2 samples")]:
            with self.subTest(sentence), self.assertRaisesRegex(collage.MisuseError, sentence):
                self.tune(samples)


class QuantisedFiles(Case):
    """Files whose precision is chosen anew."""

    def test_the_rounding_is_removed(self):
        x = np.random.default_rng(5).uniform(-15, 15, (ROWS, 64)).astype(np.float32)
        weights = ((np.arange(64 * 64) * 7 % 17 - 8) / 16).astype(np.float32).reshape(64, 64)
        file, free = collage.load(models.quantised(ROWS)), collage.load(models.quantised(ROWS), requantise=True)
        as_it_says = np.maximum(np.clip(np.round(x * 8), -128, 127) / 8 @ weights, 0)
        settings = {"how": "priority", "threads": 1}
        self.assertTrue(np.allclose(file.session(**settings)(x), as_it_says, atol=1e-4))
        self.assertTrue(np.allclose(free.session(**settings)(x), np.maximum(x @ weights, 0), atol=1e-4))
        self.assertFalse(np.allclose(as_it_says, np.maximum(x @ weights, 0), atol=1e-2))
        self.assertNotEqual(file.summary["fingerprint"], free.summary["fingerprint"])

    def test_plans(self):
        network = collage.load(models.quantised("N"), requantise=True).with_shapes({"x": (ROWS, 64)})
        samples = [np.random.default_rng(k).uniform(-15, 15, (ROWS, 64)).astype(np.float32) for k in range(8)]
        said = []
        plan = self.tune(samples, network, precision="any", progress=lambda now: said.append(now.what))
        if plan.error:
            self.assertLessEqual(plan.error.upper, 0.02)
        self.assertIn("reading samples", said)
        self.assertFalse([what for what in said if "calibrating" in what])  # the file has ranges
        del said[:]
        self.tune(self.many, precision="any", progress=lambda now: said.append(now.what))
        self.assertTrue([what for what in said if "calibrating" in what])
        path = pathlib.Path(self.folder.name) / "anew.json"
        plan.save(path)
        self.assertEqual(network.load_plan(path).precision, plan.precision)
        with self.assertRaisesRegex(collage.MisuseError, "is a plan for another network of this name; load the model with .* requantise"):
            collage.load(models.quantised(ROWS)).load_plan(path)

    def test_refused(self):
        why = "no value is quantised to 8 bits by one known scale and zero point; set requantise to 0"
        with self.assertRaisesRegex(collage.MisuseError, why):
            collage.load(models.wide(ROWS), requantise=True)
        with self.assertRaisesRegex(collage.MisuseError, "rounds nothing; leave out requantise"):
            collage.load("zoo:resnet50", requantise=True)
        with self.assertRaisesRegex(collage.MisuseError, "requantise needs fixed shapes; give them by with_shapes"):
            collage.load(models.quantised("N"), requantise=True).session()
        with self.assertRaisesRegex(collage.MisuseError, "carried does not go with requantise"):
            collage.load(models.quantised(ROWS), requantise=True).session(carried={"y": "x"})
        with self.assertRaisesRegex(collage.MisuseError, why):
            collage.load(models.wide("N"), requantise=True).with_shapes({"x": (ROWS, SIZE)})


class Ended(Case):
    def test_what_samples_raise(self):
        for fault in ValueError("my own"), KeyboardInterrupt(), SystemExit(3), collage.MisuseError("mine"):
            for at in 0, 7:
                calls = []

                def read(which):
                    if which == at:
                        calls.append(which)
                        raise fault
                    return numbers(which) if which < 12 else None

                def generated():
                    for which in range(12):
                        yield read(which)

                for samples in read, generated():
                    with self.assertRaises(type(fault)) as caught:
                        self.tune(samples)
                    self.assertIs(caught.exception, fault)
                self.assertEqual(len(calls), 2)  # once by each

    def test_they_must_not_measure(self):
        small, session = collage.load(models.dense(2)), self.network.session(how="priority", threads=1)

        def measures(which):
            small.tune(threads=1, store=False, compare=0.05)

        with self.assertRaisesRegex(collage.MisuseError, "samples must not measure networks"):
            self.tune(measures)
        # Running is allowed, as another network that prepares the inputs.
        self.holds(self.tune(lambda which: session(numbers(which)) if which < 6 else None), 3)

    def test_progress(self):
        told = []
        plan = self.tune(self.many, progress=told.append)
        self.holds(plan, 6)
        if plan.error:
            self.assertIn("precision", {now.stage for now in told})
            self.assertIn("confirming the plan on samples that were held back", {now.what for now in told})
        with self.assertRaises(collage.CancelledError):
            self.tune(self.many, store=False, progress=lambda now: "cancel")
        self.assertIsNotNone(self.tune(self.many, progress=lambda now: "stop").precision)
        with self.assertRaisesRegex(ValueError, "of progress"):
            def fails(now):
                raise ValueError("of progress")
            self.tune(self.many, progress=fails)

    def test_keyboard_interrupt(self):
        def interrupted(which):
            os.kill(os.getpid(), signal.SIGINT)
            return numbers(which)

        with self.assertRaises(KeyboardInterrupt):
            self.tune(interrupted, store=False)
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

        calls = []

        def interrupted_once(which):
            calls.append(which)
            return interrupted(which) if len(calls) == 1 else numbers(which)

        self.tune(self.many)  # the store has costs now, so there is a plan
        plan = self.tune(interrupted_once)
        self.assertEqual((plan.precision, plan.error), ("fp32", None))
        self.assertEqual(plan.why_unrounded, "the caller ended placing before a plan was confirmed")


unittest.main()
