#!/usr/bin/env python3
"""Networks whose shapes are open: loading, runs at any shape, lent outputs, bindings, states, and shapes that data decides."""
import gc
import os
import pathlib
import tempfile
import threading
import time
import unittest

import numpy as np

import collage
import models

QUICK = {"how": "priority", "threads": 1, "store": False}


def numbers(*shape):
    return (np.arange(np.prod(shape)).reshape(shape) * 7 % 11 / 4 - 1).astype(np.float32)


class Loading(unittest.TestCase):
    def test_ports(self):
        network = collage.load(models.dense())
        self.assertTrue(network.is_open)
        x, = network.inputs
        self.assertEqual((x.name, x.shape, x.type, x.rank, x.is_open), ("x", ("N", 4), "float32", 2, True))
        self.assertEqual(str(x), "x: float32 Nx4")
        self.assertEqual(network.outputs[0].shape, ("N", 3))
        self.assertEqual((network.opset, network.metadata, network.summary["producer"]), (21, {"made by": "tests"}, "collage's tests"))
        self.assertIsInstance(network.notes, tuple)
        fixed = network.with_shapes({"x": (5, 4)})
        self.assertEqual((fixed.is_open, fixed.inputs[0].shape, fixed.outputs[0].shape), (False, (5, 4), (5, 3)))
        self.assertEqual(fixed.metadata, network.metadata)

    def test_where_models_come_from(self):
        model = models.dense(2)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "mødel.onnx"
            path.write_bytes(model)
            for source in path, str(path), model, bytearray(model), memoryview(model), np.frombuffer(model, np.uint8):
                self.assertEqual(collage.load(source).inputs[0].shape, (2, 4))
            self.assertEqual(collage.load(path).name, os.fspath(path))
            path.write_bytes(models.dense())
            self.assertEqual(collage.session(path, **QUICK)(numbers(7, 4)).shape, (7, 3))
        self.assertEqual(collage.load("zoo:bert-paper").name, "zoo:bert-paper")

    def test_the_file_is_read_again(self):
        self.addCleanup(os.chdir, os.getcwd())
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            for folder, model in (second, models.two("N")), (first, models.dense()):
                os.chdir(folder)
                pathlib.Path("model.onnx").write_bytes(model)
            network = collage.load("model.onnx")
            os.chdir(second)
            self.assertEqual(network.name, os.path.join(os.path.realpath(first), "model.onnx"))
            self.assertEqual(network.with_shapes({"x": (2, 4)}).outputs[0].shape, (2, 3))
            self.assertEqual(network.session(**QUICK)(numbers(5, 4)).shape, (5, 3))
            os.chdir(first)
            measured = network.session(how="measure", threads=1, store="costs.db", compare=0.05, regions=0, backends="portable")
            os.chdir(second)
            measured(numbers(5, 4))
            self.assertEqual([pathlib.Path(folder, "costs.db").exists() for folder in (first, second)], [True, False])
            for changed in models.added(["N", 4]), models.dense("M").replace(b"y", b"z"), models.added(["N", 4], models.DOUBLE):
                pathlib.Path(first, "model.onnx").write_bytes(changed)
                for again in lambda: network.with_shapes({"x": (2, 4)}), lambda: network.session(**QUICK):
                    with self.assertRaisesRegex(collage.MisuseError, "model.onnx: has other inputs or outputs now .*; load it again"):
                        again()
            os.chdir("/")

    def test_values(self):
        network = collage.load(models.reshaped(), shapes={"x": [3, 4]}, values={"dims": np.array([2, 6])})
        self.assertEqual(([p.name for p in network.inputs], network.outputs[0].shape), (["x"], (2, 6)))
        np.testing.assert_array_equal(network.session(**QUICK)(numbers(3, 4)), numbers(3, 4).reshape(2, 6))
        opened = collage.load(models.reshaped(), values={"dims": np.array([-1, 2])})
        self.assertEqual((opened.is_open, [p.name for p in opened.inputs]), (True, ["x"]))
        np.testing.assert_array_equal(opened.session(**QUICK)(numbers(3, 4)), numbers(3, 4).reshape(6, 2))
        changed = np.array([2, 6])
        opened = collage.load(models.reshaped(), values={"dims": changed})
        changed[:] = 4, 3
        for network in opened, opened.with_shapes({"x": (3, 4)}):
            self.assertEqual(network.session(**QUICK)(numbers(3, 4)).shape, (2, 6))
        for shapes in None, {"x": (3, 4)}:
            for name, value, sentence in [("z", np.array([2, 6]), "values: the model has no input z; it takes x"),
                                          ("dims", np.array([2, 6], np.float32), "the value of input dims has elements of type float32"),
                                          ("dims", np.array([2, 6, 1]), r"the value of input dims has the shape \(3,\)")]:
                with self.subTest(sentence), self.assertRaisesRegex(collage.MisuseError, sentence):
                    collage.load(models.reshaped(), shapes=shapes, values={name: value})
        with self.assertRaisesRegex(collage.MisuseError, "values: the model has no input z; it takes x: float32 6"):
            collage.load(models.positions(), values={"z": np.zeros(6, np.float32)})

    def test_what_is_refused(self):
        model = models.dense()
        for wrong, sentence in [
                (lambda: collage.load("no.onnx"), "no.onnx: does not exist"),
                (lambda: collage.load(b"nonsense"), "is not an ONNX model"),
                (lambda: collage.load(model[:-40]), "model in memory"),
                (lambda: collage.load(b""), "model in memory: is empty"),
                (lambda: collage.load("zoo:nonsense"), "there is no network 'nonsense'; name one of"),
                (lambda: collage.load("zoo:resnet50", shapes={"input": (1,)}), "has fixed shapes"),
                (lambda: collage.load(models.model([models.node("Foo", ["x"], ["y"])], [models.value("x", models.FLOAT, [2])],
                                                   [models.value("y", models.FLOAT, [2])])), "this operator is not known"),
                (lambda: collage.load(models.model([models.node("Foo", ["x"], ["y"])], [models.value("x", models.FLOAT, ["N"])],
                                                   [models.value("y", models.FLOAT, ["N"])])), r"Foo.*this operator is not known"),
                (lambda: collage.load(7), "model is of type int; give a path"),
                (lambda: collage.load(""), "model is an empty path; give the path of an ONNX file"),
                (lambda: collage.load("a\0b"), "contains a zero character"),
                (lambda: collage.load(model, shapes={"z": (1, 4)}), "shapes: the model has no input z; it takes x: float32 Nx4"),
                (lambda: collage.load(model, shapes={"x": (1, 5)}), r"shapes: input x has the shape \(1, 5\), and the network takes \(N, 4\)"),
                (lambda: collage.load(model, shapes={"x": (1, -4)}), r"the shape of input x is \(1, -4\); give extents that are not negative"),
                (lambda: collage.load(model, shapes={"x": (1, 2.5)}), "give a sequence of integers"),
                (lambda: collage.load(model, shapes={"x": None}), "the shape of input x is None"),
                (lambda: collage.load(model, shapes={"x": (1,) * 9}), "has 9 extents"),
                (lambda: collage.load(model, shapes=[(1, 4)]), "shapes is of type list; give a dictionary"),
                (lambda: collage.load(model).with_shapes(np.ones(2)), "shapes is of type ndarray; give a dictionary"),
                (lambda: collage.load(models.dense(2)).session(carried=np.ones(2)), "carried is of type ndarray; give a dictionary"),
                (lambda: collage.load(model, shapes={3: (1, 4)}), "the name of an input is of type int"),
                (lambda: collage.load(model, values={"x": "text"}), "the value of input x is of type str"),
                (lambda: collage.load(model, values={"x": np.array(["text"])}), "elements of type <U4"),
                (lambda: collage.load(model).tune(), r"tuning needs fixed shapes, and this leaves some open: x: float32 Nx4"),
                (lambda: collage.load("zoo:bert-paper").with_shapes({"input": (1,)}), "whose shapes are fixed"),
                (lambda: collage.load("zoo:bert-paper").session(carried={"output": "input"}), "cannot be carried"),
        ]:
            with self.subTest(sentence), self.assertRaisesRegex(collage.MisuseError, sentence):
                wrong()


