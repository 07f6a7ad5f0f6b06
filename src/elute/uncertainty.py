"""How far a mean or a success rate may be off, for whoever reports one."""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np

from elute.errors import EluteError


def stderr(values: Sequence[float]) -> float | None:
    """Standard error of a mean (ddof 1); none of a single value."""
    return float(np.std(values, ddof=1) / sqrt(len(values))) if len(values) > 1 else None


def wilson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of a share: the p that the observed share does not contradict.

        |k/n - p| <= z sqrt(p (1 - p) / n),   z the normal quantile of (1 + confidence) / 2

    Raises:
        EluteError: no trials, or more successes than trials.
    """
    if not 0 <= successes <= trials or trials < 1:
        raise EluteError(f"{successes} successes of {trials} trials; expected 0 to at least 1")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, weight = successes / trials, z * z / trials
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * sqrt(share * (1 - share) / trials + weight / (4 * trials))
    return max(0.0, centre - half), min(1.0, centre + half)
