"""Contents of inputs that are the same for every engine, as benchmarks/session_child.cpp makes them. Needs numpy."""
from __future__ import annotations

from collections.abc import Sequence

import fill_weights
import numpy as np
from peers import arrays
from peers.errors import Failure


def filled(kind: str, shape: Sequence[int], seed: int) -> np.ndarray:
    """Multiples of 2^-23 from -1 to 1; whole numbers from 0 to 7; both booleans."""
    array = arrays.aligned(shape, kind)
    bits = fill_weights.upper_bits(seed, array.size).reshape(shape)
    if array.dtype.kind == "f" and array.dtype.itemsize >= 4:
        array[...] = bits.astype(array.dtype) / array.dtype.type(2**23) - array.dtype.type(1)
    elif array.dtype.kind in "iu":
        array[...] = (bits >> np.uint64(21)).astype(array.dtype)
    elif array.dtype.kind == "b":
        array[...] = bits >> np.uint64(23)
    else:
        raise Failure(f"an input of {kind} has no random contents here")
    return array
