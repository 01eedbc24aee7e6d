"""Rows as Markdown and JSON."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from peers import report, statistics
from peers.report import count_of, number

from .bars import bars

Row = Mapping[str, Any]


def percent(error: float | None) -> str:
    return report.NOTHING if error is None else f"{100 * error:.3g} %"


def range_of(samples: Sequence[float]) -> str:
    """The quartiles."""
    return f"{number(statistics.quantile(samples, 0.25))} to {number(statistics.quantile(samples, 0.75))}"


def engine_table(row: Row) -> str:
    lines = []
    first = row["rounds_ms"].get("collage float32")
    for one in row["engines"]:
        times = row["rounds_ms"].get(one["name"])
        cells = [one["name"]]
        if times is None:
            cells += [report.NOTHING] * 3
        else:
            ratio = f"{statistics.paired_ratio(first, times).median:.3f}" if first else report.NOTHING
            cells += [number(statistics.median(times)), range_of(times), ratio]
        plan = one.get("plan") or {}
        cells += [percent(one.get("measured")), percent(one["error"]), percent(plan.get("upper")), rounding_of(plan)]
        lines.append(cells)
    return report.table(["engine", "ms", "quartiles", "times as fast as our float32", "error", "allowed", "confirmed",
                         "groups in lower precision"], lines, 1)


def rounding_of(plan: Mapping[str, Any]) -> str:
    return report.NOTHING if plan.get("lower") is None else f"{plan['lower']} of {plan['groups']}"


def bar_table(row: Row) -> str:
    lines = []
    for one in bars(row):
        ratio = report.NOTHING if one["ratio"] is None else f"{one['ratio']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"
        holds = report.NOTHING if one["holds"] is None else "yes" if one["holds"] else "**no**"
        lines.append([one["what"], one["ours"] or report.NOTHING, one["other"] or report.NOTHING, percent(one["ours_error"]),
                      percent(one["most_error"]), ratio, report.NOTHING if one["bar"] is None else f"{one['bar']:.2f}", holds])
    return report.table(["ratio", "ours", "against", "error", "at most", "ratio [95 %]", "bar", "holds"], lines, 3)


def greedy_table(row: Row) -> str:
    lines = [[percent(one["most_error"]), number(one["exact_ms"], 4), number(one["greedy_ms"], 4),
              report.NOTHING if one["ratio"] is None else f"{one['ratio']:.3f}", report.NOTHING if one["groups"] is None else str(one["groups"])]
             for one in row["greedy"]]
    return report.table(["error allowed", "exact ms", "greedy ms", "greedy over exact", "groups in float32 by greedy"], lines, 0)


def notes(row: Row) -> list[str]:
    found = [f"{name}: {reason}" for name, reason in row["failures"].items()]
    if not row["calm"]:
        found.append(f"the machine was busy in {row['disturbed_rounds']} rounds, and all rounds count")
    found += [f"{one['name']}: tuning ended by its budget" for one in row["engines"] if (one.get("plan") or {}).get("interrupted")]
    return found


def section(row: Row) -> str:
    rounds = len(next(iter(row["rounds_ms"].values()), []))
    parts = [f"## {row['network']}, {count_of(row['threads'])}", engine_table(row),
             f"{rounds} rounds in turns. Errors: relative root mean square against {row['reference']} on {row['held_out']} samples that nothing "
             f"was tuned or calibrated on. Allowed, confirmed: what `collage tune` was given, and found on samples of its own.", bar_table(row)]
    if row["greedy"]:
        parts += ["The order of greedy tools, by error alone, with our kernels and costs, against the exact search:", greedy_table(row)]
    if found := notes(row):
        parts.append("\n".join(f"- {note}" for note in found))
    return "\n\n".join(parts)


def markdown(rows: Sequence[Row], about: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{report.TITLES.get(name, name)} {version}" for name, version in about["versions"].items())
    foot = (f"{about['processor']}, {about['processors']} processors, lower precision by {', '.join(about['instructions']) or 'no instructions of its own'}; "
            f"{about['date']}; {versions}. Plans: {about['backends']}, {about['tune_seconds']:g} s each. Quantised files: {about['samples']} samples, "
            f"{about['calibration']}.")
    return "\n\n".join(["# Speed in lower precision", *map(section, rows), foot]) + "\n"


def as_json(rows: Sequence[Row], about: Mapping[str, Any]) -> str:
    return json.dumps({"about": about, "rows": [{**row, "bars": bars(row)} for row in rows]}, indent=2) + "\n"
