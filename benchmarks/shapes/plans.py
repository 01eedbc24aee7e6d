"""How much slower plans by estimates are than plans that were tuned for a shape (benchmarks/estimated_plans.cpp)."""
from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from peers import results
from peers.errors import Failure, Mistake

from . import ranges
from .study import Network, Paused, Study, fit_for_a_file

GRACE_S = 900.0  # beyond budgets: reading networks, and kernels for nodes that have none yet


def template_of(network: Network) -> tuple[str, list[int]]:
    """The network as estimated_plans names it, with signs in place of open extents, and at which dimensions they stand."""
    changing = [port for port in network.ports if any(extent.is_open for extent in port.extents)]
    if len(network.ports) != 1 or len(changing) != 1:
        raise Mistake(f"{network.name}: plans are compared for networks with one input, which has ranges")
    port = changing[0]
    at = [i for i, extent in enumerate(port.extents) if extent.is_open]
    dims = ["@" if i in at else str(extent.low) for i, extent in enumerate(port.extents)]
    return f"{network.model}:{port.name}={'x'.join(dims)}", at


def point_of(shape: ranges.Shape, at: Sequence[int]) -> str:
    (dims,) = shape.values()
    return "x".join(str(dims[i]) for i in at)


def measure(study: Study) -> tuple[list[dict[str, Any]], int]:
    """A row for each shape that is finished, and how many there are to be."""
    given = study.given
    shapes = study.shapes(given.shapes)
    template, at = template_of(study.network)
    kept = study.kept()
    key = {**study.key, "what": "plans", "program": results.digest(given.estimated_plans.resolve())}
    stems = [f"plans.{study.network.stem}.{given.threads}.{fit_for_a_file(ranges.text_of(shape))}" for shape in shapes]
    rows = {stem: found for stem in stems if (found := kept.find(stem, key)) is not None}
    try:
        if len(rows) < len(shapes):
            study.tune()
        for number, (stem, shape) in enumerate(zip(stems, shapes)):
            if stem in rows:
                continue
            study.check_time()
            study.say(f"{study.network.name}: shape {number + 1} of {len(shapes)}", study.network.label(shape))
            store = study.warm_store()
            words = [str(given.estimated_plans.resolve()), "--json", "--threads", str(given.threads), "--budget",
                     f"{given.tune_seconds:.0f}", "--store", str(store)]
            if study.backends.backends:
                words += ["--backends", study.backends.backends]
            row = told([*words, template, "", point_of(shape, at)], given.tune_seconds + GRACE_S)
            rows[stem] = {**row, "shape": study.network.label(shape), "tuned": study.is_tuned(shape)}
            kept.keep(stem, key, rows[stem])
    except Paused:
        pass
    return [rows[stem] for stem in stems if stem in rows], len(shapes)


def told(command: Sequence[str], limit_s: float) -> dict[str, Any]:
    """Runs a program, and reads the JSON that it prints."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        raise Failure(f"{command[0]}: was still at work after {limit_s:.0f} s, and was ended") from None
    except OSError as problem:
        raise Failure(f"{command[0]}: cannot be started: {problem.strerror}") from None
    if done.returncode != 0:
        raise Failure(done.stderr.strip() or f"{command[0]} ended with status {done.returncode} and said nothing")
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise Failure(f"{command[0]}: what it prints is no JSON") from None
