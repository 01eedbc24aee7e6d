#!/usr/bin/env python3
"""What collage's own side of ONNX Runtime's interface does: how sessions are placed, what is noted, and what is refused."""
import copy
import gc
import logging
import mmap
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import tracemalloc
import unittest
import weakref
from unittest import mock

import numpy as np

room = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = room.name
os.environ["COLLAGE_ORT_HOW"] = "priority"

import collage  # noqa: E402
import collage.onnxruntime as ort  # noqa: E402
from collage.onnxruntime.capi.onnxruntime_pybind11_state import (Fail, InvalidArgument, InvalidGraph, InvalidProtobuf,  # noqa: E402
                                                                NoSuchFile, NotImplemented)

from collage.onnxruntime import _external  # noqa: E402
from collage.onnxruntime._placing import Settings  # noqa: E402

import networks  # noqa: E402

X = np.ones((2, 4), np.float32)


def path(name):
    return str(pathlib.Path(room.name, f"{name}.onnx"))


def options(**entries):
    of = ort.SessionOptions()
    for key, value in entries.items():
        of.add_session_config_entry("collage." + key, value)
    return of


class Case(unittest.TestCase):
    def refused(self, kind, says, action, *arguments, **words):
        """One sentence on one line, of this kind."""
        with self.assertRaises(kind) as caught:
            action(*arguments, **words)
        self.assertIn(says, str(caught.exception))
        self.assertEqual(len(str(caught.exception).splitlines()), 1)

    def noted(self, action):
        """What a call logs."""
        with self.assertLogs("collage.onnxruntime", "INFO") as logs:
            result = action()
            logging.getLogger("collage.onnxruntime").info("end")
        return result, [record.getMessage() for record in logs.records][:-1]


