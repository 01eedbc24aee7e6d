"""The example own_operator: it loads the model that lies beside it, and both its networks agree with their reference."""
import pathlib
import re
import subprocess
import sys
import unittest

PROGRAM = sys.argv[1]
MODEL = pathlib.Path(__file__).parents[2] / "examples" / "own_operator.onnx"


def start(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=280)


class OwnOperator(unittest.TestCase):
    def test_output(self):
        done = start(MODEL)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        text = done.stdout
        self.assertRegex(text, r"(?m)^operator +mine +portable$")
        self.assertRegex(text, r"(?m)^energy +alone, 1 fused +alone$")
        self.assertIn("waves = snake(moved) {alpha=0.5} -> float32[1x2x32]", text)
        self.assertIn("y = energy(waves) {frame=8} -> float32[1x2x4]", text)
        self.assertNotIn("bent = ", text)  # computed while loading
        errors = [float(x) for x in re.findall(r"differs from the reference by (\S+)", text)]
        self.assertEqual(len(errors), 6)  # the plan and each backend alone, twice
        self.assertLess(max(errors), 1e-4)

    def test_a_model_that_is_not_there(self):
        done = start(MODEL.with_name("nothing.onnx"))
        self.assertEqual(done.returncode, 2)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


unittest.main(argv=sys.argv[:1])
