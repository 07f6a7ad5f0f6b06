"""Claims about the method's own equations, checked on the schedule and on Gaussian data.

Three of them are slips of notation. No measurement decides these: they are found by reading, which
`where` says, and the numbers only show how much hangs on them.
"""

import numpy as np

from elute.diffusion.schedule import Schedule, Step
from elute.theory.claims.claim import Claim, Numbers, near
from elute.theory.wiener import contraction

LINEAR = Schedule.linear()
SPREAD, START = 0.3, 10
"""Standard deviation of the data and reverse step at which the chain is run."""
LEVEL = 0.6


def _levels() -> Numbers:
    """Data of variance 1 should keep it; the signal's step and the noise's step may differ."""
    alpha_bar = LINEAR.alpha_bar[1:]
    return {
        "variance off by, t another step than i": float(alpha_bar.max() - alpha_bar.min()),
        "variance off by, t = i": float(np.abs(alpha_bar + (1 - alpha_bar) - 1).max()),
    }


def chain_factor(*, in_denominator: bool) -> float:
    """What the mean of the chain leaves of x_s = 1, if the data is N(0, SPREAD^2)."""
    x = float(LINEAR.signal[START])
    for i in range(START, 0, -1):
        variance = LINEAR.alpha_bar[i] * SPREAD**2 + 1 - LINEAR.alpha_bar[i]
        eps = LINEAR.noise[i] * x / variance
        share = 1 / (LINEAR.noise[i] * eps) if in_denominator else eps / LINEAR.noise[i]
        x = float((x - LINEAR.beta[i] * share) / np.sqrt(LINEAR.alpha[i]))
    return x


def _reverse_step() -> Numbers:
    return {
        "closed form": float(contraction(SPREAD**2, LINEAR.alpha_bar[START])),
        "as printed": chain_factor(in_denominator=True),
        "eps in the numerator": chain_factor(in_denominator=False),
    }


def _last_noise() -> Numbers:
    return {
        "spread of x_hat, noise at every step": float(np.sqrt(LINEAR.beta[1])),
        "spread of x_hat, none at the last": LINEAR.ancestral(Step(1))[-1].add,
    }


def _drawn_steps() -> Numbers:
    n = LINEAR.n_steps
    return {
        "least noise among 0..N-1": float(LINEAR.noise[:n].min()),
        "largest of 0..N-1": float(max(range(n))),
        "least noise among 1..N": float(LINEAR.noise[1:].min()),
        "largest of 1..N": float(max(range(1, n + 1))),
        "N": float(n),
    }


def _noise_level() -> Numbers:
    return {
        "deviation by N(a, delta)": float(np.sqrt(LEVEL)),
        "deviation by N(a, xi^2)": LEVEL,
    }


def _time_of_step() -> Numbers:
    return {"t_r as printed": 100.0, "t_r = i_r / N": float(LINEAR.time(Step(100)))}


CLAIMS = (
    Claim(
        claim="training loss: one noise level",
        where="Eq. 5; by reading",
        printed="signal at alpha_bar_i, noise at alpha_bar_t",
        measure=_levels,
        holds=lambda n: n["variance off by, t another step than i"] < 1e-9,
        corrected=lambda n: n["variance off by, t = i"] < 1e-9,
    ),
    Claim(
        claim="reverse step: the chain of Gaussian data leaves its Wiener factor",
        where="Eq. 7, Algorithm 2",
        printed="predicted noise in the denominator",
        measure=_reverse_step,
        holds=lambda n: near(n["as printed"], n["closed form"]),
        corrected=lambda n: near(n["eps in the numerator"], n["closed form"]),
    ),
    Claim(
        claim="last step: a single point is recovered",
        where="Eq. 7, Algorithm 2",
        printed="noise at every step",
        measure=_last_noise,
        holds=lambda n: n["spread of x_hat, noise at every step"] < 1e-9,
        corrected=lambda n: n["spread of x_hat, none at the last"] < 1e-9,
    ),
    Claim(
        claim="steps drawn in training: each has noise to predict, N is among them",
        where="Algorithm 1, section 4.2",
        printed="i from {0, ..., N-1}",
        measure=_drawn_steps,
        holds=lambda n: n["least noise among 0..N-1"] > 0 and n["largest of 0..N-1"] == n["N"],
        corrected=lambda n: n["least noise among 1..N"] > 0 and n["largest of 1..N"] == n["N"],
    ),
    Claim(
        claim="noise levels .6, .4, .25 are one quantity throughout",
        where="section 5 and appendix, Data Collection; by reading",
        printed="variance delta in the text, deviation xi in the appendix",
        measure=_noise_level,
        holds=lambda n: near(n["deviation by N(a, delta)"], n["deviation by N(a, xi^2)"]),
        corrected=lambda n: n["deviation by N(a, xi^2)"] == LEVEL,
    ),
    Claim(
        claim="the optimal t_r is a time",
        where="section 5.2, Impact of optimal i_r; by reading",
        printed="t_r = 100",
        measure=_time_of_step,
        holds=lambda n: 0 <= n["t_r as printed"] <= 1,
        corrected=lambda n: 0 <= n["t_r = i_r / N"] <= 1,
    ),
)