class Placing(Case):
    def test_fixed_shapes_are_measured_within_a_budget(self):
        self.addCleanup(os.environ.__setitem__, "COLLAGE_ORT_HOW", os.environ.pop("COLLAGE_ORT_HOW"))
        session = ort.InferenceSession(path("fixed"), options(store=room.name + "/own.db"))
        self.assertNotIn(session.collage_session.plan.data["origin"], ("priority", "estimate"))
        kept, = pathlib.Path(room.name, "own.db.plans").iterdir()
        # Later starts read the plan that is kept, if it is whole. An explicit "measure" goes on.
        made = kept.read_bytes()
        for contents in (made, b"{}"):
            kept.write_bytes(contents)
            again = ort.InferenceSession(path("fixed"), options(store=room.name + "/own.db"))
            self.assertEqual(again.collage_session.plan.data["placing"] is None, contents == made)
            self.assertIn(b'"fingerprint"', kept.read_bytes())
        more = ort.InferenceSession(path("fixed"), options(store=room.name + "/own.db", how="measure", budget_s="1"))
        self.assertIsNotNone(more.collage_session.plan.data["placing"])
        ort.InferenceSession(path("fixed"), options(store="none", budget_s="0.5"))
        self.assertEqual(list(kept.parent.iterdir()), [kept])
        # Open shapes are never measured by default. Estimates need the costs of a store.
        network = collage.load(path("linear"))
        hows = [Settings(options(**entries), {}).how_for(network) for entries in ({}, {"store": "own.db"}, {"how": "measure"})]
        self.assertEqual((ort.InferenceSession(path("linear")).collage_session.is_open, hows), (True, ["priority", "estimate", "measure"]))
        quick = ort.SessionOptions()
        quick.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.assertEqual(ort.InferenceSession(path("fixed"), quick).collage_session.plan.data["origin"], "priority")

    def test_the_environment_and_the_options_before_it(self):
        def origin(**entries):
            return ort.InferenceSession(path("fixed"), options(**entries)).collage_session.plan.data["origin"]
        self.assertEqual(origin(), "priority")
        # A search keeps the plan of one backend where none is faster: its origin is then that backend.
        self.assertNotEqual(origin(how="measure", store="none", budget_s="0.5"), "priority")

    def test_a_plan(self):
        network = collage.load(path("linear"), shapes={"x": (2, 4)})
        plan = pathlib.Path(room.name, "linear.plan.json")
        network.tune(how="priority", threads=1).save(plan)
        for made in (ort.InferenceSession(path("linear"), options(plan=str(plan))),
                     ort.InferenceSession(path("linear"), providers=[("CPUExecutionProvider", {"collage.plan": plan})])):
            self.assertEqual(made.get_inputs()[0].shape, [2, 4])
            np.testing.assert_allclose(made.run(None, {"x": X})[0], ort.InferenceSession(path("linear")).run(None, {"x": X})[0],
                                       rtol=1e-5)
            self.refused(InvalidArgument, "Got: 3 Expected: 2", made.run, None, {"x": np.ones((3, 4), np.float32)})
        self.refused(InvalidArgument, "no.plan.json", ort.InferenceSession, path("linear"), options(plan="no.plan.json"))

    def test_shapes(self):
        whole = ort.InferenceSession(path("any_image"), options(shapes="images=2x3x8x6"))
        self.assertEqual((whole.get_inputs()[0].shape, whole.get_outputs()[0].shape), ([2, 3, 8, 6], [2, 5]))
        self.assertFalse(whole.collage_session.is_open)
        for text in ("images=?x3x8x?", "height=8"):
            part = ort.InferenceSession(path("any_image"), options(shapes=text))
            self.assertEqual(part.get_inputs()[0].shape, ["batch", 3, 8, "width"])
            self.assertEqual(part.run(None, {"images": np.ones((2, 3, 8, 5), np.float32)})[0].shape, (2, 5))
            self.refused(InvalidArgument, "index: 2 Got: 7 Expected: 8", part.run, None,
                         {"images": np.ones((1, 3, 7, 5), np.float32)})
        for text, says in (("images=2x3", "2 extents"), ("images=1x4x8x8", "fixes it to 3"), ("imagse=1", "'imagse'"),
                           ("8", "must be like"), ("images=1x3x8xw", "must be like")):
            self.refused(InvalidArgument, says, ort.InferenceSession, path("any_image"), options(shapes=text))

    def test_wrong_entries(self):
        for entries, says in ((dict(how="fast"), "measure, estimate, priority"), (dict(budget_s="soon"), "number of seconds"),
                              (dict(budget_s="0"), "number of seconds"), (dict(pan="x"), "'collage.pan' is no entry"),
                              (dict(backends="nosuch"), "nosuch")):
            self.refused(InvalidArgument, says, ort.InferenceSession, path("fixed"), options(**entries))
        negative = ort.SessionOptions()
        negative.intra_op_num_threads = -1
        self.refused(InvalidArgument, "negative", ort.InferenceSession, path("fixed"), negative)

    def test_keep_non_finite(self):
        x = np.ones((1, 8, 16, 16), np.float32)
        x[0, 0, 5, 5] = np.nan
        os.environ["COLLAGE_ORT_HOW"], how = "measure", os.environ["COLLAGE_ORT_HOW"]
        self.addCleanup(os.environ.__setitem__, "COLLAGE_ORT_HOW", how)
        if any(backend["name"] == "onednn" and backend["available"] for backend in collage.system()["backends"]):
            # Its fastest kernel turns NaN into 0. A plan with that kernel is not read with the entry.
            words = dict(backends="onednn", store=room.name + "/keeps.db", budget_s="1.5")
            for entries, count in ({}, 0), ({"keep_non_finite": "1"}, 16 * 9):
                y = ort.InferenceSession(path("keeps"), options(**words, **entries)).run(None, {"x": x})[0]
                self.assertEqual(int(np.isnan(y).sum()), count)
            self.assertTrue(np.isnan(y[:, :, 4:7, 4:7]).all())
            kept = sorted(file.stem.partition("-keep")[1] for file in pathlib.Path(room.name, "keeps.db.plans").iterdir())
            self.assertEqual(kept, ["", "-keep"])
        fixed = ort.InferenceSession(path("any_image"), options(keep_non_finite="1", shapes="images=1x3x8x8", store="none", budget_s="1"))
        self.assertFalse(fixed.collage_session.is_open)
        quick = options(keep_non_finite="1")
        quick.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        plan = room.name + "/keeps.plan.json"
        collage.load(path("keeps")).tune(how="priority", threads=1).save(plan)
        for name, of, says in (("any_image", options(keep_non_finite="1"), "fix the shapes"),
                               ("keeps", options(keep_non_finite="1", how="priority"), "only measuring"),
                               ("keeps", options(keep_non_finite="1", plan=plan), "a plan decides"),
                               ("keeps", options(keep_non_finite="yes"), "must be 0 or 1")):
            self.refused(InvalidArgument, says, ort.InferenceSession, path(name), of)
        del os.environ["COLLAGE_ORT_HOW"]
        self.refused(InvalidArgument, "ORT_DISABLE_ALL", ort.InferenceSession, path("keeps"), quick)

    def test_number_of_threads(self):
        one = options()
        one.intra_op_num_threads = 1
        self.assertEqual(ort.InferenceSession(path("fixed"), one).collage_session.plan.threads, 1)


