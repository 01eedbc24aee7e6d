"""The chart: how long every engine takes relative to collage, as bars, in SVG that any page shows as it is."""
from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from . import statistics
from .report import TITLES, count_of, number

Row = Mapping[str, Any]

WIDTH = 880
LEFT, RIGHT = 190, 96  # room for the names of workloads, and for figures behind the longest bar
BAR, GAP, BETWEEN = 13, 3, 14  # heights: of a bar, between bars, between workloads
MARGIN = 24
LONGEST = 3.0  # times ours: longer bars are cut, and say so
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif"
PAPER, FRAME, INK, MUTED, GRID, MARK = "#ffffff", "#d9dee3", "#1f2933", "#6b7785", "#e8ebee", "#1f2933"
OURS = ("#0b6e99", "#6db3d1", "#b4d8e7")  # by set of backends; further sets repeat the last
PEERS = {"onnxruntime": "#e39a3b", "openvino": "#8d78b8"}
CHARACTER = 0.58  # of a character, in units of the font's size: no font is at hand to measure with


@dataclasses.dataclass(frozen=True)
class Bar:
    """One engine on one workload. No length: it failed."""

    colour: str
    length: float | None
    milliseconds: float | None
    low: float | None = None
    high: float | None = None


@dataclasses.dataclass(frozen=True)
class Group:
    """The bars of one workload."""

    name: str
    bars: tuple[Bar, ...]
    weight: str = "normal"

    @property
    def height(self) -> int:
        return len(self.bars) * (BAR + GAP) - GAP


def text(x: float, y: float, what: str, *, size: float = 12, colour: str = INK, anchor: str = "start",
         weight: str = "normal", beside: str = "") -> str:
    """A text, with another one in a quieter type beside it."""
    bold = "" if weight == "normal" else f' font-weight="{weight}"'
    quiet = f'<tspan dx="6" font-size="10.5" font-weight="normal" fill="{MUTED}">{escape(beside)}</tspan>' if beside else ""
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{colour}"{side}{bold}>{escape(what)}{quiet}</text>'


def shortened(name: str, size: float, room: float) -> str:
    """A name, cut where it would not fit."""
    most = max(4, int(room / (CHARACTER * size)))
    return name if len(name) <= most else name[:most - 1] + "\u2026"


def colour_of_set(index: int) -> str:
    return OURS[min(index, len(OURS) - 1)]


def groups_of(rows: Sequence[Row], sets: Sequence[str]) -> list[Group]:
    """The bars of rows of one number of threads: ours by set of backends, the first of which is the measure, then the
    peers."""
    by_workload: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_workload.setdefault(row["workload"], {})[row["backends"]] = row
    groups = []
    for name, own in by_workload.items():
        first = own.get(sets[0], next(iter(own.values())))
        unit = first.get("ours_ms")
        bars = []
        for index, label in enumerate(sets):
            ours = own.get(label, {}).get("ours_ms")
            bars.append(Bar(colour_of_set(index), ours / unit if ours and unit else None, ours))
        for peer, colour in PEERS.items():
            taken = first.get("peers", {}).get(peer)
            pair = first.get("ratios", {}).get(peer, {})
            bars.append(Bar(colour, pair.get("ratio"), taken, pair.get("low"), pair.get("high")))
        groups.append(Group(name, tuple(bars)))
    return groups


def mean_of(groups: Sequence[Group]) -> Group:
    """The geometric means of all that have a length, bar by bar."""
    bars = []
    for column in zip(*(group.bars for group in groups)):
        lengths = [bar.length for bar in column if bar.length]
        bars.append(Bar(column[0].colour, statistics.geometric_mean(lengths) if lengths else None, None))
    return Group("geometric mean", tuple(bars), "600")


def axis(groups: Sequence[Group]) -> tuple[float, list[float]]:
    """Where the axis ends, and its ticks."""
    longest = max((bar.length for group in groups for bar in group.bars if bar.length), default=1.0)
    step = 0.25 if longest <= 1.5 else 0.5
    end = min(LONGEST, max(1.25, math.ceil((longest + 0.02) / step) * step))
    return end, [i * step for i in range(int(round(end / step)) + 1)]


