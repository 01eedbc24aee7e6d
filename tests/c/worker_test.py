#!/usr/bin/env python3
"""The executable that measures for programs that cannot be started again, such as Python: worker_test.py LIBRARY MODEL

The library is opened by a relative path, and then the folder changes. With a third argument, the file of the library is
another build's when the worker starts; such a test runs in a process of its own.
"""
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

THIS = os.path.abspath(__file__)
WHOLE = [os.path.abspath(path) for path in sys.argv[1:3]]
sys.argv[1:3] = os.path.relpath(WHOLE[0]), WHOLE[1]

from interface import ProgressFunction, call, collage, document, made, options_for_model, place  # noqa: E402

os.chdir("/")

# Says that it is ready, as a worker of another build does, of an old one that named no build, or as something else.
IMPOSTOR = """#!{python}
import socket, struct, sys
hello = struct.pack("<QQ", 0x636F6C6C61676501, 0)
build = b"another build"
packets = {{"build": hello + struct.pack("<Q", len(build)) + build.ljust(16, b"\\0"), "old": hello, "noise": b"1234567"}}
socket.socket(fileno=int(sys.argv[2])).send(packets["{kind}"])
sys.stdin.read()
"""


def network():
    return made("network_from_file", WHOLE[1].encode(), ctypes.byref(options_for_model()))


def where(**settings):
    plan = place(network(), store=b"none", backends=b"portable", **settings)
    placing = document("plan_json", plan)["placing"]
    assert placing["measured"] > 0, placing
    return placing["where"]


def workers():
    """The processes that this one has started as workers."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            name, rest = (folder / "stat").read_text().rsplit(")", 1)
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if name.endswith("(collage-worker") and int(parent) == os.getpid() and state != "Z":
            found.append(int(folder.name))
    return found


class Worker(unittest.TestCase):
    def setUp(self):
        os.environ.pop("COLLAGE_WORKER", None)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def expect(self, chosen, reason):
        """Without a worker, kernels are measured here, and the report and the log say why."""
        os.environ["COLLAGE_WORKER"] = str(chosen)
        told = []
        LogFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)
        listener = LogFunction(lambda _, level, text: told.append(text.decode()))
        collage.collage_set_log(listener, None)
        try:
            self.assertEqual(where(), f"in this process ({reason})")
        finally:
            collage.collage_set_log(ctypes.cast(None, LogFunction), None)
        self.assertTrue(any(reason in text for text in told), told)

    def impostor(self, kind):
        file = self.folder / kind
        file.write_text(IMPOSTOR.format(python=sys.executable, kind=kind))
        file.chmod(0o755)
        return file

    def test_it_is_found(self):
        self.assertEqual(where(), "in a worker")
        self.assertEqual(workers(), [])

    def test_a_process_may_do_without(self):
        self.expect("none", "COLLAGE_WORKER is none")

    def test_a_worker_of_ones_own_choice(self):
        shutil.copy(pathlib.Path(WHOLE[0]).parent / "collage-worker", self.folder / "collage-worker")
        os.environ["COLLAGE_WORKER"] = str(self.folder / "collage-worker")
        seen = set()
        progress = ProgressFunction(lambda _, now: seen.update(os.readlink(f"/proc/{pid}/exe") for pid in workers()) or 0)
        self.assertEqual(where(progress=progress), "in a worker")
        self.assertEqual(seen, {os.path.realpath(self.folder / "collage-worker")})

    def test_how_threads_wait(self):
        """Workers wait as this process does, because costs are kept by it."""
        for policy in b"default", b"brief":
            call("set_waiting", policy)
            told = set()
            progress = ProgressFunction(lambda _, now: told.update(
                pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[4] for pid in workers()) or 0)
            self.assertEqual(where(progress=progress), "in a worker")
            self.assertEqual(told, {policy})

    def test_what_is_no_worker(self):
        self.expect("/nowhere/worker", "COLLAGE_WORKER is /nowhere/worker, and there is no such file")
        self.expect("/etc", "/etc cannot be executed: it is no file")
        self.expect("/etc/passwd", "/etc/passwd cannot be executed: Permission denied")
        true = os.path.realpath(shutil.which("true"))
        self.expect(true, f"{true} ended its process with exit status 0 before it was ready")
        text = self.folder / "text"
        text.write_text("no program")
        text.chmod(0o755)
        self.expect(text, f"{text} cannot be started: Exec format error")

    def test_other_builds(self):
        for kind, what in {"build": "is of another build of collage than this process", "old": "did not start",
                           "noise": "did not start"}.items():
            file = self.impostor(kind)
            self.expect(file, f"{file} {what}")

    def test_a_library_that_was_replaced(self):
        """What an upgrade does to a program that runs: the worker would open another library than the program has."""
        copy = self.folder / "libcollage.so.0"
        shutil.copy(WHOLE[0], copy)
        shutil.copy(pathlib.Path(WHOLE[0]).parent / "collage-worker", self.folder)
        for state, answer in {"kept": "in a worker",
                              "replaced": "is of another build of collage than this process"}.items():
            done = subprocess.run([sys.executable, THIS, str(copy), WHOLE[1], state], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(answer, done.stdout)

    def test_crashes(self):
        """Kernels that crash while they are measured end workers, and never this process."""
        seen, killed = set(), []

        def end_one(_, now):
            for pid in workers():
                if pid in seen and len(killed) < 2 and now[0].done > 1:  # past its start
                    os.kill(pid, signal.SIGSEGV)
                    killed.append(pid)
                seen.add(pid)
            return 0

        plan = place(made("network_from_zoo", b"bert-paper"), store=b"none", backends=b"portable", budget_s=2,
                     progress=ProgressFunction(end_one))
        self.assertEqual(len(set(killed)), 2)
        self.assertEqual(document("plan_json", plan)["placing"]["where"], "in a worker")
        call("engine_create", plan, None, ctypes.byref(ctypes.c_void_p()))


def replaced():
    """The file of the library becomes another one, with another mark of its build."""
    file = pathlib.Path(WHOLE[0])
    if sys.argv[3] == "replaced":
        contents = bytearray(file.read_bytes())
        mark = contents.index(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0") + 16
        contents[mark] ^= 1
        other = file.with_suffix(".new")
        other.write_bytes(contents)
        other.replace(file)
    print(where())


if len(sys.argv) > 3:
    replaced()
else:
    unittest.main(argv=sys.argv[:1])
