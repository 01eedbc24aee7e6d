"""Plans and steps as text for people."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """A table with two spaces between columns; those in `right` are aligned to the right."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    return "\n".join("  ".join(cell.rjust(w) if k in right else cell.ljust(w)
                               for k, (cell, w) in enumerate(zip(line, widths))).rstrip() for line in lines)


def ms(value: Any) -> str:
    """Milliseconds; "-" for what was not measured."""
    return (f"{value:.4f}" if value >= 0.01 else f"{value:.6f}") if value else "-"


def _of_precision(data: dict[str, Any]) -> list[str]:
    """How far outputs err, or why they do not although they may."""
    if error := data.get("error"):
        predicted = f", {percent(error['predicted'])} was predicted" if error["predicted"] else ""
        return [f"{data['precision']}: on {error['samples']} samples that were held back, the outputs err by {percent(error['measured'])}, "
                f"at most {percent(error['upper'])}{predicted}"]
    why = (data.get("placing") or {}).get("why_unrounded")
    return [f"in float32: {why}"] if why else []


def percent(value: float) -> str:
    return f"{100 * value:.2g} %"


def of_plan(data: dict[str, Any]) -> str:
    """The text of Plan.explain."""
    cost, bound = data.get("cost_ms"), data.get("lower_bound_ms")
    head = f"{data['network']}: {data['threads']} thread{'s' if data['threads'] != 1 else ''}, from {data['origin']}"
    if cost:
        head += f", costs {ms(cost)} ms" + (f" (lower bound {ms(bound)} ms)" if bound else "")
    else:
        head += ", nothing was measured"
    parts = [head, f"{data['processor']}, threads wait: {data['waiting']}", *_of_precision(data), ""]
    parts.append(table(("backend", "groups", "ms", "version"),
                       ((b["name"], str(b["groups"]), ms(b["cost_ms"]), str(b["version"])) for b in data["backends"]),
                       frozenset({1, 2})))
    runs = data.get("runs") or []
    if runs:
        parts += ["", table(("end to end", "median ms", "from", "to"),
                            ((r["name"], ms(r["median_ms"]), ms(r["low_ms"]), ms(r["high_ms"])) for r in runs),
                            frozenset({1, 2, 3}))]
    placing = data.get("placing")
    if placing:
        kernels = "1 kernel" if placing['measured'] == 1 else f"{placing['measured']} kernels"
        parts += ["", f"{kernels} measured, {placing['from_store']} known, in {placing['seconds']:.1f} s"
                      + (", ended early" if placing["interrupted"] else "")]
        if placing["holdups"]["advice"]:
            parts.append(placing["holdups"]["advice"])
        if placing["refusals"]:
            parts += ["", table(("refused", "pattern", "reason"),
                                ((r["backend"], r["pattern"], r["reason"]) for r in placing["refusals"]))]
    return "\n".join(parts)


def of_steps(steps: Iterable[Any]) -> str:
    """A table of Step objects."""
    return table(("ms", "planned", "backend", "what", "kernel"),
                 ((ms(s.ms), ms(s.planned_ms), s.backend, s.label, s.kernel) for s in steps), frozenset({0, 1}))
