"""What engines run beside or under: other processes, and a quota of processor time."""
from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator

from peers.errors import Failure

GROUPS = pathlib.Path("/sys/fs/cgroup")
PERIOD_US = 100_000


@dataclasses.dataclass(frozen=True)
class Surroundings:
    busy: int = 0  # processes that compute without end
    quota: float | None = None  # processors

    @property
    def title(self) -> str:
        return f"quota {self.quota:g}" if self.quota is not None else str(self.busy)

    def threads(self, most: int) -> int:
        """As many threads as can be useful: a quota below one processor serves no second one."""
        return most if self.quota is None else min(most, math.ceil(self.quota))


@contextlib.contextmanager
def competitors(count: int) -> Iterator[None]:
    """So many processes that compute without end."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def group_with(quota: float, groups: pathlib.Path = GROUPS) -> pathlib.Path:
    """A new control group with a quota, of version 2 or 1."""
    quota_us = round(quota * PERIOD_US)
    for parent, settings in ((groups, {"cpu.max": f"{quota_us} {PERIOD_US}"}),
                             (groups / "cpu", {"cpu.cfs_period_us": f"{PERIOD_US}", "cpu.cfs_quota_us": f"{quota_us}"})):
        folder = parent / f"collage-busy-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            for name, value in settings.items():
                with open(folder / name, "r+", encoding="ascii") as file:  # a missing file is not created
                    file.write(value)
            return folder
        except OSError:
            folder.rmdir()
    raise Failure(f"no control group with a quota can be made below {groups}; run as root where they can, or without --quotas")


@contextlib.contextmanager
def limited(processes: Iterable[int], quota: float | None) -> Iterator[None]:
    """Holds processes to a quota of processor time, which they share."""
    if quota is None:
        yield
        return
    folder = group_with(quota)
    pids = list(processes)
    try:
        move(pids, folder)
        yield
    finally:
        move(pids, folder.parent)
        remove(folder)


def move(pids: Iterable[int], folder: pathlib.Path) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            (folder / "cgroup.procs").write_text(str(pid), encoding="ascii")


def remove(folder: pathlib.Path) -> None:
    """A group whose processes have just left may take a moment to be empty."""
    for _ in range(50):
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.1)
