"""Processes that are stopped until their turn."""
import pathlib
import sys
import tempfile
import time
import unittest

from peers.errors import Failure
from shapes.engine import Engine

# Stands for an engine: counts in a thread how long it runs.
CHILD = """
import json, os, sys, threading, time
events = os.fdopen(int(sys.argv[1]), "w", buffering=1)
count = 0
def work():
    global count
    while True:
        count += 1
        time.sleep(0.001)
threading.Thread(target=work, daemon=True).start()
events.write(json.dumps({"ready_ms": 1}) + "\\n")
for line in sys.stdin:
    word = line.strip()
    if word == "end": os._exit(3)
    events.write(json.dumps({"failed": "no shape"} if word == "fail" else {"count": count}) + "\\n")
"""


class Engines(unittest.TestCase):
    def setUp(self) -> None:
        room = tempfile.TemporaryDirectory()
        self.addCleanup(room.cleanup)
        self.log = pathlib.Path(room.name) / "log"

    def engine(self, code: str = CHILD) -> Engine:
        made = Engine("an engine", [sys.executable, "-c", code, Engine.PIPE], self.log)
        self.addCleanup(made.close)
        return made

    def test_it_runs_in_its_turn_alone(self) -> None:
        engine = self.engine()
        self.assertEqual(engine.ready, {"ready_ms": 1})
        before = engine.ask("count")["count"]
        time.sleep(0.3)
        self.assertLess(engine.ask("count")["count"] - before, 100)  # it would have counted to some 300
        self.assertGreaterEqual(engine.processor_s(), 0)

    def test_a_failure_names_the_engine(self) -> None:
        with self.assertRaisesRegex(Failure, "^an engine: no shape$"):
            self.engine().ask("fail")

    def test_an_end_is_a_failure(self) -> None:
        with self.assertRaisesRegex(Failure, "^an engine: its process ended with status 3"):
            self.engine().ask("end")
        with self.assertRaisesRegex(Failure, "^an engine: its process ended with status 1"):
            self.engine("raise SystemExit(1)")

    def test_a_program_that_is_not_there(self) -> None:
        with self.assertRaisesRegex(Failure, "^/nowhere/child: cannot be started"):
            Engine("an engine", ["/nowhere/child"], self.log)


if __name__ == "__main__":
    unittest.main()
