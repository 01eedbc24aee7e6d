"""What a model's file says about itself: its producer and metadata, and which inputs have a value of their own.

Only these few fields of ONNX's messages are read here, and only when a program wants them. The library reads the network.
"""

from __future__ import annotations

import mmap
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple, TypeVar, Union

Buffer = Any  # bytes, or a file in memory
Source = Union[str, bytes]
Found = TypeVar("Found")


class ModelMetadata:
    """The description of a model by its author, as ONNX Runtime has it."""

    def __init__(self) -> None:
        self.producer_name = ""
        self.graph_name = ""
        self.domain = ""
        self.description = ""
        self.graph_description = ""
        self.version = 2**63 - 1  # as ONNX Runtime has it for models without a version
        self.custom_metadata_map: Dict[str, str] = {}


class Broken(ValueError):
    """The bytes are not fields of protobuf."""


def _varint(data: Buffer, at: int, end: int) -> Tuple[int, int]:
    number = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise Broken


def _fields(data: Buffer, at: int, end: int) -> Iterator[Tuple[int, int, int]]:
    """The fields of a message: number, and where the content begins and ends. A whole number stands in place of the beginning,
    with -1 for its end."""
    while at < end:
        key, at = _varint(data, at, end)
        number, form = key >> 3, key & 7
        if form == 0:
            value, at = _varint(data, at, end)
            yield number, value, -1
        elif form in (1, 2, 5):
            size = {1: 8, 5: 4}.get(form)
            if size is None:
                size, at = _varint(data, at, end)
            if at + size > end:
                raise Broken
            yield number, at, at + size
            at += size
        else:
            raise Broken


def _text(data: Buffer, start: int, end: int) -> str:
    if end < 0:
        raise Broken
    return bytes(data[start:end]).decode("utf-8", "replace")


class ModelFile:
    """A model's file, or its bytes."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def _read(self, read: Callable[[Buffer, int], Found]) -> Found:
        if isinstance(self._source, bytes):
            return read(self._source, len(self._source))
        with open(self._source, "rb") as file:
            file.seek(0, 2)
            if file.tell() == 0:
                return read(b"", 0)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return read(data, len(data))

    def is_protobuf(self) -> bool:
        """Whether the bytes are fields of protobuf, and some of them a graph."""
        def read(data: Buffer, size: int) -> bool:
            return any(number == 7 and end >= 0 for number, _, end in list(_fields(data, 0, size)))
        try:
            return self._read(read)
        except (Broken, OSError):
            return False

    def is_ort_format(self) -> bool:
        """Whether this is ONNX Runtime's own format."""
        return self._read(lambda data, size: bytes(data[4:8]) == b"ORTM")

    def metadata(self) -> ModelMetadata:
        """The description. Fields that the file lacks have ONNX Runtime's defaults."""
        return self._read(_metadata)

    def overridable(self) -> Set[str]:
        """The names of inputs that have a value in the file, which ONNX Runtime lets a run override."""
        return self._read(_overridable)

    def denotations(self) -> Dict[str, List[str]]:
        """For each input, the denotation of each extent; an empty text where there is none."""
        return self._read(_denotations)


def _metadata(data: Buffer, size: int) -> ModelMetadata:
    to = ModelMetadata()
    texts = {2: "producer_name", 4: "domain", 6: "description"}
    for number, start, end in _fields(data, 0, size):
        if number in texts:
            setattr(to, texts[number], _text(data, start, end))
        elif number == 5 and end < 0:
            to.version = start - 2**64 if start >= 2**63 else start
        elif number == 7 and end >= 0:
            for part, first, last in _fields(data, start, end):
                if part in (2, 10):
                    setattr(to, "graph_name" if part == 2 else "graph_description", _text(data, first, last))
        elif number == 14 and end >= 0:
            entry = {part: _text(data, first, last) for part, first, last in _fields(data, start, end)}
            to.custom_metadata_map[entry.get(1, "")] = entry.get(2, "")
    return to


def _graph_parts(data: Buffer, size: int, wanted: int) -> Iterator[Tuple[int, int]]:
    for number, start, end in _fields(data, 0, size):
        if number == 7 and end >= 0:
            for part, first, last in _fields(data, start, end):
                if part == wanted and last >= 0:
                    yield first, last


def _overridable(data: Buffer, size: int) -> Set[str]:
    inputs = {_text(data, a, b) for first, last in _graph_parts(data, size, 11)
              for number, a, b in _fields(data, first, last) if number == 1}
    weights = {_text(data, a, b) for first, last in _graph_parts(data, size, 5)
               for number, a, b in _fields(data, first, last) if number == 8}
    return inputs & weights


def _inside(data: Buffer, spans: List[Tuple[int, int]], wanted: int) -> List[Tuple[int, int]]:
    return [(a, b) for first, last in spans for number, a, b in _fields(data, first, last) if number == wanted and b >= 0]


def _denotations(data: Buffer, size: int) -> Dict[str, List[str]]:
    found = {}
    for span in _graph_parts(data, size, 11):
        name = "".join(_text(data, a, b) for a, b in _inside(data, [span], 1))
        # An input's type, its tensor type, the shape in it, and the extents of the shape.
        extents = _inside(data, _inside(data, _inside(data, _inside(data, [span], 2), 1), 2), 1)
        found[name] = ["".join(_text(data, a, b) for a, b in _inside(data, [extent], 3)) for extent in extents]
    return found
