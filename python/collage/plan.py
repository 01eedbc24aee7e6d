"""Plans: which backend's kernel runs which part of a network."""
from __future__ import annotations

import dataclasses
import functools
import os
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _abi, _explain, _handles, _options

if TYPE_CHECKING:
    from .network import Network

__all__ = ["ErrorBound", "Plan"]


@dataclasses.dataclass(frozen=True)
class ErrorBound:
    """How far the outputs of a plan err because its kernels round values.

    Errors are the root mean square of the differences from the outputs in float32, divided by that of those outputs.

    Attributes:
        allowed: by the user.
        predicted: by the errors of single values; 0 if these need not be known.
        measured: on samples that were held back to confirm the plan.
        upper: the upper end of its confidence interval, at most `allowed`.
        samples: the number of samples that were held back.
    """

    allowed: float
    predicted: float
    measured: float
    upper: float
    samples: int


class Plan(_handles.Unpicklable):
    """A plan for one network of fixed shapes. ``Network.tune`` and ``Network.load_plan`` make plans; they do not change.

    Threads may share it. It is released by ``close()``, at the end of ``with``, or when nothing refers to it.
    """

    def __init__(self, network: Network, handle: _handles.Handle) -> None:
        self._network, self._handle = network, handle

    @property
    def network(self) -> Network:
        """The network that it is for, with fixed shapes."""
        return self._network

    @functools.cached_property
    def data(self) -> dict[str, Any]:
        """All about the plan: the JSON object of ``collage_plan_json``."""
        with self._handle as pointer:
            document: dict[str, Any] = _abi.document("plan_json", pointer)
        return document

    @property
    def threads(self) -> int:
        """The number of threads of a run."""
        return int(self.data["threads"])

    @property
    def cost_ms(self) -> Optional[float]:
        """The sum of the measured costs of its kernels in milliseconds; None or 0 if nothing was measured."""
        cost = self.data["cost_ms"]
        return None if cost is None else float(cost)

    @property
    def precision(self) -> str:
        """In which element types its kernels work, such as "fp32" or "bf16, error at most 1 %"."""
        return str(self.data["precision"])

    @property
    def error(self) -> Optional[ErrorBound]:
        """How far its outputs err; None if it rounds nothing."""
        if not (of := self.data.get("error")):
            return None
        return ErrorBound(of["most"], of["predicted"], of["measured"], of["upper"], of["samples"])

    @property
    def why_unrounded(self) -> Optional[str]:
        """Why it rounds nothing although ``tune`` allowed it; None if it does, if nothing was allowed, or if it is from a file."""
        return (self.data["placing"] or {}).get("why_unrounded")

    def explain(self) -> str:
        """The plan as text: backends, costs, runs end to end, and what was refused why."""
        return _explain.of_plan(self.data)

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes a plan file in one step: a failure leaves an existing file unchanged.

        Raises:
            CollageError: the file cannot be written.
        """
        to = _options.path_of(path, "path")
        with self._handle as pointer:
            _abi.call("plan_save", pointer, to)

    def close(self) -> None:
        """Releases the plan. Sessions of it go on."""
        self._handle.close()

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._handle.closed and "data" not in self.__dict__:
            return "<collage.Plan, closed>"
        cost = f"{_explain.ms(self.cost_ms)} ms" if self.cost_ms else "nothing was measured"
        return f"<collage.Plan of {self.data['network']}, {self.threads} thread{'s' if self.threads != 1 else ''}, {cost}>"
