#!/usr/bin/env python3
"""Every mistake a user can make is told in one sentence, with exit code 2, before anything is measured."""
import copy
import json
import os
import pathlib
import random
import subprocess
import unittest

import models
from program import BERT, BERT_SHAPE, MOBILENET, PROGRAM, Case, collage, complete_backend, environment, npy, placed_backends


class CommandLine(Case):
    def test_commands_and_options(self):
        self.refused(saying="no command is given; the commands are backends, zoo, ")
        self.refused("tunes", saying="there is no command tunes; the commands are backends, zoo, ")
        self.refused("--threads", "2", "bench", BERT, saying="there is no option --threads before the command")
        for command in ("inspect", "tune", "run", "bench", "explain", "verify"):
            self.refused(command, saying=f"{command}: NET is required")
            self.refused(command, BERT, "--frobnicate", saying="there is no option --frobnicate")
        for command in ("backends", "zoo"):
            self.refused(command, "--threads", "1", saying="there is no option --threads")
            self.refused(command, "word", saying="unexpected argument word")
        self.refused("bench", BERT, MOBILENET, saying="unexpected argument zoo:mobilenet-v2")
        self.refused("tune", BERT, saying="--plan is required")
        self.refused("bench", BERT, "--plan", saying="--plan needs one value")
        self.refused("diff", saying="diff: PLAN is required")
        self.refused("diff", "a.json", "--threads", "1", saying="there is no option --threads")
        self.refused("tune", BERT, "--plan", "p.json", "--accept-version-change", saying="there is no option --accept-version-change")
        for command in ("run", "bench", "explain", "verify"):
            self.refused(command, BERT, "--accept-version-change", saying="--accept-version-change: it needs --plan; give --plan FILE")

    def test_numbers(self):
        for text in ("0", "-1", "two", "1.5", "", "1e3", "99999999999999999999", "2000"):
            self.refused("bench", BERT, "--threads", text, saying=f"'{text}' is not a whole number from 1 to 1024")
        for text in ("-1", "x", "18446744073709551616"):
            self.refused("bench", BERT, "--seed", text, saying="is not a whole number")
        self.refused("bench", BERT, "--place", "luck", saying="luck")
        for text in ("-1", "x", "nan", "1e9", "s", "1h", "2 s", "61min"):
            self.refused("bench", BERT, "--seconds", text, saying="is not a number of seconds")

    def test_memory(self):
        for text in ("1.5", "x", "-1x", "0x", "0MB", "nan", "nanx", "inf", "1e99x", "200 MB", "200mb", "MB", "12MBx"):
            self.refused("bench", BERT, f"--memory={text}",
                         saying=f"'{text}' is not a ratio or a size above 0; write 1.5x, 200MB or 1.5GiB")
        self.refused("bench", BERT, "--plan", "p.json", "--memory", "2x",
                     saying="p.json: is a finished plan, and --memory only affects placing; leave it out, or run collage tune with it")

    def test_rules(self):
        for text in ("softmax", "softmax=", "=eigen", ""):
            self.refused("bench", BERT, "--pin", text, saying=f"--pin: '{text}' is not WHAT=BACKEND")
        self.refused("bench", BERT, "--exclude", "softmax=nobody", saying="nobody")
        backend = placed_backends()[0]
        self.refused("bench", BERT, "--quiet", "--exclude", f"nothing={backend}",
                     saying="exclude nothing: is neither a node nor an operator of the network")
        self.refused("bench", BERT, "--plan", "p.json", "--pin", f"softmax={backend}",
                     saying="p.json: is a finished plan, and --pin only affects placing; leave it out, or run collage tune with it")
        self.refused("bench", BERT, "--plan", "p.json", "--recheck", "--complete",
                     saying="is a finished plan, and --recheck and --complete only affect placing; leave them out, or run")

    def test_what_is_asked_of_kernels(self):
        for place in ("priority", "estimate"):
            self.refused("bench", BERT, "--keep-non-finite", "--place", place,
                         saying=f"--keep-non-finite: it needs measuring, and --place {place} does not measure; leave one of them out")

    def test_networks(self):
        for name in ("zoo:nothing", "zoo:", "bert-paper", "", "zoo:bert-paper\nx"):
            for command in ("inspect", "run", "bench", "explain", "verify"):
                self.refused(command, name, saying="there is no such network; name an ONNX file or one of zoo:bert-paper, ")
            self.refused("tune", name, "--plan", self.path("p.json"), saying="there is no such network")

    def test_backends(self):
        self.refused("bench", BERT, "--backends", "tpu", saying="backend 'tpu': there is no such backend")
        self.refused("bench", BERT, "--backends", "", saying="there is no such backend")
        self.refused("bench", BERT, "--backends", placed_backends()[0] + ",", saying="there is no such backend")
        self.refused("bench", BERT, "--backends", "reference", saying="no network is placed on it; choose among ")
        for backend in json.loads(collage("backends", "--all", "--json").stdout):
            if not backend["available"]:
                self.refused("tune", BERT, "--plan", self.path("p"), "--backends", backend["name"], "--quiet",
                             saying=backend["reason"], code=2 if "without it" in backend["reason"] else 1)

    def test_output_that_cannot_be_written(self):
        (self.folder / "file").write_text("")
        for name in ("no/such/folder/p.json", "file/p.json", ""):
            self.refused("tune", BERT, "--plan", self.path(name) if name else "",
                         saying="cannot be written" if name else "--plan is required")
            self.refused("inspect", BERT, "--dot", self.path(name) if name else "/", saying="cannot be written")
        self.refused("tune", BERT, "--plan", str(self.folder), saying="it is a folder")
        for name in ("no/such", "file", "file/below"):
            self.refused("run", BERT, "--output", self.path(name), saying="cannot be created")
        (self.folder / "full").mkdir()
        (self.folder / "full" / "output.npy").mkdir()
        self.refused("run", BERT, "--output", self.path("full"), saying="it is a folder")
        if os.geteuid() != 0:
            (self.folder / "locked").mkdir(mode=0o500)
            self.refused("tune", BERT, "--plan", self.path("locked/p.json"), saying="Permission denied")
        if pathlib.Path("/dev/full").exists():
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, "zoo"], stdout=full, stderr=subprocess.PIPE, text=True, env=environment())
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, r"\Acollage: standard output: cannot be written[^\n]+\n\Z")

    def test_inputs(self):
        def refused(contents, saying):
            (self.folder / "x.npy").write_bytes(contents)
            self.refused("run", BERT, "--input", f"input={self.path('x.npy')}", saying=saying)

        refused(b"", "is not an .npy file")
        refused(b"something else", "is not an .npy file")
        refused(npy(BERT_SHAPE)[:-1], "cut short")
        refused(npy(BERT_SHAPE) + b"x", "too long")
        refused(npy((1, 64, 255)), "1x64x255")
        refused(npy((64, 256)), "64x256")
        refused(npy(BERT_SHAPE, "<f8"), "float64")
        refused(npy(BERT_SHAPE, "<i4"), "int32")
        refused(npy(BERT_SHAPE, ">f4"), "x.npy")
        refused(npy(BERT_SHAPE, text="{'descr': "), "x.npy")
        refused(npy(BERT_SHAPE, text="{'descr': '<f4', 'fortran_order': False, 'shape': (1, 64, 99999999999999999999), }"), "x.npy")
        for argument in ("input", "=x.npy", "input=", ""):
            self.refused("run", BERT, "--input", argument, saying="it is not of the form NAME=FILE.npy or NAME=random")
        self.refused("run", BERT, "--input", "x=random", saying="the network has no such input; the inputs are input (float32[1x64x256])")
        self.refused("run", BERT, "--input", "input=random", "--input", "input=random", saying="it is given twice")
        self.refused("run", BERT, "--input", f"input={self.path('none.npy')}", saying="no such file")
        self.refused("run", BERT, "--input", f"input={self.folder}", saying="is a folder")


