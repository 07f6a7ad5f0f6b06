"""Theorem 4, corrected: where the lower bound of the distance between x* and x_hat bends.

    lambda(t) = zeta(t) C~ - ||delta|| - sqrt(y - 1) C,     y = exp(2 zeta(t))
    lambda''(t) = 0   <=>   C~ / C = G(t)
    G(t) = y (y - 1)^(-3/2) [ (y - 1) + (zeta'^2 / zeta'') (y - 2) ]

C~ is the least of 2 ||grad log rho_t||, C bounds the norm of the noise added on the way down. delta
does not enter. G grows with t, so that there is one root.

Deviations from the paper:
1. Its equation lacks the factor y that the derivative of sqrt(y - 1) brings, and has no solution
   where its own premise holds.
2. It says that lambda is smooth before the root and steep after it; the opposite is true.
3. Its C holds only for failure probabilities above 2 exp(-d / 8) (0.11 for d = 23). Here the tail
   of Laurent and Massart (2000) is used, which always holds:
   ||eps||^2 <= d + 2 sqrt(d L) + 2 L  with probability 1 - exp(-L).
4. C~ taken over all t is an infimum that large t decides. Here it belongs to t: the least so far.
"""

import numpy as np

from elute.diffusion.schedule import Floats, Schedule, Step
from elute.errors import EluteError


def bend(schedule: Schedule) -> Floats:
    """G at each step; minus infinity at step 0."""
    times = np.arange(schedule.n_steps + 1) / schedule.n_steps
    zeta = np.array([schedule.zeta(t) for t in times])
    speed = 0.5 * np.array([schedule.beta_at(t) for t in times])
    acceleration = np.gradient(speed, times)
    y = np.exp(2 * zeta[1:])
    rest = speed[1:] ** 2 / acceleration[1:] * (y - 2)
    return np.concatenate([[-np.inf], y * (y - 1) ** -1.5 * (y - 1 + rest)])


def noise_bound(dimension: int, failure_prob: float) -> float:
    """C: ||sqrt(2) eps|| stays below it but with this probability.

    Raises:
        EluteError: the probability is not between 0 and 1.
    """
    if not 0 < failure_prob < 1:
        raise EluteError(f"failure probability {failure_prob} asked for; expected 0 to 1")
    tail = -np.log(failure_prob)
    return float(np.sqrt(2 * (dimension + 2 * np.sqrt(dimension * tail) + 2 * tail)))


def inflection(schedule: Schedule, ratio: Floats) -> Step:
    """The first step at which G has reached C~ / C, given at each step; N if it never does."""
    reached = np.flatnonzero(bend(schedule) >= ratio)
    return Step(int(reached[0]) if len(reached) else schedule.n_steps)
