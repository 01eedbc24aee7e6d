#!/usr/bin/env python3
"""Networks from files of ONNX: commands on them, and everything that can be wrong with them or with their options."""
import json
import os
import pathlib
import struct
import unittest

import trace_format
from json_schema import complaints
from program import BERT, Case, collage, complete_backend, floats, npy

WORKLOADS = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "workloads"
SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "docs" / "plan.schema.json").read_text())
MODEL = str(WORKLOADS / "bert-paper.onnx")


def field(number, payload):
    """One field of a protobuf message: text, bytes, a nested message, or an integer."""
    def varint(n):
        n &= (1 << 64) - 1
        out = b""
        while n > 127:
            out += bytes([n & 127 | 128])
            n >>= 7
        return out + bytes([n])
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    payload = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def node(operator, inputs, outputs, name="", **integers):
    attributes = (field(5, field(1, key) + field(3, number) + field(20, 2)) for key, number in integers.items())
    return field(1, b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(3, name) +
                 field(4, operator) + b"".join(attributes))


def port(number, name, extents, kind=1):
    dims = b"".join(field(1, field(2, e) if isinstance(e, str) else field(1, e)) for e in extents)
    return field(number, field(1, name) + field(2, field(1, field(1, kind) + field(2, dims))))


def model(*parts, opset=17):
    return field(1, 8) + field(8, field(2, opset)) + field(7, b"".join(parts) + field(2, "g"))


RELU = (node("Relu", ["x"], ["y"], "rectify"), port(11, "x", ["batch", 3]), port(12, "y", ["batch", 3]))


def small_network(folder):
    """A file of ONNX with a network that is placed in a moment; one of the zoo where this build reads no such files."""
    path = folder / "small.onnx"
    path.write_bytes(model(
        node("MatMul", ["input", "other"], ["product"]), node("Relu", ["product"], ["positive"]),
        node("Softmax", ["positive"], ["output"]),
        port(11, "input", [1, 8, 16]), port(11, "other", [16, 16]), port(12, "output", [1, 8, 16])))
    return BERT if "built without ONNX" in collage("inspect", str(path)).stderr else str(path)