class Plans(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.backend = complete_backend()
        cls.net = models.small_network(cls.folder)
        cls.plan = str(cls.folder / "plan.json")
        done = collage("tune", cls.net, "--plan", cls.plan, "--backends", cls.backend, "--threads", "1", "--quiet")
        assert done.returncode == 0, done.stderr
        cls.good = json.loads(pathlib.Path(cls.plan).read_text())

    def test_plans_that_do_not_fit(self):
        for command in ("run", "bench", "explain", "verify"):
            self.refused(command, MOBILENET, "--plan", self.plan, saying=f"is a plan for another network, {self.net}")
            self.refused(command, self.net, "--plan", self.plan, "--threads", "2", saying="is a plan for 1 thread, not 2; run it with 1, or")
            self.refused(command, self.net, "--plan", self.path("none.json"), saying="cannot be read")
        others = [b for b in placed_backends() if b != self.backend]
        if others:
            self.refused("run", self.net, "--plan", self.plan, "--backends", others[0],
                         saying=f"was made with --backends {self.backend}, not {others[0]}")

    def spoiled_file(self, spoil):
        plan = copy.deepcopy(self.good)
        spoil(plan)
        path = self.path("spoiled.json")
        pathlib.Path(path).write_text(json.dumps(plan))
        return path

    def spoiled(self, spoil, saying):
        self.refused("run", self.net, "--plan", self.spoiled_file(spoil), saying=saying)

    def test_plans_of_another_machine_or_build(self):
        def refused(spoil, *saying):
            path = self.spoiled_file(spoil)
            for command in ("run", "bench", "explain", "verify"):
                for accepting in ((), ("--accept-version-change",)):  # which accepts versions, and nothing else
                    self.refused(command, self.net, "--plan", path, *accepting, saying=f"{path}: {saying[0]}")

        name = self.backend
        refused(lambda p: p.update(processor="Another CPU"), "was measured on Another CPU; this is ")
        refused(lambda p: p.update(precision="bf16"), "is a plan in bf16, not in fp32; place the network again")
        refused(lambda p: p["backends"].append({"name": "tpu", "version": "1", "details": ""}),
                "needs backend tpu, which is not in this program's set; build the program with it, or place")
        refused(lambda p: p["backends"].clear(), f"does not say with which version of backend {name} it was made")
        refused(lambda p: p["chosen"]["groups"][0].update(layout="nChw16c"), "chosen.groups[0].layout is nChw16c; known are plain, ")

        shape = self.good["inputs"][0]["shape"]
        other = [shape[0], 128, shape[2]]

        def other_shapes(plan):
            plan["inputs"][0]["shape"] = other
            plan["fingerprint"] = "0123456789abcdef"
        refused(other_shapes, f"is a plan for other shapes: input input is float32[{'x'.join(map(str, other))}] in the plan, but "
                              f"float32[{'x'.join(map(str, shape))}] in the network; load")
        for absent in json.loads(collage("backends", "--all", "--json").stdout):
            if not absent["available"]:
                refused(lambda p, b=absent: p["backends"].append({"name": b["name"], "version": "1", "details": ""}),
                        f"needs backend {absent['name']}, which is not ")

    def test_plans_of_other_versions(self):
        used = next(i for i, b in enumerate(self.good["backends"]) if b["name"] == self.backend)
        version = self.good["backends"][used]["version"]
        for change, saying in (({"version": "0.0.1"}, f"was made with {self.backend} 0.0.1, but {version} is installed"),
                               ({"details": "other flags"}, f"was made with {self.backend} {version} (other flags), but the "
                                                            "installed build is another (")):
            path = self.spoiled_file(lambda p: p["backends"][used].update(change))
            for command in ("run", "bench", "explain", "verify"):
                self.refused(command, self.net, "--plan", path, saying=f"{path}: {saying}")
            self.refused("run", self.net, "--plan", path, saying="; make a new plan with collage tune, or add --accept-version-change to use this plan as it is")
            done = collage("run", self.net, "--plan", path, "--accept-version-change")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"note: {path} {saying}", done.stderr)
            for command in ("explain", "verify"):
                done = collage(command, self.net, "--plan", path, "--accept-version-change", "--quiet")
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_plans_that_were_damaged(self):
        groups = self.good["chosen"]["groups"]
        at = next(i for i, g in enumerate(groups) if g["step"] == "kernel")
        self.spoiled(lambda p: p["chosen"]["groups"][at].update(backend="tpu"), "needs backend tpu, which is not in this program's set")
        self.spoiled(lambda p: p["chosen"]["groups"][at].update(pattern="nothing"), "has no pattern nothing")
        self.spoiled(lambda p: p["chosen"]["groups"][at].update(configuration="999"), "has no configuration 999")
        self.spoiled(lambda p: p["chosen"]["groups"][at].update(configuration="loop v2 unroll 4"),
                     "has no configuration loop v2 unroll 4")
        self.spoiled(lambda p: p["chosen"]["groups"][at].update(configuration="a\u001b[2Jb"),
                     f"chosen.groups[{at}].configuration is (a?[2Jb), which is no configuration of pattern ")
        self.spoiled(lambda p: p["chosen"]["groups"][at].update(step="view", form="plain"), "as a view, which it is not")
        self.spoiled(lambda p: p["chosen"]["groups"].pop(at), "chosen.groups do not fit the network")
        self.spoiled(lambda p: p["chosen"]["groups"][at].pop("kernel"), f"chosen.groups[{at}].kernel is missing")
        self.spoiled(lambda p: p.update(version=99), "has version 99 of the plan format")
        self.spoiled(lambda p: p.update(network="a\nb", fingerprint="0"), "another network, a b")

    def test_plans_with_noise(self):
        seed = random.randrange(1 << 32)
        chance = random.Random(seed)
        good = pathlib.Path(self.plan).read_bytes()
        path = self.path("noise.json")
        for _ in range(40):
            text = bytearray(good)
            for _ in range(chance.randint(1, 3)):
                text[chance.randrange(len(text))] = chance.choice(b'0123456789{}[]",:aelnrt\\ \xff')
            pathlib.Path(path).write_bytes(text)
            done = collage("run", self.net, "--plan", path, "--quiet")
            self.assertIn(done.returncode, (0, 1, 2), f"seed {seed}: {done.returncode} {done.stderr}")
            if done.returncode != 0:
                self.assertRegex(done.stderr, r"\Acollage: [^\n]+\n\Z", f"seed {seed}")


if __name__ == "__main__":
    unittest.main()
