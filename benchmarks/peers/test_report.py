import json
import unittest

from peers import report, samples
from peers.comparison import row_of


class Numbers(unittest.TestCase):
    def test_significant_digits(self) -> None:
        for value, text in ((4.2678, "4.27"), (50.84, "50.8"), (102.4, "102"), (1234.5, "1234"), (0.5, "0.500"),
                            (0.01234, "0.0123"), (0.0, "0"), (None, "-")):
            self.assertEqual(report.number(value), text)

    def test_a_table_escapes_and_aligns(self) -> None:
        self.assertEqual(report.table(["a", "long"], [["x|y", "1"], ["z", "22"]], 1),
                         "| a    | long |\n| ---- | ---: |\n| x\\|y |    1 |\n| z    |   22 |")


class Speed(unittest.TestCase):
    def test_rows_and_means(self) -> None:
        rows = [samples.row("b", 2), samples.row("a", 1, openvino=8.0, onnxruntime=6.0, ours=3.0), samples.row("b", 1)]
        lines = report.speed_table(rows, {1: 210.0, 2: 420.0}).splitlines()
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        # Sorted by threads; the faster peer counts; 0.84 GFLOP in 3.12 ms of 210 GFLOP/s.
        self.assertEqual(cells[2], ["a", "1", "all", "3.12", "6.24", "8.32", "2.000 [2.000, 2.000]", "yes, 2e-06", "128 %"])
        self.assertEqual(cells[3][:1] + cells[3][6:7], ["b", "1.100 [1.100, 1.100]"])
        self.assertEqual(cells[4][0], "**geometric mean**")
        self.assertEqual(cells[4][6], "**1.483**")  # sqrt(2 * 1.1)
        self.assertEqual(cells[5][:2], ["b", "2"])
        self.assertEqual(len(cells), 6)  # no mean of one

    def test_rounds_without_a_shared_cache_have_a_table_of_their_own(self) -> None:
        raced = {**samples.raced(onnxruntime=5.0, openvino=4.4, collage_all=4.0), "apart_ms": [[5.0] * 6, [5.5] * 6, [6.25] * 6]}
        row = {"workload": "net", "threads": 2, "backends": "all", **row_of(raced, "collage all", {})}
        self.assertEqual((row["faster_peer"], row["apart"]["faster_peer"]), ("openvino", "onnxruntime"))
        lines = report.apart_table([samples.row("other"), row]).splitlines()
        self.assertEqual([cell.strip() for cell in lines[2].strip("|").split("|")],
                         ["net", "2", "all", "6.25", "5.00", "5.50", "0.800 [0.800, 0.800]", "6"])
        self.assertEqual(len(lines), 3)
        self.assertIn("shared no cache", report.markdown("speed", [row], samples.MACHINE))
        # Of fewer rounds nothing is said.
        few = {**raced, "apart_ms": [[5.0] * 5] * 3}
        self.assertIsNone(row_of(few, "collage all", {})["apart"])
        self.assertNotIn("shared no cache", report.markdown("speed", [samples.row("net")], samples.MACHINE))

    def test_what_failed_is_said_and_stops_nothing(self) -> None:
        broken = samples.row("net", failures={"openvino": "no such operator"}, ours_ms=None, ratio=None)
        rows = [broken, samples.row("other"), samples.row("third")]
        text = report.markdown("speed", rows, samples.MACHINE)
        self.assertIn("- net, 1 thread: OpenVINO: no such operator\n", text)
        self.assertIn("**geometric mean** of 2 of 3", text)
        self.assertIn("1 thread 210 GFLOP/s (NumPy); 2 threads 420 GFLOP/s (OpenVINO, on a busy machine).", text)
        self.assertFalse(report.is_good(rows))
        self.assertTrue(report.is_good(rows[1:]))

    def test_a_workload_of_which_nothing_is_known(self) -> None:
        rows = [{"workload": "net", "threads": 2, "backends": "all", "failures": {"": "has an input of STRING"}}]
        for mode in ("speed", "memory", "load"):
            text = report.markdown(mode, rows, samples.MACHINE)
            self.assertIn("net", text)
            self.assertIn("- net, 2 threads: has an input of STRING", text)

    def test_notes_are_told_once(self) -> None:
        rows = [samples.row("net", backends=label, failures={"openvino": "no"}, calm=False, disturbed_rounds=7,
                            tune_interrupted=True, tune_s=181.2) for label in ("all", "without openvino")]
        self.assertEqual(report.notes(rows), [
            "net, 1 thread: OpenVINO: no", "net, 1 thread: the machine was busy in 7 rounds, and all rounds count",
            "net, 1 thread, all: tuning ended by its budget after 181 s",
            "net, 1 thread, without openvino: tuning ended by its budget after 181 s"])

    def test_disagreement_is_no_success(self) -> None:
        raced = samples.raced(onnxruntime=5.0, openvino=4.0, collage_all=4.0)
        raced["pairs"][2] = {"engines": ["collage all", "openvino"], "worst": 0.1, "why": "output y: 0.1 apart, of 1"}
        row = {"workload": "net", "threads": 1, "backends": "all", **row_of(raced, "collage all", {})}
        self.assertFalse(row["agree"])
        self.assertFalse(report.is_good([row]))
        self.assertEqual(report.agreement(row), "**no**, 1e-01")
        self.assertEqual(report.notes([row]),
                         ["net, 1 thread, all: outputs disagree: collage and openvino: output y: 0.1 apart, of 1"])


class Rows(unittest.TestCase):
    def test_the_faster_peer_is_that_of_the_lower_median(self) -> None:
        row = samples.row("net", ours=4.0, onnxruntime=4.4, openvino=5.0)
        self.assertEqual(row["faster_peer"], "onnxruntime")
        self.assertAlmostEqual(row["ratio"], 1.1)
        self.assertAlmostEqual(row["ratios"]["openvino"]["ratio"], 1.25)

    def test_another_of_our_engines_is_none_of_this_row(self) -> None:
        raced = samples.raced(onnxruntime=5.0, openvino=4.4, collage_all=4.0, collage_eigen=6.0)
        for pair in raced["pairs"]:
            if "collage eigen" in pair["engines"]:
                pair["why"] = "output y: NaN stands in different places"
        failures = {"collage onednn": "no"}
        self.assertTrue(row_of(raced, "collage all", failures)["agree"])
        self.assertEqual(row_of(raced, "collage all", failures)["failures"], {})
        self.assertFalse(row_of(raced, "collage eigen", failures)["agree"])
        self.assertEqual(row_of(raced, "collage onednn", failures)["failures"], {"collage": "no"})

    def test_a_lone_engine_agrees_with_nobody(self) -> None:
        row = row_of(samples.raced(collage_all=1.0), "collage all", {"onnxruntime": "no", "openvino": "no"})
        self.assertFalse(row["agree"])
        self.assertIsNone(row["ratio"])
        self.assertIsNotNone(row["ours_ms"])

    def test_json_has_what_readers_rely_on(self) -> None:
        rows = json.loads(report.as_json([samples.row("net"), {"workload": "x", "threads": 1, "backends": "all", **row_of(
            {"names": [], "rounds_ms": [], "pairs": []}, "", {})}], samples.MACHINE))
        for row in rows:
            for key in ("workload", "threads", "ours_ms", "peers", "ratio", "low", "high", "agree"):
                self.assertIn(key, row)
            self.assertEqual(set(row["peers"]), {"onnxruntime", "openvino"})


if __name__ == "__main__":
    unittest.main()
