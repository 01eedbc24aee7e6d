"""How long runs take at shapes that an engine has not met before: the first, the second, and those after them."""
from __future__ import annotations

import json
import pathlib
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from peers import calm, results, statistics

from . import ranges
from .engine import Engine
from .study import ENGINES, OURS, TITLES, Paused, Study, fit_for_a_file

TOLERANCE = 1e-3  # max|a - r| over max|r|
MOST_ROUNDS = 2  # times as many as asked for, where rounds are disturbed


def rounds_of(engines: Mapping[str, Engine], rounds: int, seconds: float, threads: int) -> dict[str, Any]:
    """All engines in turns: a median for each round that counts, by engine."""
    names = list(engines)
    medians: list[dict[str, float]] = []
    readings: list[calm.Reading] = []
    good: list[bool] = []
    while sum(good) < rounds and len(medians) < MOST_ROUNDS * rounds:
        watch = calm.Watch(threads, lambda: own_s(engines))
        one = {}
        for which in statistics.order_of_round(len(names), len(medians)):
            one[names[which]] = statistics.median(engines[names[which]].ask(f"slice {seconds:g}")["ms"])
        medians.append(one)
        readings.append(watch.reading())
        good = calm.calm_rounds(readings)
    # With too few calm rounds all count: that is said, and is better than nothing.
    is_calm = sum(good) >= rounds
    counted = [one for one, counts in zip(medians, good) if counts or not is_calm]
    return {"rounds_ms": {name: [one[name] for one in counted] for name in names}, "calm": is_calm,
            "disturbed_rounds": len(good) - sum(good)}


def own_s(engines: Mapping[str, Engine]) -> float:
    return sum(engine.processor_s() for engine in engines.values())


def disagreements(engines: Mapping[str, Engine], room: pathlib.Path) -> tuple[float, list[str]]:
    """How far outputs are from those of the first peer, and why they do not agree."""
    peers = [name for name in engines if name != OURS]
    worst, reasons = 0.0, []
    for name in [name for name in engines if peers and name != peers[0]]:
        shutil.rmtree(room, ignore_errors=True)
        room.mkdir(parents=True)
        written = engines[name].ask(f"outputs {room}")["outputs"]
        found = engines[peers[0]].ask(f"compare {TOLERANCE} {json.dumps(written)}")
        worst = max(worst, found["worst"])
        if found["why"]:
            reasons.append(f"{TITLES[name]} and {TITLES[peers[0]]}: {found['why']}")
    shutil.rmtree(room, ignore_errors=True)
    return worst, reasons


def at_shape(study: Study, engines: Mapping[str, Engine], shape: ranges.Shape, number: int) -> dict[str, Any]:
    """All engines at one new shape."""
    label, given = study.network.label(shape), study.given
    names = list(engines)
    firsts: dict[str, Any] = {}
    watch = calm.Watch(given.threads, lambda: own_s(engines))
    for which in statistics.order_of_round(len(names), number):
        study.say(f"{study.network.name}: shape {number + 1}", f"{label}, first run, {TITLES[names[which]]}")
        firsts[names[which]] = engines[names[which]].ask(f"first {study.seed_of(shape)} {ranges.text_of(shape)}")
    reading = watch.reading()
    study.say(f"{study.network.name}: shape {number + 1}", f"{label}, comparing outputs and running in turns")
    worst, reasons = disagreements(engines, study.out / "outputs")
    ran = rounds_of(engines, given.rounds, given.seconds, given.threads) if given.rounds else {}
    return {"shape": label, "tuned": study.is_tuned(shape), "elements": sum(map(ranges.elements, shape.values())),
            "first": firsts, "by_others": reading.by_others, "worst_difference": worst, "disagreements": reasons, **ran}


def measure(study: Study) -> tuple[list[dict[str, Any]], int]:
    """A row for each shape that is finished, and how many there are to be."""
    given = study.given
    names = [name for name in ENGINES if name in given.engines]
    *shapes, warming = study.shapes(given.shapes + 1)
    kept = study.kept()
    key = {**study.key, "what": "times", "engines": names, "rounds": given.rounds, "seconds": given.seconds,
           "child": results.digest(given.child.resolve())}
    stems = [f"times.{study.network.stem}.{given.threads}.{fit_for_a_file(ranges.text_of(shape))}" for shape in shapes]
    rows = {stem: found for stem in stems if (found := kept.find(stem, key)) is not None}
    try:
        if len(rows) < len(shapes):
            study.tune()
            with study.engines(names, kept=1) as engines:
                for engine in engines.values():  # threads start and libraries are loaded by the first run of all
                    engine.ask(f"first {study.seed_of(warming)} {ranges.text_of(warming)}")
                for number, (stem, shape) in enumerate(zip(stems, shapes)):
                    if stem in rows:
                        continue
                    study.check_time()
                    rows[stem] = at_shape(study, engines, shape, number)
                    kept.keep(stem, key, rows[stem])
    except Paused:
        pass
    return [rows[stem] for stem in stems if stem in rows], len(shapes)


def better_peer(row: Mapping[str, Any]) -> str:
    """The fastest peer at a shape, by the medians over rounds."""
    peers = [name for name in row["rounds_ms"] if name != OURS]
    return min(peers, key=lambda name: statistics.median(row["rounds_ms"][name]))


def ratio_of(row: Mapping[str, Any]) -> statistics.Ratio:
    """Our time over that of the better peer at this shape, over rounds."""
    return statistics.paired_ratio(row["rounds_ms"][OURS], row["rounds_ms"][better_peer(row)])


def means_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The mean over shapes of the medians over rounds, in ms, by engine."""
    return {name: sum(statistics.median(row["rounds_ms"][name]) for row in rows) / len(rows) for name in rows[0]["rounds_ms"]}
