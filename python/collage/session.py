"""Sessions run a network."""
from __future__ import annotations

import concurrent.futures
import ctypes
import dataclasses
import os
import typing
from collections.abc import Callable, Mapping
from typing import Any, Optional, TypedDict, Union

from . import _abi, _explain, _handles, arrays, errors, ports
from ._fixed import FixedRunner, wrong_names
from ._hints import Unpack
from ._open import OpenRunner, Sequence
from ._options import Backends, Placing, Rules, Shapes, Store, _mapping, whole
from ._pool import Pool, Turns
from .arrays import Array, ArrayLike, StopFlag
from .binding import Binding
from .growing import Caches, Growing, Masks
from .network import Model, Network, Source, load
from .plan import Plan
from .progress import ProgressOption, Watch
from .trace import How, Trace, how_of
from .tuning import BackgroundTuning, lacks_tuning

__all__ = ["Session", "Step", "session"]

Carried = Optional[Mapping[str, str]]


@dataclasses.dataclass(frozen=True)
class Step:
    """One kernel of a run.

    Attributes:
        label: the nodes that it runs, such as "conv_0+relu_1"; for a conversion, the value.
        backend, kernel, pattern: whose it is, which implementation, and what it runs at once.
        ms: the time of this step in the profiled run in milliseconds; 0 if none was profiled.
        planned_ms: the cost that the plan rests on; 0 if nothing was measured.
        nodes: their number; 0 for a conversion.
        workspace_bytes: scratch memory.
    """

    label: str
    backend: str
    kernel: str
    pattern: str
    ms: float
    planned_ms: float
    nodes: int
    workspace_bytes: int

    @property
    def name(self) -> str:
        """The same as ``label``."""
        return self.label


class SessionOptions(TypedDict, total=False):
    """The options of a session by name, for type checkers: those of ``collage.Session`` after the plan."""

    how: Optional[str]
    threads: int
    budget: Optional[float]
    progress: ProgressOption
    backends: Backends
    store: Store
    carried: Carried
    most_engines: int
    most_bytes: int
    compare: Optional[float]
    regions: Optional[float]
    seed: int
    pin: Rules
    exclude: Rules
    algorithms: str
    memory: Union[int, float, None]
    keep_non_finite: bool
    threads_at_once: int


