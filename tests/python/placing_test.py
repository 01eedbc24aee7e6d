#!/usr/bin/env python3
"""Tuning, plans and their files, progress, what callbacks raise, the log, and texts for people."""
import importlib
import inspect
import io
import json
import os
import pathlib
import pkgutil
import tempfile
import typing
import unittest
from unittest import mock

import numpy as np

import collage
import models

BRIEF = {"threads": 1, "store": False, "compare": 0.05, "regions": 0, "backends": "portable,eigen"}


def numbers(*shape):
    return (np.arange(np.prod(shape)).reshape(shape) * 7 % 11 / 4 - 1).astype(np.float32)


class Plans(unittest.TestCase):
    def test_measured_saved_and_read(self):
        network = collage.load(models.dense(2))
        plan = network.tune(**BRIEF)
        self.assertGreater(plan.cost_ms, 0)
        self.assertEqual((plan.threads, plan.data["placing"]["interrupted"]), (1, False))
        self.assertGreater(plan.data["placing"]["measured"], 0)
        for word in "backend", "end to end", "kernels measured", "1 thread, from ":
            self.assertIn(word, plan.explain())
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "plan.json"
            plan.save(path)
            again = network.load_plan(path)
            self.assertEqual((again.cost_ms, again.data["placing"]), (plan.cost_ms, None))
            self.assertIn("end to end", again.explain())
            session = network.session(again)
            np.testing.assert_array_equal(session(numbers(2, 4)), network.session(plan)(numbers(2, 4)))
            self.assertIs(session.plan, again)
            odd = os.path.join(folder, os.fsdecode(b"\xff.json"))  # no UTF-8
            plan.save(odd)
            self.assertEqual(network.load_plan(os.fsencode(odd)).cost_ms, plan.cost_ms)
            self.assertIn(b"\xff.json", os.listdir(os.fsencode(folder)))
            opened = collage.load(models.dense())
            fixed = opened.load_plan(os.fspath(path))  # the shapes are in the file
            self.assertEqual(fixed.network.inputs[0].shape, (2, 4))
            self.assertEqual(opened.session(fixed)(numbers(2, 4)).shape, (2, 3))
            with mock.patch.object(collage.Network, "_place", side_effect=AssertionError):  # the plan is what runs
                opened.session(fixed).bind(shapes={"x": (2, 4)}).run()
            for wrong, sentence in [
                    (lambda: network.load_plan(path, threads=2), "thread"),
                    (lambda: network.load_plan(pathlib.Path(folder) / "none.json"), "none.json"),
                    (lambda: opened.load_plan(pathlib.Path(folder) / "none.json"), r"none.json: cannot be read \(No such file"),
                    (lambda: opened.load_plan(folder), r"cannot be read \(Is a directory"),
                    (lambda: opened.load_plan(path, shapes={"x": (3, 4)}), "plan.json"),
                    (lambda: collage.load("zoo:bert-paper").load_plan(path), "plan.json"),
                    (lambda: collage.load(models.dense(2)).session(plan), "for a network that was loaded separately"),
                    (lambda: network.session("plan.json"), "plan is of type str; give a collage.Plan"),
                    (lambda: network.session(plan, carried={"y": "x"}), "carried states need a session without a plan"),
                    (lambda: network.session(plan, threads=2, backends="eigen"), "threads, backends cannot be given with a plan"),
                    (lambda: network.session(plan, progress=np.ones(2)), "progress cannot be given with a plan"),
                    (lambda: collage.Session("m.onnx"), "network is of type str; give a collage.Network, as collage.load makes it"),
                    (lambda: plan.save(7), "path is of type int"),
            ]:
                with self.subTest(sentence), self.assertRaisesRegex(collage.MisuseError, sentence):
                    wrong()
            for text, sentence in [("nonsense", "is no JSON"), ("[" * 100000, "is no JSON"), ("[]", "does not say for which shapes"),
                                   ("{}", "does not say for which shapes"), ('{"inputs": []}', "does not say for which shapes")]:
                path.write_text(text)
                with self.subTest(text[:20]), self.assertRaisesRegex(collage.MisuseError, f"plan.json: {sentence}.*Plan.save"):
                    opened.load_plan(path)
            with self.assertRaises(collage.CollageError):
                plan.save(pathlib.Path(folder) / "no" / "plan.json")

    def test_options(self):
        network = collage.load(models.dense(2))
        portable = network.tune(**{**BRIEF, "backends": ["portable"]})
        self.assertEqual([b["name"] for b in portable.data["backends"]], ["portable"])
        excluded = network.tune(how="priority", store=False, backends="portable,eigen", exclude={"relu": ["eigen"], "matmul": "eigen"})
        self.assertIn("from priority, nothing was measured\n", excluded.explain())
        self.assertRegex(repr(excluded), r"^<collage.Plan of model in memory, \d+ threads?, nothing was measured>$")
        self.assertRegex(repr(portable), r"1 thread, [0-9.]+ ms>$")
        self.assertNotIn("eigen", {step.backend for step in network.session(excluded).steps if "matmul" in step.label})
        pinned = network.tune(how="priority", store=False, pin={"relu": "portable"})
        self.assertIn("portable", {step.backend for step in network.session(pinned).steps})
        better = network.tune(**BRIEF, previous=portable, budget=None, memory=3.0, algorithms="any", keep_non_finite=True, seed=7)
        self.assertGreater(better.cost_ms, 0)
        tuned = collage.load(models.dense()).tune(shapes={"x": (3, 4)}, how="estimate", store=False, memory=10**9)
        network.tune(how="priority", store=False, memory=np.float32(1.5), regions=np.float32(0))
        searched = network.tune(**BRIEF, autotune=0.2).data["placing"]["autotune"]  # no backend has a space
        self.assertEqual((searched["measured"], searched["exhausted"]), (0, True))
        self.assertEqual(tuned.network.outputs[0].shape, (3, 3))

    def test_the_store(self):
        network = collage.load(models.dense(2))
        with tempfile.TemporaryDirectory() as folder:
            settings = {**BRIEF, "store": pathlib.Path(folder) / "costs.db"}
            first, second = network.tune(**settings), network.tune(**settings)
            self.assertGreater(first.data["placing"]["measured"], 0)
            self.assertGreater(second.data["placing"]["from_store"], 0)

    def test_what_is_refused(self):
        network = collage.load(models.dense(2))
        for options, sentence in [
                ({"backends": "nonsense"}, "nonsense"), ({"backends": 3}, "backends is 3"),
                ({"backends": []}, "backends names none"), ({"autotune": None}, "autotune is None; give a number of seconds"),
                ({"how": "best"}, 'how is \'best\'; give one of'),
                ({"threads": -1}, "threads is -1"), ({"threads": 1.5}, "threads is 1.5; give an integer"), ({"budget": -1}, "budget is -1"),
                ({"budget": "long"}, "budget is 'long'"), ({"compare": float("nan")}, "compare is nan"), ({"store": 3}, "store is of type int"),
                ({"algorithms": "fast"}, 'algorithms is \'fast\'; give one of "accurate"'), ({"memory": -1.0}, "memory is -1.0"),
                ({"memory": 0}, "memory is 0"), ({"pin": ["relu"]}, "pin is of type list"), ({"pin": {"relu": "nonsense"}}, "nonsense"),
                ({"seed": -1}, "seed is -1"), ({"progress": 3}, "progress is of type int"), ({"previous": 3}, "previous is of type int"),
                ({"pin": {"conv": 5}}, "pin has 5 for conv; give the name of a backend"), ({"backends": "\ud800"}, "no text in UTF-8"),
                ({"store": "\ud800"}, "which no file is called"), ({"progress": np.ones(3)}, "progress is of type ndarray"),
                ({"regions": np.ones(2)}, "give a number of seconds"), ({"autotune": -1}, "autotune is -1"), ({"memory": np.float32(-1)}, "memory is"),
                ({"shapes": {"x": (9, 9)}}, "x")]:
            with self.subTest(sentence), self.assertRaisesRegex(collage.MisuseError, sentence):
                network.tune(**{"how": "priority", "store": False, **options})

    def test_profile(self):
        session = collage.session(models.dense(2), how="priority", threads=1, store=False)
        steps = session.profile(numbers(2, 4))
        self.assertEqual([s.label for s in steps], [s.label for s in session.steps])
        self.assertTrue(all(step.ms > 0 and step.backend and step.kernel and step.name == step.label for step in steps))
        self.assertIn(steps[0].label, session.explain())
        self.assertEqual((session.info["threads"], session.info["steps"]), (1, len(steps)))


