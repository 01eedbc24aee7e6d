"""Models whose weights lie in other files than the program says: the weights are put into the model's bytes.

`session.model_external_initializers_file_folder_path` names their folder. A model that is given as bytes and names none has
its weights in the working directory, as in ONNX Runtime.
"""

from __future__ import annotations

import ctypes
import os
import stat
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from collage import _handles
from collage.network import Source

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

Pieces = List[Any]  # memoryviews, bytes and weights in a row
InMemory = Mapping[str, Tuple[Any, int]]  # by the location: what has the contents of a file, and their length


class Weights:
    """The bytes of a tensor in a file. They are read in the end, when it is known that all of them fit."""

    def __init__(self, path: str, named: str, offset: int, length: int) -> None:
        self._path, self._named, self._offset, self._length = path, named, offset, length

    def __len__(self) -> int:
        return self._length

    def read_into(self, to: memoryview) -> None:
        """Reads them. Raises Fail if the file cannot be read, or has become shorter."""
        try:
            with open(self._path, "rb", buffering=0) as file:
                file.seek(self._offset)
                while len(to) and (got := file.readinto(to)):
                    to = to[got:]
        except OSError as fault:
            raise _unreadable(self._named, os.path.dirname(self._path), fault) from fault
        if len(to):
            raise _errors.made(_errors.Fail, f"{self._named}became shorter while it was read; load the model again")


class Files:
    """The files in which weights lie: those in memory, and those of a folder."""

    def __init__(self, folder: str, in_memory: InMemory) -> None:
        self._folder, self._in_memory = folder, in_memory

    def weights(self, name: str, entries: Mapping[str, str], usual: Optional[int]) -> Union[Weights, memoryview]:
        """The bytes of a tensor. `usual` is how many it has if the model does not say."""
        location = entries.get("location", "")
        named = f"{name} has external data in '{location}', which "
        try:
            offset, length = (int(entries.get(key) or 0) for key in ("offset", "length"))
        except ValueError:
            offset = length = -1
        if offset < 0 or length < 0:
            raise _errors.made(_errors.Fail, f"{name} has external data whose offset or length is no number")
        length = length or usual or 0
        contents = self._contents_of(location, named) if location in self._in_memory else None
        path = "" if contents is not None else self._path_of(location, named)
        size = self._size_of(path, named) if contents is None else len(contents)
        if offset > size or length > size - offset:
            raise _errors.made(_errors.Fail, f"{named}ends before {length} bytes from byte {offset}")
        return Weights(path, named, offset, length) if contents is None else contents[offset:offset + length]

    def _contents_of(self, location: str, named: str) -> memoryview:
        buffer, length = self._in_memory[location]
        try:
            return memoryview(buffer).cast("B")[:length]
        except (TypeError, ValueError) as fault:  # no buffer, one with gaps, or a closed file
            raise _errors.made(_errors.Fail, f"{named}cannot be read in memory: {fault}; keep its bytes until the session is "
                                             "made") from fault

    def _path_of(self, location: str, named: str) -> str:
        """The file, which must be inside the folder. Links may lead to other places in it."""
        if not location or os.path.isabs(location) or "\0" in location or os.path.normpath(location).split(os.sep)[0] == "..":
            raise _errors.made(_errors.Fail, f"{named}is no path inside a folder; external data may not be elsewhere")
        base, path = os.path.realpath(self._folder), os.path.realpath(os.path.join(self._folder, location))
        if os.path.commonpath([base, path]) != base:
            raise _errors.made(_errors.Fail, f"{named}is a link that leads out of {base}; copy the data into that folder")
        return path

    def _size_of(self, path: str, named: str) -> int:
        try:
            about = os.stat(path)
        except OSError as fault:
            raise _unreadable(named, os.path.realpath(self._folder), fault) from fault
        if not stat.S_ISREG(about.st_mode):
            raise _errors.made(_errors.Fail, f"{named}is no file; {ENTRY} names the folder of the file")
        return about.st_size


def _unreadable(named: str, folder: str, fault: OSError) -> Exception:
    return _errors.made(_errors.Fail, f"{named}cannot be read in {folder}: {fault.strerror}; {ENTRY} names its folder")


