#!/usr/bin/env python3
"""What belongs to a process: Ctrl-C, forks, pickling, loading the library, and the end of the interpreter."""
import copy
import multiprocessing
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import numpy as np

import collage
import models
from collage import _library

QUICK = {"how": "priority", "threads": 1, "store": False}
HERE = pathlib.Path(__file__).resolve().parent


def python(program, **environment):
    """A program's exit status, output and errors, in another interpreter. Variables that are None are removed."""
    path = os.pathsep.join([str(HERE), str(pathlib.Path(collage.__file__).parents[1])])
    variables = {**os.environ, "PYTHONPATH": path, **environment}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120,
                          env={name: value for name, value in variables.items() if value is not None})
    return done.returncode, done.stdout, done.stderr


class Interrupts(unittest.TestCase):
    def tune(self, when, **options):
        """Tunes a network of long measurements, and sends SIGINT to this process at some calls of the progress function."""
        calls = []

        def function(now):
            calls.append(now)
            if when(now, len(calls)):
                os.kill(os.getpid(), signal.SIGINT)

        return collage.load(models.dense(2)).tune(threads=1, store=False, budget=1200, compare=600, regions=0,
                                                  backends="portable,eigen", progress=function, **options)

    def test_once_returns_the_plan_so_far(self):
        start, sent = time.monotonic(), []
        plan = self.tune(lambda now, _: now.stage == "comparing" and not sent and not sent.append(1))
        self.assertTrue(plan.data["placing"]["interrupted"])
        self.assertLess(time.monotonic() - start, 60)
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_before_there_is_a_plan(self):
        with self.assertRaises(KeyboardInterrupt):
            self.tune(lambda now, count: count == 1)
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_twice(self):
        def both(now, _):
            if now.stage == "comparing":
                os.kill(os.getpid(), signal.SIGINT)
                return True
            return False

        with self.assertRaises(KeyboardInterrupt):
            self.tune(both)

    def test_a_handler_of_the_program(self):
        class Ended(Exception):
            pass

        def handler(number, frame):
            raise Ended

        before = signal.signal(signal.SIGINT, handler)
        try:
            with self.assertRaises(Ended):
                self.tune(lambda now, count: count == 3)
            self.assertIs(signal.getsignal(signal.SIGINT), handler)
        finally:
            signal.signal(signal.SIGINT, before)


