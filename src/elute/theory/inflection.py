"""Theorem 4: where the lower bound of the distance between x_o and x_hat bends.

    lambda(t) = zeta(t) C~ - ||delta|| - sqrt(y - 1) C,     y = exp(2 zeta(t))
    lambda''(t) = 0   <=>   C~ / C = G(t)
    G(t) = y (y - 1)^(-3/2) [ (y - 1) + (zeta'^2 / zeta'') (y - 2) ]

C~ is the least of 2 ||grad log rho_t||, C bounds the norm of the noise added on the way down. delta
does not enter. G grows with t, so that there is one root.

Deviations from the paper:
1. Its equation lacks the factor y that the derivative of sqrt(y - 1) brings, and has no solution
   where its own premise holds. It follows neither from the lambda'' nor from the lambda' that it
   prints (`printed_slope_ratio`, `printed_curvature_ratio`).
2. It says that lambda is smooth before the root and steep after it; the opposite is true.
3. Its C holds only for failure probabilities above 2 exp(-d / 8) (0.11 for d = 23). Here the tail
   of Laurent and Massart (2000) is used, which always holds (`bounds.noise_bound`).
4. C~ taken over all t is an infimum that large t decides. For data (`inflection`) it belongs to t:
   the least so far.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from elute.diffusion.schedule import Floats, Schedule, Step, Time
from elute.theory.zeta import REAL, Form, LinearBeta, floats, is_printed

GRID = np.linspace(1e-3, 1.0, 1000)
"""Times between which a root is looked for."""


def bend(schedule: Schedule, *, form: Form = "corrected") -> Floats:
    """G at each step of any schedule, or the printed side of Eq. 11; minus infinity at step 0."""
    times = np.arange(schedule.n_steps + 1) / schedule.n_steps
    zeta = np.array([schedule.zeta(Time(t)) for t in times])
    speed = 0.5 * np.array([schedule.beta_at(Time(t)) for t in times])
    acceleration = np.gradient(speed, times)
    y = np.exp(2 * zeta[1:])
    return np.concatenate([[-np.inf], _side(y, speed[1:] ** 2 / acceleration[1:], form)])


def inflection(schedule: Schedule, ratio: Floats) -> Step:
    """The first step at which G has reached C~ / C, given at each step; N if it never does."""
    reached = np.flatnonzero(bend(schedule) >= ratio)
    return Step(int(reached[0]) if len(reached) else schedule.n_steps)


def inflection_ratio(t: ArrayLike, beta: LinearBeta = REAL, *, form: Form = "corrected") -> Floats:
    """The C~ / C with which lambda bends at t: G(t).

    Printed (Eq. 11): (y - 1)^(-1/2) - (zeta'^2 / zeta'') (y - 1)^(-3/2).
    """
    return _side(*_terms(t, beta), form)


def printed_slope_ratio(t: ArrayLike, beta: LinearBeta = REAL) -> Floats:
    """What setting the derivative of the *printed* lambda' to 0 gives.

    (y - 1)^(-1/2) - (zeta'^2 / zeta'') y (y - 1)^(-3/2), which is negative.
    """
    y, drive = _terms(t, beta)
    return (y - 1) ** -0.5 - drive * y * (y - 1) ** -1.5


def printed_curvature_ratio(t: ArrayLike, beta: LinearBeta = REAL) -> Floats:
    """What setting the *printed* lambda'' to 0 gives.

    (y - 1)^(-1/2) - (zeta'^2 / zeta'') (y - 1)^(1/2).
    """
    y, drive = _terms(t, beta)
    return (y - 1) ** -0.5 - drive * (y - 1) ** 0.5


def inflection_times(ratio: float, beta: LinearBeta = REAL, *, form: Form = "corrected") -> Floats:
    """Every t in (0, 1] with lambda''(t) = 0 for this C~ / C; none if there is none (Theorem 4)."""

    def missing(t: float) -> float:
        return float(inflection_ratio(t, beta, form=form)) - ratio

    signs = np.sign(inflection_ratio(GRID, beta, form=form) - ratio)
    turns = np.flatnonzero(signs[1:] * signs[:-1] < 0)
    found = [brentq(missing, GRID[i], GRID[i + 1], xtol=1e-14) for i in turns]
    return np.sort(np.concatenate([found, GRID[signs == 0]]))


def _side(y: Floats, drive: Floats, form: Form) -> Floats:
    if is_printed(form):
        return floats((y - 1) ** -0.5 - drive * (y - 1) ** -1.5)
    return floats(y * (y - 1) ** -1.5 * (y - 1 + drive * (y - 2)))


def _terms(t: ArrayLike, beta: LinearBeta) -> tuple[Floats, Floats]:
    """Y, and zeta'^2 / zeta''."""
    return np.exp(2 * beta.zeta(t)), beta.slope(t) ** 2 / beta.curvature
