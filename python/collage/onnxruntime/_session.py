"""InferenceSession: a model that is ready to run."""

from __future__ import annotations

import os
from concurrent.futures import CancelledError, Future
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

import collage
from collage._options import Loading
from collage.errors import ProgramEndsError
from collage.network import read

from . import _errors, _external, _notes, _profile
from ._binding import IOBinding
from ._inner import InnerSession
from ._model_file import Broken, ModelFile, ModelMetadata
from ._options import RunOptions, SessionOptions
from ._placing import Providers, Settings, provider_entries
from ._ports import Extent, Inputs, NodeArg, fixed_shape, is_fixed, named_shape
from ._values import OrtValue, update_all

_KEYWORDS = {"enable_fallback", "disabled_optimizers", "read_config_from_model"}
# Words of collage's sentences about models that it cannot run, and about graphs that are wrong.
_UNSUPPORTED = ("not supported", "this operator is not known", "is a sequence, map or optional")
_WRONG = ("nothing defines",)


def _source_of(path_or_bytes: Any) -> Union[str, bytes]:
    if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
        return bytes(path_or_bytes)
    if isinstance(path_or_bytes, (str, os.PathLike)):
        path = os.fspath(path_or_bytes)
        return os.fsdecode(path)
    serialize = "; give the result of its SerializeToString()" if hasattr(path_or_bytes, "SerializeToString") else ""
    raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'{serialize}")


