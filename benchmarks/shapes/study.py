"""What all measurements share: the network, its shapes, a store of costs, engines, and results that are kept."""
from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from peers import environment, machine, options, results
from peers.errors import Failure, Mistake
from peers.main import Progress
from peers.processes import Children
from peers.tuning import Tuner

from . import ranges
from .engine import BENCHMARKS, Engine

OURS, ONNXRUNTIME, OPENVINO, PER_SHAPE = "collage", "onnxruntime", "openvino", "openvino-per-shape"
ENGINES = (OURS, ONNXRUNTIME, OPENVINO, PER_SHAPE)
TITLES = {OURS: "collage", ONNXRUNTIME: "ONNX Runtime", OPENVINO: "OpenVINO, open shapes",
          PER_SHAPE: "OpenVINO, compiled per shape"}
BERT = "bert"
BERT_FILE = BENCHMARKS / "workloads/bert-base-128.onnx"
BERT_WIDTH = 768
BERT_RANGES = (f"input=1..1024x1..512x{BERT_WIDTH}",)
BERT_MOST = 1024 * BERT_WIDTH


class Paused(Exception):
    """The time of this call is over. The same command goes on."""


@dataclasses.dataclass(frozen=True)
class Network:
    name: str
    model: str  # with weights
    ports: tuple[ranges.Port, ...]  # all inputs
    types: Mapping[str, str]  # of inputs
    most: int | None  # elements of an input

    @property
    def stem(self) -> str:
        return self.name.replace("/", "__")

    def label(self, shape: ranges.Shape) -> str:
        return ranges.label_of(shape, self.ports)


def fit_for_a_file(text: str) -> str:
    """Short, and different for different texts."""
    return f"{re.sub('[^A-Za-z0-9]+', '_', text)[:60]}.{zlib.crc32(text.encode()):08x}"