class Session(_handles.Unpicklable, ports.InputsAndOutputs[tuple[ports.Port, ...]]):
    """Runs a network, in any number of threads at the same time.

    ``Network.session`` makes it. It is released by ``close()``, at the end of ``with``, or when nothing refers to it.

    Args:
        network: what to run. If its shapes are open, each new combination of shapes gets an engine when it is met.
        plan: the plan to run; it has fixed shapes. Of the options, only `threads_at_once` goes with it.
        how: without a plan, how kernels are chosen: "measure" (the default for fixed shapes), "estimate" by stored costs (the
            default for open shapes) or "priority", the first backend that can run a node.
        carried: outputs that are inputs of the next run, as {"output": "input"}: states.
        most_engines: of an open session that are kept; 0: 64.
        most_bytes: of packed weights that an open session keeps; 0: any number.
        threads_at_once: runs of ``run_async`` at the same time; 0: as many as there are processors for. With states it is one.
        threads, backends, store, budget, compare, seed, pin, exclude, algorithms, memory, keep_non_finite, regions, progress:
            without a plan, as in ``Network.tune``; the budget is 15 seconds if none is given.

    Raises:
        MisuseError: an option is wrong, or the plan is for another network.
        CollageError: no backend can run a part, or memory is missing.
    """

    def __init__(self, network: Network, plan: Optional[Plan] = None, *, how: Optional[str] = None, threads: int = 0,
                 budget: Optional[float] = 15.0, progress: ProgressOption = None, backends: Backends = None, store: Store = None,
                 carried: Carried = None, most_engines: int = 0, most_bytes: int = 0, compare: Optional[float] = None,
                 regions: Optional[float] = None, seed: int = 1, pin: Rules = None, exclude: Rules = None,
                 algorithms: str = "accurate", memory: Union[int, float, None] = None, keep_non_finite: bool = False,
                 threads_at_once: int = 0) -> None:
        if not isinstance(network, Network):
            raise errors.MisuseError(f"network is of type {type(network).__name__}; give a collage.Network, as collage.load makes it, or "
                                     "the model to collage.session")
        self._network = network
        self._runner: Union[FixedRunner, OpenRunner]
        self._sequence: Optional[Sequence] = None
        self._turns = Turns()  # of the calls that share the states
        self._pool = Pool()
        carried = _mapping(carried, "carried")
        self._at_once = whole(threads_at_once, "threads_at_once")
        self._how, self._placing = how, dict[str, Any]()
        if plan is not None:
            if not isinstance(plan, Plan):
                raise errors.MisuseError(f"plan is of type {type(plan).__name__}; give a collage.Plan")
            if carried:
                raise errors.MisuseError("carried states need a session without a plan; leave out plan or carried")
            options = dict(how=how, threads=threads, budget=budget, progress=progress, backends=backends, store=store,
                           most_engines=most_engines, most_bytes=most_bytes, compare=compare, regions=regions, seed=seed, pin=pin,
                           exclude=exclude, algorithms=algorithms, memory=memory, keep_non_finite=keep_non_finite)
            if changed := [name for name, value in options.items() if _differs(value, _DEFAULTS[name])]:
                raise errors.MisuseError(f"{', '.join(changed)} cannot be given with a plan, which decides it; leave out "
                                         f"{', '.join(changed)}, or the plan")
            if plan.network._source is not network._source:
                raise errors.MisuseError("the plan is for a network that was loaded separately; make it by this network's tune or "
                                         "load_plan")
            self._runner = FixedRunner(plan)
        else:
            self._placing = dict(threads=threads, budget=budget, backends=backends, store=store, compare=compare, regions=regions,
                                 seed=seed, pin=pin, exclude=exclude, algorithms=algorithms, memory=memory,
                                 keep_non_finite=keep_non_finite)
            if network.is_open or carried:
                placing = Placing(how=how or "estimate", **self._placing)
                self._runner = self._open(network, placing, carried, whole(most_engines, "most_engines", most=2**63),
                                          whole(most_bytes, "most_bytes", most=2**63), progress)
            else:
                placing = Placing(how=how or "measure", **self._placing)
                self._runner = FixedRunner(network._place(placing, None, progress))
        self._run = self._runner.run if self._sequence is None else _in_turn(self._turns, self._sequence, self._runner)
        self._inputs, self._outputs = self._runner.inputs, self._runner.outputs
        self._names = tuple(port.name for port in self._inputs)
        _handles.tell_after_fork(self)

    def _open(self, network: Network, placing: Placing, carried: Carried, most_engines: int, most_bytes: int,
              progress: ProgressOption) -> OpenRunner:
        source: Source = network._source
        if source.zoo is not None:
            raise errors.MisuseError(f"{network.name} is a network of the zoo, whose inputs cannot be carried; leave out carried")
        if network._loading.requantise:
            raise errors.MisuseError("requantise needs fixed shapes; give them by with_shapes, or load the model without it"
                                     if network.is_open else "carried does not go with requantise; leave one of them out")
        # Only measuring takes so long that it is watched.
        watch = Watch(progress, measures=True) if placing.struct.how == _abi.HOW["measure"] else None
        if watch is not None:
            placing.struct.progress = watch.function
        pairs = [_abi.Carried(_abi.encoded(output, "carried"), _abi.encoded(to, "carried"))
                 for output, to in _mapping(carried, "carried").items()]
        options = _abi.new(_abi.SessionOptions, placing=ctypes.pointer(placing.struct),
                           loading=ctypes.pointer(network._loading.struct), most_engines=most_engines, most_bytes=most_bytes,
                           carried=(_abi.Carried * max(1, len(pairs)))(*pairs), carried_count=len(pairs))
        runner = OpenRunner(source.session(options), watch)
        network._expect((*runner.inputs, *runner.states), runner.outputs)
        if runner.states:
            self._sequence = Sequence(runner)
        return runner

    # ---------------------------------------------------------------------------------------------------------- facts

    @property
    def network(self) -> Network:
        """The network that it was made from."""
        return self._network

    @property
    def plan(self) -> Optional[Plan]:
        """The plan that runs; None if shapes are open: each combination has its own."""
        return self._runner.plan if isinstance(self._runner, FixedRunner) else None

    @property
    def is_open(self) -> bool:
        """Whether shapes may change from run to run."""
        return isinstance(self._runner, OpenRunner)

    @property
    def info(self) -> dict[str, Any]:
        """Numbers about the session as it is now."""
        if isinstance(self._runner, OpenRunner):
            return self._runner.info()
        of = self._runner.info
        return {"steps": of.steps, "threads": of.threads, "waiting_policy": _abi.text(of.waiting_policy),
                "arena_bytes": of.arena_bytes, "arena_lower_bound": of.arena_lower_bound}

    @property
    def steps(self) -> list[Step]:
        """The kernels in the order in which they run, for fixed shapes."""
        runner = self._fixed("steps")
        return [_step(step, 0.0) for step in runner.steps()]

    def explain(self) -> str:
        """What runs, as text: the plan and its steps, or the engines of an open session."""
        if isinstance(self._runner, FixedRunner):
            return self._runner.plan.explain() + "\n\n" + _explain.of_steps(self.steps)
        rows = [(name, str(value)) for name, value in self._runner.info().items()]
        return (f"{self._network.name}: each combination of shapes has an engine, made when it is met\n"
                + _explain.table(("", "now"), rows, frozenset({1})))

    # ----------------------------------------------------------------------------------------------------------- runs

    def run(self, *feeds: ArrayLike, copy: bool = True, timeout: Optional[float] = None, stop: Optional[StopFlag] = None,
            trace: Optional[Trace] = None, **named: ArrayLike) -> dict[str, Array]:
        """Runs the network once, and returns the outputs by name. Other threads of Python go on meanwhile.

        Args:
            feeds: a dictionary of arrays by the names of inputs; or the arrays in the order of the inputs.
            copy: False: outputs are in memory of the session, which is used again when nothing refers to them any more.
            timeout: seconds after which the run ends.
            stop: ends the run when it is set.
            trace: records the run.
            named: the arrays by name, for names that are Python's.

        Raises:
            MisuseError: a name, an element type or a shape is wrong.
            CancelledError: a limit was reached.
            CollageError: a kernel failed.
        """
        how = how_of(timeout, stop, trace)
        if len(feeds) == 1 and not named and type(feeds[0]) is dict:
            return self._run(feeds[0], copy, how)
        return self._run(self._by_name(feeds, named), copy, how)

    def __call__(self, *feeds: ArrayLike, **named: ArrayLike) -> Union[Array, tuple[Array, ...]]:
        """Runs the network once: ``session(x)``. Returns the output, or a tuple of the outputs if there are several."""
        results = tuple(self.run(*feeds, **named).values())
        return results[0] if len(results) == 1 else results

    def _by_name(self, feeds: tuple[Any, ...], named: Mapping[str, Any]) -> Mapping[str, Any]:
        if len(feeds) == 1 and isinstance(feeds[0], Mapping):
            if named:
                raise errors.MisuseError("inputs are given by a dictionary and by name; give all in one way")
            return feeds[0]
        if len(feeds) > len(self._names):
            raise errors.MisuseError(f"there are {len(feeds)} arrays, and the network takes {len(self._names)}: "
                                     f"{', '.join(self._names) or 'none'}")
        if not feeds:
            return named
        placed = dict(zip(self._names, feeds))
        if twice := [name for name in named if name in placed]:
            raise errors.MisuseError(f"input {', '.join(twice)} is given twice, in order and by name")
        return {**placed, **named}

    def run_async(self, *feeds: ArrayLike, copy: bool = True, timeout: Optional[float] = None,
                  stop: Optional[StopFlag] = None, trace: Optional[Trace] = None,
                  **named: ArrayLike) -> concurrent.futures.Future[dict[str, Array]]:
        """Starts a run in another thread, and returns its future. At most ``threads_at_once`` go on at the same time.

        The arrays must not change until the future is done. Names of inputs are checked now, and all else by the run. With states,
        calls follow one another in the order in which they were made: a later ``run``, ``reset`` or ``set_state`` waits for this run.
        """
        given = self._by_name(feeds, named)
        if set(given) != set(self._names):
            raise wrong_names(given, self._runner.inputs)
        given, run = dict(given), self._runner.run if self._sequence is None else self._sequence.run_how
        return self._pool.submit(lambda: run(given, copy, how_of(timeout, stop, trace)), threads=self._threads_at_once,
                                 turns=None if self._sequence is None else self._turns)

    def _threads_at_once(self) -> int:
        if self._sequence is not None:
            return 1  # a run begins with the states of the one before it
        if self._at_once:
            return self._at_once
        of_run = self._runner.info.threads if isinstance(self._runner, FixedRunner) else self._placing["threads"] or os.cpu_count()
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, usable // max(1, of_run or 1))

    def bind(self, *, shapes: Shapes = None) -> Binding:
        """Memory that is bound to the inputs and outputs once, so that runs copy nothing.

        Args:
            shapes: of the inputs, if they are open. Their engine is made now.

        Raises:
            MisuseError: the shapes do not fit the inputs, or the session carries states.
        """
        if isinstance(self._runner, FixedRunner):
            runner = self._runner
            for name, shape in _mapping(shapes, "shapes").items():
                port = next((p for p in runner.inputs if p.name == name), None)
                if port is None:
                    raise errors.MisuseError(f"shapes: there is no input {name}; the network takes {', '.join(self._names) or 'nothing'}")
                if (given := arrays.extents_of(shape, f"input {name}")) != port.shape:
                    raise errors.MisuseError(f"shapes: input {name} has the fixed shape {arrays.shape_text(port.shape)} in this session, "
                                             f"and not {arrays.shape_text(given)}; make another session for it")
        else:
            if self._sequence is not None:
                raise errors.MisuseError("a session that carries states cannot be bound; use run")
            network = self._network._fixed(shapes, "bind")
            placing = Placing(how=self._how or "estimate", **self._placing)
            runner = FixedRunner(network._place(placing, None, None))
        if self._runner.closed:
            raise errors.MisuseError("the session is closed; make another one")
        return Binding(runner)

    def profile(self, *feeds: ArrayLike, **named: ArrayLike) -> list[Step]:
        """Runs once and returns the time of each step, for fixed shapes. The arguments are those of ``run``."""
        runner = self._fixed("profile")
        ms = runner.profile(self._by_name(feeds, named))
        return [_step(step, one) for step, one in zip(runner.steps(), ms)]

    def _fixed(self, what: str) -> FixedRunner:
        if isinstance(self._runner, FixedRunner):
            return self._runner
        raise errors.MisuseError(f"{what} needs fixed shapes and no states; load the network with shapes, as by "
                                 'collage.load(model, shapes={"input": (1, 3, 224, 224)}), and make a session of it')

    # --------------------------------------------------------------------------------------------------------- states

    def sequence(self) -> Sequence:
        """Another sequence, with states of its own."""
        self._states_of()
        assert isinstance(self._runner, OpenRunner)
        return Sequence(self._runner)

    def _states_of(self) -> Sequence:
        if self._sequence is None:
            raise errors.MisuseError('this session has no states; say which outputs are carried, as by carried={"h_next": "h"}')
        return self._sequence

    @property
    def states(self) -> dict[str, Array]:
        """Copies of the states, by the names of their inputs. States that have no shape yet are left out."""
        with self._turns.one():
            return self._states_of().states

    def set_state(self, name: str, value: ArrayLike) -> None:
        """Copies an array to a state."""
        with self._turns.one():
            self._states_of().set_state(name, value)

    def start(self, name: str, shape: arrays.Shape) -> None:
        """Makes a state zeros of this shape, now and at each reset."""
        with self._turns.one():
            self._states_of().start(name, shape)

    def reset(self) -> None:
        """Brings all states back to their start: a new sequence begins."""
        with self._turns.one():
            self._states_of().reset()

    def growing(self, caches: Caches, capacities: typing.Sequence[int], *, masks: Masks = None, shapes: Shapes = None) -> Growing:
        """Runs with caches that grow, such as the keys and values of attention, with an engine for each capacity.

        Args:
            caches: by the input, the output that has its elements with new ones behind them, and the dimension in which they are:
                {"past_keys": ("present_keys", 2)}. All have the same length.
            capacities: the extents that lengths are rounded up to; 0 is for the first run.
            masks: by the input, the dimension that counts the elements of the caches and the new ones, and the value that says "does not
                count": {"attention_mask": (1, 0)}.
            shapes: of caches whose other extents the model leaves open, and no input has the same symbols.

        Raises:
            MisuseError: the session has fixed shapes or states, or a cache does not fit its output.
        """
        if not isinstance(self._runner, OpenRunner):
            raise errors.MisuseError("caches that grow need open shapes, and those of this session are fixed")
        if not _abi.has("growing_context_create"):
            raise errors.MisuseError(f"the library, version {_abi.text(_abi.lib.collage_version())}, has no caches that grow; install "
                                     "that of the same release as this package")
        return Growing(self._runner, _mapping(caches, "caches"), capacities, masks, shapes)

    def tune_in_background(self, *, budget: Optional[float] = 20.0) -> BackgroundTuning:
        """Measures kernels for the engines of an open session while it runs, and replaces the engines by faster ones.

        It has idle priority: it measures while processors would do nothing otherwise. Backends, threads and the store are those of the
        session.

        Args:
            budget: seconds for each engine; None: each is tuned to the end.

        Raises:
            MisuseError: the session has fixed shapes. ``Network.tune`` makes a plan for these.
        """
        if not isinstance(self._runner, OpenRunner):
            raise errors.MisuseError("only sessions of open shapes are tuned in the background; make a plan for fixed ones by Network.tune")
        if not _abi.has("session_tuning_start"):
            raise lacks_tuning()
        return BackgroundTuning(self._runner.session, Placing(how="measure", **{**self._placing, "budget": budget}))

    # ---------------------------------------------------------------------------------------------------------- the end

    def close(self) -> None:
        """Releases the session, after the runs of ``run_async`` that have begun. Those that wait are cancelled."""
        self._runner.close()
        self._pool.close()
        if self._sequence is not None:
            self._sequence.close()

    def _after_fork(self) -> None:
        self._pool.after_fork()
        self._turns.after_fork()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        inputs, outputs = ("; ".join(map(str, of)) for of in (self.inputs, self.outputs))
        return f"<collage.Session ({inputs}) -> ({outputs})>"


