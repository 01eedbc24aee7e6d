"""How a session is placed: what the options of ONNX Runtime's interface say about it, and what they leave to a default."""

from __future__ import annotations

import logging
import os
import pathlib
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import collage

from . import _errors, _notes
from ._options import ExecutionMode, GraphOptimizationLevel, SessionOptions

# Seconds for measuring a model of fixed shapes at its first start: for each operator, the least and the most.
EACH_S, LEAST_S, MOST_S = 0.1, 1.0, 10.0
# A start that takes longer than these seconds says why.
PATIENCE_S = 2.0

_KEYS = ("collage.backends", "collage.budget_s", "collage.how", "collage.keep_non_finite", "collage.plan", "collage.shapes",
         "collage.store")
_HOW = ("measure", "estimate", "priority")
# Those that make sense for all models of a process. Environment variables set them for programs that cannot be changed.
_FROM_ENVIRONMENT = ("collage.backends", "collage.budget_s", "collage.how", "collage.store")
# Entries that would make a session of another kind. Without them, its results would not be those that the program expects.
_REFUSED = {"session.load_model_format": ("ORT", "models in ONNX Runtime's own format cannot be read; give the ONNX file"),
            "session.disable_cpu_ep_fallback": ("1", "there are kernels for the processor only; leave this entry out")}

Providers = Sequence[Union[str, Tuple[str, Mapping[Any, Any]]]]


def _pairs(providers: Optional[Providers], provider_options: Optional[Sequence[Mapping[Any, Any]]]) -> List[
        Tuple[str, Mapping[Any, Any]]]:
    """The names of providers with their options. Raises ValueError if one or the other is no such list."""
    if providers is None:
        providers = []
    if isinstance(providers, (str, bytes)) or not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence: a list of names, or of pairs of a name and a dict")
    pairs: List[Tuple[str, Mapping[Any, Any]]] = []
    if provider_options is not None:
        if isinstance(provider_options, (str, bytes)) or not isinstance(provider_options, Sequence):
            raise ValueError("'provider_options' should be a sequence: a list with a dict for each provider")
        if len(provider_options) != len(providers):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
    for at, given in enumerate(providers):
        if isinstance(given, str):
            pairs.append((given, provider_options[at] if provider_options else {}))
        elif isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and provider_options is None:
            pairs.append(given)
        else:
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
    for name, options in pairs:
        if not isinstance(options, Mapping):
            raise ValueError(f"the options of '{name}' must be a dict")
    return pairs


def check_and_normalize_provider_args(providers: Optional[Providers], provider_options: Optional[Sequence[Mapping[Any, Any]]],
                                      available_provider_names: Sequence[str]) -> Tuple[List[str], List[Dict[str, str]]]:
    """The names and the options of providers, each name once and the options as text."""
    found: Dict[str, Dict[str, str]] = {}
    for name, options in _pairs(providers, provider_options):
        if name not in available_provider_names:
            _notes.once(f"'{name}' is not among the available providers: {', '.join(available_provider_names)}")
        found.setdefault(name, {str(key): str(value) for key, value in options.items()})
    return list(found), list(found.values())


def provider_entries(providers: Optional[Providers], provider_options: Optional[Sequence[Mapping[Any, Any]]]) -> Dict[str, str]:
    """Checks a list of providers, and returns the options in it whose keys begin with "collage.".

    Other providers than the processor's are left out with a note.
    """
    entries: Dict[str, str] = {}
    for name, options in _pairs(providers, provider_options):
        if name != "CPUExecutionProvider":
            _notes.once(f"'{name}' is ignored: collage runs all kernels on the processor here")
        entries.update({str(key): str(value) for key, value in options.items() if str(key).startswith("collage.")})
    return entries


