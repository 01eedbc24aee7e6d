"""The greedy way from integers to float32 against the exact search, by the same costs of kernels and errors of values."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def against_exact(curve: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], nmse: float | None) -> list[dict[str, Any]]:
    """For each budget of the curve the time that the greedy way reaches, and how many groups it takes to float32. `steps` are those of
    `collage explain --json`, and `nmse` is the squared error of the plan that they begin with: the curve's last one. A time is None where
    the steps end before the error is small enough."""
    points = curve["points"]
    if not points or nmse is None:
        return []
    path = [(points[-1]["cost_ms"], nmse), *((step["cost_ms"], step["nmse"]) for step in steps)]
    rows = []
    for point in points:
        budget = point["most_error"]
        reached = next(((count, ms) for count, (ms, error) in enumerate(path) if math.sqrt(error) <= budget), (None, None))
        count, ms = reached
        rows.append({"most_error": budget, "exact_ms": point["cost_ms"], "lower_bound_ms": point["lower_bound_ms"], "greedy_ms": ms,
                     "groups": count, "ratio": None if ms is None else ms / point["cost_ms"]})
    return rows
