#!/usr/bin/env python3
"""Every command on a small network: what it prints, what it writes, what its JSON holds."""
import json
import os
import pathlib
import pty
import signal
import subprocess
import unittest

from program import (BERT, BERT_SHAPE, MOBILENET, PROGRAM, Case, collage, complete_backend, environment, floats, npy,
                     placed_backends)

ZOO = ["bert-paper", "dcgan-paper", "nasnet-a-paper", "resnet50-3d-paper", "resnext50-paper", "resnet50", "mobilenet-v2",
       "bert-base-128"]


def on_terminal(*words, **more):
    """What the program writes when a person watches, standard output and error together."""
    ours, its = pty.openpty()
    child = subprocess.Popen([PROGRAM, *words], stdin=its, stdout=its, stderr=its, env=environment(TERM="xterm", **more))
    os.close(its)
    text = b""
    try:
        while block := os.read(ours, 65536):
            text += block
    except OSError:  # the terminal's other end is gone
        pass
    os.close(ours)
    assert child.wait() == 0, text
    return text.decode()


class Pages(Case):
    def test_help(self):
        page = self.succeeds("--help").stdout
        self.fits_page(page)
        self.assertIn("Examples:", page)
        for command in ("backends", "zoo", "inspect", "tune", "run", "bench", "explain", "verify", "replay",
                        "store"):
            self.assertIn(f"  {command} ", page)
            self.fits_page(self.succeeds(command, "--help").stdout)
        self.assertRegex(self.succeeds("--version").stdout, r"\Acollage \d+\.\d+\.\d+\n\Z")

    def test_backends(self):
        self.fits_page(self.succeeds("backends").stdout)
        backends = json.loads(self.succeeds("backends", "--json").stdout)
        names = [b["name"] for b in backends]
        self.assertEqual(sorted(names), ["eigen", "onednn", "openblas", "portable", "reference", "stacked"])
        for b in backends:
            self.assertEqual(list(b), ["name", "available", "version", "details", "reason", "patterns", "rule"])
            self.assertTrue(b["available"] or b["reason"])
            self.assertEqual(b["available"] and b["name"] != "reference", bool(b["patterns"] or b["rule"]) and b["available"])
            self.assertEqual(b["rule"], b["available"] and b["name"] == "stacked")
            for p in b["patterns"]:
                self.assertEqual(list(p), ["name", "describe"])
                self.assertIn("(", p["describe"])

    def test_coverage(self):
        page = self.succeeds("backends", "--coverage").stdout
        self.fits_page(page)
        lines = page.splitlines()
        listed = [b["name"] for b in json.loads(self.succeeds("backends", "--json").stdout)
                  if b["patterns"] and b["name"] != "reference"]
        self.assertEqual(lines[0].split(), ["operator", *listed])
        rows = json.loads(self.succeeds("backends", "--coverage", "--json").stdout)
        self.assertEqual([row["operator"] for row in rows], [line.split("  ")[0] for line in lines[1:len(rows) + 1]])
        self.assertEqual(lines[len(rows) + 1:], ["", "By a rule, which is asked when a network is placed: stacked."])
        for row in rows:
            self.assertEqual(row["backends"]["portable"], {"alone": True, "fused": 0})
            for cell in row["backends"].values():
                self.assertEqual(list(cell), ["alone", "fused"])
                self.assertTrue(cell["alone"] or cell["fused"])
        self.assertEqual(rows[-1]["operator"], "any other")

    def test_zoo(self):
        self.fits_page(self.succeeds("zoo").stdout)
        self.assertEqual([n["name"] for n in json.loads(self.succeeds("zoo", "--json").stdout)], ZOO)

    def test_inspect(self):
        for name in ZOO:
            page = self.succeeds("inspect", f"zoo:{name}", timeout=20).stdout
            self.fits_page(page)
            self.assertIn("parameters", page)
        nodes = json.loads(self.succeeds("inspect", BERT, "--json").stdout)["nodes"]
        self.assertEqual(nodes[0]["name"], "layer_norm_0")
        self.succeeds("inspect", BERT, "--dot", self.path("bert.dot"))
        text = (self.folder / "bert.dot").read_text()
        self.assertTrue(text.startswith("digraph") and "layer_norm_0" in text)

    def test_readers_that_go_away(self):
        child = subprocess.Popen([PROGRAM, "inspect", "zoo:nasnet-a-paper", "--json"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=environment())
        child.stdout.close()
        self.assertEqual(child.stderr.read(), b"")
        child.stderr.close()
        self.assertEqual(child.wait(), 0)

    def test_colours(self):
        self.assertNotIn("\033", self.succeeds("zoo").stdout)
        self.assertIn("\033[1m", on_terminal("zoo"))
        self.assertNotIn("\033", on_terminal("zoo", NO_COLOR="1"))


class Placed(Case):
    """What needs a plan; it is made once, with one thread, by `tune`."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.backends = placed_backends()
        cls.complete = complete_backend()
        cls.plan = str(cls.folder / "bert.json")
        cls.tuned = collage("tune", BERT, "--plan", cls.plan, "--threads", "1")
        assert cls.tuned.returncode == 0, cls.tuned.stderr

    def test_tune(self):
        self.fits_page(self.tuned.stdout)
        self.assertIn("measuring 1 of ", self.tuned.stderr)
        self.assertIn("remain", self.tuned.stderr)
        plan = json.loads(pathlib.Path(self.plan).read_text())
        self.assertEqual((plan["format"], plan["version"], plan["network"], plan["threads"]), ("collage plan", 2, BERT, 1))
        self.assertEqual([s["name"] for s in plan["singles"]], self.backends)
        self.assertEqual([r["name"] for r in plan["runs"]], ["plan", *self.backends])
        self.assertLessEqual(plan["lower_bound_ms"], plan["chosen"]["cost_ms"])
        covered = sorted(n for g in plan["chosen"]["groups"] for n, _ in g["nodes"])
        self.assertEqual(covered, list(range(232)))

    def test_tune_says_json(self):
        done = self.json_of("tune", MOBILENET, "--plan", self.path("m.json"), "--backends", self.complete, "--threads", "1")
        self.assertEqual((done["network"], done["plan"], done["threads"]), (MOBILENET, self.path("m.json"), 1))
        self.assertEqual([r["name"] for r in done["runs"]], ["plan", self.complete])
        self.assertEqual(done["best_single"], self.complete)
        self.assertGreater(done["measured"], 0)
        self.assertEqual(done["distinct"], done["measured"] + done["from_store"] + done["skipped"] + done["refused"])

    def test_what_is_in_the_store_is_not_measured_again(self):
        words = ("tune", BERT, "--plan", self.path("again.json"), "--backends", self.complete, "--threads", "1")
        store = ("--store", self.path("costs.db"))
        first = self.json_of(*words, *store)
        self.assertGreater(first["measured"], 0)
        self.assertEqual((first["from_store"], first["store"]), (0, self.path("costs.db")))
        second = self.json_of(*words, *store)
        self.assertEqual((second["measured"], second["from_store"]), (0, first["measured"]))
        self.assertEqual([r["name"] for r in second["runs"]], ["plan", self.complete, "previous"])
        listed = self.json_of("store", "list", *store)
        self.assertEqual(len(listed["costs"]), first["measured"] + first["refused"])
        none = self.json_of(*words, "--store", "none", "--budget", "0.01")
        self.assertEqual((none["from_store"], none["store"], none["interrupted"]), (0, None, True))

    def test_interrupted_it_leaves_a_plan(self):
        plan = self.path("interrupted.json")
        words = [PROGRAM, "tune", MOBILENET, "--plan", plan, "--threads", "1", "--store", self.path("interrupted.db")]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as tuning:
            tuning.stderr.readline()  # it measures
            tuning.send_signal(signal.SIGINT)
            said, told = tuning.communicate(timeout=300)
        self.assertEqual(tuning.returncode, 0, told)
        self.assertIn("the best placement so far", " ".join(said.split()))
        self.json_of("explain", MOBILENET, "--plan", plan)
        self.assertEqual(self.json_of("store", "check", "--store", self.path("interrupted.db"))["problems"], [])

    def test_bench(self):
        done = self.json_of("bench", BERT, "--plan", self.plan, "--seconds", "1")
        self.assertEqual(list(done), ["network", "threads", "precision", "best_single", "ratio", "plans"])
        self.assertEqual((done["network"], done["threads"], done["precision"]), (BERT, 1, "fp32"))
        self.assertEqual([p["name"] for p in done["plans"]], ["plan", *self.backends])
        for p in done["plans"]:
            self.assertEqual(list(p), ["name", "median_ms", "low_ms", "high_ms", "runs", "ratio", "ratio_low", "ratio_high"])
            self.assertTrue(0 < p["low_ms"] <= p["median_ms"] <= p["high_ms"])
            self.assertGreaterEqual(p["runs"], 2)  # one that is far behind runs no more
        best = min(done["plans"][1:], key=lambda p: p["median_ms"])
        self.assertEqual(done["best_single"], best["name"])
        self.assertGreater(done["ratio"], 0)
        page = self.succeeds("bench", BERT, "--plan", self.plan, "--seconds", "0").stdout
        self.fits_page(page)
        self.assertIn("Ratio of the best single backend", page)

    def test_explain(self):
        page = self.succeeds("explain", BERT, "--plan", self.plan, "--dot", self.path("placed.dot")).stdout
        self.fits_page(page)
        plan = json.loads(pathlib.Path(self.plan).read_text())
        for group in plan["chosen"]["groups"]:
            if group["backend"] != "alias":
                self.assertIn(group["backend"], page)
                self.assertIn(f"{group['cost_ms']:.4f}", page)
        self.assertIn("fillcolor", (self.folder / "placed.dot").read_text())
        done = self.json_of("explain", BERT, "--plan", self.plan)
        self.assertEqual(done["chosen"], plan["chosen"])
        self.assertIn("refusals", done)

    def test_verify(self):
        done = self.json_of("verify", BERT, "--plan", self.plan)
        self.assertEqual(list(done), ["network", "passed", "checks"])
        self.assertIs(done["passed"], True)
        self.assertEqual([c["plan"] for c in done["checks"]], ["plan", *self.backends])
        for c in done["checks"]:
            self.assertEqual(list(c), ["plan", "worst_relative", "passed", "first_differing_node"])
            self.assertIs(c["passed"], True)
            self.assertTrue(0 <= c["worst_relative"] < 1e-4)
            self.assertIsNone(c["first_differing_node"])
        self.fits_page(self.succeeds("verify", BERT, "--plan", self.plan, "--seed", "7").stdout)

    def run_into(self, name, *words):
        self.succeeds("run", BERT, "--plan", self.plan, "--output", self.path(name), *words)
        return floats(self.path(f"{name}/output.npy"))

    def test_run(self):
        values = [((i * 7919) % 2001 - 1000) / 1000 for i in range(64 * 256)]
        (self.folder / "given.npy").write_bytes(npy(BERT_SHAPE, values=values))
        given = self.run_into("given", "--input", f"input={self.path('given.npy')}")
        self.assertEqual(len(given), 64 * 256)
        one, again, two = self.run_into("one"), self.run_into("again", "--input", "input=random"), self.run_into("two", "--seed", "2")
        self.assertEqual(one, again)
        self.assertNotEqual(one, two)
        self.assertNotEqual(one, given)

        done = self.json_of("run", BERT, "--plan", self.plan, "--profile")
        self.assertEqual([o["name"] for o in done["outputs"]], ["output"])
        self.assertEqual(done["outputs"][0]["shape"], list(BERT_SHAPE))
        plan = json.loads(pathlib.Path(self.plan).read_text())
        kernels = [(g["backend"], g["kernel"]) for g in plan["chosen"]["groups"] if g["backend"] != "alias"]
        self.assertEqual([(s["backend"], s["kernel"]) for s in done["steps"]], kernels)  # what is run is what was measured
        self.assertTrue(all(s["median_ms"] > 0 for s in done["steps"]))
        page = self.succeeds("run", BERT, "--plan", self.plan, "--profile").stdout
        self.fits_page(page)
        self.assertIn("planned ms", page)

    def test_without_a_plan(self):
        done = self.succeeds("verify", BERT, "--backends", self.complete, "--threads", "1", "--quiet")
        self.assertEqual(done.stderr, "")
        self.assertIn("passed", done.stdout)

    def test_progress_on_a_terminal(self):
        text = on_terminal("tune", BERT, "--plan", self.path("watched.json"), "--backends", self.complete, "--threads", "1")
        self.assertIn("\r\033[Kmeasuring 2 of ", text)
        self.assertIn("best so far", text)
        quiet = on_terminal("explain", BERT, "--plan", self.plan, "--quiet")
        self.assertNotIn("\r\033[K", quiet)


if __name__ == "__main__":
    unittest.main()
