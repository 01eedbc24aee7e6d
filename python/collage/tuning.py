"""Tuning the engines of an open session while it runs."""
from __future__ import annotations

from typing import Any, Optional

from . import _abi, _handles, errors
from ._options import Placing

__all__ = ["BackgroundTuning"]


class BackgroundTuning(_handles.Unpicklable):
    """A thread of the library that tunes the engines of an open session. ``Session.tune_in_background`` makes it.

    It has idle priority, and so have the workers in which it measures. It takes the engines that took most time first, and waits for
    further ones when all are tuned. It ends by ``close()``, at the end of ``with``, or when nothing refers to it.
    """

    def __init__(self, session: _handles.Handle, placing: Placing) -> None:
        with session as pointer:
            self._handle = _handles.Handle("session_tuning", "session_tuning_start", pointer, placing.struct)

    @property
    def improved(self) -> int:
        """The number of engines that were replaced."""
        return int(self._info().improved)

    @property
    def failed(self) -> int:
        """The number of engines whose tuning failed. They stay as they are."""
        return int(self._info().failed)

    @property
    def failure(self) -> Optional[str]:
        """Why the last of these failed."""
        return _abi.text(self._info().failure) or None

    @property
    def tuning(self) -> Optional[str]:
        """The inputs of the engine that is tuned now, as "x float32[1x3x48x320]"; None: it waits."""
        return _abi.text(self._info().tuning) or None

    def _info(self) -> Any:
        with self._handle as pointer:
            return _abi.filled("session_tuning_get_info", _abi.SessionTuningInfo, pointer)

    def close(self) -> None:
        """Ends what is under way, and waits for it: for as long as one call of a kernel takes."""
        self._handle.close()

    def __enter__(self) -> BackgroundTuning:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._handle.closed:
            return "<collage.BackgroundTuning, closed>"
        now = self._info()
        return f"<collage.BackgroundTuning, {now.improved} engines improved, {now.failed} failed>"


def lacks_tuning() -> errors.MisuseError:
    return errors.MisuseError(f"the library, version {_abi.text(_abi.lib.collage_version())}, does not tune in the background; install "
                              "that of the same release as this package")
