"""Models whose weights lie in other files than the program says: the weights are put into the model's bytes.

`session.model_external_initializers_file_folder_path` names their folder. A model that is given as bytes and names none has
its weights in the working directory, as in ONNX Runtime.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Union

from . import _errors, _types
from ._model_file import Broken, fields, spans, text, varint

ENTRY = "session.model_external_initializers_file_folder_path"
# Fields of ONNX's messages that lead to tensors.
_WAYS: Dict[str, Dict[int, str]] = {
    "model": {7: "graph", 25: "function"}, "function": {7: "node"}, "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"}, "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
_DIMS, _TYPE, _NAME, _RAW, _EXTERNAL, _LOCATION = 1, 2, 8, 9, 13, 14
_DEEPEST = 100  # as protobuf itself reads messages
_MOST = 2**31 - 1  # bytes of a message of protobuf

Pieces = List[Any]  # memoryviews and bytes in a row


def whole(source: Union[str, bytes], folder: Optional[str]) -> Union[str, bytes]:
    """The model's bytes with its weights, if these lie in another folder than the model; otherwise what was given."""
    if isinstance(source, bytes):
        return _with_weights(source, folder or ".")
    if not folder:
        return source  # they lie beside the file
    try:
        with open(source, "rb") as file:
            contents = file.read()
    except OSError:
        return source  # loading says what is wrong
    found = _with_weights(contents, folder)
    return source if found is contents else found


def _with_weights(model: bytes, folder: str) -> bytes:
    """The model with the weights of its other files inside; the same bytes if there are none, or if they are no model.

    Raises Fail if such a file is not there, lies outside the folder or is too short.
    """
    if b"location" not in model:  # every tensor with such a file has this key
        return model
    try:
        pieces = _inlined(memoryview(model), 0, len(model), "model", folder, _DEEPEST)
    except Broken:
        return model  # loading says what is wrong
    if pieces is None:
        return model
    if _size(pieces) > _MOST:
        raise _errors.made(_errors.Fail, "the model has more than 2 GiB with its external data; give the path of its file beside them")
    return b"".join(pieces)


def _inlined(data: memoryview, start: int, end: int, kind: str, folder: str, depth: int) -> Optional[Pieces]:
    """A message with all weights inside; None if it has none outside."""
    if kind == "tensor":
        return _tensor(data, start, end, folder)
    if depth == 0:
        raise Broken
    pieces: Pieces = []
    kept = start
    for number, form, begin, first, last in spans(data, start, end):
        way = _WAYS[kind].get(number) if form == 2 else None
        inner = None if way is None else _inlined(data, first, last, way, folder, depth - 1)
        if inner is not None:
            pieces += [data[kept:begin], _varint(number << 3 | 2), _varint(_size(inner)), *inner]
            kept = last
    return [*pieces, data[kept:end]] if pieces else None


def _tensor(data: memoryview, start: int, end: int, folder: str) -> Optional[Pieces]:
    """A tensor with its weights inside; None if they are there already."""
    found = list(fields(data, start, end))
    if (_LOCATION, 1, -1) not in found or any(number == _RAW for number, _, _ in found):
        return None
    pieces: Pieces = []
    dims: List[int] = []
    entries: Dict[str, str] = {}
    name, element_type = "", 0
    for number, form, begin, first, last in spans(data, start, end):
        if number == _EXTERNAL and form == 2:
            words = {part: text(data, a, b) for part, a, b in fields(data, first, last)}
            entries[words.get(1, "")] = words.get(2, "")
        elif number != _LOCATION:
            pieces.append(data[begin:last])
        if number == _NAME:
            name = text(data, first, last)
    for number, first, last in found:
        if number == _DIMS:
            # Packed or one by one: both are allowed.
            dims += [first] if last < 0 else _packed(data, first, last)
        elif number == _TYPE and last < 0:
            element_type = first
    weights = _read(folder, name, entries, _types.bytes_of(element_type, dims))
    return [*pieces, _varint(_RAW << 3 | 2), _varint(len(weights)), weights]


def _read(folder: str, name: str, entries: Dict[str, str], usual: Optional[int]) -> bytes:
    """The bytes of a tensor. `usual` is how many it has if the model does not say."""
    location = entries.get("location", "")
    named = f"{name} has external data in '{location}', which "
    try:
        offset, length = (int(entries.get(key) or 0) for key in ("offset", "length"))
    except ValueError:
        offset = length = -1
    if offset < 0 or length < 0:
        raise _errors.made(_errors.Fail, f"{name} has external data whose offset or length is no number")
    if not location or os.path.isabs(location) or "\0" in location or ".." in location.split("/"):
        raise _errors.made(_errors.Fail, f"{named}is no path inside a folder; external data may not be elsewhere")
    base, path = os.path.realpath(folder), os.path.realpath(os.path.join(folder, location))
    if os.path.commonpath([base, path]) != base:
        raise _errors.made(_errors.Fail, f"{named}is a link that leads out of {base}; copy the data into that folder")
    length = length or usual or 0
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if offset <= size and length <= size - offset:
                file.seek(offset)
                return file.read(length)
    except OSError as fault:
        raise _errors.made(_errors.Fail, f"{named}cannot be read in {base}: {fault.strerror}; {ENTRY} names its folder") from fault
    raise _errors.made(_errors.Fail, f"{named}ends before {length} bytes from byte {offset}")


def _packed(data: memoryview, start: int, end: int) -> List[int]:
    """Whole numbers one after another."""
    numbers = []
    while start < end:
        number, start = varint(data, start, end)
        numbers.append(number)
    return numbers


def _size(pieces: Pieces) -> int:
    return sum(map(len, pieces))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])
