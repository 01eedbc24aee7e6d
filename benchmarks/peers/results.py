"""What is kept in the folder of a comparison, so that it goes on where it was stopped."""
from __future__ import annotations

import hashlib
import json
import os
import pathlib
from typing import Any

from .errors import Failure

Key = dict[str, Any]


def digest(file: pathlib.Path) -> str:
    """Of a file's contents: whether it is the same one as before."""
    total = hashlib.sha256()
    try:
        with open(file, "rb") as source:
            while block := source.read(1 << 22):
                total.update(block)
    except OSError as problem:
        raise Failure(f"{file}: cannot be read: {problem.strerror}") from None
    return total.hexdigest()


def write(file: pathlib.Path, text: str) -> None:
    """In one step: whoever is stopped leaves the file that was there."""
    beside = file.with_name(f".{file.name}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, file)
    except OSError as problem:
        raise Failure(f"{file}: cannot be written: {problem.strerror}") from None


FORMAT = 1  # of what is kept: another one is not there


class Kept:
    """Values by name, each with the key that it was made under; what has another key now, or was cut off, is not there."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def file(self, name: str) -> pathlib.Path:
        return self.folder / f"{name}.json"

    def find(self, name: str, key: Key) -> Any:
        try:
            kept = json.loads(self.file(name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(kept, dict) or (kept.get("format"), kept.get("key")) != (FORMAT, json.loads(json.dumps(key))):
            return None
        return kept.get("value")

    def keep(self, name: str, key: Key, value: Any) -> None:
        write(self.file(name), json.dumps({"format": FORMAT, "key": key, "value": value}, indent=1) + "\n")