class Assembled(Source):
    """A model with its weights in one message. It is kept until `release`, and put together again where it is needed later.

    Args:
        model: the path of its file, or its bytes.
        folder: where the files of its weights are.
        files: such files that are in memory.
    """

    def __init__(self, model: Union[str, bytes], folder: str, files: InMemory) -> None:
        super().__init__(model)
        self._folder, self._files = os.path.abspath(folder), files
        self._whole: Optional[bytearray] = None

    def has_weights(self) -> bool:
        """Puts the message together. False if no weights lie in other files, or if there is no such model."""
        self._whole = self._assembled()
        return self._whole is not None

    def release(self) -> None:
        """Gives the memory of the message back."""
        self._whole = None

    def _assembled(self) -> Optional[bytearray]:
        model = self.data or b""
        if self.path is not None:
            try:
                with open(self.path, "rb") as file:
                    model = file.read()
            except OSError:
                return None  # loading says what is wrong
        pieces = _pieces_of(model, self._folder, self._files)
        return None if pieces is None else _joined(pieces)

    def _read(self, kind: str, options: Any) -> _handles.Handle:
        whole = self._assembled() if self._whole is None else self._whole
        if whole is None:  # the file has changed
            return super()._read(kind, options)
        memory = (ctypes.c_char * len(whole)).from_buffer(whole)
        return _handles.Handle(kind, f"{kind}_from_memory", memory, len(memory), options)


def source_of(model: Union[str, bytes], folder: Optional[str], files: InMemory) -> Source:
    """Where a model is read from: its file, if the weights lie beside it, and otherwise its bytes with the weights inside.

    Raises Fail if a file of weights is not there, lies outside the folder or is too short.
    """
    plain = Source(model)
    own = "." if isinstance(model, bytes) else os.path.dirname(os.path.abspath(model))
    if isinstance(model, str) and not files and (not folder or _is_same(folder, own)):
        return plain
    assembled = Assembled(model, folder or own, files)
    return assembled if assembled.has_weights() else plain


def _is_same(folder: str, other: str) -> bool:
    try:
        return os.path.samefile(folder, other)
    except OSError:
        return False


def _pieces_of(model: bytes, folder: str, files: InMemory) -> Optional[Pieces]:
    """The model with the weights of its other files inside; None if there are none, or if it is no model.

    Raises Fail if such a file is not there, lies outside the folder or is too short, or if all is too much. Nothing is read yet.
    """
    if b"location" not in model:  # every tensor with such a file has this key
        return None
    try:
        pieces = _inlined(memoryview(model), 0, len(model), "model", Files(folder, files), _DEEPEST)
    except Broken:
        return None  # loading says what is wrong
    if pieces is not None and _size(pieces) > _MOST:
        raise _errors.made(_errors.Fail, "the model has more than 2 GiB with its external data; give the path of its file beside them")
    return pieces


def _joined(pieces: Pieces) -> bytearray:
    whole, at = bytearray(_size(pieces)), 0
    to = memoryview(whole)
    for piece in pieces:
        end = at + len(piece)
        if isinstance(piece, Weights):
            piece.read_into(to[at:end])
        else:
            to[at:end] = piece
        at = end
    return whole


def _inlined(data: memoryview, start: int, end: int, kind: str, files: Files, depth: int) -> Optional[Pieces]:
    """A message with all weights inside; None if it has none outside."""
    if kind == "tensor":
        return _tensor(data, start, end, files)
    if depth == 0:
        raise Broken
    pieces: Pieces = []
    kept = start
    for number, form, begin, first, last in spans(data, start, end):
        way = _WAYS[kind].get(number) if form == 2 else None
        inner = None if way is None else _inlined(data, first, last, way, files, depth - 1)
        if inner is not None:
            pieces += [data[kept:begin], _varint(number << 3 | 2), _varint(_size(inner)), *inner]
            kept = last
    return [*pieces, data[kept:end]] if pieces else None


def _tensor(data: memoryview, start: int, end: int, files: Files) -> Optional[Pieces]:
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
    weights = files.weights(name, entries, _types.bytes_of(element_type, dims))
    return [*pieces, _varint(_RAW << 3 | 2), _varint(len(weights)), weights]


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