class Progress(unittest.TestCase):
    def tune(self, progress, **options):
        return collage.load(models.dense(2)).tune(**{**BRIEF, **options}, progress=progress)

    def test_told(self):
        told = []
        self.tune(told.append)
        self.assertIn("measuring", {now.stage for now in told})
        self.assertTrue(all(now.done >= 0 and now.remaining_s >= 0 for now in told))
        self.assertGreater(max(now.best_ms for now in told), 0)

    def test_without_standard_error(self):
        with mock.patch("sys.stderr", None):
            self.assertGreater(self.tune(True).data["placing"]["measured"], 0)

    def test_stop(self):
        plan = self.tune(lambda now: "stop" if now.best_ms else None)
        self.assertTrue(plan.data["placing"]["interrupted"])
        self.assertIn("ended early", plan.explain())

    def test_cancel(self):
        with self.assertRaises(collage.CancelledError):
            self.tune(lambda now: "cancel")

    def test_what_it_raises(self):
        for fault in ValueError("my own"), KeyboardInterrupt(), SystemExit(3):
            calls = []

            def function(now):
                calls.append(now)
                raise fault

            with self.assertRaises(type(fault)) as caught:
                self.tune(function)
            self.assertIs(caught.exception, fault)
            self.assertEqual(len(calls), 1)
        with self.assertRaisesRegex(collage.MisuseError, "the progress function returned 3; return None"):
            self.tune(lambda now: 3)
        for answer in True, False:  # of the update of a progress bar
            self.assertFalse(self.tune(lambda now: answer).data["placing"]["interrupted"])

    def test_it_must_not_measure(self):
        fixed, opened = collage.load(models.dense(2)), collage.load(models.dense()).session(how="measure", **BRIEF)
        for inner in lambda: fixed.tune(**BRIEF), lambda: opened(numbers(2, 4)):
            with self.assertRaisesRegex(collage.MisuseError, "a progress function must not measure networks"):
                self.tune(lambda now: inner() and None)
        self.tune(lambda now: fixed.tune(how="priority", store=False) and "stop")
        self.assertEqual(opened(numbers(2, 4)).shape, (2, 3))

    def test_of_an_open_session(self):
        def function(now):
            raise ValueError("my own")

        session = collage.load(models.dense()).session(how="measure", **BRIEF, progress=function)
        with self.assertRaisesRegex(ValueError, "my own"):
            session(numbers(2, 4))
        told = []
        session = collage.load(models.dense()).session(how="measure", **BRIEF, progress=told.append)
        self.assertEqual(session(numbers(2, 4)).shape, (2, 3))
        self.assertIn("measuring", {now.stage for now in told})

    def test_line(self):
        now = collage.Progress("measuring", "conv\x1b[2J", 45, 55, 4.0, 9.27)
        self.assertEqual(collage.ProgressLine.text(now, 63.2),
                         "measuring  45%|####      | 45/100 [01:03<00:04, best 9.270 ms] conv?[2J")

        class Terminal(io.StringIO):
            def isatty(self):
                return True

        for to in Terminal(), io.StringIO():
            line = collage.ProgressLine(to)
            self.tune(line)
            line.close()
            self.assertIn("measuring", to.getvalue())
            self.assertEqual("\r" in to.getvalue(), to.isatty())
            self.assertTrue(to.getvalue().endswith("\n"))


