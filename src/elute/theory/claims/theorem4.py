"""Claims about the inflection of lambda and the choice of the reverse step."""

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from elute.diffusion.schedule import Schedule
from elute.theory.bounds import lambda_curvature, required_ratio
from elute.theory.claims.claim import Claim, Numbers, near
from elute.theory.claims.theorem2 import RATIO, lambda_at
from elute.theory.inflection import (
    inflection_ratio,
    inflection_times,
    printed_curvature_ratio,
    printed_slope_ratio,
)
from elute.theory.wiener import matched_step
from elute.theory.zeta import FORMS, REAL, SIMPLIFIED

UNIT = np.linspace(1e-4, 1.0, 2001)
"""zeta in [0, 1], where the paper has its left side grow."""


def curvature_at(t: float, delta: float = 0.0, h: float = 1e-4) -> float:
    """Of lambda, by differences, C~ = 3 and C = 1."""
    around = (lambda_at(t + h, delta) + lambda_at(t - h, delta)) / 2
    return 2 * (around - lambda_at(t, delta)) / h**2


def _curvature() -> Numbers:
    t = 0.5
    found = {"by differences, t = .5": curvature_at(t)}
    for form in FORMS:
        bend = lambda_curvature(t, REAL, score=RATIO, noise=1.0, form=form)
        found[form] = float(bend)
    return found


def _equation() -> Numbers:
    """The left side for C~ / C = 3 where lambda really bends."""
    t = float(inflection_times(RATIO)[0])
    return {
        "C~ / C": RATIO,
        "lambda'' by differences": curvature_at(t),
        "printed left side": float(inflection_ratio(t, form="printed")),
        "from the printed lambda'": float(printed_slope_ratio(t)),
        "from the printed lambda''": float(printed_curvature_ratio(t)),
        "corrected left side": float(inflection_ratio(t)),
    }


def _left_side() -> Numbers:
    def side(zeta: float) -> float:
        return float(inflection_ratio(SIMPLIFIED.time(zeta), SIMPLIFIED, form="printed"))

    peak = minimize_scalar(lambda zeta: -side(zeta), bounds=(1e-3, 1.0), method="bounded")
    corrected = inflection_ratio(SIMPLIFIED.time(UNIT), SIMPLIFIED)
    return {
        "largest": -float(peak.fun),
        "at zeta": float(peak.x),
        "at zeta = 1": side(1.0),
        "corrected: least growth": float(np.diff(corrected).min()),
    }


def needed_ratio() -> float:
    """The least C~ / C with which lambda >= 0 anywhere."""
    return float(required_ratio(REAL.zeta(np.linspace(1e-3, 1, 1000))).min())


def least_inflection() -> float:
    """The least t_p where lambda >= 0 anywhere."""
    return float(inflection_times(needed_ratio())[0])


def _existence() -> Numbers:
    needed = needed_ratio()
    ratios = (needed, 3.0, 5.0)
    printed, corrected = (
        [len(inflection_times(r, beta, form=form)) for r in ratios for beta in (REAL, SIMPLIFIED)]
        for form in FORMS
    )
    return {
        "C~ / C needed": needed,
        "fewest solutions, printed": float(min(printed)),
        "fewest solutions, corrected": float(min(corrected)),
        "most solutions, corrected": float(max(corrected)),
    }


def _shape() -> Numbers:
    t = float(inflection_times(RATIO)[0])
    return {
        "t_p": t,
        "lambda'' before": curvature_at(0.5 * t),
        "lambda'' after": curvature_at(1.5 * t),
    }


def _correlation() -> Numbers:
    found = {
        f"t_p, ||delta|| = {delta:g}": float(
            brentq(lambda t, delta=delta: curvature_at(t, delta, 1e-3), 0.2, 0.5)
        )
        for delta in (0.0, 1.0)
    }
    linear = Schedule.linear()
    return found | {
        f"best step of Gaussian data, noise {level}": float(matched_step(linear, level**2))
        for level in (0.25, 0.6)
    }


CLAIMS = (
    Claim(
        claim="lambda''",
        where="proof of Theorem 4",
        printed="zeta'' C~ + C [-zeta'' + zeta'^2 (y - 1)] / sqrt(y - 1)",
        measure=_curvature,
        holds=lambda n: near(n["printed"], n["by differences, t = .5"]),
        corrected=lambda n: near(n["corrected"], n["by differences, t = .5"]),
    ),
    Claim(
        claim="Eq. 11 says where lambda'' = 0",
        where="Theorem 4, Eq. 11",
        printed="-(zeta'^2 / zeta'') (y - 1)^(-3/2) + (y - 1)^(-1/2) = C~ / C",
        measure=_equation,
        holds=lambda n: near(n["printed left side"], n["C~ / C"]),
        corrected=lambda n: (
            near(n["corrected left side"], n["C~ / C"]) and abs(n["lambda'' by differences"]) < 1e-3
        ),
    ),
    Claim(
        claim="the left side of Eq. 11 grows with zeta in [0, 1]",
        where="proof of Theorem 4",
        printed="monotonically increasing",
        measure=_left_side,
        holds=lambda n: n["largest"] <= n["at zeta = 1"] + 1e-6,
        corrected=lambda n: n["corrected: least growth"] > 0,
    ),
    Claim(
        claim="there is an inflection point",
        where="Theorem 4",
        printed="a solution of Eq. 11",
        measure=_existence,
        holds=lambda n: n["fewest solutions, printed"] >= 1,
        corrected=lambda n: (
            n["fewest solutions, corrected"] == 1 and n["most solutions, corrected"] == 1
        ),
    ),
    Claim(
        claim="lambda is flat before the inflection and steep after it",
        where="Theorem 4",
        printed="lambda'' < 0 before, > 0 after",
        measure=_shape,
        holds=lambda n: n["lambda'' before"] < 0 < n["lambda'' after"],
    ),
    Claim(
        claim="a larger delta asks for a larger step",
        where="Theorem 4",
        printed="positive correlation, by Eq. 11",
        measure=_correlation,
        holds=lambda n: n["t_p, ||delta|| = 1"] > n["t_p, ||delta|| = 0"] + 1e-6,
        corrected=lambda n: (
            n["best step of Gaussian data, noise 0.6"] > n["best step of Gaussian data, noise 0.25"]
        ),
    ),
)
