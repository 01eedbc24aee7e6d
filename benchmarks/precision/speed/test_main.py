"""The command, with stand-ins for the program, the library and the Python that has the packages."""
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from typing import Any

from peers import machine
from precision.speed import main
from precision.speed.study import pinned, plan_facts

# Stands for the Python that has the packages: tasks of peers.child, of prepare.py and of engine.py.
PYTHON = """#!{python}
import json, os, pathlib, sys
module = sys.argv[sys.argv.index("-m") + 1]
with open("{room}/tasks", "a") as log:
    if module == "precision.speed.engine":
        task = json.loads(sys.argv[-1])
        kind, model = task["engine"]["kind"], task["model"]
        if kind == "openvino" and "u8s8" in model: sys.exit(7)
        ms = dict(onnxruntime=8.0, openvino=6.0, collage=4.0)[kind] / (2 if "u8s8" in model else 1)
        if "int8" in (task["engine"]["plan"] or ""): ms = 1.0
        events = os.fdopen(int(sys.argv[-2]), "w", buffering=1)
        events.write(json.dumps(dict(count=8)) + "\\n")
        for line in sys.stdin:
            word = line.split()[0]
            log.write(word + " "); log.flush()
            events.write(json.dumps(dict(slice=dict(ms=[ms]), write=dict(count=8), errors=dict(error=0.02 / ms))[word]) + "\\n")
        sys.exit()
    task = json.load(sys.stdin)
    log.write(task["task"] + " ")
if task["task"] == "samples":
    pathlib.Path(task["folder"]).mkdir(parents=True, exist_ok=True)
    pathlib.Path(task["folder"], "x.npy").touch()
if task["task"] == "quantise": pathlib.Path(task["target"]).write_text("quantised")
answer = dict(samples=dict(count=1), quantise=dict(bytes=9),
    versions=dict(versions=dict(python="3", numpy="2.0", onnxruntime="1.0", openvino="2.0", collage="0.1.0"), backends=[]),
    describe=dict(model=task.get("file"), bytes=1e6, inputs=[dict(name="x", type="float32", shape=[1])], outputs=["y"], open=dict(),
                  overrides=dict(), gflop=0.2))[task["task"]]
if module == "peers.child":
    with os.fdopen(int(sys.argv[-1]), "w") as events:
        events.write(json.dumps(dict(result=answer)) + "\\n")
else:
    print(json.dumps(answer))
"""
# Stands for the program. Its plans round values if that is allowed.
PROGRAM = """#!{python}
import json, pathlib, sys
words = sys.argv[1:]
def value(option): return words[words.index(option) + 1]
if words[0] == "backends":
    print(json.dumps([dict(name=name, available=True) for name in ("onednn", "openvino", "reference")]))
elif words[0] == "explain":
    print(json.dumps(dict(precision_prices=dict(nmse=0.0004), greedy_steps=[dict(group=1, label="conv", cost_ms=3.0, nmse=0.0001)])))
else:
    open("{room}/tuned", "a").write(" ".join(words) + "\\n")
    lower = "--precision" in words
    plan = dict(chosen=dict(groups=[dict(step="kernel", layout="plain:u8" if lower else "plain"), dict(step="view"), dict(step="kernel")]))
    if lower: plan["error"] = dict(most=0.03, predicted=0.0, measured=0.01, upper=0.012, samples=8)
    pathlib.Path(value("--plan")).write_text(json.dumps(plan))
    told = dict(interrupted=False)
    if "--curve" in words:
        told["curve"] = dict(exact=dict(cost_ms=4.0), points=[dict(most_error=0.01, cost_ms=2.0, lower_bound_ms=2.0), dict(most_error=0.02, cost_ms=1.0, lower_bound_ms=1.0)])
    print(json.dumps(told))
"""


