"""Networks: models that were read, with fixed or open shapes."""
from __future__ import annotations

import ctypes
import dataclasses
import functools
import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _abi, _handles, _options, arrays, errors, ports
from ._hints import Unpack
from ._options import Backends, Loading, Placing, Rules, Shapes, Store, Values
from .plan import Plan
from .progress import ProgressOption, Watch
from .samples import Keep, SampleOption, Samples

if TYPE_CHECKING:
    from .session import Session, SessionOptions

__all__ = ["Model", "Network", "load"]

#: What ``load`` takes: a path, the bytes of an ONNX file, or "zoo:NAME".
Model = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview]

ZOO = "zoo:"
# The remedy in the library's sentence about a network of fixed shapes in which data decides a shape.
DECIDED_BY_DATA = "bind the input that decides it to a value"
# Of one about a file that rounds nothing.
REFUSES_TO_REQUANTISE = "set requantise to 0"
# Of one of a library that is older than this package.
OLDER_LIBRARY = "load a newer library"


class Source:
    """Where a model comes from: it is read again for other shapes."""

    def __init__(self, model: Any) -> None:
        self.zoo: Optional[bytes] = None
        self.path: Optional[bytes] = None
        self.data: Optional[bytes] = None
        if isinstance(model, str) and model.startswith(ZOO):
            self.zoo = _abi.encoded(model[len(ZOO):], "the network's name")
        elif isinstance(model, (str, os.PathLike)):
            if not os.fspath(model):
                raise errors.MisuseError("model is an empty path; give the path of an ONNX file")
            self.path = _options.absolute(_options.path_of(model, "model"))
        elif isinstance(model, bytes):
            self.data = model
        else:
            try:
                self.data = bytes(memoryview(model))
            except (TypeError, BufferError):
                raise errors.MisuseError(f"model is of type {type(model).__name__}; give a path, the bytes of an ONNX file, or "
                                         '"zoo:NAME"') from None

    def network(self, loading: Loading) -> _handles.Handle:
        """Reads it with fixed shapes."""
        if self.zoo is not None:
            return _handles.Handle("network", "network_from_zoo", self.zoo)
        return self._read("network", ctypes.byref(loading.struct))

    def session(self, options: Any) -> _handles.Handle:
        """Reads it for a session, whose shapes may be open."""
        return self._read("session", ctypes.byref(options))

    def _read(self, kind: str, options: Any) -> _handles.Handle:
        if self.path is not None:
            return _handles.Handle(kind, f"{kind}_from_file", self.path, options)
        assert self.data is not None
        return _handles.Handle(kind, f"{kind}_from_memory", self.data, len(self.data), options)


def load(model: Model, *, shapes: Shapes = None, values: Values = None, requantise: bool = False) -> Network:
    """Reads a model.

    Args:
        model: the path of an ONNX file; its contents as bytes or anything like bytes; or "zoo:NAME" for a built-in network,
            such as "zoo:resnet50".
        shapes: shapes of inputs that the file leaves open, by name. Shapes may stay open: then each run may have others.
        values: contents of inputs that become constants, by name. They are copied.
        requantise: removes the rounding of a quantised file, so that ``tune(precision=...)`` chooses anew what is rounded, by the ranges
            of the file. Without a precision, it runs in float32. A plan of such a network fits no network that was loaded without it.

    Raises:
        MisuseError: there is no such file or name, or it is no ONNX model that can be run, or it rounds nothing and ``requantise``
            is set. Where shapes are open, that shows once they are given.
        CollageError: memory or the file fails.
    """
    source, loading = Source(model), Loading(shapes, values, requantise)
    if source.zoo is not None and (loading.shapes or loading.values):
        raise errors.MisuseError(f"{model!r} has fixed shapes; leave out shapes and values")
    if source.zoo is not None and requantise:
        raise errors.MisuseError(f"{model!r} rounds nothing; leave out requantise")
    return read(source, loading)


def read(source: Source, loading: Loading) -> Network:
    """Reads a model: with fixed shapes if that is possible, and otherwise with open ones."""
    try:
        return Network(source, loading, source.network(loading), is_open=False)
    except errors.MisuseError as fault:
        if source.zoo is not None or any(remedy in str(fault) for remedy in (REFUSES_TO_REQUANTISE, OLDER_LIBRARY)):
            raise
        # Open shapes, or shapes that data decides: a session reads such a model. If it does not either, its own sentence
        # is about the model, and not about shapes.
        try:
            numbers = _checked_numbers(_declared(source, None), loading.values) if loading.values else {}
            if numbers != loading.numbers:
                return read(source, loading.with_numbers(numbers))
            handle = _declared(source, loading)
        except errors.MisuseError as again:
            raise again from (None if str(again) == str(fault) else fault)
        network = Network(source, loading, handle, is_open=True)
        if not any(port.is_open for port in network.inputs) and DECIDED_BY_DATA not in str(fault):
            raise  # a session would say the same at its first run
        return network


