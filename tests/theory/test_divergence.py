"""Theorem 1 on Gaussians in closed form, on mixtures by quadrature, on data by draws."""

import numpy as np
import pytest

from elute.theory.divergence import (
    Diffused,
    Gaussian,
    flow,
    gaussian_fisher,
    gaussian_kl,
    kl_rate,
    sample_divergence,
)
from elute.theory.zeta import REAL

X = np.linspace(-12, 12, 20_001)


def density(at):
    variance = at.covariance[0, 0]
    return np.exp(-((X - at.mean[0]) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)


def integral(values):
    return values.sum() * (X[1] - X[0])


def test_kl_and_fisher_of_gaussians_by_quadrature():
    p, q = Gaussian.of(0.3, 0.5), Gaussian.of(-0.4, 1.7)
    assert gaussian_kl(p, q) == pytest.approx(
        integral(density(p) * np.log(density(p) / density(q))), rel=1e-9
    )
    gap = (p.score(X[:, None]) - q.score(X[:, None]))[:, 0]
    assert gaussian_fisher(p, q) == pytest.approx(integral(density(p) * gap**2), rel=1e-9)
    assert gaussian_kl(p, p) == pytest.approx(0.0, abs=1e-12)


def test_the_rate_of_kl_is_half_beta_times_fisher():
    rng = np.random.default_rng(0)
    draws = [rng.standard_normal((3, 3)) for _ in range(2)]
    p, q = (Gaussian(d[0], d @ d.T + 0.1 * np.eye(3)) for d in draws)

    def kl(t):
        return gaussian_kl(p.diffused(float(REAL.zeta(t))), q.diffused(float(REAL.zeta(t))))

    for t, h in ((0.05, 1e-5), (0.3, 1e-5), (0.6, 1e-5)):
        zeta = float(REAL.zeta(t))
        fisher = gaussian_fisher(p.diffused(zeta), q.diffused(zeta))
        slope = (kl(t + h) - kl(t - h)) / (2 * h)
        assert kl_rate(REAL.beta(t), fisher) == pytest.approx(slope, rel=1e-6)
        printed = kl_rate(REAL.beta(t), fisher, form="printed")
        assert printed == pytest.approx(slope / REAL.beta(t), rel=1e-6)


def test_a_diffused_data_set_is_a_mixture_with_this_density_and_score():
    rows = np.array([[-1.0], [0.5], [2.0]])
    mixture = Diffused.of(rows, 0.4)
    log_density, score = mixture.log_density_and_score(X[:, None])
    assert integral(np.exp(log_density)) == pytest.approx(1.0, rel=1e-9)
    inside = slice(8000, 12_000)
    slopes = np.gradient(log_density, X)[inside]
    assert score[inside, 0] == pytest.approx(slopes, abs=1e-5)


def test_the_theorem_holds_for_data_as_for_any_distribution():
    rows, others = np.array([[-1.0], [0.5], [2.0]]), np.array([[-0.4], [0.8], [1.1], [3.0]])

    def both(zeta):
        p, q = Diffused.of(rows, zeta), Diffused.of(others, zeta)
        (log_p, score_p), (log_q, score_q) = (m.log_density_and_score(X[:, None]) for m in (p, q))
        weight = np.exp(log_p)
        gap = (score_p - score_q)[:, 0]
        return integral(weight * (log_p - log_q)), integral(weight * gap**2)

    zeta, h = 0.3, 1e-5
    slope = (both(zeta + h)[0] - both(zeta - h)[0]) / (2 * h)
    kl, fisher = both(zeta)
    assert slope == pytest.approx(-fisher, rel=1e-6)  # d zeta = beta dt / 2
    found = sample_divergence(rows, others, zeta, np.random.default_rng(0), draws=60_000)
    assert found.kl[0] == pytest.approx(kl, abs=4 * found.kl_error[0])
    assert found.fisher[0] == pytest.approx(fisher, abs=4 * found.fisher_error[0])
    assert 0 < found.kl_error[0] < 0.02 * kl


def test_many_rows_of_gaussians_come_close_to_the_closed_form():
    rng = np.random.default_rng(1)
    rows, others = rng.normal(0.0, 1.0, (800, 1)), rng.normal(0.8, 1.2, (800, 1))
    zeta = np.array([0.2, 0.6, 1.2])
    found = sample_divergence(rows, others, zeta, rng, draws=1000)
    p, q = Gaussian.fit(rows), Gaussian.fit(others)
    truth = [gaussian_kl(p.diffused(z), q.diffused(z)) for z in zeta]
    assert (np.abs(found.kl - truth) < 4 * found.kl_error).all()
    assert (found.kl_error < 0.02).all()
    assert (np.diff(found.kl) < 0).all()


def test_the_order_of_rows_changes_nothing_beyond_the_error():
    rng = np.random.default_rng(2)
    rows = np.concatenate([rng.normal(0.0, 0.3, (300, 1)), rng.normal(4.0, 0.3, (700, 1))])
    others, zeta = rng.normal(0.0, 1.0, (500, 1)), np.array([0.1, 0.5])
    every = sample_divergence(rows, others, zeta, np.random.default_rng(0), draws=4000)
    for order in (slice(None), slice(None, None, -1)):
        found = sample_divergence(rows[order], others, zeta, np.random.default_rng(1), draws=250)
        assert (np.abs(found.kl - every.kl) < 4 * (found.kl_error + every.kl_error)).all()
        assert (np.abs(found.fisher - every.fisher) < 4 * found.fisher_error).all()


def test_each_row_is_drawn_as_often_as_any_other():
    rows = np.array([[-100.0], [0.0], [100.0]])  # the last is not where the others are
    found = sample_divergence(rows, rows[:2], 1e-3, np.random.default_rng(0), draws=9)
    third = sample_divergence(rows, rows[:2], 1e-3, np.random.default_rng(0), draws=90_000)
    assert found.kl[0] == pytest.approx(third.kl[0], rel=1e-2)


def test_the_flow_carries_the_density():
    start, t, h = Gaussian.of(0.5, 0.3), 0.2, 1e-5
    zetas = [float(REAL.zeta(t + s)) for s in (-h, 0.0, h)]
    low, now, high = (start.diffused(zeta) for zeta in zetas)
    change = (density(high) - density(low)) / (2 * h)
    score = now.score(X[:, None])[:, 0]
    for form, sign in (("corrected", 1), ("printed", -1)):
        carried = -np.gradient(flow(X, score, REAL.beta(t), form=form) * density(now), X)
        assert carried == pytest.approx(sign * change, abs=1e-4)
