"""The figures and bars of the comparison beside busy processes."""
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from busy import engine, main
from busy.surroundings import Surroundings, competitors, group_with
from peers.errors import Failure, Mistake


def turn(median: float, tail: float) -> list[float]:
    """A hundred times: 90 of `median`, 10 of `tail`."""
    return [median] * 90 + [tail] * 10


def found(ours: tuple[float, float], default: tuple[float, float], one: tuple[float, float], other: tuple[float, float]):
    names = (main.OURS, main.LONG_WAITING, main.ONE_THREAD, *main.PEERS)
    return {name: main.figures([turn(*times)] * 6) for name, times in zip(names, (ours, default, (9, 9), one, other))}


def made_by_a_kernel(groups: pathlib.Path, files: tuple[str, ...]) -> dict[str, str]:
    """What a new group's files hold, where the kernel puts these files into each new folder."""
    plain = pathlib.Path.mkdir

    def mkdir(folder: pathlib.Path) -> None:
        plain(folder)
        for file in files:
            if folder.parent == (groups / file).parent:
                (folder / pathlib.Path(file).name).write_text("")

    with mock.patch.object(pathlib.Path, "mkdir", mkdir):
        folder = group_with(1.5, groups)
    return {file.name: file.read_text() for file in folder.iterdir()}


class Policy(unittest.TestCase):
    """tests/c/waiting.py tests the policies that the library reports."""

    def test_only_the_long_waiting_sets_a_variable(self):
        self.assertEqual(main.VARIABLES, {main.LONG_WAITING: {"COLLAGE_WAIT_BRIEFLY": "0"}})

    def test_variables_reach_the_engine(self):
        with tempfile.TemporaryDirectory() as name:
            python = pathlib.Path(name) / "python"
            python.write_text(f"#!{sys.executable}\nimport json, os, sys\n"
                              "with os.fdopen(int(sys.argv[-1]), 'w') as events:\n"
                              "    events.write(json.dumps({'failed': str(os.environ.get('COLLAGE_WAIT_BRIEFLY'))}))\n")
            python.chmod(0o755)
            for variables, seen in ((main.VARIABLES[main.LONG_WAITING], "0"), ({}, "None")):
                with mock.patch.dict(os.environ):
                    os.environ.pop("COLLAGE_WAIT_BRIEFLY", None)
                    self.assertRaisesRegex(Failure, f"^{seen}$", main.Engine, str(python), {}, pathlib.Path(name) / "log", variables)

    def test_another_policy_is_a_failure(self):
        library = mock.Mock(path="libcollage.so")
        library.system.return_value = {"waiting_policy": "brief"}
        engine.waits(library, "brief")
        library.call.assert_called_with("collage_set_waiting", b"brief")
        self.assertRaisesRegex(Failure, "^threads of libcollage.so wait by the policy brief, not default: unset ", engine.waits, library,
                               "default")


class Figures(unittest.TestCase):
    def test_median_of_each_percentile(self):
        figures = main.figures([turn(1, 5), turn(2, 40), turn(3, 9)])
        self.assertEqual((figures["runs"], figures["medians"], figures["median"], figures["tail"]), (300, [1, 2, 3], 2, 9))

    def test_bars_beside_busy_processes(self):
        for ours, holds in (((10, 20), True), ((11, 26), True), ((11.2, 20), False), ((10, 27), False)):
            ratios, does = main.verdict(found(ours, (50, 500), (10, 30), (20, 20)), Surroundings(2))
            self.assertEqual(does, holds, (ours, ratios))

    def test_bar_alone(self):
        for ours, holds in (((10, 10), True), ((10.2, 10), True), ((10.3, 10), False)):
            self.assertEqual(main.verdict(found(ours, (10, 10), (1, 1), (1, 1)), Surroundings())[1], holds, ours)

    def test_bar_under_a_quota(self):
        for ours, holds in (((10, 10), True), ((10.1, 10), False)):
            self.assertEqual(main.verdict(found(ours, (50, 50), (10, 10), (11, 11)), Surroundings(quota=0.5))[1], holds, ours)

    def test_row(self):
        cells, holds = main.row_of("net", Surroundings(2), found((12, 20), (50, 500), (10, 30), (20, 20)))
        self.assertEqual(cells, ["net", "2", "12.0 / 20.0 (600)", "50.0 / 500 (600)", "9.00 / 9.00 (600)", "10.0 / 30.0 (600)", "20.0 / 20.0 (600)",
                                 "1.20 / 1.00", "-", "**no**"])
        self.assertFalse(holds)

    def test_counts(self):
        self.assertEqual(main.counts_of("0,12"), [0, 12])
        for text in ("", "1,", "-1", "a"):
            self.assertRaises(Mistake, main.counts_of, text)

    def test_quotas(self):
        self.assertEqual(main.quotas_of("0.5,2"), [0.5, 2])
        for text in (",", "0", "-1", "a", "nan", "inf"):
            self.assertRaises(Mistake, main.quotas_of, text)

    def test_threads_that_a_quota_serves(self):
        self.assertEqual([Surroundings(quota=quota).threads(2) for quota in (0.5, 1, 1.5, 4)], [1, 1, 2, 2])
        self.assertEqual(Surroundings(2).threads(2), 2)

    def test_competitors_end(self):
        with competitors(2):
            pass
        with competitors(0):
            pass

    def test_groups_of_both_versions(self):
        for files in (("cpu.max",), ("cpu/cpu.cfs_period_us", "cpu/cpu.cfs_quota_us")):
            with tempfile.TemporaryDirectory() as name:
                groups = pathlib.Path(name)
                (groups / "cpu").mkdir()
                self.assertRaises(Failure, group_with, 1.5, groups)  # new folders have no files here
                made = made_by_a_kernel(groups, files)
                self.assertEqual(made, {pathlib.Path(file).name: text for file, text in zip(
                    files, ("150000 100000",) if len(files) == 1 else ("100000", "150000"))})
