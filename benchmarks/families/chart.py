#!/usr/bin/env python3
"""Draws the regret over measurements: chart.py CURVES SVG

CURVES is what `benchmark_families --curves` writes. Both axes are logarithmic.
"""
import csv
import math
import pathlib
import sys

ARMS = {  # name in the file, and on the chart: colours for light and dark pages
    "random": ("#7a828b", "#9aa4ae"),
    "a model per task": ("#b35c1e", "#e39a5f"),
    "one model for everything": ("#2f6db3", "#6ba4e6"),
    "closed form alone": ("#8a3fa0", "#c98bdc"),
    "closed form first, then one model": ("#23805a", "#62c49a"),
    "transfer from the seven others": ("#b3263e", "#f07f90"),
}
LEFT, RIGHT, TOP, BOTTOM = 70, 650, 50, 400
MOST, LEAST = 0.8, 0.0005  # regrets


def x_of(measurements: float, most: float) -> float:
    return LEFT + (RIGHT - LEFT) * math.log(measurements) / math.log(most)


def y_of(regret: float) -> float:
    share = math.log(MOST / max(regret, LEAST)) / math.log(MOST / LEAST)
    return TOP + (BOTTOM - TOP) * min(max(share, 0), 1)


def style() -> str:
    def rules(column: int) -> str:
        return " ".join(f"--c{i}: {colours[column]};" for i, colours in enumerate(ARMS.values()))
    return f"""<style>
svg {{ background: #fcfcfb; --ink: #1d2126; --soft: #5c6570; --line: #d9dce0; {rules(0)} }}
@media (prefers-color-scheme: dark) {{
  svg {{ background: #14171a; --ink: #e5e8eb; --soft: #9aa4ae; --line: #333a41; {rules(1)} }}
}}
text {{ font: 13px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; fill: var(--soft); }}
.title {{ font-size: 16px; font-weight: 600; fill: var(--ink); }}
.mid {{ text-anchor: middle; }} .end {{ text-anchor: end; }}
.grid {{ stroke: var(--line); }} .bar {{ stroke: var(--soft); stroke-dasharray: 6 4; }}
.curve {{ stroke-width: 2; fill: none; }}
</style>"""


def is_transfer(arm: str) -> bool:
    """Its name says how many other tasks there are."""
    return arm.startswith("transfer from the ")


def drawing(curves: dict[str, list[float]]) -> str:
    most = max(len(curve) for curve in curves.values())
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 440" role="img">',
           "<title>Regret over measurements</title>", style(),
           f'<text class="title" x="{LEFT}" y="28">How far above the best time, after so many measurements of a task</text>']
    for regret in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001):
        y = y_of(regret)
        kind = "bar" if regret == 0.02 else "grid"
        out.append(f'<path class="{kind}" d="M{LEFT} {y:.1f}L{RIGHT} {y:.1f}"/>'
                   f'<text class="end" x="{LEFT - 8}" y="{y + 4:.1f}">{100 * regret:g} %</text>')
    count = 1
    while count <= most:
        x = x_of(count, most)
        out.append(f'<path class="grid" d="M{x:.1f} {TOP}L{x:.1f} {BOTTOM}"/>'
                   f'<text class="mid" x="{x:.1f}" y="{BOTTOM + 20}">{count}</text>')
        count *= 2
    for i, arm in enumerate(ARMS):
        name = next(name for name in curves if name == arm or is_transfer(arm) and is_transfer(name))
        points = " ".join(f"{x_of(n, most):.1f},{y_of(regret):.1f}" for n, regret in enumerate(curves[name], 1))
        y = TOP + 20 + 26 * i
        out.append(f'<polyline class="curve" style="stroke: var(--c{i})" points="{points}"/>'
                   f'<path class="curve" style="stroke: var(--c{i})" d="M{RIGHT + 20} {y}L{RIGHT + 48} {y}"/>'
                   f'<text x="{RIGHT + 56}" y="{y + 4}">{name}</text>')
    out.append(f'<text x="{RIGHT + 20}" y="{BOTTOM - 4}">At the lower edge: {100 * LEAST:g} % or less</text></svg>')
    return "\n".join(out) + "\n"


def main() -> int:
    if len(sys.argv) != 3:
        print("usage: chart.py CURVES SVG", file=sys.stderr)
        return 2
    curves: dict[str, list[float]] = {}
    with open(sys.argv[1], newline="") as file:
        for row in csv.DictReader(file):
            curves.setdefault(row["arm"], []).append(float(row["regret"]))
    pathlib.Path(sys.argv[2]).write_text(drawing(curves))
    return 0


if __name__ == "__main__":
    sys.exit(main())
