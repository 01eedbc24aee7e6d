import pathlib
import tempfile
import unittest
from typing import Any
from unittest import mock

from peers import samples
from peers.comparison import Comparison
from peers.errors import Failure
from peers.options import BackendSet, Workload
from peers.processes import EngineFailure

SETS = [BackendSet("all", None), BackendSet("without openvino", "onednn")]
DESCRIBED = {"model": "", "bytes": 25e6, "inputs": [], "outputs": ["y"], "open": {"x": [1, 3]}, "overrides": {}, "gflop": 0.84}


class Children:
    """Stands for processes: answers each task by `engines`, what each does or with what it takes the process along."""

    def __init__(self, engines: dict[str, float | str]) -> None:
        self.engines = engines
        self.tasks: list[dict[str, Any]] = []
        self.peaks: list[dict[str, Any]] = []
        self.exchange_us = 0.0

    def run(self, task: dict[str, Any], *, failed: Any = None, **_: Any) -> Any:
        self.tasks.append(task)
        if task["task"] == "peak":
            return self.peaks.pop(0)
        if task["task"] == "describe":
            return {**DESCRIBED, "model": task["file"]}
        times = {}
        for engine in task["engines"]:
            does = self.engines.get(engine["name"], 4.0)
            if does == "crashes":
                raise EngineFailure(engine["name"], "its process was ended by SIGSEGV")
            if isinstance(does, str):
                if task["task"] != "race":
                    raise EngineFailure("", does)
                failed(engine["name"], does)
            else:
                times[engine["name"].replace(" ", "_")] = does
        if task["task"] == "race":
            return {**samples.raced(**times), "exchange_us": self.exchange_us}
        if task["task"] == "memory":
            return {"before_mb": 30.0, "most_mb": 100.0 * list(times.values())[0]}
        ours = task["engines"][0]["kind"] == "collage"
        return {"ready_ms": 10.0, "first_run_ms": 1.0,
                "stages_ms": {"network": 1.0, "plan": 2.0, "engine": 3.0} if ours else {}}