class Runs(unittest.TestCase):
    def test_any_shape(self):
        session = collage.session(models.two("N"), **QUICK)
        for rows in 1, 5, 2, 5:
            a, b = numbers(rows, 2), numbers(rows, 2)[::-1]
            for results in session.run(a, b), session.run({"b": b, "a": a}, copy=False):
                self.assertEqual(list(results), ["total", "difference"])
                np.testing.assert_array_equal(results["total"], a + b)
                np.testing.assert_array_equal(results["difference"], a - b)
        self.assertEqual((session.info["engines"], session.is_open, session.plan), (3, True, None))
        self.assertIn("engines", session.explain())
        limited = collage.session(models.two("N"), **QUICK, most_engines=1)
        for rows in 1, 5, 2:
            limited.run(numbers(rows, 2), numbers(rows, 2))
        self.assertEqual((limited.info["engines"], limited.info["given_back"]), (1, 2))

    def test_large_outputs(self):
        """They are written where the caller gets them, as long as they have the shapes of the run before."""
        session = collage.session(models.two("N"), **QUICK)
        for rows in 40000, 40000, 40000, 39000, 39000, 2, 2, 40000:
            a, b = numbers(rows, 2), numbers(rows, 2)[::-1]
            kept = session.run(a, b)
            session.run(b, a)
            session.run(np.zeros_like(a), np.zeros_like(a), copy=False)
            np.testing.assert_array_equal(kept["total"], a + b)
            np.testing.assert_array_equal(kept["difference"], a - b)
            self.assertTrue(kept["total"].flags.writeable)
        places = collage.session(models.positions(70000), **QUICK)
        for count in 70000, 70000, 17, 69999, 0:
            x = np.zeros(70000, np.float32)
            x[:count] = 1
            np.testing.assert_array_equal(places(x), [np.arange(count)])

    def test_lent_outputs_stay(self):
        session = collage.session(models.dense(), **QUICK)
        wanted = [session(numbers(rows, 4)) for rows in range(1, 30)]
        kept = [session.run(numbers(rows, 4), copy=False)["y"] for rows in range(1, 30)]
        session.close()
        gc.collect()
        for have, want in zip(kept, wanted):
            np.testing.assert_array_equal(have, want)

    def test_what_is_refused(self):
        session, x = collage.session(models.dense(), **QUICK), numbers(2, 4)
        two = collage.session(models.two("N"), **QUICK)
        for wrong, sentence in [
                (lambda: session.run(numbers(2, 5)), r"input x has the shape \(2, 5\), and the network takes \(N, 4\)"),
                (lambda: session.run(numbers(4)), r"input x has the shape \(4,\)"),
                (lambda: session.run(x.astype(np.int32)), "elements of type int32"),
                (lambda: session.run({"z": x}), "there is no input z"),
                (lambda: session.run({"x": x, "z": x}), "there is no input z"),
                (lambda: two.run({"a": numbers(2, 2)}), "input b is missing"),
                (lambda: two.run(numbers(2, 2), numbers(3, 2)), "N is 2 in input a and 3 in input b"),
                (lambda: session.profile(x), "profile needs fixed shapes and no states"),
                (lambda: session.steps, "steps needs fixed shapes"),
                (session.bind, "bind needs fixed shapes, and this leaves some open: x: float32 Nx4"),
                (session.sequence, "this session has no states"),
                (lambda: collage.session(models.dense(), most_engines=-1), "most_engines is -1"),
                (lambda: collage.session(models.dense(), carried={"y": "x"}, **QUICK), "output y: is declared as .x3, and input x"),
                (lambda: collage.session(models.dense(), carried=["y"], **QUICK), "carried is of type list"),
                (lambda: collage.session(models.dense(), carried={"q": "x"}, **QUICK), "output q: is carried, and the network has no such output"),
        ]:
            with self.subTest(sentence), self.assertRaisesRegex(collage.MisuseError, sentence):
                wrong()
        with self.assertRaises(collage.CancelledError):
            session.run(x, timeout=0)
        self.assertEqual(session(x).shape, (2, 3))

    def test_threads(self):
        session, wrong = collage.session(models.dense(), **QUICK), []
        wanted = {rows: session(numbers(rows, 4)) for rows in range(1, 9)}
        fresh = collage.session(models.dense(), **QUICK)

        def work(k):
            for step in range(40):
                rows = 1 + (k + step) % 8
                copy = step % 2 == 0
                if not np.array_equal(fresh.run(numbers(rows, 4), copy=copy)["y"], wanted[rows]):
                    wrong.append(rows)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        futures = [fresh.run_async(numbers(rows, 4)) for rows in range(1, 9)]
        for rows, future in enumerate(futures, 1):
            np.testing.assert_array_equal(future.result(60)["y"], wanted[rows])

    def test_binding(self):
        session = collage.session(models.dense(), **QUICK)
        binding = session.bind(shapes={"x": (6, 4)})
        binding.inputs["x"][...] = numbers(6, 4)
        binding.run()
        np.testing.assert_array_equal(binding.outputs["y"], session(numbers(6, 4)))

    def test_data_that_decides_shapes(self):
        network = collage.load(models.positions())
        self.assertTrue(network.is_open)
        self.assertEqual(network.inputs[0].shape, (6,))
        session = network.session(**QUICK)
        for x in np.array([0, 1, 0, 2, 0, 3], np.float32), np.zeros(6, np.float32), np.ones(6, np.float32):
            np.testing.assert_array_equal(session(x), [np.nonzero(x)[0]])


    def test_is_tuned_while_it_runs(self):
        session, x = collage.session(models.carried(), threads=1, store=False), numbers(2, 2)
        feeds = {"x": x, "total": x, "seen": numbers(0, 2)}
        before = session.run(feeds)
        with session.tune_in_background(budget=2) as tuning:
            until = time.monotonic() + 240
            while tuning.improved + tuning.failed == 0 and time.monotonic() < until:
                time.sleep(0.01)
            self.assertEqual((tuning.improved, tuning.failure, tuning.tuning), (1, None, None))
            self.assertIn("1 engines improved", repr(tuning))
        self.assertIn("closed", repr(tuning))
        after = session.run(feeds)
        for name in before:
            np.testing.assert_allclose(after[name], before[name], rtol=1e-5)
        self.assertEqual(session.info["made"], 2)
        with self.assertRaisesRegex(collage.MisuseError, "only sessions of open shapes are tuned in the background"):
            collage.load(models.carried(), shapes={"x": (1, 2), "total": (1, 2), "seen": (0, 2)}).session(**QUICK).tune_in_background()


