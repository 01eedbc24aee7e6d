"""What a network brings along to be measured: its file, samples, labelled data, and a judgement of its outputs."""
from __future__ import annotations

import importlib.util
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from peers.errors import Failure

Arrays = Mapping[str, Any]  # numpy's, by the names of inputs or outputs
Run = Callable[[Arrays], Arrays]  # runs an engine once

Count = tuple[int, int]  # items that are right, of how many


class Case(Protocol):
    """A trained network. Data for tuning and data held back never share a source; both follow from the seed. It is made with a folder
    for files that it writes."""

    name: str
    network: str  # as tables call it
    data: str  # what the data is, in a sentence
    unit: str  # in the plural: what is independent of each other
    measures: Sequence[str]  # what is counted, in the plural
    model: pathlib.Path
    shapes: Mapping[str, Sequence[int]]
    values: Arrays  # inputs that become constants
    metadata: Mapping[str, str]  # of the file; set when it is loaded

    def samples(self, count: int, seed: int, run: Run) -> list[Arrays]:
        """Inputs of single runs for tuning. `run` computes in float32, for states that go on from run to run."""

    def units(self, count: int, seed: int) -> Iterable[Any]:
        """Labelled data that tuning has not seen."""

    def outputs(self, unit: Any, run: Run) -> Arrays:
        """What an engine computes of a unit."""

    def judge(self, unit: Any, outputs: Arrays, in_float32: Arrays) -> Sequence[Count]:
        """For each measure, how much of a unit is right."""


def file_of(package: str, name: str) -> pathlib.Path:
    """A file in an installed package, which is not imported: its dependencies are not there."""
    found = importlib.util.find_spec(package)
    for place in (found.submodule_search_locations or []) if found else []:
        if (pathlib.Path(place) / name).is_file():
            return pathlib.Path(place) / name
    raise Failure(f"{package}: is not installed with its file {name}; see accuracy/requirements.txt")
