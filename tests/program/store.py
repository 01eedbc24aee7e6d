#!/usr/bin/env python3
"""`collage store`: its commands on stores that are filled by import, and everything that can be wrong with them."""
import json
import os
import pathlib
import sqlite3
import subprocess
import time
import unittest

from program import PROGRAM, Case, collage, environment


def cost(i, when_s=1_700_000_000, **changes):
    """An entry as `collage store export` writes it."""
    ms = 0.125 * (i + 1)
    made = {"machine": "some processor (avx2)", "threads": 2, "waiting": "passive", "precision": "fp32",
            "backend": "onednn" if i % 2 else "eigen", "library": "3.2.0, compiled for x86-64-v3", "pattern": "conv_relu",
            "choice": i, "computes": f"{i:016x}ffffffffffffffff", "label": f"conv+relu 1x64x56x{i}", "kernel": "jit:avx2",
            "refusal": "", "median_ms": ms, "low_ms": ms * 0.9, "high_ms": ms * 1.1, "sure_low_ms": ms * 0.99,
            "sure_high_ms": ms * 1.01, "samples": 30, "how": "in a worker, warm", "when_s": when_s}
    return {**made, **changes}


def refused(i, **changes):
    none = {name: 0.0 for name in ("median_ms", "low_ms", "high_ms", "sure_low_ms", "sure_high_ms")}
    return cost(i, **none, refusal="wrong result: element 3 is 0.5 and not 0.25", samples=0, kernel="", **changes)


def run(i, **changes):
    made = {"network": f"{i:016x}", "placement": f"eigen:conv_relu:{i}", "machine": "some processor (avx2)", "threads": 2,
            "waiting": "passive", "precision": "fp32", "libraries": "eigen 3.4.0; onednn 3.2.0", "label": "zoo:resnet50",
            "name": "eigen", "median_ms": 12.5, "low_ms": 12.25, "high_ms": 13.0, "runs": 20, "against": "plan", "ratio": 1.25,
            "ratio_low": 1.125, "ratio_high": 1.5, "plan": "{}\n", "when_s": 1_700_000_000}
    return {**made, **changes}


def error(i, **changes):
    """An error of a value."""
    made = {"machine": "", "threads": 1, "waiting": "", "precision": "bfloat16", "backend": "errors", "library": "1",
            "pattern": "error of a value", "choice": 0, "label": f"error of conv_{i}", "kernel": "bfloat16",
            "computes": f"{i:016x}" * 4, "median_ms": 1e-6, "low_ms": 4e-6, "high_ms": 2.25e-6, "sure_low_ms": 0.0,
            "sure_high_ms": 0.0, "samples": 8, "how": "suffix runs"}
    return cost(i, **{**made, **changes})


class Stores(Case):
    def setUp(self):
        for file in self.folder.iterdir():
            file.unlink()
        self.store = self.path("costs.db")

    def exported(self, costs, runs=(), name="in.json"):
        path = self.path(name)
        pathlib.Path(path).write_text(json.dumps({"format": "collage costs", "version": 1, "costs": costs, "runs": list(runs)}))
        return path

    def fill(self, costs, runs=(), store=None):
        return self.json_of("store", "import", self.exported(costs, runs), "--store", store or self.store)

    def say(self, *words):
        """What a command says to people, which must fit a page."""
        done = self.succeeds("store", *words, "--store", self.store)
        self.assertEqual(done.stderr, "")
        self.fits_page(done.stdout)
        return done.stdout

    def ask(self, *words):
        return self.json_of("store", *words, "--store", self.store)

    def wrong(self, *words, saying="", code=2):
        self.refused("store", *words, "--store", self.store, saying=saying, code=code)


