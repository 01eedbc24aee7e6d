#!/usr/bin/env python3
"""collage calibrate: samples from files, files of ranges, merging, and everything that can be wrong with them."""
import json
import os
import pathlib
import signal
import subprocess
import unittest

import models
from program import BERT, PROGRAM, Case, collage, environment, npy

NAN, INFINITY = float("nan"), float("inf")


def ramp(count, scale=1.0):
    """Numbers that differ."""
    return [scale * ((i * 37 % 101) / 50 - 1) for i in range(count)]


class Calibrating(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        model = models.model(models.node("Mul", ["a", "b/c"], ["product"]), models.node("Relu", ["product"], ["y"]),
                             models.port(11, "a", [2, 3]), models.port(11, "b/c", [2, 3]), models.port(12, "y", [2, 3]))
        one = models.model(models.node("Relu", ["x"], ["y"]), models.port(11, "x", [1, 3]), models.port(12, "y", [1, 3]))
        (cls.folder / "two.onnx").write_bytes(model)
        (cls.folder / "one.onnx").write_bytes(one)
        cls.two, cls.one = str(cls.folder / "two.onnx"), str(cls.folder / "one.onnx")
        if "built without ONNX" in collage("inspect", cls.one).stderr:
            raise unittest.SkipTest("this build reads no files of ONNX")

    def write(self, name, contents):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)
        return str(path)

    def ranges(self, *words):
        """Calibrates, and returns the ranges by the names of their values."""
        file = self.path("made.json")
        self.succeeds("calibrate", *words, "-o", file, "--quiet")
        return json.loads(pathlib.Path(file).read_text())


class Samples(Calibrating):
    def test_shapes_of_files(self):
        for shape, samples in (((1, 3), 1), ((4, 3), 4), ((4, 1, 3), 4), ((2, 1, 3), 2)):
            count = 3 * samples
            data = self.write("x.npy", npy(shape, values=ramp(count, 2.0)))
            made = self.ranges(self.one, "--data", data)
            self.assertEqual(made["samples"], samples)
            self.assertFalse(made["random"])
            x = made["values"][0]
            self.assertEqual(x["name"], "x")
            self.assertEqual(x["numbers"]["count"], count)
            self.assertAlmostEqual(x["seen"][0], min(ramp(count, 2.0)), 5)
            self.assertAlmostEqual(x["seen"][1], max(ramp(count, 2.0)), 5)

    def test_folders(self):
        for i in range(3):
            self.write(f"flat/{i}.npy", npy((2, 3), values=ramp(6, 1.0 + i)))
            self.write(f"nested/sample{i}/a.npy", npy((2, 3), values=ramp(6, 1.0 + i)))
            self.write(f"nested/sample{i}/b_c.npy", npy((2, 3), values=[2.0] * 6))
        self.assertEqual(self.ranges(self.one, "--data", self.path("flat"))["samples"], 6)
        made = self.ranges(self.two, "--data", self.path("nested"))
        self.assertEqual(made["samples"], 3)
        product = {v["name"]: v for v in made["values"]}["product"]
        self.assertAlmostEqual(product["seen"][0], -2 * 3.0, 4)
        # One file for all samples of the other.
        self.write("shared/a.npy", npy((5, 2, 3), values=ramp(30)))
        self.write("shared/b_c.npy", npy((2, 3), values=[-1.0] * 6))
        made = self.ranges(self.two, "--data", self.path("shared"))
        self.assertEqual({v["name"]: v["numbers"]["count"] for v in made["values"]},
                         {"a": 30, "b/c": 30, "product": 30, "y": 30})

    def test_the_same_samples_give_the_same_file(self):
        data = self.write("same.npy", npy((20, 3), values=ramp(60)))
        for method in ("minmax", "percentile", "entropy", "mse"):
            texts = []
            for i in range(2):
                self.succeeds("calibrate", self.one, "--data", data, "--method", method, "-o", self.path(f"{i}.json"), "--quiet")
                texts.append(pathlib.Path(self.path(f"{i}.json")).read_text())
            self.assertEqual(texts[0], texts[1])

    def test_random_samples_are_called_so(self):
        done = self.succeeds("calibrate", BERT, "--samples", "3", "-o", self.path("r.json"), "--per-channel")
        self.assertIn("note: the samples are random numbers and no data", done.stderr)
        self.assertIn("3 random samples", done.stdout)
        self.fits_page(done.stdout)
        made = json.loads(pathlib.Path(self.path("r.json")).read_text())
        self.assertTrue(made["random"])
        channels = [v for v in made["values"] if "axis" in v]
        self.assertGreater(len(channels), 0)
        told = self.json_of("calibrate", BERT, "--samples", "3", "-o", self.path("r.json"), "--method", "mse")
        self.assertEqual(told["samples"], 3)
        self.assertEqual(told["method"], "mse")
        self.assertGreater(len(told["values"]), 10)
        self.assertTrue(all(0 <= v["error"] < 0.2 for v in told["values"]), told["values"])

    def test_values_that_stay_in_float32(self):
        model = models.model(models.node("Reciprocal", ["x"], ["y"]), models.port(11, "x", [1, 3]), models.port(12, "y", [1, 3]))
        path = self.write("reciprocal.onnx", model)
        data = self.write("zero.npy", npy((2, 1, 3), values=[1, 2, 3, 0, 1, 2]))
        done = self.succeeds("calibrate", path, "--data", data, "-o", self.path("r.json"))
        self.assertIn("Stays in float32: y is infinite in sample 2.", done.stdout)