class Library(unittest.TestCase):
    def test_log(self):
        told = []
        collage.set_log(lambda level, text: told.append((level, text)))
        collage.load(models.dense(2)).tune(**BRIEF)
        collage.set_log(None)
        count = len(told)
        self.assertGreater(count, 0)
        self.assertLessEqual({level for level, _ in told}, {"note", "warning"})
        collage.load(models.dense(2)).tune(**BRIEF)
        self.assertEqual(len(told), count)
        with self.assertRaisesRegex(collage.MisuseError, "the function is of type int; give a function, or None"):
            collage.set_log(5)

    def test_system(self):
        about = collage.system()
        self.assertEqual((about["version"], about["abi"], collage.__version__), (collage.version(), 1, collage.version()))
        self.assertIn("portable", {backend["name"] for backend in about["backends"]})
        json.dumps(about)

    def test_options_of_sessions_are_typed(self):
        from collage.session import SessionOptions
        names = list(inspect.signature(collage.Session.__init__).parameters)[3:]
        self.assertEqual(sorted(SessionOptions.__annotations__), sorted(names))

    def test_annotations_resolve(self):
        """Of all functions and classes of the package: programs make arguments or checks of them."""
        names = [info.name for info in pkgutil.walk_packages(collage.__path__, "collage.") if not info.name.endswith("__main__")]
        count = 0
        for name in "collage", *names:
            module = importlib.import_module(name)
            own = [thing for thing in vars(module).values() if getattr(thing, "__module__", None) == name]
            members = [member for thing in own if inspect.isclass(thing) for member in vars(thing).values()]
            for thing in own + members:
                thing = getattr(thing, "fget", None) or getattr(thing, "func", None) or getattr(thing, "__func__", thing)
                if inspect.isfunction(thing) or inspect.isclass(thing):
                    with self.subTest(f"{name}: {thing.__qualname__}"):
                        typing.get_type_hints(thing)
                    count += 1
        self.assertGreater(count, 500)

    def test_all_that_is_exported(self):
        for name in collage.__all__:
            self.assertTrue(getattr(collage, name).__doc__, name)


unittest.main()
