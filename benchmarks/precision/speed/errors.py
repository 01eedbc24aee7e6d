"""Errors of outputs, as docs/errors-of-values.md defines them. Needs numpy."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np


def nmse(actual: np.ndarray, expected: np.ndarray) -> float:
    """The normalised mean square error of one output for one sample."""
    a, r = actual.astype(np.float64), expected.astype(np.float64)
    if a.shape != r.shape or not np.array_equal(np.isfinite(a), np.isfinite(r)):
        return math.inf
    finite = np.isfinite(r)
    apart, all_ = float(np.square(a[finite] - r[finite]).sum()), float(np.square(r[finite]).sum())
    if all_ == 0:
        return 0.0 if apart == 0 else 1.0
    return apart / all_


def relative_rms(of_outputs: Mapping[str, Sequence[float]]) -> float:
    """The error over samples, of the output that errs most, by the NMSE of each output and sample."""
    return max((math.sqrt(sum(each) / len(each)) for each in of_outputs.values()), default=0.0)
