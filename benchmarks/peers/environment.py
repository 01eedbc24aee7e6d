"""Python environments of benchmarks: each made once, the peers' in .deps/peers or $COLLAGE_DEPS/peers."""
from __future__ import annotations

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence

from .errors import Failure

REQUIREMENTS = pathlib.Path(__file__).resolve().parent / "requirements.txt"
PACKAGES = ("numpy", "onnx", "onnxruntime", "openvino")
LEAST_PYTHON = (3, 11)


def stamp(requirements: pathlib.Path = REQUIREMENTS) -> str:
    """What an environment was made of: it is made anew where this changes."""
    wanted = requirements.read_bytes() + sys.version.encode()
    return hashlib.sha256(wanted).hexdigest()


def folder(top: pathlib.Path, name: str = "peers") -> pathlib.Path:
    return pathlib.Path(os.environ.get("COLLAGE_DEPS") or top / ".deps") / name


def set_up(place: pathlib.Path, say: Callable[[str], None], requirements: pathlib.Path = REQUIREMENTS,
           pip: Sequence[str] = ()) -> str:
    """Returns the path of Python in an environment with the packages. Makes the environment if it is missing. `pip` has more options of
    `pip install`. Two at the same time wait for each other; one that was stopped half way is made again."""
    python, made_of = place / "bin" / "python", place / ".made-of"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with open(place.parent / f".{place.name}.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if made_of.is_file() and made_of.read_text(encoding="ascii") == stamp(requirements) and python.exists():
                return str(python)
            say(f"setting up {' '.join(requirements.read_text(encoding='ascii').split())} in {place} ...")
            shutil.rmtree(place, ignore_errors=True)
            make(place, python, requirements, pip)
            made_of.write_text(stamp(requirements), encoding="ascii")
    except OSError as problem:
        raise Failure(f"{problem.filename or place}: {problem.strerror}; set COLLAGE_DEPS to a folder of yours") from None
    return str(python)


def make(place: pathlib.Path, python: pathlib.Path, requirements: pathlib.Path, pip: Sequence[str]) -> None:
    log = place.with_name(f"{place.name}.log")
    steps = (([sys.executable, "-m", "venv", str(place)],
              "this Python cannot make environments: install python3-venv"),
             ([str(python), "-m", "pip", "install", "--disable-pip-version-check", "--only-binary", ":all:", "--retries", "2",
               *pip, "--requirement", str(requirements)],
              "the packages could not be installed with pip (no network?)"))
    with open(log, "wb") as output:
        for command, reason in steps:
            if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False).returncode != 0:
                raise Failure(f"{reason}; what it said is at the end of {log}, and --python takes a Python that has them")
