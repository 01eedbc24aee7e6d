"""Inputs whose extents are ranges, and random shapes of them."""
from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Mapping, Sequence

from peers.errors import Mistake

Shape = dict[str, tuple[int, ...]]  # of each input, by name
MOST_DRAWS = 10_000


@dataclasses.dataclass(frozen=True)
class Extent:
    """All multiples of `step` from `low` to `high`."""

    low: int
    high: int
    step: int = 1

    @property
    def is_open(self) -> bool:
        return self.low != self.high

    def draw(self, generator: random.Random, most: int) -> int:
        """One of them, at most `most` where that leaves any."""
        first, last = -(-self.low // self.step), min(self.high, most) // self.step
        return self.step * generator.randint(first, max(first, last))


@dataclasses.dataclass(frozen=True)
class Port:
    name: str
    extents: tuple[Extent, ...]


def extent_of(text: str, word: str) -> Extent:
    bounds, slash, step = text.partition("/")
    low, dots, high = bounds.partition("..")
    numbers = [low, high if dots else low, step if slash else "1"]
    if not all(number.isdecimal() for number in numbers):
        raise Mistake(f"{word}: {text} is no extent; write 48, 16..640, or 16..640/8 for multiples of 8")
    found = Extent(*map(int, numbers))
    if found.step == 0 or -(-found.low // found.step) > found.high // found.step or found.low < 1:
        raise Mistake(f"{word}: there is no extent in {text}")
    return found


def port_of(word: str) -> Port:
    name, sign, extents = word.rpartition("=")
    if not sign or not name:
        raise Mistake(f"{word}: is not of the form NAME=1x3x48x16..640")
    return Port(name, tuple(extent_of(text, word) for text in extents.split("x")))


def elements(dims: Sequence[int]) -> int:
    return math.prod(dims)


def draw(ports: Sequence[Port], generator: random.Random, most: int | None) -> Shape:
    """One shape. Extents are drawn from the last to the first, and earlier ones are bounded so that no input has more than
    `most` elements. Equal ranges get equal extents."""
    drawn: dict[Extent, int] = {}
    shape: Shape = {}
    for port in ports:
        dims: list[int] = []
        for at in reversed(range(len(port.extents))):
            extent = port.extents[at]
            least = math.prod(earlier.low for earlier in port.extents[:at])
            bound = most // max(1, least * elements(dims)) if most else extent.high
            if not extent.is_open:
                dims.append(extent.low)
            else:
                dims.append(drawn.setdefault(extent, extent.draw(generator, bound)))
        shape[port.name] = tuple(reversed(dims))
    return shape


def shapes(ports: Sequence[Port], count: int, seed: int, most: int | None) -> list[Shape]:
    """So many different shapes; a Mistake where there are not enough."""
    generator = random.Random(seed)
    found: dict[str, Shape] = {}
    for _ in range(MOST_DRAWS + 10 * count):
        if len(found) == count:
            break
        shape = draw(ports, generator, most)
        if most is None or max(map(elements, shape.values())) <= most:
            found.setdefault(text_of(shape), shape)
    if len(found) < count:
        raise Mistake(f"--shapes {count}: there are only {len(found)} different shapes in these ranges")
    return list(found.values())


def text_of(shape: Mapping[str, Sequence[int]]) -> str:
    """As the options have it, in a word for each input."""
    return " ".join(f"{name}={'x'.join(map(str, dims))}" for name, dims in shape.items())


def label_of(shape: Mapping[str, Sequence[int]], ports: Sequence[Port]) -> str:
    """For a table: the inputs whose extents change."""
    changing = [port.name for port in ports if any(extent.is_open for extent in port.extents)] or list(shape)
    dims = ["x".join(map(str, shape[name])) for name in changing]
    return dims[0] if len(dims) == 1 else ", ".join(f"{name} {one}" for name, one in zip(changing, dims))


def shape_of(text: str, ports: Sequence[Port]) -> Shape:
    """A shape of `--tune`, in words NAME=DIMS; inputs without ranges may be left out."""
    given = {port.name: port for port in map(port_of, text.split())}
    shape: Shape = {}
    for port in ports:
        one = given.pop(port.name, port)
        if any(extent.is_open for extent in one.extents):
            raise Mistake(f"--tune {text!r}: input {port.name} needs extents without ranges")
        shape[port.name] = tuple(extent.low for extent in one.extents)
    if given:
        raise Mistake(f"--tune {text!r}: there is no range for input {next(iter(given))}")
    return shape
