"""Engines in turns: rounds of slices, in one process. Knows engines as functions, and no library."""
from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any

from . import calm, statistics

DROPPED_S = 0.05  # at the start of a slice: the threads of who ran before still look for work
LEAST_RUNS = 3  # that count in a slice, however long they take
MOST_ROUNDS = 4  # times as many as asked for, where rounds are disturbed or ratios uncertain
SURE = 0.03  # the width of a ratio's interval, over the ratio


def slice_ms(run: Callable[[], Any], seconds: float) -> list[float]:
    """Runs for some seconds, and longer until enough runs count. Those that began at the very start do not."""
    times: list[float] = []
    clock = time.perf_counter_ns
    start = clock()
    counted, end = start + int(1e9 * DROPPED_S), start + int(1e9 * seconds)
    began = start
    while began < end or len(times) < LEAST_RUNS:
        run()
        ended = clock()
        if began >= counted:
            times.append((ended - began) / 1e6)
        began = ended
    return times


def are_sure(rounds_ms: Sequence[Sequence[float]]) -> bool:
    """Whether the ratios of all pairs of engines are known closely enough, from what each took in every round."""
    engines = list(zip(*rounds_ms))
    pairs = [statistics.paired_ratio(a, b) for i, a in enumerate(engines) for b in engines[:i]]
    return all(pair.high - pair.low <= SURE * pair.median for pair in pairs)


def race(runs: Sequence[Callable[[], Any]], rounds: int, seconds: float, turn: Callable[[int, int, int], None],
         threads: int, exchange_us: float | None) -> dict[str, Any]:
    """Runs all in turns, round by round, until as many rounds as asked for were calm and tell the ratios closely enough, or
    several times as many have run. Answers each one's median of each round that counts, in milliseconds, and the same of
    rounds in which processors shared no cache. `turn` hears before each slice whose turn it is, how many rounds have run, and
    how many of them were calm. `exchange_us` is what reading another processor's data usually takes, as far as is known."""
    medians: list[list[float]] = []
    readings: list[calm.Reading] = []
    count = 0
    gc.collect()
    gc.disable()
    try:
        while True:
            good = calm.calm_rounds(readings, exchange_us) if readings else []
            kept = [one for one, counts in zip(medians, good) if counts]
            if (len(kept) >= rounds and are_sure(kept)) or len(medians) >= MOST_ROUNDS * rounds:
                break
            watch = calm.Watch(threads)
            one = [0.0] * len(runs)
            for which in statistics.order_of_round(len(runs), len(medians)):
                turn(which, len(medians), len(kept))
                times = slice_ms(runs[which], seconds)
                one[which] = statistics.median(times)
                count += len(times)
            medians.append(one)
            readings.append(watch.reading())
    finally:
        gc.enable()
    # With too few calm rounds for an interval, all count: that is said, and is better than nothing.
    is_calm = len(kept) >= min(rounds, statistics.LEAST_ROUNDS)
    if not is_calm:
        kept = medians
    apart = [one for one, counts in zip(medians, calm.apart_rounds(readings, exchange_us)) if counts]
    return {"rounds_ms": [list(column) for column in zip(*kept)], "rounds": len(kept), "calm": is_calm,
            "apart_ms": [list(column) for column in zip(*apart)],
            "disturbed_rounds": len(good) - sum(good), "runs": count,
            "by_others": statistics.median([reading.by_others for reading in readings]),
            "exchange_us": calm.usual_exchange_us(readings, exchange_us)}
