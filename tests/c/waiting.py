#!/usr/bin/env python3
"""How threads wait in processes that load the C library: waiting.py PROGRAM LIBRARY

libgomp itself says what it has read (OMP_DISPLAY_ENV). Exit status 77: the process may use one processor only.
"""
import ctypes.util
import os
import re
import subprocess
import sys
import unittest

PROGRAM, LIBRARY = sys.argv.pop(1), sys.argv.pop(1)
BRIEF, USUAL = "2000", "300000"
LOADS = """
import ctypes, os, re, sys
for name in sys.argv[1:]: library = ctypes.CDLL(name)
text = ctypes.c_char_p()
library.collage_system_json(ctypes.byref(text))
print(os.popen("echo ${GOMP_SPINCOUNT-not set}").read().strip())
print(re.search('"waiting_policy": "(.*?)"', text.value.decode())[1])
"""


def start(*words, **variables):
    """The number of checks that libgomp knows, the variable as the process sees it, and the policy."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    done = subprocess.run(words, env={**clean, "OMP_DISPLAY_ENV": "verbose", **variables}, capture_output=True, text=True, check=True)
    return re.search(r"GOMP_SPINCOUNT = '(\d+)'", done.stderr)[1], *done.stdout.split("\n")[:2]


def load(*names):
    return start(sys.executable, "-c", LOADS, *names)


class Waiting(unittest.TestCase):
    def test_a_program_that_is_linked_with_it(self):
        self.assertEqual(start(PROGRAM), (BRIEF, "not set", "brief"))

    def test_a_program_that_opens_it(self):
        self.assertEqual(load(LIBRARY), (BRIEF, "not set", "brief"))

    def test_libgomp_that_was_there_before_is_left_alone(self):
        libgomp = ctypes.util.find_library("gomp")
        self.assertEqual(load(libgomp, LIBRARY), (USUAL, "not set", "brief"))

    def test_variables_go_before(self):
        self.assertEqual(start(PROGRAM, GOMP_SPINCOUNT="500"), ("500", "500", "spin 500"))
        self.assertEqual(start(PROGRAM, OMP_WAIT_POLICY="passive"), ("0", "not set", "passive"))
        # One thread hides whether libgomp has read its variables.
        self.assertEqual(start(PROGRAM, OMP_NUM_THREADS="1"), (USUAL, "not set", "brief"))
        self.assertEqual(start(PROGRAM, OMP_NUM_THREADS="2"), (BRIEF, "not set", "brief"))

    def test_default(self):
        self.assertEqual(start(PROGRAM, "default"), (BRIEF, "not set", "brief"))
        self.assertEqual(start(PROGRAM, "default", COLLAGE_WAIT_BRIEFLY="0"), (USUAL, "not set", "default"))

    def test_one_processor_needs_none(self):
        self.assertEqual(start("taskset", "--cpu-list", str(min(os.sched_getaffinity(0))), PROGRAM)[:2], (USUAL, "not set"))


if len(os.sched_getaffinity(0)) == 1:
    sys.exit(77)
unittest.main()
