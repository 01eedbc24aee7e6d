"""IOBinding: inputs and outputs that stay in the caller's memory from run to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

import numpy as np

from . import _types
from ._ports import NodeArg, array_for
from ._values import OrtValue, at_address, only_cpu

if TYPE_CHECKING:
    from ._options import RunOptions
    from ._session import InferenceSession


class IOBinding:
    """Inputs and outputs of a session, bound to memory of the processor.

    Outputs without memory get new memory in each run. They are returned in the order in which they were bound.
    """

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._args: Dict[str, NodeArg] = {arg.name: arg for arg in session.get_inputs()}
        self._out: Dict[str, NodeArg] = {arg.name: arg for arg in session.get_outputs()}
        self._inputs: Dict[str, Any] = {}
        self._outputs: Dict[str, Optional[OrtValue]] = {}
        self._results: List[OrtValue] = []

    # -------------------------------------------------------------------------------------------------------- inputs

    def _arg(self, name: str) -> NodeArg:
        if name not in self._args:
            raise RuntimeError(f"Failed to find NodeArg with name: {name}; the inputs are {', '.join(self._args) or 'none'}")
        return self._args[name]

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Binds an array. Runs read it in place, so later changes show; an array that is not dense is copied at each run."""
        self._inputs[name] = array_for(self._arg(name), arr_on_cpu)

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        """Binds memory by its address. It must be dense, and the caller keeps it alive."""
        only_cpu(device_type)
        arg = self._arg(name)
        value = OrtValue(at_address(buffer_ptr, _types.element_type(element_type), shape), _types.element_type(element_type))
        self._inputs[name] = array_for(arg, value)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value."""
        self._inputs[name] = array_for(self._arg(name), ortvalue)

    def clear_binding_inputs(self) -> None:
        """Forgets the inputs."""
        self._inputs.clear()

    def synchronize_inputs(self) -> None:
        """Without effect: the memory is the processor's."""

    # ------------------------------------------------------------------------------------------------------- outputs

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Optional[Sequence[int]] = None, buffer_ptr: Optional[int] = None) -> None:
        """Binds an output: to memory by its address, or, without an address, to new memory in each run."""
        only_cpu(device_type)
        if buffer_ptr is None:
            self._bind(name, None)
            return
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        kind = _types.element_type(element_type)
        self._bind(name, OrtValue(at_address(buffer_ptr, kind, shape), kind))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value, to whose memory runs write."""
        if not ortvalue.numpy().flags.writeable:
            raise RuntimeError(f"output '{name}' is bound to memory that cannot be written; bind another value")
        self._bind(name, ortvalue)

    def _bind(self, name: str, value: Optional[OrtValue]) -> None:
        if name not in self._out:
            raise RuntimeError(f"Invalid output name: {name}; the outputs are {', '.join(self._out)}")
        if value is not None and value.data_type() != self._out[name].type:
            raise RuntimeError(f"Unexpected output data type. Actual: ({value.data_type()}) , expected: ({self._out[name].type}) for "
                               f"output '{name}'")
        self._outputs[name] = value

    def clear_binding_outputs(self) -> None:
        """Forgets the outputs."""
        self._outputs.clear()
        self._results = []

    def synchronize_outputs(self) -> None:
        """Without effect: the memory is the processor's."""

    def get_outputs(self) -> List[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> List[np.ndarray]:
        """Copies of the outputs of the last run."""
        return [value.numpy().copy() for value in self._results]

    # ------------------------------------------------------------------------------------------------------- running

    def _run(self, session: InferenceSession, run_options: Optional[RunOptions]) -> None:
        if session is not self._session:
            raise ValueError("IOBinding must be used with the session that created it.")
        if not self._outputs:
            raise RuntimeError("Error in execution: At least one output should be requested; bind one by bind_output")
        missing = [name for name in self._args if name not in self._inputs]
        if missing:
            raise RuntimeError(f"Error in execution: inputs are not bound: {', '.join(missing)}")
        try:
            found = session._results(self._inputs, run_options, copy=False)
        except RuntimeError:
            raise
        except Exception as fault:  # ONNX Runtime has one type of exception here
            raise RuntimeError(f"Error in execution: {fault}") from fault
        results = []
        for name, value in self._outputs.items():
            array = found[name]
            if value is None:
                value = OrtValue(array.copy(), self._out[name]._type_name)
            elif list(array.shape) != value.shape():
                raise RuntimeError(f"Error in execution: The output OrtValue provided for output '{name}' has shape "
                                   f"{value.shape()} but the computed output shape for this run is {list(array.shape)}")
            else:
                np.copyto(value.numpy(), array)
            results.append(value)
        self._results = results
