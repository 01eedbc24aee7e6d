#!/usr/bin/env python3
"""Every command on a small network: what it prints, what it writes, what its JSON holds."""
import contextlib
import copy
import ctypes
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import time
import unittest

import models
from json_schema import complaints
from program import (BERT, BERT_SHAPE, MOBILENET, PROGRAM, Case, collage, complete_backend, environment, floats, npy,
                     placed_backends)

ZOO = ["bert-paper", "dcgan-paper", "nasnet-a-paper", "resnet50-3d-paper", "resnext50-paper", "resnet50", "mobilenet-v2",
       "bert-base-128"]
SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "docs" / "plan.schema.json").read_text())


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


SET_MDWE, GET_MDWE, REFUSE_GAIN = 65, 66, 1  # of prctl; Linux has them since 6.3


def deny_executable_memory():
    """In a child before its program begins: memory that was writable never becomes executable."""
    ctypes.CDLL(None).prctl(SET_MDWE, REFUSE_GAIN, 0, 0, 0)


def can_deny_executable_memory():
    """Whether this system keeps that for a program that the child begins."""
    program = f"import ctypes; print(ctypes.CDLL(None).prctl({GET_MDWE}, 0, 0, 0, 0))"
    done = subprocess.run([sys.executable, "-c", program], preexec_fn=deny_executable_memory, capture_output=True, text=True)
    return done.stdout.strip() == str(REFUSE_GAIN)


def round_6(number):
    return float(f"{number:.6g}")


