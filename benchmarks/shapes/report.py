"""Rows as Markdown and as JSON."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from peers import calm, report, statistics
from peers.report import number

from .study import ENGINES, OURS, TITLES
from .times import better_peer, means_of, ratio_of

Row = Mapping[str, Any]
MEAN_BAR = round(1 / 1.05, 3)  # our mean time over that of the better peer: 1.05 times as fast
MEDIAN_LOSS_BAR, WORST_LOSS_BAR = 0.05, 0.15  # of plans by estimates


def yes(holds: bool) -> str:
    return "yes" if holds else "**no**"


def centre(samples: Sequence[float]) -> str:
    """The median with its 95 % interval."""
    low, high = statistics.median_interval(samples)
    return f"{number(statistics.median(samples))} [{number(low)}, {number(high)}]"


def first_table(rows: Sequence[Row]) -> str:
    """First and second runs by engine."""
    lines = []
    for name in [name for name in ENGINES if name in rows[0]["first"]]:
        first = [row["first"][name]["first_ms"] for row in rows]
        second = [row["first"][name]["second_ms"] for row in rows]
        lines.append([TITLES[name], str(len(rows)), centre(first), number(max(first)), centre(second), number(max(second))])
    headings = ["engine", "shapes", "first run ms: median [95 %]", "most", "second run ms: median [95 %]", "most"]
    return report.table(headings, lines, 1)


def first_summary(rows: Sequence[Row]) -> dict[str, Any]:
    found = {}
    for name in rows[0]["first"]:
        found[name] = {}
        for which in ("first_ms", "second_ms"):
            times = [row["first"][name][which] for row in rows]
            low, high = statistics.median_interval(times)
            found[name][which] = {"median": statistics.median(times), "low": low, "high": high, "most": max(times)}
    return found


def shape_table(rows: Sequence[Row]) -> str:
    """Known shapes: the median time of every engine at each, and the means."""
    names = list(rows[0]["rounds_ms"])
    lines = []
    for row in rows:
        cells = [row["shape"], "yes" if row["tuned"] else "no"]
        cells += [number(statistics.median(row["rounds_ms"][name])) for name in names]
        if OURS in names and len(names) > 1:
            ratio = ratio_of(row)
            cells += [f"{ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]", TITLES[better_peer(row)]]
        lines.append(cells)
    means = means_of(rows)
    last = ["**mean**", "", *(number(means[name]) for name in names)]
    headings = ["shape", "tuned", *(f"{TITLES[name]} ms" for name in names)]
    if OURS in names and len(names) > 1:
        summary = mean_summary(rows)
        last += [f"**{summary['ratio']:.3f}**", TITLES[summary["better_peer"]]]
        headings += ["of the better peer [95 %]", "better peer"]
    return report.table(headings, [*lines, last], 2)


def mean_summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Our mean time over that of the better peer, and the ratios of single shapes."""
    means = means_of(rows)
    better = min((name for name in means if name != OURS), key=lambda name: means[name])
    ratios = [ratio_of(row).median for row in rows]
    low, high = statistics.median_interval(ratios)
    return {"means_ms": means, "better_peer": better, "ratio": means[OURS] / means[better],
            "by_shape": {"median": statistics.median(ratios), "low": low, "high": high, "worst": max(ratios)},
            "bar": MEAN_BAR, "holds": means[OURS] / means[better] <= MEAN_BAR}


def times(rows: Sequence[Row]) -> tuple[list[str], dict[str, Any]]:
    tuned = sum(row["tuned"] for row in rows)
    disturbed = sum(row["by_others"] > calm.MOST_BY_OTHERS for row in rows)
    worst = max(row["worst_difference"] for row in rows)
    parts = [first_table(rows), f"First and second runs at {len(rows)} random shapes, of which {tuned} were tuned before; "
             f"{disturbed} were disturbed by other processes, and count all the same. Outputs are at most {worst:.0e} apart, by "
             "max|a - r| / max|r|."]
    summary: dict[str, Any] = {"first": first_summary(rows), "tuned_shapes": tuned, "disturbed_shapes": disturbed,
                               "worst_difference": worst}
    ran = [row for row in rows if row.get("rounds_ms")]
    if ran:
        parts.append(shape_table(ran))
        uneasy = sum(not row["calm"] for row in ran)
        parts.append("Later runs at the same shapes: medians of interleaved rounds, without first and second runs. The last line "
                     f"has means over shapes. At {uneasy} of {len(ran)} shapes the machine was disturbed, and all rounds count.")
        if OURS in ran[0]["rounds_ms"] and len(ran[0]["rounds_ms"]) > 1:
            summary["known"] = found = mean_summary(ran)
            by_shape = found["by_shape"]
            parts.append(f"Our mean is {found['ratio']:.3f} of the better peer's (bar {MEAN_BAR}: {yes(found['holds'])}). Ratios "
                         f"of single shapes: median {by_shape['median']:.3f} [{by_shape['low']:.3f}, {by_shape['high']:.3f}], worst "
                         f"{by_shape['worst']:.3f}.")
    reasons = [f"- {row['shape']}: outputs disagree: {reason}" for row in rows for reason in row["disagreements"]]
    return [*parts, *(["\n".join(reasons)] if reasons else [])], summary