class States(unittest.TestCase):
    def setUp(self):
        self.session = collage.session(models.carried(), carried={"total_next": "total", "seen_next": "seen"}, **QUICK)

    def test_runs_in_other_threads_keep_their_order(self):
        session = collage.session(models.carried(), carried={"total_next": "total", "seen_next": "seen"}, threads_at_once=4, **QUICK)
        started = [session.run_async(np.ones((1, 2), np.float32)) for _ in range(200)]
        self.assertEqual([future.result()["total_next"][0, 0] for future in started], list(range(1, 201)))

    def test_sequence(self):
        session = self.session
        self.assertEqual([p.name for p in session.inputs], ["x"])
        pieces = [numbers(2, 2) + np.float32(k) for k in range(5)]
        for _ in range(2):
            for k, x in enumerate(pieces):
                results = session.run(x)
                np.testing.assert_allclose(results["total_next"], sum(pieces[:k + 1]), rtol=1e-6)
                np.testing.assert_array_equal(results["seen_next"], np.concatenate(pieces[:k + 1]))
            np.testing.assert_array_equal(session.states["seen"], np.concatenate(pieces))
            session.reset()
        session.run(pieces[0])
        session.set_state("total", np.full((2, 2), 10, np.float32))
        np.testing.assert_allclose(session.run(pieces[1])["total_next"], 10 + pieces[1])

    def test_each_sequence_has_its_own_states(self):
        x = numbers(2, 2)
        other = self.session.sequence()
        self.session.run(x)
        np.testing.assert_array_equal(other.run({"x": x})["total_next"], x)
        np.testing.assert_array_equal(self.session.run(x)["total_next"], 2 * x)
        other.close()
        with self.assertRaisesRegex(collage.MisuseError, "the sequence is closed"):
            other.run({"x": x})

    def test_a_failure_leaves_states(self):
        x = numbers(2, 2)
        self.session.run(x)
        for wrong in lambda: self.session.run(x, timeout=0), lambda: self.session.run(numbers(3, 2)):
            with self.assertRaises(collage.CollageError):
                wrong()
        np.testing.assert_array_equal(self.session.states["total"], x)

    def test_asynchronous_runs_follow_one_another(self):
        x = numbers(2, 2)
        futures = [self.session.run_async(x) for _ in range(6)]
        for k, future in enumerate(futures, 1):
            np.testing.assert_allclose(future.result(60)["total_next"], k * x, rtol=1e-6)

    def test_what_is_refused(self):
        session, x = self.session, numbers(2, 2)
        held = [session.run(x, copy=False) for _ in range(2)]
        with self.assertRaisesRegex(collage.MisuseError, "release them, or run with copy=True"):
            session.run(x, copy=False)
        del held
        for wrong, sentence in [(lambda: session.set_state("z", x), "there is no state z; the states are total, seen"),
                                (lambda: session.set_state("total", x.astype(np.float64)), "state total has elements of type float64"),
                                (lambda: session.set_state("total", numbers(2, 3)), "state total has the shape"),
                                (lambda: session.start("total", "x"), "the shape of state total"),
                                (lambda: session.start("z", (1,)), "there is no state z"), (session.bind, "cannot be bound"),
                                (lambda: session.sequence().run(x), "feeds is of type ndarray; give a dictionary by names"),
                                (lambda: session.sequence().run([x]), "feeds is of type list"),
                                (lambda: session.run(x, total=x), "there is no input total; the network takes x")]:
            with self.subTest(sentence), self.assertRaisesRegex(collage.MisuseError, sentence):
                wrong()
        session.start("total", (2, 2))
        session.reset()
        np.testing.assert_array_equal(session.states["total"], np.zeros((2, 2)))
        session.close()
        with self.assertRaisesRegex(collage.MisuseError, "closed"):
            session.run(x)


