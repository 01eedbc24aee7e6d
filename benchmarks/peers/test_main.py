import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from xml.etree import ElementTree

from peers import main

# Stands for the Python that has the packages: engines that take 4, 5 and 6 ms.
PYTHON = """#!{python}
import json, os, sys
task = json.load(sys.stdin)
open("{room}/tasks", "a").write(task["task"] + " ")
names = [engine["name"] for engine in task.get("engines", [])]
rounds = [[dict(onnxruntime=5.0, openvino=6.0).get(name, 4.0)] * task.get("rounds", 0) for name in names]
answer = dict(
    versions=dict(versions=dict(python="3", onnxruntime="1.0", openvino="2.0", collage="0.1.0"), backends=[]),
    peak=dict(gflops=100.0, by="numpy", rates=dict(numpy=100.0), refused=dict(), calm=True),
    describe=dict(model=task.get("file"), bytes=1e6, inputs=[], outputs=["y"], open=dict(), overrides=dict(), gflop=0.2),
    race=dict(names=names, rounds_ms=rounds, rounds=12, calm=True, disturbed_rounds=0, runs=1,
              pairs=[dict(engines=[a, b], worst=1e-7, why="") for a in names for b in names if a < b]),
    memory=dict(before_mb=30.0, most_mb=100.0))[task["task"]]
with os.fdopen(int(sys.argv[-1]), "w") as events:
    events.write(json.dumps(dict(result=answer)) + "\\n")
"""
# Stands for the program: a network called refused.onnx cannot be placed.
PROGRAM = """#!{python}
import json, pathlib, sys
if sys.argv[1] == "backends":
    print(json.dumps([dict(name=name, available=True) for name in ("onednn", "openvino", "reference")]))
elif "refused" in sys.argv[2]:
    sys.exit("collage: refused.onnx: has nothing to place")
else:
    pathlib.Path(sys.argv[sys.argv.index("--plan") + 1]).write_text("{{}}")
    print(json.dumps(dict(interrupted=False)))
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
        for name in ("net", "refused"):
            (self.room / f"{name}.onnx").write_bytes(name.encode())

    def run_command(self, *words: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        given = [*words, "--threads", "1", "--out", f"{self.room}/out"]
        for option in ("python", "program", "library"):
            if f"--{option}" not in words:
                given += [f"--{option}", f"{self.room}/{option}"]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main.main(given)
        return status, out.getvalue(), err.getvalue()

    def tasks(self) -> list[str]:
        file = self.room / "tasks"
        words = file.read_text().split() if file.exists() else []
        file.unlink(missing_ok=True)
        return words

    def test_a_table_json_and_a_chart(self) -> None:
        status, out, _ = self.run_command(f"{self.room}/net.onnx", "--svg", f"{self.room}/shown.svg")
        self.assertEqual(status, 0)
        self.assertIn("| 1.250 [1.250, 1.250] |", out)
        self.assertIn("| without openvino |", out)
        self.assertIn(" 50 % |", out)  # 0.2 GFLOP in 4 ms of 100 GFLOP/s
        self.assertEqual((self.room / "out/speed.md").read_text(), out)
        self.assertEqual(len(json.loads((self.room / "out/speed.json").read_text())), 2)
        ElementTree.parse(self.room / "shown.svg")
        ElementTree.parse(self.room / "out/chart.svg")

    def test_a_second_call_measures_nothing(self) -> None:
        first = self.run_command(f"{self.room}/net.onnx", "--json")
        self.assertEqual(self.tasks(), ["versions", "peak", "describe", "race"])
        self.assertEqual(self.run_command(f"{self.room}/net.onnx", "--json")[:2], first[:2])
        self.assertEqual(self.tasks(), ["versions"])
        # Plans and the peak serve everything else.
        (self.room / "program").write_text(PROGRAM.format(python=sys.executable).replace('"refused"', '"net"'))
        (self.room / "library").write_bytes(b"another library")
        self.assertEqual(self.run_command(f"{self.room}/net.onnx")[0], 1)

    def test_a_failure_is_told_and_stops_nothing(self) -> None:
        status, out, _ = self.run_command(f"{self.room}/refused.onnx", f"{self.room}/net.onnx", "--backends", "onednn")
        self.assertEqual(status, 1)
        self.assertIn("- refused, 1 thread, onednn: collage: tuning: refused.onnx: has nothing to place\n", out)
        self.assertIn("| net", out)

    def test_memory(self) -> None:
        status, out, _ = self.run_command(f"{self.room}/net.onnx", "--memory")
        self.assertEqual(status, 0)
        self.assertIn(" 100 % |", out)
        self.assertTrue((self.room / "out/memory.json").exists())

    def test_mistakes_are_one_sentence(self) -> None:
        net = f"{self.room}/net.onnx"
        for words, sentence in (
                ((f"{self.room}/nowhere.onnx",), "there is no such .onnx file"),
                ((net, "--library", "nowhere.so"), "--library nowhere.so: there is no such library"),
                ((net, "--program", "nowhere"), "--program nowhere: there is no such program"),
                ((net, "--backends", "cublas"), "the program has no backend `cublas` here"),
                ((net, "--rounds", "5"), "at least 6 are needed"),
                ((net, "--seconds", "0.4"), "a slice takes at least 0.5 s"),
                ((net, "--shape", "x"), "--shape x: is not of the form"),
                ((net, "--memory", "--svg", "x.svg"), "--svg: there is a chart of times alone")):
            status, out, err = self.run_command(*words)
            self.assertEqual((status, out), (2, ""), words)
            last = err.splitlines()[-1]
            self.assertTrue(last.startswith("peers: ") and sentence in last, last)
        status, _, err = self.run_command(net, "--python", "/nowhere/python")
        self.assertEqual(status, 1)
        self.assertIn("peers: /nowhere/python: cannot be started: No such file or directory\n", err)

    def test_it_can_be_stopped(self) -> None:
        program = (self.room / "program").read_text()
        (self.room / "program").write_text(program.replace("import json", "import time, json").replace(
            'if sys.argv[1] == "backends"', 'if sys.argv[1] == "tune": time.sleep(60)\nif sys.argv[1] == "backends"'))
        run = pathlib.Path(main.__file__).with_name("run")
        words = [sys.executable, str(run), f"{self.room}/net.onnx", "--threads", "1", "--out", f"{self.room}/out"]
        for option in ("python", "program", "library"):
            words += [f"--{option}", f"{self.room}/{option}"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        for line in process.stderr:
            if "tuning" in line:
                break
        # Nobody else works in that folder meanwhile.
        status, _, err = self.run_command(f"{self.room}/net.onnx")
        self.assertEqual(status, 2)
        self.assertIn("another comparison is at work there", err)
        began = time.monotonic()
        process.terminate()
        _, err = process.communicate()
        self.assertEqual(process.returncode, 130)
        self.assertIn("peers: stopped; the same command goes on from here", err)
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(list(self.room.glob("out/plans/*.plan.json")), [])


if __name__ == "__main__":
    unittest.main()
