"""SessionOptions and RunOptions, with the enumerations that they hold."""

from __future__ import annotations

import copy
import enum
import operator
import os
from typing import Any, Dict, List, Sequence, Tuple

import collage

from . import _errors


class _Named(enum.IntEnum):
    """A number that is printed as its name."""

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __format__(self, form: str) -> str:
        return format(str(self), form)


class GraphOptimizationLevel(_Named):
    """How much is done before the first run. ORT_DISABLE_ALL: nothing is timed. All others mean the same here."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Named):
    """Accepted. Kernels always run one after another, each on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Named):
    """Accepted, without effect."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


def _flag(value: Any) -> bool:
    # As in ONNX Runtime: numbers and None are taken as well, and text and lists are not.
    try:
        if hasattr(type(value), "__bool__"):
            return bool(value)
    except ValueError:  # an array of several elements
        pass
    raise TypeError("a bool")


def _text(value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError("a text")
    return os.fspath(value)


def _member(kind: type) -> Any:
    def check(value: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError(f"a {kind.__name__}")
        return value
    return check


class _Options:
    """Named settings, each with a check of its type and a default. Other names are refused, so that typos show."""

    _settings: Dict[str, Tuple[Any, Any]] = {}

    def __init__(self) -> None:
        object.__setattr__(self, "_values", {name: default for name, (_, default) in self._settings.items()})
        object.__setattr__(self, "_entries", {})

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, "_values")[name]
        except KeyError:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._settings:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        try:
            self._values[name] = self._settings[name][0](value)
        except TypeError as wrong:
            wanted = str(wrong) if self._settings[name][0] is not operator.index else "a whole number"
            raise TypeError(f"{type(self).__name__}.{name} is {wanted}, not {value!r}") from None

    def __copy__(self) -> Any:
        return copy.deepcopy(self)  # entries, and the flag of RunOptions, are each object's own

    def __dir__(self) -> List[str]:
        return sorted([*super().__dir__(), *self._settings])

    def _add_entry(self, key: str, value: str) -> None:
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"a configuration entry is two texts, not {key!r} and {value!r}")
        self._entries[key] = value

    def _entry(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"{type(self).__name__} does not have configuration with key: {key}")
        return str(self._entries[key])


class _Files(Dict[str, Tuple[Any, int]]):
    """Contents of files in memory. Copies of options share them."""

    def __deepcopy__(self, _: Any) -> _Files:
        return _Files(self)


class SessionOptions(_Options):
    """Options of a session. Those of ONNX Runtime's that have no counterpart are accepted, and do nothing.

    docs/python-onnxruntime.md says what each means, and which are refused.
    """

    _settings = {
        "enable_cpu_mem_arena": (_flag, True),
        "enable_mem_pattern": (_flag, True),
        "enable_mem_reuse": (_flag, True),
        "enable_profiling": (_flag, False),
        "execution_mode": (_member(ExecutionMode), ExecutionMode.ORT_SEQUENTIAL),
        "execution_order": (_member(ExecutionOrder), ExecutionOrder.DEFAULT),
        "graph_optimization_level": (_member(GraphOptimizationLevel), GraphOptimizationLevel.ORT_ENABLE_ALL),
        "inter_op_num_threads": (operator.index, 0),
        "intra_op_num_threads": (operator.index, 0),
        "log_severity_level": (operator.index, -1),
        "log_verbosity_level": (operator.index, 0),
        "logid": (_text, ""),
        "optimized_model_filepath": (_text, ""),
        "profile_file_prefix": (_text, "onnxruntime_profile_"),
        "use_deterministic_compute": (_flag, False),
        "use_per_session_threads": (_flag, True),
    }

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "_by_name", {})
        object.__setattr__(self, "_by_denotation", {})
        object.__setattr__(self, "_providers", [])
        object.__setattr__(self, "_files", _Files())

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets an entry. Keys that begin with "collage." say how the session is placed; others are only kept."""
        self._add_entry(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added. Raises RuntimeError if there is none."""
        return self._entry(key)

    def add_free_dimension_override_by_name(self, name: str, extent: int) -> None:
        """Fixes an open extent of the inputs by its name in the model."""
        self._by_name[str(name)] = operator.index(extent)

    def add_free_dimension_override_by_denotation(self, denotation: str, extent: int) -> None:
        """Fixes open extents of the inputs by their denotation in the model, such as "DATA_BATCH"."""
        self._by_denotation[str(denotation)] = operator.index(extent)

    def add_provider(self, provider_name: str, provider_options: Dict[str, str]) -> None:
        """Asks for a provider. See InferenceSession."""
        self._providers.append((provider_name, dict(provider_options)))

    def has_providers(self) -> bool:
        """Whether add_provider was called."""
        return bool(self._providers)

    def register_custom_ops_library(self, path: Any) -> None:
        """Refused: such a library is written for ONNX Runtime's own interface."""
        raise _errors.made(_errors.NotImplemented, f"{path}: libraries of custom operators for ONNX Runtime cannot be loaded; "
                                                   "collage takes operators written in C++, see docs/adding-an-operator.md")

    def add_initializer(self, name: str, ortvalue: Any) -> None:
        """Refused: weights come from the model."""
        raise _errors.made(_errors.NotImplemented, f"{name}: weights cannot be given besides the model; save them in its file")

    def add_external_initializers_from_files_in_memory(self, file_names: Sequence[str], buffers: Sequence[Any],
                                                       lengths: Sequence[int]) -> None:
        """Takes the contents of files with weights from memory, by the names that the model has for them.

        The contents are read when a session is made, and must stay until then.
        """
        if not len(file_names) == len(buffers) == len(lengths):
            raise _errors.made(_errors.InvalidArgument, f"there are {len(file_names)} names of files, {len(buffers)} buffers and "
                                                        f"{len(lengths)} lengths; give one of each for each file")
        for name, buffer, length in zip(file_names, buffers, lengths):
            size, length = memoryview(buffer).nbytes, operator.index(length)
            if not 0 <= length <= size:
                raise _errors.made(_errors.InvalidArgument, f"{name} has {size} bytes in memory, and its length is {length}; give the "
                                                            "number of its bytes")
            self._files[_text(name)] = buffer, length

    def add_external_initializers(self, names: Any, ortvalues: Any) -> None:
        """Refused: weights come from the model."""
        raise _errors.made(_errors.NotImplemented, "weights cannot be given besides the model; save them in its folder")


class RunOptions(_Options):
    """Options of a run. `terminate` ends runs that use these options, also those under way in other threads."""

    _settings = {
        "log_severity_level": (operator.index, -1),
        "log_verbosity_level": (operator.index, 0),
        "logid": (_text, ""),
        "only_execute_path_to_fetches": (_flag, False),
        "terminate": (_flag, False),
    }

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "_stop", collage.StopFlag())

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "terminate":
            (self._stop.set if self.terminate else self._stop.clear)()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Sets an entry. Entries are kept, and do nothing."""
        self._add_entry(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """An entry that was added. Raises RuntimeError if there is none."""
        return self._entry(key)
