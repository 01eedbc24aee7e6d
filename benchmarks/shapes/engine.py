"""An engine in a process of its own that is stopped until its turn."""
from __future__ import annotations

import json
import os
import pathlib
import selectors
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from peers.errors import Failure
from peers.processes import SILENCE_S, ending

BENCHMARKS = pathlib.Path(__file__).resolve().parents[1]


class Engine:
    """Starts a process with the number of a pipe as argument PIPE, and waits until it has loaded its network. What it says of
    that is `ready`."""

    PIPE = "{pipe}"

    def __init__(self, name: str, command: Sequence[str], log: pathlib.Path) -> None:
        self.name = name
        reading, writing = os.pipe()
        settings = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(BENCHMARKS)}
        words = [str(writing) if word == self.PIPE else word for word in command]
        log.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(log, "ab") as errors:
                self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=errors, stderr=errors,
                                                 pass_fds=[writing], env=settings)
        except OSError as problem:
            os.close(reading)
            raise Failure(f"{words[0]}: cannot be started: {problem.strerror}") from None
        finally:
            os.close(writing)
        self._events = reading
        self._unread = b""
        try:
            self.ready = self._answer()
        except BaseException:
            self.close()
            raise
        self._stop()

    def ask(self, line: str) -> dict[str, Any]:
        """Lets the process run, until it has answered a line."""
        assert self._process.stdin is not None
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer says why
        answer = self._answer()
        self._stop()
        return answer

    def processor_s(self) -> float:
        """How much of the processors' time it took so far."""
        try:
            fields = pathlib.Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except BrokenPipeError:
                pass
        os.close(self._events)

    def _stop(self) -> None:
        """Its threads may still look for work, which disturbs those whose turn it is."""
        self._process.send_signal(signal.SIGSTOP)

    def _answer(self) -> dict[str, Any]:
        with selectors.DefaultSelector() as selector:
            selector.register(self._events, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(SILENCE_S):
                    raise Failure(f"{self.name}: was silent for {SILENCE_S:.0f} s")
                chunk = os.read(self._events, 65536)
                if not chunk:
                    raise Failure(f"{self.name}: {ending(self._process.wait())}")
                self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        event = json.loads(line)
        if "failed" in event:
            raise Failure(f"{self.name}: {event['failed']}")
        return event
