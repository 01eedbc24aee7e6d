"""How much memory engines have after one shape, and after many."""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from peers import results

from . import ranges
from .study import ENGINES, OURS, TITLES, Paused, Study

UNLIMITED = 10**9  # engines


@dataclasses.dataclass(frozen=True)
class Variant:
    """An engine, with the limits of its session if it is ours."""

    engine: str
    title: str
    limits: tuple[str, ...] = ()


def variants_of(engines: Sequence[str], most_engines: int, most_mb: int) -> list[Variant]:
    """Ours counts twice: with limits and without."""
    found = []
    for name in [name for name in ENGINES if name in engines]:
        if name != OURS:
            found.append(Variant(name, TITLES[name]))
            continue
        found.append(Variant(OURS, f"{TITLES[OURS]}, no limit", ("--most-engines", str(UNLIMITED))))
        stated, limits = [f"at most {most_engines} engines"], ["--most-engines", str(most_engines)]
        if most_mb:
            stated.append(f"{most_mb} MB of packed weights")
            limits += ["--most-bytes", str(most_mb * 10**6)]
        found.append(Variant(OURS, f"{TITLES[OURS]}, {', '.join(stated)}", tuple(limits)))
    return found


def of_variant(study: Study, variant: Variant, shapes: Sequence[ranges.Shape]) -> dict[str, Any]:
    """The resident memory of one process. It is ended where it would take too much of the machine's."""
    row: dict[str, Any] = {"engine": variant.title, "limits": list(variant.limits), "ended_at": None}
    with study.engines([variant.engine], limits=variant.limits) as engines:
        engine = engines[variant.engine]
        row |= {"bare_mb": engine.ready["bare_mb"], "loaded_mb": engine.ask("memory")["resident_mb"]}
        for number, shape in enumerate(shapes, 1):
            study.say(f"{study.network.name}: memory of {variant.title}", f"shape {number} of {len(shapes)}")
            engine.ask(f"first {study.seed_of(shape)} {ranges.text_of(shape)}")
            row["last"] = engine.ask("memory")
            row["shapes"] = number
            row.setdefault("one_mb", row["last"]["resident_mb"])
            if row["last"]["resident_mb"] > study.given.most_mb and number < len(shapes):
                row["ended_at"] = study.given.most_mb
                break
    return row


def measure(study: Study) -> tuple[list[dict[str, Any]], int]:
    """A row for each engine that is finished, and how many there are to be."""
    given = study.given
    shapes = study.shapes(given.shapes)
    variants = variants_of(given.engines, given.limit_engines, given.limit_mb)
    kept = study.kept()
    key = {**study.key, "what": "memory", "shapes": list(map(ranges.text_of, shapes)), "most_mb": given.most_mb,
           "child": results.digest(given.child.resolve())}
    rows = []
    try:
        for number, variant in enumerate(variants):
            stem = f"memory.{study.network.stem}.{given.threads}.{number}"
            own = {**key, "variant": dataclasses.asdict(variant)}
            row = kept.find(stem, own)
            if row is None:
                study.check_time()
                study.tune()
                row = of_variant(study, variant, shapes)
                kept.keep(stem, own, row)
            rows.append(row)
    except Paused:
        pass
    return rows, len(variants)
