"""What paired outcomes say: the drop of accuracy from one engine to another on the same data, and how sure it is.

Data comes in units that are independent of each other: a line of text, a file, a clip of sound. A unit has so many items (characters,
frames), and each engine gets so many of them right.
"""
from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Sequence

CONFIDENCE = 0.95
RESAMPLES = 10_000


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A unit: how many items of `of` the first and the second engine get right."""

    first: int
    second: int
    of: int


@dataclasses.dataclass(frozen=True)
class Drop:
    """Accuracies, and the first minus the second with its interval; `upper` is what the drop may be at most. All are shares of 1."""

    units: int
    items: int
    first: float
    second: float
    drop: float
    low: float
    high: float
    upper: float
    worse: int  # units of which the second engine gets fewer items right
    better: int


def unseen(units: int, confidence: float = CONFIDENCE) -> float:
    """How probable something may be that happened in none of so many units: (1 - p)^units = (1 - confidence) / 2."""
    return float(1 - ((1 - confidence) / 2) ** (1 / units))


def bootstrap(outcomes: Sequence[Outcome], seed: int, resamples: int = RESAMPLES,
              confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The percentile interval of the drop by a paired bootstrap: units are drawn again with replacement, each with what both
    engines made of it (Efron and Tibshirani, An Introduction to the Bootstrap, 13.3)."""
    lost = [one.first - one.second for one in outcomes]
    of = [one.of for one in outcomes]
    draw = random.Random(seed)
    everyone = range(len(outcomes))
    drops = []
    for _ in range(resamples):
        chosen = draw.choices(everyone, k=len(outcomes))
        drops.append(sum(map(lost.__getitem__, chosen)) / sum(map(of.__getitem__, chosen)))
    drops.sort()
    outside = int((1 - confidence) / 2 * resamples)
    return drops[outside], drops[resamples - 1 - outside]


def drop_of(outcomes: Sequence[Outcome], seed: int, resamples: int = RESAMPLES) -> Drop:
    """A bootstrap knows only differences that were seen. Without any, its interval is a point. So `upper` is never below the
    share of units that may be lost although none was."""
    if not outcomes or any(one.of <= 0 or not 0 <= one.first <= one.of or not 0 <= one.second <= one.of for one in outcomes):
        raise ValueError("outcomes: each unit needs items, and no engine gets more of them right than there are")
    items = sum(one.of for one in outcomes)
    first, second = (sum(getattr(one, name) for one in outcomes) / items for name in ("first", "second"))
    low, high = bootstrap(outcomes, seed, resamples)
    return Drop(len(outcomes), items, first, second, first - second, low, high, max(high, unseen(len(outcomes))),
                sum(one.second < one.first for one in outcomes), sum(one.second > one.first for one in outcomes))


def distance(one: Sequence[object], other: Sequence[object]) -> int:
    """The fewest insertions, deletions and replacements from one sequence to another (Levenshtein)."""
    row = list(range(len(other) + 1))
    for count, left in enumerate(one, 1):
        last, row[0] = row[0], count
        for i, right in enumerate(other, 1):
            last, row[i] = row[i], min(row[i] + 1, row[i - 1] + 1, last + (left != right))
    return row[-1]


def close_gaps(marks: Sequence[bool], most: int) -> list[bool]:
    """Marks with gaps of at most so many places between marks closed."""
    result = list(marks)
    at = 0
    for value, group in itertools.groupby(marks):
        length = len(list(group))
        if not value and 0 < at and at + length < len(marks) and length <= most:
            result[at:at + length] = [True] * length
        at += length
    return result
