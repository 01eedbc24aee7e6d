"""Ratios of times, and the bars beside them."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from peers import statistics

from .networks import BF16, FLOAT, NETWORKS, STRICT, Engine

Row = Mapping[str, Any]


def engines_of(row: Row) -> dict[str, Engine]:
    """Those that ran in turns, by name."""
    return {one["name"]: Engine(**{key: one[key] for key in ("name", "kind", "precision", "file", "error")})
            for one in row["engines"] if one["name"] in row["rounds_ms"]}


def measured(row: Row) -> dict[str, float]:
    """The error of each engine on held-out samples, where it could be measured."""
    return {one["name"]: one["measured"] for one in row["engines"] if one.get("measured") is not None}


def fastest(row: Row, engines: Sequence[Engine]) -> Engine | None:
    return min(engines, key=lambda one: statistics.median(row["rounds_ms"][one.name]), default=None)


def compared(row: Row, what: str, bar: float | None, ours: Engine | None, other: Engine | None, most: float | None) -> dict[str, Any]:
    """A line: the other's time over ours in every round. Without one of both, the bar does not hold."""
    found: dict[str, Any] = {"what": what, "bar": bar, "ours": ours and ours.name, "other": other and other.name, "most_error": most,
                             "ours_error": ours and measured(row).get(ours.name), "ratio": None, "low": None, "high": None}
    if ours and other:
        ratio = statistics.paired_ratio(row["rounds_ms"][other.name], row["rounds_ms"][ours.name])
        found.update(ratio=ratio.median, low=ratio.low, high=ratio.high)
    found["holds"] = None if bar is None else found["ratio"] is not None and found["ratio"] >= bar
    return found


def bars(row: Row) -> list[dict[str, Any]]:
    """All bars of a network and number of threads. Our plans count by their error on samples that nothing was tuned or calibrated on."""
    network, engines, errors = NETWORKS[row["network"]], list(engines_of(row).values()), measured(row)
    rivals_files = [file.name for file in network.files if file.is_rival]

    def those(kind: str, holds: Callable[[Engine], bool]) -> list[Engine]:
        return [one for one in engines if one.is_ours == (kind == "ours") and holds(one)]

    def ours_within(most: float, with_bf16: bool = True) -> Engine | None:
        return fastest(row, those("ours", lambda e: not e.file and e.error is not None and errors.get(e.name, most + 1) <= most
                                  and (with_bf16 or e.precision != BF16)))

    ours_float = fastest(row, those("ours", lambda e: not e.file and e.precision == FLOAT))
    ours_bf16 = fastest(row, those("ours", lambda e: not e.file and e.precision == BF16))
    lines = [compared(row, "int8 or any over float32", network.over_float32, ours_within(network.error, False), ours_float, network.error)]
    if network.error > STRICT:
        lines.append(compared(row, "any precision at 1 %, over float32", None, ours_within(STRICT), ours_float, STRICT))

    def over_better_peer(what: str, bar: float | None, files: Sequence[str]) -> None:
        rival = fastest(row, those("peers", lambda e: e.file in files))
        most = errors.get(rival.name) if rival else None
        lines.append(compared(row, what, bar, ours_within(most) if most else None, rival, most))

    over_better_peer("over the better peer in integers", network.over_rival, rivals_files)
    for name in rivals_files if len(rivals_files) > 1 else []:
        over_better_peer(f"over the better peer on {name}", None, [name])
    lines.append(compared(row, "bf16 over float32", network.bf16_over_float32, ours_bf16, ours_float, STRICT))
    peers_bf16 = fastest(row, those("peers", lambda e: not e.file and e.precision == BF16))
    lines.append(compared(row, "bf16 over OpenVINO's", None, ours_bf16, peers_bf16, None))
    peers_float = fastest(row, those("peers", lambda e: not e.file and e.precision == FLOAT))
    lines.append(compared(row, "float32 over the better peer", None, ours_float, peers_float, None))
    for file in network.files:
        ours = fastest(row, those("ours", lambda e, name=file.name: e.file == name))
        other = fastest(row, those("peers", lambda e, name=file.name: e.file == name and e.kind == "onnxruntime"))
        lines.append(compared(row, f"the file {file.name} over ONNX Runtime", file.bar, ours, other, None))
    return [line for line in lines if line["bar"] is not None or line["ratio"] is not None]
