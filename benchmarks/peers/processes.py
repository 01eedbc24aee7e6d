"""Starts processes that load engines (child.py) and listens to them. A crash or a hang is a reason, and ends nothing else."""
from __future__ import annotations

import json
import os
import pathlib
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

from .errors import Failure

SILENCE_S = 900.0  # so long nothing may be heard: reading and compiling the largest networks takes a fraction
PACKAGE = pathlib.Path(__file__).resolve().parent


class EngineFailure(Failure):
    """One engine failed in such a way that its process cannot go on."""

    def __init__(self, engine: str, reason: str) -> None:
        super().__init__(reason)
        self.engine = engine


def ending(status: int) -> str:
    """How a process ended that did not say why."""
    if status < 0:
        return f"its process was ended by {signal.Signals(-status).name}"
    return f"its process ended with status {status} and said nothing"


class Children:
    """Runs tasks with one Python, one at a time. `environment` is added to ours."""

    def __init__(self, python: str, log: pathlib.Path) -> None:
        self.python, self.log = python, log

    def run(self, task: dict[str, Any], *, environment: dict[str, str] | None = None,
            stage: Callable[[str, str], None] = lambda _what, _engine: None,
            failed: Callable[[str, str], None] = lambda _engine, _reason: None) -> Any:
        """Answers a task's result. `stage` and `failed` hear of (stage, engine) and (engine, reason) on the way; what ends
        the process is an EngineFailure, whose engine is empty where none is to blame."""
        reading, writing = os.pipe()
        settings = {**os.environ, **(environment or {}), "PYTHONDONTWRITEBYTECODE": "1",
                    "PYTHONPATH": os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]))}
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "ab") as log, os.fdopen(reading, "rb", buffering=0) as events:
            try:
                process = subprocess.Popen([self.python, "-P", "-m", f"{PACKAGE.name}.child", str(writing)],
                                           stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=[writing], env=settings)
            except OSError as problem:
                raise Failure(f"{self.python}: cannot be started: {problem.strerror}") from None
            finally:
                os.close(writing)
            try:
                assert process.stdin is not None
                process.stdin.write(json.dumps(task).encode())
                process.stdin.close()
                return self._listen(process, events, stage, failed)
            except BrokenPipeError:
                raise EngineFailure("", ending(process.wait())) from None
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()

    @staticmethod
    def _listen(process: subprocess.Popen[bytes], events: Any, stage: Callable[[str, str], None],
                failed: Callable[[str, str], None]) -> Any:
        engine, text = "", b""
        with selectors.DefaultSelector() as selector:
            selector.register(events, selectors.EVENT_READ)
            last = time.monotonic()
            while True:
                if not selector.select(max(0.0, last + SILENCE_S - time.monotonic())):
                    raise EngineFailure(engine, f"its process was silent for {SILENCE_S:.0f} s and was ended")
                chunk = events.read(65536)
                if not chunk:
                    raise EngineFailure(engine, ending(process.wait()))
                last = time.monotonic()
                *lines, text = (text + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if "result" in event:
                        return event["result"]
                    engine = event.get("engine", "")
                    if "stage" in event:
                        stage(event["stage"], engine)
                    elif event.get("ended"):
                        raise EngineFailure(engine, event["failed"])
                    else:
                        failed(engine, event["failed"])
