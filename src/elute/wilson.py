"""The interval of a success rate, for whoever counts successes."""

from math import sqrt
from statistics import NormalDist

from elute.errors import EluteError


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