def in_child(work):
    """Runs work in a forked child, and returns whether it succeeded."""
    child = os.fork()
    if child == 0:
        try:
            ok = work()
        except BaseException:
            ok = False
        os._exit(0 if ok else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Processes(unittest.TestCase):
    def test_fork(self):
        x = np.ones((700, 4), np.float32)
        session = collage.session(models.dense(700), how="priority", store=False, threads=2, backends="portable,eigen")
        opened = collage.session(models.dense(), **QUICK, backends="portable,eigen")
        binding = session.bind()
        binding.inputs["x"][...] = x
        wanted = session(x)
        opened(x)
        session.run_async(x).result(60)
        busy = [session.run_async(x) for _ in range(200)]  # other threads run while this one forks

        def work():
            binding.run()
            futures = [session.run_async(x) for _ in range(3)]
            return (np.array_equal(session(x), wanted) and np.allclose(opened(x), wanted)
                    and np.array_equal(binding.outputs["y"], wanted) and all(f.result(60) for f in futures)
                    and collage.session(models.dense(), **QUICK, backends="portable")(x).shape == (700, 3))

        for _ in range(3):
            self.assertTrue(in_child(work))
        for future in busy:
            np.testing.assert_array_equal(future.result(60)["y"], wanted)

    def test_pickling(self):
        session = collage.session(models.dense(2), **QUICK)
        for thing in session, session.network, session.plan, session.bind():
            for use in pickle.dumps, copy.copy, copy.deepcopy:
                with self.assertRaisesRegex(TypeError, f"a collage.{type(thing).__name__} cannot be pickled or copied: .*; load the model"):
                    use(thing)
        flag = collage.StopFlag()
        with self.assertRaisesRegex(TypeError, "a collage.StopFlag cannot be pickled: .*; make one in each process"):
            pickle.dumps(flag)
        for use in copy.copy, copy.deepcopy:
            other = use(flag)
            self.assertNotEqual(other.address, flag.address)
            other.set()
            with self.assertRaises(collage.CancelledError):
                session.run(np.ones((2, 4), np.float32), stop=other)
            session.run(np.ones((2, 4), np.float32), stop=flag)
        port = pickle.loads(pickle.dumps(session.inputs[0]))
        self.assertEqual(port, session.inputs[0])
        fault = pickle.loads(pickle.dumps(collage.MisuseError("what; remedy")))
        self.assertEqual((str(fault), fault.status), ("what; remedy", 2))

    def test_spawned_processes(self):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            self.assertEqual(pool.apply(rows_of, (5,)), (5, 3))

    def test_the_end_of_the_interpreter(self):
        status, out, err = python("""
            import collage, models, numpy as np
            collage.set_log(lambda level, text: None)
            session = collage.session(models.dense(2), how="priority", threads=1, store=False)
            x = np.ones((2, 4), np.float32)
            lent = session.run(x, copy=False)
            futures = [session.run_async(x) for _ in range(5)]
            opened = collage.session(models.dense(), how="priority", threads=1, store=False)
            kept = opened.run(x, copy=False)
            print(collage.__name__)
            """)
        self.assertEqual((status, out, err), (0, "collage\n", ""))

    def test_the_end_of_the_interpreter_while_a_thread_places(self):
        for places in ("network.tune(budget=600, progress=began)", "network.session(budget=600, progress=began)",
                       "collage.session(models.dense(), how='measure', store=False, progress=began)(x)"):
            with self.subTest(places):
                status, out, err = python(f"""
                    import threading, time, collage, models, numpy as np
                    network, x, now = collage.load("zoo:mobilenet-v2"), np.ones((2, 4), np.float32), threading.Event()
                    began = lambda _: now.set()
                    class Slow:  # a thread that comes back to Python meanwhile is ended with its stack
                        def __del__(self, sleep=time.sleep):
                            sleep(1)
                    models.slow = Slow()
                    threading.Thread(target=lambda: {places}, daemon=True).start()
                    assert now.wait(60)
                    print("ends")
                    """)
                self.assertEqual((status, out), (0, "ends\n"), err)

    def test_asynchronous_runs_at_the_end(self):
        status, out, err = python("""
            import atexit, collage, collage.onnxruntime, models, numpy as np
            x, opened = np.ones((2, 4), np.float32), dict(how="priority", threads=1, store=False)
            sessions = [collage.session(models.dense(2), **opened),
                        collage.session(models.carried(), carried={"total_next": "total", "seen_next": "seen"}, **opened)]
            def late():
                for session, given in zip(sessions, (x, x[:, :2])):
                    for _ in range(2):
                        try:
                            session.run_async(given)
                        except collage.CancelledError as fault:
                            print(fault)
                    print(len(session.run(given)))  # which no place in the queue holds up
            atexit.register(late)
            """)
        refusal = "the program ends, so run_async begins no run any more; use run"
        self.assertEqual((status, out.splitlines(), err), (0, [refusal, refusal, "1", refusal, refusal, "2"], ""))

    def test_after_the_exit_handler(self):
        """A handler that was registered before runs after it. There the main thread places, and other threads are refused."""
        status, out, err = python("""
            import atexit, sys, threading
            begin, done, faults = threading.Event(), threading.Semaphore(0), []
            def late():
                begin.set()
                print(all(done.acquire(timeout=60) for _ in range(3)), *faults, sep="\\n")
                print(network.tune(**brief).threads, opened(x).shape)
            atexit.register(late)
            import collage, models, numpy as np
            brief = dict(threads=1, store=False, compare=0.05, regions=0, backends="portable,eigen")
            import collage.onnxruntime as ort
            network, x, options = collage.load(models.dense(2)), np.ones((2, 4), np.float32), ort.SessionOptions()
            for entry in "how=measure", "store=none", "backends=eigen":
                options.add_session_config_entry(*("collage." + entry).split("="))
            peer = ort.InferenceSession(models.dense(), options)
            opened = collage.session(models.dense(), how="measure", **brief)
            now = threading.Event()
            def place(before, **options):
                before()
                try:
                    collage.load("zoo:mobilenet-v2").tune(budget=600, **options)
                except collage.CancelledError as fault:
                    faults.append(fault)
                done.release()
            def run():
                begin.wait()
                try:
                    peer.run(None, {"x": x})
                except Exception as fault:
                    faults.append(str(fault).removeprefix("[collage] : 1 : FAIL : "))
                done.release()
            threading.Thread(target=run, daemon=True).start()
            threading.Thread(target=place, args=(begin.wait,), daemon=True).start()
            threading.Thread(target=place, args=(bool,), kwargs={"progress": lambda _: now.set()}, daemon=True).start()
            assert now.wait(60)
            """)
        refusal = "the program ends, so this thread neither places networks nor runs sessions that measure new shapes; join it before the program ends"
        self.assertEqual((status, out.splitlines(), err), (0, ["True", *3 * [refusal], "1 (2, 3)"], ""))


def rows_of(rows):
    return collage.session(models.dense(), **QUICK)(np.ones((rows, 4), np.float32)).shape


class Loading(unittest.TestCase):
    def test_how_threads_wait(self):
        """OpenMP prints what it read when it was loaded."""
        def spins(**chosen):
            environment = {"OMP_DISPLAY_ENV": "VERBOSE", "OMP_WAIT_POLICY": None, "GOMP_SPINCOUNT": None,
                           "COLLAGE_WAIT_BRIEFLY": None, **chosen}
            status, told, said = python("import collage, os; print(os.environ.get('GOMP_SPINCOUNT'))", **environment)
            self.assertEqual(status, 0, said)
            self.assertEqual(told.strip(), str(chosen.get("GOMP_SPINCOUNT")))  # the environment is as before
            return re.search(r"GOMP_SPINCOUNT = '(\w+)'", said)[1]

        is_one = len(os.sched_getaffinity(0)) == 1
        usual = spins(COLLAGE_WAIT_BRIEFLY="0")
        self.assertNotEqual(usual, "2000")
        self.assertEqual(spins(), usual if is_one else "2000")
        self.assertEqual(spins(GOMP_SPINCOUNT="777"), "777")

    def test_no_library(self):
        status, _, err = python("import collage", COLLAGE_LIBRARY="/nowhere/libcollage.so.0")
        self.assertEqual(status, 1)
        self.assertRegex(err, r"ImportError: collage: the library cannot be loaded \(/nowhere/libcollage.so.0.*; install the wheel, or "
                              "set COLLAGE_LIBRARY")

    def test_another_library(self):
        status, _, err = python("import collage", COLLAGE_LIBRARY="libm.so.6")
        self.assertEqual(status, 1)
        self.assertRegex(err, r"ImportError: collage: the library cannot be loaded \(.*collage_abi_version")

    def test_another_version(self):
        status, _, err = python(f"""
            import importlib.util
            spec = importlib.util.spec_from_file_location("library", {_library.__file__!r})
            library = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(library)
            library.ABI_VERSION = 2
            library.load()
            """)
        self.assertEqual(status, 1)
        self.assertRegex(err, "ImportError: collage: .* has version 1 of the C interface, and this package needs version 2; install")

    def test_levels(self):
        v3 = set().union(*(names for level, names in _library._LEVELS if level == "x86-64-v3"))
        v4 = v3.union(*(names for level, names in _library._LEVELS))
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder)
            self.assertEqual(_library.folders(package, v4), [])
            for level in "x86-64-v3", "x86-64-v4":
                (package / "lib" / level).mkdir(parents=True)
                (package / "lib" / level / _library.NAME).touch()
            names = [[f.name for f in _library.folders(package, flags)] for flags in (v4, v3, None)]
            self.assertEqual(names, [["x86-64-v4", "x86-64-v3"], ["x86-64-v3"], ["x86-64-v3"]])
            with self.assertRaisesRegex(ImportError, "has no AVX2, which this package needs"):
                _library.folders(package, {"sse2"})
            shutil.copy(package / "lib" / "x86-64-v3" / _library.NAME, package / "lib" / _library.NAME)
            self.assertEqual([f.name for f in _library.folders(package, {"sse2"})], ["lib"])


if __name__ == "__main__":
    unittest.main()
