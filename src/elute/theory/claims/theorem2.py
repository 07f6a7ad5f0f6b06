"""Claims about the distance of a purified pair from the optimal one, and its bounds."""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from elute.theory.bounds import (
    exceedance,
    lambda_slope,
    least_failure_prob,
    lower_bound,
    noise_bound,
    premise_bracket,
    required_ratio,
    reverse_variance,
    score_term,
    upper_bound,
)
from elute.theory.claims.claim import Claim, Numbers, near
from elute.theory.divergence import Diffused
from elute.theory.elasticity import FAILURE_PROBS, PAPER_DIMENSIONS
from elute.theory.zeta import REAL

TIMES = np.linspace(1e-3, 1.0, 1000)
ROWS = np.array([[-1.0], [0.5], [2.0]])
"""A small data set, of which the score is known everywhere."""
RATIO = 3.0
"""C~ / C at which lambda is looked at: large enough for its premise."""


def _variance() -> Numbers:
    """The printed equation from t down to 0, and the one in reverse time, solved numerically."""
    t = 0.3

    def down(s: float, variance: list[float]) -> list[float]:
        return [float(REAL.beta(s)) * (1 - variance[0])]

    def back(u: float, variance: list[float]) -> list[float]:
        return [float(REAL.beta(t - u)) * (1 + variance[0])]

    options = {"rtol": 1e-9, "atol": 1e-9}
    printed = solve_ivp(down, (t, 0.0), [0.0], **options).y[0, -1]
    reverse = solve_ivp(back, (0.0, t), [0.0], **options).y[0, -1]
    return {
        "variance by the printed equation": float(printed),
        "variance in reverse time": float(reverse),
        "exp(2 zeta) - 1": float(reverse_variance(REAL.zeta(t))),
    }


def _score_term() -> Numbers:
    """A score of constant norm 1 (C_gd = 2) and direction, carried back from t = .5."""
    t, bound = 0.5, 2.0

    def back(u: float, moved: list[float]) -> list[float]:
        beta = float(REAL.beta(t - u))
        return [0.5 * beta * moved[0] + beta * 0.5 * bound]

    moved = solve_ivp(back, (0.0, t), [0.0], rtol=1e-9, atol=1e-9).y[0, -1]
    return {
        "moved": float(moved),
        "zeta C_gd": float(score_term(REAL.zeta(t), bound, form="printed")),
        "(exp(zeta) - 1) C_gd": float(score_term(REAL.zeta(t), bound)),
    }


def _largest_score() -> Numbers:
    diffused = Diffused.of(ROWS, float(REAL.zeta(0.3)))
    places = np.array([[10.0], [100.0], [1000.0]])
    scores = 2 * np.abs(diffused.log_density_and_score(places)[1][:, 0])
    return {
        f"2 ||score|| at distance {x:.0f}": float(s)
        for x, s in zip(places[:, 0], scores, strict=True)
    }


def least_score() -> float:
    """2 |grad log rho| at a mode of the small data set."""
    diffused = Diffused.of(ROWS, float(REAL.zeta(0.3)))

    def score(x: float) -> float:
        return float(diffused.log_density_and_score(np.array([[x]]))[1][0, 0])

    return 2 * abs(score(brentq(score, -10.0, 10.0, xtol=1e-14)))


def _lower_bound() -> Numbers:
    least = least_score()
    noise = float(noise_bound(1, 0.05))
    bound = lower_bound(REAL.zeta(TIMES), score=least, delta=0.0, noise=noise, form="printed")
    return {"C~": least, "largest lambda": float(bound.max())}


def _cancelling() -> Numbers:
    """A score of norm 1 that turns round once."""
    angles = np.linspace(0, 2 * np.pi, 1001)[:-1]
    turning = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return {
        "norm of the integral": float(np.linalg.norm(turning.mean(axis=0))),
        "integral of the least norm": float(np.linalg.norm(turning, axis=1).min()),
    }


def _covered() -> Numbers:
    low = FAILURE_PROBS[0]
    d, sigma = np.meshgrid(np.arange(1, 201), np.geomspace(*FAILURE_PROBS, 20))
    always = (exceedance(d, noise_bound(d, sigma)) / sigma).max()
    least = {f"least sigma, d = {d}": float(least_failure_prob(d)) for d in PAPER_DIMENSIONS}
    return least | {"least sigma used": low, "corrected C: largest P / sigma": float(always)}