def _declared(source: Source, given: Optional[Loading]) -> _handles.Handle:
    """A session of the model with the given values and the shapes that the file declares. It is not run."""
    loading = Loading(None, None) if given is None else Loading(None, given.values, numbers=given.numbers)
    options = _abi.new(_abi.SessionOptions, loading=ctypes.pointer(loading.struct))
    options.placing = ctypes.pointer(Placing(how="priority", store=False).struct)
    return source.session(options)


def _checked_numbers(handle: _handles.Handle, values: Mapping[str, arrays.Array]) -> dict[str, int]:
    """The element types of the inputs that get values. Refuses values that they do not take; the library looks at them at a run only."""
    with handle as pointer:
        count = _abi.filled("session_get_info", _abi.SessionInfo, pointer).inputs
        declared = {port.name: port for port in ports.open_ports(pointer, "input", count)}
    for name, value in values.items():
        if name not in declared:
            raise errors.MisuseError(f"values: the model has no input {name}; it takes {', '.join(map(str, declared.values()))}")
        arrays.of_port(value, declared[name], f"the value of input {name}")
    return {name: declared[name].number for name in values}


class Network(_handles.Unpicklable, ports.InputsAndOutputs[tuple[ports.Port, ...]]):
    """A model. ``load`` makes it; it does not change, and threads may share it.

    It is released by ``close()``, at the end of ``with``, or when nothing refers to it. Plans and sessions that were made
    before go on.
    """

    def __init__(self, source: Source, loading: Loading, handle: _handles.Handle, is_open: bool) -> None:
        self._source, self._loading, self._handle, self._is_open = source, loading, handle, is_open
        with handle as pointer:
            if is_open:
                info = _abi.filled("session_get_info", _abi.SessionInfo, pointer)
                self._inputs = _with_shapes(ports.open_ports(pointer, "input", info.inputs), loading.shapes)
                self._outputs = ports.open_ports(pointer, "output", info.outputs)
            else:
                self._inputs = ports.fixed_ports("network", pointer, "input", _count("network_input_count", pointer))
                self._outputs = ports.fixed_ports("network", pointer, "output", _count("network_output_count", pointer))

    @property
    def is_open(self) -> bool:
        """Whether shapes may change from run to run, or depend on data."""
        return self._is_open

    @functools.cached_property
    def summary(self) -> dict[str, Any]:
        """All about the model: the JSON object of ``collage_network_json``, or of ``collage_session_json`` if shapes are open."""
        with self._handle as pointer:
            document: dict[str, Any] = _abi.document("session_json" if self._is_open else "network_json", pointer)
        return document

    @property
    def name(self) -> str:
        """The path from the root, or the name in the zoo."""
        return str(self.summary["model" if self._is_open else "name"])

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the file that its user should read."""
        return tuple(self.summary["notes"])

    @property
    def metadata(self) -> dict[str, str]:
        """What the file says about itself, such as the names of classes."""
        return dict(self.summary["metadata"])

    @property
    def opset(self) -> int:
        """The version of ONNX's operators; 0 for a network of the zoo."""
        return int(self.summary["opset"])

    def with_shapes(self, shapes: Shapes) -> Network:
        """The same model with shapes of inputs that are open. It is read again.

        Raises:
            MisuseError: the shapes contradict the model, or the zoo's network has other ones.
        """
        if not _options._mapping(shapes, "shapes"):
            return self
        if self._source.zoo is not None:
            raise errors.MisuseError(f"{self.name} is a network of the zoo, whose shapes are fixed; leave out shapes")
        loading = self._loading.with_shapes(shapes)
        network = Network(self._source, loading, self._source.network(loading), is_open=False)
        self._expect(network._inputs, network._outputs)
        return network

    def _expect(self, inputs: Iterable[ports.Port], outputs: Iterable[ports.Port]) -> None:
        """Refuses the ports of a file that was read again and has changed, as far as they show it."""
        for known, found in (self._inputs, inputs), (self._outputs, outputs):
            by_name = {port.name: port for port in found}
            if {port.name for port in known} != set(by_name) or not all(_agree(port, by_name[port.name]) for port in known):
                path = os.fsdecode(self._source.path or b"the model")
                raise errors.MisuseError(f"{path}: has other inputs or outputs now than when it was loaded; load it again")

    def _fixed(self, shapes: Shapes, purpose: str) -> Network:
        """This network with fixed shapes."""
        network = self.with_shapes(shapes)
        if network._is_open:
            open_ones = ", ".join(str(p) for p in network.inputs if p.is_open) or "an operator, whose result's shape is data"
            raise errors.MisuseError(f"{purpose} needs fixed shapes, and this leaves some open: {open_ones}; give them, as by "
                                     'shapes={"input": (1, 3, 224, 224)}')
        return network

    def tune(self, *, shapes: Shapes = None, threads: int = 0, backends: Backends = None, store: Store = None,
             budget: Optional[float] = 20.0, compare: Optional[float] = None, regions: Optional[float] = None,
             autotune: float = 0, seed: int = 1, previous: Optional[Plan] = None, pin: Rules = None, exclude: Rules = None,
             algorithms: str = "accurate", memory: Union[int, float, None] = None, keep_non_finite: bool = False, how: str = "measure",
             recheck: bool = False, complete: bool = False, progress: ProgressOption = None, precision: str = "fp32",
             error: Optional[float] = None, samples: SampleOption = None, keep: Keep = None) -> Plan:
        """Measures which backend runs which part the fastest, and returns the best plan. Costs are stored and found again.

        Ctrl-C, or a progress function that returns "stop", ends measuring with the best plan so far. A second Ctrl-C, or one
        before there is a plan, raises KeyboardInterrupt.

        Args:
            shapes: shapes of open inputs, for which the plan is then.
            threads: of a run; 0: as many as the process may use.
            backends: the names of those that may be used; None: all that are available.
            store: the file of measured costs; None: the user's own; False: no file.
            budget: seconds for all of it; None: no limit.
            compare: seconds for runs end to end; None: 3.
            regions: seconds for the search over regions that a library compiles as a whole; None: 30; 0: no such search.
            autotune: seconds for searching whole spaces of kernel configurations, of backends that have them; they are part of the
                budget. 0: no such search.
            seed: of the random inputs.
            previous: an earlier plan of this network, which is returned if it is faster.
            pin: nodes, operators or patterns that only one backend may run, as {"conv": "onednn"}.
            exclude: those that some backends must not run, as {"softmax": ["eigen", "onednn"]}.
            algorithms: "accurate", "direct" or "any": which kernels may compute otherwise than the operators say.
            memory: the most for the weights of the plan: bytes as an int, or a ratio of their own size as a float; None: 1.5.
            keep_non_finite: whether kernels must pass NaN and infinity on as the reference does.
            how: "measure"; "estimate": by stored costs alone; "priority": the first backend that can run a node.
            recheck: repeats runs end to end that the store knows.
            complete: measures every candidate, not only those that can be part of the best plan.
            progress: a function that gets a Progress and returns None, "stop" or "cancel"; True: a line on standard error. The
                function must not measure networks itself.
            precision: in which element types kernels may store and multiply float32 values: "fp32", "bf16", "int8" or "any".
            error: the most that the outputs may err for it, relative to those in float32; None: 0.01, which is 1 %.
            samples: inputs as the network will meet them, on which errors are measured and the plan is confirmed; at least three. A
                list of dictionaries by name, of tuples in the order of the inputs, or of arrays if there is one input; anything that
                yields these; one array of several samples, or a dictionary of such arrays; a function from a number, counted from 0,
                to a sample, or None at the end; or the path of a folder of .npy files, as ``collage tune --data`` takes it.
            keep: what stays in float32 nevertheless: names of nodes, in which "*" stands for any characters, operators as "kind:softmax",
                or chains of operators as "kind:matmul+softmax"; one or several.

        Raises:
            MisuseError: an option or a sample is wrong, or shapes are open.
            CancelledError: the progress function returned "cancel" before there was a plan.
            CollageError: no backend can run a part, or measuring failed.
        """
        network = self._fixed(shapes, "tuning")
        placing = Placing(how=how, threads=threads, backends=backends, store=store, budget=budget, compare=compare, regions=regions,
                          autotune=autotune, seed=seed, pin=pin, exclude=exclude, algorithms=algorithms, memory=memory,
                          keep_non_finite=keep_non_finite, recheck=recheck, complete=complete)
        if not (previous is None or isinstance(previous, Plan)):
            raise errors.MisuseError(f"previous is of type {type(previous).__name__}; give a collage.Plan")
        watch = Watch(progress, measures=placing.struct.how == _abi.HOW["measure"])
        if precision != "fp32":
            given = Samples(precision, error, samples, keep, network.inputs, watch)
            placing.struct.precision = ctypes.pointer(given.struct)
        elif error is not None or samples is not None or keep is not None:
            raise errors.MisuseError("error, samples and keep only affect plans of lower precision; add precision=\"bf16\", or leave them out")
        return network._placed(placing, previous, watch)

    def _place(self, placing: Placing, previous: Optional[Plan], progress: ProgressOption) -> Plan:
        return self._placed(placing, previous, Watch(progress, measures=placing.struct.how == _abi.HOW["measure"]))

    def _placed(self, placing: Placing, previous: Optional[Plan], watch: Watch) -> Plan:
        placing.struct.progress = watch.function
        with self._handle as pointer, watch.watching():
            if previous is None:
                handle = _handles.Handle("plan", "plan_place", pointer, placing.struct)
            else:
                with previous._handle as before:
                    placing.struct.previous = before
                    handle = _handles.Handle("plan", "plan_place", pointer, placing.struct)
        return Plan(self, handle)

    def load_plan(self, path: Union[str, os.PathLike[str]], *, shapes: Shapes = None, threads: int = 0,
                  accept_version_change: bool = False) -> Plan:
        """Reads a plan file of ``Plan.save`` or ``collage tune``.

        Args:
            path: the file.
            shapes: shapes of open inputs; None: those in the file.
            threads: that the plan must be for; 0: any number.
            accept_version_change: whether a backend may have another version than the plan was made with.

        Raises:
            MisuseError: there is no such file, or it does not fit the network, the machine or the libraries.
        """
        file = _options.path_of(path, "path")
        if self._is_open and shapes is None:
            shapes = _shapes_in(file, [port.name for port in self._inputs if port.is_open])
        network = self._fixed(shapes, "a plan")
        options = _abi.new(_abi.PlanLoadOptions, threads=_options.whole(threads, "threads"),
                           accept_version_change=bool(accept_version_change))
        with network._handle as pointer:
            return Plan(network, _handles.Handle("plan", "plan_load", pointer, file, options))

    def session(self, plan: Optional[Plan] = None, **options: Unpack[SessionOptions]) -> Session:
        """Makes a session, which runs the network. See ``collage.Session`` for the options."""
        from .session import Session
        return Session(self, plan, **options)

    def close(self) -> None:
        """Releases the network."""
        self._handle.close()

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<collage.Network ({'; '.join(map(str, self._inputs))}) -> ({'; '.join(map(str, self._outputs))})>"


