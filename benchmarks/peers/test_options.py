import pathlib
import tempfile
import unittest

from peers import machine, options
from peers.errors import Mistake


class Words(unittest.TestCase):
    def test_threads(self) -> None:
        self.assertEqual(options.threads_of("1,2"), [1, 2])
        self.assertEqual(options.threads_of("2,1,2"), [2, 1])
        for wrong in ("", "0", "1,", "two", "-1"):
            with self.assertRaises(Mistake):
                options.threads_of(wrong)

    def test_shapes(self) -> None:
        self.assertEqual(options.shapes_of(["x=1x3x8x8", "a=b=2", "s="]), {"x": [1, 3, 8, 8], "a=b": [2], "s": []})
        for wrong in ("x", "x=1x", "=1", "x=1xA", "x=-1"):
            with self.assertRaises(Mistake):
                options.shapes_of([wrong])

    def test_sets_of_backends(self) -> None:
        here = ["onednn", "openvino", "eigen"]
        self.assertEqual(options.set_of("all", here), options.BackendSet("all", None))
        self.assertEqual(options.set_of("all-openvino", here), options.BackendSet("without openvino", "onednn,eigen"))
        self.assertEqual(options.set_of("eigen,onednn", here), options.BackendSet("eigen+onednn", "eigen,onednn"))
        self.assertEqual(options.set_of("all:direct", here), options.BackendSet("all, direct", None, "direct"))
        self.assertEqual(options.set_of("all-openvino:any", here),
                         options.BackendSet("without openvino, any", "onednn,eigen", "any"))
        for wrong in ("cublas", "all-cublas", "", "all-onednn-openvino-eigen", "all:", "all:fast", ":direct"):
            with self.assertRaises(Mistake):
                options.set_of(wrong, here)

    def test_the_default_leaves_openvino_out_where_it_is_there(self) -> None:
        self.assertEqual([one.label for one in options.sets_of([], ["onednn", "openvino"])], ["all", "without openvino"])
        self.assertEqual([one.label for one in options.sets_of([], ["onednn"])], ["all"])
        self.assertEqual([one.label for one in options.sets_of(["onednn", "onednn"], ["onednn"])], ["onednn"])


class Files(unittest.TestCase):
    def test_names_tell_files_apart(self) -> None:
        with tempfile.TemporaryDirectory() as room:
            top = pathlib.Path(room).resolve()
            for name in ("a/model.onnx", "b/model.onnx", "b/net.onnx", "b/net.txt"):
                (top / name).parent.mkdir(exist_ok=True)
                (top / name).touch()
            found = options.workloads_of([top, top / "a/model.onnx"])
            self.assertEqual([one.name for one in found], ["a/model", "b/model", "net"])
            self.assertEqual(found[0].stem, "a__model")
            self.assertEqual([one.name for one in options.workloads_of([top / "b/model.onnx"])], ["model"])
            (top / "empty").mkdir()
            for wrong in ("nowhere.onnx", "empty"):
                with self.assertRaises(Mistake):
                    options.workloads_of([top / wrong])


class Machine(unittest.TestCase):
    def test_the_processor_has_its_name_and_kind(self) -> None:
        self.assertEqual(machine.processor_name("model name\t: AMD EPYC\nflags\t: sse2 avx2 avx512f\nmodel name\t: B\n"),
                         "AMD EPYC (avx512)")
        self.assertEqual(machine.processor_name(""), "unknown processor")


if __name__ == "__main__":
    unittest.main()
