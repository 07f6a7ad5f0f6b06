"""What an exact purifier does to Gaussian data: the trade-off in closed form.

D_o ~ N(m, S), x_s = x_o + delta with delta ~ (0, D). With a = alpha_bar at the reverse step the
mean of Algorithm 2 is

    x_hat = m + K (x_s - m),   K = a S (a S + (1 - a) I)^-1                     (Wiener contraction)
    E ||x_hat - x_o||^2 = tr(K D K) + tr((I - K) S (I - K)) + tr(V) / draws
    V = (1 - a) S (a S + (1 - a) I)^-1 + (1 - a) a S^2 (a S + (1 - a) I)^-2     (of one draw)

The first term, what is left of delta, falls with the step; the second, what is lost of x_o, grows.
If D = v I, the sum of these two is least, for every S, where

    (1 - a) / a = exp(2 zeta) - 1 = v       (`matched_step`)

the diffusion has then added as much noise, measured by the signal that is left, as delta had
brought. This is the sense in which more noise asks for a larger step; the paper's Theorem 4, from
which delta is absent, does not show it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elute.diffusion.schedule import Floats, Schedule, Step
from elute.errors import EluteError
from elute.theory.zeta import floats

DIRECTION = 1e-10
"""Relative variance below which a direction of the known columns is none."""


def contraction(variance: ArrayLike, alpha_bar: ArrayLike) -> Floats:
    """What is left of a distance from the mean along a direction: a s^2 / (a s^2 + 1 - a)."""
    kept = floats(variance) * floats(alpha_bar)
    total = np.broadcast_to(kept + 1 - floats(alpha_bar), kept.shape)
    return np.divide(kept, total, out=np.ones(kept.shape), where=total > 0)


def matched_step(schedule: Schedule, variance: float) -> Step:
    """The first step with (1 - alpha_bar) / alpha_bar >= v, the variance of delta per column."""
    reached = np.flatnonzero(1 / schedule.alpha_bar - 1 >= variance)
    return Step(int(reached[0]) if len(reached) else schedule.n_steps)


def conditional_covariance(covariance: Floats, free: ArrayLike) -> Floats:
    """Of the free columns if the others are known: S_ff - S_fk S_kk^+ S_kf."""
    chosen = np.asarray(free, dtype=bool)
    known = covariance[np.ix_(~chosen, ~chosen)]
    cross = covariance[np.ix_(chosen, ~chosen)]
    explained = cross @ np.linalg.pinv(known, DIRECTION, hermitian=True) @ cross.T
    return floats(covariance[np.ix_(chosen, chosen)] - explained)


@dataclass(frozen=True, eq=False)
class GaussianModel:
    """Covariance of D_o and of delta."""

    covariance: Floats
    noise: Floats
    changed: NDArray[np.bool_] | None = None
    """Columns whose result is kept; the others are purified along, but left as they were."""

    def __post_init__(self) -> None:
        if self.covariance.shape != self.noise.shape or self.covariance.ndim != 2:
            raise EluteError(
                f"covariances of shapes {self.covariance.shape} and {self.noise.shape}; "
                "expected two square ones of the same size"
            )

    def contractions(self, alpha_bar: ArrayLike) -> Floats:
        """Eigenvalues of K at each alpha_bar, from the narrowest direction to the widest."""
        return contraction(self._directions()[0], np.atleast_1d(floats(alpha_bar))[:, None])

    def survives(self, alpha_bar: ArrayLike) -> Floats:
        """sqrt(tr(K D K) / tr D): the share of delta that is left."""
        whole = self._left(np.ones((1, len(self.noise))))
        return floats(np.sqrt(self._left(self.contractions(alpha_bar)) / whole))

    def error(self, alpha_bar: ArrayLike, *, draws: float = np.inf) -> Floats:
        """E ||x_hat - x_o||^2 at each alpha_bar, for the mean of so many purifications."""
        variance, _, kept = self._directions()
        k, a = self.contractions(alpha_bar), np.atleast_1d(floats(alpha_bar))[:, None]
        lost = (1 - k) ** 2 * variance
        drawn = (1 - a) / a * k * (1 + k)
        return floats(self._left(k) + (lost + drawn / draws) @ np.diag(kept))

    def best_step(self, schedule: Schedule, *, draws: float = np.inf) -> Step:
        """The step with the least expected error."""
        return Step(int(np.argmin(self.error(schedule.alpha_bar, draws=draws))))

    def _left(self, k: Floats) -> Floats:
        """tr(P K D K) for each row of eigenvalues of K, P the columns that are kept."""
        _, noise, kept = self._directions()
        return floats(np.einsum("sj,jl,sl->s", k, noise * kept, k))

    def _directions(self) -> tuple[Floats, Floats, Floats]:
        """Variances of D_o along its axes; D and P in these axes."""
        variance, axes = np.linalg.eigh(self.covariance)
        mask = np.ones(len(variance)) if self.changed is None else floats(self.changed)
        kept = axes.T @ (mask[:, None] * axes)
        return np.maximum(variance, 0.0), axes.T @ self.noise @ axes, kept
