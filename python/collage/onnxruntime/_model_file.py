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


def varint(data: Buffer, at: int, end: int) -> Tuple[int, int]:
    """A whole number, and where it ends."""
    number = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise Broken


def spans(data: Buffer, at: int, end: int) -> Iterator[Tuple[int, int, int, int, int]]:
    """The fields of a message: number, form, and where the field, its content and the next field begin. Form 2 has a length."""
    while at < end:
        begin = at
        key, at = varint(data, at, end)
        form = key & 7
        if form == 0:
            _, after = varint(data, at, end)
        elif form in (1, 2, 5):
            size = {1: 8, 5: 4}.get(form)
            if size is None:
                size, at = varint(data, at, end)
            after = at + size
        else:
            raise Broken
        if after > end:
            raise Broken
        yield key >> 3, form, begin, at, after
        at = after


def fields(data: Buffer, at: int, end: int) -> Iterator[Tuple[int, int, int]]:
    """The fields of a message: number, and where the content begins and ends. A whole number stands in place of the beginning,
    with -1 for its end."""
    for number, form, _, start, after in spans(data, at, end):
        if form == 0:
            yield number, varint(data, start, after)[0], -1
        else:
            yield number, start, after


def text(data: Buffer, start: int, end: int) -> str:
    """The text of a field."""
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
            return any(number == 7 and end >= 0 for number, _, end in list(fields(data, 0, size)))
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
    for number, start, end in fields(data, 0, size):
        if number in texts:
            setattr(to, texts[number], text(data, start, end))
        elif number == 5 and end < 0:
            to.version = start - 2**64 if start >= 2**63 else start
        elif number == 7 and end >= 0:
            for part, first, last in fields(data, start, end):
                if part in (2, 10):
                    setattr(to, "graph_name" if part == 2 else "graph_description", text(data, first, last))
        elif number == 14 and end >= 0:
            entry = {part: text(data, first, last) for part, first, last in fields(data, start, end)}
            to.custom_metadata_map[entry.get(1, "")] = entry.get(2, "")
    return to


def _graph_parts(data: Buffer, size: int, wanted: int) -> Iterator[Tuple[int, int]]:
    for number, start, end in fields(data, 0, size):
        if number == 7 and end >= 0:
            for part, first, last in fields(data, start, end):
                if part == wanted and last >= 0:
                    yield first, last


def _overridable(data: Buffer, size: int) -> Set[str]:
    inputs = {text(data, a, b) for first, last in _graph_parts(data, size, 11)
              for number, a, b in fields(data, first, last) if number == 1}
    weights = {text(data, a, b) for first, last in _graph_parts(data, size, 5)
               for number, a, b in fields(data, first, last) if number == 8}
    return inputs & weights


def _inside(data: Buffer, spans: List[Tuple[int, int]], wanted: int) -> List[Tuple[int, int]]:
    return [(a, b) for first, last in spans for number, a, b in fields(data, first, last) if number == wanted and b >= 0]


def _denotations(data: Buffer, size: int) -> Dict[str, List[str]]:
    found = {}
    for span in _graph_parts(data, size, 11):
        name = "".join(text(data, a, b) for a, b in _inside(data, [span], 1))
        # An input's type, its tensor type, the shape in it, and the extents of the shape.
        extents = _inside(data, _inside(data, _inside(data, _inside(data, [span], 2), 1), 2), 1)
        found[name] = ["".join(text(data, a, b) for a, b in _inside(data, [extent], 3)) for extent in extents]
    return found
