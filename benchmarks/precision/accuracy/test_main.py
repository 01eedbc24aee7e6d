"""The command line, and the tables."""
import contextlib
import csv
import io
import json
import unittest
from typing import Any

from peers.errors import Mistake
from precision.accuracy import main, report


def row(**changed: Any) -> dict[str, Any]:
    return {"name": "text", "network": "PP-OCR", "data": "lines", "precision": "bf16", "unit": "lines", "measure": "characters",
            "units": 400, "items": 5000, "first": 0.951, "second": 0.9505, "drop": 0.0005, "low": -0.001, "high": 0.002, "upper": 0.0092,
            "worse": 3, "better": 2, "bar": 0.01, "holds": True, "error": 0.0042, "plan": "bf16", "groups": 80, "lower": 60,
            "allowed": "1%", "confirmed": 0.0051, "tune_s": 60.0, "float32_ms": 30.0, "ms": 20.0, "times_as_fast": 1.5,
            "times_low": 1.4, "times_high": 1.6, "load": 1.0, **changed}


ABOUT = {"threads": 1, "notes": ["text, bf16, 1%: a note"], "versions": {"numpy": "2"}, "processor": "P", "processors": 2, "date": "today",
         "collage": "0.1.0", "samples": 40, "budget_s": 60, "seed": 5}


class CommandLine(unittest.TestCase):
    def given(self, *words: str) -> Any:
        return main.checked(main.parser().parse_args(["--library", __file__, "--program", __file__, *words]))

    def test_all_networks_unless_some_are_named(self):
        self.assertEqual(self.given().networks, list(main.NETWORKS))
        given = self.given("files", "text", "files", "--precision", "bf16,any", "--error", "0.5%,3%")
        self.assertEqual((given.networks, given.precision, given.error), (["files", "text"], ["bf16", "any"], ["0.5%", "3%"]))

    def test_mistakes(self):
        for words, said in ((("music",), "music: is none of text, files"), (("--precision", "fp8"), "--precision fp8: is none of bf16"),
                            (("--precision", ""), "--precision : is none"), (("--error", "1"), "--error 1: is no share"),
                            (("--error", "0%"), "--error 0%"), (("--error", "nan%"), "--error nan%"), (("--error", "1%,x%"), "--error x%"), (("--error", "101%"), "--error 101%"),
                            (("--count", "1"), "--count 1: at least 2"), (("--samples", "2"), "--samples 2: at least 3"),
                            (("--budget", "0"), "--budget 0"), (("--rounds", "5"), "--rounds 5"), (("--threads", "100000"), "--threads 100000"),
                            (("--seed", "-1"), "--seed -1"), (("--program", "/nowhere"), "--program /nowhere: there is no such program")):
            with self.assertRaises(Mistake) as caught:
                self.given(*words)
            self.assertIn(said, str(caught.exception))

    def test_a_mistake_is_one_sentence_and_ends_before_anything_is_set_up(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(main.main(["--count", "0", "--python", "/nowhere"]), 2)
        self.assertEqual(said.getvalue(), "accuracy: --count 0: at least 2 is needed\n")

    def test_a_python_that_is_not_there(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(main.main(["--library", __file__, "--program", __file__, "--python", "/nowhere"]), 1)
        self.assertEqual(said.getvalue(), "accuracy: /nowhere: cannot be started: No such file or directory\n")


class Reports(unittest.TestCase):
    def cells(self, page: str, start: str) -> list[str]:
        line = next(line for line in page.splitlines() if line.startswith(f"| {start}"))
        return [cell.strip() for cell in line.split("|")[1:-1]]

    def test_table(self):
        page = report.markdown([row()], [], ABOUT)
        self.assertEqual(self.cells(page, "PP-OCR"),
                         ["PP-OCR", "characters", "5000 in 400 lines", "bf16", "1%", "95.10 %", "95.05 %", "0.05 % (-0.10 % to 0.20 %)", "0.92 %", "yes",
                          "3, 2", "0.420 %", "0.510 %", "60 of 80", "1.50 (1.40 to 1.60)"])
        for text in ("- text: lines", "- text, bf16, 1%: a note", "seed 5", "numpy 2"):
            self.assertIn(text, page)

    def test_a_plan_in_float32_a_busy_machine_and_a_bar_that_does_not_hold_are_said(self):
        cells = self.cells(report.markdown([row(plan="fp32", allowed="100%", confirmed=None, load=2.0, holds=False, items=400)], [], ABOUT), "PP-OCR")
        self.assertEqual((cells[2], cells[3], cells[4], cells[9], cells[12], cells[14]),
                         ("400 lines", "bf16: plan in float32", "any", "**no**", "-", "1.50 (1.40 to 1.60), busy"))

    def test_table_of_the_worst_layers(self):
        part = {"error": 0.09, "groups": 60, "lower": 55, "times_as_fast": 3.0, "times_low": 2.9, "times_high": 3.1, "load": 1.0}
        layers = [{"network": "opennsfw", "precision": "int8", "free": part, "third": {**part, "error": 0.03, "lower": 50}, "kept": 0.93}]
        self.assertEqual(self.cells(report.markdown([row()], layers, ABOUT), "opennsfw")[2:],
                         ["9.00 %", "55 of 60", "3.00 (2.90 to 3.10)", "3.00 %", "50 of 60", "3.00 (2.90 to 3.10)", "93 %"])

    def test_a_network_that_failed_has_its_reason_and_no_table(self):
        page = report.markdown([], [], {**ABOUT, "notes": ["text: failed: no samples"]})
        self.assertTrue(page.startswith("- text: failed: no samples\n"))
        self.assertNotIn("|", page)

    def test_files(self):
        read = list(csv.DictReader(io.StringIO(report.csv_of([row(), row(precision="int8")]))))
        self.assertEqual([one["precision"] for one in read], ["bf16", "int8"])
        self.assertEqual(report.csv_of([]), "")
        self.assertEqual(json.loads(report.as_json([row()], [], ABOUT))["rows"][0]["upper"], 0.0092)


if __name__ == "__main__":
    unittest.main()