def memory(rows: Sequence[Row]) -> tuple[list[str], dict[str, Any]]:
    lines, notes = [], []
    for row in rows:
        last = row["last"]
        lines.append([row["engine"], *(number(row[name]) for name in ("bare_mb", "loaded_mb", "one_mb")),
                      number(last["resident_mb"]), str(row["shapes"]), number(last["most_mb"]),
                      str(last.get("engines", report.NOTHING)), number(last.get("packed_mb"))])
        if row["ended_at"]:
            notes.append(f"- {row['engine']}: ended after {row['shapes']} shapes, with more than {row['ended_at']} MB")
    headings = ["engine", "bare MB", "loaded MB", "after one shape", "after all", "shapes", "most", "engines kept", "packed MB"]
    parts = [report.table(headings, lines, 1),
             "Resident memory of a process for each engine, which runs the same shapes twice each."]
    return [*parts, *(["\n".join(notes)] if notes else [])], {}


def plans(rows: Sequence[Row]) -> tuple[list[str], dict[str, Any]]:
    lines = []
    for row in rows:
        lines.append([row["shape"], "yes" if row["tuned"] else "no", number(row["place_ms"]), number(row["estimated_ms"]),
                      number(row["tuned_ms"]), *(f"{100 * (row[name]['median'] - 1):+.1f} % [{100 * (row[name]['low'] - 1):+.1f}, "
                                                 f"{100 * (row[name]['high'] - 1):+.1f}]" for name in ("ratio", "known_ratio"))])
    headings = ["shape", "tuned", "placed in ms", "expected ms", "tuned ms", "slower [95 %]", "with all costs [95 %]"]
    losses = [row["ratio"]["median"] - 1 for row in rows]
    found = {"median_loss": statistics.median(losses), "worst_loss": max(losses), "median_bar": MEDIAN_LOSS_BAR,
             "worst_bar": WORST_LOSS_BAR}
    found["holds"] = found["median_loss"] <= MEDIAN_LOSS_BAR and found["worst_loss"] <= WORST_LOSS_BAR
    return [report.table(headings, lines, 2), f"Plans by estimates are slower than plans that were tuned at the shape by "
            f"{100 * found['median_loss']:+.1f} % in the median and {100 * found['worst_loss']:+.1f} % at most (bars "
            f"{100 * MEDIAN_LOSS_BAR:.0f} % and {100 * WORST_LOSS_BAR:.0f} %: {yes(found['holds'])})."], found


def conditions(about: Row) -> list[str]:
    """What the figures were measured on, and with which costs."""
    machine = about["machine"]
    tuned = ", ".join(about["tuned"])
    if not tuned:
        store = f"Costs are those of the store {about['store']}." if about["store"] else "No shape was tuned before."
    else:
        store = f"Tuned before, for at most {about['tune_seconds']:g} s each: {tuned}."
    versions = ", ".join(f"{report.TITLES.get(name, name)} {version}" for name, version in machine["versions"].items())
    return [f"{store} Backends of collage: {about['backends']}.",
            f"{machine['processor']}, {machine['processors']} processors, {report.count_of(about['threads'])}. {versions}. "
            f"Seed {about['seed']}. {machine['date']}."]


TABLES = {"times": times, "memory": memory, "plans": plans}


def markdown(what: str, rows: Sequence[Row], wanted: int, about: Row) -> str:
    if not rows:
        return f"{about['network']}: nothing is finished\n"
    parts = [f"## {about['network']}: {what}", *TABLES[what](rows)[0], *conditions(about)]
    if len(rows) < wanted:
        parts.append(f"{len(rows)} of {wanted} are finished.")
    return "\n\n".join(parts) + "\n"


def as_json(what: str, rows: Sequence[Row], wanted: int, about: Row) -> str:
    summary = TABLES[what](rows)[1] if rows else {}
    return json.dumps({"what": what, **about, "summary": summary, "wanted": wanted, "rows": rows}, indent=2) + "\n"