def _with_shapes(declared: tuple[ports.Port, ...], shapes: Mapping[str, tuple[int, ...]]) -> tuple[ports.Port, ...]:
    """The inputs with the shapes that the user gives, which must fit what the model declares."""
    names = {port.name for port in declared}
    if unknown := [name for name in shapes if name not in names]:
        raise errors.MisuseError(f"shapes: the model has no input {', '.join(unknown)}; it takes {', '.join(map(str, declared))}")
    for port in declared:
        if port.name in shapes:
            arrays.check_shape(shapes[port.name], port, f"shapes: input {port.name}")
    return tuple(dataclasses.replace(port, shape=shapes.get(port.name, port.shape)) for port in declared)


def _agree(one: ports.Port, other: ports.Port) -> bool:
    """Whether two ports may be the same, of which extents are known here or there."""
    if one.type != other.type or one.shape is None or other.shape is None:
        return one.type == other.type
    return len(one.shape) == len(other.shape) and all(
        a == b or not isinstance(a, int) or not isinstance(b, int) for a, b in zip(one.shape, other.shape))


def _count(name: str, pointer: int) -> int:
    to = ctypes.c_size_t()
    _abi.call(name, pointer, ctypes.byref(to))
    return int(to.value)


def _shapes_in(file: bytes, names: list[str]) -> Shapes:
    """The shapes of these inputs in a plan file.

    Raises:
        MisuseError: there is no such file, or it has no such shapes. The library sees a plan only with a network of fixed shapes.
    """
    path = os.fsdecode(file)
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as text:
            inputs = json.load(text)["inputs"]
        shapes = {one["name"]: one["shape"] for one in inputs}
        return {name: shapes[name] for name in names}
    except OSError as fault:
        raise errors.MisuseError(f"{path}: cannot be read ({fault.strerror}); give the file of a plan") from fault
    except (ValueError, RecursionError) as fault:
        raise errors.MisuseError(f"{path}: is no JSON ({fault}); give a plan, as Plan.save or collage tune writes it") from fault
    except (KeyError, TypeError) as fault:
        raise errors.MisuseError(f"{path}: does not say for which shapes it is; give a plan, as Plan.save or collage tune writes "
                                 "it") from fault