class Models(Case):
    def write(self, name, contents):
        (self.folder / name).write_bytes(contents)
        return self.path(name)

    def test_runs_like_a_network_of_the_zoo(self):
        self.assertEqual(self.json_of("inspect", MODEL)["flops"], self.json_of("inspect", BERT)["flops"])
        done = self.json_of("run", MODEL, "--place", "priority", "--output", self.path("out"))
        self.assertEqual(done["outputs"][0]["shape"], [1, 64, 256])
        self.assertTrue(self.json_of("verify", MODEL, "--place", "priority")["passed"])
        plan = self.path("plan.json")
        self.succeeds("tune", MODEL, "--plan", plan, "--place", "priority", "--quiet")
        self.assertEqual(json.loads(pathlib.Path(plan).read_text())["origin"], "priority")
        self.succeeds("run", MODEL, "--plan", plan, "--quiet")

    def test_names_that_hold_an_equals_sign(self):
        path = self.write("equals.onnx", model(node("Sub", ["in", "in=1"], ["y"]), port(11, "in", [2]),
                                               port(11, "in=1", [2]), port(12, "y", [2])))
        (self.folder / "a.npy").write_bytes(npy((2,), values=[5, 7]))
        (self.folder / "b.npy").write_bytes(npy((2,), values=[1, 2]))
        self.succeeds("run", path, "--place", "priority", "--quiet", "--output", self.path("out"),
                      "--input", f"in={self.path('a.npy')}", "--input", f"in=1={self.path('b.npy')}")
        self.assertEqual(floats(self.path("out/y.npy")), (4, 5))
        self.refused("run", path, "--place", "priority", "--input", "no=1=x.npy", saying="--input no: the network has no")

    def test_control_characters_in_names_are_shown(self):
        path = self.write("control.onnx", model(node("Relu", ["x"], ["y\x1b[31m"], "n\x9b\x07"), port(11, "x", [2]),
                                                port(12, "y\x1b[31m", [2])))
        for name, *words in (("y\\u001b[31m", "inspect", path), ("y\\u001b[31m", "inspect", path, "--json"),
                             ("y\\u001b[31m", "run", path, "--place", "priority"),
                             ("n\\u009b\\u0007", "explain", path, "--place", "priority")):
            page = self.succeeds(*words).stdout
            self.assertIn(name, page)
            self.assertNotRegex(page, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        told = collage("run", path, "--place", "priority", "--input", "y\x1b[31m=random").stderr
        self.assertIn("--input y\\u001b[31m: the network has no such input", told)
        self.assertNotIn("\x1b", told)

    def test_times_below_a_microsecond(self):
        path = self.write("tiny.onnx", model(RELU[0], port(11, "x", [1, 3]), port(12, "y", [1, 3])))
        # One thread: waking a second one may take longer than the whole network.
        page = self.succeeds("run", path, "--place", "priority", "--threads", "1").stdout
        self.assertRegex(page, r"Median \d+\.\d{3} µs over")
        self.assertNotIn("0.000 ms", page)

    def test_kernels_that_there_is_no_time_to_compare_are_told(self):
        # The reference needs more than the two seconds for all steps of it, and no step can be computed without the others.
        path = self.write("steps.onnx", model(
            node("LSTM", ["x", "w", "r"], ["y"], hidden_size=512),
            port(11, "x", [2000, 2, 512]), port(11, "w", [1, 2048, 512]), port(11, "r", [1, 2048, 512]),
            port(12, "y", [2000, 1, 2, 512])))
        words = (path, "--place", "priority", "--store", "none", "--threads", "1")
        self.assertRegex(self.succeeds("explain", *words).stderr,
                         r"collage: note: 1 of \d+ kernels? was not compared with the reference: there was no time \(2 s\) or "
                         "no memory for it; collage verify compares the whole plan\n")
        self.assertEqual(self.succeeds("explain", *words, "--quiet").stderr, "")
        self.assertEqual(self.json_of("tune", *words, "--plan", self.path("steps.json"))["unchecked"], 1)
        path = self.write("relu.onnx", model(RELU[0], port(11, "x", [2, 3]), port(12, "y", [2, 3])))
        words = (path, *words[1:])
        self.assertNotIn("compared", self.succeeds("explain", *words).stderr)
        told = self.json_of("tune", *words, "--plan", self.path("relu.json"))
        self.assertEqual((told["checked"], told["unchecked"]), (1, 0))

    def test_shapes_and_bound_inputs(self):
        relu = self.write("relu.onnx", model(*RELU))
        self.refused("tune", relu, "--plan", self.path("plan.json"),
                     saying="has inputs whose extents are not known: x is float[batchx3]; give them, each N "
                            "replaced by a number: --shape x=Nx3")
        (self.folder / "x.npy").write_bytes(npy((2, 3), values=[1, -1, 2, -2, 0, 5]))
        words = ("run", relu, "--place", "priority", "--quiet", "--output", self.path("out"))
        self.succeeds(*words, "--shape", "x=2x3", "--input", f"x={self.path('x.npy')}")
        self.assertEqual(floats(self.path("out/y.npy")), (1, 0, 2, 0, 0, 5))
        self.succeeds(*words, "--bind", f"x={self.path('x.npy')}")
        self.assertEqual(floats(self.path("out/y.npy")), (1, 0, 2, 0, 0, 5))
        for text, saying in (("x=2x4", "is given as 2x4, but the model declares float[batchx3]"),
                             ("x=2", "is given as 2, but"), ("z=2x3", "the model has no such input; it has x (float"),
                             ("x=2xx3", "it is not a shape"), ("x=2x-3", "it is not a shape"), ("x=", "is given as scalar"),
                             ("x", "it is not of the form NAME=1x3x224x224"), ("=2x3", "it is not of the form"),
                             ("x=99999999999999999999x3", "it is not a shape"), ("x=9223372036854775807x3", "too large"),
                             ("x=1x1x1x1x1x1x1x1x1", "more than 8 extents")):
            self.refused("inspect", relu, "--shape", text, saying=saying)
        self.refused("inspect", relu, "--shape", "x=2x3", "--shape", "x=2x3", saying="it is given twice")
        (self.folder / "i.npy").write_bytes(npy((2, 3), "<i4"))
        self.refused("inspect", relu, "--bind", f"x={self.path('i.npy')}", saying="is bound to int32, but the model declares")
        self.refused("inspect", relu, "--bind", f"x={self.path('none.npy')}", saying="no such file")
        for option, remedy in (("--shape", "have fixed shapes"), ("--bind", "collage run takes contents as --input NAME=FILE.npy")):
            done = collage("inspect", BERT, option, "input=1x64x256")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{option} input=1x64x256: this option is only for networks from files; leave it out", done.stderr)
            self.assertIn(remedy, done.stderr)

    def test_open_shapes_are_taken_from_files_or_chosen(self):
        relu = self.write("relu.onnx", model(*RELU))
        (self.folder / "x.npy").write_bytes(npy((4, 3), values=[1, -1, 2] * 4))
        words = ("--place", "priority", "--threads", "1")
        done = self.succeeds("run", relu, *words, "--input", f"x={self.path('x.npy')}", "--output", self.path("out"))
        self.assertEqual(done.stderr, "")
        self.assertEqual(floats(self.path("out/y.npy")), (1, 0, 2) * 4)
        chosen = "collage: note: input x is open; it is taken as 1x3, and --shape or a file for --input gives it another shape\n"
        for command in ("run", "bench", "verify", "explain"):
            seconds = ("--seconds", "1") if command == "bench" else ()
            told = self.succeeds(command, relu, *words, *seconds).stderr  # bench also says how long it takes
            self.assertEqual(told[:len(chosen)], chosen)
        self.assertEqual(self.succeeds("inspect", relu).stderr, chosen)

    def test_parts_of_shapes_and_symbols(self):
        path = self.write("two.onnx", model(
            node("Add", ["a", "b"], ["y"], "sum"), port(11, "a", ["batch", "T", 3]), port(11, "b", ["batch", "T", 1]),
            port(12, "y", ["batch", "T", 3])))
        words = ("run", path, "--place", "priority", "--threads", "1", "--quiet")

        def shape(*settings):
            given = [word for s in settings for word in ("--shape", s)]
            return self.json_of(*words, *given)["outputs"][0]["shape"]
        self.assertEqual(shape("T=7", "batch=2"), [2, 7, 3])
        self.assertEqual(shape("T=7"), [1, 7, 3])
        self.assertEqual(shape("a=?x5x3"), [1, 5, 3])
        self.assertEqual(shape("a=4x?x3", "T=6"), [4, 6, 3])
        self.assertEqual(shape("T=6", "a=4x?x3", "b=4x6x1"), [4, 6, 3])
        self.refused(*words, "--shape", "T=6", "--shape", "a=4x2x3", "--shape", "b=4x2x1",
                     saying="--shape T=6: every input with this extent has a shape of its own; leave one of them out")
        (self.folder / "a.npy").write_bytes(npy((2, 5, 3)))
        self.refused(*words, "--shape", "batch=1", "--input", f"a={self.path('a.npy')}",
                     saying="--input a: its file has the shape 2x5x3, and the network or --shape wants 1x?x3")
        self.assertEqual(shape("a=2x?x?", "b=2x9x?"), [2, 9, 3])
        for text, saying in (("L=3", "--shape L=3: the model has no such input, and no open extent of this name; its inputs are a, b, "
                                     "and its open extents batch, T"),
                             ("T=2x3", "no such input"), ("T=1..9", "it names 9 extents; give one; only collage tune takes several"),
                             ("a=1x2,4x3", "it names 2 extents"), ("T=9..1", "the range 9..1 has no multiple of 1"),
                             ("T=1..9/0", "a step below 1"), ("T=", "no such input"), ("T=1,,2", "it is not a shape"),
                             ("a=1x?x4", "is given as 1x128x4, but the model declares float[batchxTx3]")):
            self.refused(*words, "--shape", text, saying=saying)
        self.refused(*words, "--shape", "a=1x2x3", "--shape", "b=1x4x1", saying="The extent T is 2 in input a and 4 in input b")
        page = self.succeeds("inspect", path, "--quiet").stdout
        self.assertIn("open input a: float32[batch x T x 3]\n", page)
        self.assertIn("open output y: float32[batch x T x 3]\n", page)
        self.assertEqual(self.json_of("inspect", path, "--quiet")["open"][1], {"name": "b", "is": "input", "shape": ["batch", "T", 1]})

    def test_plans_bring_their_shapes(self):
        path = self.write("open.onnx", model(
            node("Add", ["a", "b"], ["y"], "sum"), port(11, "a", ["batch", "T", 3]), port(11, "b", ["batch", "T", 1]),
            port(12, "y", ["batch", "T", 3])))
        plan = self.path("open.json")
        shape = ("--shape", "batch=2", "--shape", "T=5")
        self.succeeds("tune", path, *shape, "--place", "priority", "--threads", "1", "--plan", plan, "--quiet")
        for command in (["run"], ["verify"], ["explain"], ["bench", "--seconds", "1"], ["report", "-o", self.path("open.html")]):
            done = self.succeeds(*command, path, "--plan", plan)
            self.assertNotIn("is open", done.stderr)
        self.assertEqual(self.json_of("run", path, "--plan", plan)["outputs"][0]["shape"], [2, 5, 3])
        for agrees in (shape, ("--shape", "T=5"), ("--shape", "a=?x5x3")):
            self.succeeds("explain", path, *agrees, "--plan", plan)
        for wrong, saying in (("T=6", "input a is 2x5x3 in the plan, and --shape wants ?x6x3"),
                              ("b=4x5x1", "input b is 2x5x1 in the plan, and --shape wants 4x5x1")):
            self.refused("explain", path, "--shape", wrong, "--plan", plan,
                         saying=f"{plan}: is a plan for other shapes: {saying}; leave out --shape, or make a plan for that shape")
        (self.folder / "a.npy").write_bytes(npy((1, 5, 3)))
        self.refused("run", path, "--plan", plan, "--input", f"a={self.path('a.npy')}", saying="2x5x3")
        relu = self.write("relu.onnx", model(*RELU))
        self.refused("explain", relu, "--plan", plan, saying=f"{plan}: is a plan without input x, which the network has; give the network")
        self.refused("explain", path, "--plan", relu, saying="is not JSON")

    def test_tuning_several_shapes(self):
        path = self.write("relu.onnx", model(*RELU))
        store = ("--store", self.path("several.db"))
        words = ("tune", path, "--threads", "1", "--backends", "eigen,portable", *store)
        told = self.json_of(*words, "--shape", "batch=1..4096", "--budget", "20")
        self.assertEqual(told["open"], [{"name": "batch", "values": "1..4096"}])
        extents = [s["extents"]["batch"] for s in told["shapes"]]
        self.assertEqual(extents[:2], [4096, 1])
        self.assertEqual(len(extents), len(set(extents)))
        self.assertTrue(all(s["median_ms"] > 0 for s in told["shapes"]))
        page = self.succeeds(*words, "--shape", "x=2,5x3", "--budget", "20").stdout
        self.assertRegex(page, r"\n +2 +0\.0")
        self.assertRegex(page, r"\n +5 +0\.0")
        self.assertIn("Sessions and --place estimate use them.", page)
        # A tuned shape has its tuned plan.
        run = ("explain", path, "--threads", "1", "--backends", "eigen,portable", *store, "--place", "estimate", "--quiet")
        self.assertIn("end to end", self.succeeds(*run, "--shape", "x=5x3").stdout)
        # Others have estimates between them.
        plan = self.path("estimated.json")
        other = f"x={next(e for e in range(6, 4096) if e not in extents)}x3"
        self.succeeds(*words, "--shape", other, "--place", "estimate", "--plan", plan, "--quiet")
        estimated = json.loads(pathlib.Path(plan).read_text())
        self.assertEqual((estimated["origin"], complaints(estimated, SCHEMA)), ("estimates", []))
        self.assertTrue(all("polated" in g.get("estimate", "interpolated") for g in estimated["chosen"]["groups"]))
        self.assertTrue(any("estimate" in g for g in estimated["chosen"]["groups"]))
        self.assertIn("Estimated costs", self.succeeds("explain", path, "--shape", other, "--plan", plan).stdout)
        for more, saying in ((("--plan", self.path("p.json")), "--plan: a plan is for one shape, and --shape names several"),
                             (("--place", "estimate"), "--place: several shapes are tuned by measuring"),
                             (("--store", "none"), "--store: tuning for several shapes keeps its results there")):
            given = [w for w in words if w not in store] if "--store" in more else words
            self.refused(*given, *more, "--shape", "batch=1..4", saying=saying)
        self.refused("tune", BERT, *store, "--shape", "batch=1..4", saying="this option is only for networks from files")

    def test_buckets(self):
        # A sum over the length, which padding with zeros leaves as it is, and a maximum, which it does not.
        path = self.write("rows.onnx", model(
            node("Neg", ["x"], ["each"]), node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Exp", ["x"], ["powers"]),
            node("ReduceSum", ["powers"], ["other"], keepdims=0),
            port(11, "x", ["T"]), port(12, "each", ["T"]), port(12, "sum", []), port(12, "other", [])))
        words = ("verify", path, "--place", "priority", "--threads", "1", "--shape", "T=5")
        done = collage(*words, "--bucket", "T=4,8,16", "--json")
        self.assertEqual(done.returncode, 1)
        told = json.loads(done.stdout)
        self.assertEqual(told["bucket"], {"T": 8})
        self.assertEqual([(o["output"], o["passed"]) for o in told["outputs"]], [("each", True), ("sum", True), ("other", False)])
        self.assertIn("padding changes the results", done.stderr)
        self.assertIn("passed", self.succeeds(*words, "--bucket", "T=4,5").stdout)
        for more, saying in ((("--bucket", "T=4"), "the extent T: is 5, and the largest bucket is 4"),
                             (("--bucket", "T=1..9"), "--bucket T=1..9: it is no list of extents"),
                             (("--bucket", "L=8"), "bucket L: no input has an open extent of this name"),
                             (("--bucket", "T=8", "--pad", "x=a"), "--pad x=a: 'a' is no number"),
                             (("--bucket", "T=8", "--pad", "y=1"), "padding of y: the network has no such input"),
                             (("--bucket", "T=8", "--cut", "sum=T"), "--cut sum=T: it does not name a dimension"),
                             (("--bucket", "T=8", "--cut", "sum[0]=T/2"), "dimension 0 is cut from 4; name how it is cut"),
                             (("--bucket", "T=8", "--plan", "p.json"), "--plan: a plan is for one shape, and buckets have others"),
                             (("--pad", "x=1"), "--pad: it only affects a comparison of buckets")):
            self.refused(*words, *more, saying=saying)
        self.refused("verify", BERT, "--bucket", "T=8", saying="its extents are fixed")

    def test_shapes_that_depend_on_contents(self):
        # y = x reshaped to the contents of another input; and the places of what is not zero.
        path = self.write("late.onnx", model(
            node("Reshape", ["x", "target"], ["y"]), node("NonZero", ["x"], ["at"]),
            port(11, "x", ["n"]), port(11, "target", [2], 7), port(12, "y", ["a", "b"]), port(12, "at", [1, "m"], 7)))
        (self.folder / "x.npy").write_bytes(npy((6,), values=[1, 0, 2, 0, 0, 5]))
        (self.folder / "target.npy").write_bytes(npy((2,), "<i8", values=[3, -1]))
        words = ("run", path, "--place", "priority", "--threads", "1", "--input", f"x={self.path('x.npy')}")
        target = ("--input", f"target={self.path('target.npy')}")
        told = self.json_of(*words, *target, "--output", self.path("out"))
        self.assertEqual([o["shape"] for o in told["outputs"]], [[3, 2], [1, 3]])
        self.assertEqual(floats(self.path("out/y.npy")), (1, 0, 2, 0, 0, 5))
        self.refused(*words, *target, "--profile", saying="it shows the steps of one plan, and this network runs in stages")
        trace = self.path("late.json")
        self.succeeds(*words, *target, "--trace", trace)
        events = trace_format.read(trace)
        self.assertEqual({e["cat"] for e in events}, {"run", "engine", "stage", "late operator"})
        self.assertEqual({e["args"]["stage"] for e in events if e["cat"] == "stage"}, {1})
        self.assertIn("NonZero", {e["name"].split()[0] for e in events if e["cat"] == "late operator"})
        self.refused(*words, *target, "--input", "other=random",
                     saying="the network has no such input; the inputs are x (float32[6])")
        self.refused(*words, saying="its target shape copies an extent that its input does not have; its operands are "
                                    "float32[6]; inputs that decide shapes count as zeros without --input NAME=FILE.npy")
        done = collage("tune", path, "--shape", "x=6", "--plan", self.path("plan.json"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("its target shape must be known before it is run; bind the input that decides it", done.stderr)

    def test_hostile_names_in_a_trace(self):
        name = 'a"b\\c\n\x1b[31m</script>\u202e'
        path = self.write("hostile.onnx", model(
            node("Relu", ["x"], ["y"], name), port(11, "x", [2, 3]), port(12, "y", [2, 3])))
        trace = self.path("hostile.json")
        self.succeeds("run", path, "--place", "priority", "--threads", "1", "--trace", trace)
        self.assertIn(name, {e["name"] for e in trace_format.read(trace)})
        for byte in pathlib.Path(trace).read_bytes():
            self.assertTrue(byte == 0x0A or byte >= 0x20, byte)

    def test_outputs_have_files_of_their_own(self):
        named = self.write("outputs.onnx", model(
            node("Relu", ["x"], ["a/b"], "one"), node("Neg", ["x"], ["a_b"], "two"), node("Abs", ["x"], ["a_b_2"], "three"),
            port(11, "x", [2, 3]), port(12, "a/b", [2, 3]), port(12, "a_b", [2, 3]), port(12, "a_b_2", [2, 3])))
        (self.folder / "x.npy").write_bytes(npy((2, 3), values=[1, -1, 2, -2, 0, 5]))
        done = self.json_of("run", named, "--place", "priority", "--output", self.path("own"), "--input", f"x={self.path('x.npy')}")
        files = {o["name"]: pathlib.Path(o["file"]).name for o in done["outputs"]}
        self.assertEqual(files, {"a/b": "a_b_3.npy", "a_b": "a_b.npy", "a_b_2": "a_b_2.npy"})
        self.assertEqual(floats(self.path("own/a_b_3.npy")), (1, 0, 2, 0, 0, 5))
        self.assertEqual(floats(self.path("own/a_b.npy")), (-1, 1, -2, 2, 0, -5))
        self.assertEqual(floats(self.path("own/a_b_2.npy")), (1, 1, 2, 2, 0, 5))

    def test_files_that_are_no_models(self):
        good = pathlib.Path(MODEL).read_bytes()
        for name, contents, saying in (("empty.onnx", b"", "empty"), ("text.onnx", b"a text, not a model\n" * 9, "ONNX"),
                                       ("short.onnx", good[:len(good) // 2], "short.onnx"),
                                       ("long.onnx", struct.pack("<Q", 1 << 60) + good, "long.onnx")):
            self.refused("inspect", self.write(name, contents), saying=saying)
        self.refused("inspect", self.path("none.onnx"), saying="none.onnx")
        self.refused("inspect", str(self.folder), saying="folder")
        os.mkfifo(self.path("pipe.onnx"))
        self.refused("inspect", self.path("pipe.onnx"), saying="pipe.onnx", timeout=20)

    def test_graphs_that_cannot_be(self):
        def refused(contents, saying):
            self.refused("inspect", self.write("wrong.onnx", contents), "--shape", "x=2x3", saying=saying)

        x, y = port(11, "x", ["batch", 3]), port(12, "y", ["batch", 3])
        refused(model(node("Relu", ["z"], ["y"], "rectify"), x, y), "node rectify (Relu, opset 17, of ?): reads z, which nothing defines")
        refused(model(node("Relu", ["b"], ["a"], "one"), node("Relu", ["a"], ["b"], "two"), node("Relu", ["x"], ["y"]), x, y),
                "node one (Relu) reads a value that is computed only after it: the graph has a cycle")
        refused(model(node("Relu", ["x"], ["y"], "one"), node("Abs", ["x"], ["y"], "two"), x, y),
                "node two defines y, which is defined elsewhere too")
        refused(model(*RELU[:2]), "the graph has no output")
        refused(model(*RELU, opset=5), "its definition in operator set 5 is not supported, only that from 7 on")
        self.json_of("inspect", self.write("old.onnx", model(*RELU, opset=6)), "--shape", "x=2x3")
        refused(model(node("Relu", ["x"], ["y"]), port(11, "x", ["batch", 3], kind=8), y), "element type string")

    def test_everything_unsupported_is_told_at_once(self):
        wrong = self.write("unsupported.onnx", model(
            node("NoSuchOperator", ["x"], ["a"], "first"), node("Relu", ["a"], ["b"], "between"),
            node("AnotherOne", ["b"], ["c"], "second"), node("MatMul", ["x", "x"], ["d"], "third"),
            port(11, "x", [2, 3]), port(12, "c", []), port(12, "d", [])))
        done = collage("inspect", wrong)
        self.assertEqual(done.returncode, 2)
        lines = done.stderr.splitlines()
        self.assertIn("3 nodes cannot be imported:", lines[0])
        self.assertEqual(len(lines), 4, done.stderr)
        self.assertIn("  first (NoSuchOperator, opset 17, of float32[2x3]): this operator is not known", lines[1])
        self.assertIn("  second (AnotherOne, opset 17, of ?): this operator is not known", lines[2])
        self.assertIn("  third (MatMul, opset 17, of float32[2x3], float32[2x3]): the columns of a must be as many", lines[3])

    def test_a_newer_operator_set_is_tried(self):
        newer = self.write("newer.onnx", model(*RELU, opset=28))
        done = self.succeeds("inspect", newer, "--shape", "x=2x3")
        self.assertIn("newer than the newest known (27)", done.stderr)


if __name__ == "__main__":
    unittest.main()