class Command(unittest.TestCase):
    def setUp(self) -> None:
        room = tempfile.TemporaryDirectory()
        self.addCleanup(room.cleanup)
        self.room = pathlib.Path(room.name)
        for name, text in (("python", PYTHON), ("program", PROGRAM)):
            (self.room / name).write_text(text.format(python=sys.executable, room=room.name))
            (self.room / name).chmod(0o755)
        (self.room / "library").write_bytes(b"a library")

    def run_command(self, *words: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        given = ["--threads", "1", "--rounds", "6", "--out", f"{self.room}/out"]
        for option in ("python", "program", "library"):
            given += [f"--{option}", f"{self.room}/{option}"]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main.main([*given, *words])
        return status, out.getvalue(), err.getvalue()

    def tasks(self) -> list[str]:
        file = self.room / "tasks"
        words = file.read_text().split()
        file.unlink()
        return words

    def test_tables_and_json(self) -> None:
        status, out, _ = self.run_command("mobilenet-v2")
        self.assertEqual(status, 1)  # OpenVINO does not take the quantised file
        self.assertEqual((self.room / "out/precision.md").read_text(), out)
        self.assertIn("- OpenVINO u8s8: its process ended with status 7 and said nothing\n", out)
        cells = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in out.splitlines() if line.startswith("|")}
        self.assertEqual(cells["collage int8 3 %"], ["1.00", "1.00 to 1.00", "4.000", "2 %", "3 %", "1.2 %", "1 of 2"])
        self.assertEqual(cells["collage u8s8 file"][-1], "-")
        self.assertEqual(cells["int8 or any over float32"][-3:], ["4.000 [4.000, 4.000]", "2.20", "yes"])
        self.assertEqual(cells["over the better peer in integers"][1], "ONNX Runtime u8s8")
        self.assertEqual(cells["1 %"], ["2.000", "3.000", "1.500", "1"])
        self.assertEqual(cells["2 %"], ["1.000", "1.000", "1.000", "0"])
        row = json.loads((self.room / "out/precision.json").read_text())["rows"][0]
        self.assertEqual(len(row["bars"]), 7)
        self.assertIn(len(row["rounds_ms"]["collage float32"]), range(6, 13))  # more than six on a busy machine

    def test_what_is_made_is_kept(self) -> None:
        self.run_command("mobilenet-v2", "--plans", "int8")
        first = self.tasks()
        self.assertEqual([first.count(word) for word in ("samples", "quantise", "write", "errors")], [2, 1, 1, 6])
        tuned = (self.room / "tuned").read_text().splitlines()
        self.assertEqual(len(tuned), 2)
        self.assertIn("--algorithms direct", tuned[0])
        self.assertNotIn("--backends", tuned[0])
        self.assertNotIn("--precision", tuned[0])
        self.assertIn(f"--precision int8 --error 3% --data {self.room.resolve()}/out/samples/mobilenet-v2.calibrating/x.npy", tuned[1])
        self.run_command("mobilenet-v2", "--plans", "int8")
        again = self.tasks()
        self.assertEqual([again.count(word) for word in ("samples", "quantise", "errors")], [0, 0, 0])
        self.assertEqual((self.room / "tuned").read_text().splitlines(), tuned)
        self.run_command("mobilenet-v2", "--plans", "int8", "--samples", "20")
        more = self.tasks()
        self.assertEqual([more.count(word) for word in ("samples", "quantise")], [1, 1])

    def test_mistakes_are_one_sentence(self) -> None:
        for words, said in ((("vgg",), "vgg: is none of resnet50"), (("--plans", "fp8"), "--plans fp8: is none of"),
                            (("--rounds", "5"), "--rounds 5: at least 6"), (("--seconds", "0.1"), "--seconds 0.1: a slice"),
                            (("--samples", "3"), "--samples 3: at least 10"), (("--held-out", "1"), "--held-out 1: at least 2"),
                            (("--tune-seconds", "0"), "--tune-seconds 0"), (("--threads", "1,x"), "--threads 1,x"),
                            (("--backends", "cudnn"), "--backends cudnn: the program has no backend `cudnn`"),
                            (("--program", "/nowhere"), "--program /nowhere: there is no such program")):
            status, out, err = self.run_command(*words)
            self.assertEqual((status, out), (2, ""))
            self.assertIn(f"precision: {said}", err)


class Parts(unittest.TestCase):
    def test_instructions_for_lower_precision(self) -> None:
        self.assertEqual(machine.lower_precision("model name\t: P\nflags\t\t: fpu avx512f avx512_vnni\nflags\t\t: amx_int8\n"), ["avx512_vnni"])
        self.assertEqual(machine.lower_precision(""), [])

    def test_processors_are_given_back(self) -> None:
        before = os.sched_getaffinity(0)
        with pinned(1):
            self.assertEqual(os.sched_getaffinity(0), {max(before)})
        self.assertEqual(os.sched_getaffinity(0), before)

    def test_a_plan_of_a_quantised_file_rounds_nothing_itself(self) -> None:
        with tempfile.TemporaryDirectory() as room:
            file = pathlib.Path(room) / "plan.json"
            plan: dict[str, Any] = {"chosen": {"groups": [{"step": "group", "layout": "plain"}]}}
            file.write_text(json.dumps(plan))
            self.assertEqual(plan_facts(file, ()), {"groups": 1, "lower": None, "predicted": None, "upper": None})

    def test_regions_of_backends_that_round_are_in_lower_precision(self) -> None:
        with tempfile.TemporaryDirectory() as room:
            file = pathlib.Path(room) / "plan.json"
            groups = [{"step": "group", "backend": name, "layout": "plain"} for name in ("coarse", "exact")]
            file.write_text(json.dumps({"chosen": {"groups": groups}, "error": {"predicted": 0.01, "upper": 0.02}}))
            self.assertEqual(plan_facts(file, {"coarse"}), {"groups": 2, "lower": 1, "predicted": 0.01, "upper": 0.02})


if __name__ == "__main__":
    unittest.main()