class Commands(Stores):
    def test_help(self):
        page = self.succeeds("store", "--help").stdout
        self.fits_page(page)
        for command in ("list", "show", "prune", "export", "import", "merge", "check"):
            self.assertIn(f"  {command} ", page)
            self.fits_page(self.succeeds("store", command, "--help").stdout)

    def test_errors_of_values(self):
        self.fill([cost(0), error(1), error(2, refusal="the outputs become infinite or NaN", median_ms=0.0)])
        page = self.say("list")
        self.assertRegex(page, r"error of conv_1 +bfloat16 +8 +0.1000 % +0.1500 %")
        self.assertRegex(page, r"error of conv_2 +bfloat16 +8 +not finite +not finite")
        self.assertIn("1 cost, 2 errors of values and 0 end-to-end results in", page)
        page = self.say("show", "conv_1")
        self.assertIn("0.1000 % at the outputs, on 8 samples", page)
        self.assertIn("0.2000 % of the value", page)
        done = self.ask("list")
        self.assertEqual([c["label"] for c in done["costs"]], ["conv+relu 1x64x56x0"])
        self.assertEqual([(e["label"], e["rounding"], e["nmse"], e["samples"]) for e in done["errors"]],
                         [("error of conv_1", "bfloat16", 1e-6, 8), ("error of conv_2", "bfloat16", None, 8)])
        self.say("prune", "--other-machines")
        done = self.ask("list")
        self.assertEqual((len(done["costs"]), len(done["errors"])), (0, 2))

    def test_list(self):
        self.fill([cost(0), cost(1), refused(2)], [run(0)])
        page = self.say("list")
        self.assertIn("conv+relu 1x64x56x1", page)
        self.assertIn("0.2500", page)
        self.assertIn("refused", page)
        self.assertIn("2023-11-14", page)
        self.assertIn("zoo:resnet50", page)
        self.assertIn("3 costs and 1 end-to-end result in", page)
        self.assertIn("0 costs and 0 end-to-end results in", self.say("list", "nothing like it"))

        done = self.ask("list")
        self.assertEqual(list(done), ["store", "costs", "errors", "runs"])
        self.assertEqual(done["store"], self.store)
        self.assertEqual([c["label"] for c in done["costs"]], [f"conv+relu 1x64x56x{i}" for i in (0, 2, 1)])
        for c in done["costs"]:
            self.assertEqual(len(c["id"]), 32)
        self.assertEqual({k: v for k, v in done["costs"][2].items() if k != "id"},
                         {k: v for k, v in cost(1).items() if k != "computes"})
        self.assertEqual(done["runs"][0]["ratio"], 1.25)

        def labels(*words):
            found = self.ask("list", *words)
            return [c["label"][-1] for c in found["costs"]], len(found["runs"])

        self.assertEqual(labels("--backend", "eigen"), (["0", "2"], 0))
        self.assertEqual(labels("--refused"), (["2"], 0))
        self.assertEqual(labels("56x1"), (["1"], 0))
        self.assertEqual(labels("resnet"), ([], 1))
        self.assertEqual(labels(done["costs"][0]["id"][:10]), (["0"], 0))

    def test_show(self):
        self.fill([cost(0), refused(2)], [run(0)])
        page = self.say("show", "56x0")
        for text in ("eigen, 3.2.0, compiled for x86-64-v3", "conv_relu, variant 0", "jit:avx2", "0.1250 ms",
                     "30, the middle 80 %", "some processor (avx2), 2 threads, waiting passive, fp32",
                     "2023-11-14 22:13:20 UTC, in a worker, warm"):
            self.assertIn(text, page)
        self.assertNotIn("56x2", page)
        self.assertIn("element 3 is 0.5", self.say("show", "56x2"))
        self.assertIn("1.250 to plan", self.say("show", "zoo:"))
        some = self.ask("list")["costs"][0]
        self.assertEqual(self.ask("show", some["id"][:8])["costs"], [some])
        self.wrong("show", "nothing", saying=": nothing: is neither the beginning of an id nor part of a label")

    def test_configurations_that_are_texts(self):
        self.fill([cost(0), cost(2, choice="loop v2 unroll 4")])
        self.assertIn("conv_relu, configuration loop v2 unroll 4", self.say("show", "56x2"))
        self.assertEqual([c["choice"] for c in self.ask("list")["costs"]], [0, "loop v2 unroll 4"])
        self.succeeds("store", "export", self.path("out.json"), "--store", self.store)
        costs = json.loads(pathlib.Path(self.path("out.json")).read_text())["costs"]
        self.assertEqual([c["choice"] for c in costs], [0, "loop v2 unroll 4"])

    def test_texts_that_move_the_cursor(self):
        self.fill([cost(0, label="a\u001b[2Jb\nc", kernel="\r\u007fk")], [run(0, name="\u0007")])
        for page in (self.say("list"), self.say("show", "b")):
            self.assertRegex(page, r"\A[^\x00-\x09\x0b-\x1f\x7f]*\Z")
            self.assertIn("a [2Jb c", page)
        self.assertEqual(self.ask("list")["costs"][0]["label"], "a\u001b[2Jb\nc")

    def test_prune(self):
        now = int(time.time())
        everything = [cost(0), cost(1, now), refused(2), refused(3, when_s=now), cost(4, now, machine="another")]

        def left(*words, costs, runs):
            pathlib.Path(self.store).unlink(missing_ok=True)
            self.fill(everything, [run(0)])
            said = self.ask("prune", *words)
            self.assertEqual(list(said), ["store", "costs", "runs", "damaged"])
            self.assertEqual((said["costs"], said["runs"], said["damaged"]), (5 - len(costs), 1 - runs, 0))
            rest = self.ask("list")
            self.assertEqual((sorted(int(c["label"][-1]) for c in rest["costs"]), len(rest["runs"])), (costs, runs))

        left("--older-than", "30", costs=[1, 3, 4], runs=0)
        left("--older-than", "30", "--refused", costs=[0, 1, 3, 4], runs=1)
        left("--refused", costs=[0, 1, 4], runs=1)
        left("--backend", "onednn", costs=[0, 2, 4], runs=1)
        left("--backend", "onednn", "--refused", costs=[0, 1, 2, 4], runs=1)
        left("--other-machines", costs=[], runs=0)
        left("--damaged", costs=[0, 1, 2, 3, 4], runs=1)
        pathlib.Path(self.store).unlink()
        self.fill(everything, [run(0)])
        self.assertIn("removed 5 costs and 1 end-to-end result from", self.say("prune", "--other-machines"))
        self.wrong("prune", saying="no condition is given")

    def test_export_and_import(self):
        first = self.fill([cost(i) for i in range(5)], [run(0)])
        self.assertEqual((first["added"], first["replaced"], first["kept"]), (6, 0, 0))
        self.assertEqual(self.ask("export", self.path("out.json"))["costs"], 5)
        text = pathlib.Path(self.path("out.json")).read_text()
        written = json.loads(text)
        self.assertEqual(written["costs"], [cost(i) for i in (0, 2, 4, 1, 3)])
        self.assertEqual(written["runs"], [run(0)])
        self.assertIn("kept 6", self.say("import", self.path("out.json")))
        newer = self.fill([cost(0, 1_800_000_000), cost(1, 1_600_000_000)])
        self.assertEqual((newer["added"], newer["replaced"], newer["kept"]), (0, 1, 1))
        self.succeeds("store", "import", self.path("out.json"), "--store", self.path("other.db"))
        self.succeeds("store", "export", self.path("again.json"), "--store", self.path("other.db"))
        self.assertEqual(pathlib.Path(self.path("again.json")).read_text(), text)

    def test_merge(self):
        self.fill([cost(0), cost(1)])
        self.fill([cost(1, 1_800_000_000), cost(2)], [run(0)], store=self.path("other.db"))
        said = self.ask("merge", self.path("other.db"))
        self.assertEqual(list(said), ["store", "file", "added", "replaced", "kept", "damaged"])
        self.assertEqual((said["added"], said["replaced"], said["kept"], said["damaged"]), (2, 1, 0, 0))
        self.assertIn("added 0", self.say("merge", self.path("other.db")))
        self.wrong("merge", self.path("none.db"), saying="none.db: cannot be read: No such file")
        fresh = self.path("fresh.db")
        self.refused("store", "merge", self.path("none.db"), "--store", fresh, saying="none.db")
        self.assertFalse(pathlib.Path(fresh).exists())

    def test_check(self):
        self.fill([cost(0), refused(2)], [run(0)])
        page = self.say("check")
        self.assertIn("sound", page)
        self.assertIn("2 costs (1 refused) and 1 end-to-end result", page)
        self.assertIn("write-ahead log", page)
        said = self.ask("check")
        self.assertEqual(list(said), ["store", "sound", "problems", "notes", "costs", "runs", "refused", "damaged", "bytes",
                                      "schema", "journal"])
        self.assertEqual((said["sound"], said["problems"], said["costs"], said["runs"]), (True, [], 2, 1))

    def test_the_default_store(self):
        caches = self.folder / "caches"
        self.addCleanup(lambda: subprocess.run(["rm", "-r", str(caches)], check=False))

        def with_caches(*words):
            return subprocess.run([PROGRAM, *words], capture_output=True, text=True, env=environment(XDG_CACHE_HOME=str(caches)))

        none = with_caches("store", "list")
        self.assertEqual(none.returncode, 2)
        self.assertIn(f"{caches}/collage/costs.db: cannot be read: No such file", none.stderr)
        self.assertFalse(caches.exists())  # looking makes nothing
        self.assertEqual(with_caches("store", "import", self.exported([cost(0)])).returncode, 0)
        self.assertIn("conv+relu", with_caches("store", "list").stdout)
        self.assertTrue((caches / "collage" / "costs.db").exists())