class Study:
    """Everything but the measurements themselves."""

    def __init__(self, given: argparse.Namespace, say: Progress) -> None:
        self.given, self.say = given, say
        self._is_warm = False
        self._ends = time.monotonic() + given.stop_after if given.stop_after else None
        self.out = given.out.resolve()
        self.log = self.out / "engines.log"
        self.python = given.python or environment.set_up(environment.folder(options.TOP), say)
        self.children = Children(self.python, self.log)
        self.machine = machine.describe()
        say("looking at the libraries")
        self.versions = self.children.run({"task": "versions", "packages": environment.PACKAGES,
                                           "library": str(given.library.resolve())})["versions"]
        self.network = self._network()
        program = given.program.resolve()
        self.tuner = Tuner(program, self._store(), given.tune_seconds, self.out / "plans" / self._store().name,
                           {**self.machine, "program": results.digest(program)})
        self.backends = options.set_of(given.backends, self.tuner.available())
        self.tuned = [ranges.shape_of(text, self.network.ports) for text in given.tune]
        self.key = {**self.machine, "versions": self.versions, "threads": given.threads,
                    "model": results.digest(pathlib.Path(self.network.model)), "backends": self.backends.backends,
                    "tuned": list(map(ranges.text_of, self.tuned)), "tune_seconds": given.tune_seconds,
                    "store": str(given.store.resolve()) if given.store else ""}

    def shapes(self, count: int) -> list[ranges.Shape]:
        return ranges.shapes(self.network.ports, count, self.given.seed, self.network.most)

    def check_time(self) -> None:
        """Called between measurements."""
        if self._ends is not None and time.monotonic() > self._ends:
            raise Paused

    def is_tuned(self, shape: ranges.Shape) -> bool:
        return shape in self.tuned

    def seed_of(self, shape: ranges.Shape) -> int:
        """Of the contents of its inputs."""
        return zlib.crc32(ranges.text_of(shape).encode())

    def kept(self) -> results.Kept:
        return results.Kept(self.out / "results")

    def tune(self) -> None:
        """Tunes the shapes of `--tune` into the store. What is tuned stays."""
        if self._is_warm:
            return
        store = self.tuner.store
        if not store.is_file():
            shutil.rmtree(self.tuner.plans, ignore_errors=True)  # they say what a store has that is no more
        for shape in self.tuned:
            self.check_time()
            self.say(f"{self.network.name}: tuning {self.network.label(shape)}")
            self.tuner.plan(f"{self.network.stem}.{fit_for_a_file(ranges.text_of(shape))}", self.network.model,
                            {"model": self.key["model"]}, self.given.threads, self.backends, shape)
        self._is_warm = True

    def warm_store(self) -> pathlib.Path:
        """A copy of the store, since sessions write what they check: another call finds the same one."""
        copy = self.out / "session.db"
        for part in ("", "-wal", "-shm"):
            copy.with_name(copy.name + part).unlink(missing_ok=True)
        if self.tuner.store.is_file():
            try:
                with contextlib.closing(sqlite3.connect(self.tuner.store)) as source, \
                        contextlib.closing(sqlite3.connect(copy)) as target:
                    source.backup(target)
            except sqlite3.Error as problem:
                raise Failure(f"{self.tuner.store}: cannot be copied: {problem}") from None
        return copy

    @contextlib.contextmanager
    def engines(self, names: Sequence[str], *, kept: int = 0, limits: Sequence[str] = ()) -> Iterator[dict[str, Engine]]:
        """Engines that have loaded the network. `kept` is how many compiled models of OpenVINO stay (0: all), and `limits` are
        options of the session."""
        running: dict[str, Engine] = {}
        try:
            for name in names:
                self.say(f"{self.network.name}: loading", TITLES[name])
                running[name] = Engine(TITLES[name], self._command(name, kept, limits), self.log)
            yield running
        finally:
            for engine in running.values():
                engine.close()

    def about(self) -> dict[str, Any]:
        """For tables and JSON."""
        return {"network": self.network.name, "threads": self.given.threads, "backends": self.backends.label,
                "machine": {**self.machine, "versions": self.versions, "date": machine.today()}, "seed": self.given.seed,
                "tuned": [self.network.label(shape) for shape in self.tuned], "tune_seconds": self.given.tune_seconds,
                "store": self.given.store.name if self.given.store else ""}

    def _command(self, name: str, kept: int, limits: Sequence[str]) -> list[str]:
        threads = str(self.given.threads)
        if name == OURS:
            words = [str(self.given.child.resolve()), Engine.PIPE, "--threads", threads, "--store", str(self.warm_store()),
                     *limits]
            if self.backends.backends:
                words += ["--backends", self.backends.backends]
            return [*words, self.network.model]
        return [self.python, "-P", "-m", "shapes.peer", Engine.PIPE, name, self.network.model, threads, str(kept),
                json.dumps(self.network.types)]

    def _store(self) -> pathlib.Path:
        return self.given.store.resolve() if self.given.store else self.out / "costs.db"

    def _network(self) -> Network:
        given = self.given
        words, most, file, name = given.ranges, given.most_elements, given.model, None
        if str(given.model) == BERT:
            words, most, name = words or BERT_RANGES, most or BERT_MOST, "bert-base"
            file = self._bert()
        elif not file.is_file():
            raise Mistake(f"{file}: there is no such .onnx file; `{BERT}` is the other choice")
        ports = [ranges.port_of(word) for word in words]
        smallest = {port.name: [extent.low for extent in port.extents] for port in ports}
        self.say(f"{file.stem}: reading")
        try:
            about = self.children.run({"task": "describe", "file": str(file.resolve()), "shapes": smallest,
                                       "room": str(self.out / "models")})
        except Failure as problem:
            raise Failure(f"{file.name} {problem}".replace("--shape ", "a range ")) from None
        by_name = {port.name: port for port in ports}
        unknown = set(by_name) - {port["name"] for port in about["inputs"]}
        if unknown:
            raise Mistake(f"{sorted(unknown)[0]}: {file.name} has no such input")
        full = tuple(by_name.get(port["name"]) or
                     ranges.Port(port["name"], tuple(ranges.Extent(extent, extent) for extent in port["shape"]))
                     for port in about["inputs"])
        return Network(name or file.stem, about["model"], full, {port["name"]: port["type"] for port in about["inputs"]}, most)

    def _bert(self) -> pathlib.Path:
        file = self.out / "models" / "bert-base.onnx"
        if not file.is_file():
            self.say("opening the batch and the length of BERT-base")
            settings = {**os.environ, "PYTHONPATH": str(BENCHMARKS), "PYTHONDONTWRITEBYTECODE": "1"}
            done = subprocess.run([self.python, "-P", "-m", "shapes.bert", str(BERT_FILE), str(file)], capture_output=True,
                                  text=True, env=settings, check=False)
            if done.returncode != 0:
                reason = (done.stderr.strip() or "it said nothing").splitlines()[-1]
                raise Failure(f"{BERT_FILE}: its axes could not be opened: {reason}")
        return file