class Notes(Case):
    def test_other_providers_are_noted_once(self):
        def make():
            return ort.InferenceSession(path("linear"), providers=["SomeExecutionProvider", "CPUExecutionProvider"])
        self.assertEqual(self.noted(make)[1],
                         ["'SomeExecutionProvider' is ignored: collage runs all kernels on the processor here"])
        self.assertEqual(self.noted(make)[1], [])
        for given, says in (("CPUExecutionProvider", "sequence"), ([1], "strings or"), ([("A", 1, 2)], "strings or")):
            self.refused(ValueError, says, ort.InferenceSession, path("linear"), providers=given, enable_fallback=0)
            self.refused(ValueError, says, ort.InferenceSession(path("linear")).set_providers, given)
        self.refused(ValueError, "same length", ort.InferenceSession, path("linear"), None, ["CPUExecutionProvider"], [],
                     enable_fallback=False)
        made, notes = self.noted(lambda: ort.InferenceSession(path("linear"), providers=[("SomeExecutionProvider", {}, 1)]))
        self.assertEqual((made.get_providers(), len(notes)), (["CPUExecutionProvider"], 1))
        self.assertIn("the providers are ignored: 'providers' values must be", notes[0])

    def test_arguments_that_are_not_known(self):
        _, notes = self.noted(lambda: ort.InferenceSession(path("linear"), provider="CPUExecutionProvider"))
        self.assertEqual(notes, ["InferenceSession: the argument 'provider' is not known, and is ignored"])

    def test_severity(self):
        self.refused(RuntimeError, "0 (verbose) to 4 (fatal)", ort.set_default_logger_severity, 5)
        self.refused(TypeError, "0 (verbose) to 4 (fatal)", ort.set_default_logger_severity, "x")


