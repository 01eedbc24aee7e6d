#!/usr/bin/env python3
"""The program where a process has less than usual: no /proc and /sys, another user, nothing that can be written, quotas of processor
time, little memory. Most of it needs root, and is skipped otherwise."""
import json
import os
import pathlib
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
import unittest

import models
from program import MOBILENET, PROGRAM, Case, complete_backend, environment

QUICK = ("--threads", "1", "--regions", "0", "--budget", "20")
OTHER_USER = 12345
BARE = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /sys && mount -t tmpfs none /proc && exec \"$@\"", "sh"]
READ_ONLY = ["unshare", "--mount", "sh", "-c", "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && "
             "mount -o remount,bind,ro / && exec \"$@\""]  # and a folder


def can(words, why):
    """Skips a test where this does not succeed."""
    try:
        is_possible = subprocess.run(words, capture_output=True).returncode == 0
    except FileNotFoundError:
        is_possible = False
    return unittest.skipUnless(is_possible, why)


class Limited(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.chmod(cls.folder, 0o777)  # other users write there, too
        cls.small = models.small_network(cls.folder)

    def start(self, prefix, *words, variables=None, **options):
        given = environment(**(variables or {}))
        given = {name: value for name, value in given.items() if value is not None}
        return subprocess.run([*prefix, PROGRAM, *words], capture_output=True, text=True, timeout=500, env=given, **options)

    def works(self, prefix, *words, **options):
        done = self.start(prefix, *words, **options)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}{done.stderr}")
        return done

    def notes(self, done):
        return [line for line in done.stderr.splitlines() if "note:" in line]

    def goes_on_without_store(self, prefix, saying, **options):
        """The call is done, with one note that says why there is no store."""
        done = self.works(prefix, "explain", self.small, *QUICK, **options)
        about = [line for line in self.notes(done) if "stored" in line]
        self.assertEqual(len(about), 1, done.stderr)
        self.assertIn(saying, about[0])


class Stores(Limited):
    """A store that no user named ends no call."""

    def test_no_home(self):
        none = {"HOME": None, "XDG_CACHE_HOME": None}
        self.goes_on_without_store([], "neither XDG_CACHE_HOME nor HOME names a folder", variables=none)
        self.goes_on_without_store([], "neither XDG_CACHE_HOME nor HOME names a folder", variables={**none, "HOME": "nowhere"})

    def test_a_default_store_that_cannot_be_used(self):
        caches = self.folder / "caches"
        store = caches / "collage" / "costs.db"
        here = {"XDG_CACHE_HOME": str(caches)}

        def check(saying):
            self.goes_on_without_store([], saying, variables=here)
            # A named store is what the call is about.
            done = self.start([], "explain", self.small, *QUICK, "--store", str(store))
            self.assertIn(done.returncode, (1, 2), done.stderr)
            self.assertRegex(done.stderr, r"\Acollage: [^\n]+\n\Z")
            self.assertIn(saying, done.stderr)

        store.mkdir(parents=True)
        check("is a folder")
        store.rmdir()
        store.write_text("not a store")
        check("is not a store of costs")
        store.unlink()
        self.works([], "explain", self.small, *QUICK, variables=here)
        with sqlite3.connect(store) as newer:
            newer.execute("PRAGMA user_version=7")
        newer.close()
        check("was written by a newer collage")
        with sqlite3.connect(store) as same:
            same.execute("PRAGMA user_version=1")
        same.close()
        good = store.read_bytes()
        store.write_bytes(good[:4096] + b"\x5a" * (len(good) - 4096))
        check("is damaged")
        shutil.rmtree(caches)
        caches.write_text("a file")
        self.goes_on_without_store([], "cannot be created", variables=here)

    @can(["setpriv", f"--reuid={OTHER_USER}", "--clear-groups", PROGRAM, "zoo"], "needs root, and a program that all users may start")
    def test_another_user(self):
        other = ["setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups"]
        for home in ("/", "/root", "/nowhere"):
            with self.subTest(home):
                self.goes_on_without_store(other, "cannot be", variables={"XDG_CACHE_HOME": None, "HOME": home})
        plan = self.path("other.json")
        self.works(other, "tune", self.small, *QUICK, "--plan", plan, variables={"XDG_CACHE_HOME": None, "HOME": "/"})
        self.works(other, "run", self.small, "--plan", plan)

    @can([*READ_ONLY, "/tmp", "true"], "needs root that may mount file systems")
    def test_nothing_can_be_written(self):
        here = {"XDG_CACHE_HOME": str(self.folder / "made")}
        read_only = [*READ_ONLY, str(self.folder)]
        self.goes_on_without_store(read_only, "cannot be created: Read-only file system", variables=here)
        made = self.works([], "tune", self.small, *QUICK, "--plan", self.path("made.json"), "--json", variables=here)
        self.assertGreater(json.loads(made.stdout)["measured"], 0)
        done = self.works(read_only, "explain", self.small, *QUICK, variables=here)
        self.assertIn("cannot be written", "".join(self.notes(done)))  # but what it holds is read


