"""Samples of a network's inputs, on which plans of lower precision are confirmed."""
from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np

from . import _abi, _options, arrays, errors
from ._fixed import wrong_names
from .ports import Port
from .progress import Watch

__all__ = ["Keep", "Sample", "SampleOption"]

#: A sample: the inputs by name, as a tuple in their order, or the array itself if there is one input.
Sample = Union[Mapping[str, arrays.ArrayLike], Sequence[arrays.ArrayLike], arrays.ArrayLike]
#: What ``tune`` takes: samples one by one, all of them in one array for each input, a function of their number, or a path.
SampleOption = Union[Iterable[Sample], Mapping[str, arrays.ArrayLike], Callable[[int], Optional[Sample]], str, "os.PathLike[str]", None]

#: What stays in float32: the name of a node or ``kind:softmax``, or several of them.
Keep = Union[str, Iterable[str], None]

MOST = 128  # that the library uses; samples that are read only once are kept up to here

_WANTED = ('give a list of samples, such as [{"input": array}, ...], an array of several samples, a function of the sample\'s number, or '
           "the path of a folder")


class Samples:
    """A collage_precision_options with all that it points to. What reading a sample raises is kept by `watch`, which raises it."""

    def __init__(self, precision: str, error: Optional[float], given: SampleOption, keep: Keep, inputs: tuple[Port, ...],
                 watch: Watch) -> None:
        self._inputs, self._watch = inputs, watch
        self._may_end = False  # None stands for a sample that does not exist
        self._takes = f"the network has {len(inputs)} input{'s' if len(inputs) != 1 else ''}"
        self.struct = _abi.new(_abi.PrecisionOptions, precision=_abi.encoded(precision, "precision"))
        if error is not None:
            self.struct.error = _checked_error(error)
        kept = _checked_keep(keep)
        if kept:
            self.struct.keep = (ctypes.c_char_p * len(kept))(*kept)
            self.struct.keep_count = len(kept)
        if given is None:
            return  # the library says what is missing, or that there is no such precision
        if isinstance(given, (str, os.PathLike)):
            self.struct.files = _options.path_of(given, "samples")
            return
        self._read = self._reader_of(given)
        self._function = _abi.SampleFunction(self._called)  # kept alive here
        self.struct.sample = self._function

    def _reader_of(self, given: Any) -> Callable[[int], Optional[Sample]]:
        """A function from a number to the sample, or None. Sets the number of samples where it is known."""
        if isinstance(given, Mapping):
            stacked = self._stacked(given)
            return self._counted(stacked, lambda which: {name: rows[which] for name, rows in stacked.items()})
        if isinstance(given, np.ndarray) or hasattr(given, "__dlpack__"):
            if len(self._inputs) != 1:
                raise errors.MisuseError(f"samples is one array, and {self._takes}; give a dictionary with an array for each")
            return self._reader_of({self._inputs[0].name: given})
        if hasattr(given, "__len__") and hasattr(given, "__getitem__"):
            self.struct.sample_count = self._checked_count(len(given))
            return lambda which: given[which]
        if isinstance(given, Iterable):
            # They come once and may share memory: those that can be used are copied.
            kept = [[np.array(array) for array in self._arrays(one, which)]
                    for which, one in enumerate(itertools.islice(given, MOST))]
            self.struct.sample_count = self._checked_count(len(kept))
            return lambda which: kept[which]
        if callable(given):
            self._may_end = True
            return given  # type: ignore[no-any-return]
        raise errors.MisuseError(f"samples is of type {type(given).__name__}; {_WANTED}")

    def _counted(self, stacked: Mapping[str, arrays.Array], read: Callable[[int], Sample]) -> Callable[[int], Sample]:
        counts = {name: len(rows) for name, rows in stacked.items()}
        if len(set(counts.values())) > 1:
            raise errors.MisuseError(f"samples has {' and '.join(f'{n} for input {name}' for name, n in counts.items())}; give as many "
                                     "for each input")
        self.struct.sample_count = self._checked_count(next(iter(counts.values()), 0))
        return read

    @staticmethod
    def _checked_count(count: int) -> int:
        """In the struct, 0 is a number that is not known."""
        if count == 0:
            raise errors.MisuseError("samples is empty; give at least three samples")
        return count

    def _stacked(self, given: Mapping[str, Any]) -> dict[str, arrays.Array]:
        """Arrays of several samples: with one more dimension in front, or a multiple of the first extent, as in files."""
        if set(given) != {port.name for port in self._inputs}:
            raise wrong_names(given, self._inputs)
        stacked = {}
        for port in self._inputs:
            array = arrays.as_array(given[port.name], f"samples of input {port.name}")
            one = tuple(extent for extent in port.shape or () if isinstance(extent, int))
            if array.ndim == len(one) and one and one[0] > 0 and array.shape[1:] == one[1:] and array.shape[0] % one[0] == 0:
                array = array.reshape(-1, *one)
            if array.ndim != len(one) + 1 or array.shape[1:] != one:
                raise arrays.wrong_shape(f"samples of input {port.name}", array.shape,
                                         f"several of {arrays.shape_text(one)} along a first dimension")
            stacked[port.name] = array
        return stacked

    def _arrays(self, sample: Any, which: int) -> list[arrays.Array]:
        """The arrays of a sample, checked, in the order of the inputs."""
        if isinstance(sample, Mapping):
            if set(sample) != {port.name for port in self._inputs}:
                raise errors.MisuseError(f"sample {which}: {wrong_names(sample, self._inputs)}")
            given = [sample[port.name] for port in self._inputs]
        elif isinstance(sample, (tuple, list)):
            given = list(sample)
            if len(given) != len(self._inputs):
                raise errors.MisuseError(f"sample {which} has {len(given)} array{'s' if len(given) != 1 else ''}, and {self._takes}; give "
                                         f"{', '.join(port.name for port in self._inputs)}")
        elif len(self._inputs) == 1:
            given = [sample]
        else:
            raise errors.MisuseError(f"sample {which} is of type {type(sample).__name__}, and {self._takes}; give a dictionary by their "
                                     "names, or a tuple in their order")
        return [arrays.of_port(one, port, f"input {port.name} of sample {which}") for one, port in zip(given, self._inputs)]

    def _called(self, _: Any, which: int, inputs: Any, count: int) -> int:
        """Called by the library, in the thread that places."""
        try:
            with self._watch.calling("samples"):
                sample = self._read(which)
                if sample is None and self._may_end:
                    return _abi.SAMPLE_END
                for index, array in enumerate(self._arrays(sample, which)):
                    if array.nbytes:
                        ctypes.memmove(inputs[index], arrays.address_of(array), array.nbytes)
            return _abi.SAMPLE_WRITTEN
        except BaseException as fault:
            self._watch.keep(fault)
            return _abi.SAMPLE_CANCEL


def _checked_keep(keep: Any) -> list[bytes]:
    if keep is None:
        return []
    try:
        names = [keep] if isinstance(keep, str) else list(keep)
    except TypeError:
        raise errors.MisuseError(f"keep is of type {type(keep).__name__}; give names, such as [\"conv_1\", \"kind:softmax\"]") from None
    return [_abi.encoded(name, "a name in keep") for name in names]


def _checked_error(error: Any) -> float:
    try:
        number = float(error)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 < number <= 1:
        raise errors.MisuseError(f"error is {error!r}; give a number above 0 and at most 1, such as 0.01 for 1 %")
    return number
