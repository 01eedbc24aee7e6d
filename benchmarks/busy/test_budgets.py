"""The table of budgets beside busy processes, by a program that stands for collage."""
import pathlib
import sys
import tempfile
import unittest

from busy import budgets
from peers.errors import Failure

PROGRAM = """#!{python}
import json, sys
words = sys.argv
assert words[1] == "tune" and words[words.index("--store") + 1].endswith("costs.db"), words
if "bad.onnx" in words[2]: sys.exit("collage: bad.onnx: is no network")
print(json.dumps({{"seconds": float(words[words.index("--budget") + 1]) + 0.5, "measured": 7}}))
"""


class Budgets(unittest.TestCase):
    def test_bar(self):
        for budget_s, placing_s, over, holds in ((2, 1.9, "0.00", True), (2, 4, "2.00", True), (2, 4.1, "2.10", False), (40, 44, "4.00", True),
                                                 (40, 44.1, "4.10", False)):
            found = {"placing_s": placing_s, "wall_s": 9, "measured": 5}
            cells, does = budgets.row_of("net", 2, budget_s, found)
            self.assertEqual((cells[4], does), (over, holds))
            self.assertEqual(cells[-1], "yes" if holds else "**no**")

    def test_one_tuning(self):
        with tempfile.TemporaryDirectory() as name:
            room = pathlib.Path(name)
            program = room / "collage"
            program.write_text(PROGRAM.format(python=sys.executable))
            program.chmod(0o755)
            found = budgets.tuned(budgets.words_of(program, room / "net.onnx", 2, 2.5, room))
            self.assertGreater(found.pop("wall_s"), 0)
            self.assertEqual(found, {"placing_s": 3.0, "measured": 7})
            self.assertRaisesRegex(Failure, "^bad.onnx: is no network$", budgets.tuned,
                                   budgets.words_of(program, room / "bad.onnx", 2, 2.5, room))
            self.assertRaisesRegex(Failure, "cannot be started", budgets.tuned, budgets.words_of(room / "none", room, 2, 2, room))
