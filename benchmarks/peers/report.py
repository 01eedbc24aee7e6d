"""Rows as a Markdown table with notes, and as JSON."""
from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import statistics

Row = Mapping[str, Any]
TITLES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "collage": "collage", "python": "Python", "onnx": "ONNX",
          "numpy": "NumPy"}
NOTHING = "-"


def number(value: float | None, digits: int = 3) -> str:
    """With so many significant digits, and no fewer than stand before the point."""
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    before = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    leading = 0
    if not before:
        while abs(value) * 10 ** (leading + 1) < 1:
            leading += 1
    return f"{value:.{max(0, digits - before + leading)}f}"


def count_of(threads: int) -> str:
    return f"{threads} thread{'' if threads == 1 else 's'}"


def interval(row: Row) -> str:
    if row.get("ratio") is None:
        return NOTHING
    return f"{row['ratio']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"


def agreement(row: Row) -> str:
    worst = row.get("worst_difference")
    if worst is None or row.get("ours_ms") is None:
        return NOTHING
    return f"{'yes' if row['agree'] else '**no**'}, {worst:.0e}"


def fraction_of_peak(row: Row, peaks: Mapping[int, float]) -> float | None:
    """What our engine gets of the processor's measured peak."""
    peak = peaks.get(row["threads"])
    if not peak or not row.get("gflop") or not row.get("ours_ms"):
        return None
    return float(row["gflop"]) / (row["ours_ms"] / 1e3) / peak


def percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.0f} %"


def table(headings: Sequence[str], lines: Sequence[Sequence[str]], left: int) -> str:
    """Markdown, whose first columns are aligned to the left; in the text it is aligned as well."""
    cells = [[cell.replace("|", "\\|") for cell in line] for line in (headings, *lines)]
    widths = [max(3, *(len(line[i]) for line in cells)) for i in range(len(headings))]
    aligned = [[cell.ljust(width) if i < left else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths))]
               for line in cells]
    rule = ["-" * width if i < left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (aligned[0], rule, *aligned[1:]))


def groups(rows: Sequence[Row]) -> dict[tuple[int, str], list[Row]]:
    """Rows by threads and set of backends, each in the order in which they came."""
    result: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        result.setdefault((row["threads"], row["backends"]), []).append(row)
    return dict(sorted(result.items(), key=lambda item: item[0][0]))