@can([*BARE, "true"], "needs root that may mount file systems")
class WithoutProc(Limited):
    def test_a_plan_is_the_same(self):
        here = {"XDG_CACHE_HOME": str(self.folder / "bare")}
        plan = self.path("bare.json")
        made = json.loads(self.works(BARE, "tune", self.small, *QUICK, "--plan", plan, "--json", variables=here).stdout)
        self.assertEqual(made["where"], "in a worker")
        self.assertGreater(made["measured"], 0)
        self.assertEqual(made["holdups"]["waited_s"], 0)
        # The processor has the same name, so that the plan fits and the store is used.
        self.works([], "run", self.small, "--plan", plan)
        again = json.loads(self.works([], "tune", self.small, *QUICK, "--plan", self.path("again.json"), "--json",
                                      variables=here).stdout)
        self.assertLess(again["measured"], made["measured"])  # OpenVINO needs /proc
        self.assertGreater(again["from_store"], 0)
        for words in (["run", self.small, "--plan", plan], ["verify", self.small, "--plan", plan], ["backends"]):
            self.works(BARE, *words)

    def test_a_program_found_by_the_path(self):
        folder, name = os.path.split(PROGRAM)
        done = subprocess.run([*BARE, name, "tune", self.small, *QUICK, "--plan", self.path("p.json"), "--json"], text=True,
                              capture_output=True, env=environment(PATH=f"{folder}:{os.environ['PATH']}"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["where"], "in a worker")
        done = subprocess.run([*BARE, f"./{name}", "backends"], text=True, capture_output=True, env=environment(), cwd=folder)
        self.assertEqual(done.returncode, 0, done.stderr)


class Group:
    """A control group of this test, in version 2 or 1; none where they cannot be made."""

    def __init__(self, controller, settings_v2, settings_v1):
        self.folder = None
        for parent, settings in ((pathlib.Path("/sys/fs/cgroup"), settings_v2),
                                 (pathlib.Path("/sys/fs/cgroup") / controller, settings_v1)):
            folder = parent / f"collage-test-{os.getpid()}"
            try:
                folder.mkdir()
            except OSError:
                continue
            try:
                for name, value in settings.items():
                    if not (folder / name).exists():
                        raise FileNotFoundError(name)
                    (folder / name).write_text(value)
                self.folder = folder
                return
            except OSError:
                folder.rmdir()

    def prefix(self):
        return ["sh", "-c", f"echo $$ > {self.folder}/cgroup.procs && exec \"$@\"", "sh"]

    def remove(self):
        """The group of processes that have just ended may take a moment to be empty."""
        for attempt in range(50):
            try:
                if self.folder is not None:
                    self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.1)


class Quotas(Limited):
    def test_a_quota_of_processor_time(self):
        group = Group("cpu", {"cpu.max": "25000 100000"}, {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "25000"})
        self.addCleanup(group.remove)
        if group.folder is None:
            self.skipTest("needs control groups that may be written")
        plan = self.path("quota.json")
        store = self.path("quota.db")
        words = ("tune", self.small, "--regions", "0", "--store", store, "--plan", plan, "--backends", complete_backend(),
                 "--budget", "5")
        made = json.loads(self.works(group.prefix(), *words, "--json", "--quiet").stdout)
        self.assertEqual(made["threads"], 1)  # of however many processors
        held = made["holdups"]
        self.assertGreater(held["throttled"], 0)
        self.assertGreater(held["throttled_s"], 0)
        self.assertAlmostEqual(held["throttled_part"], held["throttled"] / held["periods"], places=3)
        self.assertRegex(held["advice"], r"^The quota of 0.25 processors held up the process in \d+ of \d+ periods \(\d+ %\), for "
                                         r"[\d.]+ s in all, so its times are less exact. Raise the quota.$")
        done = self.works(group.prefix(), *words, "--threads", "2", "--recheck")
        self.assertIn("2 threads share 1 processor", done.stderr)
        self.assertIn("Use fewer than 2 threads, or raise the quota.", " ".join(done.stdout.split()))
        free = json.loads(self.works([], *words, "--threads", "1", "--recheck", "--json", "--quiet").stdout)
        self.assertEqual(free["holdups"]["throttled"], 0)
        for timed in (("bench", self.small, "--plan", plan, "--seconds", "1"),
                      ("run", MOBILENET, "--place", "priority", "--backends", complete_backend(), "--threads", "1", "--profile")):
            with self.subTest(timed[0]):
                done = self.works(group.prefix(), *timed, "--json")
                held = json.loads(done.stdout)["holdups"]
                self.assertGreater(held["throttled"], 0)
                self.assertIn(f"collage: note: {held['advice']}", self.notes(done))
                free = json.loads(self.works([], *timed, "--json", "--quiet").stdout)
                self.assertEqual(free["holdups"]["throttled"], 0)


