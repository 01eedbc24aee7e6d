import pathlib
import tempfile
import unittest

from peers import results
from peers.errors import Failure


class Kept(unittest.TestCase):
    def setUp(self) -> None:
        room = tempfile.TemporaryDirectory()
        self.addCleanup(room.cleanup)
        self.folder = pathlib.Path(room.name) / "results"
        self.kept = results.Kept(self.folder)

    def test_a_value_is_found_under_its_key_alone(self) -> None:
        key = {"library": "abc", "sets": [("all", None)]}
        self.assertIsNone(self.kept.find("net.1", key))
        self.kept.keep("net.1", key, [{"ratio": 1.5}])
        self.assertEqual(results.Kept(self.folder).find("net.1", key), [{"ratio": 1.5}])
        self.assertIsNone(self.kept.find("net.1", {**key, "library": "abd"}))
        self.assertIsNone(self.kept.find("net.2", key))

    def test_what_was_cut_off_is_not_there(self) -> None:
        self.kept.keep("net.1", {}, [1])
        file = self.kept.file("net.1")
        file.write_text(file.read_text()[:-5])
        self.assertIsNone(self.kept.find("net.1", {}))
        file.write_text("[]")
        self.assertIsNone(self.kept.find("net.1", {}))

    def test_a_file_is_replaced_in_one_step(self) -> None:
        self.kept.keep("net.1", {}, 1)
        self.kept.keep("net.1", {}, 2)
        self.assertEqual([file.name for file in self.folder.iterdir()], ["net.1.json"])
        self.assertEqual(self.kept.find("net.1", {}), 2)

    def test_a_folder_that_cannot_be_written_is_one_sentence(self) -> None:
        (self.folder.parent / "file").touch()
        with self.assertRaisesRegex(Failure, "^/.*/net.json: cannot be written: "):
            results.Kept(self.folder.parent / "file").keep("net", {}, 1)

    def test_digests_are_of_the_contents(self) -> None:
        one, other = self.folder.parent / "one", self.folder.parent / "other"
        one.write_bytes(b"x" * 5_000_000)
        other.write_bytes(b"x" * 5_000_000)
        self.assertEqual(results.digest(one), results.digest(other))
        other.write_bytes(b"x" * 4_999_999 + b"y")
        self.assertNotEqual(results.digest(one), results.digest(other))
        with self.assertRaises(Failure):
            results.digest(self.folder / "nowhere")


if __name__ == "__main__":
    unittest.main()
