"""The claims that can be put to one's own data: Theorem 1 always, Theorem 2 with clean actions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elute.diffusion.schedule import Floats, Schedule
from elute.theory.bounds import noise_bound, noise_term, path_score_term, score_term
from elute.theory.claims.claim import Claim, Numbers
from elute.theory.data import FAILURE_PROB, Forward, ScoreBounds
from elute.theory.zeta import FORMS

ERRORS = 3.0
"""Standard errors that a mean may be off."""
COARSE = 0.02
"""What an integral over so few steps may be off."""
NEARLY = 1.1
"""Times the least distance that still counts as around the best step."""


@dataclass(frozen=True, eq=False)
class Distances:
    """||x_o - x_hat|| of each row where x_o is known, after the chain of Eq. 7, at each step."""

    steps: tuple[int, ...]
    purified: Floats
    """(steps, rows)."""
    delta: Floats
    """||x_o - x_s|| of each row."""

    @property
    def best_step(self) -> int:
        """The step with the least mean distance; 0 if no step brings it down."""
        means = self.purified.mean(axis=1)
        best = int(np.argmin(means))
        return self.steps[best] if means[best] < self.delta.mean() else 0


def forward_claims(found: Forward, schedule: Schedule) -> tuple[Claim, ...]:
    """Theorem 1: KL falls, and by as much as the Fisher divergence says, from every step on."""
    kl, error = found.sample.kl, found.sample.kl_error
    zeta = -0.5 * np.log(schedule.alpha_bar[list(found.steps)])

    def integrated(fisher: Floats) -> Floats:
        """From each step to the last: beta F / 2 dt = F dzeta = zeta F dln(zeta)."""
        steep = zeta * fisher
        parts = 0.5 * (steep[1:] + steep[:-1]) * np.diff(np.log(zeta))
        return np.append(np.cumsum(parts[::-1])[::-1], 0.0)

    def monotone() -> Numbers:
        rise = np.diff(kl)
        worst = int(np.argmax(rise))
        return {
            "KL at the first step": float(kl[0]),
            "KL at the last": float(kl[-1]),
            "largest rise": float(rise[worst]),
            "standard error there": float(error[worst + 1]),
        }

    def equality() -> Numbers:
        still, said = kl - kl[-1], integrated(found.sample.fisher)
        noise = np.hypot(error, integrated(found.sample.fisher_error))
        allowed = COARSE * said + ERRORS * noise
        worst = int(np.argmax(np.abs(still - said)[:-1] / allowed[:-1]))
        return {
            "KL has fallen by": float(still[0]),
            "integral of beta F / 2": float(said[0]),
            "worst from step": float(found.steps[worst]),
            "KL falls by": float(still[worst]),
            "the integral says": float(said[worst]),
            "may be off by": float(allowed[worst]),
        }

    return (
        Claim(
            claim="your data: KL falls all the way",
            where="Theorem 1",
            printed="monotonically decreasing",
            measure=monotone,
            holds=lambda n: n["largest rise"] <= ERRORS * n["standard error there"],
        ),
        Claim(
            claim="your data: KL falls as fast as the Fisher divergence says, no more, no less",
            where="Theorem 1, Eq. 8",
            printed="d KL / dt <= -(beta_t / 2) F, by its proof an equality",
            measure=equality,
            holds=lambda n: abs(n["KL falls by"] - n["the integral says"]) <= n["may be off by"],
        ),
    )


def distance_claims(
    found: Distances,
    scores: ScoreBounds,
    schedule: Schedule,
    inflection: int | None,
) -> tuple[Claim, ...]:
    """Theorem 2 and 4, where x_o is known. Each row has its own delta."""
    steps = np.array(found.steps)
    zeta = -0.5 * np.log(schedule.alpha_bar[steps])[:, None]
    least, most = (bound[steps][:, None] for bound in scores.so_far)
    printed_noise, noise = (
        noise_term(zeta, noise_bound(scores.dimension, FAILURE_PROB, form=form)) for form in FORMS
    )
    path = path_score_term(schedule, scores.most)[steps][:, None]
    printed = score_term(zeta, most, form="printed") + found.delta + printed_noise
    lower = score_term(zeta, least, form="printed") - found.delta - printed_noise

    def share(inside: NDArray[np.bool_]) -> float:
        return float(inside.mean(axis=1).min())

    def above() -> Numbers:
        return {
            "least share within, printed": share(found.purified <= printed),
            "corrected": share(found.purified <= score_term(zeta, most) + found.delta + noise),
            "a bound for each step": share(found.purified <= path + found.delta + noise),
            "Lambda over distance, printed, at least": float((printed / found.purified).min()),
            "share wanted": 1 - FAILURE_PROB,
        }

    def below() -> Numbers:
        return {
            "largest lambda": float(lower.max()),
            "least share above lambda": share(found.purified >= lower),
            "share wanted": 1 - FAILURE_PROB,
        }

    def left() -> Numbers:
        """Of our own lower bound, which each row has with its own delta."""
        bound = found.delta - path - noise
        return {
            "largest share of rows with a bound above 0": float((bound > 0).mean(axis=1).max()),
            "least share of rows above it": share(found.purified >= bound),
            "share wanted": 1 - FAILURE_PROB,
        }

    def around() -> Numbers:
        means = found.purified.mean(axis=1)
        at = means[-1] if inflection is None else float(np.interp(inflection, steps, means))
        return {
            "i_p": -1.0 if inflection is None else float(inflection),
            "best step": float(found.best_step),
            "mean distance at i_p": float(at),
            "least mean distance": float(min(means.min(), found.delta.mean())),
        }

    return (
        Claim(
            claim="your data: the distance stays below Lambda",
            where="Theorem 2, Eq. 10",
            printed="with probability 1 - sigma",
            measure=above,
            holds=lambda n: n["least share within, printed"] >= n["share wanted"],
            corrected=lambda n: n["a bound for each step"] >= n["share wanted"],
        ),
        Claim(
            claim="your data: the distance stays above lambda",
            where="Theorem 2, Eq. 9",
            printed="with probability 1 - sigma",
            measure=below,
            holds=lambda n: n["least share above lambda"] >= n["share wanted"],
            vacuous=lambda n: n["largest lambda"] <= 0,
        ),
        Claim(
            claim="your data: the distance stays above ||delta|| less all that could undo it",
            where="Theorem 2, corrected",
            printed="not in the paper",
            measure=left,
            holds=lambda n: n["least share of rows above it"] >= n["share wanted"],
            vacuous=lambda n: n["largest share of rows with a bound above 0"] == 0,
        ),
        Claim(
            claim="your data: the best step is around the inflection",
            where="Theorem 4, corrected",
            printed="around t_p",
            measure=around,
            holds=lambda n: (
                n["i_p"] >= 0 and n["mean distance at i_p"] <= NEARLY * n["least mean distance"]
            ),
        ),
    )