class Mistakes(Stores):
    def test_calls(self):
        self.refused("store", saying="no command is given; the commands are list, show, prune")
        self.refused("store", "lst", saying="there is no command lst; the commands are list, show, prune")
        self.refused("store", "--json", saying="there is no option --json before the command")
        self.wrong("list", "--old", saying="there is no option --old")
        self.wrong("list", "a", "b", saying="unexpected argument b")
        self.wrong("show", saying="TEXT is required")
        self.wrong("import", saying="FILE is required")
        self.wrong("prune", "--older-than", "soon", saying="'soon' is not a whole number from 0 to 36500")
        self.refused("store", "prune", "--older-than", saying="--older-than needs one value")

    def test_files(self):
        for command in (["list"], ["check"], ["show", "x"], ["prune", "--refused"], ["export", self.path("out.json")]):
            self.wrong(*command, saying="cannot be read: No such file")
        self.assertEqual(list(self.folder.iterdir()), [])
        self.store = str(self.folder)
        self.wrong("list", saying="is a folder")
        self.wrong("import", self.exported([]), saying="is a folder")
        self.store = self.path("none/costs.db")
        self.wrong("import", self.exported([]), saying="its folder does not exist; create the folder")
        self.store = self.path("text.db")
        for text in ("x", "x" * 5000):
            pathlib.Path(self.store).write_text(text)
            for command in (["list"], ["check"], ["import", self.exported([])]):
                self.wrong(*command, saying="not a file of SQLite")
            self.assertEqual(pathlib.Path(self.store).read_text(), text)

    def test_other_databases(self):
        with sqlite3.connect(self.store) as other:
            other.execute("CREATE TABLE costs (x)")
        other.close()
        self.wrong("list", saying="is another program's database")
        self.wrong("import", self.exported([]), saying="is another program's database")

    def test_a_newer_schema(self):
        self.fill([cost(0)])
        with sqlite3.connect(self.store) as store:
            store.execute("PRAGMA user_version=7")
        store.close()
        self.wrong("list", saying="was written by a newer collage: its schema is 7, and this one knows 1; use that version, or name "
                                  "another file for the store")

    def test_imports(self):
        self.fill([cost(0)])

        def wrong(text, saying):
            pathlib.Path(self.path("in.json")).write_text(text)
            self.wrong("import", self.path("in.json"), saying=f"in.json: {saying}")

        wrong("", "is not JSON: error at byte 1")
        wrong("{}", "is not an export of a store")
        wrong('{"format": "collage costs", "version": 9}', "has version 9 of the export format")
        for member in cost(0):
            broken = cost(1)
            del broken[member]
            self.wrong("import", self.exported([cost(2), broken]), saying=f"costs[1].{member} is missing")
        self.wrong("import", self.exported([cost(1, median_ms=-1)]), saying="costs[0].median_ms is not a finite number of at least 0")
        self.wrong("import", self.exported([cost(1, computes="xyz")]), saying="costs[0].computes is not made of words")
        self.wrong("import", self.exported([cost(1, threads=0)]), saying="costs[0].threads is not a whole number")
        self.wrong("import", self.path("none.json"), saying="none.json: cannot be read")
        self.assertEqual(len(self.ask("list")["costs"]), 1)  # all of a file or nothing

    def test_changed_entries(self):
        self.fill([cost(0), cost(1)])
        with sqlite3.connect(self.store) as store:
            store.execute("UPDATE costs SET median_ms = 0.001 WHERE choice = 1")
        store.close()
        done = self.succeeds("store", "list", "--store", self.store)
        self.assertIn("1 cost and 0", done.stdout)
        self.assertIn("damaged entries are left out; see collage store check", done.stderr)
        done = collage("store", "check", "--store", self.store)
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 entry is damaged; remove it with collage store prune --damaged", " ".join(done.stdout.split()))
        self.assertEqual(self.ask("prune", "--damaged")["damaged"], 1)
        self.assertTrue(self.ask("check")["sound"])

    def test_damaged_pages(self):
        self.fill([cost(i) for i in range(300)])
        good = pathlib.Path(self.store).read_bytes()
        pathlib.Path(self.store).write_bytes(good[:4096] + b"\x5a" * (len(good) - 4096))
        self.wrong("list", saying="is damaged (", code=1)
        self.wrong("import", self.exported([cost(1000)]), saying="is damaged (", code=1)
        done = collage("store", "check", "--store", self.store)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("problem: its pages are damaged", done.stdout)
        pathlib.Path(self.store).write_bytes(good[:5000])
        done = collage("store", "check", "--store", self.store)
        self.assertEqual(done.returncode, 1)

    def test_a_store_that_cannot_be_written(self):
        self.fill([cost(0)])
        if os.geteuid() == 0:
            self.skipTest("root may write everything")
        os.chmod(self.store, 0o444)
        self.assertIn("1 cost and", self.say("list"))
        self.wrong("import", self.exported([cost(1)]), saying="cannot be written: Permission denied")
        self.assertIn("note: cannot be written", self.say("check"))

    def test_several_programs_at_once(self):
        files = [self.exported([cost(100 * p + i) for i in range(100)], name=f"in{p}.json") for p in range(4)]
        children = [subprocess.Popen([PROGRAM, "store", "import", file, "--store", self.store], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, env=environment()) for file in files]
        for child in children:
            _, said = child.communicate(timeout=100)
            self.assertEqual((child.returncode, said), (0, b""))
        self.assertEqual(len(self.ask("list")["costs"]), 400)
        self.assertTrue(self.ask("check")["sound"])


if __name__ == "__main__":
    unittest.main()