def means(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The geometric mean of the ratios of each group, and of how many workloads it is."""
    result = []
    for (threads, backends), group in groups(rows).items():
        ratios = [row["ratio"] for row in group if row.get("ratio") is not None]
        result.append({"threads": threads, "backends": backends, "workloads": len(ratios), "of": len(group),
                       "geometric_mean": statistics.geometric_mean(ratios) if ratios else None,
                       "least": min(ratios, default=None)})
    return result


def compared(row: Row) -> list[str]:
    """The cells that every table of times begins with."""
    peers = row.get("peers", {})
    return [row["workload"], str(row["threads"]), row["backends"], number(row.get("ours_ms")),
            number(peers.get("onnxruntime")), number(peers.get("openvino")), interval(row)]


def mean_lines(group: Sequence[Row], more: int) -> list[list[str]]:
    """The line of a group's geometric mean, with so many empty cells behind it; none where there is nothing to take it of."""
    mean = means(group)[0]
    if len(group) < 2 or mean["geometric_mean"] is None:
        return []
    of = "" if mean["workloads"] == mean["of"] else f" of {mean['workloads']} of {mean['of']}"
    return [[f"**geometric mean**{of}", str(mean["threads"]), mean["backends"], "", "", "",
             f"**{mean['geometric_mean']:.3f}**", *[""] * more]]


HEADINGS = ["workload", "threads", "backends", "collage ms", "ONNX Runtime ms", "OpenVINO ms", "ratio [95 %]"]


def speed_table(rows: Sequence[Row], peaks: Mapping[int, float]) -> str:
    lines = []
    for group in groups(rows).values():
        lines += [[*compared(row), agreement(row), percent(fraction_of_peak(row, peaks))] for row in group]
        lines += mean_lines(group, 2)
    return table([*HEADINGS, "agree", "of peak"], lines, 3)


def apart_table(rows: Sequence[Row]) -> str:
    """Of rounds in which processors shared no cache; empty where hardly any did."""
    lines = []
    for group in groups([{**row, **row["apart"]} for row in rows if row.get("apart")]).values():
        lines += [[*compared(row), str(row["rounds"])] for row in group]
        lines += mean_lines(group, 1)
    return table([*HEADINGS, "rounds"], lines, 3) if lines else ""


def memory_table(rows: Sequence[Row]) -> str:
    headings = ["workload", "threads", "backends", "collage MB", "ONNX Runtime MB", "OpenVINO MB", "before MB", "file MB",
                "of ONNX Runtime", "of the larger"]
    lines = []
    for group in groups(rows).values():
        for row in group:
            peers = row.get("peers", {})
            ours, first = row.get("ours_most_mb"), peers.get("onnxruntime")
            here = [value for value in peers.values() if value is not None]
            lines.append([row["workload"], str(row["threads"]), row["backends"], number(ours), number(first),
                          number(peers.get("openvino")), number(row.get("before_mb")), number(row.get("model_mb")),
                          percent(ours / first if ours and first else None),
                          percent(ours / max(here) if ours and here else None)])
    return table(headings, lines, 3)


def load_table(rows: Sequence[Row]) -> str:
    headings = ["workload", "threads", "backends", "collage ms", "network", "plan", "engine", "ONNX Runtime ms", "OpenVINO ms",
                "reading the file", "first run: collage", "ONNX Runtime", "OpenVINO"]
    lines = []
    for group in groups(rows).values():
        for row in group:
            stages, peers, first = row.get("stages_ms", {}), row.get("peers", {}), row.get("peers_first_run_ms", {})
            lines.append([row["workload"], str(row["threads"]), row["backends"], number(row.get("ours_ready_ms")),
                          *(number(stages.get(stage)) for stage in ("network", "plan", "engine")),
                          number(peers.get("onnxruntime")), number(peers.get("openvino")), number(row.get("reading_ms")),
                          number(row.get("ours_first_run_ms")), number(first.get("onnxruntime")),
                          number(first.get("openvino"))])
    return table(headings, lines, 3)


def notes(rows: Sequence[Row]) -> list[str]:
    """What a reader of the table has to know of single rows: failures first."""
    failed: dict[str, None] = {}
    other: dict[str, None] = {}
    for row in rows:
        where = f"{row['workload']}, {count_of(row['threads'])}"
        ours = f"{where}, {row['backends']}"
        for engine, reason in row.get("failures", {}).items():
            # A peer is the same in the rows of all sets.
            whose = ours if engine == "collage" else where
            failed[": ".join(filter(None, (whose, TITLES.get(engine, engine), reason)))] = None
        for disagreement in row.get("disagreements", []):
            failed[f"{ours}: outputs disagree: {disagreement}"] = None
        if row.get("rounds") and not row["calm"]:
            other[f"{where}: the machine was busy in {row['disturbed_rounds']} rounds, and all rounds count"] = None
        if row.get("tune_interrupted"):
            other[f"{ours}: tuning ended by its budget after {row['tune_s']:.0f} s"] = None
        if str(row.get("planned_from", "")).startswith("file"):
            other[f"{ours}: the plan came from its {row['planned_from']}"] = None
    return [*failed, *other]


def is_good(rows: Sequence[Row]) -> bool:
    """Whether every engine ran everywhere and all outputs agree."""
    return not any(row.get("failures") or row.get("disagreements") for row in rows)


EXPLAINED = {
    "speed": "Medians of interleaved rounds; ratio: the faster peer's time over ours, median over rounds with its 95 % "
             "interval (above 1 collage is faster). agree: all outputs, with the largest max|a - r| / max|r|.",
    "memory": "The most memory that a process had (VmHWM) by the end of loading and 10 runs, each engine in its own; before: "
              "Python and the inputs alone.",
    "load": "Milliseconds until an engine is ready, and of its first run; medians of single processes, the file in the page "
            "cache. collage: reading the network, the plan from a warm store, building the engine.",
}
TABLES: dict[str, Callable[[Sequence[Row]], str]] = {"memory": memory_table, "load": load_table}


def markdown(mode: str, rows: Sequence[Row], machine: Mapping[str, Any]) -> str:
    peaks = {int(threads): peak["gflops"] for threads, peak in machine.get("peaks", {}).items()}
    parts = [speed_table(rows, peaks) if mode == "speed" else TABLES[mode](rows), EXPLAINED[mode]]
    if apart := apart_table(rows) if mode == "speed" else "":
        parts += ["The same plans in rounds in which the processors shared no cache:", apart]
    if peaks:
        parts.append("Peak, a float32 product of large matrices by the fastest library at hand: " + "; ".join(
            f"{count_of(int(threads))} {peak['gflops']:.0f} GFLOP/s ({TITLES[peak['by']]}"
            + ("" if peak["calm"] else ", on a busy machine") + ")" for threads, peak in machine["peaks"].items()) + ".")
    parts.append(f"{machine['processor']}, {machine['processors']} processors; {machine['date']}; " + ", ".join(
        f"{TITLES.get(name, name)} {version}" for name, version in machine["versions"].items()) + ".")
    if found := notes(rows):
        parts.append("\n".join(f"- {note}" for note in found))
    return "\n\n".join(parts) + "\n"


def as_json(rows: Sequence[Row], machine: Mapping[str, Any]) -> str:
    """A list of rows, each with what it was measured on: it may be put together with others."""
    peaks = {int(threads): peak["gflops"] for threads, peak in machine.get("peaks", {}).items()}
    full = [{**row, **({"of_peak": fraction_of_peak(row, peaks)} if peaks else {}), "machine": machine} for row in rows]
    return json.dumps(full, indent=2) + "\n"