def bar_svg(bar: Bar, y: float, scale: float, end: float) -> tuple[list[str], str]:
    """What is drawn of a bar, and what is written beside it."""
    middle = y + BAR / 2
    if bar.length is None:
        taken = f"{number(bar.milliseconds)} ms" if bar.milliseconds else "failed"
        return [], text(LEFT + 6, middle + 3.5, taken, size=10.5, colour=MUTED)
    cut = bar.length > end
    length = scale * min(bar.length, end)
    svg = [f'<rect x="{LEFT}" y="{y:g}" width="{length:.1f}" height="{BAR}" rx="2" fill="{bar.colour}"/>']
    right = length
    if cut:  # a slanted gap near the end
        at = LEFT + length - 16
        svg.append(f'<path d="M{at:.1f} {y + BAR + 1:g}l5 -{BAR + 2}h4l-5 {BAR + 2}z" fill="{PAPER}"/>')
    elif bar.low is not None and bar.high is not None:
        low, high = (LEFT + scale * min(value, end) for value in (bar.low, bar.high))
        svg.append(f'<path d="M{low:.1f} {middle - 3:g}v6M{low:.1f} {middle:g}H{high:.1f}M{high:.1f} {middle - 3:g}v6" '
                   f'stroke="{MARK}" stroke-width="1" stroke-opacity="0.75" fill="none"/>')
        right = max(length, high - LEFT)
    taken = f"{number(bar.milliseconds)} ms" if bar.milliseconds else ""
    return svg, text(LEFT + right + 6, middle + 3.8, f"{bar.length:.2f}\u00d7", size=11, weight="600", beside=taken)


def panel(rows: Sequence[Row], threads: int, sets: Sequence[str], top: float) -> tuple[list[str], float]:
    """The bars of one number of threads from `top` on, and where they end."""
    groups = groups_of(rows, sets)
    if len(groups) > 1:
        groups.append(mean_of(groups))
    end, ticks = axis(groups)
    scale = (WIDTH - LEFT - RIGHT - MARGIN) / end
    svg = [text(MARGIN, top + 12, count_of(threads), size=14, weight="600")]
    first = top + 34
    bottom = first + sum(group.height + BETWEEN for group in groups)
    for tick in ticks:
        x = LEFT + scale * tick
        svg.append(f'<path d="M{x:.1f} {first - 6:g}V{bottom - 4:g}" stroke="{GRID}"/>')
        svg.append(text(x, first - 11, f"{tick:g}", size=10.5, colour=MUTED, anchor="middle"))
    y, labels = first, []
    for group in groups:
        svg.append(text(LEFT - 12, y + group.height / 2 + 4.2, shortened(group.name, 12.5, LEFT - MARGIN - 12), size=12.5,
                        anchor="end", weight=group.weight))
        for bar in group.bars:
            drawn, label = bar_svg(bar, y, scale, end)
            svg += drawn
            labels.append(label)
            y += BAR + GAP
        y += BETWEEN - GAP
    x = LEFT + scale
    svg.append(f'<path d="M{x:.1f} {first - 6:g}V{bottom - 4:g}" stroke="{INK}" stroke-width="1" stroke-dasharray="3 3" '
               'stroke-opacity="0.55"/>')
    # Written last, on a rim of paper: they may lie across lines.
    svg += [f'<g stroke="{PAPER}" stroke-width="3" stroke-linejoin="round" paint-order="stroke">', *labels, "</g>"]
    return svg, bottom + 12


def legend(sets: Sequence[str], top: float) -> list[str]:
    names = ["collage"] if len(sets) == 1 else [f"collage, {'all backends' if label == 'all' else label}" for label in sets]
    entries = [*zip(names, map(colour_of_set, range(len(sets)))), *((TITLES[peer], PEERS[peer]) for peer in PEERS)]
    svg, x = [], float(MARGIN)
    for name, colour in entries:
        svg.append(f'<rect x="{x:g}" y="{top}" width="12" height="12" rx="2" fill="{colour}"/>')
        svg.append(text(x + 18, top + 10.5, name))
        x += 18 + CHARACTER * 12 * len(name) + 26
    return svg


def chart(rows: Sequence[Row], about: str) -> str:
    """The whole chart; `about` is the line at its foot. Rows are those of report.py, of any numbers of threads."""
    sets = list(dict.fromkeys(row["backends"] for row in rows))
    body = [text(MARGIN, 36, "Time of one run, relative to collage", size=18, weight="600"),
            text(MARGIN, 56, "Shorter is faster. Lines on the bars: 95 % intervals of the paired ratios.", colour=MUTED),
            *legend(sets, 72)]
    y = 112.0
    for threads in sorted({row["threads"] for row in rows}):
        svg, y = panel([row for row in rows if row["threads"] == threads], threads, sets, y)
        body += svg
    body.append(text(MARGIN, y + 8, shortened(about, 10.5, WIDTH - 2 * MARGIN), size=10.5, colour=MUTED))
    height = int(y + 28)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="{escape(FONT)}" role="img" aria-label="Time of one run relative to collage">',
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8" fill="{PAPER}" stroke="{FRAME}"/>',
        *body, "</svg>", ""])