class Comparisons(unittest.TestCase):
    def setUp(self) -> None:
        room = tempfile.TemporaryDirectory()
        self.addCleanup(room.cleanup)
        self.room = pathlib.Path(room.name)
        self.workload = Workload("net", self.room / "net.onnx")
        self.workload.file.write_bytes(b"a model")
        self.tuner = mock.Mock(seconds=180, store=self.room / "costs.db")
        self.tuner.plan.return_value = {"file": "plan.json", "seconds": 20.0, "interrupted": False}

    def comparison(self, engines: dict[str, float | str] | None = None, **more: Any) -> tuple[Comparison, Children]:
        children = Children(engines or {})
        settings = {"rounds": 12, "seconds": 0.5, "key": {"library": "abc"}, "shapes": {}, "sets": SETS, **more}
        return Comparison(children=children, tuner=self.tuner, library=self.room / "lib",  # type: ignore[arg-type]
                          out=self.room / "out", say=lambda *_: None, **settings), children

    def test_a_row_for_each_set(self) -> None:
        comparison, children = self.comparison({"onnxruntime": 5.0, "openvino": 4.4, "collage without openvino": 5.5})
        first, second = comparison.rows("speed", self.workload, 2)
        self.assertEqual([first["workload"], first["threads"], first["backends"]], ["net", 2, "all"])
        self.assertAlmostEqual(first["ratio"], 1.1)
        self.assertAlmostEqual(second["ratio"], 0.8)
        self.assertEqual(second["backends"], "without openvino")
        # The shapes that the file leaves open reach the program and all engines; one process holds all four.
        self.assertEqual(self.tuner.plan.call_args.args[-1], {"x": [1, 3]})
        race = children.tasks[-1]
        self.assertEqual([engine["kind"] for engine in race["engines"]], ["onnxruntime", "openvino", "collage", "collage"])

    def test_what_is_finished_is_not_measured_again(self) -> None:
        comparison, _ = self.comparison()
        rows = comparison.rows("speed", self.workload, 2)
        again, children = self.comparison()
        self.assertEqual(again.rows("speed", self.workload, 2), rows)
        self.assertEqual(children.tasks, [])
        for change in ({"key": {"library": "other"}}, {"rounds": 9}, {"sets": SETS[:1]}, {"shapes": {"x": [1, 4]}}):
            other, children = self.comparison(**change)
            other.rows("speed", self.workload, 2)
            self.assertNotEqual(children.tasks, [], change)
        again.rows("speed", self.workload, 2)
        self.workload.file.write_bytes(b"another model")
        other, children = self.comparison()
        other.rows("speed", self.workload, 2)
        self.assertNotEqual(children.tasks, [])

    def test_races_are_told_how_near_the_processors_were_before(self) -> None:
        comparison, children = self.comparison()
        told = []
        for threads, seen in ((1, 0.0), (2, 7.0), (3, 6.8)):
            children.exchange_us = seen
            comparison.rows("speed", self.workload, threads)
            told.append(children.tasks[-1]["exchange_us"])
        self.assertEqual(told, [None, None, 7.0])

    def test_what_failed_is_tried_again(self) -> None:
        comparison, _ = self.comparison({"openvino": "no such operator"})
        first, _ = comparison.rows("speed", self.workload, 2)
        self.assertEqual(first["failures"], {"openvino": "no such operator"})
        self.assertEqual(first["faster_peer"], "onnxruntime")
        again, children = self.comparison()
        self.assertEqual(again.rows("speed", self.workload, 2)[0]["failures"], {})
        self.assertEqual(children.tasks[-1]["task"], "race")

    def test_a_crash_costs_one_engine(self) -> None:
        comparison, children = self.comparison({"openvino": "crashes", "collage all": "crashes", "onnxruntime": 5.0})
        first, second = comparison.rows("speed", self.workload, 2)
        self.assertEqual([len(task["engines"]) for task in children.tasks if task["task"] == "race"], [4, 3, 2])
        self.assertEqual(set(first["failures"]), {"openvino", "collage"})
        self.assertIsNone(first["ratio"])
        self.assertEqual(set(second["failures"]), {"openvino"})
        self.assertAlmostEqual(second["ratio"], 1.25)

    def test_a_network_that_cannot_be_tuned_is_measured_on_the_peers(self) -> None:
        self.tuner.plan.side_effect = Failure("no backend runs loop_1")
        comparison, _ = self.comparison()
        first, _ = comparison.rows("speed", self.workload, 2)
        self.assertEqual(first["failures"], {"collage": "tuning: no backend runs loop_1"})
        self.assertIsNotNone(first["peers"]["openvino"])

    def test_a_file_that_cannot_be_read_is_a_row_with_a_reason(self) -> None:
        comparison, children = self.comparison()
        children.run = mock.Mock(side_effect=EngineFailure("", "is no model"))  # type: ignore[method-assign]
        for row in comparison.rows("speed", self.workload, 2):
            self.assertEqual(row["failures"], {"": "is no model"})
            self.assertIsNone(row["ratio"])
        self.workload.file.unlink()
        self.assertIn("cannot be read", comparison.rows("speed", self.workload, 2)[0]["failures"][""])

    def test_memory(self) -> None:
        comparison, _ = self.comparison({"onnxruntime": 2.0, "openvino": "no memory", "collage all": 1.5})
        first, second = comparison.rows("memory", self.workload, 1)
        self.assertEqual(first["ours_most_mb"], 150.0)
        self.assertEqual(second["ours_most_mb"], 400.0)
        self.assertEqual(first["peers"], {"onnxruntime": 200.0, "openvino": None})
        self.assertEqual(first["before_mb"], 30.0)
        self.assertEqual(first["failures"], {"openvino": "no memory"})

    def test_loading(self) -> None:
        comparison, children = self.comparison()
        first, second = comparison.rows("load", self.workload, 1)
        self.assertEqual((first["ours_ready_ms"], first["peers"]["onnxruntime"], first["planned_from"]), (10.0, 10.0, "store"))
        self.assertEqual(first["stages_ms"], {"network": 1.0, "plan": 2.0, "engine": 3.0})
        self.assertGreater(first["reading_ms"], 0)
        stores = [task["engines"][0] for task in children.tasks if task["task"] == "load" and "store" in task["engines"][0]]
        self.assertEqual({one["backends"] for one in stores}, {None, "onednn"})
        self.assertEqual(second["backends"], "without openvino")

    def test_a_cold_store_gives_way_to_the_file_of_the_plan(self) -> None:
        comparison, children = self.comparison(sets=SETS[:1])
        run = children.run

        def cold(task: dict[str, Any], **more: Any) -> Any:
            if "store" in task.get("engines", [{}])[0]:
                raise EngineFailure("", "costs.db: does not hold all")
            return run(task, **more)

        children.run = cold  # type: ignore[method-assign]
        row = comparison.rows("load", self.workload, 1)[0]
        self.assertEqual(row["planned_from"], "file (costs.db: does not hold all)")
        self.assertEqual(row["ours_ready_ms"], 10.0)
        self.assertEqual(row["failures"], {})

    def test_the_peak_is_the_most_that_was_seen_and_is_measured_until_it_was_calm(self) -> None:
        comparison, children = self.comparison()
        children.peaks = [{"gflops": 200.0, "calm": False}, {"gflops": 150.0, "calm": False}, {"gflops": 190.0, "calm": True}]
        found = [comparison.peak(2) for _ in range(4)]
        self.assertEqual([one["gflops"] for one in found], [200.0] * 4)
        self.assertEqual([one["calm"] for one in found], [False, False, True, True])
        self.assertEqual(children.peaks, [])

    def test_filled_files_do_not_stay(self) -> None:
        comparison, _ = self.comparison()
        comparison.rows("speed", self.workload, 1)
        filled = comparison.room / "net" / "net.onnx"
        filled.parent.mkdir(parents=True)
        filled.touch()
        comparison.finish(self.workload)
        self.assertFalse(filled.exists())


if __name__ == "__main__":
    unittest.main()
