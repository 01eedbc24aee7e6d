#!/usr/bin/env python3
"""`collage tune` is killed at random moments, over and over: nothing is lost, nothing blocks the next, plan and store are sound.

usage: kills.py PROGRAM [KILLS]
The seed is printed; COLLAGE_SEED repeats it, as far as the moments of a machine can be repeated.
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

KILLS = int(sys.argv.pop()) if len(sys.argv) > 2 else 50

import models
from program import PROGRAM, Case, complete_backend, environment

HOUR_S = 3600


class Kills(Case):
    def files(self, ending):
        return [f for f in self.folder.iterdir() if f.is_file() and f.name.endswith(ending)]

    def known(self):
        """What the store has, by what the costs are of."""
        if not pathlib.Path(self.store).exists():
            return set()
        self.assertEqual(self.json_of("store", "check", "--store", self.store)["problems"], [])
        return {c["id"] for c in self.json_of("store", "list", "--store", self.store)["costs"]}

    def tune(self, *more):
        words = [PROGRAM, "tune", self.network, "--plan", str(self.plan), "--store", self.store, "--threads", "1", "--backends",
                 self.backend, "--quiet", *more]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())

    def check(self, before, had_plan):
        """The store has what it had, and the plan file is absent, as at first, or whole. Returns what the store has now."""
        now = self.known()
        self.assertLessEqual(before, now)
        if had_plan:
            self.assertTrue(self.plan.exists())
        if self.plan.exists():
            self.json_of("explain", self.network, "--plan", str(self.plan))
        return now

    def test_killed_over_and_over(self):
        seed = int(os.environ.get("COLLAGE_SEED", random.SystemRandom().getrandbits(32)))
        print(f"COLLAGE_SEED={seed}", flush=True)
        chance = random.Random(seed)
        self.network = models.small_network(self.folder)
        self.backend, self.plan, self.store = complete_backend(), pathlib.Path(self.path("plan.json")), self.path("costs.db")
        killed = {signal.SIGKILL: 0, signal.SIGTERM: 0}
        plans = left = 0
        before, took_s = set(), 2.0
        while sum(killed.values()) < KILLS:
            if chance.random() < 0.1:  # from the beginning again
                for file in self.files(""):
                    if file.name != pathlib.Path(self.network).name:
                        file.unlink()
                before, left = set(), 0
            had_plan = self.plan.exists()
            how = chance.choice(list(killed))
            more = ["--recheck"] if chance.random() < 0.5 else []
            more += ["--budget", "1.5s"] if chance.random() < 0.75 else []
            with self.tune(*more) as tuning:
                begin = time.monotonic()
                try:
                    tuning.wait(chance.uniform(0, 1.1 * took_s))
                except subprocess.TimeoutExpired:
                    tuning.send_signal(how)
                    killed[how] += 1
                sent = time.monotonic()
                said, told = tuning.communicate(timeout=300)
                if how == signal.SIGTERM:
                    self.assertLess(time.monotonic() - sent, 60, told)
                took_s = max(0.5, time.monotonic() - begin) if tuning.returncode == 0 and not told else took_s
            self.assertIn(tuning.returncode, (0, -how), told)
            if tuning.returncode == 0:
                self.assertTrue(self.plan.exists(), told)
            plans += self.plan.exists() and not had_plan
            if how == signal.SIGTERM:  # such a process leaves nothing
                self.assertLessEqual(len(self.files(".tmp")), left, told)
            left = len(self.files(".tmp"))
            # Reading takes longer than many a kill.
            if sum(killed.values()) % 5 == 0:
                before = self.check(before, had_plan)
        self.check(before, self.plan.exists())

        # Nothing that was left blocks the next, which removes what is old.
        old = time.time() - 2 * HOUR_S
        (self.folder / "plan.json.collage-0123456789ab.tmp").write_text("cut sho")
        for file in self.files(".tmp"):
            os.utime(file, (old, old))
        with self.tune() as tuning:
            _, told = tuning.communicate(timeout=500)
        self.assertEqual((tuning.returncode, told), (0, ""))
        self.assertEqual(self.files(".tmp"), [])
        self.check(before, True)
        print(f"{killed[signal.SIGKILL]} by SIGKILL, {killed[signal.SIGTERM]} by SIGTERM; {plans} plans were new, {left} files "
              "were left")

    def test_in_a_namespace_of_its_own(self):
        """A process whose number is that of a killed one, as the first of each container."""
        self.network = models.small_network(self.folder)
        if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True).returncode != 0:
            self.skipTest("only root can make a namespace of processes")
        own = self.folder / "own"  # the other test counts the files of the folder
        own.mkdir()
        plan = own / "first.json"
        for left in ("first.json.1.tmp", "first.json.2.tmp"):
            (own / left).write_text("cut sho")
        done = subprocess.run(["unshare", "--pid", "--fork", PROGRAM, "tune", self.network, "--plan", str(plan), "--place",
                               "priority", "--quiet"], capture_output=True, text=True, env=environment())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        json.loads(plan.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