class Pages(Case):
    def test_help(self):
        page = self.succeeds("--help").stdout
        self.fits_page(page)
        self.assertIn("Examples:", page)
        for command in ("backends", "zoo", "inspect", "tune", "run", "bench", "explain", "diff", "report", "verify", "replay",
                        "calibrate", "store"):
            self.assertIn(f"  {command} ", page)
            self.fits_page(self.succeeds(command, "--help").stdout)

    def test_version(self):
        short = self.succeeds("--version").stdout
        self.assertRegex(short, r"\Acollage \d+\.\d+\.\d+\n\Z")
        page = self.succeeds("--version", "--verbose").stdout
        self.fits_page(page)
        self.assertTrue(page.startswith(short.strip() + ", licence "), page)
        told = json.loads(self.succeeds("--version", "--verbose", "--json").stdout)
        self.assertEqual(list(told), ["version", "licence", "compiler", "system", "build_type", "flags", "adapters",
                                      "libraries", "backends"])
        self.assertEqual(f"collage {told['version']}", short.strip())
        self.assertRegex(told["compiler"], r"\d")
        libraries = {library["name"]: library for library in told["libraries"]}
        for name, found in libraries.items():
            self.assertEqual(list(found), ["name", "version", "licence", "how", "for"])
            self.assertIn(found["how"], ("inside", "shared", "opened"))
            self.assertTrue(found["licence"] and found["for"], name)
            # OpenBLAS is any that is there when it is opened.
            self.assertRegex(found["version"] or ("1" if name == "OpenBLAS" else ""), r"\d", name)
            self.assertIn(name, page)
        for name in ("Boost", "SQLite", "nlohmann-json", "CLI11"):
            self.assertIn(name, libraries)
        built = json.loads(self.succeeds("backends", "--json").stdout)
        self.assertEqual(told["backends"], [{k: b[k] for k in ("name", "available", "version")} for b in built])
        self.refused("--version", "--json", saying="--json needs --verbose")
        self.refused("--version", "now", saying="unexpected argument now")
        self.refused("--version", "--verbos", saying="there is no option --verbos")

    def test_backends(self):
        self.fits_page(self.succeeds("backends").stdout)
        self.fits_page(self.succeeds("backends", "--all").stdout)
        backends = json.loads(self.succeeds("backends", "--all", "--json").stdout)
        names = [b["name"] for b in backends]
        self.assertEqual(sorted(names), ["cublas", "cuda", "eigen", "jit", "onednn", "openblas", "openvino", "openvino-bf16",
                                         "openvino-int8", "portable", "reference", "stacked"])
        built = json.loads(self.succeeds("backends", "--json").stdout)
        self.assertEqual(built, [b for b in backends if "was built without it" not in b["reason"]])
        for b in backends:
            self.assertEqual(list(b), ["name", "available", "version", "details", "reason", "patterns", "rule", "regions", "rounds_to", "variant_of"])
            self.assertTrue(b["available"] or b["reason"])
            self.assertEqual(b["available"] and b["name"] != "reference", bool(b["patterns"] or b["rule"] or b["regions"]) and b["available"])
            self.assertEqual(b["rule"], b["available"] and b["name"] == "stacked")
            if b in built:
                self.assertEqual(b["regions"], b["name"].startswith("openvino"))
                self.assertEqual(b["variant_of"], "openvino" if b["name"].startswith("openvino-") else "")
                self.assertEqual(b["rounds_to"], {"openvino-bf16": "bfloat16", "openvino-int8": "uint8"}.get(b["name"], ""))
            for p in b["patterns"]:
                self.assertEqual(list(p), ["name", "describe"])
                self.assertIn("(", p["describe"])

    def test_generated_code_has_a_replica_where_memory_may_not_be_executable(self):
        if "jit" not in placed_backends():
            self.skipTest("no backend generates code")
        if not can_deny_executable_memory():
            self.skipTest("this system cannot deny it")
        denied = {"preexec_fn": deny_executable_memory}
        details = {b["name"]: b["details"] for b in json.loads(self.succeeds("backends", "--json", **denied).stdout)}
        self.assertRegex(details["jit"], r"\Areplica for \S+: the system does not let generated code be executable \(mprotect: ")
        self.assertIn("replica for", self.succeeds("backends", **denied).stdout)
        allowed = {b["name"]: b["details"] for b in json.loads(self.succeeds("backends", "--json").stdout)}
        self.assertNotIn("mprotect", allowed["jit"])
        plan = self.path("replica.json")
        self.succeeds("tune", BERT, "--plan", plan, "--place", "priority", "--backends", "jit,portable", "--quiet", **denied)
        kernels = {g["kernel"] for g in json.loads(pathlib.Path(plan).read_text())["chosen"]["groups"] if g.get("backend") == "jit"}
        self.assertTrue(kernels)
        for kernel in kernels:
            self.assertIn(", replica ", kernel)
        self.succeeds("verify", BERT, "--plan", plan, **denied)

    def test_coverage(self):
        page = self.succeeds("backends", "--coverage").stdout
        self.fits_page(page)
        lines = page.splitlines()
        listed = [b["name"] for b in json.loads(self.succeeds("backends", "--json").stdout)
                  if b["patterns"] and b["name"] != "reference"]
        self.assertEqual(lines[0].split(), ["operator", *listed])
        rows = json.loads(self.succeeds("backends", "--coverage", "--json").stdout)
        self.assertEqual([row["operator"] for row in rows], [line.split("  ")[0] for line in lines[1:len(rows) + 1]])
        asked = [b["name"] for b in json.loads(self.succeeds("backends", "--json").stdout) if b["rule"] or b["regions"]]
        self.assertEqual(lines[len(rows) + 1], "")
        self.assertEqual(" ".join(lines[len(rows) + 2:]),
                         "Backends whose operators depend on the network (fusion rule or regions): " + ", ".join(asked) + ".")
        for row in rows:
            self.assertTrue(row["backends"]["portable"]["alone"])
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

    def test_pages_start_no_threads(self):
        waiting = {k: v for k, v in environment().items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
        for words in (("--help",), ("--version",), ("zoo",), ("backends", "--help")):
            ours, its = os.pipe()
            os.set_blocking(its, False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(its, bytes(4096))
            os.set_blocking(its, True)
            child = subprocess.Popen([PROGRAM, *words], stdout=its, env=waiting)  # waits until somebody reads its page
            os.close(its)
            process, asleep = pathlib.Path(f"/proc/{child.pid}"), 0
            while asleep < 4:
                time.sleep(0.05)
                asleep = asleep + 1 if (process / "stat").read_text().rsplit(")", 1)[1].split()[0] == "S" else 0
            self.assertEqual(len(list((process / "task").iterdir())), 1, words)
            os.close(ours)
            self.assertEqual(child.wait(), 0)

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
        cls.small = models.small_network(cls.folder)
        cls.plan = str(cls.folder / "bert.json")
        cls.tuned = collage("tune", BERT, "--plan", cls.plan, "--threads", "1", "--regions", "2")
        assert cls.tuned.returncode == 0, cls.tuned.stderr

    def test_tune(self):
        self.fits_page(self.tuned.stdout)
        self.assertIn("measuring 1 of ", self.tuned.stderr)
        self.assertIn("remain", self.tuned.stderr)
        said = re.search(r"(\d+) candidates, (\d+) of them different: (\d+) measured in [\d.]+ s"
                         r"(?: \(\d+ s of it waiting for an undisturbed machine\))?((?:, \d+ (?:from the store|refused|skipped))*)\. ",
                         " ".join(self.tuned.stdout.split()))
        self.assertIsNotNone(said, self.tuned.stdout)
        self.assertGreaterEqual(int(said[1]), int(said[2]))
        self.assertEqual(int(said[2]), int(said[3]) + sum(map(int, re.findall(r"\d+", said[4]))))
        plan = json.loads(pathlib.Path(self.plan).read_text())
        self.assertEqual((plan["format"], plan["version"], plan["network"], plan["threads"]), ("collage plan", 7, BERT, 1))
        self.assertEqual([s["name"] for s in plan["singles"]], self.backends)
        operators = ["operators"] if "openvino" in self.backends else []
        self.assertEqual([r["name"] for r in plan["runs"]], ["plan", *self.backends, *operators])
        self.assertEqual("The search over regions tried" in self.tuned.stdout, bool(operators))
        self.assertLessEqual(plan["lower_bound_ms"], plan["chosen"]["cost_ms"])
        covered = sorted(n for g in plan["chosen"]["groups"] for n, _ in g["nodes"])
        self.assertEqual(covered, list(range(232)))

    def test_autotune(self):
        if "jit" not in self.backends:
            self.skipTest("no backend has search spaces")
        plan = self.path("autotuned.json")
        words = ("tune", BERT, "--plan", plan, "--threads", "1", "--backends", "jit,portable", "--store", self.path("autotune.db"))
        told = self.succeeds(*words, "--autotune", "3")
        self.fits_page(told.stdout)
        self.assertRegex(" ".join(told.stdout.split()), r"The search of whole configuration spaces measured \d+ configurations? in \d+ s\. ")
        again = json.loads(self.succeeds(*words, "--quiet", "--json").stdout)
        self.assertIsNone(again["autotune"])
        tuned = json.loads(self.succeeds(*words, "--autotune", "0.5", "--quiet", "--json").stdout)["autotune"]
        self.assertGreater(tuned["before_ms"], 0)
        self.assertLess(tuned["searching_s"], tuned["seconds"])
        self.assertIn("--autotune", collage("tune", BERT, "--plan", plan, "--autotune", "long").stderr)

    def test_plan_files_keep_to_their_schema(self):
        self.assertEqual(complaints(json.loads(pathlib.Path(self.plan).read_text()), SCHEMA), [])
        small = self.path("small.json")
        self.succeeds("tune", MOBILENET, "--plan", small, "--place", "priority", "--quiet")
        plan = json.loads(pathlib.Path(small).read_text())
        self.assertEqual(complaints(plan, SCHEMA), [])
        # Without costs, estimates follow the order of the backends. models.py has plans of estimates.
        self.succeeds("tune", BERT, "--plan", small, "--backends", "portable", "--place", "estimate", "--store", "none", "--quiet")
        self.assertEqual(json.loads(pathlib.Path(small).read_text())["origin"], "priority")
        # What the schema refuses, the program refuses: every member is of its type, and older plans are without a few.
        optional = ("algorithms", "memory", "algorithm", "error_bound", "estimate")
        spoilt = self.path("spoilt.json")
        places = [((), key) for key in plan] + [(("chosen", "groups", 0), key) for key in plan["chosen"]["groups"][0]]
        places += [(("chosen",), key) for key in plan["chosen"]] + [(("inputs", 0), key) for key in plan["inputs"][0]]
        places += [(("backends", 0), key) for key in plan["backends"][0]]
        for i, (path, key) in enumerate(places):
            wrong = copy.deepcopy(plan)
            at = wrong
            for step in path:
                at = at[step]
            if i % 2 and key not in optional:
                del at[key]
            else:
                at[key] = {"x": True}
            self.assertNotEqual(complaints(wrong, SCHEMA), [], f"{path} {key}")
            pathlib.Path(spoilt).write_text(json.dumps(wrong))
            self.refused("explain", MOBILENET, "--plan", spoilt, "--quiet", saying=spoilt)

    def test_tune_says_json(self):
        done = self.json_of("tune", self.small, "--plan", self.path("m.json"), "--backends", self.complete, "--threads", "1")
        self.assertEqual((done["network"], done["plan"], done["threads"]), (self.small, self.path("m.json"), 1))
        self.assertEqual([r["name"] for r in done["runs"]], ["plan", self.complete])
        self.assertEqual(done["best_single"], self.complete)
        self.assertGreater(done["measured"], 0)
        self.assertEqual(done["distinct"], done["measured"] + done["from_store"] + done["skipped"] + done["refused"])
        self.assertEqual((done["where"], done["compared_before"]), ("in a worker", False))

    def test_complete_and_recheck(self):
        words = ("tune", self.small, "--plan", self.path("complete.json"), "--backends", self.complete, "--threads", "1", "--store",
                 self.path("complete.db"))
        done = self.json_of(*words, "--complete")
        self.assertEqual((done["skipped"], done["compared_before"]), (0, False))
        self.assertIs(self.json_of(*words, "--recheck")["compared_before"], False)
        again = self.json_of(*words)
        page = self.succeeds(*words, "--quiet").stdout
        self.assertEqual("--recheck runs it again" in " ".join(page.split()), again["compared_before"])

    def test_kernels_that_keep_nan_and_infinity(self):
        precision = "fp32 with NaN and infinity kept"
        plan = self.path("kept.json")
        some = "onednn,portable" if "onednn" in self.backends else self.complete
        made = self.json_of("tune", self.small, "--plan", plan, "--backends", some, "--threads", "1", "--keep-non-finite")
        self.assertEqual(made["precision"], precision)
        page = self.succeeds("explain", self.small, "--plan", plan, "--keep-non-finite").stdout
        self.assertIn(precision, " ".join(page.split()))
        # oneDNN makes 0 of NaN where a product and its relu are one.
        kinds = [n["kind"] for n in self.json_of("inspect", self.small)["nodes"]]
        for group in json.loads(pathlib.Path(plan).read_text())["chosen"]["groups"]:
            if group.get("backend") == "onednn" and len(group["nodes"]) > 1:
                self.assertNotIn("relu", [kinds[n] for n, _ in group["nodes"]])
        self.succeeds("verify", self.small, "--plan", plan)
        self.refused("run", BERT, "--plan", self.plan, "--keep-non-finite", "--quiet",
                     saying=f"{self.plan}: is a plan in fp32, not in {precision}; place the network again")

    def test_a_previous_plan_that_no_longer_fits_is_a_note(self):
        plan = pathlib.Path(self.path("previous.json"))
        words = ("tune", self.small, "--plan", str(plan), "--backends", self.complete, "--place", "priority")
        self.succeeds(*words, "--threads", "1", "--quiet")
        note = "note: the previous plan in the file is not compared: "
        self.assertIn(note + f"{plan}: is a plan for 1 thread, not 2", self.succeeds(*words, "--threads", "2").stderr)
        old = json.loads(plan.read_text())
        next(b for b in old["backends"] if b["name"] == self.complete)["version"] = "0.0.1"
        plan.write_text(json.dumps(old))
        self.assertIn(note + f"{plan}: was made with {self.complete} 0.0.1", self.succeeds(*words, "--threads", "2").stderr)
        self.assertNotIn("note", self.succeeds(*words, "--threads", "2").stderr)

    def test_memory_of_weights(self):
        plan = self.path("memory.json")
        words = ("--backends", self.complete, "--threads", "1", "--place", "priority", "--store", "none", "--quiet")
        self.succeeds("tune", BERT, "--plan", plan, *words)
        usual = json.loads(pathlib.Path(plan).read_text())["memory"]
        self.assertLessEqual(usual["weights"], usual["bound"])
        self.assertLessEqual(1.5 * usual["network"], usual["bound"] + 2048)
        page = " ".join(self.succeeds("explain", BERT, "--plan", plan).stdout.split())
        self.assertRegex(page, r"Its weights take [0-9.]+ MB, [0-9.]+ times the network's [0-9.]+ MB; at most [0-9.]+ MB are allowed\.")
        self.assertEqual(self.json_of("explain", BERT, "--plan", plan)["memory"], usual)
        self.succeeds("tune", BERT, "--plan", plan, *words, "--memory", "100MB")
        self.assertEqual(json.loads(pathlib.Path(plan).read_text())["memory"], {**usual, "bound": 100_000_000})
        self.refused("tune", BERT, "--plan", plan, *words, "--memory", "0.1x",
                     saying=f"network {BERT}: no plan was found whose weights take at most ")

    def test_what_is_in_the_store_is_not_measured_again(self):
        words = ("tune", self.small, "--plan", self.path("again.json"), "--backends", self.complete, "--threads", "1")
        store = ("--store", self.path("costs.db"))
        first = self.json_of(*words, *store)
        self.assertGreater(first["measured"], 0)
        self.assertEqual((first["from_store"], first["store"]), (0, self.path("costs.db")))
        second = self.json_of(*words, *store)
        self.assertEqual((second["measured"], second["from_store"]), (0, first["measured"]))
        self.assertEqual((second["compared_before"], second["runs"]), (True, first["runs"]))  # nothing ran
        listed = [c for c in self.json_of("store", "list", *store)["costs"] if c["backend"] == self.complete]
        self.assertEqual(len(listed), first["measured"] + first["refused"] + first["conversions"])
        again = self.json_of(*words, *store, "--recheck")
        self.assertIs(again["compared_before"], False)
        self.assertEqual([r["name"] for r in again["runs"]], ["plan", self.complete, "previous"])
        for budget in ("0.01s", "1e-9min"):  # which is not 0, as long as it takes
            none = self.json_of(*words, "--store", "none", "--budget", budget)
            self.assertEqual((none["from_store"], none["store"], none["interrupted"]), (0, None, True))

    def test_bench(self):
        done = self.json_of("bench", BERT, "--plan", self.plan, "--seconds", "1")
        self.assertEqual(list(done), ["network", "threads", "precision", "best_single", "ratio", "plans", "holdups", "arena_bytes",
                                      "arena_lower_bound"])
        self.assertTrue(0 < done["arena_lower_bound"] <= done["arena_bytes"] <= 1.05 * done["arena_lower_bound"])
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
        self.assertIn(f"A run of the plan needs an arena of {done['arena_bytes'] / 1e6:.1f} MB", page)

    def test_explain(self):
        page = self.succeeds("explain", BERT, "--plan", self.plan, "--dot", self.path("placed.dot")).stdout
        self.fits_page(page)
        plan = json.loads(pathlib.Path(self.plan).read_text())
        for group in plan["chosen"]["groups"]:
            if group["step"] != "view":
                self.assertIn(group.get("backend", group["step"]), page)
                self.assertIn(f"{group['cost_ms']:.4f}", page)
        self.assertIn("fillcolor", (self.folder / "placed.dot").read_text())
        done = self.json_of("explain", BERT, "--plan", self.plan)
        self.assertEqual(done["chosen"], plan["chosen"])
        self.assertIn("refusals", done)
        self.assertIn(f"A run needs an arena of {done['arena_bytes'] / 1e6:.1f} MB, 1.0", page)
        self.assertAlmostEqual(done["additive_error"], plan["chosen"]["cost_ms"] / plan["runs"][0]["median_ms"] - 1, places=4)
        self.assertIn(f"The sum of the groups' costs is {100 * abs(done['additive_error']):.1f} %", " ".join(page.split()))
        self.assertEqual(sum(t["nodes"] for t in done["totals"]), 232)
        for total in done["totals"]:
            groups = [g for g in plan["chosen"]["groups"] if g.get("backend", g["step"]) == total["backend"]]
            self.assertEqual(total["groups"], len(groups))
            groups += [x for x in plan["chosen"]["conversions"] if x["backend"] == total["backend"]]
            self.assertAlmostEqual(total["cost_ms"], sum(g["cost_ms"] for g in groups), delta=1e-5 * total["cost_ms"] + 1e-9)

    def test_explain_prints_the_program(self):
        page = self.succeeds("explain", BERT, "--plan", self.plan, "--program").stdout
        done = self.json_of("explain", BERT, "--plan", self.plan, "--program")
        plan = json.loads(pathlib.Path(self.plan).read_text())
        self.assertEqual(list(done), ["threads", "arenas", "regions", "instructions"])
        self.assertEqual(len([i for i in done["instructions"] if i["runs"] != "copy"]),
                         len(plan["chosen"]["groups"]) + len(plan["chosen"]["conversions"]))
        self.assertIn(f"program for {done['threads']} thread", page)
        self.assertEqual(len(page.split("\nregions\n")[1].split("\n\n")[0].splitlines()), len(done["regions"]))
        self.assertEqual(len(page.split("\ninstructions\n")[1].splitlines()), len(done["instructions"]))
        known = {r["region"] for r in done["regions"]}
        for instruction in done["instructions"]:
            used = instruction["in"] + instruction["out"] + [instruction["workspace"]]
            self.assertLessEqual({r for r in used if r is not None}, known)

    def test_explain_says_what_patterns_are_missing(self):
        page = self.succeeds("explain", BERT, "--plan", self.plan).stdout
        missing = self.json_of("explain", BERT, "--plan", self.plan)["missing"]
        groups = json.loads(pathlib.Path(self.plan).read_text())["chosen"]["groups"]
        kinds = [n["kind"] for n in self.json_of("inspect", BERT)["nodes"]]

        self.assertEqual([m["cost_ms"] for m in missing["operators"]],
                         sorted((m["cost_ms"] for m in missing["operators"]), reverse=True))
        listed = {(m["backend"], m["operator"]) for m in missing["operators"]}
        for m in missing["operators"]:
            self.assertEqual(list(m), ["backend", "operator", "nodes", "cost_ms", "refused"])
            self.assertNotIn(m["backend"], ("portable", "view"))  # the first takes everything; the second is no backend
        if "openblas" in self.backends:
            for kind, count in (("softmax", 8), ("layer_norm", 16)):
                m = next(m for m in missing["operators"] if (m["backend"], m["operator"]) == ("openblas", kind))
                self.assertEqual((m["nodes"], m["refused"]), (count, None))
                cost = sum(g["cost_ms"] for g in groups if any(kinds[n] == kind for n, _ in g["nodes"]))
                self.assertAlmostEqual(m["cost_ms"], cost, delta=1e-5 * cost)
            self.assertNotIn(("openblas", "matmul"), listed)
            self.assertIn("Operators that a backend does not run, and their cost now", page)

        for m in missing["fusions"]:
            self.assertEqual(list(m), ["backend", "first", "second", "places", "cost_ms", "example"])
            second = next(g for g in groups if g["nodes"][-1][1] == m["example"])
            self.assertEqual(second["backend"], m["backend"])
            self.assertEqual(sorted(m["second"].split("+")), sorted(kinds[n] for n, _ in second["nodes"]))
            self.assertGreaterEqual(m["cost_ms"], second["cost_ms"])

    def test_diff(self):
        kept = json.loads(pathlib.Path(self.plan).read_text())
        run = [g for g in kept["chosen"]["groups"] if g["step"] != "view"]
        page = self.succeeds("diff", self.plan, self.plan).stdout
        self.fits_page(page)
        self.assertIn(f"All {len(run)} groups have the same kernel in both plans.", page)
        done = self.json_of("diff", self.plan, self.plan)
        self.assertEqual(list(done), ["network", "fingerprint", "same", "first", "second", "header", "other_kernels", "same_kernels",
                                      "other_costs", "totals", "runs", "precision"])
        self.assertEqual((done["same"], done["header"], done["other_kernels"], done["other_costs"]), (True, [], [], []))
        self.assertEqual((done["network"], done["same_kernels"]), (BERT, len(run)))
        self.assertEqual([r["first_ms"] for r in done["runs"]], [r["median_ms"] for r in kept["runs"]])

        # One group dearer than its interval, another by another kernel, on another machine.
        other = copy.deepcopy(kept)
        groups = [g for g in other["chosen"]["groups"] if g["step"] != "view"]
        for time in ("cost_ms", "low_ms", "high_ms"):
            groups[0][time] = groups[0]["high_ms"] + 1
        groups[1]["kernel"] += " of another time"
        other.update(threads=2, processor="another", optimal=False)
        other["backends"][0]["version"] = "99"
        other["runs"] = other["runs"][:1]
        path = self.path("other.json")
        pathlib.Path(path).write_text(json.dumps(other))
        done = self.json_of("diff", self.plan, path)
        self.assertEqual((done["same"], done["same_kernels"]), (False, len(run) - 1))
        self.assertEqual([(r["first"][0]["kernel"], r["second"][0]["kernel"]) for r in done["other_kernels"]],
                         [(run[1]["kernel"], groups[1]["kernel"])])
        self.assertEqual([r["second"][0]["cost_ms"] for r in done["other_costs"]], [round_6(groups[0]["cost_ms"])])
        self.assertEqual([h["what"] for h in done["header"]], ["threads", "processor", kept["backends"][0]["name"]])
        self.assertEqual((done["first"]["optimal"], done["second"]["optimal"]), (kept["optimal"], False))
        self.assertEqual([r["second_ms"] is None for r in done["runs"]], [False] + [True] * (len(kept["runs"]) - 1))
        page = self.succeeds("diff", self.plan, path).stdout
        self.fits_page(page)
        for text in ("Made with", "Groups that other kernels run", "whose 95 % intervals do not overlap"):
            self.assertIn(text, page)

        # A kernel where the first plan has a view.
        other = copy.deepcopy(kept)
        view = next(g for g in other["chosen"]["groups"] if g["step"] == "view")
        view.update(step="kernel", backend="portable", pattern="loops", configuration="0", kernel="copy")
        pathlib.Path(path).write_text(json.dumps(other))
        for first, second in ((self.plan, path), (path, self.plan)):
            done = self.json_of("diff", first, second)
            self.assertEqual((done["same"], len(done["other_kernels"])), (False, 1))

        # Groups of other nodes: a region is told with all of both sides.
        self.succeeds("tune", BERT, "--plan", path, "--backends", "portable", "--place", "priority", "--quiet")
        done = self.json_of("diff", self.plan, path)
        nodes = [n for r in done["other_kernels"] for g in r["first"] for n in g["group"].split("+")]
        self.assertEqual(len(nodes) + sum(len(g["nodes"]) for g in run if g.get("backend") == "portable" and len(g["nodes"]) == 1), 200)
        for r in done["other_kernels"]:
            self.assertEqual(*(sorted(n for g in r[side] for n in g["group"].split("+")) for side in ("first", "second")))
        self.fits_page(self.succeeds("diff", path, self.plan).stdout)

    def test_diff_refuses(self):
        other = self.path("mobilenet.json")
        self.succeeds("tune", MOBILENET, "--plan", other, "--place", "priority", "--quiet")
        self.refused("diff", self.plan, other, saying=f"{other}: is a plan for another network or other shapes (zoo:mobilenet-v2")
        self.refused("diff", self.plan, self.path("none.json"), saying="cannot be read")
        self.refused("diff", self.plan, saying="diff: OTHER is required")
        self.refused("diff", self.plan, self.plan, self.plan, saying="unexpected argument")
        kept = json.loads(pathlib.Path(self.plan).read_text())
        for spoil, saying in ((lambda g: g.pop(3), "does not run node "), (lambda g: g.append(g[3]), "runs node "),
                              (lambda g: g[3].pop("kernel"), "chosen.groups[3].kernel is missing"),
                              (lambda g: g[3].update(nodes=[]), "chosen.groups[3].nodes is empty")):
            wrong = copy.deepcopy(kept)
            spoil(wrong["chosen"]["groups"])
            path = self.path("wrong.json")
            pathlib.Path(path).write_text(json.dumps(wrong))
            self.refused("diff", self.plan, path, saying=f"{path}: {saying}")
            self.refused("diff", path, self.plan, saying=f"{path}: {saying}")

    def test_verify(self):
        done = self.json_of("verify", BERT, "--plan", self.plan)
        self.assertEqual(list(done), ["network", "passed", "checks", "algorithms"])
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
        self.assertTrue(0 < done["arena_lower_bound"] <= done["arena_bytes"])
        self.assertEqual(done["outputs"][0]["shape"], list(BERT_SHAPE))
        plan = json.loads(pathlib.Path(self.plan).read_text())
        kernels = [(g.get("backend", g["step"]), g["kernel"]) for g in plan["chosen"]["groups"] if g["step"] != "view"]
        converted = [(x["backend"], x["kernel"]) for x in plan["chosen"]["conversions"]]
        run = [(s["backend"], s["kernel"]) for s in done["steps"]]
        self.assertEqual(sorted(run), sorted(kernels + converted))  # what is run is what was measured
        self.assertEqual([kernel for kernel in run if kernel not in converted], kernels)
        self.assertTrue(all(s["median_ms"] > 0 for s in done["steps"]))
        page = self.succeeds("run", BERT, "--plan", self.plan, "--profile").stdout
        self.fits_page(page)
        self.assertIn("planned ms", page)

    def test_without_a_plan(self):
        done = self.succeeds("verify", self.small, "--backends", self.complete, "--threads", "1", "--quiet")
        self.assertEqual(done.stderr, "")
        self.assertIn("passed", done.stdout)

    def test_progress_on_a_terminal(self):
        text = on_terminal("tune", self.small, "--plan", self.path("watched.json"), "--backends", self.complete, "--threads", "1",
                           "--store", "none")
        self.assertIn("\r\033[Kmeasuring 2 of ", text)
        counts = re.findall(r"\r\033\[K[a-z]+ (\d+) of (\d+), ", text)
        self.assertTrue(counts)
        for number, total in counts:
            self.assertLessEqual(int(number), int(total), text)
        self.assertIn("best so far", text)
        self.assertNotIn("0.000 ms", text)
        quiet = on_terminal("explain", BERT, "--plan", self.plan, "--quiet")
        self.assertNotIn("\r\033[K", quiet)


    def test_progress_and_waiting_of_a_tiny_network(self):
        path = self.folder / "tiny.onnx"
        path.write_bytes(models.model(models.RELU[0], models.port(11, "x", [1, 3]), models.port(12, "y", [1, 3])))
        if "built without ONNX" in collage("inspect", str(path)).stderr:
            self.skipTest("this build reads no files of ONNX")
        plan = self.path("tiny.json")
        text = on_terminal("tune", str(path), "--plan", plan, "--backends", self.complete, "--threads", "1", "--store", "none",
                           "--budget", "5")
        self.assertRegex(text, r"best so far \d+\.\d{3} µs")
        self.assertNotIn("0.000 ms", text)
        # Commands that run kernels wait briefly, unless the environment says otherwise.
        self.assertEqual(json.loads(pathlib.Path(plan).read_text())["waiting"], "passive")
        without = {k: v for k, v in environment().items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
        subprocess.run([PROGRAM, "tune", str(path), "--plan", plan, "--place", "priority", "--store", "none", "--quiet"],
                       env=without, check=True, capture_output=True)
        self.assertEqual(json.loads(pathlib.Path(plan).read_text())["waiting"], "brief")

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "with one processor, no thread waits")
    def test_commands_that_run_kernels_set_how_long_threads_wait(self):
        plain = {k: v for k, v in environment().items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}

        def spins(words, **more):
            """GOMP_SPINCOUNT of the process, whose name and arguments are those of its start. It waits until its page is read."""
            ours, its = os.pipe()
            os.set_blocking(its, False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(its, bytes(4096))
            os.set_blocking(its, True)
            child = subprocess.Popen([PROGRAM, *words], stdout=its, stderr=subprocess.DEVNULL, env={**plain, **more})
            os.close(its)
            process, asleep = pathlib.Path(f"/proc/{child.pid}"), 0
            while asleep < 8:
                time.sleep(0.05)
                asleep = asleep + 1 if (process / "stat").read_text().rsplit(")", 1)[1].split()[0] == "S" else 0
            self.assertEqual((process / "comm").read_text().strip(), pathlib.Path(PROGRAM).name)
            self.assertEqual((process / "cmdline").read_bytes().split(b"\0")[1:-1], [os.fsencode(w) for w in words])
            known = dict(v.split(b"=", 1) for v in (process / "environ").read_bytes().split(b"\0") if v)
            with open(ours, "rb") as page:
                page.read()
            self.assertEqual(child.wait(), 0)
            return known.get(b"GOMP_SPINCOUNT")

        run = ("run", BERT, "--backends", self.complete, "--place", "priority", "--store", "none")
        self.assertEqual(spins(run), b"2000")
        self.assertEqual(spins(run, GOMP_SPINCOUNT="7"), b"7")
        self.assertIsNone(spins(run, OMP_WAIT_POLICY="passive"))


class Strict(Case):
    """Backends that are named run everything, or the network is not placed."""

    def refused_by(self, backend, network, *saying):
        for command in (("tune", network, "--plan", self.path("strict.json")), ("run", network), ("explain", network)):
            for place in ("measure", "priority"):
                done = collage(*command, "--backends", backend, "--place", place, "--quiet")
                self.assertEqual(done.returncode, 2, done.stderr)
                for text in saying:
                    self.assertIn(text, done.stderr)
        self.assertFalse((self.folder / "strict.json").exists())

    def test_what_they_do_not_take(self):
        if "openblas" not in placed_backends():
            self.skipTest("it needs a backend that takes few operators")
        self.refused_by("openblas", BERT, "softmax", "layer_norm_0")
        self.succeeds("run", BERT, "--backends", "openblas,portable", "--place", "priority", "--quiet")

    def test_what_they_do_not_take_in_sub_graphs(self):
        if "openblas" not in placed_backends() or "built without ONNX" in collage("inspect", self.path("none.onnx")).stderr:
            self.skipTest("it needs files of ONNX and a backend that takes few operators")

        def side(operator, name):
            body = models.node(operator, ["x"], [name]) + models.field(2, name) + models.port(12, name, [2, 3])
            return models.field(6, body) + models.field(20, 5)

        def branch(name, operator):
            return models.field(5, models.field(1, name) + side(operator, operator.lower()))

        (self.folder / "branch.onnx").write_bytes(models.model(
            models.field(1, models.field(1, "flag") + models.field(2, "y") + models.field(4, "If") + models.field(3, "choose") +
                         branch("then_branch", "Sin") + branch("else_branch", "Neg")),
            models.port(11, "flag", [1], kind=9), models.port(11, "x", [2, 3]), models.port(12, "y", [2, 3])))
        network = self.path("branch.onnx")
        self.refused_by("openblas", network, "(sin float32[2x3])")
        plan = self.path("branch.json")
        self.succeeds("tune", network, "--plan", plan, "--backends", "portable", "--place", "priority", "--quiet")
        group = next(g for g in json.loads(pathlib.Path(plan).read_text())["chosen"]["groups"] if g["step"] == "control")
        self.assertEqual([b["groups"][0]["backend"] for b in group["bodies"]], ["portable", "portable"])
        self.assertEqual(complaints(json.loads(pathlib.Path(plan).read_text()), SCHEMA), [])
        self.succeeds("run", network, "--plan", plan, "--quiet")
        self.assertEqual(self.json_of("explain", network, "--plan", plan)["missing"]["operators"], [])
        # What runs inside counts where patterns are missing, too.
        mixed = self.json_of("explain", network, "--backends", "openblas,portable", "--place", "priority")["missing"]["operators"]
        self.assertEqual(sorted((m["backend"], m["operator"], m["nodes"]) for m in mixed),
                         [("openblas", "neg", 1), ("openblas", "sin", 1)])
        # What runs inside is compared, too.
        other = self.path("other_branch.json")
        pathlib.Path(other).write_text(pathlib.Path(plan).read_text().replace("elementwise sin", "another sin"))
        done = self.json_of("diff", plan, other)
        self.assertEqual([r["second"][0]["kernel"] for r in done["other_kernels"]], ["another sin"])


if __name__ == "__main__":
    unittest.main()
