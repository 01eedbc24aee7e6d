#!/usr/bin/env python3
"""Builds the wheel, installs it in a bare virtual environment, and uses it there: wheel_test.py SOURCE ROOM MODEL

Exit status 77: there is no numpy for the environment, or no module venv.
"""
import base64
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest
import zipfile

SOURCE, ROOM, MODEL = map(pathlib.Path, sys.argv[1:4])
LEVELS = "x86-64-v3", "x86-64-v4"
# From a wheel, no path of the build may be needed: neither variables nor the folder of the checkout help.
BARE = {"PATH": "/usr/bin:/bin", "HOME": str(ROOM), "OMP_WAIT_POLICY": "passive"}


def run(*words, env=None, **options):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, cwd="/", env=env, **options)


def build(epoch):
    done = run(SOURCE / "tools/wheel", "--out", ROOM / f"at-{epoch}", env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return pathlib.Path(done.stdout.splitlines()[-1])


def environment():
    """Python of a new virtual environment that has numpy and nothing else."""
    if run(sys.executable, "-m", "venv", "--clear", ROOM / "venv").returncode != 0:
        print("skipped: python3 has no module venv")
        sys.exit(77)
    python = ROOM / "venv/bin/python"
    if run(python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "numpy>=1.22").returncode != 0:
        print("skipped: pip cannot install numpy")
        sys.exit(77)
    return python


PYTHON = environment()
WHEEL = build(1700000000)
START = time.monotonic()
INSTALLED = run(PYTHON, "-m", "pip", "install", "--no-index", "--no-deps", WHEEL)
INSTALLING_S = time.monotonic() - START


class Wheel(unittest.TestCase):
    def setUp(self):
        self.assertEqual(INSTALLED.returncode, 0, INSTALLED.stderr)

    def use(self, *arguments, code=0, **more):
        done = run(PYTHON, "-I", pathlib.Path(__file__).with_name("in_venv.py").resolve(), *arguments, env={**BARE, **more})
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout.splitlines()[-1]) if code == 0 else done.stderr

    def test_it_is_the_same_at_each_build(self):
        again = build(1700000000)
        sums = [hashlib.sha256(file.read_bytes()).hexdigest() for file in (WHEEL, again)]
        self.assertEqual(*sums)

    def test_its_files(self):
        with zipfile.ZipFile(WHEEL) as archive:
            names = archive.namelist()
            info = names[-1].rsplit("/", 1)[0]
            listed = [line.rsplit(",", 2) for line in archive.read(names[-1]).decode().splitlines()]
            self.assertEqual([name for name, _, _ in listed], names)
            for name, sum_of, size in listed[:-1]:
                contents = archive.read(name)
                found = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
                self.assertEqual((sum_of, size), (f"sha256={found}", str(len(contents))), name)
            metadata = archive.read(f"{info}/METADATA").decode()
        licences = re.findall(r"^License-File: (.*)$", metadata, re.M)
        self.assertTrue(WHEEL.name.startswith("collage_engine-") and info.startswith("collage_engine-"), (WHEEL, info))
        self.assertTrue(metadata.startswith("Metadata-Version: 2.4\nName: collage-engine\n"), metadata)
        self.assertIn("\nDescription-Content-Type: text/markdown\n", metadata.partition("\n\n")[0] + "\n")
        self.assertRegex(metadata, r"\nLicense-Expression: Apache-2.0 AND .*GPL-3.0-or-later WITH GCC-exception-3.1.*MPL-2.0")
        self.assertEqual(sorted(licences), sorted(n.split("/licenses/")[1] for n in names if "/licenses/" in n))
        for word in "libgomp", "common/GPL-3", "openblas", "onednn", "protobuf", "sqlite", "eigen", "boost", "hwy", "xbyak", "nlohmann":
            self.assertTrue(any(word in name for name in licences), f"no licence of {word} in {licences}")
        for level in LEVELS:
            for file in "libcollage.so.0", "collage-worker", "libcollage_openvino_module.so":
                self.assertIn(f"collage/lib/{level}/{file}", names)
        self.assertLess(WHEEL.stat().st_size, 100e6)  # what the Python package index takes

    def test_a_network_runs(self):
        found = self.use()
        self.assertTrue(found["package"].startswith(str(ROOM.resolve())), found)
        self.assertTrue(found["finite"])
        self.assertEqual(found["where"], "in a worker")
        for name in "portable", "eigen", "openblas", "onednn", "stacked", "jit":
            self.assertEqual(found["backends"][name], "", name)
        self.assertRegex(found["backends"]["openvino"], r"pip install openvino==\d+\.\d+")
        # The libraries of the wheel, and none of the system by the same names; numpy may bring its own.
        for name in "libdnnl", "libgomp", "libopenblas", "libprotobuf", "libgfortran", "libsqlite3", "libonnx_proto", "libhwy":
            folders = {pathlib.Path(file).parent for file in found["loaded"] if pathlib.Path(file).name.startswith(name)}
            own = pathlib.Path(found["package"], "lib")
            self.assertIn(own, folders, name)
            self.assertLessEqual(folders, {own, own.parents[1] / "numpy.libs"})

    def test_beside_another_openmp(self):
        """Libraries that are opened later take the functions of the OpenMP library that the others have."""
        log = ROOM / "bindings"
        for old in ROOM.glob("bindings.*"):
            old.unlink()
        self.use("--other-openmp", LD_DEBUG="bindings", LD_DEBUG_OUTPUT=str(log))
        taken = set()
        for file in ROOM.glob("bindings.*"):
            with open(file, encoding="utf-8", errors="replace") as lines:
                taken.update(re.sub(r".*file (\S+) \[0\] to (\S+) .*\n", r"\1 \2", line) for line in lines
                             if "`omp_in_parallel'" in line)
            file.unlink()
        taken = {tuple(pathlib.Path(path).name for path in pair.split()) for pair in taken}
        for user in "libopenblas-collage.so.0", "libdnnl-collage.so.3":
            self.assertEqual({library for name, library in taken if name == user}, {"libgomp-collage.so.1"}, user)

    def test_each_level(self):
        """Also the one that this processor does not get by itself."""
        package = pathlib.Path(self.use()["package"])
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            has_v4 = "avx512vl" in file.read()
        for level in LEVELS if has_v4 else LEVELS[:1]:
            found = self.use(COLLAGE_LIBRARY=str(package / "lib" / level / "libcollage.so.0"))
            self.assertEqual((found["where"], found["finite"]), ("in a worker", True))
            self.assertIn(str(package / "lib" / level / "libcollage.so.0"), found["loaded"])

    def test_a_trained_network_soon(self):
        if not MODEL.exists():
            self.skipTest(f"{MODEL} is not here")
        found = self.use(MODEL)
        print(f"installed in {INSTALLING_S:.1f} s, first result after {found['all_s']:.1f} s, of which {found['measured_s']:.1f} s "
              "measuring", flush=True)
        for total in found["sums"]:
            self.assertAlmostEqual(total, 1, places=3)
        self.assertLess(found["measured_s"], 60)  # 15 s, and what was under way, on a machine that may be busy
        self.assertLess(INSTALLING_S + found["all_s"], 180)


unittest.main(argv=sys.argv[:1])
