"""A process that holds one engine and runs it for as long as it is told.

    python3 -m busy.engine EVENTS_DESCRIPTOR

The first line on standard input is the task as JSON (peers/child.py). Each further line is a number of seconds. The answer is a
line of JSON: {"ready": true} once the engine is loaded, {"ms": [...]} for each number, {"failed": "..."} if something is wrong.
"""
from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from peers.errors import Failure, sentence_of


def times_ms(run: Any, seconds: float) -> list[float]:
    """One time for each run. The last run may end after the time is up."""
    found = []
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        run()
        found.append(1e3 * (time.perf_counter() - start))
    return found


def waits(library: Any, wanted: str) -> None:
    """Sets how threads wait. A Failure where they wait otherwise: the row would have another engine's figures."""
    library.call("collage_set_waiting", wanted.encode())
    found = library.system()["waiting_policy"]
    if found != wanted:
        raise Failure(f"threads of {library.path} wait by the policy {found}, not {wanted}: unset OMP_WAIT_POLICY and "
                      "GOMP_SPINCOUNT")


def main() -> int:
    events = os.fdopen(int(sys.argv[1]), "w", buffering=1, encoding="utf-8")
    from peers import child
    from peers.collage_library import Library

    try:
        task = json.loads(sys.stdin.readline())
        engine = task["engines"][0]
        library = None
        if engine["kind"] == "collage":
            library = Library(task["library"])
            waits(library, engine["waiting"])
        made = child.made(task, engine, library)
        made.bind(child.inputs_of(task))
        events.write(json.dumps({"ready": True}) + "\n")
        for line in sys.stdin:
            events.write(json.dumps({"ms": times_ms(made.run, float(line))}) + "\n")
    except Exception as problem:  # what the parent has to tell, whatever its type
        events.write(json.dumps({"failed": sentence_of(problem)}) + "\n")
        return 1
    return 0


if __name__ == "__main__":
    os._exit(main())  # libraries that end their threads in each other's way have told everything by now
