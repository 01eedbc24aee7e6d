"""The chart: how much slower a plan is than the one without a budget, by its budget, as a line for each network."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from peers.chart import FONT, FRAME, GRID, MUTED, PAPER, shortened, text

WIDTH, HEIGHT = 880, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 200, 84, 352
MOST = 1.5  # ratios above are drawn at the upper edge
COLOURS = ("#0b6e99", "#e39a3b", "#8d78b8", "#3f8f5b", "#c2504d", "#6b7785", "#b8860b", "#2f4b7c", "#d45087", "#7a9a01", "#444444")

Curves = Mapping[str, Sequence[tuple[float, float]]]  # by network: (seconds of tuning, time over the last plan's)


def positions(values: Sequence[float], least: float, lowest: float) -> list[float]:
    """Where labels stand that must not overlap, as near to their values as that allows. None is below `lowest`."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    placed = list(values)
    for before, index in zip(order, order[1:]):
        placed[index] = max(placed[index], placed[before] + least)
    limit = lowest
    for index in reversed(order):
        placed[index] = min(placed[index], limit)
        limit = placed[index] - least
    return placed


def chart(curves: Curves, about: str) -> str:
    budgets = sorted({budget for points in curves.values() for budget, _ in points})
    high = min(MOST, max([1.05, *(ratio for points in curves.values() for _, ratio in points)]))
    first, last = math.log(budgets[0]), math.log(budgets[-1])

    def x(budget: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * ((math.log(budget) - first) / (last - first) if last > first else 0.5)

    def y(ratio: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (min(max(ratio, 0.98), high) - 0.98) / (high - 0.98)

    svg = [text(24, 36, "Time of a run by seconds of tuning", size=18, weight="600"),
           text(24, 56, f"Relative to the plan without a budget, up to {MOST:g}. Lower is faster.", colour=MUTED)]
    step = 0.01 if high <= 1.06 else 0.05 if high <= 1.3 else 0.1
    for i in range(int(round((high - 1) / step)) + 1):
        at = y(1 + i * step)
        svg.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="{GRID}"/>')
        svg.append(text(LEFT - 8, at + 4, f"{1 + i * step:.2f}", size=11, colour=MUTED, anchor="end"))
    for budget in budgets:
        svg.append(text(x(budget), BOTTOM + 20, f"{budget:g} s", size=11, colour=MUTED, anchor="middle"))
    ends = positions([y(points[-1][1]) for points in curves.values()], 14, BOTTOM + 4)
    for index, ((name, points), end) in enumerate(zip(curves.items(), ends)):
        colour = COLOURS[index % len(COLOURS)]
        path = "L".join(f"{x(budget):.1f} {y(ratio):.1f}" for budget, ratio in points)
        svg.append(f'<path d="M{path}" stroke="{colour}" stroke-width="2" fill="none" stroke-linejoin="round"/>')
        svg += [f'<circle cx="{x(budget):.1f}" cy="{y(ratio):.1f}" r="3" fill="{colour}"/>' for budget, ratio in points]
        svg.append(text(WIDTH - RIGHT + 14, end + 4, shortened(name, 12, RIGHT - 24), colour=colour))
    svg.append(text(24, HEIGHT - 24, shortened(about, 10.5, WIDTH - 48), size=10.5, colour=MUTED))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="{escape(FONT)}" role="img" aria-label="Time of a run by seconds of tuning">',
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8" fill="{PAPER}" stroke="{FRAME}"/>',
        *svg, "</svg>", ""])