def _probability() -> Numbers:
    d, sigma = np.meshgrid(PAPER_DIMENSIONS, np.geomspace(*FAILURE_PROBS, 20))
    bound = noise_bound(d, sigma, form="printed")
    low = FAILURE_PROBS[0]
    small = np.arange(1, 30)
    kept = exceedance(small, noise_bound(small, low, form="printed")) <= low
    return {
        "largest P / sigma": float((exceedance(d, bound) / sigma).max()),
        "least d for sigma 1e-4": float(small[kept][0]),
    }


def _reduction() -> Numbers:
    delta, noise = 1.0, float(noise_bound(23, 0.05))
    bound = upper_bound(REAL.zeta([0.0, *TIMES]), score=0.0, delta=delta, noise=noise)
    return {
        "least Lambda over ||delta||, C_gd = 0": float(bound.min()),
        "at t": float([0.0, *TIMES][int(np.argmin(bound))]),
    }


def _slope_of_zeta() -> Numbers:
    t, h = 0.5, 1e-6
    return {
        "zeta' by differences, t = .5": float((REAL.zeta(t + h) - REAL.zeta(t - h)) / (2 * h)),
        "beta": float(REAL.slope(t, form="printed")),
        "beta / 2": float(REAL.slope(t)),
    }


def lambda_at(t: float, delta: float = 0.0) -> float:
    """The printed lower bound with C~ = 3 and C = 1."""
    return float(lower_bound(REAL.zeta(t), score=RATIO, delta=delta, noise=1.0, form="printed"))


def _slope() -> Numbers:
    h, found = 1e-5, {}
    for t in (0.1, 0.3, 0.5):
        found[f"by differences, t = {t}"] = (lambda_at(t + h) - lambda_at(t - h)) / (2 * h)
        for form in ("printed", "corrected"):
            slope = lambda_slope(t, REAL, score=RATIO, noise=1.0, form=form)
            found[f"{form}, t = {t}"] = float(slope)
    return found


def _slopes_agree(numbers: Numbers, form: str) -> bool:
    return all(
        near(numbers[f"{form}, t = {t}"], numbers[f"by differences, t = {t}"])
        for t in (0.1, 0.3, 0.5)
    )


def _lambda_monotone() -> Numbers:
    slope = lambda_slope(TIMES, REAL, score=RATIO, noise=1.0)
    value = lower_bound(REAL.zeta(TIMES), score=RATIO, delta=0.0, noise=1.0, form="printed")
    y = np.exp(2 * REAL.zeta(TIMES))
    return {
        "least lambda'": float(slope.min()),
        "least lambda' where lambda >= 0": float(slope[value >= 0].min()),
        "C~ / C with which lambda grows anywhere": float((y / np.sqrt(y - 1)).min()),
    }


def _bracket() -> Numbers:
    zeta = REAL.zeta(TIMES)
    last = brentq(lambda z: float(premise_bracket(z)), 0.5, 1.0, xtol=1e-12)
    return {
        "least bracket as printed": float(premise_bracket(zeta, form="printed").min()),
        "least bracket corrected": float(premise_bracket(zeta).min()),
        "not negative up to zeta": last,
        "up to t": float(REAL.time(last)),
    }


def _premise() -> Numbers:
    ratio = required_ratio(REAL.zeta(TIMES))
    return {
        "C~ / C needed": float(ratio.min()),
        "at zeta": float(REAL.zeta(TIMES[np.argmin(ratio)])),
        "C~ / C there is": least_score() / float(noise_bound(1, 0.05)),
    }


def _upper_monotone() -> Numbers:
    def growth(form: str) -> float:
        bound = upper_bound(
            REAL.zeta(TIMES), score=1.0, delta=1.0, noise=1.0,
            form="printed" if form == "printed" else "corrected",
        )  # fmt: skip
        return float(np.diff(bound).min())

    return {"least growth, printed": growth("printed"), "corrected": growth("corrected")}


