#!/usr/bin/env python3
"""Runs of networks of fixed shapes: by name and in order, at the same time, bound, limited, and what is refused. Queues of states."""
import gc
import json
import pathlib
import tempfile
import threading
import time
import unittest
import weakref

import numpy as np

import collage
import models

QUICK = {"how": "priority", "threads": 1, "store": False}


def dense(rows=2):
    return collage.session(models.dense(rows), **QUICK)


def expected(x):
    w, b = np.arange(12).reshape(4, 3) / 4 - 1, np.arange(3) / 2 - 0.5
    return np.maximum(0, x @ w + b).astype(np.float32)


def numbers(*shape):
    return (np.arange(np.prod(shape)).reshape(shape) * 7 % 11 / 4 - 1).astype(np.float32)


class Runs(unittest.TestCase):
    def test_the_ways_to_give_inputs(self):
        session = collage.session(models.two(3), **QUICK)
        a, b = numbers(3, 2), numbers(3, 2)[::-1].copy()
        for results in (session.run({"a": a, "b": b}), session.run({"b": b, "a": a}), session.run(a, b), session.run(a=a, b=b),
                        session.run(a, b=b), session.run({"a": a, "b": b}, copy=False)):
            self.assertEqual(list(results), ["total", "difference"])
            np.testing.assert_array_equal(results["total"], a + b)
            np.testing.assert_array_equal(results["difference"], a - b)
        total, difference = session(a, b)
        np.testing.assert_array_equal(total, a + b)
        np.testing.assert_array_equal(difference, a - b)
        np.testing.assert_allclose(dense()(numbers(2, 4)), expected(numbers(2, 4)), rtol=1e-6)

    def test_outputs_belong_to_the_caller(self):
        for rows in 2, 5000:  # copied, and bound
            session = dense(rows)
            x = numbers(rows, 4)
            for copy in True, False:
                first = session.run(x, copy=copy)["y"]
                for _ in range(3):
                    session.run(np.zeros_like(x), copy=copy)
                np.testing.assert_allclose(first, expected(x), rtol=1e-5)
            self.assertTrue(first.flags.writeable)
            session.close()
            np.testing.assert_allclose(first, expected(x), rtol=1e-5)

    def test_memory_is_used_again(self):
        session = dense(5000)
        x = numbers(5000, 4)
        addresses = {session.run(x, copy=False)["y"].ctypes.data for _ in range(10)}
        self.assertLessEqual(len(addresses), 2)
        piece = session.run(x, copy=False)["y"][17:19].T
        session.run(np.zeros_like(x), copy=False)
        session.run(np.zeros_like(x), copy=False)
        np.testing.assert_allclose(piece, expected(x)[17:19].T, rtol=1e-5)
        kept = [session.run(x + k, copy=False)["y"] for k in range(9)]
        for k, one in enumerate(kept):
            np.testing.assert_allclose(one, expected(x + np.float32(k)), rtol=1e-4, atol=1e-5)
        self.assertEqual(kept[0].ctypes.data % 64, 0)

    def test_strides(self):
        for rows in 6, 12000:
            session, x = dense(rows), numbers(rows, 4)
            wanted = session(x)
            strided = np.zeros((2 * rows, 12), np.float32)[::2, 1:9:2]
            strided[...] = x
            unaligned = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(rows, 4)
            read_only = x.copy()
            read_only.flags.writeable = False
            for one in strided, np.asfortranarray(x), x[::-1].copy()[::-1], unaligned, read_only:
                np.testing.assert_array_equal(session(one), wanted)

    def test_what_is_refused(self):
        session, x = dense(), numbers(2, 4)
        two = collage.session(models.two(3), **QUICK)
        for wrong, sentence in [
                (lambda: session.run({"z": x}), "there is no input z and input x is missing; the network takes x"),
                (lambda: session.run({"x": x, "z": x}), "there is no input z; the network takes x"),
                (lambda: two.run({"a": numbers(3, 2)}), "input b is missing; the network takes a, b"),
                (lambda: session.run({}), "input x is missing"),
                (lambda: session.run(), "input x is missing"),
                (lambda: session.run(x, x), "there are 2 arrays, and the network takes 1: x"),
                (lambda: session.run(x, x=x), "input x is given twice"),
                (lambda: session.run({"x": x}, x=x), "by a dictionary and by name"),
                (lambda: session.run({3: x}), "there is no input 3"),
                (lambda: session.run(x.astype(np.float64)), "input x has elements of type float64, and the network takes float32"),
                (lambda: session.run(x.astype(">f4")), "input x has the other byte order"),
                (lambda: session.run(x.astype(str)), "input x has elements of type str"),
                (lambda: session.run(x.astype(object)), "input x has elements of type object"),
                (lambda: session.run(np.ma.masked_array(x, x > 0)), "input x is a masked array"),
                (lambda: session.run(x.T), r"input x has the shape \(4, 2\), and the network takes \(2, 4\)"),
                (lambda: session.run(x[None]), r"input x has the shape \(1, 2, 4\)"),
                (lambda: session.run(np.float32(1)), r"input x has the shape \(\)"),
                (lambda: session.run(np.zeros((1,) * 20, np.float32)), "input x has 20 dimensions"),
                (lambda: session.run(x.tolist()), "input x is of type list, whose element type is not known"),
                (lambda: session.run(None), "input x is of type NoneType"),
                (lambda: session.run(1.5), "input x is of type float"),
                (lambda: session.run("x"), "input x is of type str"),
                (lambda: session.run(x, timeout="soon"), "timeout is 'soon'"),
                (lambda: session.run(x, timeout=float("nan")), "timeout is not a number"),
                (lambda: session.run(x, stop=True), "stop is of type bool; give a collage.StopFlag"),
                (lambda: session.set_state("h", x), "this session has no states"),
                (lambda: session.bind(shapes={"x": (2, 5)}), r"input x has the fixed shape \(2, 4\) in this session, and not \(2, 5\)"),
                (lambda: session.bind(shapes={"z": (2, 5)}), "shapes: there is no input z; the network takes x"),
                (lambda: session.run_async({"z": x}), "there is no input z"),
        ]:
            with self.subTest(sentence), self.assertRaisesRegex(collage.MisuseError, sentence):
                wrong()
        np.testing.assert_allclose(session(x), expected(x), rtol=1e-6)

    def test_limits(self):
        session, x = dense(), numbers(2, 4)
        flag = collage.StopFlag()
        np.testing.assert_allclose(session.run(x, timeout=60, stop=flag)["y"], expected(x), rtol=1e-6)
        flag.set()
        self.assertTrue(flag.is_set())
        binding = session.bind()
        for run in (lambda: session.run(x, stop=flag), lambda: session.run(x, timeout=0), lambda: session.run(x, timeout=-1),
                    lambda: binding.run(stop=flag), lambda: binding.run(timeout=0)):
            with self.assertRaises(collage.CancelledError) as caught:
                run()
            self.assertEqual(caught.exception.status, 3)
            self.assertNotIsInstance(caught.exception, ValueError)
        flag.clear()
        np.testing.assert_allclose(session.run(x, stop=flag)["y"], expected(x), rtol=1e-6)

    def test_traces(self):
        x = numbers(2, 4)
        fixed, opened = dense(), collage.session(models.dense(), **QUICK)
        binding = fixed.bind()
        with collage.Trace(process="tests") as trace:
            fixed.run(x, trace=trace)
            fixed.run_async(x, trace=trace, timeout=60).result(60)
            binding.run(trace=trace)
            np.testing.assert_allclose(opened.run({"x": x}, trace=trace)["y"], expected(x), rtol=1e-6)
            with self.assertRaises(collage.CancelledError):
                fixed.run(x, trace=trace, timeout=0)
            self.assertEqual((trace.runs, trace.dropped_runs), (5, 0))
            steps = [event for event in trace.data["traceEvents"] if event.get("cat") == "kernel"]
            self.assertEqual({event["name"] for event in steps}, {step.label for step in fixed.steps})
            self.assertGreaterEqual(trace.events, len(steps))
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "trace.json"
                trace.save(path)
                self.assertEqual(len(json.loads(path.read_text())["traceEvents"]), len(trace.data["traceEvents"]))
        for wrong, sentence in [(lambda: fixed.run(x, trace=trace), "the trace is closed"), (lambda: trace.data, "the trace is closed"),
                                (lambda: fixed.run(x, trace="trace.json"), "trace is of type str; give a collage.Trace"),
                                (lambda: collage.Trace(most_events=-1), "most_events is -1"),
                                (lambda: collage.Trace(process=3), "process is of type int")]:
            with self.subTest(sentence), self.assertRaisesRegex(collage.MisuseError, sentence):
                wrong()
        small = collage.Trace(most_events=1)
        fixed.run(x, trace=small)
        self.assertEqual((small.runs, small.dropped_runs), (0, 1))

    def test_threads(self):
        """Threads share a session and a binding: every answer is that of its own inputs."""
        session, wrong = dense(700), []
        binding = session.bind()
        bound = binding.inputs["x"].copy()

        def work(k):
            x = numbers(700, 4) + np.float32(k)
            wanted = session(x)
            for _ in range(30):
                if not np.array_equal(session(x), wanted) or not np.array_equal(session.run(x, copy=False)["y"], wanted):
                    wrong.append(k)
                binding.run()

        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        np.testing.assert_allclose(binding.outputs["y"], expected(bound), rtol=1e-6)

    def test_asynchronous_runs(self):
        session = collage.session(models.dense(700), **QUICK, threads_at_once=3)
        inputs = [numbers(700, 4) + np.float32(k) for k in range(20)]
        futures = [session.run_async({"x": x}) for x in inputs]
        for x, future in zip(inputs, futures):
            np.testing.assert_allclose(future.result(60)["y"], expected(x), rtol=1e-4, atol=1e-5)
        fault = session.run_async(inputs[0].T).exception(60)
        self.assertIsInstance(fault, collage.MisuseError)
        with self.assertRaises(collage.CancelledError):
            session.run_async(inputs[0], timeout=0).result(60)
        session.close()
        with self.assertRaisesRegex(collage.MisuseError, "the session is closed"):
            session.run_async(inputs[0])

    def test_closed_when_a_run_is_done(self):
        session, x, told = dense(700), numbers(700, 4), []

        def done(future):
            try:
                session.close()
            except BaseException as fault:
                told.append(fault)
            told.append("closed")

        future = session.run_async(x)
        future.result(60)
        held = threading.Event()
        waiting = session._pool.submit(held.wait, 60, threads=lambda: 1)  # so that the function above is called by the pool
        waiting.add_done_callback(done)
        executor = session._pool._executor
        held.set()
        executor.shutdown(wait=True)
        self.assertEqual(told, ["closed"])

    def test_the_end(self):
        session, x = dense(), numbers(2, 4)
        network, plan = session.network, session.plan
        binding = session.bind()
        with session:
            session.run(x)
        for call in (lambda: session.run(x), lambda: session(x), lambda: session.profile(x), session.bind, lambda: session.steps):
            with self.assertRaisesRegex(collage.MisuseError, "closed; make another one"):
                call()
        session.close()
        network.close()
        plan.close()
        with self.assertRaisesRegex(collage.MisuseError, "the network is closed"):
            network.tune()
        with self.assertRaisesRegex(collage.MisuseError, "the plan is closed"):
            plan.save("/nowhere")
        binding.inputs["x"][...] = x
        binding.run()  # it keeps the engine
        y = binding.outputs["y"]
        binding.close()
        np.testing.assert_allclose(y, expected(x), rtol=1e-6)
        for call in binding.run, lambda: binding.run(timeout=1), lambda: binding.inputs.update(x=x):
            with self.assertRaisesRegex(collage.MisuseError, "the binding is closed"):
                call()
        repr((session, network, plan, binding))

    def test_nothing_leaks(self):
        session = dense()
        gone = [weakref.ref(thing) for thing in (session, session.network, session.plan, session._runner.engine)]
        session.run(numbers(2, 4), copy=False)
        del session
        gc.collect()
        self.assertEqual([thing() for thing in gone], [None] * 4)
        gc.disable()  # a binding needs no collector: its memory goes at once
        try:
            binding = dense().bind()
            gone = [weakref.ref(binding), weakref.ref(binding._context.handle), weakref.ref(binding.inputs["x"])]
            del binding
            self.assertEqual([thing() for thing in gone], [None] * 3)
        finally:
            gc.enable()


