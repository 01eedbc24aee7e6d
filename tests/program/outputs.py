#!/usr/bin/env python3
"""No command replaces a file that it reads, under any of its names."""
import os
import pathlib
import unittest

import models
from program import CACHES, Case, npy


def external(name, extent, location):
    """An initializer of float32 whose data is in another file."""
    entry = models.field(1, "location") + models.field(2, location)
    return models.field(5, models.field(1, extent) + models.field(2, 1) + models.field(8, name) + models.field(13, entry) +
                        models.field(14, 1))


class Outputs(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.network, cls.plan, cls.sample = (str(cls.folder / name) for name in ("net.onnx", "plan.json", "x.npy"))
        pathlib.Path(cls.network).write_bytes(models.model(models.node("Relu", ["x"], ["y"]), models.port(11, "x", [2, 3]),
                                                           models.port(12, "y", [2, 3])))
        pathlib.Path(cls.sample).write_bytes(npy([2, 3]))

    def setUp(self):
        self.tune(self.plan)

    def tune(self, plan):
        self.succeeds("tune", self.network, "--plan", plan, "--place", "priority", "--threads", "1", "--store", "none", "--quiet")

    def keeps(self, kept, *words, of):
        """The command is refused, and its input is as it was."""
        before = pathlib.Path(kept).read_bytes()
        self.refused(*words, saying=f"this is the file of {of}, which would be replaced; name another file to write")
        self.assertEqual(pathlib.Path(kept).read_bytes(), before)

    def names_of(self, file):
        """The file itself, a way around, a link to it, and a second name of it."""
        link, second = self.path("link"), self.path("second")
        for name in (link, second):
            pathlib.Path(name).unlink(missing_ok=True)
        os.symlink(file, link)
        os.link(file, second)
        return file, str(self.folder / ".." / self.folder.name / pathlib.Path(file).name), link, second

    def test_reports(self):
        other = self.path("other.json")
        self.tune(other)
        for kept, of in ((self.network, "the network"), (self.plan, "--plan"), (other, "the other plan")):
            for name in self.names_of(kept):
                self.keeps(kept, "report", self.network, "--plan", self.plan, "--against", other, "-o", name, of=of)
        page = self.path("page.html")
        for _ in range(2):  # an older report is replaced
            self.succeeds("report", self.network, "--plan", self.plan, "-o", page)
        self.succeeds("report", self.network, "--plan", self.plan, "-o", "/dev/stdout")

    def test_plans(self):
        for name in self.names_of(self.network):
            self.keeps(self.network, "tune", self.network, "--plan", name, "--place", "priority", "--store", "none", of="the network")
        self.tune(self.plan)  # in place of the older plan
        self.keeps(self.sample, "tune", self.network, "--plan", self.sample, "--precision", "bf16", "--data", self.sample, of="--data")

    def test_other_files(self):
        with_plan = (self.network, "--plan", self.plan)
        for command in ("run", "bench"):
            self.keeps(self.network, command, *with_plan, "--trace", self.network, of="the network")
            self.keeps(self.plan, command, *with_plan, "--trace", self.plan, of="--plan")
        self.keeps(self.sample, "run", *with_plan, "--trace", self.sample, "--input", f"x={self.sample}", of="--input")
        self.keeps(self.plan, "explain", *with_plan, "--dot", self.plan, of="--plan")
        self.keeps(self.network, "inspect", self.network, "--dot", self.network, of="the network")
        self.keeps(self.network, "calibrate", self.network, "--samples", "1", "-o", self.network, of="the network")
        self.keeps(self.sample, "calibrate", self.network, "--data", self.sample, "-o", self.sample, of="--data")
        self.keeps(self.plan, "tune", *with_plan, "--precision", "bf16", "--error", "1%", "--curve", self.plan, of="--plan")

    def test_outputs_of_runs(self):
        y = self.path("y.npy")  # the name that the output gets
        pathlib.Path(y).write_bytes(npy([2, 3]))
        self.keeps(y, "run", self.network, "--plan", self.plan, "--input", f"x={y}", "--output", str(self.folder), of="--input")
        for _ in range(2):  # older outputs are replaced
            self.succeeds("run", self.network, "--plan", self.plan, "--input", f"x={self.sample}", "--output", str(self.folder))

    def test_ranges(self):
        a, b, both = (self.path(name) for name in ("a.json", "b.json", "both.json"))
        for file in (a, b):
            self.succeeds("calibrate", self.network, "--samples", "1", "-o", file)
        self.keeps(a, "calibrate", "--merge", a, b, "-o", a, of="--merge")
        self.succeeds("calibrate", "--merge", a, b, "-o", both)

    def test_the_store(self):
        store = self.path("costs.db")
        self.succeeds("tune", self.network, "--plan", self.plan, "--budget", "2", "--store", store, "--quiet")
        with_plan = (self.network, "--plan", self.plan, "--store", store)
        self.keeps(store, "tune", self.network, "--plan", store, "--store", store, of="the store")
        self.keeps(store, "bench", *with_plan, "--trace", store, of="the store")
        user = pathlib.Path(CACHES.name, "collage", "costs.db")  # which no option names
        user.parent.mkdir(exist_ok=True)
        user.write_bytes(pathlib.Path(store).read_bytes())
        self.keeps(str(user), "tune", self.network, "--plan", str(user), of="the store")

    def test_weights_in_other_files(self):
        network, weights, plan = (self.path(name) for name in ("outside.onnx", "w.bin", "outside.json"))
        pathlib.Path(network).write_bytes(models.model(models.node("Add", ["x", "w"], ["y"]),
                                                       external("w", 3, "w.bin"), models.port(11, "x", [2, 3]),
                                                       models.port(12, "y", [2, 3])))
        pathlib.Path(weights).write_bytes(bytes(12))
        self.succeeds("tune", network, "--plan", plan, "--place", "priority", "--threads", "1", "--store", "none", "--quiet")
        for name in self.names_of(weights):
            self.keeps(weights, "report", network, "--plan", plan, "-o", name, of="the network's weights")
            self.keeps(weights, "tune", network, "--plan", name, "--place", "priority", "--store", "none", of="the network's weights")


if __name__ == "__main__":
    unittest.main()
