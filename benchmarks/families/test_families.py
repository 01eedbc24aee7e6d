"""Tries the replay on a few seeds, and the checker of tables on damaged ones.

usage: test_families.py PROGRAM TABLE [MEASURE]

MEASURE is the program that measures tables of generated kernels, if this build has it.
"""
import lzma
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM, TABLE = sys.argv[1], pathlib.Path(sys.argv[2])
MEASURE = sys.argv[3] if len(sys.argv) > 3 else None


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


class WithTables(unittest.TestCase):
    def refused(self, text: str, why: str):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "table"
            file.write_text(text)
            done = run(str(file), "--check")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn(why, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Checker(WithTables):
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


@unittest.skipIf(MEASURE is None, "this build has no generated kernels")
class Stored(unittest.TestCase):
    def test_the_stored_tables_are_whole_and_small(self):
        sizes = []
        for file in TABLE.parent.glob("*.times"):
            sizes.append(len(lzma.compress(file.read_bytes())))
            done = run(str(file), "--check")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual(sum(sizes), 500_000)


@unittest.skipIf(MEASURE is None, "this build has no generated kernels")
class Measured(WithTables):
    folder: tempfile.TemporaryDirectory
    text: str

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.file = pathlib.Path(cls.folder.name) / "depthwise.times"
        done = cls.measure("depthwise", cls.file)
        if done.returncode == 1 and "processor" in done.stderr:
            raise unittest.SkipTest(done.stderr.strip())
        assert done.returncode == 0, done.stderr
        cls.text = cls.file.read_text()

    @staticmethod
    def measure(word: str, file: pathlib.Path) -> subprocess.CompletedProcess:
        return subprocess.run([MEASURE, word, "--out", str(file), "--points", "20", "--passes", "2"],
                              capture_output=True, text=True)

    def test_each_space_is_measured_and_read(self):
        for word in ("products", "convolutions", "depthwise"):
            file = pathlib.Path(self.folder.name) / f"{word}.again"
            self.assertEqual(self.measure(word, file).returncode, 0, word)
            done = run(str(file), "--check")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count(" | 20 | "), 4, done.stdout)
        again = file.read_text().splitlines()
        points = [[line.split()[0] for line in text] for text in (self.text.splitlines(), again)]
        self.assertEqual(points[0], points[1], "the same seed gives the same sample")

    def test_replays_print_the_same(self):
        done = [run(str(self.file), "--seeds", "1", "--measurements", "16") for _ in range(2)]
        if "XGBoost" in done[0].stderr and done[0].returncode == 1:
            self.skipTest(done[0].stderr.strip())
        self.assertEqual([one.returncode for one in done], [0, 0], done[0].stderr)
        self.assertEqual(done[0].stdout, done[1].stdout)
        self.assertIn("| transfer from the three others |", done[0].stdout)

    def test_the_time_of_a_point_is_the_median_of_its_passes(self):
        lines = self.text.splitlines()
        lines[3] = "passes 3"
        for i in range(4, len(lines)):
            if not lines[i].startswith("task "):
                lines[i] = f"{lines[i].split()[0]} 1000 9000000 5000000"
        file = pathlib.Path(self.folder.name) / "medians"
        file.write_text("\n".join(lines) + "\n")
        done = run(str(file), "--check")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("| 20 | 5.000 | 100.00 % | 1.00 | 1.0 |"), 4, done.stdout)
        self.assertEqual(done.stdout.count("| 180.0 % | below 180.0 % |"), 4, done.stdout)

    def test_damaged_tables_are_refused(self):
        lines = self.text.splitlines(keepends=True)

        def with_line(number: int, new: str) -> str:
            return "".join([*lines[:number - 1], new, *lines[number:]])

        first, second = lines[5].split(), lines[6].split()
        self.refused(with_line(2, "space depthwise0\n"), "line 2 of the table: the second line names no space")
        for machine in ("machine lanes 16", lines[2].replace("registers", "register").strip(),
                        re.sub("lanes [0-9]+", "lanes 4", lines[2].strip()),
                        re.sub("caches [0-9]+", "caches 0", lines[2].strip())):
            self.refused(with_line(3, machine + "\n"), "line 3 of the table: the third line is not 'machine lanes N")
        for passes in ("passes 0", "passes", "passes two", "task"):
            self.refused(with_line(4, passes + "\n"), "line 4 of the table: the fourth line is not 'passes N'")
        self.refused("".join(lines[:4]), "the table has no task")
        for wrong in (lines[4].replace("outputs", "output"), re.sub("texts .*", "texts", lines[4]),
                      re.sub("points 20", "points 0", lines[4]), re.sub("of [0-9]+", "of 19", lines[4])):
            self.refused(with_line(5, wrong), "line 5 of the table: a task is written as 'task NAME channels N outputs N")
        self.refused(with_line(5, re.sub("window [0-9]+", "window 4", lines[4])), "windows of 3, 5 and 7 are known")
        self.refused(with_line(5, re.sub("of [0-9]+", "of 999999", lines[4])), "has 999999 points, and its space has")
        self.refused(with_line(5, re.sub("texts .*", "texts 0123456789abcdef", lines[4])),
                     "line 25 of the table: the texts of the points of 'mn2' have another hash")
        self.refused(with_line(6, " ".join(second) + "\n"), "line 7 of the table: the points of 'mn2' do not ascend")
        for wrong in ("-1", "99999999", "x"):
            self.refused(with_line(6, " ".join([wrong, *first[1:]]) + "\n"), f"'{wrong}' is no point of 'mn2'")
        self.refused(with_line(6, " ".join(first[:-1]) + "\n"),
                     "line 6 of the table: a point has 1 times, and the table has 2 passes")
        self.refused(with_line(6, " ".join([*first[:-1], "0"]) + "\n"), "'0' is no time in nanoseconds")
        self.refused("".join(lines[:-1]), "'mn7' ends after 19 of 20 points")
        self.refused("".join([*lines[:25], *lines[4:]]), "are the same")

    def test_wrong_arguments_are_refused(self):
        for arguments in ([], ["products"], ["winograd", "--out", "x"], ["products", "--out"],
                          ["products", "--out", "x", "--points", "0"], ["products", "depthwise", "--out", "x"]):
            done = subprocess.run([MEASURE, *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
