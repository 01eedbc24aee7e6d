"""One network at a time: its samples, the peers' files, our plans, errors, and all engines in turns."""
from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from peers import machine, options, results
from peers.errors import Failure
from peers.options import BackendSet
from peers.processes import Children
from peers.report import count_of
from peers.tuning import Tuner
from shapes.engine import Engine as Process
from shapes.times import rounds_of

from . import greedy
from .networks import FLOAT, INT8, Engine, Network, QuantisedFile, ours_of, peers_of

BENCHMARKS = pathlib.Path(__file__).resolve().parents[2]
CALIBRATING, HELD_OUT = 1, 2  # seeds of samples
REFERENCE = "ONNX Runtime float32"
FREE = 1.0  # an error that leaves plans free
EXPLAIN_S = 1200.0
PACKAGES = ("numpy", "onnx", "onnxruntime", "openvino")


@contextlib.contextmanager
def pinned(threads: int) -> Iterator[None]:
    """The last processors for this process, and for those that it starts: the first one mostly serves interrupts."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[-threads:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def plan_facts(file: pathlib.Path, rounding: Collection[str]) -> dict[str, Any]:
    """What tables say of a plan: its errors, and how many of its groups have a form of a smaller element type, or are regions of the
    backends `rounding`. It is None for plans that round nothing, as those of quantised files, whose values are integers in the file."""
    plan = json.loads(file.read_text(encoding="utf-8"))
    groups = [group for group in plan["chosen"]["groups"] if group["step"] != "view"]
    lower = [group for group in groups if ":" in (group.get("layout") or "") or group.get("backend") in rounding]
    error = plan.get("error") or {}
    return {"groups": len(groups), "lower": len(lower) if error else None, "predicted": error.get("predicted"), "upper": error.get("upper")}


@dataclasses.dataclass
class Prepared:
    """What all numbers of threads share: files by name, where empty is the network in float32; folders of samples; outputs of the reference."""

    about: Mapping[str, Any]
    files: dict[str, str]
    digests: dict[str, str]
    calibrating: pathlib.Path
    held_out: pathlib.Path
    reference: pathlib.Path
    failures: dict[str, str]


class Study:
    """`say` gets what is under way. `python` has the packages of the peers."""

    def __init__(self, given: Any, python: str, say: Callable[..., None]) -> None:
        self.given, self.python, self.say = given, python, say
        self.out, self.library = given.out.resolve(), given.library.resolve()
        self.log = self.out / "engines.log"
        self.children = Children(python, self.log)
        self.machine = machine.describe()
        say("looking at the libraries")
        self.versions = self.children.run({"task": "versions", "packages": PACKAGES, "library": str(self.library)})["versions"]
        self.key = {**self.machine, "versions": self.versions}
        program = given.program.resolve()
        store = given.store.resolve() if given.store else self.out / "costs.db"
        self.tuner = Tuner(program, store, given.tune_seconds, self.out / "plans", {**self.machine, "program": results.digest(program)})
        self.backends = options.set_of(given.backends, self.tuner.available())
        self.rounding = self.tuner.rounding()
        self.kept = results.Kept(self.out / "results")

    def about(self) -> dict[str, Any]:
        return {**self.machine, "instructions": machine.lower_precision(machine.cpuinfo()), "versions": self.versions, "date": machine.today(),
                "backends": self.backends.label, "tune_seconds": self.given.tune_seconds, "samples": self.given.samples,
                "calibration": self.given.calibration, "seconds": self.given.seconds}

    def rows(self, network: Network) -> Iterator[dict[str, Any]]:
        ready = self.prepare(network)
        for threads in self.given.threads:
            yield self.row(network, ready, threads)

    # What all threads share.

    def prepare(self, network: Network) -> Prepared:
        room = self.out / "models" / network.name
        room.mkdir(parents=True, exist_ok=True)
        about = self.children.run({"task": "describe", "file": str(network.file), "room": str(room), "shapes": {}})
        digest = results.digest(pathlib.Path(about["model"]))
        calibrating = self.samples(network, about, "calibrating", self.given.samples, CALIBRATING)
        held_out = self.samples(network, about, "held-out", self.given.held_out, HELD_OUT)
        ready = Prepared(about, {"": about["model"]}, {"": digest}, calibrating, held_out, room / "reference", {})
        for file in network.files:
            try:
                made = self.quantised(network, file, ready, room)
                ready.files[file.name], ready.digests[file.name] = str(made), results.digest(made)
            except Failure as problem:
                ready.failures[f"file {file.name}"] = str(problem)
        self.say(f"{network.name}: outputs in float32")
        process = self.process(Engine(REFERENCE, "onnxruntime", FLOAT), ready, 1)
        try:
            process.ask(f"write {ready.reference}")
        finally:
            process.close()
        return ready

    def samples(self, network: Network, about: Mapping[str, Any], what: str, count: int, seed: int) -> pathlib.Path:
        folder = self.out / "samples" / f"{network.name}.{what}"
        key = {"inputs": about["inputs"], "count": count, "seed": seed, "numpy": self.versions["numpy"]}
        name = f"samples.{network.name}.{what}"
        if self.kept.find(name, key) is None or not folder.is_dir():
            self.say(f"{network.name}: making samples")
            self.kept.keep(name, key, self.work({"task": "samples", "folder": str(folder), "inputs": about["inputs"], "count": count,
                                                 "seed": seed}))
        return folder

    def quantised(self, network: Network, file: QuantisedFile, ready: Prepared, room: pathlib.Path) -> pathlib.Path:
        target = room / f"{network.name}.{file.name.replace(' ', '-')}.onnx"
        key = {"model": ready.digests[""], "file": dataclasses.asdict(file), "samples": self.given.samples,
               "calibration": self.given.calibration, "versions": self.versions}
        name = f"file.{target.stem}"
        if self.kept.find(name, key) is None or not target.is_file():
            self.say(f"{network.name}: quantising ({file.name})")
            made = self.work({"task": "quantise", "model": ready.files[""], "target": str(target), "samples": str(ready.calibrating),
                              "inputs": ready.about["inputs"], "operators": file.operators, "activations": file.activations,
                              "dynamic": file.dynamic, "calibration": self.given.calibration})
            self.kept.keep(name, key, made)
        return target

    def work(self, task: Mapping[str, Any]) -> Any:
        """A task of prepare.py in a process of its own."""
        settings = {**os.environ, "PYTHONPATH": str(BENCHMARKS), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            with open(self.log, "ab") as log:
                done = subprocess.run([self.python, "-P", "-m", "precision.speed.prepare"], input=json.dumps(task).encode(),
                                      stdout=subprocess.PIPE, stderr=log, env=settings, check=False)
        except OSError as problem:
            raise Failure(f"{self.python}: cannot be started: {problem.strerror}") from None
        if not done.stdout:
            raise Failure(f"{task['task']} ended with status {done.returncode}; the end of {self.log} may say why")
        told = json.loads(done.stdout)
        if "failed" in told:
            raise Failure(told["failed"])
        return told

    # With so many threads.

    def row(self, network: Network, ready: Prepared, threads: int) -> dict[str, Any]:
        where, failures = f"{network.name}, {count_of(threads)}", dict(ready.failures)
        engines: list[dict[str, Any]] = []
        for one in peers_of(network):
            self.add(engines, one, ready, threads, failures, where)
        rivals = {file.name for file in network.files if file.is_rival}
        least = min((one["measured"] for one in engines if one["file"] in rivals), default=None)
        for one in ours_of(network, least, self.given.plans):
            self.add(engines, one, ready, threads, failures, where)
        row = {"network": network.name, "threads": threads, "reference": REFERENCE, "held_out": self.given.held_out, "engines": engines,
               "rounds_ms": {}, "calm": True, "disturbed_rounds": 0, "greedy": [], **self.race(engines, ready, threads, failures, where)}
        if "greedy" in self.given.plans:
            try:
                row["greedy"] = self.greedy(network, ready, threads, where)
            except Failure as problem:
                failures["greedy"] = str(problem)
        return {**row, "failures": failures}

    def add(self, engines: list[dict[str, Any]], one: Engine, ready: Prepared, threads: int, failures: dict[str, str], where: str) -> None:
        """Makes an engine's plan if it needs one, and measures its error; an engine that fails is left out."""
        if one.file not in ready.files:
            return
        try:
            plan = self.plan(one, ready, threads, where) if one.is_ours else None
            self.say(f"{where}: errors", one.name)
            engines.append({**dataclasses.asdict(one), "plan": plan, "measured": self.error_of(one, ready, threads, plan)})
        except Failure as problem:
            failures[one.name] = str(problem).removeprefix(f"{one.name}: ")

    def plan(self, one: Engine, ready: Prepared, threads: int, where: str, more: Sequence[str] = ()) -> dict[str, Any]:
        self.say(f"{where}: tuning {one.name}")
        words = list(more)
        key = {"model": ready.digests[one.file]}
        if one.error is not None:
            words += ["--precision", one.precision, "--error", f"{100 * one.error:.6g}%", "--data", str(self.data(ready))]
            key["samples"] = f"{self.given.samples} of seed {CALIBRATING}"
        made_on = dataclasses.replace(self.backends, label=one.name.replace("%", "percent"), algorithms=self.given.algorithms, more=tuple(words))
        made = self.tuner.plan(pathlib.Path(ready.files[one.file]).stem, ready.files[one.file], key, threads, made_on, ready.about["open"])
        return {**made, **plan_facts(pathlib.Path(made["file"]), self.rounding), "digest": results.digest(pathlib.Path(made["file"]))}

    def data(self, ready: Prepared) -> pathlib.Path:
        """As `collage tune --data` takes it: the file where there is one input, and else the folder."""
        files = sorted(ready.calibrating.glob("*.npy"))
        return files[0] if len(files) == 1 else ready.calibrating

    def error_of(self, one: Engine, ready: Prepared, threads: int, plan: Mapping[str, Any] | None) -> float:
        key = {**self.key, "library": results.digest(self.library) if one.is_ours else "", "model": ready.digests[one.file],
               "reference": ready.digests[""], "held_out": self.given.held_out, "plan": plan and plan["digest"], "engine": dataclasses.asdict(one)}
        name = f"error.{pathlib.Path(ready.files['']).stem}.{threads}.{one.name.replace(' ', '_').replace('%', 'percent')}"
        found = self.kept.find(name, key)
        if found is None:
            process = self.process(one, ready, threads, plan)
            try:
                found = process.ask(f"errors {ready.reference}")["error"]
            finally:
                process.close()
            self.kept.keep(name, key, found)
        return float(found)

    def process(self, one: Engine, ready: Prepared, threads: int, plan: Mapping[str, Any] | None = None) -> Process:
        about = ready.about
        engine = {"kind": one.kind, "precision": "bf16" if one.precision == "bf16" else "f32", "plan": plan and plan["file"]}
        task = {"model": ready.files[one.file], "threads": threads, "inputs": about["inputs"], "outputs": about["outputs"],
                "open": about["open"], "overrides": about["overrides"], "library": str(self.library), "held_out": str(ready.held_out),
                "engine": engine}
        return Process(one.name, [self.python, "-P", "-m", "precision.speed.engine", Process.PIPE, json.dumps(task)], self.log)

    def race(self, engines: Sequence[Mapping[str, Any]], ready: Prepared, threads: int, failures: dict[str, str],
             where: str) -> dict[str, Any]:
        """All engines in turns, pinned to the same processors; nothing where one of them fails, which ran before, to measure its error. What
        was measured on an undisturbed machine is not measured again."""
        key = {**self.key, "library": results.digest(self.library), "rounds": self.given.rounds, "seconds": self.given.seconds,
               "engines": [[one["name"], ready.digests[one["file"]], one["plan"] and one["plan"]["digest"]] for one in engines]}
        name = f"turns.{pathlib.Path(ready.files['']).stem}.{threads}"
        if (found := self.kept.find(name, key)) is not None:
            return found
        running: dict[str, Process] = {}
        try:
            with pinned(threads):
                for one in engines:
                    self.say(f"{where}: loading", one["name"])
                    fields = {field.name: one[field.name] for field in dataclasses.fields(Engine)}
                    running[one["name"]] = self.process(Engine(**fields), ready, threads, one["plan"])
                self.say(f"{where}: running in turns")
                found = rounds_of(running, self.given.rounds, self.given.seconds, threads)
                if found["calm"]:
                    self.kept.keep(name, key, found)
                return found
        except Failure as problem:
            failures["turns"] = str(problem)
            return {}
        finally:
            for process in running.values():
                process.close()

    def greedy(self, network: Network, ready: Prepared, threads: int, where: str) -> list[dict[str, Any]]:
        """The curve of the exact search, and the greedy way from the plan at its end."""
        curve = self.out / "plans" / f"{network.name}.{threads}.curve.svg"
        one = Engine("collage curve", "collage", INT8, "", FREE)
        made = self.plan(one, ready, threads, where, ("--curve", str(curve)))
        told = self.tuner.told(["explain", ready.files[""], "--plan", made["file"], "--store", str(self.tuner.store), "--json", "--quiet"],
                               EXPLAIN_S)
        prices = told.get("precision_prices") or {}
        found = greedy.against_exact(made["curve"], told.get("greedy_steps", []), prices.get("nmse"))
        if not found:
            raise Failure("nothing to compare, since no plan in integers was faster than float32, or not all errors of its values were measured; "
                          "more --tune-seconds may help")
        return found
