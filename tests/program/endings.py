#!/usr/bin/env python3
"""How the program ends before it is done: by a signal, and on a full disk."""
import json
import os
import pathlib
import pty
import signal
import subprocess
import time
import unittest

import models
from program import MOBILENET, PROGRAM, Case, collage, complete_backend, environment, placed_backends

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def soon_s():
    """The program promises 2 s. Where other tests run beside this one, some under sanitizers, it must only not hang."""
    return 5 if os.getloadavg()[0] < len(os.sched_getaffinity(0)) else 60


class Endings(Case):
    def start(self, *words, **options):
        return subprocess.Popen([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment(), **options)

    def end(self, running, *signals):
        """Sends signals; returns the exit status, the output and what came on standard error after that."""
        since, most = time.monotonic(), soon_s()
        for one in signals:
            running.send_signal(one)
            time.sleep(0.05)
        said, told = running.communicate(timeout=300)
        self.assertLess(time.monotonic() - since, most, told)
        return running.returncode, said, told

    def left_over(self):
        return [f.name for f in self.folder.iterdir() if f.name.endswith(".tmp")]


class Signals(Endings):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # With its costs in the store, tuning compares at once.
        cls.words = ("tune", MOBILENET, "--plan", str(cls.folder / "plan.json"), "--threads", "1", "--store",
                     str(cls.folder / "costs.db"), "--backends", complete_backend())
        done = collage(*cls.words, "--quiet")
        assert done.returncode == 0, done.stderr

    def test_comparing_ends_with_the_best_plan(self):
        for number in ENDING:
            pathlib.Path(self.path("plan.json")).unlink(missing_ok=True)
            with self.subTest(signal=number), self.start(*self.words, "--recheck") as tuning:
                line = ""
                while not line.startswith("comparing"):
                    line = tuning.stderr.readline()
                    self.assertNotEqual(line, "")
                status, said, told = self.end(tuning, number)
                self.assertEqual(status, 0, told)
                self.assertIn(f"collage: {number.name}: finishing with the best plan so far", told)
                # Where the machine is busy, another thread writes the plan, without a summary.
                self.assertTrue("the best placement so far" in " ".join(said.split()) or "the best plan so far is in" in told)
                self.json_of("explain", MOBILENET, "--plan", self.path("plan.json"))
                self.assertEqual(self.left_over(), [])
        self.assertEqual(self.json_of("store", "check", "--store", self.path("costs.db"))["problems"], [])

    def test_the_terminal_is_closed(self):
        pathlib.Path(self.path("plan.json")).unlink(missing_ok=True)
        child, terminal = pty.fork()
        if child == 0:
            os.execve(PROGRAM, [PROGRAM, *self.words, "--recheck"], environment(TERM="xterm"))
        text = b""
        while b"comparing" not in text:
            text += os.read(terminal, 4096)
        since, most = time.monotonic(), soon_s()
        os.close(terminal)
        _, status = os.waitpid(child, 0)
        self.assertLess(time.monotonic() - since, most)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        self.json_of("explain", MOBILENET, "--plan", self.path("plan.json"))

    def test_without_a_plan_it_ends_by_the_signal(self):
        plan, store = self.path("none.json"), self.path("none.db")
        for number in ENDING:
            with self.subTest(signal=number), self.start("tune", MOBILENET, "--plan", plan, "--store", store) as tuning:
                tuning.stderr.readline()  # it measures the first kernels
                status, said, told = self.end(tuning, number)
                self.assertEqual((status, said), (-number, ""), told)
                self.assertRegex(told, "before every node had a measured kernel, so there is no plan|before there was a plan to write|: ended\n")
                self.assertFalse(pathlib.Path(plan).exists())
        self.assertEqual(self.json_of("store", "check", "--store", store)["problems"], [])

    def test_a_second_signal_ends_at_once(self):
        with self.start(*self.words, "--recheck") as tuning:
            tuning.stderr.readline()
            status, said, told = self.end(tuning, signal.SIGTERM, signal.SIGTERM, signal.SIGTERM)
            self.assertIn(status, (-signal.SIGTERM, 0), told)
            if status != 0:  # the first signal may have ended it
                self.assertRegex(told, "collage: SIGTERM: ended\n|before there was a plan to write")
        self.json_of("explain", MOBILENET, "--plan", self.path("plan.json"))

    def test_other_commands_end_by_the_signal(self):
        for number in ENDING:
            for words in (("bench", MOBILENET, "--plan", self.path("plan.json"), "--seconds", "60"),
                          ("tune", MOBILENET, "--plan", "/dev/null", "--store", "none")):
                with self.subTest(signal=number, words=words), self.start(*words, "--quiet") as running:
                    time.sleep(0.7)
                    status, said, told = self.end(running, number)
                    self.assertEqual((status, said), (-number, ""), told)
                    self.assertIn(f"collage: {number.name}: ", told)

    def test_an_ignored_signal_stays_ignored(self):
        def ignore():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with self.start("bench", MOBILENET, "--plan", self.path("plan.json"), "--seconds", "2", "--quiet",
                        preexec_fn=ignore) as running:
            time.sleep(1)
            running.send_signal(signal.SIGHUP)
            _, told = running.communicate(timeout=300)
            self.assertEqual((running.returncode, told), (0, ""))


class FullDisk(Endings):
    def setUp(self):
        self.disk = self.folder / "disk"
        self.disk.mkdir(exist_ok=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(self.disk)], capture_output=True,
                                 text=True) if os.geteuid() == 0 else None
        if mounted is None or mounted.returncode != 0:
            self.skipTest("only root can mount a small disk")
        self.addCleanup(subprocess.run, ["umount", str(self.disk)], check=True)

    def fill(self, left):
        """Leaves room for a number of bytes."""
        with open(self.disk / "ballast", "wb") as file:
            room = os.statvfs(self.disk)
            file.write(bytes(max(room.f_bavail * room.f_frsize - left, 0)))

    def test_tuning_shows_its_summary(self):
        plan = self.disk / "plan.json"
        network = models.small_network(self.folder)
        words = ("tune", network, "--plan", str(plan), "--store", "none", "--threads", "1", "--backends", complete_backend(),
                 "--quiet")
        plan.write_text("the old contents")
        self.fill(0)
        done = collage(*words)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"\Acollage: [^\n]*plan.json: cannot be written: No space left on device; free some space[^\n]*\n\Z")
        self.assertIn("candidates", done.stdout)
        self.assertNotIn("The plan is in", done.stdout)
        self.assertEqual(plan.read_text(), "the old contents")
        self.assertEqual([f.name for f in self.disk.iterdir() if f.name.endswith(".tmp")], [])
        done = collage(*words, "--json")
        self.assertEqual(done.returncode, 1)
        self.assertIsNone(json.loads(done.stdout)["plan"])
        (self.disk / "ballast").unlink()
        self.assertEqual(collage(*words).returncode, 0)

    def test_outputs_and_stdout(self):
        self.fill(0)
        self.refused("run", "zoo:bert-paper", "--backends", placed_backends()[0], "--place", "priority", "--output", str(self.disk),
                     "--quiet", saying="No space left on device; free some space", code=1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
