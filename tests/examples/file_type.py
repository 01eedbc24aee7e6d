#!/usr/bin/env python3
"""The example file_type says what files are: usage: file_type.py PROGRAM MODELS"""
import gzip
import pathlib
import struct
import sys
import zlib

import program

PROJECT = pathlib.Path(__file__).resolve().parents[2]


def png():
    """A red picture."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    lines = b"".join(b"\0" + b"\xff\0\0" * 64 for _ in range(64))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


class FileType(program.Case):
    def types(self, *files):
        lines = [line.split() for line in self.answer(*files)]
        self.assertEqual([line[0] for line in lines], [str(file) for file in files])
        return [line[1] for line in lines]

    def test_files_of_this_project(self):
        files = {"README.md": "markdown", "CMakeLists.txt": "cmake", "tools/demo": "shell", "cmake/check_docs.py": "python",
                 "examples/first_program.cpp": "cpp", "CMakePresets.json": "json"}
        self.assertEqual(self.types(*(PROJECT / name for name in files)), list(files.values()))

    def test_files_that_are_no_text(self):
        picture, packed = self.write("a", png()), self.write("b", gzip.compress(b"some text " * 100))
        self.assertEqual(self.types(picture, packed, pathlib.Path(sys.executable).resolve()), ["png", "gzip", "elf"])

    def test_few_bytes_are_told_without_the_model(self):
        files = [self.write("empty", b""), self.write("short", b"hi\n"), self.write("blank", b" " * 5000 + b"ab"),
                 self.write("umlaut", "ä".encode()), self.write("cut", "ä".encode()[:1]),
                 self.write("overlong", b"\xc0\x80"), self.write("surrogate", b"\xed\xa0\x80")]
        self.assertEqual(self.types(*files, self.folder),
                         ["empty", "txt", "txt", "txt", "unknown", "unknown", "unknown", "directory"])

    def test_where_the_model_is_not_sure_the_answer_is_general(self):
        self.assertEqual(self.types(self.write("noise", b"".join(bytes([i * i * 7 % 251]) for i in range(9000)))), ["unknown"])

    def test_a_plan_that_is_kept(self):
        if not program.PROGRAM.endswith(".py"):
            self.skipTest("the program in C++ always keeps its plan")
        plan, files = self.folder / "magika.plan.json", [PROJECT / "README.md"]
        first = self.answer("--plan", plan, *files)
        made = plan.read_bytes()
        self.assertEqual((self.answer("--plan", plan, *files), plan.read_bytes()), (first, made))

    def test_mistakes(self):
        self.refused(says="usage")
        self.refused("--colour", "red", says="usage")
        self.refused(self.folder / "none", says="none: cannot be read")
        self.refused(PROJECT / "README.md", models=self.folder, says="config.min.json: is not here; tools/setup", status=1)


program.main("magika/model.onnx", "magika/config.min.json", "magika/content_types_kb.min.json")