class Merging(Calibrating):
    def test_is_one_pass_over_both(self):
        first, second = ramp(30), ramp(45, 7.0)
        a, b, both = (self.write(f"{name}.npy", npy((len(v) // 3, 3), values=v))
                      for name, v in (("a", first), ("b", second), ("both", first + second)))
        for method in ("minmax", "mse"):
            for name, data in (("a", a), ("b", b), ("both", both)):
                self.succeeds("calibrate", self.one, "--data", data, "--method", method, "-o", self.path(name + ".json"), "--quiet")
            self.succeeds("calibrate", "--merge", self.path("a.json"), self.path("b.json"), "-o", self.path("c.json"), "--quiet")
            self.assertEqual(pathlib.Path(self.path("c.json")).read_text(), pathlib.Path(self.path("both.json")).read_text())
            # Another method without samples.
            self.succeeds("calibrate", "--merge", self.path("c.json"), "--method", "entropy", "--schema", "symmetric", "-o",
                          self.path("d.json"), "--quiet")
            again = self.ranges(self.one, "--data", both, "--method", "entropy", "--schema", "symmetric")
            self.assertEqual(json.loads(pathlib.Path(self.path("d.json")).read_text()), again)

    def test_what_does_not_belong_together(self):
        data = self.write("x.npy", npy((4, 3), values=ramp(12)))
        self.succeeds("calibrate", self.one, "--data", data, "-o", self.path("a.json"), "--quiet")
        self.succeeds("calibrate", self.two, "--samples", "1", "-o", self.path("b.json"), "--quiet")
        self.succeeds("calibrate", self.one, "--samples", "1", "-o", self.path("r.json"), "--quiet")
        out = ("-o", self.path("c.json"))
        self.refused("calibrate", "--merge", self.path("a.json"), self.path("b.json"), *out,
                     saying="b.json: cannot be merged with " + self.path("a.json") + ": the ranges are of different networks (")
        self.refused("calibrate", "--merge", self.path("a.json"), self.path("r.json"), *out,
                     saying="come from random numbers in only one of them")
        self.refused("calibrate", self.two, "--merge", self.path("a.json"), *out,
                     saying="a.json: was made for another network (" + self.one + "); calibrate this network")
        self.succeeds("calibrate", self.one, "--merge", self.path("a.json"), *out, "--quiet")
        self.refused("calibrate", "--merge", self.path("none.json"), *out, saying="none.json: cannot be read: No such file")
        self.refused("calibrate", "--merge", self.one, *out, saying="is not JSON, as byte ")
        self.assertEqual(collage("calibrate", "--merge", self.path("a.json"), "-o", self.path("no/c.json")).returncode, 2)


class Mistakes(Calibrating):
    def test_options(self):
        data = self.write("x.npy", npy((4, 3), values=ramp(12)))
        out = ("-o", self.path("r.json"))
        self.refused("calibrate", self.one, "--data", data, saying="calibrate: -o is required; name the file for the ranges")
        self.refused("calibrate", *out, "--data", data, saying="calibrate: no network is given; name one, or ranges after --merge")
        self.refused("calibrate", self.one, *out,
                     saying="calibrate: there is no data; give --data FOLDER, or --samples N for random numbers")
        self.refused("calibrate", self.one, "--data", data, "--samples", "2", *out,
                     saying="--samples: there is no need for random samples beside data")
        self.refused("calibrate", "--merge", data, "--samples", "2", *out, saying="--merge: it needs no samples")
        self.refused("calibrate", "--merge", data, "--per-channel", *out, saying="--merge: weights stay as the files have them")
        self.refused("calibrate", self.one, "--samples", "0", *out, saying="'0' is not a whole number from 1 to")
        self.refused("calibrate", self.one, "--data", data, "--method", "luck", *out, saying="luck")
        self.refused("calibrate", self.one, "--data", data, "--schema", "luck", *out, saying="luck")
        self.refused("calibrate", self.one, "--data", data, "--percentile", "101", *out, saying="101")
        self.refused("calibrate", "zoo:nothing", "--samples", "1", *out, saying="there is no such network")
        for name, why in (("no/r.json", "cannot be written: No such file"), (str(self.folder), "it is a folder")):
            self.refused("calibrate", self.one, "--data", data, "-o", name if name[0] == "/" else self.path(name), saying=why)
        self.assertFalse(pathlib.Path(self.path("r.json")).exists())

    def test_samples(self):
        out = ("-o", self.path("r.json"))

        def refused(network, data, saying):
            self.refused("calibrate", network, "--data", data, *out, "--quiet", saying=saying)

        def file(name, *values, shape=(2, 1, 3), kind="<f4"):
            return self.write(name, npy(shape, kind, values=list(values)))
        refused(self.one, self.path("none"), "none: there is no such file or folder; check the path")
        (self.folder / "empty").mkdir(exist_ok=True)
        refused(self.one, self.path("empty"), "empty: has no .npy files; give a folder with samples")
        refused(self.one, file("nan.npy", 1, 2, 3, 4, NAN, 6),
                "nan.npy: has NaN at element 1 of sample 2; give samples whose numbers are finite")
        refused(self.one, file("infinite.npy", 1, 2, -INFINITY, 4, 5, 6),
                "infinite.npy: is infinite at element 2 of sample 1; give samples whose numbers are finite")
        refused(self.one, file("same.npy", 2, 2, 2, 2, 2, 2),
                "input x: is constant: all its numbers are 2 in all 2 samples; give samples as the network will see them")
        refused(self.one, file("shape.npy", *ramp(6), shape=(3, 2)),
                "shape.npy: has shape 3x2 float32, but a sample of input x has shape 1x3 float32; give one sample, or several")
        refused(self.one, file("type.npy", 1, 2, 3, shape=(1, 3), kind="<i8"),
                "type.npy: has shape 1x3 int64, but a sample of input x has shape 1x3 float32; save it with array.astype('float32')")
        refused(self.one, self.write("none.npy", npy((0, 3))), "none.npy: has no sample; remove it")
        refused(self.one, self.write("text.npy", b"text"), "text.npy: is not an .npy file")
        refused(self.two, file("x.npy", *ramp(6)), "x.npy: is one file, but the network has 2 inputs")
        file("pairs/a.npy", *ramp(6), shape=(2, 3))
        refused(self.two, self.path("pairs"), "pairs: has no file b_c.npy for input b/c; add it")
        file("pairs/b_c.npy", *ramp(12), shape=(2, 2, 3))
        file("pairs/d.npy", *ramp(6), shape=(2, 3))
        refused(self.two, self.path("pairs"), "d.npy: is for no input of the network; name it after an input, or remove it")
        os.unlink(self.path("pairs/d.npy"))
        file("pairs/a.npy", *ramp(18), shape=(3, 2, 3))
        refused(self.two, self.path("pairs"), "b_c.npy: has 2 samples, but another file beside it has 3")
        self.assertFalse(pathlib.Path(self.path("r.json")).exists())

    def test_a_signal_ends_it_and_leaves_nothing(self):
        file = self.path("ended.json")
        with subprocess.Popen([PROGRAM, "calibrate", BERT, "--samples", "1000000", "-o", file], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=environment()) as running:
            line = ""
            while "sample" not in line or "note" in line:
                line = running.stderr.readline()
                self.assertNotEqual(line, "")
            running.send_signal(signal.SIGINT)
            _, told = running.communicate(timeout=60)
        self.assertEqual(running.returncode, -signal.SIGINT)
        self.assertIn("SIGINT: ended", told)
        self.assertEqual([f.name for f in self.folder.iterdir() if f.name.startswith("ended")], [])


if __name__ == "__main__":
    unittest.main()
