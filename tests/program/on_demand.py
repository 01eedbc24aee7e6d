#!/usr/bin/env python3
"""OpenVINO is opened where it is asked for and nowhere else; and a module that cannot serve is told. on_demand.py PROGRAM
FOREIGN_MODULE"""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

FOREIGN = pathlib.Path(sys.argv.pop(2))  # before program.py takes the program
import models  # noqa: E402
from program import PROGRAM, Case, complete_backend, environment  # noqa: E402

MODULE = "libcollage_openvino_module.so"


class OnDemand(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.network = models.small_network(cls.folder)

    def opened(self, *words):
        """The files that the loader opened for a command."""
        log = self.folder / "loader"
        for old in self.folder.glob("loader.*"):
            old.unlink()
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=500,
                              env=environment(LD_DEBUG="files", LD_DEBUG_OUTPUT=str(log)))
        self.assertEqual(done.returncode, 0, done.stderr)
        return "".join(file.read_text(errors="replace") for file in self.folder.glob("loader.*"))

    def test_it_is_opened_where_it_is_asked_for(self):
        self.assertIn("libopenvino.so", self.opened("backends"))
        self.assertNotIn("openvino", self.opened("zoo"))
        plan, store = self.path("plan.json"), self.path("costs.db")
        self.assertNotIn("openvino", self.opened("tune", self.network, "--backends", complete_backend(), "--plan", plan, "--store",
                                                 store, "--quiet"))
        self.assertNotIn("openvino", self.opened("run", self.network, "--plan", plan))

    def with_module(self, make, *words):
        """A command's end where `make` has put another file in the module's place."""
        folder = pathlib.Path(self.path("modules"))
        folder.mkdir(exist_ok=True)
        make(folder / MODULE)
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=500,
                              env=environment(LD_LIBRARY_PATH=str(folder)))

    def test_a_module_that_cannot_serve_is_told(self):
        nowhere = subprocess.run([PROGRAM, "backends", "--json"], capture_output=True, text=True, timeout=500,
                                 env=environment(COLLAGE_OPENVINO="/nowhere"))
        self.assertIn("in the folder that COLLAGE_OPENVINO names (/nowhere/libopenvino.so", nowhere.stdout)
        for make, saying in ((lambda file: file.write_text("nothing to load"), "OpenVINO could not be opened ("),
                             (lambda file: shutil.copy(FOREIGN, file), "is from another build of collage")):
            with self.subTest(saying):
                listed = self.with_module(make, "backends", "--json")
                self.assertEqual(listed.returncode, 0, listed.stderr)
                found = next(b for b in json.loads(listed.stdout) if b["name"] == "openvino")
                self.assertFalse(found["available"])
                self.assertIn(saying, found["reason"])
                # Who does not ask for it does without.
                placed = self.with_module(make, "tune", self.network, "--store", "none", "--budget", "1s",
                                          "--backends", f"{complete_backend()},portable", "--plan", self.path("without.json"))
                self.assertEqual(placed.returncode, 0, placed.stderr)
                asked = self.with_module(make, "tune", self.network, "--store", "none", "--backends", "openvino",
                                         "--plan", self.path("with.json"))
                self.assertEqual(asked.returncode, 1, asked.stderr)
                self.assertIn(saying, asked.stderr)
                self.assertEqual(asked.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
