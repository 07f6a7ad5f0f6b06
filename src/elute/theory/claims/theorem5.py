"""Claims about the choice of the failure probability."""

import numpy as np

from elute.theory.bounds import noise_bound
from elute.theory.claims.claim import Claim, Numbers, near
from elute.theory.claims.theorem2 import RATIO
from elute.theory.elasticity import (
    DIMENSIONS,
    FAILURE_PROBS,
    PAPER_DIMENSIONS,
    elasticity,
    inflection_elasticity,
)
from elute.theory.inflection import inflection_times

SENSITIVE = 0.1
"""An elasticity from which on a tenfold sigma would move a quantity by a quarter."""


def _formula() -> Numbers:
    d, sigma, h = 23, 0.01, 1e-6
    up, down = (np.log(noise_bound(d, sigma * np.exp(s), form="printed")) for s in (h, -h))
    return {
        "E by differences": float((up - down) / (2 * h)),
        "E by the formula": float(elasticity(d, sigma, form="printed")),
    }


def _size() -> Numbers:
    d, sigma = np.meshgrid(PAPER_DIMENSIONS, np.geomspace(*FAILURE_PROBS, 50))
    size = np.abs(elasticity(d, sigma, form="printed"))
    return {"least |E|": float(size.min()), "largest |E|": float(size.max())}


def _dimension() -> Numbers:
    return {
        f"|E|, d = {d}": abs(float(elasticity(d, FAILURE_PROBS[1], form="printed")))
        for d in DIMENSIONS
    }


def _dimension_of_step() -> Numbers:
    """Of t_p where C~ / C = 3, at the largest sigma of the paper."""
    t = inflection_times(RATIO)[0]
    found = {
        f"|E| of t_p, d = {d}": abs(float(inflection_elasticity(t, d, FAILURE_PROBS[1])))
        for d in DIMENSIONS
    }
    return found | {"solutions of Eq. 11": float(len(inflection_times(RATIO, form="printed")))}


def _falls(numbers: Numbers, name: str = "|E|") -> bool:
    sizes = [numbers[f"{name}, d = {d}"] for d in DIMENSIONS]
    return bool((np.diff(sizes) < 0).all())


def _step() -> Numbers:
    """Of t_p, with C~ such that C~ / C = 3 at sigma = .05."""
    d = PAPER_DIMENSIONS[0]
    least = RATIO * noise_bound(d, FAILURE_PROBS[1])
    times = {sigma: inflection_times(float(least / noise_bound(d, sigma)))[0]
             for sigma in FAILURE_PROBS}  # fmt: skip
    sizes = [abs(float(inflection_elasticity(t, d, sigma))) for sigma, t in times.items()]
    return {
        "t_p, sigma = 1e-4": float(times[FAILURE_PROBS[0]]),
        "t_p, sigma = .05": float(times[FAILURE_PROBS[1]]),
        "largest |E| of C": max(abs(float(elasticity(d, sigma))) for sigma in FAILURE_PROBS),
        "largest |E| of t_p": max(sizes),
        "solutions of Eq. 11": float(len(inflection_times(RATIO, form="printed"))),
    }


CLAIMS = (
    Claim(
        claim="elasticity of C_sigma,d",
        where="proof of Theorem 5",
        printed="E = -1 / (sqrt(2 d ln(2 / sigma)) + 4 ln(2 / sigma))",
        measure=_formula,
        holds=lambda n: near(n["E by the formula"], n["E by differences"], 1e-6),
    ),
    Claim(
        claim="|E| < .0113 for every d",
        where="proof of Theorem 5",
        printed=".0113",
        measure=_size,
        holds=lambda n: n["largest |E|"] < 0.0113,
    ),
    Claim(
        claim="C depends less on sigma as d grows",
        where="Theorem 5",
        printed="decreasing",
        measure=_dimension,
        holds=_falls,
    ),
    Claim(
        claim="the inflection depends little on sigma",
        where="Theorem 5",
        printed="low sensitivity, by the elasticity of C",
        measure=_step,
        holds=lambda n: n["solutions of Eq. 11"] >= 1 and n["largest |E| of t_p"] < SENSITIVE,
        corrected=lambda n: n["largest |E| of t_p"] < SENSITIVE,
    ),
    Claim(
        claim="the inflection depends less on sigma as d grows",
        where="Theorem 5",
        printed="shown for C alone",
        measure=_dimension_of_step,
        holds=lambda n: n["solutions of Eq. 11"] >= 1 and _falls(n, "|E| of t_p"),
        corrected=lambda n: _falls(n, "|E| of t_p"),
    ),
)