class Bindings(unittest.TestCase):
    def test_arrays_of_the_caller(self):
        session, x = dense(), numbers(2, 4)
        binding = session.bind()
        np.testing.assert_array_equal(binding.inputs["x"], np.zeros((2, 4)))
        y = np.full((2, 3), -1, np.float32)
        binding.inputs["x"], binding.outputs["y"] = x, y
        self.assertIs(binding.outputs["y"], y)
        binding.run()
        np.testing.assert_allclose(y, expected(x), rtol=1e-6)
        x += 1
        binding.run()
        np.testing.assert_allclose(y, expected(x), rtol=1e-6)
        self.assertEqual((list(binding.inputs), len(binding.outputs)), (["x"], 1))
        self.assertEqual(("x" in binding.inputs, "y" in binding.inputs, binding.inputs.get("y", 3)), (True, False, 3))
        self.assertIs(binding.outputs.get("y"), y)

    def test_arrays_stay_alive(self):
        binding = dense().bind()
        binding.inputs["x"], binding.outputs["y"] = numbers(2, 4), np.zeros((2, 3), np.float32)
        gc.collect()
        trash = [np.full((2, 4), 9, np.float32) for _ in range(100)]
        binding.run()
        np.testing.assert_allclose(binding.outputs["y"], expected(numbers(2, 4)), rtol=1e-6)
        del trash

    def test_what_is_refused(self):
        binding, x = dense().bind(), numbers(2, 4)
        read_only = np.zeros((2, 3), np.float32)
        read_only.flags.writeable = False
        for name, value, sentence in [("x", x.astype(np.float64), "float64"), ("x", x.T, "shape"), ("x", np.asfortranarray(x), "not dense"),
                                      ("x", x.tolist(), "list"), ("z", x, "there is no input z; the network has x")]:
            with self.assertRaisesRegex(collage.MisuseError, sentence):
                binding.inputs[name] = value
        with self.assertRaisesRegex(collage.MisuseError, "output y cannot be bound: the array is read-only"):
            binding.outputs["y"] = read_only
        with self.assertRaisesRegex(collage.MisuseError, "there is no output z"):
            binding.outputs["z"]
        with self.assertRaisesRegex(collage.MisuseError, "stays bound"):
            del binding.inputs["x"]
        memory = np.zeros(16, np.float32)
        binding.inputs["x"], binding.outputs["y"] = memory[:8].reshape(2, 4), memory[6:12].reshape(2, 3)
        with self.assertRaisesRegex(collage.MisuseError, "overlaps"):
            binding.run()
        binding.outputs["y"] = memory[8:14].reshape(2, 3)
        binding.run()