class Models(Case):
    def test_models_that_cannot_be_run(self):
        for name, kind, says in (("text", NotImplemented, "string"), ("unknown_operator", NotImplemented, "Frobnicate"),
                                 ("wrong_graph", InvalidGraph, "nowhere"), ("missing", NoSuchFile, "doesn't exist")):
            self.refused(kind, says, ort.InferenceSession, path(name))
        good = pathlib.Path(path("linear")).read_bytes()
        for contents in (b"", b"\x00" * 40, good[:-30], good[: len(good) // 2]):
            self.refused((InvalidProtobuf, InvalidGraph), "", ort.InferenceSession, contents)
        self.refused(NotImplemented, "ONNX Runtime's own format", ort.InferenceSession, b"\x18\x00\x00\x00ORTM" + bytes(64))

    def test_weights_in_other_files(self):
        def given(contents, folder=None):
            of = ort.SessionOptions()
            if folder is not None:
                of.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
            return ort.InferenceSession(contents, of)

        def constant(*of, **words):
            """A model with such a weight in an attribute."""
            tensor = networks.field(1, "value") + networks.field(5, networks.outside("c", *of, **words)) + networks.field(20, 4)
            node = networks.field(2, "c") + networks.field(4, "Constant") + networks.field(5, tensor)
            return networks.model(networks.takes("x", "float32", "n"), networks.field(1, node), networks.node("Add", ["x", "c"], ["y"]),
                                  networks.gives("y", "float32", "n"))
        far, contents = room.name + "/far", pathlib.Path(path("outside")).read_bytes()
        wanted = given(contents, far).run(None, {"x": X})[0]
        np.testing.assert_allclose(wanted, ort.InferenceSession(path("linear")).run(None, {"x": X})[0], rtol=1e-5)
        os.chdir(far)  # without the entry, bytes have their weights in the working directory
        self.addCleanup(os.chdir, "/")
        session = given(contents)
        os.chdir("/")
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], wanted)
        inner = given(constant((3,), "sub/weights.bin", 56, 0), far)
        np.testing.assert_array_equal(inner.run(None, {"x": np.zeros(3, np.float32)})[0], networks.numbers(3))
        self.assertEqual((session._model_path, session._model_bytes), (None, contents))
        self.assertEqual(sorted(p.name for p in pathlib.Path(far).rglob("*")), ["sub", "weights.bin"])  # nothing is left there
        for model, folder, says in ((contents, room.name, "cannot be read"), (contents, room.name + "/none", "cannot be read"),
                                    (constant((4,), "sub/weights.bin", 60, 16), far, "ends before 16 bytes from byte 60"),
                                    (constant((2**62,), "sub/weights.bin", 0, 0), far, "ends before"),
                                    (constant((2,), "../fixed.onnx", 0, 8), far, "no path inside a folder"),
                                    (constant((2,), "sub/../../fixed.onnx", 0, 8), far, "no path inside a folder"),
                                    (constant((2,), "../far/sub/weights.bin", 0, 8), far, "no path inside a folder"),
                                    (constant((2,), "sub", 0, 8), far, "is no file"),
                                    (constant((2,), path("fixed"), 0, 8), far, "no path inside a folder"),
                                    (constant((2,), "sub/weights.bin", "x", 8), far, "no number"),
                                    (constant((2,), "out.bin", 0, 8), far, "leads out of")):
            if says == "leads out of":
                os.symlink(path("fixed"), far + "/out.bin")
                self.addCleanup(os.remove, far + "/out.bin")
            self.refused(Fail, says, given, model, folder)
        within = given(constant((3,), "./sub/../sub/weights.bin", 56, 12), far)
        np.testing.assert_array_equal(within.run(None, {"x": np.zeros(3, np.float32)})[0], networks.numbers(3))
        self.refused(NoSuchFile, "doesn't exist", given, path("missing"), far)
        self.refused(InvalidProtobuf, "", given, b"location" * 9, far)

    def large(self, folder, count, pieces=1):
        """A model that adds weights of so many floats, which lie in a file of the folder."""
        os.makedirs(folder, exist_ok=True)
        with open(folder + "/large.bin", "wb") as file:
            file.truncate(4 * count)
        weights = [networks.field(5, networks.outside(f"w{k}", (count,), "large.bin", 0, 4 * count)) for k in range(pieces)]
        adds = [networks.node("Add", [f"a{k}" if k else "x", f"w{k}"], [f"a{k + 1}" if k + 1 < pieces else "y"]) for k in range(pieces)]
        return networks.model(networks.takes("x", "float32", "n"), *weights, *adds, networks.gives("y", "float32", "n"))

    def test_memory_for_weights_in_other_files(self):
        folder = room.name + "/elsewhere"
        of = ort.SessionOptions()
        of.add_session_config_entry(_external.ENTRY, folder)
        model = self.large(folder, 2**20)
        gc.collect()
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        session = ort.InferenceSession(model, of)
        now, most = tracemalloc.get_traced_memory()
        self.assertGreater(most, 2**22)
        self.assertLess(most, 2**22 + 2**20)  # the weights are there once
        self.assertLess(now, 2**20)  # and are not kept
        network = session.collage_session.network.with_shapes({"x": (2**20,)})  # which reads them again
        self.assertEqual(network.outputs[0].shape, (2**20,))
        # Too much is refused before it is read.
        with mock.patch.object(_external, "_joined", side_effect=AssertionError):
            self.refused(Fail, "more than 2 GiB", ort.InferenceSession, self.large(folder, 2**28, 2), of)
        os.remove(folder + "/large.bin")

    def test_weights_beside_the_model_whose_folder_is_named(self):
        beside = pathlib.Path(room.name, "beside")
        beside.mkdir()
        (beside / "model.onnx").write_bytes(self.large(str(beside), 3))
        os.chdir(room.name)
        self.addCleanup(os.chdir, "/")
        for folder in str(beside), "beside", "far/../beside":
            of = ort.SessionOptions()
            of.add_session_config_entry(_external.ENTRY, folder)
            session = ort.InferenceSession("beside/model.onnx", of)
            self.assertEqual(session.collage_session.network.name, str(beside.resolve() / "model.onnx"))  # not bytes in memory
            np.testing.assert_array_equal(session.run(None, {"x": np.ones(3, np.float32)})[0], np.ones(3))
        os.remove(beside / "large.bin")
        self.refused(InvalidGraph, "does not exist", ort.InferenceSession, "beside/model.onnx", of)

    def test_weights_in_files_in_memory(self):
        weights, model = pathlib.Path(room.name, "far/sub/weights.bin").read_bytes(), pathlib.Path(path("outside")).read_bytes()
        wanted = ort.InferenceSession(path("linear")).run(None, {"x": X})[0]
        with open(room.name + "/far/sub/weights.bin", "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for given in model, path("outside"):
            for buffer in weights, bytearray(weights), np.frombuffer(weights, np.float32), mapped:
                of = ort.SessionOptions()
                of.add_external_initializers_from_files_in_memory(["sub/weights.bin"], [buffer], [len(weights)])
                session = ort.InferenceSession(given, copy.copy(of))
                np.testing.assert_allclose(session.run(None, {"x": X})[0], wanted, rtol=1e-5)
        mapped.close()  # nothing holds its memory
        self.refused(Fail, "cannot be read in memory", ort.InferenceSession, model, of)
        of.add_external_initializers_from_files_in_memory(["sub/weights.bin"], [weights], [len(weights) - 8])
        self.refused(Fail, "ends before", ort.InferenceSession, model, of)
        for given, says in ((([], [b""], [0]), "0 names of files, 1 buffers and 1 lengths"), ((["a"], [b"12"], [3]), "2 bytes in memory")):
            self.refused(InvalidArgument, says, of.add_external_initializers_from_files_in_memory, *given)

    def test_protobuf_messages(self):
        class Message:
            def SerializeToString(self):
                return b""
        self.refused(TypeError, "SerializeToString()", ort.InferenceSession, Message())

    def test_inputs_with_a_value(self):
        session = ort.InferenceSession(path("overridable"))
        self.assertEqual(([i.name for i in session.get_inputs()], session.get_overridable_initializers()), (["x"], []))
        two = np.ones(2, np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": two})[0], [2, 3])
        self.refused(InvalidArgument, "w has a value in the model", session.run, None, {"x": two, "w": two})

    def test_options_that_are_refused(self):
        of = ort.SessionOptions()
        self.refused(NotImplemented, "custom operators", of.register_custom_ops_library, "custom.so")
        self.refused(NotImplemented, "besides the model", of.add_initializer, "w", None)
        of.optimized_model_filepath = "optimised.onnx"
        self.refused(NotImplemented, "optimised.onnx cannot be written", ort.InferenceSession, path("linear"), of)
        strict = ort.SessionOptions()
        strict.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        self.refused(NotImplemented, "for the processor only", ort.InferenceSession, path("linear"), strict)


class Inputs(Case):
    def test_where_onnx_runtime_is_silent(self):
        ids, linear = ort.InferenceSession(path("ids")), ort.InferenceSession(path("linear"))
        self.refused(InvalidArgument, "expected: (tensor(int64))", ids.run, None, {"ids": [1.5, 2.0]})
        self.refused(InvalidArgument, "expected: (tensor(int64))", ids.run, None, {"ids": ["a"]})
        self.refused(InvalidArgument, "tensor(int64) cannot hold", ids.run, None, {"ids": [2**63]})
        self.refused(ValueError, "[-2, 3]", ort.OrtValue.ortvalue_from_shape_and_type, [-2, 3], np.float32)
        self.refused(ValueError, "[-2, -3]", ids.io_binding().bind_input, "ids", "cpu", 0, np.int64, [-2, -3], 64)
        self.refused(InvalidArgument, "masked", linear.run, None, {"x": np.ma.array(X, mask=X > 0)})
        np.testing.assert_allclose(linear.run(None, {"x": X.astype(">f4")})[0], linear.run(None, {"x": X})[0])
        value = ort.OrtValue.ortvalue_from_shape_and_type([2, 4], np.float32)
        self.refused(RuntimeError, "tensor(double)", value.update_inplace, X.astype(np.float64)[:1])
        self.refused(RuntimeError, "[4, 2]", value.update_inplace, X.T)

    def test_more_than_arrays(self):
        scaled = ort.InferenceSession(path("scaled"))
        three = np.arange(3, dtype=np.float32)
        for factor in (2.0, 2, np.float32(2), np.array(2, np.float32)):
            np.testing.assert_array_equal(scaled.run(None, {"x": three, "factor": factor})[0], [0, 2, 4])
        np.testing.assert_array_equal(scaled.run(None, {"x": memoryview(three), "factor": 1.0})[0], three)
        for wrong in (None, "text", {"a": 1}, object()):
            self.refused(RuntimeError, "give a numpy array", scaled.run, None, {"x": wrong, "factor": 1.0})
        for wrong in (np.ones(2, np.float32), np.ones((3, 1), np.float32), [], [1.0, 2.0]):
            self.refused(InvalidArgument, "Expected: 0; the input is one number", scaled.run, None, {"x": three, "factor": wrong})
            binding = scaled.io_binding()
            binding.bind_cpu_input("x", three)
            binding.bind_cpu_input("factor", np.array(wrong, np.float32))
            binding.bind_output("y")
            self.refused(RuntimeError, "the input is one number", scaled.run_with_iobinding, binding)
        np.testing.assert_array_equal(scaled.run(None, {"x": three, "factor": np.full((1, 1), 2, np.float32)})[0], [0, 2, 4])
        self.refused(InvalidArgument, "tensor(double)", scaled.run, None, {"x": three, "factor": np.ones(1)})
        self.refused(InvalidArgument, "ragged", scaled.run, None, {"x": [1, [2, 3]], "factor": 1.0})
        self.refused(InvalidArgument, "text is not supported", scaled.run, None, {"x": np.array(["a", "b", "c"]), "factor": 1.0})
        self.refused(TypeError, '["y"]', scaled.run, "y", {"x": three, "factor": 1.0})

    def test_arguments_of_runs(self):
        session = ort.InferenceSession(path("linear"))
        self.refused(TypeError, "run_options is of type dict", session.run, None, {"x": X}, {"x": 1})
        self.refused(TypeError, "output_names is of type int", session.run, 5, {"x": X})
        self.refused(TypeError, "give what io_binding() returns", session.run_with_iobinding, None)
        self.refused(TypeError, "the shape is ['a']", ort.OrtValue.ortvalue_from_shape_and_type, ["a"])
        for run in session.run, session.run_with_ort_values:
            self.refused(TypeError, "the input feed is of type NoneType", run, None, None)
        for first, second in session.run(["y", "y"], {"x": X}), session.run_with_ort_values(("y", "y"), {"x": X}):
            first, second = np.asarray(first), np.asarray(second)
            np.testing.assert_array_equal(first, second)
            self.assertFalse(np.shares_memory(first, second))

    def test_copies_of_run_options(self):
        session, options = ort.InferenceSession(path("linear")), ort.RunOptions()
        for use in copy.copy, copy.deepcopy:
            other = use(options)
            other.terminate = True
            self.assertFalse(options.terminate)
            session.run(None, {"x": X}, options)
            self.refused(Fail, "terminate flag", session.run, None, {"x": X}, other)

    def test_an_asynchronous_run_that_fails(self):
        done, seen = threading.Event(), []
        session = ort.InferenceSession(path("linear"))
        session.run_async(None, {"x": X[:, :3]}, lambda *of: (seen.append(of), done.set()), 7)
        self.assertTrue(done.wait(60))
        results, given, error = seen[0]
        self.assertEqual((results, given), ([], 7))
        self.assertIn("Got: 3 Expected: 4", error)

    def test_an_asynchronous_run_at_a_shape_that_the_program_has_ruled_out(self):
        so, done, seen = options(), threading.Event(), []
        so.add_free_dimension_override_by_name("height", 8)
        session = ort.InferenceSession(path("any_image"), so)
        images = {"images": np.ones((1, 3, 16, 8), np.float32)}
        self.refused(InvalidArgument, "", session.run, None, images)
        session.run_async(None, images, lambda *of: (seen.append(of), done.set()), 7)
        self.assertTrue(done.wait(60))
        self.assertEqual(seen[0][:2], ([], 7))
        self.assertNotEqual(seen[0][2], "")

    def test_asynchronous_runs_of_a_session_that_is_closed(self):
        done, seen = threading.Semaphore(0), []
        session = ort.InferenceSession(path("linear"))
        for _ in range(500):
            session.run_async(None, {"x": X}, lambda *of: (seen.append(of), done.release()), None)
        session.collage_session.close()
        for _ in range(500):
            self.assertTrue(done.acquire(timeout=60))

    def test_names_without_values(self):
        session = ort.InferenceSession(path("linear"))
        self.refused(InvalidArgument, "feed names has 2 elements, but feed has 1", session.run_with_ortvaluevector, None, ["x", "z"],
                     [ort.OrtValue.ortvalue_from_numpy(X)], ["y"], [], [])

    def test_bound_memory_that_is_not_dense_or_overlaps(self):
        session = ort.InferenceSession(path("fixed"))
        wanted = session.run(None, {"x": X * 2})[0]
        wide, into = np.zeros((2, 8), np.float32), np.zeros(8, np.float32)
        binding = session.io_binding()
        binding.bind_cpu_input("x", wide[:, ::2])
        binding.bind_output("y", "cpu", 0, np.float32, (2, 3), into.ctypes.data)
        wide[:] = 2
        session.run_with_iobinding(binding)
        np.testing.assert_allclose(into[:6].reshape(2, 3), wanted)
        into[:] = 2  # the same memory for the input and the output
        binding.bind_input("x", "cpu", 0, np.float32, (2, 4), into.ctypes.data)
        session.run_with_iobinding(binding)
        np.testing.assert_allclose(into[:6].reshape(2, 3), wanted)
        binding.clear_binding_inputs()
        self.refused(RuntimeError, "not bound: x", session.run_with_iobinding, binding)

    def test_dlpack(self):
        class Tensor:  # as a tensor of another library
            def __dlpack__(self, **_):
                return X.__dlpack__()

            def __dlpack_device__(self):
                return 1, 0
        linear = ort.InferenceSession(path("linear"))
        wanted = linear.run(None, {"x": X})[0]
        for value in (Tensor(), ort.OrtValue.from_dlpack(Tensor()), ort.OrtValue.from_dlpack(X.__dlpack__())):
            np.testing.assert_array_equal(linear.run(None, {"x": value})[0], wanted)
        self.assertEqual(ort.OrtValue.from_dlpack(Tensor()).data_ptr(), X.ctypes.data)
        self.assertIn("dltensor", repr(ort.OrtValue.ortvalue_from_numpy(X).to_dlpack()))

    def test_rows_of_values(self):
        linear = ort.InferenceSession(path("linear"))
        vector, into = ort.capi._pybind_state.OrtValueVector(), ort.OrtValue.ortvalue_from_shape_and_type([2, 3])
        vector.push_back(into)
        feeds = [ort.OrtValue.ortvalue_from_numpy(X)]
        linear.run_with_ortvaluevector(None, ["x"], feeds, ["y"], vector, [])
        np.testing.assert_array_equal(into.numpy(), linear.run(None, {"x": X})[0])
        self.assertEqual((len(vector), vector.element_type_at(0), vector.to_dlpacks(repr)[0][:16]), (1, 1, '<capsule object '))
        vector[0] = ort.OrtValue.ortvalue_from_shape_and_type([1, 3])
        self.refused(RuntimeError, "[1, 3]", linear.run_with_ortvaluevector, None, ["x"], feeds, ["y"], vector, [])
        self.refused(RuntimeError, "1 values for 2 outputs", linear.run_with_ortvaluevector, None, ["x"], feeds, ["y", "y"], vector, [])

    def test_values_are_written_all_or_none(self):
        session = ort.InferenceSession(path("two_outputs"))
        feeds, names = [ort.OrtValue.ortvalue_from_numpy(X)], ["label", "probabilities"]
        fixed = np.zeros((2, 3), np.float32)
        fixed.flags.writeable = False
        for second, says in ((np.zeros((3, 3), np.float32), "value 1 is tensor(float) of shape [3, 3]"),
                             (np.zeros((2, 3)), "value 1 is tensor(double)"), (fixed, "value 1 is in memory that cannot be written")):
            first = np.full(2, -7)
            fetches = [ort.OrtValue.ortvalue_from_numpy(array) for array in (first, second)]
            self.refused(RuntimeError, says, session.run_with_ortvaluevector, None, ["x"], feeds, names, fetches, [])
            np.testing.assert_array_equal(first, [-7, -7])
        self.refused(TypeError, "value 1 is of type ndarray", session.run_with_ortvaluevector, None, ["x"], feeds, names,
                     [ort.OrtValue.ortvalue_from_numpy(first), fixed], [])
        self.refused(RuntimeError, "cannot be written", ort.OrtValue.ortvalue_from_numpy(fixed).update_inplace, np.ones((2, 3), np.float32))
        binding = session.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_ortvalue_output("label", ort.OrtValue.ortvalue_from_numpy(first))
        binding.bind_ortvalue_output("probabilities", ort.OrtValue.ortvalue_from_numpy(np.zeros((3, 3), np.float32)))
        self.refused(RuntimeError, "'probabilities' has shape [3, 3]", session.run_with_iobinding, binding)
        np.testing.assert_array_equal(first, [-7, -7])

    def test_inner_names(self):
        session, done, seen = ort.InferenceSession(path("linear")), threading.Event(), []
        inner, wanted = session._sess, session.run(None, {"x": X})[0]
        inner.run_async(["y"], {"x": X}, lambda *of: (seen.append(of), done.set()), 7, None)
        self.assertTrue(done.wait(60))
        np.testing.assert_array_equal(seen[0][0][0], wanted)
        self.assertEqual(seen[0][1:], (7, ""))
        Vector = ort.capi._pybind_state.OrtValueVector
        tensors, feeds, fetches = [X.copy()], Vector(), Vector()
        feeds.push_back_batch(tensors, [tensors[0].ctypes.data], [np.float32], [X.shape], [ort.OrtDevice("cpu", 0, 0)])
        gone = weakref.ref(tensors[0])
        del tensors[:]
        inner.run_with_ortvaluevector(None, ["x"], feeds, ["y"], fetches, [])
        np.testing.assert_array_equal(fetches[0].numpy(), wanted)
        self.assertIsNotNone(gone())  # the vector keeps it
        del feeds[:]
        self.assertIsNone(gone())
        self.refused(ValueError, "differ in number", feeds.push_back_batch, [X], [], [np.float32], [X.shape], [])
        feeds.push_back(X.__dlpack__())
        feeds.push_back(np.array([1, 0], np.uint8).__dlpack__(), True)
        self.assertEqual((feeds[0].data_ptr(), feeds.bool_tensor_indices()), (X.ctypes.data, [1]))
        self.assertEqual((session._fallback_providers, session._overridable_initializers, session._profiling_start_time_ns),
                         (["CPUExecutionProvider"], [], 0))
        self.assertEqual((inner.get_provider_options(), inner.get_tuning_results()), ({"CPUExecutionProvider": {}}, []))

    def test_devices(self):
        OrtDevice = ort.OrtDevice
        for device in (OrtDevice("cpu", 0, 3), OrtDevice(0, 0, 3), OrtDevice(OrtDevice.cpu(), 0, 0, 3), OrtDevice.make("cpu", 3)):
            self.assertEqual((device.device_type(), device.device_id(), OrtDevice(device).device_id()), (0, 3, 3))
        for other in (OrtDevice.cuda(), "cuda", 9):
            self.refused(RuntimeError, "use 'cpu'", OrtDevice, other, 0, 0)
        self.refused(TypeError, "at most these four", OrtDevice, 0, 0, 0, 0, 0)
        self.refused(RuntimeError, "Unsupported device type: tpu", ort.onnxruntime_inference_collection.get_ort_device_type, "tpu")

    def test_types_that_numpy_lacks(self):
        bits = np.array([0x3F80, 0x4000], np.uint16)
        value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)
        self.assertEqual((value.data_type(), value.element_type(), value.tensor_size_in_bytes()), ("tensor(bfloat16)", 16, 4))
        self.refused(RuntimeError, "2 bytes", ort.OrtValue.ortvalue_from_numpy_with_onnx_type, bits, 1)
        session, words = ort.InferenceSession(path("ids")), "Actual: (tensor(bfloat16)) , expected: (tensor(int64))"
        self.refused(InvalidArgument, words, session.run, None, {"ids": value})
        self.refused(InvalidArgument, words, session.io_binding().bind_input, "ids", "cpu", 0, 16, [2], bits.ctypes.data)
        vector = ort.capi._pybind_state.OrtValueVector([ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(2, np.int64), 13)])
        self.refused(RuntimeError, "is tensor(uint64) of shape [2], and the array tensor(int64)", session.run_with_ortvaluevector, None,
                     ["ids"], [ort.OrtValue.ortvalue_from_numpy(np.ones(2, np.int64))], ["twice"], vector, [])
        self.refused(RuntimeError, "use 'cpu'", ort.OrtValue.ortvalue_from_numpy, X, "cuda", 0)


