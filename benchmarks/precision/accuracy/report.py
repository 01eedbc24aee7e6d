"""Rows as a Markdown table, as CSV and as JSON."""
from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from peers.report import NOTHING, count_of, number, table

from . import main

Row = Mapping[str, Any]
BAR = 0.01  # what the drop may be at most
BUSY = 0.5  # of load beyond our own threads
TITLES = ["network", "what counts", "of", "precision", "error allowed", "float32", "lower", "drop (95 %)", "at most", f"within {100 * BAR:g} %", "worse, better",
          "error", "confirmed", "groups", "times as fast"]


def percent(value: float | None, digits: int = 3) -> str:
    return NOTHING if value is None else f"{number(100 * abs(value), digits)} %" if value >= 0 else f"-{number(-100 * value, digits)} %"


def share(value: float) -> str:
    return f"{100 * value:.2f} %"


def is_busy(row: Row, threads: int) -> bool:
    return bool(row["load"] > threads + BUSY)


def fast(row: Row, threads: int) -> str:
    return f"{row['times_as_fast']:.2f} ({row['times_low']:.2f} to {row['times_high']:.2f})" + (", busy" if is_busy(row, threads) else "")


def line(row: Row, threads: int) -> list[str]:
    precision = row["precision"] if row["plan"] != "fp32" else f"{row['precision']}: plan in float32"
    allowed = "any" if row["allowed"] == main.FASTEST else row["allowed"]
    return [row["network"], row["measure"], f"{row['items']} in {row['units']} {row['unit']}" if row["items"] != row["units"] else
            f"{row['units']} {row['unit']}", precision, allowed, share(row["first"]), share(row["second"]),
            f"{share(row['drop'])} ({share(row['low'])} to {share(row['high'])})", share(row["upper"]), "yes" if row["holds"] else "**no**",
            f"{row['worse']}, {row['better']}", percent(row["error"]), percent(row["confirmed"]), f"{row['lower']} of {row['groups']}",
            fast(row, threads)]


def layers_line(row: Row, threads: int) -> list[str]:
    free, third = row["free"], row["third"]
    return [row["network"], row["precision"], percent(free["error"]), f"{free['lower']} of {free['groups']}", fast(free, threads),
            percent(third["error"]), f"{third['lower']} of {third['groups']}", fast(third, threads), f"{100 * row['kept']:.0f} %"]


def markdown(rows: Sequence[Row], layers: Sequence[Row], about: Mapping[str, Any]) -> str:
    threads = about["threads"]
    parts = [table(TITLES, [line(row, threads) for row in rows], 2)] if rows else []
    if layers:
        parts.append(table(["network", "precision", "without a bound: error", "groups", "times as fast", "within a third of it: error", "groups",
                            "times as fast", "speed kept"], [layers_line(row, threads) for row in layers], 2))
    data = dict((row["name"], row["data"]) for row in rows)
    if data:
        parts.append("\n".join(f"- {name}: {what}" for name, what in data.items()))
    if about["notes"]:
        parts.append("\n".join(f"- {note}" for note in about["notes"]))
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    parts.append(f"{about['processor']}, {about['processors']} processors, {count_of(threads)}; {about['date']}. collage {about['collage']}, "
                 f"{versions}. {about['samples']} samples for tuning, {about['budget_s']:g} s for a plan, seed "
                 f"{about['seed']}.")
    return "\n\n".join(parts) + "\n"


def csv_of(rows: Sequence[Row]) -> str:
    to = io.StringIO()
    if rows:
        writer = csv.DictWriter(to, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return to.getvalue()


def as_json(rows: Sequence[Row], layers: Sequence[Row], about: Mapping[str, Any]) -> str:
    return json.dumps({"about": about, "rows": rows, "layers": layers}, indent=1) + "\n"
