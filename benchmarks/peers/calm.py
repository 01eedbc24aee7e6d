"""Whether the machine was calm during a round, told by what does not depend on the engines under test.

Two signs: how much of the processors' time went to other processes or was taken by the hypervisor (/proc/stat), and how
long a fixed piece of work took. A round that was disturbed is run again, whatever its times were.
"""
from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterable, Sequence

from . import statistics

MOST_BY_OTHERS = 0.05  # of the time of the processors that we may use
MOST_SLOWNESS = 1.25  # of the fixed work, over its usual time
WORK_PORTIONS = 12
WORK_STEPS = 40_000


@dataclasses.dataclass(frozen=True)
class Reading:
    """What was seen beside one round."""

    by_others: float  # share of the processors' time, 0 to 1; 0 where the system does not tell
    work_ms: float


def busy_ticks(stat: str, processors: Iterable[int]) -> int:
    """The ticks in which these processors were not idle, from the text of /proc/stat; those that a hypervisor took count
    as busy."""
    wanted = {f"cpu{number}" for number in processors}
    ticks = 0
    for line in stat.splitlines():
        name, *numbers = line.split()
        if name in wanted:
            user, nice, system, _idle, _waiting, *interrupts_and_stolen = map(int, numbers[:8])
            ticks += user + nice + system + sum(interrupts_and_stolen)
    return ticks


def fixed_work_ms() -> float:
    """How long a fixed piece of work takes now: the fastest of some portions. It outlasts the threads that still look for
    work after the last slice."""
    fastest = float("inf")
    for _ in range(WORK_PORTIONS):
        start = time.perf_counter()
        total = 0
        for i in range(WORK_STEPS):
            total += i & 7
        fastest = min(fastest, time.perf_counter() - start)
    return 1e3 * fastest


class Watch:
    """Watches one round: begins when made, `reading` ends it."""

    def __init__(self) -> None:
        self._work_ms = fixed_work_ms()
        self._processors = os.sched_getaffinity(0)
        self._ticks = self._busy_ticks()
        self._own = time.process_time()
        self._start = time.perf_counter()

    def _busy_ticks(self) -> int:
        try:
            with open("/proc/stat", encoding="ascii") as file:
                return busy_ticks(file.read(), self._processors)
        except OSError:
            return 0

    def reading(self) -> Reading:
        took = time.perf_counter() - self._start
        own = time.process_time() - self._own
        busy = (self._busy_ticks() - self._ticks) / os.sysconf("SC_CLK_TCK")
        return Reading(max(0.0, busy - own) / (took * len(self._processors)), self._work_ms)


def calm_rounds(readings: Sequence[Reading]) -> list[bool]:
    """Which rounds count. The usual time of the work is its 10th percentile, so that one lucky reading decides nothing."""
    usual = statistics.quantile([reading.work_ms for reading in readings], 0.1)
    return [r.by_others <= MOST_BY_OTHERS and r.work_ms <= MOST_SLOWNESS * usual for r in readings]
