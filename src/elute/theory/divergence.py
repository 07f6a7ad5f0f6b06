"""Theorem 1: the divergence of two distributions while both are diffused.

    p = rho_o,t and q = rho_s,t:  x_t = exp(-zeta) x_0 + sqrt(1 - exp(-2 zeta)) eps
    F(p, q) = E_p || grad log p - grad log q ||^2                             (Fisher divergence)
    d KL(p || q) / dt = -(beta_t / 2) F(p, q)  <=  0

Gaussians have both in closed form. A data set of n rows, diffused, is a mixture of n Gaussians, and
the theorem holds for it as for any distribution; KL and F are then means over draws from p. For the
distribution that the rows were drawn from that mean is too high, the more so the smaller t.

Deviations from the paper:
1. The theorem says "<="; its own proof, and the numbers, say "=".
2. The text below it drops beta_t: KL would fall by F / 2 at least. It does only where beta_t >= 1,
   from t = .045 on.
3. The Fokker-Planck equation has the wrong sign, which step (ii) of the proof turns round again:
   d rho / dt = -div(h rho) with h = -(beta_t / 2)(x + grad log rho).
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from elute.diffusion.schedule import Floats
from elute.theory.zeta import Form, floats, is_printed

DRAWS = 512
"""From p, for a mean over it."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(mean, covariance)."""

    mean: Floats
    covariance: Floats

    @classmethod
    def of(cls, mean: ArrayLike, variance: ArrayLike) -> Self:
        """One column from two numbers, or independent columns from two lists."""
        return cls(np.atleast_1d(floats(mean)), np.diag(np.atleast_1d(floats(variance))))

    @classmethod
    def fit(cls, rows: Floats) -> Self:
        """The one with the moments of these rows."""
        return cls(rows.mean(axis=0), np.atleast_2d(np.cov(rows, rowvar=False)))

    def diffused(self, zeta: float) -> Self:
        """exp(-zeta) x + sqrt(1 - exp(-2 zeta)) eps."""
        keep = np.exp(-2 * zeta)
        noise = (1 - keep) * np.eye(len(self.mean))
        return type(self)(np.sqrt(keep) * self.mean, keep * self.covariance + noise)

    def score(self, x: ArrayLike) -> Floats:
        """Grad log density at each row."""
        return floats(-np.linalg.solve(self.covariance, (floats(x) - self.mean).T).T)


def gaussian_kl(p: Gaussian, q: Gaussian) -> float:
    """KL(p || q) = (tr(Q P^-1) - d + |m_p - m_q|_Q^2 + log det q / det p) / 2."""
    precision = np.linalg.inv(q.covariance)
    away = p.mean - q.mean
    volumes = np.linalg.slogdet(q.covariance)[1] - np.linalg.slogdet(p.covariance)[1]
    spread = np.trace(precision @ p.covariance) - len(away)
    return float(0.5 * (spread + away @ precision @ away + volumes))


def gaussian_fisher(p: Gaussian, q: Gaussian) -> float:
    """F(p, q) = tr((Q - P) S_p (Q - P)) + || Q (m_p - m_q) ||^2, P and Q the precisions."""
    precision = np.linalg.inv(q.covariance)
    other = precision - np.linalg.inv(p.covariance)
    shift = precision @ (p.mean - q.mean)
    return float(np.trace(other @ p.covariance @ other) + shift @ shift)


def kl_rate(beta: ArrayLike, fisher: ArrayLike, *, form: Form = "corrected") -> Floats:
    """Of KL: -(beta_t / 2) F (Theorem 1, Eq. 8); printed (the text below it): -F / 2."""
    rate = -0.5 * floats(fisher)
    return rate if is_printed(form) else floats(beta) * rate


def flow(x: ArrayLike, score: ArrayLike, beta: ArrayLike, *, form: Form = "corrected") -> Floats:
    """The h of d rho / dt = -div(h rho): -(beta / 2)(x + grad log rho); printed: no minus."""
    h = 0.5 * floats(beta) * (floats(x) + floats(score))
    return h if is_printed(form) else -h


@dataclass(frozen=True, eq=False)
class Diffused:
    """Rows of data, diffused: an equal mixture of Gaussians around them."""

    centres: Floats
    variance: float

    @classmethod
    def of(cls, rows: Floats, zeta: float) -> Self:
        """At zeta > 0."""
        return cls(np.exp(-zeta) * rows, float(-np.expm1(-2 * zeta)))

    def log_density_and_score(self, x: Floats) -> tuple[Floats, Floats]:
        """Log rho and its gradient at each row."""
        squares = (x**2).sum(1)[:, None] - 2 * x @ self.centres.T + (self.centres**2).sum(1)
        exponents = -0.5 * np.maximum(squares, 0.0) / self.variance
        total = logsumexp(exponents, axis=1, keepdims=True)
        posterior_mean = np.exp(exponents - total) @ self.centres
        volume = 0.5 * x.shape[1] * np.log(2 * np.pi * self.variance)
        density = total[:, 0] - np.log(len(self.centres)) - volume
        return density, (posterior_mean - x) / self.variance


@dataclass(frozen=True, eq=False)
class Divergence:
    """Of diffused data sets, at each zeta."""

    kl: Floats
    kl_error: Floats
    """Standard error of the mean over draws."""
    fisher: Floats
    fisher_error: Floats


def sample_divergence(
    optimal: Floats,
    supplementary: Floats,
    zeta: ArrayLike,
    rng: np.random.Generator,
    *,
    draws: int = DRAWS,
) -> Divergence:
    """KL(rho_o,t || rho_s,t) and F of two data sets, at each zeta > 0.

    The same rows and noise serve every zeta, so that the curve is as smooth as the truth. Rows are
    drawn at random, whatever their order, and each about as often as any other.
    """
    rounds = -(-draws // len(optimal))
    chosen = np.concatenate([rng.permutation(len(optimal)) for _ in range(rounds)])[:draws]
    eps = rng.standard_normal((draws, optimal.shape[1]))
    found = []
    for z in np.atleast_1d(floats(zeta)):
        p, q = Diffused.of(optimal, z), Diffused.of(supplementary, z)
        x = p.centres[chosen] + np.sqrt(p.variance) * eps
        (log_p, score_p), (log_q, score_q) = (m.log_density_and_score(x) for m in (p, q))
        gap = ((score_p - score_q) ** 2).sum(axis=1)
        found.append([value for each in (log_p - log_q, gap) for value in _mean(each)])
    kl, kl_error, fisher, fisher_error = np.array(found).T
    return Divergence(kl, kl_error, fisher, fisher_error)


def _mean(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