class Settings:
    """How to place, as read from the options."""

    def __init__(self, options: SessionOptions, entries: Mapping[str, str]) -> None:
        for key, (value, why) in _REFUSED.items():
            if options._entries.get(key) == value:
                raise _errors.made(_errors.NotImplemented, f"{key}={value}: {why}")
        if options.optimized_model_filepath:
            raise _errors.made(_errors.NotImplemented, f"optimized_model_filepath: {options.optimized_model_filepath} cannot be written: "
                                                       "collage has no optimised model file; keep a plan instead (collage.plan)")
        if options.execution_mode == ExecutionMode.ORT_PARALLEL or options.inter_op_num_threads > 1:
            _notes.once("operators do not run side by side: each uses all threads of intra_op_num_threads", logging.INFO)
        if options.intra_op_num_threads < 0:
            raise _errors.made(_errors.InvalidArgument, "intra_op_num_threads is negative; give 0 for as many threads as are useful")
        own = {key: os.environ[name] for key in _FROM_ENVIRONMENT
               if os.environ.get(name := "COLLAGE_ORT_" + key[len("collage."):].upper())}
        own.update((key, value) for key, value in options._entries.items() if key.startswith("collage."))
        own.update(entries)
        unknown = sorted(set(own) - set(_KEYS))
        if unknown:
            raise _errors.made(_errors.InvalidArgument, f"'{unknown[0]}' is no entry of collage; there are {', '.join(_KEYS)}")
        self.plan = own.get("collage.plan")
        self.how = own.get("collage.how")
        self.store: Union[str, bool, None] = own.get("collage.store")
        if self.store == "none":
            self.store = False  # measured costs are kept nowhere
        self.backends = own.get("collage.backends")
        keep = own.get("collage.keep_non_finite", "0")
        if keep not in ("0", "1"):
            raise _errors.made(_errors.InvalidArgument, f"collage.keep_non_finite is '{keep}', but must be 0 or 1")
        self.keep_non_finite = keep == "1"
        self.threads = options.intra_op_num_threads
        self.quick = options.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL
        self.budget_text = own.get("collage.budget_s")
        self.budget = _seconds(self.budget_text or "inf")
        self.shapes = _shapes(own.get("collage.shapes", ""))
        if self.how is not None and self.how not in _HOW:
            raise _errors.made(_errors.InvalidArgument, f"collage.how is '{self.how}', but must be one of {', '.join(_HOW)}")

    def with_plan(self, network: collage.Network) -> Tuple[collage.Network, Optional[collage.Plan]]:
        """The plan that the options name, and the network with the plan's shapes. Without a plan, the network as it is."""
        if self.plan is None:
            return network, None
        if not os.path.exists(self.plan):
            raise _errors.made(_errors.InvalidArgument, f"collage.plan: {self.plan} does not exist; collage tune makes plans")
        plan = network.load_plan(self.plan, threads=self.threads)
        return plan.network, plan

    def how_for(self, network: collage.Network) -> str:
        """How a network is placed. A store that is not named may be filled by other networks, and mislead estimates for this one."""
        if self.how is not None:
            return self.how
        if self.quick:
            return "priority"
        if not network.is_open:
            return "measure"
        return "estimate" if self.store else "priority"

    def make(self, network: collage.Network, plan: Optional[collage.Plan], label: str) -> collage.Session:
        """The session of a network: by its plan, or else placed as the options say."""
        how = self.how_for(network)
        if self.keep_non_finite:
            self._refuse_to_keep(network, plan, how)
        if plan is not None:
            return network.session(plan)
        if how == "measure" and not network.is_open:
            return network.session(self._measured(network, label))
        budget = MOST_S if self.budget_text is None else self.budget
        return network.session(how=how, threads=self.threads, budget=budget, backends=self.backends, store=self.store,
                               progress=_patience(label, budget) if how == "measure" else None)

    @staticmethod
    def _refuse_to_keep(network: collage.Network, plan: Optional[collage.Plan], how: str) -> None:
        """Refuses collage.keep_non_finite where nothing shows which kernels keep NaN."""
        if plan is not None:
            why = "a plan decides about its kernels; make it by collage tune --keep-non-finite, and leave out this entry"
        elif network.is_open:
            why = "kernels of open shapes are not all measured; fix the shapes, as by collage.shapes"
        elif how != "measure":
            why = "only measuring shows which kernels keep NaN and infinity; leave out collage.how, COLLAGE_ORT_HOW and ORT_DISABLE_ALL"
        else:
            return
        raise _errors.made(_errors.InvalidArgument, f"collage.keep_non_finite=1: {why}")

    def _measured(self, network: collage.Network, label: str) -> collage.Plan:
        """A plan by measuring, which is kept beside the store: later starts read it, unless collage.how=measure goes on."""
        kept = self._kept_plan(network)
        threads = self.threads or collage.system()["available_threads"]
        if kept is not None and self.how is None and kept.exists():
            try:
                return network.load_plan(kept, threads=threads)
            except collage.CollageError:  # made by another version or on another machine, or broken: it is replaced
                pass
        budget = self.budget
        if self.budget_text is None:
            budget = min(MOST_S, max(LEAST_S, EACH_S * network.summary["nodes"]))
        plan = network.tune(threads=threads, budget=budget, backends=self.backends, store=self.store,
                            keep_non_finite=self.keep_non_finite, progress=_patience(label, budget))
        if kept is not None:
            try:
                kept.parent.mkdir(parents=True, exist_ok=True)
                plan.save(kept)
            except (OSError, collage.CollageError) as fault:
                _notes.once(f"{kept}: the plan cannot be kept, so each start measures: {fault}", logging.INFO)
        return plan

    def _kept_plan(self, network: collage.Network) -> Optional[pathlib.Path]:
        """The file of the kept plan; None if there is no store."""
        store = collage.system()["default_store"] if self.store is None else self.store
        if not store:
            return None
        words = [network.summary["fingerprint"], str(self.threads or collage.system()["available_threads"])]
        words += sorted(self.backends.split(",")) if self.backends else []
        words += ["keep_non_finite"] if self.keep_non_finite else []
        if not all(word.replace("_", "").isalnum() for word in words):
            return None  # no names of backends: placing says so
        return pathlib.Path(f"{store}.plans", "-".join(words) + ".json")


def _seconds(text: str) -> Optional[float]:
    """The budget: None for no limit."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise _errors.made(_errors.InvalidArgument, f"collage.budget_s is '{text}', but must be a number of seconds above 0, or inf")
    return None if seconds == float("inf") else seconds


def _shapes(text: str) -> Dict[str, Tuple[Optional[int], ...]]:
    """The shapes and extents of "x=1x3x48x320;length=128"; an extent that stays open is a question mark."""
    shapes: Dict[str, Tuple[Optional[int], ...]] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, _, extents = part.rpartition("=")
        words = extents.split("x")
        if not name or not all(word == "?" or (word.isascii() and word.isdigit()) for word in words):
            raise _errors.made(_errors.InvalidArgument, f"collage.shapes has '{part}', but must be like x=1x3x48x320;length=128")
        shapes[name] = tuple(None if word == "?" else int(word) for word in words)
    return shapes


def _patience(label: str, budget: Optional[float]) -> Any:
    """A progress function that says once, after a while, why the start takes long."""
    start = time.monotonic()

    def progress(_: Any) -> None:
        if time.monotonic() - start > PATIENCE_S:
            limit = "as long as it needs" if budget is None else f"for at most {budget:g} s"
            _notes.once(f"{label}: measuring kernels {limit}, so that later starts and runs are faster; "
                        "collage.how=estimate starts without measuring")
    return progress
