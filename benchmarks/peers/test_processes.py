import pathlib
import stat
import sys
import tempfile
import unittest

from peers import processes
from peers.errors import Failure

# Stands for the Python that has the packages: it does what the task says and writes the events that the task holds.
CHILD = """#!{python}
import json, os, signal, sys, time
task = json.load(sys.stdin)
events = os.fdopen(int(sys.argv[-1]), "w", buffering=1)
print("libraries may print")
for event in task["events"]:
    events.write(json.dumps(event) + "\\n")
if "signal" in task: os.kill(os.getpid(), task["signal"])
if "sleep" in task: time.sleep(task["sleep"])
sys.exit(task.get("status", 0))
"""


class Children(unittest.TestCase):
    def setUp(self) -> None:
        room = tempfile.TemporaryDirectory()
        self.addCleanup(room.cleanup)
        child = pathlib.Path(room.name) / "child"
        child.write_text(CHILD.format(python=sys.executable))
        child.chmod(child.stat().st_mode | stat.S_IXUSR)
        self.log = pathlib.Path(room.name) / "log"
        self.children = processes.Children(str(child), self.log)

    def failure(self, **task: object) -> processes.EngineFailure:
        with self.assertRaises(processes.EngineFailure) as caught:
            self.children.run(task)
        return caught.exception

    def test_a_result_comes_back_and_stages_are_heard(self) -> None:
        heard: list[tuple[str, ...]] = []
        result = self.children.run(
            {"events": [{"stage": "loading", "engine": "a"}, {"failed": "no", "engine": "a"},
                        {"stage": "loading", "engine": "b"}, {"result": {"x": 1}}]},
            stage=lambda *what: heard.append(("stage", *what)), failed=lambda *what: heard.append(("failed", *what)))
        self.assertEqual(result, {"x": 1})
        self.assertEqual(heard, [("stage", "loading", "a"), ("failed", "a", "no"), ("stage", "loading", "b")])
        self.assertIn("libraries may print", self.log.read_text())

    def test_a_crash_is_laid_to_the_engine_whose_turn_it_was(self) -> None:
        problem = self.failure(events=[{"stage": "loading", "engine": "a"}], signal=11)
        self.assertEqual((problem.engine, str(problem)), ("a", "its process was ended by SIGSEGV"))

    def test_a_silent_end_is_told(self) -> None:
        problem = self.failure(events=[], status=3)
        self.assertEqual((problem.engine, str(problem)), ("", "its process ended with status 3 and said nothing"))

    def test_what_ends_the_process_is_a_failure(self) -> None:
        problem = self.failure(events=[{"failed": "no memory", "engine": "b", "ended": True}], status=1)
        self.assertEqual((problem.engine, str(problem)), ("b", "no memory"))

    def test_a_hang_is_ended(self) -> None:
        self.addCleanup(setattr, processes, "SILENCE_S", processes.SILENCE_S)
        processes.SILENCE_S = 1.0
        problem = self.failure(events=[{"stage": "first run", "engine": "a"}], sleep=60)
        self.assertEqual(problem.engine, "a")
        self.assertRegex(str(problem), "silent for 1 s")

    def test_a_python_that_is_not_there_is_one_sentence(self) -> None:
        with self.assertRaisesRegex(Failure, "^/nowhere/python: cannot be started: No such file"):
            processes.Children("/nowhere/python", self.log).run({})


if __name__ == "__main__":
    unittest.main()
