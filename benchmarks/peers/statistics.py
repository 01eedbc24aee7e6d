"""What samples say: medians, how sure they are, and pairs. The rules are those of include/collage/measure/statistics.hpp."""
from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

LEAST_ROUNDS = 6  # with fewer there is no 95 % interval


@dataclasses.dataclass(frozen=True)
class Ratio:
    """The median over rounds of one time divided by another, and between what it lies with a confidence of 95 %."""

    median: float
    low: float
    high: float
    rounds: int


def quantile(samples: Sequence[float], q: float) -> float:
    """A quantile by linear interpolation."""
    ordered = sorted(samples)
    at = q * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def median(samples: Sequence[float]) -> float:
    return quantile(samples, 0.5)


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """The 95 % confidence interval of the median by order statistics: how many samples lie below the true median is
    binomial, whatever they are distributed like (Conover, Practical Nonparametric Statistics, 3.2). With fewer than six
    samples no interval is that sure, and it is from the least to the greatest."""
    ordered = sorted(samples)
    n = len(ordered)
    rank = 0  # so many samples at either end lie outside
    below = 0.5**n  # the chance that at most `rank` samples lie below the median
    while rank + 1 < n - rank and below <= 0.025:
        rank += 1
        below += math.comb(n, rank) * 0.5**n
    rank = max(rank - 1, 0)
    return ordered[rank], ordered[n - 1 - rank]


def paired_ratio(a: Sequence[float], b: Sequence[float]) -> Ratio:
    """How a compares with b over rounds that both took part in: above 1 where a takes longer. What slows a whole round
    cancels."""
    ratios = [one / other for one, other in zip(a, b, strict=True)]
    low, high = median_interval(ratios)
    return Ratio(median(ratios), low, high, len(ratios))


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def order_of_round(count: int, number: int) -> list[int]:
    """Who runs when in a round: rotated from round to round, so that everyone is first and last equally often, and
    turned around after each full rotation, so that nobody always runs behind the same rival."""
    turned, first = divmod(number, count)
    order = [(first + i) % count for i in range(count)]
    return order[::-1] if turned % 2 else order