class Installed(Case):
    def test_other_packages_find_it(self):
        script = ("import collage.onnxruntime as ort; ort.install(); import onnxruntime\n"
                  "from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument\n"
                  "assert onnxruntime is ort and InvalidArgument is ort.capi.onnxruntime_pybind11_state.InvalidArgument\n"
                  f"print(onnxruntime.InferenceSession({path('linear')!r}).get_inputs()[0].name)\n")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
        self.assertEqual((done.returncode, done.stdout), (0, "x\n"), done.stderr)
        program = pathlib.Path(room.name, "program.py")
        program.write_text("import sys, onnxruntime as ort\nprint(ort.get_build_info()[:7], sys.argv[1:], __name__)\n")
        for words in ([str(program), "-v"], ["-m", "program", "-v"]):
            done = subprocess.run([sys.executable, "-m", "collage.onnxruntime", *words], capture_output=True, text=True, timeout=100,
                                  cwd=room.name)
            self.assertEqual((done.returncode, done.stdout), (0, "collage ['-v'] __main__\n"), done.stderr)
        parent = pathlib.Path(room.name, "parent.py")
        parent.write_text("import multiprocessing, subprocess, sys\nimport onnxruntime\nfrom onnxruntime.capi import _pybind_state\n"
                          "def about(_):\n    return onnxruntime.get_build_info()[:7]\n"
                          "if __name__ == '__main__':\n"
                          "    for method in 'spawn', 'forkserver':\n"
                          "        with multiprocessing.get_context(method).Pool(1) as pool:\n"
                          "            print(pool.map(about, [0]), flush=True)\n"
                          "    subprocess.run([sys.executable, 'program.py'], check=True)\n")
        for words in ([str(parent)], ["-m", "parent"]):
            done = subprocess.run([sys.executable, "-m", "collage.onnxruntime", *words], capture_output=True, text=True, timeout=100,
                                  cwd=room.name)
            self.assertEqual((done.returncode, done.stdout), (0, "['collage']\n['collage']\ncollage [] __main__\n"), done.stderr)
        done = subprocess.run([sys.executable, "-m", "collage.onnxruntime", "--help"], capture_output=True, text=True, timeout=100)
        self.assertEqual((done.returncode, done.stdout[:6], done.stderr), (0, "usage:", ""))
        for words, says in (([], "usage"), (["-m"], "usage"), (["none.py"], "none.py does not exist"), (["-m", "no.such"], "no module no.such"),
                            ([room.name], "is a folder without")):
            done = subprocess.run([sys.executable, "-m", "collage.onnxruntime", *words], capture_output=True, text=True, timeout=100)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1))
            self.assertIn(says, done.stderr)
        late = "import sys, types; sys.modules['onnxruntime'] = types.ModuleType('onnxruntime')\n"
        done = subprocess.run([sys.executable, "-c", late + script], capture_output=True, text=True, timeout=100)
        self.assertIn("RuntimeError: onnxruntime is imported already", done.stderr)


networks.write(room.name)
unittest.main()