class Queues(unittest.TestCase):
    """Calls that share states, with run_async among them."""

    def setUp(self):
        self.session = collage.session(models.carried(), carried={"total_next": "total", "seen_next": "seen"}, **QUICK)

    def queue(self, session, count):
        """Runs that are queued behind one that waits for the event, which is returned with the futures."""
        held, one = threading.Event(), np.ones((1, 2), np.float32)
        session._pool.submit(held.wait, 60, threads=lambda: 1, turns=session._turns)
        return held, [session.run_async(one) for _ in range(count)]

    def wait_for_places(self, session, count):
        end = time.monotonic() + 60
        while len(session._turns._places) < count and time.monotonic() < end:
            time.sleep(0.001)
        self.assertEqual(len(session._turns._places), count)

    def test_calls_wait_for_queued_runs(self):
        one = np.ones((1, 2), np.float32)
        calls = [(lambda s: s.run(one)["total_next"], 4), (lambda s: s.states["total"], 3), (lambda s: s.reset(), None),
                 (lambda s: s.set_state("total", one), None), (lambda s: s.start("total", (1, 2)), None)]
        for call, wanted in calls:
            for wait in False, True:  # where the queue is, and where it was
                session = collage.session(models.carried(), carried={"total_next": "total", "seen_next": "seen"}, **QUICK)
                held, queued = self.queue(session, 3)
                timer = threading.Timer(0.1, held.set)
                timer.start()
                if wait:
                    queued[-1].result(60)
                result = call(session)
                self.assertTrue(all(future.done() for future in queued))
                self.assertEqual([future.result()["total_next"][0, 0] for future in queued], [1, 2, 3])
                if wanted is not None:
                    np.testing.assert_array_equal(result, np.full((1, 2), wanted))
                timer.join()

    def test_queued_runs_wait_for_calls(self):
        """Calls of two threads in turns: each begins when all that were made before it have ended."""
        session, one, order = self.session, np.ones((1, 2), np.float32), []
        held, first = self.queue(session, 1)
        waits = threading.Thread(target=lambda: order.append(session.run(one)["total_next"][0, 0]))
        waits.start()
        self.wait_for_places(session, 3)
        later = [session.run_async(one) for _ in range(2)]
        held.set()
        self.assertEqual([future.result(60)["total_next"][0, 0] for future in first + later], [1, 3, 4])
        waits.join(60)
        self.assertEqual(order, [2])

    def test_a_function_that_a_future_calls_does_not_wait(self):
        session, one, seen = self.session, np.ones((1, 2), np.float32), []
        held, (first, last) = self.queue(session, 2)
        first.add_done_callback(lambda _: (session.reset(), seen.append(session.run(one)["total_next"][0, 0])))
        held.set()
        self.assertEqual(last.result(60)["total_next"][0, 0], 2)  # the queued run follows the function
        self.assertEqual(seen, [1])

    def test_limits_hold_while_a_run_waits(self):
        session, one, stop = self.session, np.ones((1, 2), np.float32), collage.StopFlag()
        held, queued = self.queue(session, 1)
        threading.Timer(0.1, stop.set).start()
        for limits, why in ({"timeout": 0.05}, "its time was over"), ({"stop": stop}, "the caller stopped it"), ({"timeout": 0}, "its time"):
            with self.assertRaisesRegex(collage.CancelledError, f"run: was ended before it began, because {why}"):
                session.run(one, **limits)
        self.assertFalse(queued[0].done())
        threading.Timer(0.1, held.set).start()
        self.assertEqual(session.run(one, timeout=60, stop=collage.StopFlag())["total_next"][0, 0], 2)
        held, _ = self.queue(session, 1)
        threading.Timer(0.2, held.set).start()
        with self.assertRaises(collage.CancelledError):
            session.run(one, timeout=0.1)

    def test_cancelled_runs_hold_up_nothing(self):
        session, one = self.session, np.ones((1, 2), np.float32)
        held, (first, second) = self.queue(session, 2)
        self.assertTrue(first.cancel())
        held.set()
        self.assertEqual(session.run(one)["total_next"][0, 0], 2)
        held, _ = self.queue(session, 5)
        faults = []

        def run():
            try:
                session.run(one)
            except collage.MisuseError as fault:
                faults.append(str(fault))

        waits = threading.Thread(target=run)
        waits.start()
        self.wait_for_places(session, 7)
        threading.Timer(0.1, held.set).start()
        session.close()
        waits.join(60)
        self.assertEqual(faults, ["the session is closed; make another one"])


unittest.main()
