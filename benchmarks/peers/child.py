"""A process of its own for whatever loads an engine: it gets its task as JSON and answers in events, a line each.

    python3 -m peers.child EVENTS_DESCRIPTOR < TASK.json

An event is {"stage", "engine"} for what is about to happen, {"failed", "engine"} for an engine that cannot be made, with
"ended" where nothing can go on, or {"result"}. What libraries print goes elsewhere, and a crash is laid to the engine of
the last event.
"""
from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .errors import Failure, sentence_of

if TYPE_CHECKING:  # a process imports what its task needs, and nothing else: its memory is measured
    from .collage_library import Library
    from .engines import Engine

Task = dict[str, Any]
Tell = Callable[..., None]
MEMORY_RUNS = 10


def made(task: Task, engine: Task, library: Library | None = None) -> Engine:
    """Makes one engine, not yet bound."""
    from . import engines

    if engine["kind"] == engines.ONNXRUNTIME:
        return engines.OnnxRuntime(task["model"], task["threads"], task["overrides"])
    if engine["kind"] == engines.OPENVINO:
        return engines.OpenVino(task["model"], task["threads"], task["open"], task["outputs"], engine.get("precision", "f32"))
    from .collage_library import Library

    opened = library or Library(task["library"])

    def plan_from(network: Any) -> Any:
        if "store" in engine:
            return opened.plan_from_store(network, engine["store"], task["threads"], engine["backends"])
        return opened.plan_from_file(network, engine["plan"], task["threads"])

    return engines.Collage(opened, task["model"], task["open"], plan_from)


def inputs_of(task: Task) -> dict[str, Any]:
    from . import arrays

    ports = [arrays.Input(port["name"], port["type"], tuple(port["shape"])) for port in task["inputs"]]
    return {port.name: arrays.random_input(port) for port in ports}


def compared(ready: dict[str, Engine], tell: Tell) -> list[dict[str, Any]]:
    """All pairs of engines, after each has run once on outputs that were spoilt before."""
    from . import arrays

    for name, engine in ready.items():
        tell(stage="comparing outputs", engine=name)
        for array in engine.outputs.values():
            arrays.spoil(array)
        engine.run()
    names = list(ready)
    pairs = []
    for i, expected in enumerate(names):
        for actual in names[i + 1:]:
            found = arrays.compare(ready[actual].outputs, ready[expected].outputs)
            pairs.append({"engines": [actual, expected], "worst": found.worst, "why": found.why})
    return pairs


def race(task: Task, tell: Tell) -> Any:
    """All engines in turns; with how far their outputs are apart before and after."""
    from . import race as races

    inputs = inputs_of(task)
    ready: dict[str, Engine] = {}
    for engine in task["engines"]:
        name = engine["name"]
        tell(stage="loading", engine=name)
        try:
            loaded = made(task, engine)
            tell(stage="first run", engine=name)
            loaded.bind(inputs)
            ready[name] = loaded
        except Exception as problem:  # libraries throw many types, and each is about this engine alone
            tell(failed=sentence_of(problem), engine=name)
    if not ready:
        return {"names": [], "pairs": [], "rounds_ms": []}
    pairs = compared(ready, tell)
    names = list(ready)

    def turn(which: int, done: int, calm: int) -> None:
        tell(stage=f"round {done + 1}, {calm} calm", engine=names[which])

    result = races.race([ready[name].run for name in names], task["rounds"], task["seconds"], turn, task["threads"],
                        task["exchange_us"])
    return {**result, "names": names, "pairs": [*pairs, *compared(ready, tell)]}


def memory(task: Task, _tell: Tell) -> Any:
    """The most memory that this process ever had: with nothing loaded, and after loading and some runs."""
    inputs = inputs_of(task)
    before = most_memory()
    engine = task["engines"][0]
    loaded = made(task, engine)
    loaded.bind(inputs)
    for _ in range(MEMORY_RUNS - 1):  # binding has run it once
        loaded.run()
    return {"before_mb": before, "most_mb": most_memory()}


def most_memory() -> float:
    """VmHWM in MB."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    raise Failure("/proc/self/status: says nothing of VmHWM")


def load(task: Task, _tell: Tell) -> Any:
    """How long an engine takes until it is ready, and until its first run is done; its library is there already."""
    inputs = inputs_of(task)
    engine = task["engines"][0]
    library = None
    if engine["kind"] == "collage":
        from .collage_library import Library

        library = Library(task["library"])
        library.system()  # asks every backend's library once, as importing does for the peers
    else:
        __import__(engine["kind"])
    start = time.perf_counter()
    loaded = made(task, engine, library)
    ready = time.perf_counter()
    loaded.bind(inputs)
    first = time.perf_counter()
    return {"ready_ms": 1e3 * (ready - start), "first_run_ms": 1e3 * (first - ready),
            "stages_ms": getattr(loaded, "stages_ms", {})}


def describe(task: Task, _tell: Tell) -> Any:
    from .describe import describe as described

    return described(task["file"], task["room"], task["shapes"])


def peak(task: Task, _tell: Tell) -> Any:
    from .peak import peak as measured

    return measured(task["threads"], task["room"])


def versions(task: Task, _tell: Tell) -> Any:
    """The versions of what is compared; a Failure where a package or the library cannot be loaded."""
    import importlib

    found = {"python": sys.version.split()[0]}
    for package in task["packages"]:
        try:
            found[package] = importlib.import_module(package).__version__.partition("-")[0]
        except ImportError as missing:
            raise Failure(f"the Python package {package} cannot be imported: {sentence_of(missing)}") from None
    from .collage_library import Library

    library = Library(task["library"])
    system = library.system()
    found["collage"] = library.version
    return {"versions": found, "backends": [{"name": b["name"], "version": b["version"]}
                                            for b in system["backends"] if b["available"]]}


def main() -> int:
    events = os.fdopen(int(sys.argv[1]), "w", buffering=1, encoding="utf-8")
    task = json.load(sys.stdin)

    current = ""

    def tell(**event: Any) -> None:
        nonlocal current
        current = event.get("engine", "")
        events.write(json.dumps(event) + "\n")

    does = {"race": race, "memory": memory, "load": load, "describe": describe, "peak": peak, "versions": versions}
    try:
        tell(result=does[task["task"]](task, tell))
    except Exception as problem:  # what the parent has to tell, whatever its type
        tell(failed=sentence_of(problem), engine=current, ended=True)
        return 1
    return 0


if __name__ == "__main__":
    # Without the clean-up at exit: libraries that end their threads in each other's way have told everything by now.
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
