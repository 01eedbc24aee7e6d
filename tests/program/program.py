"""What the tests of the program share: starting it, and small .npy files without numpy."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else "collage"
# The cheapest networks: one of matrix products, one of convolutions.
BERT, MOBILENET = "zoo:bert-paper", "zoo:mobilenet-v2"
BERT_SHAPE = (1, 64, 256)


# What is measured is kept for the tests of one file, and not among the user's own.
CACHES = tempfile.TemporaryDirectory()


def environment(**more):
    plain = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
    # Tests share few cores: waiting threads must not spin.
    return {**plain, "OMP_WAIT_POLICY": "passive", "XDG_CACHE_HOME": CACHES.name, **more}


def collage(*words, timeout=500, **options):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=timeout, env=environment(), **options)


def npy(shape, kind="<f4", values=None, fortran=False, text=None):
    """An .npy file of version 1.0; zeros without `values`."""
    count = 1
    for extent in shape:
        count *= extent
    header = text or f"{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {tuple(shape)}, }}"
    header = header.encode() + b" " * (63 - (10 + len(header)) % 64) + b"\n"
    size = int(kind[-1])
    letter = {"<f4": "f", "<i8": "q"}[kind] if values else ""
    body = struct.pack(f"<{count}{letter}", *values) if values else bytes(count * size)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


def floats(path):
    """The elements of a float32 .npy file."""
    data = pathlib.Path(path).read_bytes()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - start) // 4}f", data[start:])


class Case(unittest.TestCase):
    """A test with a folder of its own."""

    @classmethod
    def setUpClass(cls):
        cls.room = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.room.name)

    @classmethod
    def tearDownClass(cls):
        cls.room.cleanup()

    def path(self, name):
        return str(self.folder / name)

    def succeeds(self, *words, **options):
        done = collage(*words, **options)
        self.assertEqual(done.returncode, 0, f"collage {' '.join(words)}\n{done.stdout}{done.stderr}")
        return done

    def fits_page(self, text):
        for line in text.splitlines():
            self.assertLessEqual(len(line), 100, line)

    def json_of(self, *words):
        return json.loads(self.succeeds(*words, "--json", "--quiet").stdout)

    def refused(self, *words, saying="", code=2, **options):
        """The program ends with a code and says why in one line on standard error."""
        done = collage(*words, **options)
        told = f"collage {' '.join(words)} -> {done.returncode}\n{done.stdout}{done.stderr}"
        self.assertEqual(done.returncode, code, told)
        self.assertEqual(done.stdout, "", told)
        self.assertRegex(done.stderr, r"\Acollage: [^\n]+\n\Z", told)
        self.assertIn(saying, done.stderr, told)


def placed_backends():
    """The backends of this build that can run operators here in float32: not those that only convert."""
    def runs_operators(backend):
        return backend["rule"] or backend["regions"] or any(p["name"] != "convert_layout" for p in backend["patterns"])
    return [b["name"] for b in json.loads(collage("backends", "--json").stdout) if b["available"] and runs_operators(b) and not b["variant_of"]]


def complete_backend():
    """One that takes every operator of the built-in networks by itself."""
    return next(name for name in ("eigen", "onednn") if name in placed_backends())
