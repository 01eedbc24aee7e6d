#!/usr/bin/env python3
"""collage tune --precision: plans in bfloat16 within an error, on samples from files, and everything that can be wrong with them."""
import json
import pathlib
import struct
import unittest

import models
from json_schema import complaints
from program import BERT, Case, collage, npy, placed_backends

SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "docs" / "plan.schema.json").read_text())


def ramp(count, shift):
    """Numbers that differ, other ones for each shift."""
    return [((i * 37 + shift * 13) % 101) / 50 - 1 for i in range(count)]


class Precision(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if "onednn" not in placed_backends():
            raise unittest.SkipTest("this build has no kernels in bfloat16")
        # A product large enough that bfloat16 pays where the processor has instructions for it.
        (cls.folder / "product.onnx").write_bytes(models.model(
            models.node("MatMul", ["a", "b"], ["p"]), models.node("Relu", ["p"], ["y"]),
            models.port(11, "a", [256, 512]), models.port(11, "b", [512, 512]), models.port(12, "y", [256, 512])))
        cls.product = str(cls.folder / "product.onnx")
        if "built without ONNX" in collage("inspect", cls.product).stderr:
            raise unittest.SkipTest("this build reads no files of ONNX")
        cls.words = ("--backends", "onednn,portable", "--threads", "1", "--store", "none")

    def write_samples(self, count):
        folder = self.folder / f"samples{count}"
        folder.mkdir(exist_ok=True)
        values = [x for i in range(count) for x in ramp(256 * 512, i)]
        (folder / "a.npy").write_bytes(npy((count, 256, 512), values=values))
        (folder / "b.npy").write_bytes(npy((512, 512), values=ramp(512 * 512, 1)))  # serves for all samples
        return str(folder)

    def tuned(self, *words):
        plan = pathlib.Path(self.path("plan.json"))
        plan.unlink(missing_ok=True)
        done = self.succeeds("tune", self.product, "--plan", str(plan), *self.words, *words)
        made = json.loads(plan.read_text())
        self.assertEqual(complaints(made, SCHEMA), [])
        return done, made

    def test_plans_keep_their_bound(self):
        done, made = self.tuned("--precision", "bf16", "--error", "2%", "--data", self.write_samples(12))
        self.assertNotIn("random inputs", done.stderr)
        if "error" in made:  # it may be slower than float32 here
            self.assertEqual(made["precision"], "bf16, error at most 2 %")
            self.assertEqual(made["error"]["most"], 0.02)
            self.assertLessEqual(made["error"]["upper"], 0.02)
            self.assertEqual(made["error"]["samples"], 6)
            self.assertIn("It rounds values. On 6 samples that were held back,", " ".join(done.stdout.split()))
            self.assertIn("fp32", [r["name"] for r in made["runs"]])
            plan = self.path("plan.json")
            self.succeeds("verify", self.product, "--plan", plan, "--quiet")
            self.succeeds("run", self.product, "--plan", plan, "--quiet")
        else:
            self.assertEqual(made["precision"], "fp32")
            self.assertRegex(done.stderr, "note: the plan is in float32: (no plan within the bound was faster|none of the plans was confirmed)")

    def test_random_inputs_are_no_data(self):
        done, _ = self.tuned("--precision", "bf16")
        self.assertIn("note: the errors of lower precision are measured with random inputs; --data FOLDER names real ones", done.stderr)

    def test_integers_of_eight_bits(self):
        """A trained network would need its own samples; here random ones and a wide bound show that the parts fit."""
        ranges = self.path("ranges.json")
        words = ("--backends", "onednn,portable", "--threads", "1", "--store", "none", "--algorithms", "direct", "--budget", "6")
        self.succeeds("calibrate", "zoo:mobilenet-v2", "--samples", "3", "--quiet", "-o", ranges)
        plan = self.path("integers.json")
        done = self.succeeds("tune", "zoo:mobilenet-v2", *words, "--precision", "int8", "--error", "90%", "--ranges", ranges,
                             "--plan", plan)
        made = json.loads(pathlib.Path(plan).read_text())
        self.assertEqual(complaints(made, SCHEMA), [])
        if "error" not in made:  # a processor without VNNI, or one that was too busy
            self.assertRegex(done.stderr, "note: the plan is in float32: ")
            return
        self.assertEqual(made["precision"], "int8, error at most 90 %")
        scales = made["chosen"]["scales"]
        self.assertGreater(len(scales), 5)
        self.assertEqual({s["element"] for s in scales}, {"u8"})
        self.assertTrue(any("u8" in g["layout"] for g in made["chosen"]["groups"]))
        self.succeeds("run", "zoo:mobilenet-v2", "--plan", plan, "--quiet")
        page = self.succeeds("explain", "zoo:mobilenet-v2", "--plan", plan).stdout
        self.assertIn("int8, error at most 90 %", " ".join(page.split()))
        del made["chosen"]["scales"]
        pathlib.Path(plan).write_text(json.dumps(made))
        self.assertIn("has no scale for integers of 8 bits", collage("run", "zoo:mobilenet-v2", "--plan", plan).stderr)

    def test_what_is_kept(self):
        words = ("--precision", "bf16", "--error", "100%", "--data", self.write_samples(12))
        _, free = self.tuned(*words)
        done, made = self.tuned(*words, "--keep", "*", "--keep", "kind:relu,kind:matmul")
        self.assertEqual(made["precision"], "fp32")  # nothing is left to round
        self.assertIn("note: the plan is in float32: no kernel that can run here rounds anything", done.stderr)
        done, made = self.tuned(*words, "--keep", "kind:matmul")

        def product_of(plan):
            return next(g for g in plan["chosen"]["groups"] if 0 in [number for number, _ in g["nodes"]])
        if "error" in free:
            self.assertIn("bf16", json.dumps(product_of(free)))
        self.assertNotIn("bf16", product_of(made).get("layout", "") + product_of(made)["kernel"].split(":")[0])
        if "error" in made:
            self.assertEqual(made["precision"], "bf16, error at most 100 %, kept in fp32: kind:matmul")
            for text in done.stdout, self.succeeds("explain", self.product, "--plan", self.path("plan.json")).stdout:
                self.assertIn("By your choice, these stay in float32: kind:matmul (1 node).", " ".join(text.split()))

    def test_a_quantised_file_is_quantised_anew(self):
        """A product of integers: what a plan rounds is free, and later commands know of which network the plan is."""
        def constant(name, kind, extents, raw):
            return models.field(5, b"".join(models.field(1, e) for e in extents) + models.field(2, kind) + models.field(8, name) +
                                models.field(9, raw))
        f32, u8, i8 = 1, 2, 3
        weights = bytes((i * 37) % 251 for i in range(512 * 512))
        path = self.folder / "integers.onnx"
        path.write_bytes(models.model(
            constant("s", f32, [], struct.pack("<f", 0.01)), constant("z", u8, [], bytes([100])),
            constant("w", i8, [512, 512], weights), constant("ws", f32, [], struct.pack("<f", 0.002)), constant("wz", i8, [], bytes([0])),
            constant("os", f32, [], struct.pack("<f", 0.1)), constant("oz", u8, [], bytes([0])),
            models.node("QuantizeLinear", ["a", "s", "z"], ["aq"]), models.node("DequantizeLinear", ["aq", "s", "z"], ["af"]),
            models.node("DequantizeLinear", ["w", "ws", "wz"], ["wf"]), models.node("MatMul", ["af", "wf"], ["p"]),
            models.node("Relu", ["p"], ["r"]), models.node("QuantizeLinear", ["r", "os", "oz"], ["rq"]),
            models.node("DequantizeLinear", ["rq", "os", "oz"], ["rf"]), models.node("Neg", ["rf"], ["y"]),
            models.port(11, "a", [256, 512]), models.port(12, "y", [256, 512])))
        samples = self.folder / "integer_samples"
        samples.mkdir(exist_ok=True)
        for i in range(6):
            (samples / f"{i}.npy").write_bytes(npy((256, 512), values=ramp(256 * 512, i)))
        plan = self.path("anew.json")
        self.succeeds("tune", str(path), *self.words, "--precision", "any", "--error", "5%", "--data", str(samples), "--requantise",
                      "--plan", plan)
        made = json.loads(pathlib.Path(plan).read_text())
        self.assertEqual(complaints(made, SCHEMA), [])
        # Nothing is quantised but what the plan chooses.
        self.assertNotIn("quantize_linear", json.dumps(made["chosen"]))
        for command in "run", "verify", "explain":
            self.assertIn("note: the plan was made with --requantise, and does not round as the network's file says",
                          self.succeeds(command, str(path), "--plan", plan).stderr)
        self.refused("tune", str(path), "--plan", plan, "--requantise",
                     saying="--requantise: it only affects plans of lower precision; add --precision bf16, or leave it out")
        self.refused("tune", self.product, "--plan", plan, "--precision", "bf16", "--requantise",
                     saying="product.onnx: no value is quantised to 8 bits by one known scale and zero point; leave out --requantise")

    def test_no_error_is_float32(self):
        done, made = self.tuned("--precision", "any", "--error", "0")
        self.assertEqual(made["precision"], "fp32")
        self.assertNotIn("error", made)
        self.assertIn("note: the plan is in float32: no error is allowed", done.stderr)

    def test_bad_input(self):
        plan = ("--plan", self.path("bad.json"))
        self.refused("tune", self.product, *plan, *self.words, "--precision", "bf16", "--data", self.write_samples(2),
                     saying="samples: there are 2 samples, and the error of lower precision needs at least 3")
        for text in ("2", "-1%", "101%", "1 %", "x", "nan"):
            self.refused("tune", BERT, *plan, "--precision", "bf16", f"--error={text}",
                         saying=f"'{text}' is not an error from 0 to 1; write 1% or 0.01")
        self.refused("tune", BERT, *plan, "--error", "1%",
                     saying="--error: it only affects plans of lower precision; add --precision bf16, or leave it out")
        self.refused("tune", BERT, *plan, "--keep", "kind:softmax",
                     saying="--keep: it only affects plans of lower precision; add --precision bf16, or leave it out")
        lower = ("tune", self.product, *plan, *self.words, "--precision", "bf16")
        self.refused(*lower, "--keep", "kind:rilu", saying="keep kind:rilu: the network has no operator 'rilu'; the nearest operators are")
        self.refused(*lower, "--keep", "relu", saying="keep relu: is no node of the network, but an operator; write kind:relu")
        self.refused(*lower, "--keep", "kind:relu,,", saying="keep : is no node of the network; the nearest nodes are ")
        self.refused("tune", BERT, *plan, "--data", "nowhere", saying="--data: it only affects plans of lower precision")
        self.refused("tune", BERT, *plan, "--precision", "bf16", "--ranges", "ranges.json",
                     saying="--ranges: ranges are for integers of 8 bits; add --precision int8 or any, or leave it out")
        self.refused("tune", BERT, *plan, "--precision", "int8", "--ranges", self.path("none.json"), saying="none.json")
        self.refused("tune", BERT, *plan, "--precision", "bf16", "--keep-non-finite",
                     saying="--precision bf16: kernels that round values need not keep NaN and infinity")
        self.refused("tune", BERT, *plan, "--precision", "bf16", "--place", "priority",
                     saying="--precision bf16: only measuring shows whether lower precision pays; leave out --place, or --precision")
        self.refused("tune", BERT, *plan, "--precision", "half", saying="half")
        self.refused("bench", BERT, "--plan", "p.json", "--precision", "bf16",
                     saying="p.json: is a finished plan, and --precision only affects placing")


if __name__ == "__main__":
    unittest.main(verbosity=2)
