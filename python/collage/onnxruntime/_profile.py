"""Profiles in the format of ONNX Runtime's: events that chrome://tracing and Perfetto read."""

from __future__ import annotations

import datetime
import json
import os
import threading
import time
from typing import Any, Dict, List

import numpy as np

import collage

from ._options import SessionOptions


class Profile:
    """The events of a session since its beginning. Each run of fixed shapes is followed by a run in which each step is timed."""

    def __init__(self, options: SessionOptions) -> None:
        self.start_ns = time.monotonic_ns()
        self._prefix = options.profile_file_prefix
        self._events: List[Dict[str, Any]] = []

    def _add(self, category: str, name: str, start_ns: int, end_ns: int, **arguments: Any) -> None:
        self._events.append({"cat": category, "pid": os.getpid(), "tid": threading.get_native_id(),
                             "dur": max(0, end_ns - start_ns) // 1000, "ts": (start_ns - self.start_ns) // 1000, "ph": "X",
                             "name": name, "args": arguments})

    def loaded(self) -> None:
        """Notes the end of loading and placing."""
        self._add("Session", "session_initialization", self.start_ns, time.monotonic_ns())

    def run(self, session: collage.Session, arrays: Dict[str, np.ndarray], words: Dict[str, Any]) -> Dict[str, np.ndarray]:
        """Runs, and notes the time."""
        start = time.monotonic_ns()
        results = session.run(arrays, **words)
        self._add("Session", "model_run", start, time.monotonic_ns())
        try:
            at = time.monotonic_ns()
            for step in session.profile(arrays):
                end = at + int(step.ms * 1e6)
                self._add("Node", f"{step.label}_kernel_time", at, end, op_name=step.pattern, provider="CPUExecutionProvider",
                          backend=step.backend, kernel=step.kernel)
                at = end
        except collage.MisuseError:
            pass  # open shapes: the library times steps of fixed ones only
        return results

    def write(self) -> str:
        """Writes the events, and returns the name of the file."""
        stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        name = f"{self._prefix}_{stamp}_{time.monotonic_ns() % 1000:03d}.json"
        with open(name, "w", encoding="utf-8") as file:
            json.dump(self._events, file)
        return name