class Caches(unittest.TestCase):
    def setUp(self):
        self.session = collage.session(models.attended(), **QUICK)
        self.growing = self.session.growing({"past": ("present", 0)}, [0, 4, 16], masks={"mask": (0, 0)})
        self.seen = np.zeros((0, 2), np.float32)

    def run_once(self, rows=1):
        x = numbers(rows, 2) + np.float32(len(self.seen))
        self.seen = np.concatenate([self.seen, x])
        return self.growing.run(x=x, mask=np.ones((len(self.seen), 1), np.float32))

    def test_runs_are_traced(self):
        x = numbers(1, 2)
        with collage.Trace() as trace:
            self.growing.run(x=x, mask=np.ones((1, 1), np.float32), trace=trace)
            self.growing.run(x=x, mask=np.ones((2, 1), np.float32))
            self.assertEqual(trace.runs, 1)
            self.assertGreater(trace.events, 0)
        np.testing.assert_array_equal(self.growing.caches["past"], np.concatenate([x, x]))

    def test_growth(self):
        growing = self.growing
        self.assertEqual(([p.name for p in growing.inputs], [p.name for p in growing.outputs]), (["x", "mask"], ["y"]))
        for rows in 1, 2, 1, 3, 1:
            results = self.run_once(rows)
            self.assertEqual(list(results), ["y"])
            np.testing.assert_allclose(results["y"], self.seen.sum(), rtol=1e-5)
            np.testing.assert_array_equal(growing.caches["past"], self.seen)
            self.assertEqual(growing.length, len(self.seen))
        self.assertEqual((growing.capacity, self.session.info["made"]), (16, 5))
        kept, rest = growing.caches, self.seen
        growing.shorten(2)
        self.seen = self.seen[:2]
        np.testing.assert_allclose(self.run_once()["y"], self.seen.sum(), rtol=1e-5)
        growing.restore(kept)
        np.testing.assert_array_equal(growing.caches["past"], rest)
        growing.reset()
        self.assertEqual(growing.length, 0)

    def test_what_is_refused(self):
        growing, x = self.growing, numbers(1, 2)
        mask = np.ones((1, 1), np.float32)
        for wrong, sentence in [
                (lambda: growing.run({"x": x}), "input mask is missing; the network takes x, mask"),
                (lambda: growing.run({"x": x, "mask": mask, "past": x}), "there is no input past"),
                (lambda: growing.run(x=numbers(17, 2), mask=np.ones((17, 1), np.float32)), "the largest capacity is 16"),
                (lambda: growing.run(x=x.astype(np.float64), mask=mask), "float64"),
                (lambda: growing.run(x), "feeds is of type ndarray; give a dictionary by names"),
                (lambda: growing.restore(5), "caches is of type int; give a dictionary by names"),
                (lambda: growing.restore({}), "restore takes all caches: past"),
                (lambda: self.session.growing({"past": ("present", 0)}, [4], masks={"mask": (0, "x")}), "the value 'x' for mask; give a number"),
                (lambda: growing.restore({"past": numbers(3, 3)}), "cache past has the shape"),
                (lambda: growing.shorten(-1), "length is -1"), (lambda: growing.shorten(5), "they have 0 elements, so that 5 cannot be kept"),
                (lambda: self.session.growing({"past": "present"}, [4]), "give a pair for each name"),
                (lambda: self.session.growing(["past"], [4]), "caches is of type list"),
                (lambda: self.session.growing({"past": ("none", 0)}, [4]), "cache past: the network has no none"),
                (lambda: self.session.growing({"past": ("present", 7)}, [4]), "dimension 7 of past is not open"),
                (lambda: self.session.growing({"past": ("present", 0)}, 4), "capacities is 4; give a list"),
                (lambda: self.session.growing({"past": ("present", 0)}, [-4]), "a capacity is -4"),
                (lambda: self.session.growing({"past": ("present", 0)}, [4], shapes={"x": (1, 2)}), "there is no cache x"),
                (lambda: collage.session(models.dense(2), **QUICK).growing({}, []), "need open shapes")]:
            with self.subTest(sentence), self.assertRaisesRegex(collage.MisuseError, sentence):
                wrong()
        with self.assertRaises(collage.CancelledError):
            growing.run(x=x, mask=mask, timeout=0)
        np.testing.assert_allclose(self.run_once()["y"], self.seen.sum(), rtol=1e-5)
        growing.close()
        for call in (lambda: growing.run(x=x, mask=mask), lambda: growing.length, growing.reset, lambda: growing.caches):
            with self.assertRaisesRegex(collage.MisuseError, "the growing context is closed"):
                call()


unittest.main()
