"""Tries the replay on a few seeds, and the checker of tables on damaged ones.

usage: test_families.py PROGRAM TABLE
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM, TABLE = sys.argv[1], pathlib.Path(sys.argv[2])


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)


class Replay(unittest.TestCase):
    def test_the_same_seeds_print_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            curves = [pathlib.Path(folder) / name for name in ("first.csv", "second.csv")]
            done = [run("--seeds", "1", "--measurements", "16", "--curves", str(file)) for file in curves]
            if "XGBoost" in done[0].stderr and done[0].returncode == 1:
                self.skipTest(done[0].stderr.strip())
            self.assertEqual([one.returncode for one in done], [0, 0], done[0].stderr)
            self.assertEqual(done[0].stdout, done[1].stdout)
            self.assertEqual(curves[0].read_bytes(), curves[1].read_bytes())
            chart = pathlib.Path(folder) / "chart.svg"
            subprocess.run([sys.executable, pathlib.Path(__file__).with_name("chart.py"), curves[0], chart], check=True)
            lines = xml.etree.ElementTree.parse(chart).findall("{http://www.w3.org/2000/svg}polyline")
            self.assertEqual([len(line.get("points").split()) for line in lines], 6 * [16])
        for part in ("| closed form alone | 1 | 1 | 3.5 ", "Claims of the paper:", "cannot be asked"):
            self.assertIn(part, done[0].stdout)

    def test_wrong_arguments_are_refused(self):
        for arguments in (["--seeds"], ["--seeds", "0"], ["--seeds", "two"], ["--best"], ["no such table"]):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Checker(unittest.TestCase):
    def refused(self, text: str, why: str):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "table"
            file.write_text(text)
            done = run(str(file), "--check")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn(why, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_the_table_is_whole(self):
        self.assertLessEqual(TABLE.stat().st_size, 500_000)
        done = run("--check")
        self.assertEqual(done.returncode, 0, done.stderr)
        for row in ("| rn3 | 128 | 128 | 28 | 5120 | 0.533 |", "| rn2 | 64 | 64 | 56 | 7228 | 0.606 |"):
            self.assertIn(row, done.stdout)

    def test_damaged_tables_are_refused(self):
        text = TABLE.read_text()
        lines = text.splitlines(keepends=True)
        second = next(i for i, line in enumerate(lines[3:], 3) if line.startswith("task "))
        self.refused("", "line 1 of the table: the file does not begin with 'collage-times 1'")
        self.refused(text.replace("winograd-tiles1", "winograd-tiles2", 1), "the second line is not 'space winograd-tiles1'")
        self.refused("".join(lines[:2]), "the table has no task")
        self.refused("".join(lines[:-1]), "ends after")
        self.refused("".join(lines[:second - 1] + lines[second:]), "'rn3' ends after 5104 of 5120 times")
        self.refused("".join(lines[:second] + lines[2:]), "are the same")
        self.refused(text.replace("points 5120", "points 5119", 1), "'rn3' has 5119 points, and its space has 5120")
        self.refused(text.replace("channels 128", "channels 100", 1), "channels and outputs are multiples of 16")
        self.refused(text.replace("task rn3 channels", "task rn3 inputs", 1), "a task is written as 'task NAME channels N")
        for wrong in ("0", "-5", "1.5", "nan", "inf", "9999999999999"):
            first = lines[3].split(" ", 1)
            self.refused("".join([*lines[:3], wrong + " " + first[1], *lines[4:]]), f"'{wrong}' is no time in nanoseconds")
        self.refused("".join([*lines[:second], "17\n", *lines[second:]]), "line 324 of the table: a task is written as")

    def test_another_version_is_refused(self):
        self.refused("collage-times 3\n", "line 1 of the table: the file does not begin with 'collage-times 1'")
        self.refused("collage-times 2\nspace jit0\n", "line 2 of the table: the second line names no space of this build")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
