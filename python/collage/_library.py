"""Finds and loads libcollage."""
from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import platform
import threading
from collections.abc import Iterator
from typing import Optional

ABI_VERSION = 1
NAME = "libcollage.so.0"

# What a processor of each level has beyond the level below, as /proc/cpuinfo names it.
_LEVELS = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "abm"}),
)

_lock = threading.Lock()
_loaded: Optional[ctypes.CDLL] = None


def _processor_flags() -> Optional[set[str]]:
    """The features of the processor; None where the system does not say."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("flags"):
                    return set(line.partition(":")[2].split())
    except OSError:
        pass
    return None


def folders(package: pathlib.Path, flags: Optional[set[str]]) -> list[pathlib.Path]:
    """The folders of the package that may have the library for this processor, the best first."""
    lib = package / "lib"
    usable, has_levels = [], False
    for at, (level, _) in enumerate(_LEVELS):
        if not (lib / level / NAME).exists():
            continue
        has_levels = True
        needed = set().union(*(names for _, names in _LEVELS[at:]))
        # A system that does not name the features gets the lower level, which nearly every processor has.
        if needed <= flags if flags is not None else level == "x86-64-v3":
            usable.append(lib / level)
    if (lib / NAME).exists():
        usable.append(lib)
    if has_levels and not usable:
        raise ImportError(f"collage: this processor ({platform.machine()}) has no AVX2, which this package needs (x86-64-v3); "
                          "build collage from source on this machine")
    return usable


def _candidates() -> list[str]:
    chosen = os.environ.get("COLLAGE_LIBRARY")
    if chosen:
        return [chosen]
    beside = folders(pathlib.Path(__file__).resolve().parent, _processor_flags())
    return [str(folder / NAME) for folder in beside] or [NAME]


def _has_openmp() -> bool:
    """Whether the process has GNU's OpenMP by its usual name. Packages that bring a copy of their own give it another name."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            return any(line.rstrip().rpartition("/")[2].startswith("libgomp.so") for line in file)
    except OSError:
        return True


@contextlib.contextmanager
def _brief_waiting() -> Iterator[None]:
    """Has OpenMP's idle threads wait for some tens of microseconds, if it is loaded meanwhile: it reads the variable then.

    The number is ``brief_checks`` of collage/run/waiting.hpp. The environment is the same afterwards, so that children have their own.
    """
    is_chosen = "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ
    if is_chosen or os.environ.get("COLLAGE_WAIT_BRIEFLY") == "0" or _has_openmp() or len(os.sched_getaffinity(0)) == 1:
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = "2000"
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def _open() -> ctypes.CDLL:
    faults = []
    for path in _candidates():
        try:
            with _brief_waiting():
                library = ctypes.CDLL(path)
            library.collage_abi_version.restype = ctypes.c_uint32
            version = int(library.collage_abi_version())
        except (OSError, AttributeError) as fault:
            faults.append(f"{path}: {fault}" if path not in str(fault) else str(fault))
            continue
        if version != ABI_VERSION:
            raise ImportError(f"collage: {path} has version {version} of the C interface, and this package needs version "
                              f"{ABI_VERSION}; install the package and the library of the same release")
        return library
    raise ImportError(f"collage: the library cannot be loaded ({'; '.join(faults)}); install the wheel, or set COLLAGE_LIBRARY to "
                      f"the path of {NAME}")


def load() -> ctypes.CDLL:
    """The library, loaded once: ``$COLLAGE_LIBRARY``, beside the package, or where the system's loader finds it.

    Raises:
        ImportError: it is not there, is for another processor, or has another version of its interface.
    """
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = _open()
        return _loaded
