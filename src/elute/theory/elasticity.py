"""Theorem 5: how much the choice of the failure probability sigma matters.

    E = d ln C / d ln sigma
    printed C:    E = -1 / (sqrt(2 d L) + 4 L),                 L = ln(2 / sigma)
    corrected C:  E = -(sqrt(d / L) + 2) / (2 (d + 2 sqrt(d L) + 2 L)),   L = ln(1 / sigma)

Deviations from the paper:
1. The formula is right, but |E| < .0113 "for every d" is not: that is the least value over its
   dimensions and the range of sigma it names, [1e-4, .05]; the largest is .040.
2. E is about C. What the theorem speaks of is the inflection t_p; with C~ held,
   d ln t_p / d ln sigma = -E / (d ln G / d ln t)   (`inflection_elasticity`).
"""

import numpy as np
from numpy.typing import ArrayLike

from elute.diffusion.schedule import Floats
from elute.theory.inflection import inflection_ratio
from elute.theory.zeta import REAL, Form, LinearBeta, floats, is_printed

DIMENSIONS = (14, 23, 51, 119)
"""Hopper; HalfCheetah and Walker2d; Sawyer; Ant with contacts."""
PAPER_DIMENSIONS = (14, 23, 119)
"""Those that the paper names beside its range of sigma."""
FAILURE_PROBS = (1e-4, 0.05)
"""The range of sigma that the paper names."""


def elasticity(
    dimension: ArrayLike, failure_prob: ArrayLike, *, form: Form = "corrected"
) -> Floats:
    """E of C_sigma,d, as printed (Theorem 5, a true formula) or of the C that always holds."""
    d, sigma = floats(dimension), floats(failure_prob)
    if is_printed(form):
        tail = np.log(2 / sigma)
        return floats(-1 / (np.sqrt(2 * d * tail) + 4 * tail))
    tail = -np.log(sigma)
    return floats(-0.5 * (np.sqrt(d / tail) + 2) / (d + 2 * np.sqrt(d * tail) + 2 * tail))


def inflection_elasticity(
    t: ArrayLike,
    dimension: ArrayLike,
    failure_prob: ArrayLike,
    beta: LinearBeta = REAL,
    *,
    form: Form = "corrected",
) -> Floats:
    """Of t_p: d ln t_p / d ln sigma at an inflection of the corrected Theorem 4, C~ held."""
    t, h = floats(t), 1e-5
    up, down = (np.log(inflection_ratio(t * np.exp(s), beta)) for s in (h, -h))
    return floats(-elasticity(dimension, failure_prob, form=form) * 2 * h / (up - down))
