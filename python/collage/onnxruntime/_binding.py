"""IOBinding: inputs and outputs that stay in the caller's memory from run to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Set, Tuple, Union

import numpy as np

import collage
from collage import arrays

from . import _types
from ._inner import SessionIOBinding
from ._options import RunOptions
from ._ports import NodeArg, array_for
from ._values import OrtDevice, OrtValue, OrtValueVector, at_address, only_cpu

if TYPE_CHECKING:
    from ._session import InferenceSession


class IOBinding:
    """Inputs and outputs of a session, bound to memory of the processor.

    An output without memory gets some in the first run. As in ONNX Runtime, later runs write there, until the output is bound
    again or its shape changes. Outputs are returned in the order in which they were bound.
    """

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._args: Dict[str, NodeArg] = {arg.name: arg for arg in session.get_inputs()}
        self._out: Dict[str, NodeArg] = {arg.name: arg for arg in session.get_outputs()}
        self._inputs: Dict[str, Any] = {}
        self._outputs: Dict[str, Optional[OrtValue]] = {}
        self._ours: Set[str] = set()  # outputs whose memory is made here
        self._results: List[Any] = []
        self._memory: Optional[collage.Binding] = None
        self._changed, self._needs_copies = True, False

    # -------------------------------------------------------------------------------------------------------- inputs

    def _bind_input(self, name: str, value: Any) -> None:
        if name not in self._args:
            raise RuntimeError(f"Failed to find NodeArg with name: {name}; the inputs are {', '.join(self._args) or 'none'}")
        self._inputs[name] = array_for(self._args[name], value)
        self._changed, self._needs_copies = True, False

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Binds an array. Runs read it in place, so later changes show; an array that is not dense is copied at each run."""
        self._bind_input(name, arr_on_cpu)

    def bind_input(self, name: str, device_type: Union[str, OrtDevice], device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        """Binds memory by its address. It must be dense, and the caller keeps it alive."""
        only_cpu(device_type)
        kind = _types.element_type(element_type)
        self._bind_input(name, OrtValue(at_address(buffer_ptr, kind, shape), kind))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value."""
        self._bind_input(name, ortvalue)

    def clear_binding_inputs(self) -> None:
        """Forgets the inputs."""
        self._inputs.clear()

    def synchronize_inputs(self) -> None:
        """Without effect: the memory is the processor's."""

    # ------------------------------------------------------------------------------------------------------- outputs

    def bind_output(self, name: str, device_type: Union[str, OrtDevice] = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Optional[Sequence[int]] = None, buffer_ptr: Optional[int] = None) -> None:
        """Binds an output: to memory by its address, or, without an address, to memory that the next run makes."""
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
        (self._ours.add if value is None else self._ours.discard)(name)
        self._changed, self._needs_copies = True, False

    def clear_binding_outputs(self) -> None:
        """Forgets the outputs."""
        self._outputs.clear()
        self._memory = None  # it would still write to the outputs that were bound
        self._changed, self._results = True, []

    def synchronize_outputs(self) -> None:
        """Without effect: the memory is the processor's."""

    def get_outputs(self) -> List[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """The same as OrtValueVector, which is a list too."""
        return OrtValueVector(self._results)

    @property
    def _iobinding(self) -> SessionIOBinding:
        # Programs reach for the inner object of ONNX Runtime's class.
        return SessionIOBinding(self._session, self)

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
        if run_options is not None or session._profile is not None or not self._run_in_place():
            self._run_and_copy(run_options)

    def _run_in_place(self) -> bool:
        """Runs in the bound memory itself, which needs fixed shapes and dense memory. False: nothing ran."""
        own = self._session.collage_session
        if own.is_open or self._needs_copies:
            return False
        if self._changed:
            if self._memory is None:
                self._memory = own.bind()
            try:
                for name, array in self._inputs.items():
                    self._memory.inputs[name] = array
                for name, value in self._outputs.items():
                    if value is None:
                        arg = self._out[name]
                        value = self._outputs[name] = OrtValue(arrays.empty(_fixed(arg), arg._dtype), arg._type_name)
                    self._memory.outputs[name] = value.numpy()
            except collage.MisuseError:  # wrong shapes, memory that overlaps or is not dense: the other way says or mends it
                self._needs_copies = True
                return False
            self._changed = False
        try:
            assert self._memory is not None
            self._memory.run()
        except collage.MisuseError:
            self._needs_copies = True
            return False
        except collage.CollageError as fault:
            raise RuntimeError(f"Error in execution: {fault}") from fault
        self._results = list(self._outputs.values())
        return True

    def _run_and_copy(self, run_options: Optional[RunOptions]) -> None:
        try:
            found = self._session._results(self._inputs, run_options, copy=False)
        except RuntimeError:
            raise
        except Exception as fault:  # ONNX Runtime has one type of exception here
            raise RuntimeError(f"Error in execution: {fault}") from fault
        for name, value in self._outputs.items():  # before any of them is written
            if value is not None and name not in self._ours and list(found[name].shape) != value.shape():
                raise RuntimeError(f"Error in execution: The output OrtValue provided for output '{name}' has shape "
                                   f"{value.shape()} but the computed output shape for this run is {list(found[name].shape)}")
        for name, value in self._outputs.items():
            array = found[name]
            if value is None or list(array.shape) != value.shape():
                self._outputs[name] = OrtValue(array.copy(), self._out[name]._type_name)
            else:
                np.copyto(value.numpy(), array)
        self._results = list(self._outputs.values())


def _fixed(arg: NodeArg) -> Tuple[int, ...]:
    """The shape of an output of a session whose shapes are fixed."""
    return tuple(extent for extent in arg.shape if isinstance(extent, int))
