"""Theorem 2 and Proposition 3: how far a purified pair may lie from the optimal one.

x_s = x_o + delta is diffused to t and denoised back to x_hat. With y = exp(2 zeta(t)),

    x_hat - x_o = delta + sqrt(2 (y - 1)) eps + int_0^t exp(zeta(s)) beta_s grad log rho_s(x_s) ds

so that, with 2 ||grad log rho|| <= C_gd on the way and ||sqrt(2) eps|| <= C but with probability
sigma (`failure_prob`),

    Lambda = ||delta|| + (exp(zeta) - 1) C_gd + sqrt(y - 1) C          from above
    ||delta|| - (exp(zeta) - 1) C_gd - sqrt(y - 1) C                   from below

The second is what is left if everything that moves the pair moves it straight back: below the step
at which it reaches zero no purifier can undo delta.

Deviations from the paper:
1. Its score term is zeta C_gd: the growth exp(zeta) of what the score contributes is missing.
2. Its lower bound lambda = zeta C~ - ||delta|| - sqrt(y - 1) C takes the norm of an integral to be
   at least the integral of the least norm, C~. Directions cancel; and every density has a mode,
   where the score is 0, so that C~ = 0 and lambda <= 0.
3. Its C holds by its own proof only for sigma >= 2 exp(-d / 8) (.35 for d = 14, .11 for d = 23).
   Here the tail of Laurent and Massart (2000) is used, which holds for every sigma and d.
4. lambda' lacks a factor y, and lambda'' does not follow from either form of it.
5. The variance of the reverse process is printed with an equation whose solution is negative.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincc

from elute.diffusion.schedule import Floats, Schedule
from elute.errors import EluteError
from elute.theory.zeta import Form, LinearBeta, floats, is_printed


def noise_bound(
    dimension: ArrayLike, failure_prob: ArrayLike, *, form: Form = "corrected"
) -> Floats:
    """C_sigma,d: ||sqrt(2) eps|| stays below it but with this probability (Theorem 2).

    C^2 = 2 (d + 2 sqrt(d L) + 2 L), L = ln(1 / sigma); printed: 2 d (1 + sqrt(8 ln(2 / sigma) / d))

    Raises:
        EluteError: a probability is not between 0 and 1.
    """
    d, sigma = floats(dimension), floats(failure_prob)
    if not ((sigma > 0) & (sigma < 1)).all():
        raise EluteError(f"failure probability {sigma} asked for; expected 0 to 1")
    if is_printed(form):
        return floats(np.sqrt(2 * d * (1 + np.sqrt(8 * np.log(2 / sigma) / d))))
    tail = -np.log(sigma)
    return floats(np.sqrt(2 * (d + 2 * np.sqrt(d * tail) + 2 * tail)))


def exceedance(dimension: ArrayLike, bound: ArrayLike) -> Floats:
    """P(||sqrt(2) eps|| > bound), exactly: the tail of a chi-squared distribution."""
    return floats(gammaincc(0.5 * floats(dimension), 0.25 * floats(bound) ** 2))


def least_failure_prob(dimension: ArrayLike) -> Floats:
    """2 exp(-d / 8): the least sigma for which the printed C is proved (Theorem 2)."""
    return 2 * np.exp(-floats(dimension) / 8)


def reverse_variance(zeta: ArrayLike, *, form: Form = "corrected") -> Floats:
    """Variance that the way back adds: exp(2 zeta) - 1.

    In reverse time u it solves dS/du = beta S + beta. The printed dS/dt = -beta S + beta, from t
    down to 0, gives 1 - exp(2 zeta) (proof of Theorem 2).
    """
    grown = np.expm1(2 * floats(zeta))
    return -grown if is_printed(form) else grown


def score_term(zeta: ArrayLike, score: ArrayLike, *, form: Form = "corrected") -> Floats:
    """The most the score can move a pair: (exp(zeta) - 1) C_gd; printed: zeta C_gd (Eq. 10)."""
    zeta = floats(zeta)
    return floats(score) * (zeta if is_printed(form) else np.expm1(zeta))


def path_score_term(schedule: Schedule, score: Floats) -> Floats:
    """The same with a bound of its own for every step, exact for the N steps of Eq. 7.

    sum_{j <= i} beta_j q_j / sqrt(alpha_bar_j), q_j = `score[j]` / 2 the most ||grad log rho_j||.
    A constant bound must be as large as the score is at the first step, where it is largest.
    """
    steps = np.arange(len(score))
    return np.cumsum(0.5 * schedule.beta[steps] * score / schedule.signal[steps])


def noise_term(zeta: ArrayLike, noise: ArrayLike) -> Floats:
    """sqrt(exp(2 zeta) - 1) C_sigma,d: what is added on both ways, but with probability sigma."""
    return np.sqrt(np.expm1(2 * floats(zeta))) * floats(noise)


def upper_bound(
    zeta: ArrayLike, *, score: ArrayLike, delta: ArrayLike, noise: ArrayLike,
    form: Form = "corrected",
) -> Floats:  # fmt: skip
    """Lambda (Eq. 10); `score` is C_gd, `noise` is C_sigma,d."""
    return score_term(zeta, score, form=form) + floats(delta) + noise_term(zeta, noise)


def lower_bound(
    zeta: ArrayLike, *, score: ArrayLike, delta: ArrayLike, noise: ArrayLike,
    form: Form = "corrected",
) -> Floats:  # fmt: skip
    """What ||x_o - x_hat|| cannot go below (Eq. 9).

    ||delta|| - (exp(zeta) - 1) C_gd - sqrt(exp(2 zeta) - 1) C, where `score` is C_gd;
    printed: lambda = zeta C~ - ||delta|| - sqrt(exp(2 zeta) - 1) C, where `score` is C~.
    """
    rest = noise_term(zeta, noise)
    if is_printed(form):
        return score_term(zeta, score, form="printed") - floats(delta) - rest
    return floats(delta) - score_term(zeta, score) - rest


def lambda_slope(
    t: ArrayLike, beta: LinearBeta, *, score: ArrayLike, noise: ArrayLike, form: Form = "corrected"
) -> Floats:
    """lambda'(t) = zeta' (C~ - C y / sqrt(y - 1)); printed without y (proof of Proposition 3)."""
    y = np.exp(2 * beta.zeta(t))
    factor = 1.0 if is_printed(form) else y
    return floats(beta.slope(t) * (floats(score) - floats(noise) * factor / np.sqrt(y - 1)))


def lambda_curvature(
    t: ArrayLike, beta: LinearBeta, *, score: ArrayLike, noise: ArrayLike, form: Form = "corrected"
) -> Floats:
    """lambda''(t) = zeta'' C~ - C y (y - 1)^(-3/2) [ zeta'' (y - 1) + zeta'^2 (y - 2) ].

    Printed (proof of Theorem 4): zeta'' C~ + C (y - 1)^(-1/2) [ -zeta'' + zeta'^2 (y - 1) ].
    """
    y, slope, bend = np.exp(2 * beta.zeta(t)), beta.slope(t), beta.curvature
    if is_printed(form):
        rest = (y - 1) ** -0.5 * (bend - slope**2 * (y - 1))
    else:
        rest = y * (y - 1) ** -1.5 * (bend * (y - 1) + slope**2 * (y - 2))
    return floats(bend * floats(score) - floats(noise) * rest)


def premise_bracket(
    zeta: ArrayLike, *, delta: ArrayLike = 0.0, noise: ArrayLike = 1.0, form: Form = "corrected"
) -> Floats:
    """The sign of lambda' where lambda >= 0 (proof of Proposition 3).

    C (y (1 - zeta) - 1) + ||delta|| sqrt(y - 1); printed: C (y - zeta - 1) + ||delta|| sqrt(y - 1).
    """
    zeta = floats(zeta)
    y = np.exp(2 * zeta)
    inner = y - zeta - 1 if is_printed(form) else y * (1 - zeta) - 1
    return floats(floats(noise) * inner + floats(delta) * np.sqrt(y - 1))


def required_ratio(zeta: ArrayLike) -> Floats:
    """The least C~ / C with which lambda >= 0 at delta = 0: sqrt(y - 1) / zeta, 2.485 at best."""
    zeta = floats(zeta)
    return np.sqrt(np.expm1(2 * zeta)) / zeta
