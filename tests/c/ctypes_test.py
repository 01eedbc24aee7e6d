#!/usr/bin/env python3
"""The C interface from Python, with nothing but what Python brings along: ctypes_test.py LIBRARY MODEL

The model is that of make_model.py.
"""
import ctypes
import pathlib
import sys
import tempfile
import threading
import unittest

from interface import (IN, MODEL, OUT, ROWS, EngineOptions, ProgressFunction, Refused, call, collage, document, made,
                       options_for_model, place, port_of, run)


class CInterface(unittest.TestCase):
    def test_version(self):
        self.assertEqual(collage.collage_abi_version(), 1)

    def test_a_model_of_ones_own(self):
        if not document("system_json")["onnx"]:
            self.skipTest("built without ONNX")
        with self.assertRaisesRegex(Refused, "x"):
            made("network_from_file", MODEL.encode(), None)
        network = made("network_from_file", MODEL.encode(), ctypes.byref(options_for_model()))
        self.assertEqual(list(port_of("network_input", network).extents)[:3], [ROWS, IN, 0])
        self.assertEqual(document("network_json", network)["outputs"], [{"name": "y", "type": "float32", "shape": [OUT, ROWS]}])

        told = []
        plan = place(network, store=b"none", progress=ProgressFunction(lambda _, now: told.append(now[0].stage) or 0))
        self.assertIn(b"measuring", told)
        placing = document("plan_json", plan)["placing"]
        self.assertGreater(placing["measured"], 0)
        with tempfile.TemporaryDirectory() as folder:
            file = str(pathlib.Path(folder) / "plan.json").encode()
            call("plan_save", plan, file)
            again = made("plan_load", network, file, None)
        engine = made("engine_create", again, None)
        context = made("context_create", engine, None)
        x = [(k * 7 % 11) / 4 - 1 for k in range(ROWS * IN)]
        wanted = [max(0, j / 2 - 0.5 + sum(x[n * IN + i] * ((3 * i + j) / 4 - 1) for i in range(IN)))
                  for n in range(ROWS) for j in range(OUT)]
        for have, want in zip(run(context, x, ROWS * OUT), wanted, strict=True):
            self.assertAlmostEqual(have, want, places=5)
        for name, handle in ("plan", plan), ("plan", again), ("engine", engine), ("network", network), ("context", context):
            getattr(collage, f"collage_{name}_release")(handle)

    def test_threads(self):
        """Contexts of one engine, and engines for one and for two threads, at the same time: the same to the bit as alone."""
        network = made("network_from_zoo", b"bert-paper")
        engines = [made("engine_create", place(network, how=1, threads=threads), None) for threads in (1, 2)]
        elements = port_of("engine_input", engines[0]).bytes // 4
        count = port_of("engine_output", engines[0]).bytes // 4
        inputs = [[((k * 37 + seed * 101) % 257) / 128 - 1 for k in range(elements)] for seed in range(2)]
        work = [(engine, x) for engine in engines for x in inputs]
        alone = [run(made("context_create", engine, None), x, count) for engine, x in work]
        together = [[] for _ in work]

        def repeat(i):
            engine, x = work[i]
            context = made("context_create", engine, None)
            for _ in range(5):
                together[i].append(run(context, x, count))

        threads = [threading.Thread(target=repeat, args=(i,)) for i in range(len(work))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for one, others in zip(alone, together, strict=True):
            self.assertEqual(others, [one] * 5)
        self.assertNotEqual(alone[0], alone[1])

    def test_released_weights(self):
        network = made("network_from_zoo", b"bert-paper")
        plan = place(network, how=1)
        kept = made("engine_create", plan, None)
        options = EngineOptions(ctypes.sizeof(EngineOptions), 1)
        alone = made("engine_create", plan, ctypes.byref(options))
        x = [(k * 37 % 257) / 128 - 1 for k in range(port_of("engine_input", kept).bytes // 4)]
        count = port_of("engine_output", kept).bytes // 4
        answers = [run(made("context_create", engine, None), x, count) for engine in (kept, alone)]
        self.assertEqual(*answers)
        self.assertEqual(list(port_of("network_input", network).extents)[:1], [1])
        with self.assertRaisesRegex(Refused, "its weights were released to another engine; load the network again"):
            made("engine_create", plan, None)
        with self.assertRaisesRegex(Refused, "its weights were released to another engine"):
            place(network, how=1)

    def test_mistakes(self):
        network = made("network_from_zoo", b"bert-paper")
        with self.assertRaisesRegex(Refused, "network is NULL"):
            port_of("network_input", None)
        with self.assertRaisesRegex(Refused, "there is no input 5"):
            port_of("network_input", network, 5)
        with self.assertRaisesRegex(Refused, "plan is a handle of a network"):
            made("engine_create", network, None)
        with self.assertRaisesRegex(Refused, "nonsense"):
            place(network, how=1, backends=b"nonsense")
        with self.assertRaisesRegex(Refused, "name one of"):
            made("network_from_zoo", b"nonsense")


unittest.main(argv=sys.argv[:1])