class InferenceSession:
    """A model that is ready to run.

    Args:
        path_or_bytes: the path of an ONNX file, or its contents.
        sess_options: SessionOptions. Entries that begin with "collage." say how the session is placed.
        providers: names, or pairs of a name and a dict. All kernels run on the processor; others are ignored with a note.
        provider_options: a dict for each provider, if `providers` has only names.

    Raises NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented or InvalidArgument, as docs/python-onnxruntime.md says.
    """

    def __init__(self, path_or_bytes: Union[str, bytes, "os.PathLike[str]"], sess_options: Optional[SessionOptions] = None,
                 providers: Optional[Providers] = None, provider_options: Optional[Sequence[Mapping[Any, Any]]] = None,
                 **kwargs: Any) -> None:
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options is of type {type(sess_options).__name__}; give collage.onnxruntime.SessionOptions")
        for word in sorted(set(kwargs) - _KEYWORDS):
            _notes.once(f"InferenceSession: the argument '{word}' is not known, and is ignored")
        self._enable_fallback = int(kwargs.get("enable_fallback", 1)) == 1
        source = _source_of(path_or_bytes)
        # Names that ONNX Runtime's class has inside, and that programs read.
        self._model_path: Optional[str] = source if isinstance(source, str) else None
        self._model_bytes: Optional[bytes] = source if isinstance(source, bytes) else None
        self._sess_options = sess_options or SessionOptions()
        # Its description is read when a program wants it, perhaps in another folder.
        self._file = ModelFile(os.path.abspath(source) if isinstance(source, str) else source)
        entries = self._entries(providers, provider_options)
        entries.update(provider_entries(self._sess_options._providers, None))
        settings = Settings(self._sess_options, entries)
        self._profile = _profile.Profile(self._sess_options) if self._sess_options.enable_profiling else None
        label = "the model" if isinstance(source, bytes) else os.path.basename(source)
        network = self._load(source, settings)
        try:
            network, plan = settings.with_plan(network)
            self._describe(network)
            for note in network.notes:
                _notes.once(f"{label}: {note}")
            self._session = settings.make(network, plan, label)
        except collage.MisuseError as fault:
            raise _errors.made(_errors.InvalidArgument, str(fault)) from fault
        except collage.CollageError as fault:
            raise _errors.made(_errors.RuntimeException, str(fault)) from fault
        if isinstance(network._source, _external.Assembled):
            network._source.release()
        if self._profile is not None:
            self._profile.loaded()

    # ------------------------------------------------------------------------------------------------------ loading

    def _entries(self, providers: Optional[Providers], provider_options: Optional[Sequence[Mapping[Any, Any]]]) -> Dict[str, str]:
        """The entries of collage in the providers' options. ONNX Runtime makes a session without providers if they are wrong."""
        try:
            return provider_entries(providers, provider_options)
        except ValueError as fault:
            if not self._enable_fallback:
                raise
            _notes.once(f"InferenceSession: the providers are ignored: {fault}")
            return {}

    def _load(self, given: Union[str, bytes], settings: Settings) -> collage.Network:
        """Reads the model, with the extents that the options fix."""
        options = self._sess_options
        try:
            source = _external.source_of(given, options._entries.get(_external.ENTRY), options._files)
            network = read(source, Loading(None, None))
            self._refuse_unknown(network, settings)
            wanted = {port.name: self._with_overrides(port.name, port.shape, settings) for port in network.inputs}
            fixed = {port.name: fixed_shape(wanted[port.name]) for port in network.inputs
                     if wanted[port.name] != port.shape and is_fixed(wanted[port.name])}
            # Extents of an input of which others stay open are not the library's to know. Runs are checked here.
            self._checks_shapes = any(wanted[port.name] != port.shape and port.name not in fixed for port in network.inputs)
            if fixed and network.is_open:
                whole = all(map(is_fixed, wanted.values()))
                network = network.with_shapes(fixed) if whole else read(source, Loading(fixed, None))
            elif network.is_open and all(map(is_fixed, wanted.values())):
                self._probe(network)
        except collage.CollageError as fault:
            raise self._unreadable(fault) from fault
        self._wanted_shapes = wanted
        self._extents = {**{name: shape[0] for name, shape in settings.shapes.items() if len(shape) == 1},
                         **self._sess_options._by_name}
        return network

    def _describe(self, network: collage.Network) -> None:
        """Keeps the inputs and outputs, as the options fix them."""
        open_shapes = self._wanted_shapes if network.is_open else {}
        self._inputs_meta = [NodeArg(port.name, port.type, port.dtype, open_shapes.get(port.name, port.shape)) for port in network.inputs]
        self._outputs_meta = [NodeArg(port.name, port.type, port.dtype, named_shape(port.shape, self._extents)) for port in network.outputs]
        self._output_names = [arg.name for arg in self._outputs_meta]
        self._feeds = Inputs(self._inputs_meta)
        self._checks_shapes = self._checks_shapes and network.is_open

    def _with_overrides(self, name: str, shape: Optional[Tuple[Extent, ...]], settings: Settings) -> Optional[Tuple[Extent, ...]]:
        """The shape of an input after the options' extents are put in."""
        given = settings.shapes.get(name)
        if shape is None:
            return shape if given is None or None in given else given
        options = self._sess_options
        extents = list(named_shape(shape, options._by_name) or ())
        if options._by_denotation:
            words = self._file.denotations().get(name, []) if self._exists() else []
            for at, word in enumerate(words[:len(extents)]):
                if word in options._by_denotation and not isinstance(extents[at], int):
                    extents[at] = options._by_denotation[word]
        extents = list(named_shape(tuple(extents), {key: value[0] for key, value in settings.shapes.items() if len(value) == 1}) or ())
        if given is not None and (len(given) != 1 or len(shape) == 1):
            if len(given) != len(extents):
                raise _errors.made(_errors.InvalidArgument, f"collage.shapes gives {name} {len(given)} extents, and it has {len(extents)}")
            for at, extent in enumerate(given):
                if extent is not None and isinstance(shape[at], int) and shape[at] != extent:
                    raise _errors.made(_errors.InvalidArgument, f"collage.shapes gives extent {at} of {name} as {extent}, and the "
                                                                f"model fixes it to {shape[at]}")
                extents[at] = extents[at] if extent is None else extent
        return tuple(extents)

    def _refuse_unknown(self, network: collage.Network, settings: Settings) -> None:
        """Refuses names in collage.shapes that are neither inputs nor open extents of inputs."""
        known = {port.name for port in network.inputs}
        known.update(extent for port in network.inputs for extent in port.shape or () if isinstance(extent, str))
        for name in settings.shapes:
            if name not in known:
                raise _errors.made(_errors.InvalidArgument, f"collage.shapes names '{name}', which is no input and no open extent; "
                                                            f"there are {', '.join(sorted(known))}")

    def _probe(self, network: collage.Network) -> None:
        """Raises what is wrong with a model of fixed inputs. Its outputs' shapes may depend on data, which is not wrong."""
        try:
            network.with_shapes({port.name: fixed_shape(port.shape) for port in network.inputs})
        except collage.CollageError as fault:
            if any(words in str(fault) for words in _UNSUPPORTED + _WRONG):
                raise

    def _exists(self) -> bool:
        return self._model_path is None or os.path.exists(self._model_path)

    def _unreadable(self, fault: collage.CollageError) -> Exception:
        """The exception that ONNX Runtime has for a model that cannot be loaded."""
        name = "the model" if self._model_path is None else self._model_path
        if not self._exists():
            return _errors.made(_errors.NoSuchFile, f"Load model from {name} failed. File doesn't exist")
        sentence = str(fault)
        if not self._file.is_protobuf():
            try:
                if self._file.is_ort_format():
                    return _errors.made(_errors.NotImplemented, f"{name} is in ONNX Runtime's own format, which cannot be read; give the "
                                                                "ONNX file")
            except OSError:
                pass
            return _errors.made(_errors.InvalidProtobuf, f"Protobuf parsing failed. {sentence}")
        if not isinstance(fault, collage.MisuseError):
            return _errors.made(_errors.RuntimeException, sentence)
        return _errors.made(_errors.NotImplemented if _is_unsupported(sentence) else _errors.InvalidGraph, sentence)

    # ---------------------------------------------------------------------------------------------- what it describes

    def get_inputs(self) -> List[NodeArg]:
        """The inputs that a run takes, in the order of the file."""
        return self._inputs_meta

    def get_outputs(self) -> List[NodeArg]:
        """The outputs, in the order of the file."""
        return self._outputs_meta

    def get_overridable_initializers(self) -> List[NodeArg]:
        """Always empty: inputs with a value in the file are constants here."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """What the file says about the model."""
        try:
            return self._file.metadata()
        except Broken:
            return ModelMetadata()

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._sess_options

    def get_providers(self) -> List[str]:
        """["CPUExecutionProvider"]: all kernels run on the processor."""
        return ["CPUExecutionProvider"]

    def get_provider_options(self) -> Dict[str, Dict[str, str]]:
        """{"CPUExecutionProvider": {}}."""
        return {"CPUExecutionProvider": {}}

    def set_providers(self, providers: Optional[Providers] = None,
                      provider_options: Optional[Sequence[Mapping[Any, Any]]] = None) -> None:
        """Checks the names as the constructor does. The session stays as it is."""
        provider_entries(providers, provider_options)

    def disable_fallback(self) -> None:
        """Without effect: there is one provider."""

    def enable_fallback(self) -> None:
        """Without effect: there is one provider."""

    @property
    def _sess(self) -> InnerSession:
        return InnerSession(self)

    @property
    def _model_meta(self) -> ModelMetadata:
        return self.get_modelmeta()

    @property
    def _providers(self) -> List[str]:
        return self.get_providers()

    @property
    def _provider_options(self) -> Dict[str, Dict[str, str]]:
        return self.get_provider_options()

    @property
    def _fallback_providers(self) -> List[str]:
        return self.get_providers()

    @property
    def _overridable_initializers(self) -> List[NodeArg]:
        return self.get_overridable_initializers()

    @property
    def _profiling_start_time_ns(self) -> int:
        return self.get_profiling_start_time_ns()

    def get_tuning_results(self) -> List[Any]:
        """[]: such results are of other providers. Plans keep what collage measures."""
        return []

    def set_tuning_results(self, results: Sequence[Any], *, error_on_invalid: bool = False) -> None:
        """Without effect: such results are of other providers."""

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Without effect: such options are of other providers."""

    @property
    def collage_session(self) -> collage.Session:
        """The session of collage that runs, for what ONNX Runtime's interface lacks, such as explain()."""
        return self._session

    # -------------------------------------------------------------------------------------------------------- running

    def run(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
            run_options: Optional[RunOptions] = None) -> List[np.ndarray]:
        """Runs the model.

        Args:
            output_names: the outputs to return, in this order; None or an empty list: all of them.
            input_feed: the inputs by their names. An array of another type than the model's is refused.
            run_options: RunOptions, whose `terminate` ends the run.

        Returns arrays that the caller owns. Raises ValueError if inputs are missing, InvalidArgument if one does not fit or an
        output is not known, and Fail if the run was ended or a kernel failed.
        """
        names = self._wanted(output_names)
        results = self._results(self._feeds.arrays(input_feed, self._why_unknown), run_options)
        return _each_once(names, results)

    def run_with_ort_values(self, output_names: Optional[Sequence[str]], input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: Optional[RunOptions] = None) -> List[OrtValue]:
        """The same with OrtValues."""
        names = self._wanted(output_names)
        results = self._results(self._feeds.arrays(input_dict_ort_values, self._why_unknown), run_options)
        return [self._value(name, array) for name, array in zip(names, _each_once(names, results))]

    def run_with_ortvaluevector(self, run_options: Optional[RunOptions], feed_names: Sequence[str], feeds: Sequence[OrtValue],
                                fetch_names: Sequence[str], fetches: List[OrtValue], fetch_devices: Sequence[Any]) -> None:
        """The same with rows of names and values. `fetches` is filled; if it has values already, results are written to them."""
        if len(feed_names) != len(feeds):
            raise _errors.made(_errors.InvalidArgument, f"feed names has {len(feed_names)} elements, but feed has {len(feeds)}")
        results = self.run_with_ort_values(fetch_names, dict(zip(feed_names, feeds)), run_options)
        if not fetches:
            fetches.extend(results)
        elif len(fetches) == len(results):
            update_all(fetches, results)
        else:
            raise RuntimeError(f"there are {len(fetches)} values for {len(results)} outputs; give one for each, or an empty OrtValueVector")

    def run_async(self, output_names: Optional[Sequence[str]], input_feed: Mapping[str, Any],
                  callback: Callable[[List[np.ndarray], Any, str], Any], user_data: Any,
                  run_options: Optional[RunOptions] = None) -> None:
        """Starts a run and returns. Another thread calls callback(results, user_data, error); error is "" if all went well.
        This thread calls it where the shapes of the arrays are refused.

        The arrays must not change until then.
        """
        names = self._wanted(output_names)
        arrays = self._feeds.arrays(input_feed, self._why_unknown)
        limits: Dict[str, Any] = {} if run_options is None else {"stop": _stop_of(run_options)}

        def done(future: "Future[Dict[str, np.ndarray]]") -> None:
            try:
                results = future.result()
                outcome: Tuple[List[np.ndarray], str] = (_each_once(names, results), "")
            except collage.CollageError as fault:
                outcome = ([], str(self._failed(fault, arrays)))
            except CancelledError:
                outcome = ([], "the session was closed before the run began")
            except Exception as fault:  # the caller waits for its function
                outcome = ([], f"{type(fault).__name__}: {fault}")
            callback(outcome[0], user_data, outcome[1])

        if self._checks_shapes:
            try:
                self._feeds.check_shapes(arrays)
            except _errors.InvalidArgument as fault:
                callback([], user_data, str(fault))
                return
        self._session.run_async(arrays, **limits).add_done_callback(done)

    def io_binding(self) -> IOBinding:
        """A binding of inputs and outputs to memory."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Optional[RunOptions] = None) -> None:
        """Runs with bound inputs, and writes the bound outputs."""
        if not isinstance(iobinding, IOBinding):
            raise TypeError(f"iobinding is of type {type(iobinding).__name__}; give what io_binding() returns")
        iobinding._run(self, run_options)

    def _wanted(self, output_names: Optional[Sequence[str]]) -> Sequence[str]:
        if output_names is None:
            return self._output_names
        if isinstance(output_names, str):
            raise TypeError(f"output_names is the text '{output_names}'; give a list of names, as [\"{output_names}\"]")
        try:
            output_names = list(output_names)
        except TypeError:
            raise TypeError(f"output_names is of type {type(output_names).__name__}; give a list of names, or None") from None
        if not output_names:
            return self._output_names
        for name in output_names:
            if name not in self._output_names:
                raise _errors.made(_errors.InvalidArgument, f"Invalid output name:{name}; the model has "
                                                            f"{', '.join(self._output_names)}")
        return output_names

    def _why_unknown(self, name: str) -> str:
        names = ", ".join(arg.name for arg in self._inputs_meta) or "none"
        try:
            if name in self._file.overridable():
                return f"Invalid input name: {name} has a value in the model, which is a constant here; leave it out of the feed"
        except (Broken, OSError):
            pass
        return f"Invalid input name: {name}; the model has {names}"

    def _results(self, arrays: Dict[str, np.ndarray], run_options: Optional[RunOptions], **words: Any) -> Dict[str, np.ndarray]:
        if self._checks_shapes:
            self._feeds.check_shapes(arrays)
        if run_options is not None:
            words["stop"] = _stop_of(run_options)
        try:
            if self._profile is not None:
                return self._profile.run(self._session, arrays, words)
            return self._session.run(arrays, **words)
        except collage.CollageError as fault:
            raise self._failed(fault, arrays) from fault

    def _failed(self, fault: collage.CollageError, arrays: Dict[str, np.ndarray]) -> Exception:
        """The exception that ONNX Runtime has for a run that failed."""
        if isinstance(fault, ProgramEndsError):
            return _errors.made(_errors.Fail, str(fault))
        if isinstance(fault, collage.CancelledError):
            return _errors.made(_errors.Fail, "Exiting due to terminate flag being set to true.")
        if isinstance(fault, collage.MisuseError):
            try:
                self._feeds.check_shapes(arrays)
            except _errors.InvalidArgument as sentence:
                return sentence
            # A model of open shapes is only looked at as a whole when shapes are known.
            return _errors.made(_errors.NotImplemented if _is_unsupported(str(fault)) else _errors.InvalidArgument, str(fault))
        return _errors.made(_errors.Fail, str(fault))

    def _value(self, name: str, array: np.ndarray) -> OrtValue:
        element_type = self._outputs_meta[self._output_names.index(name)]._type_name
        return OrtValue(array, element_type)

    # ------------------------------------------------------------------------------------------------------ profiling

    def end_profiling(self) -> str:
        """Writes the profile of SessionOptions.enable_profiling, and returns the name of its file; "" if there is none."""
        profile, self._profile = self._profile, None
        return "" if profile is None else profile.write()

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began, by time.monotonic_ns(); 0 if it did not."""
        return 0 if self._profile is None else self._profile.start_ns


def _stop_of(run_options: Any) -> collage.StopFlag:
    if not isinstance(run_options, RunOptions):
        raise TypeError(f"run_options is of type {type(run_options).__name__}; give collage.onnxruntime.RunOptions")
    stop: collage.StopFlag = run_options._stop
    return stop


def _each_once(names: Sequence[str], results: Mapping[str, np.ndarray]) -> List[np.ndarray]:
    """The results in this order. One that is named again is a copy, so that every array is the caller's own."""
    left = dict(results)
    return [left.pop(name) if name in left else results[name].copy() for name in names]


def _is_unsupported(sentence: str) -> bool:
    return any(words in sentence for words in _UNSUPPORTED)
