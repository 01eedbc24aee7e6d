"""`--trace` of `run` and `bench`: files by the rules of the format, steps that are those of the engine, and faults."""
import copy
import json
import os
import pathlib
import unittest

import trace_format
from program import BERT, Case, complete_backend

PLACED = ("--place", "priority", "--threads", "1", "--store", "none", "--regions", "0")
ROOT = os.geteuid() == 0


class Traces(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan = str(cls.folder / "bert.json")
        cls.succeeds(cls("runTest"), "tune", BERT, "--plan", cls.plan, *PLACED, "--quiet")

    def runTest(self):
        pass

    def test_run(self):
        trace = self.path("run.json")
        steps = self.json_of("run", BERT, "--plan", self.plan, "--profile", "--trace", trace)
        self.assertEqual(steps["trace"], trace)
        events = trace_format.read(trace)
        runs = [e for e in events if e["cat"] == "run"]
        self.assertGreaterEqual(len(runs), 3)
        self.assertEqual({e["name"] for e in runs}, {BERT})
        first = [e for e in events if e["cat"] in trace_format.STEPS and e["args"]["run"] == 1]
        self.assertEqual([(e["args"]["label"], e["args"]["backend"], e["args"]["kernel"]) for e in first],
                         [(s["step"], s["backend"], s["kernel"]) for s in steps["steps"]])
        self.assertEqual([e["args"]["step"] for e in first], list(range(1, len(first) + 1)))
        # A product of matrices reads its weights, and has a rate.
        products = [e for e in first if "matmul" in e["name"]]
        self.assertTrue(products and all("gflops_per_s" in e["args"] for e in products), products)
        self.assertGreater(max(e["args"]["bytes_read"] for e in products), 4 * 256 * 256)

    def test_bytes_and_flops_are_those_of_the_network(self):
        trace = self.path("flops.json")
        self.succeeds("run", BERT, "--plan", self.plan, "--trace", trace, "--quiet")
        first = [e for e in trace_format.read(trace) if e["args"]["run"] == 1 and "gflops_per_s" in e["args"]]
        counted = sum(float(e["args"]["gflops_per_s"]) * float(e["dur"]) * 1e3 for e in first)
        wanted = json.loads(self.succeeds("inspect", BERT, "--json").stdout)["flops"]
        self.assertAlmostEqual(counted / wanted, 1, delta=1e-3)

    def test_bench(self):
        trace = self.path("bench.json")
        backend = complete_backend()
        done = self.succeeds("bench", BERT, "--trace", trace, "--seconds", "0", "--backends", backend, *PLACED)
        self.assertIn(trace, done.stdout.replace("\n", ""))
        names = {e["name"] for e in trace_format.read(trace) if e["cat"] == "run"}
        self.assertIn("plan", names)

    def test_one_step(self):
        """A reader sees the old file or the new one, and nothing else is left."""
        trace = self.path("again.json")
        pathlib.Path(trace).write_text("old")
        self.succeeds("run", BERT, "--plan", self.plan, "--trace", trace, "--quiet")
        trace_format.read(trace)
        self.assertEqual([p.name for p in self.folder.iterdir() if "again" in p.name], ["again.json"])

    def test_refused(self):
        for command in ("run", "bench"):
            self.refused(command, BERT, "--trace", self.path("nowhere/t.json"), saying="cannot be written")
            self.refused(command, BERT, "--trace", str(self.folder), saying="it is a folder")
            self.refused(command, BERT, "--trace", saying="--trace needs one value")
        self.refused("explain", BERT, "--trace", "t.json", saying="no option --trace")

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_full_device(self):
        self.refused("run", BERT, "--plan", self.plan, "--trace", "/dev/full", "--quiet", code=1,
                     saying="No space left on device")

    @unittest.skipIf(ROOT, "root may write everywhere")
    def test_folder_without_permission(self):
        folder = self.folder / "closed"
        folder.mkdir(mode=0o500)
        self.refused("run", BERT, "--trace", str(folder / "t.json"), saying="Permission denied")


class Rules(Case):
    """The rules themselves: each fault in a good trace is found."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        step = {"backend": "b", "kernel": "k", "pattern": "p", "label": "l", "nodes": 1, "bytes_read": 4, "bytes_written": 4,
                "step": 1, "threads": 1, "run": 1}

        def event(name, category, ts, dur, arguments):
            return {"ph": "X", "name": name, "cat": category, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": arguments}
        cls.good = {"traceEvents": [
            {"ph": "M", "name": "process_name", "pid": 1, "tid": 1, "args": {"name": "p"}},
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "t"}},
            event("net", "run", 1.5, 10, {"run": 1}), event("a", "kernel", 2, 4, step),
            event("b", "conversion", 6, 4, {**step, "nodes": 0})],
            "displayTimeUnit": "ms", "otherData": {"runs": 1}}

    def faulty(self, change):
        trace = copy.deepcopy(self.good)
        change(trace["traceEvents"])
        path = self.folder / "trace.json"
        path.write_text(json.dumps(trace))
        trace_format.read(path)

    def test_good(self):
        self.faulty(lambda events: None)

    def test_each_fault_is_found(self):
        faults = {
            "no thread name": lambda e: e.pop(1),
            "time is text": lambda e: e[3].update(ts="2"),
            "no duration": lambda e: e[3].pop("dur"),
            "number of process is text": lambda e: e[3].update(pid="1"),
            "no backend": lambda e: e[3]["args"].pop("backend"),
            "other phase": lambda e: e[3].update(ph="B"),
            "step outlasts the run": lambda e: e[4].update(dur=6),
            "step begins before the run": lambda e: e[3].update(ts=1),
            "steps overlap": lambda e: e[3].update(dur=5),
            "order": lambda e: e.reverse(),
            "run number": lambda e: e[3]["args"].update(run=2),
            "runs from 1": lambda e: [x["args"].update(run=2) for x in e[2:]],
            "conversion with nodes": lambda e: e[4]["args"].update(nodes=1),
            "unknown category": lambda e: e[3].update(cat="other"),
        }
        for name, change in faults.items():
            with self.subTest(name), self.assertRaises(trace_format.Wrong):
                self.faulty(change)


if __name__ == "__main__":
    unittest.main()
