"""The inner objects of ONNX Runtime's Python classes, which programs reach for: `session._sess` and `binding._iobinding`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np

from ._model_file import ModelMetadata
from ._options import RunOptions, SessionOptions
from ._ports import NodeArg
from ._values import OrtDevice, OrtValue, OrtValueVector

if TYPE_CHECKING:
    from ._binding import IOBinding
    from ._session import InferenceSession


class InnerSession:
    """A session as ONNX Runtime has it inside. Its functions take their arguments in another order than those of InferenceSession."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    @property
    def inputs_meta(self) -> List[NodeArg]:
        """The inputs that a run takes."""
        return self._session.get_inputs()

    @property
    def outputs_meta(self) -> List[NodeArg]:
        """The outputs."""
        return self._session.get_outputs()

    @property
    def overridable_initializers(self) -> List[NodeArg]:
        """[]: weights are constants."""
        return self._session.get_overridable_initializers()

    @property
    def model_meta(self) -> ModelMetadata:
        """The description of the model."""
        return self._session.get_modelmeta()

    @property
    def session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._session.get_session_options()

    @property
    def get_profiling_start_time_ns(self) -> int:
        """When profiling began. ONNX Runtime has no function here either."""
        return self._session.get_profiling_start_time_ns()

    def get_providers(self) -> List[str]:
        """["CPUExecutionProvider"]."""
        return self._session.get_providers()

    def get_provider_options(self) -> Dict[str, Dict[str, str]]:
        """{"CPUExecutionProvider": {}}."""
        return self._session.get_provider_options()

    def get_tuning_results(self) -> List[Any]:
        """[]: such results are of other providers."""
        return self._session.get_tuning_results()

    def set_tuning_results(self, results: Sequence[Any], error_on_invalid: bool = False) -> None:
        """Without effect."""

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Without effect."""

    def end_profiling(self) -> str:
        """The name of the profile's file."""
        return self._session.end_profiling()

    def run(self, output_names: Sequence[str], input_feed: Mapping[str, Any], run_options: Optional[RunOptions]) -> List[np.ndarray]:
        """As InferenceSession.run."""
        return self._session.run(output_names, input_feed, run_options)

    def run_with_ort_values(self, input_feed: Mapping[str, OrtValue], output_names: Sequence[str],
                            run_options: Optional[RunOptions]) -> OrtValueVector:
        """As InferenceSession.run_with_ort_values, with the inputs first."""
        return OrtValueVector(self._session.run_with_ort_values(output_names, input_feed, run_options))

    def run_async(self, output_names: Sequence[str], input_feed: Mapping[str, Any],
                  callback: Callable[[List[np.ndarray], Any, str], Any], user_data: Any, run_options: Optional[RunOptions]) -> None:
        """As InferenceSession.run_async."""
        self._session.run_async(output_names, input_feed, callback, user_data, run_options)

    def run_with_ortvaluevector(self, run_options: Optional[RunOptions], feed_names: Sequence[str], feeds: Sequence[OrtValue],
                                fetch_names: Sequence[str], fetches: List[OrtValue], fetch_devices: Sequence[Any]) -> None:
        """As InferenceSession.run_with_ortvaluevector."""
        self._session.run_with_ortvaluevector(run_options, feed_names, feeds, fetch_names, fetches, fetch_devices)

    def run_with_iobinding(self, iobinding: SessionIOBinding, run_options: Optional[RunOptions]) -> None:
        """As InferenceSession.run_with_iobinding, with an inner binding."""
        self._session.run_with_iobinding(iobinding._binding, run_options)


class SessionIOBinding:
    """A binding as ONNX Runtime has it inside, with devices in place of their names. IOBinding holds what is bound.

    Args:
        session: an inner session, or the session around it.
        binding: whose inner binding this is; None: a new one.
    """

    def __init__(self, session: Union[InnerSession, InferenceSession], binding: Optional[IOBinding] = None) -> None:
        outer = session._session if isinstance(session, InnerSession) else session
        self._binding = outer.io_binding() if binding is None else binding

    def bind_input(self, name: str, value_or_device: Any, element_type: Any = None, shape: Optional[Sequence[int]] = None,
                   buffer_ptr: int = 0) -> None:
        """Binds an array, or memory by its device, type, shape and address."""
        if not isinstance(value_or_device, OrtDevice):
            self._binding.bind_cpu_input(name, value_or_device)
        elif shape is None:
            raise TypeError("memory is bound by its device, type, shape and address; give all four")
        else:
            self._binding.bind_input(name, "cpu", 0, element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value."""
        self._binding.bind_ortvalue_input(name, ortvalue)

    def bind_output(self, name: str, device: OrtDevice, element_type: Any = None, shape: Optional[Sequence[int]] = None,
                    buffer_ptr: Optional[int] = None) -> None:
        """Binds an output: to memory by its address, or, without an address, to memory that the next run makes."""
        self._binding.bind_output(name, device, 0, element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value, to whose memory runs write."""
        self._binding.bind_ortvalue_output(name, ortvalue)

    def clear_binding_inputs(self) -> None:
        """Forgets the inputs."""
        self._binding.clear_binding_inputs()

    def clear_binding_outputs(self) -> None:
        """Forgets the outputs."""
        self._binding.clear_binding_outputs()

    def synchronize_inputs(self) -> None:
        """Without effect."""

    def synchronize_outputs(self) -> None:
        """Without effect."""

    def get_outputs(self) -> OrtValueVector:
        """The outputs of the last run, in the order in which they were bound."""
        return self._binding.get_outputs_as_ortvaluevector()

    def copy_outputs_to_cpu(self) -> List[np.ndarray]:
        """Copies of the outputs of the last run."""
        return self._binding.copy_outputs_to_cpu()
