"""Whether the machine was calm during a round, told by what does not depend on the engines under test.

Three signs: how much of the processors' time went to other processes or was taken by the hypervisor (/proc/stat), how long a
fixed piece of work took, and how long one processor takes to read what another has just written: a host that moves a virtual
processor to another part of the chip leaves them without a shared cache, and shows it in nothing else. A round that was
disturbed is run again, whatever its times were.
"""
from __future__ import annotations

import ctypes
import dataclasses
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from . import statistics

MOST_BY_OTHERS = 0.05  # of the time of the processors that we may use
MOST_SLOWNESS = 1.25  # of the fixed work, over its usual time
WORK_PORTIONS = 12
WORK_STEPS = 40_000
MOST_FARNESS = 1.5  # of an exchange, over its usual time; without a shared cache it takes twice as long
EXCHANGE_BYTES = 256 * 1024  # what one processor has in its own cache
EXCHANGES = 31


@dataclasses.dataclass(frozen=True)
class Reading:
    """What was seen beside one round."""

    by_others: float  # share of the processors' time, 0 to 1; 0 where the system does not tell
    work_ms: float
    exchange_us: float = 0.0  # the longer one of before and after; 0 where there is but one processor or thread
    least_exchange_us: float = 0.0  # the shorter one


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


def exchange_us() -> float:
    """How long one of our processors takes to read what another has just written, the median of some times; 0 where there is
    only one."""
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2:
        return 0.0
    library = ctypes.CDLL(None)  # its calls let other threads run
    memory = ctypes.create_string_buffer(EXCHANGE_BYTES)
    size = ctypes.c_size_t(EXCHANGE_BYTES)
    wanted, written = threading.Semaphore(0), threading.Semaphore(0)

    def write() -> None:
        for turn in range(EXCHANGES):
            wanted.acquire()
            library.memset(memory, turn % 2, size)
            written.release()

    times = []
    try:
        os.sched_setaffinity(0, {processors[-1]})  # of this thread alone, and of those that it starts
        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        os.sched_setaffinity(0, {processors[0]})
        for _ in range(EXCHANGES):
            wanted.release()
            written.acquire()
            start = time.perf_counter_ns()
            library.memchr(memory, 2, size)  # which is nowhere
            times.append((time.perf_counter_ns() - start) / 1e3)
        writer.join()
    finally:
        os.sched_setaffinity(0, processors)
    return statistics.median(times)


class Watch:
    """Watches one round: begins when made, `reading` ends it. Whether processors share a cache is nothing to one thread. `own_s`
    returns the processor time that the engines took so far. Engines in processes of their own need it."""

    def __init__(self, threads: int, own_s: Callable[[], float] = time.process_time) -> None:
        self._threads, self._own_s = threads, own_s
        self._work_ms = fixed_work_ms()
        self._exchange_us = self._exchange()
        self._processors = os.sched_getaffinity(0)
        self._ticks = self._busy_ticks()
        self._own = self._own_s()
        self._start = time.perf_counter()

    def _busy_ticks(self) -> int:
        try:
            with open("/proc/stat", encoding="ascii") as file:
                return busy_ticks(file.read(), self._processors)
        except OSError:
            return 0

    def _exchange(self) -> float:
        return exchange_us() if self._threads > 1 else 0.0

    def reading(self) -> Reading:
        took = time.perf_counter() - self._start
        own = self._own_s() - self._own
        busy = (self._busy_ticks() - self._ticks) / os.sysconf("SC_CLK_TCK")
        exchanges = (self._exchange_us, self._exchange())
        return Reading(max(0.0, busy - own) / (took * len(self._processors)), self._work_ms, max(exchanges), min(exchanges))


def usual_exchange_us(readings: Sequence[Reading], known: float | None = None) -> float:
    """Of these readings the 10th percentile, so that one lucky reading decides nothing, or what earlier ones showed: a whole
    race may see nothing but processors far apart."""
    here = statistics.quantile([reading.exchange_us for reading in readings], 0.1)
    return here if known is None else min(here, known)


def undisturbed_rounds(readings: Sequence[Reading]) -> list[bool]:
    """Which rounds nobody else disturbed. The usual time of the work is its 10th percentile as well."""
    usual = statistics.quantile([reading.work_ms for reading in readings], 0.1)
    return [r.by_others <= MOST_BY_OTHERS and r.work_ms <= MOST_SLOWNESS * usual for r in readings]


def calm_rounds(readings: Sequence[Reading], known_exchange_us: float | None = None) -> list[bool]:
    """Which rounds count: nobody disturbed them, and processors were near each other before and after."""
    farthest = MOST_FARNESS * usual_exchange_us(readings, known_exchange_us)
    return [fine and r.exchange_us <= farthest for fine, r in zip(undisturbed_rounds(readings), readings)]


def apart_rounds(readings: Sequence[Reading], known_exchange_us: float | None = None) -> list[bool]:
    """Which rounds tell how engines do where processors share no cache: they shared none before and after."""
    farthest = MOST_FARNESS * usual_exchange_us(readings, known_exchange_us)
    return [fine and r.least_exchange_us > farthest for fine, r in zip(undisturbed_rounds(readings), readings)]
