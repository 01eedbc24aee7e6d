"""What the tests of the examples on trained models share: starting the program, and skipping where models are missing."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77  # as ctest knows it
PROGRAM, MODELS = sys.argv[1], pathlib.Path(sys.argv[2])


def start(*words, models=MODELS):
    # The examples in Python have the same names, words and output as those in C++, and the same tests.
    program = [sys.executable, PROGRAM] if PROGRAM.endswith(".py") else [PROGRAM]
    return subprocess.run([*program, "--models", str(models), *map(str, words)], capture_output=True, text=True, timeout=280)


class Case(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        room = tempfile.TemporaryDirectory()
        self.addCleanup(room.cleanup)
        self.folder = pathlib.Path(room.name)

    def write(self, name, contents):
        path = self.folder / name
        path.write_bytes(contents)
        return path

    def answer(self, *words):
        done = start(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def refused(self, *words, says, status=2, **options):
        """One sentence, and nothing that looks like an answer."""
        done = start(*words, **options)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertIn(says, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


def main(*files):
    """Runs the tests of the calling file, or those named after the models' folder; they need these files of the models."""
    missing = [str(MODELS / file) for file in files if not (MODELS / file).is_file()]
    if missing:
        print(f"skipped: {missing[0]} is not here (tools/setup fetches it)")
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
