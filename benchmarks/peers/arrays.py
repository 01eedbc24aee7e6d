"""Arrays that engines are bound to: random inputs, aligned memory, and whether outputs agree. Needs numpy."""
from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from .errors import Failure

ALIGNMENT = 64  # a cache line and the widest vector: what every engine asks for at most
INTEGERS_BELOW = 8
# max|a - r| <= relative * max|r| + absolute, as `collage verify` and ../agree.py have it.
TOLERANCES = {"float16": (1e-2, 1e-3), "float32": (1e-4, 1e-6), "float64": (1e-10, 1e-12)}


@dataclasses.dataclass(frozen=True)
class Input:
    """An input of a network, with all its extents."""

    name: str
    type: str  # as numpy calls it
    shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Difference:
    """How far two engines' outputs are apart. `why` is empty where they agree."""

    worst: float = 0.0  # max|a - r| / max|r|
    why: str = ""


def aligned(shape: Sequence[int], kind: np.dtype | str) -> np.ndarray:
    """Zeros at an address that all engines take as it is."""
    element = np.dtype(kind)
    count = math.prod(shape)
    memory = np.zeros(count * element.itemsize + ALIGNMENT, dtype=np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start:start + count * element.itemsize].view(element).reshape(shape)


def random_input(port: Input) -> np.ndarray:
    """Normal numbers, or small whole ones that are not negative; made from the input's name alone."""
    generator = np.random.default_rng(zlib.crc32(port.name.encode()))
    array = aligned(port.shape, port.type)
    if array.dtype.kind == "f":
        array[...] = generator.standard_normal(port.shape)
    else:
        array[...] = generator.integers(0, 2 if array.dtype.kind == "b" else INTEGERS_BELOW, port.shape)
    return array


def spoil(array: np.ndarray) -> None:
    """Overwrites an output, so that one that is never written is seen."""
    array.fill(np.nan if array.dtype.kind == "f" else 1)


def difference(name: str, actual: np.ndarray, expected: np.ndarray,
               tolerances: Mapping[str, tuple[float, float]] = TOLERANCES) -> Difference:
    """Compares one output of two engines."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        of_both = " and ".join(f"{array.dtype}{list(array.shape)}" for array in (actual, expected))
        return Difference(why=f"output {name}: {of_both}")
    if expected.dtype.kind != "f":
        differing = int(np.count_nonzero(actual != expected))
        return Difference(why=f"output {name}: {differing} of {expected.size} elements differ" if differing else "")
    a, r = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(r)
    if not np.array_equal(np.isnan(a), np.isnan(r)):
        return Difference(why=f"output {name}: NaN stands in different places")
    if not np.array_equal(a[~finite], r[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return Difference(why=f"output {name}: infinity stands in different places")
    largest = float(np.abs(r[finite]).max(initial=0.0))
    distance = float(np.abs(a[finite] - r[finite]).max(initial=0.0))
    relative, absolute = tolerances[expected.dtype.name]
    worst = distance / largest if largest else distance
    if distance > relative * largest + absolute:
        return Difference(worst, f"output {name}: {distance:.2g} apart, of {largest:.2g}")
    return Difference(worst)


def compare(actual: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> Difference:
    """Compares all outputs of two engines; the first reason, and the worst distance."""
    if list(actual) != list(expected):
        return Difference(why=f"outputs {', '.join(actual)} and {', '.join(expected)}")
    found = [difference(name, actual[name], expected[name]) for name in expected]
    return Difference(max((one.worst for one in found), default=0.0), next((one.why for one in found if one.why), ""))


def number_array(name: str, value: object) -> np.ndarray:
    """An output as an engine gave it; a Failure where it is no tensor of numbers."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub":
        raise Failure(f"output {name} is no tensor of numbers")
    return value
