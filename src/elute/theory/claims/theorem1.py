"""Claims about the forward process, checked on Gaussians."""

import numpy as np

from elute.diffusion.schedule import Floats
from elute.theory.claims.claim import Claim, Numbers, near
from elute.theory.divergence import Gaussian, flow, gaussian_fisher, gaussian_kl, kl_rate
from elute.theory.zeta import REAL

TIMES = np.linspace(0.01, 0.99, 25)
STEP = 1e-4
PAIRS = (
    (Gaussian.of(0.0, 1.0), Gaussian.of(0.6, 1.0)),
    (Gaussian.of(0.0, 0.3), Gaussian.of(-1.0, 0.7)),
    (
        Gaussian(np.zeros(2), np.array([[1.0, 0.8], [0.8, 1.0]])),
        Gaussian(np.array([0.2, -0.5]), np.array([[1.5, -0.3], [-0.3, 0.4]])),
    ),
)
"""Optimal and sub-optimal data."""


def _kl(pair: tuple[Gaussian, Gaussian], t: float) -> float:
    zeta = float(REAL.zeta(t))
    return gaussian_kl(pair[0].diffused(zeta), pair[1].diffused(zeta))


def _rates(pair: tuple[Gaussian, Gaussian]) -> tuple[Floats, Floats]:
    """Of KL by differences, and the Fisher divergence, at `TIMES`."""
    slopes = [(_kl(pair, t + STEP) - _kl(pair, t - STEP)) / (2 * STEP) for t in TIMES]
    zetas = [float(zeta) for zeta in REAL.zeta(TIMES)]
    fisher = [gaussian_fisher(pair[0].diffused(z), pair[1].diffused(z)) for z in zetas]
    return np.array(slopes), np.array(fisher)


def _equality() -> Numbers:
    ratios = []
    for pair in PAIRS:
        slopes, fisher = _rates(pair)
        ratios.append(slopes / kl_rate(REAL.beta(TIMES), fisher))
    every = np.concatenate(ratios)
    return {"least ratio": float(every.min()), "largest ratio": float(every.max())}


def _without_beta() -> Numbers:
    slopes, fisher = _rates(PAIRS[0])
    ratio = slopes / kl_rate(REAL.beta(TIMES), fisher, form="printed")
    return {
        f"d KL / dt over -F / 2, t = {TIMES[0]:g}": float(ratio[0]),
        f"d KL / dt over -F / 2, t = {TIMES[-1]:g}": float(ratio[-1]),
        "at least 1 from t": (1 - REAL.first) / REAL.growth,
        "d KL / dt over -beta F / 2, least": _equality()["least ratio"],
    }


def _monotone() -> Numbers:
    times = np.linspace(0, 1, 201)
    rises, ratios = [], []
    for pair in PAIRS:
        kl = np.array([_kl(pair, t) for t in times])
        rises.append(np.diff(kl).max())
        ratios.append(kl[-1] / kl[0])
    return {"largest rise": float(max(rises)), "KL left at t = 1, at most": float(max(ratios))}


def _fokker_planck() -> Numbers:
    """The change of rho beside -div(h rho), of one Gaussian at one place."""
    start, t, x, h = Gaussian.of(0.5, 0.3), 0.2, 0.3, 1e-4

    def density(x: float, t: float) -> float:
        at = start.diffused(float(REAL.zeta(t)))
        variance = at.covariance[0, 0]
        return float(np.exp(-((x - at.mean[0]) ** 2) / (2 * variance)) / np.sqrt(variance))

    def carried(x: float, minus: bool) -> float:
        score = start.diffused(float(REAL.zeta(t))).score([[x]])[0, 0]
        moved = flow(x, score, REAL.beta(t), form="corrected" if minus else "printed")
        return float(moved) * density(x, t)

    truth = (density(x, t + h) - density(x, t - h)) / (2 * h)
    printed, corrected = (
        -(carried(x + h, minus) - carried(x - h, minus)) / (2 * h) for minus in (False, True)
    )
    return {"as printed, over the truth": printed / truth, "with a minus": corrected / truth}


def _least_divergence() -> Numbers:
    """Where KL alone would have the reverse point, for light and heavy noise."""
    times = np.linspace(0, 1, 101)
    found = {}
    for level in (0.25, 0.6):
        pair = Gaussian.of(0.0, 1.0), Gaussian.of(0.0, 1 + level**2)
        found[f"t of least KL, noise {level}"] = float(
            times[np.argmin([_kl(pair, t) for t in times])]
        )
    return found


CLAIMS = (
    Claim(
        claim="KL falls at least as fast as the Fisher divergence says",
        where="Theorem 1, Eq. 8",
        printed="d KL / dt <= -(beta_t / 2) F",
        measure=_equality,
        holds=lambda n: n["least ratio"] > 1 - 1e-5,
    ),
    Claim(
        claim="KL falls all the way from t = 0 to t = 1",
        where="Theorem 1",
        printed="monotonically decreasing",
        measure=_monotone,
        holds=lambda n: n["largest rise"] < 0,
    ),
    Claim(
        claim="KL falls by half the Fisher divergence",
        where="below Theorem 1",
        printed="d KL / dt <= -F / 2",
        measure=_without_beta,
        holds=lambda n: n["d KL / dt over -F / 2, t = 0.01"] >= 1,
        corrected=lambda n: n["d KL / dt over -beta F / 2, least"] > 1 - 1e-5,
    ),
    Claim(
        claim="the density flows by h = (beta_t / 2)(x + grad log rho)",
        where="proof of Theorem 1, Fokker-Planck equation",
        printed="h without a minus",
        measure=_fokker_planck,
        holds=lambda n: near(n["as printed, over the truth"], 1, 1e-3),
        corrected=lambda n: near(n["with a minus"], 1, 1e-3),
    ),
    Claim(
        claim="Theorem 1 makes worse demonstrations ask for a larger step",
        where="section 5.2, Impact of optimal i_r",
        printed="confirmed by the sweep over i_r",
        measure=_least_divergence,
        holds=lambda n: n["t of least KL, noise 0.25"] < n["t of least KL, noise 0.6"],
    ),
)