class Holdups(Limited):
    def test_another_program_on_the_same_processor(self):
        plan = self.path("shared.json")
        self.works([], "tune", self.small, *QUICK, "--store", "none", "--plan", plan, "--quiet")
        processor = min(os.sched_getaffinity(0))
        alone = ["taskset", "--cpu-list", str(processor)]
        if shutil.which("taskset") is None:
            self.skipTest("needs taskset")
        words = ("bench", self.small, "--plan", plan, "--seconds", "2")
        for _ in range(2):
            busy = subprocess.Popen([*alone, sys.executable, "-c", "while True: pass"])
            self.addCleanup(busy.wait)
            self.addCleanup(busy.kill)
        done = self.works(alone, *words, "--json")
        held = json.loads(done.stdout)["holdups"]
        self.assertGreater(held["waited_s"], 0.2)
        self.assertRegex(held["advice"], r"^Threads waited [\d.]+ s for a processor, \d+ % of the time, so the times are less exact. ")
        self.assertIn(f"collage: note: {held['advice']}", self.notes(done))
        self.assertEqual(self.notes(self.works(alone, *words, "--quiet")), [])


class Budgets(Limited):
    """benchmarks/busy/budgets measures the time more exactly, and for more networks."""

    def test_beside_busy_processes(self):
        for _ in range(2):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            self.addCleanup(busy.wait)
            self.addCleanup(busy.kill)
        for network in (MOBILENET, "zoo:dcgan-paper"):  # many kernels, and large requests to workers
            with self.subTest(network):
                made = json.loads(self.works([], "tune", network, "--plan", self.path("hurried.json"), "--store", "none", "--budget", "2",
                                             "--json", "--quiet").stdout)
                self.assertTrue(made["interrupted"])
                # It promises 2 s more. Other tests may run as well, and without an end it takes minutes.
                self.assertLess(made["seconds"], 2 + 13)


    def test_a_chain_of_2000_operators(self):
        count = 2000
        path = self.folder / "chain.onnx"
        path.write_bytes(models.model(
            *(models.node(("Relu", "Tanh", "Sigmoid")[i % 3], [f"v{i}"], [f"v{i + 1}"]) for i in range(count)),
            models.port(11, "v0", [4, 64]), models.port(12, f"v{count}", [4, 64])))
        done = self.start([], "tune", str(path), "--plan", self.path("chain.json"), "--store", "none", "--threads", "1", "--budget", "5",
                          "--json", "--quiet")
        if "built without ONNX" in done.stderr:
            self.skipTest("this build reads no ONNX files")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(json.loads(done.stdout)["seconds"], 5 + 13)


class Memory(Limited):
    """What does not fit is refused by a sentence; Linux does not have to end the process."""

    # Quiet: where memory is short, a note says how many kernels were not compared with the reference.
    WORDS = ("run", "zoo:dcgan-paper", "--place", "priority", "--threads", "1", "--quiet")

    def refused_for_memory(self, done, limit):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"\Acollage: [^\n]+\n\Z")
        self.assertRegex(done.stderr, r"needs [\d.]+ MB, but [^;]+ is [\d.]+ MB, of which [\d.]+ MB are left; raise this limit, or "
                                      r"run a smaller network or batch")
        self.assertIn(limit, done.stderr)

    def test_a_group_with_little_memory(self):
        for mb in (100, 300, 500):
            with self.subTest(mb):
                size = str(mb << 20)
                group = Group("memory", {"memory.max": size, "memory.swap.max": "0"}, {"memory.limit_in_bytes": size})
                if group.folder is None:
                    self.skipTest("needs control groups that may be written")
                done = self.start(group.prefix(), *self.WORDS, "--backends", complete_backend())
                group.remove()
                self.assertNotEqual(done.returncode, -9, "it was ended by Linux")
                if done.returncode != 0:
                    self.refused_for_memory(done, "collage-test-")
                else:
                    self.assertEqual(mb, 500)  # 213 MB of weights fit, and as much again for their packed forms

    def test_little_address_space(self):
        """OpenBLAS never returns where it finds no room for its buffers; they are allocated before anything takes the room."""
        for mb in (400, 900, 1000, 1100):
            with self.subTest(mb):
                most = (mb << 20, mb << 20)
                done = self.start([], *self.WORDS, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, most))
                if done.returncode == 0:
                    self.assertNotEqual(mb, 400)
                elif "out of memory" not in done.stderr:  # of small blocks, or of a library's
                    self.refused_for_memory(done, "the limit of the address space (ulimit -v)")
                else:
                    self.assertEqual(done.returncode, 1)
                    self.assertRegex(done.stderr, r"\Acollage: [^\n]+\n\Z")


if __name__ == "__main__":
    unittest.main()
