#!/usr/bin/env python3
"""How threads wait in processes that load the C library: waiting.py PROGRAM LIBRARY

libgomp itself says what it has read (OMP_DISPLAY_ENV). Exit status 77: the process may use one processor only, or the loader is not
glibc's, whose order it is about.
"""
import os
import platform
import re
import subprocess
import sys
import unittest

PROGRAM, LIBRARY = sys.argv.pop(1), sys.argv.pop(1)
BRIEF, USUAL = "2000", "300000"
LOADS = """
import ctypes, os, re, sys
for name in sys.argv[1:]:
    library = ctypes.CDLL(name)
    if "libgomp" in name: library.omp_set_num_threads(1)
text = ctypes.c_char_p()
library.collage_system_json(ctypes.byref(text))
print(os.popen("echo ${GOMP_SPINCOUNT-not set}").read().strip())
print(re.search('"waiting_policy": "(.*?)"', text.value.decode())[1])
"""


def start(*words, processors=None, **variables):
    """The number of checks that libgomp knows, the variable as the process sees it, and the policy."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "COLLAGE_"))}
    done = subprocess.run(words, env={**clean, "OMP_DISPLAY_ENV": "verbose", **variables}, capture_output=True, text=True, check=True,
                          preexec_fn=processors and (lambda: os.sched_setaffinity(0, processors)))
    return re.search(r"GOMP_SPINCOUNT = '(\d+)'", done.stderr)[1], *done.stdout.split("\n")[:2]


def load(*names):
    return start(sys.executable, "-c", LOADS, *names)


class Waiting(unittest.TestCase):
    def test_a_program_that_is_linked_with_it(self):
        self.assertEqual(start(PROGRAM), (BRIEF, "not set", "brief"))

    def test_a_program_that_opens_it(self):
        self.assertEqual(load(LIBRARY), (BRIEF, "not set", "brief"))

    def test_libgomp_that_was_there_before_is_left_alone(self):
        # The one thread that is set looks like a libgomp that has read nothing yet.
        self.assertEqual(load("libgomp.so.1", LIBRARY), (USUAL, "not set", "brief"))

    def test_variables_go_before(self):
        self.assertEqual(start(PROGRAM, GOMP_SPINCOUNT="500"), ("500", "500", "spin 500"))
        self.assertEqual(start(PROGRAM, OMP_WAIT_POLICY="passive"), ("0", "not set", "passive"))
        # One thread hides whether libgomp has read its variables.
        self.assertEqual(start(PROGRAM, OMP_NUM_THREADS="1"), (USUAL, "not set", "brief"))
        self.assertEqual(start(PROGRAM, OMP_NUM_THREADS="2"), (BRIEF, "not set", "brief"))

    def test_default(self):
        self.assertEqual(start(PROGRAM, "default"), (BRIEF, "not set", "brief"))
        self.assertEqual(start(PROGRAM, "default", COLLAGE_WAIT_BRIEFLY="0"), (USUAL, "not set", "default"))
        self.assertEqual(start(PROGRAM, "brief", "default", COLLAGE_WAIT_BRIEFLY="0"), (USUAL, "not set", "default"))

    def test_one_processor_needs_none(self):
        self.assertEqual(start(PROGRAM, processors={min(os.sched_getaffinity(0))})[:2], (USUAL, "not set"))


if len(os.sched_getaffinity(0)) == 1 or platform.libc_ver()[0] != "glibc":
    sys.exit(77)
unittest.main()