_DEFAULTS: dict[str, Any] = Session.__init__.__kwdefaults__ or {}


def _in_turn(turns: Turns, sequence: Sequence, runner: Union[FixedRunner, OpenRunner]) -> Callable[
        [Mapping[str, Any], bool, Optional[How]], dict[str, Array]]:
    """Runs behind those that are queued. It does not keep the session, whose memory then goes without Python's collector."""
    def run(feeds: Mapping[str, Any], copy: bool, how: Optional[How]) -> dict[str, Array]:
        with turns.one(how):
            if runner.closed:  # while it waited
                raise errors.MisuseError("the session is closed; make another one")
            return sequence.run_how(feeds, copy, how)
    return run


def _differs(value: Any, default: Any) -> bool:
    try:
        return value is not default and bool(value != default)
    except ValueError:  # arrays, which are no default
        return True


def _step(of: Any, ms: float) -> Step:
    return Step(_abi.text(of.label), _abi.text(of.backend), _abi.text(of.kernel), _abi.text(of.pattern), ms, of.planned_ms, of.nodes,
                of.workspace_bytes)


def session(model: Model, *, shapes: Shapes = None, values: Optional[Mapping[str, ArrayLike]] = None, requantise: bool = False,
            **options: Unpack[SessionOptions]) -> Session:
    """Reads a model and makes a session: ``load(model, shapes=..., values=..., requantise=...).session(...)``.

    The options are those of ``collage.Session`` without a plan.
    """
    return load(model, shapes=shapes, values=values, requantise=requantise).session(**options)
