"""Generalised advantage estimation (Schulman et al. 2016).

    delta_t = r_t + gamma V(s_{t+1}) - V(s_t)
    A_t     = delta_t + gamma lambda A_{t+1}

over the steps of one stretch. V of the state after the last step is zero only if the task itself
ended there; a time limit, or a cut by the end of the batch, is no end: the value goes on.
"""

import numpy as np
from scipy.signal import lfilter

from elute.episodes import Array


def advantages(rewards: Array, values: Array, *, gamma: float, lam: float) -> Array:
    """A_t for rewards (n,) and values (n + 1,), the last being that of the state after the end."""
    deltas = rewards + gamma * values[1:] - values[:-1]
    found: Array = lfilter([1.0], [1.0, -gamma * lam], deltas[::-1])[::-1]
    return np.ascontiguousarray(found)
