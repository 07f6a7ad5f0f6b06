"""The Gaussian trade-off: constants of methods 21, simulation, and where the error is least."""

import numpy as np
import pytest

from elute.diffusion.schedule import Schedule
from elute.errors import EluteError
from elute.theory.wiener import GaussianModel, conditional_covariance, contraction, matched_step

LINEAR = Schedule.linear()
RNG = np.random.default_rng(0)


def random_covariance(size):
    factor = np.random.default_rng(size).standard_normal((size, 2 * size))
    return factor @ factor.T / (2 * size)


@pytest.mark.parametrize(
    ("spread", "factors"),
    [
        (1.0, [0.999102, 0.997807, 0.987710, 0.969951, 0.895142]),
        (0.3, [0.990107, 0.976157, 0.878542, 0.743928, 0.434485]),
        (0.05, [0.735451, 0.532113, 0.167308, 0.074673, 0.020896]),
    ],
)
def test_factors(spread, factors):
    steps = [6, 11, 31, 51, 101]
    found = contraction(spread**2, LINEAR.alpha_bar[steps])
    assert found == pytest.approx(factors, abs=1e-6)


def test_a_direction_without_spread_is_gone_at_once():
    assert contraction([0.0, 1.0], 1.0) == pytest.approx([1.0, 1.0])
    assert contraction([0.0, 1.0], 0.9) == pytest.approx([0.0, 0.9])


@pytest.mark.parametrize("draws", [np.inf, 1.0])
@pytest.mark.parametrize("step", [20, 150])
def test_the_expected_error_is_that_of_exact_purification(step, draws):
    s, d, a = random_covariance(3), 0.3 * random_covariance(4)[:3, :3], LINEAR.alpha_bar[step]
    n = 200_000
    rng = np.random.default_rng(1)
    x_o, delta = (rng.multivariate_normal(np.zeros(3), c, n) for c in (s, d))
    x_t = np.sqrt(a) * (x_o + delta) + np.sqrt(1 - a) * rng.standard_normal((n, 3))
    gain = np.linalg.solve(a * s + (1 - a) * np.eye(3), np.sqrt(a) * s).T
    if np.isinf(draws):
        x_hat = np.sqrt(a) * (x_o + delta) @ gain.T  # the mean over the noise of both ways
    else:
        posterior = s - np.sqrt(a) * gain @ s
        x_hat = x_t @ gain.T + rng.multivariate_normal(np.zeros(3), posterior, n)
    measured = ((x_hat - x_o) ** 2).sum(axis=1).mean()
    assert GaussianModel(s, d).error(a, draws=draws)[0] == pytest.approx(measured, rel=0.02)


@pytest.mark.parametrize("variance", [0.05, 0.36, 1.5])
def test_even_noise_is_undone_best_where_the_diffusion_matches_it_whatever_the_data(variance):
    for size in (1, 2, 5):
        model = GaussianModel(random_covariance(size), variance * np.eye(size))
        matched = matched_step(LINEAR, variance)
        assert abs(model.best_step(LINEAR) - matched) <= 1
        alpha_bar = 1 / (1 + variance)
        wiener = np.linalg.solve(model.covariance + model.noise, model.covariance)
        left = np.trace(model.covariance) - np.trace(wiener @ model.covariance)
        assert model.error(alpha_bar)[0] == pytest.approx(left)  # no linear estimate is better


def test_more_noise_asks_for_a_larger_step():
    s = random_covariance(4)
    steps = [GaussianModel(s, v * np.diag([0, 0, 1, 1.0])).best_step(LINEAR) for v in
             (0.01, 0.1, 0.4, 1.0)]  # fmt: skip
    assert steps == sorted(steps)
    assert steps[-1] > 2 * steps[0]


def test_survival_is_of_delta():
    s = np.diag([1.0, 0.01])
    narrow, wide = (GaussianModel(s, np.diag(d)).survives(0.9)[0] for d in ([0.0, 1.0], [1.0, 0.0]))
    assert narrow == pytest.approx(contraction(0.01, 0.9))
    assert wide == pytest.approx(contraction(1.0, 0.9))


def test_only_columns_that_change_count():
    s, changed, a, draws = random_covariance(4), np.array([False, False, True, True]), 0.8, 3
    model = GaussianModel(s, np.diag([0, 0, 0.4, 0.2]), changed)
    total = np.linalg.inv(a * s + (1 - a) * np.eye(4))
    k = a * s @ total
    lost = (np.eye(4) - k) @ s @ (np.eye(4) - k)
    one = (1 - a) * s @ total + (1 - a) * a * s @ s @ total @ total
    delta = k @ model.noise @ k
    error = np.diag(delta + lost + one / draws)[changed].sum()
    assert model.error(a, draws=draws)[0] == pytest.approx(error)
    left = np.sqrt(np.diag(delta)[changed].sum() / 0.6)
    assert model.survives(a)[0] == pytest.approx(left)
    every = GaussianModel(s, model.noise)
    assert every.error(a)[0] == pytest.approx(np.trace(delta + lost))
    assert model.error(a)[0] < every.error(a)[0]


def test_the_covariance_of_what_is_left_when_columns_are_known():
    s = random_covariance(5)
    free = np.array([False, True, False, True, True])
    expected = np.linalg.inv(np.linalg.inv(s)[np.ix_(free, free)])
    assert conditional_covariance(s, free) == pytest.approx(expected)
    assert conditional_covariance(s, np.ones(5, dtype=bool)) == pytest.approx(s)


def test_covariances_of_two_sizes_are_refused():
    with pytest.raises(EluteError, match="same size"):
        GaussianModel(np.eye(3), np.eye(2))