CLAIMS = (
    Claim(
        claim="variance of the way back is exp(2 zeta) - 1",
        where="proof of Theorem 2",
        printed="solution of dS/dt = -beta S + beta from t to 0",
        measure=_variance,
        holds=lambda n: near(n["variance by the printed equation"], n["exp(2 zeta) - 1"]),
        corrected=lambda n: near(n["variance in reverse time"], n["exp(2 zeta) - 1"]),
    ),
    Claim(
        claim="the score moves a pair by zeta C_gd at most",
        where="Theorem 2, Eq. 10",
        printed="zeta C_gd",
        measure=_score_term,
        holds=lambda n: n["moved"] <= n["zeta C_gd"] * (1 + 1e-6),
        corrected=lambda n: n["moved"] <= n["(exp(zeta) - 1) C_gd"] * (1 + 1e-6),
    ),
    Claim(
        claim="the score has an upper bound C_gd",
        where="Theorem 2",
        printed="2 ||grad log rho_t(x)|| <= C_gd for all x",
        measure=_largest_score,
        holds=lambda n: n["2 ||score|| at distance 1000"] <= n["2 ||score|| at distance 10"],
        vacuous=lambda n: n["2 ||score|| at distance 1000"] > 5 * n["2 ||score|| at distance 100"],
    ),
    Claim(
        claim="the score has a lower bound C~ that makes lambda a bound",
        where="Theorem 2, Eq. 9",
        printed="C~ <= 2 ||grad log rho_t(x)|| for all x",
        measure=_lower_bound,
        holds=lambda n: n["largest lambda"] > 0,
        vacuous=lambda n: n["largest lambda"] <= 0,
    ),
    Claim(
        claim="an integral of scores is as long as the integral of their least norm",
        where="proof of Theorem 2, lower bound",
        printed="||int beta grad log rho|| >= zeta C~",
        measure=_cancelling,
        holds=lambda n: n["norm of the integral"] >= n["integral of the least norm"] - 1e-9,
    ),
    Claim(
        claim="the condition sigma >= 2 exp(-d / 8) allows sigma in [1e-4, .05]",
        where="Theorem 2 and Theorem 5",
        printed="d = 14, 23, 119",
        measure=_covered,
        holds=lambda n: all(
            n[f"least sigma, d = {d}"] <= n["least sigma used"] for d in PAPER_DIMENSIONS
        ),
        corrected=lambda n: n["corrected C: largest P / sigma"] <= 1,
    ),
    Claim(
        claim="the noise exceeds C_sigma,d with probability sigma at most",
        where="Theorem 2",
        printed="d = 14, 23, 119, sigma in [1e-4, .05]",
        measure=_probability,
        holds=lambda n: n["largest P / sigma"] <= 1,
    ),
    Claim(
        claim="Theorem 2 shows that purification brings a pair nearer",
        where="abstract, section 4.3; our reading of them",
        printed="distance bounded by Lambda(t_r)",
        measure=_reduction,
        holds=lambda n: n["least Lambda over ||delta||, C_gd = 0"] < 1,
        vacuous=lambda n: n["least Lambda over ||delta||, C_gd = 0"] >= 1,
    ),
    Claim(
        claim="zeta' = beta",
        where="proof of Proposition 3",
        printed="beta",
        measure=_slope_of_zeta,
        holds=lambda n: near(n["beta"], n["zeta' by differences, t = .5"]),
        corrected=lambda n: near(n["beta / 2"], n["zeta' by differences, t = .5"]),
    ),
    Claim(
        claim="lambda'",
        where="proof of Proposition 3",
        printed="zeta' (C~ - C / sqrt(y - 1))",
        measure=_slope,
        holds=lambda n: _slopes_agree(n, "printed"),
        corrected=lambda n: _slopes_agree(n, "corrected"),
    ),
    Claim(
        claim="lambda grows with t wherever it is not negative",
        where="Proposition 3",
        printed="monotonically increasing",
        measure=_lambda_monotone,
        holds=lambda n: n["least lambda' where lambda >= 0"] >= 0,
    ),
    Claim(
        claim="lambda >= 0 gives lambda' >= 0",
        where="proof of Proposition 3",
        printed="exp(2 zeta) - zeta - 1 >= 0",
        measure=_bracket,
        holds=lambda n: n["least bracket corrected"] >= 0,
    ),
    Claim(
        claim="the premise lambda >= 0 can be met",
        where="proof of Proposition 3",
        printed="assumed",
        measure=_premise,
        holds=lambda n: n["C~ / C there is"] >= n["C~ / C needed"],
        vacuous=lambda n: n["C~ / C there is"] < n["C~ / C needed"],
    ),
    Claim(
        claim="Lambda grows with t",
        where="Proposition 3",
        printed="monotonically increasing",
        measure=_upper_monotone,
        holds=lambda n: n["least growth, printed"] > 0 and n["corrected"] > 0,
    ),
)
