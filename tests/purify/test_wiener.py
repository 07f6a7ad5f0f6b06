"""The closed form agrees with textbook formulas and with the chain it is the mean of."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from oracles import LINEAR, around, demonstrations
from torch import nn

from elute.errors import EluteError
from elute.purify.diffusion import DiffusionPurifier
from elute.purify.wiener import SHRINK, WienerPurifier, covariance, joint_gain
from elute.rng import Seeds
from elute.types import DemoSet

MIX = np.array([[1.0, 0.0, 0.0], [0.4, 0.6, 0.0], [0.7, -0.5, 0.2]])


def correlated(n, seed=0):
    rng = Seeds(seed)("correlated")
    return rng.standard_normal((n, 3)) @ MIX.T * [1.0, 20.0, 0.1] + [3.0, -50.0, 0.0]


def fitted(optimal, noisy, **settings):
    demos = DemoSet(demonstrations(optimal), demonstrations(noisy))
    return demos, WienerPurifier(**settings).fit(demos, Seeds(0))


@pytest.mark.parametrize("step", [6, 101, 1000])
def test_the_joint_formula(step):
    optimal, noisy = correlated(500), correlated(300, seed=1) + 0.5
    demos, transform = fitted(optimal, noisy, reverse_step=step, target="joint")
    both = np.concatenate([optimal, noisy])
    mean, scale = both.mean(axis=0), both.std(axis=0)
    units, given = (optimal - mean) / scale, (noisy - mean) / scale
    a, s, m = LINEAR.alpha_bar[step], np.cov(units.T), units.mean(axis=0)
    k = a * s @ np.linalg.inv(a * s + (1 - a) * np.eye(3))
    expected = (m + (given - m) @ k.T) * scale + mean
    np.testing.assert_allclose(transform(demos.supplementary).pairs, expected, rtol=1e-9)


def test_uncorrelated_columns_shrink_by_their_own_factor():
    a, spread = LINEAR.alpha_bar[101], np.array([1.0, 0.3, 0.05])
    gain = joint_gain(np.diag(spread**2), np.ones(3, dtype=bool), a)
    np.testing.assert_allclose(np.diag(gain), [0.895142, 0.434485, 0.020896], atol=1e-6)
    np.testing.assert_allclose(gain, np.diag(np.diag(gain)), atol=1e-15)


def test_the_known_state_is_the_limit_of_a_state_measured_ever_more_exactly():
    s, a = MIX @ MIX.T, LINEAR.alpha_bar[101]
    gain = joint_gain(s, np.array([False, False, True]), a)
    noise = np.diag([1e-9, 1e-9, (1 - a) / a])
    np.testing.assert_allclose(gain, s @ np.linalg.inv(s + noise), atol=1e-6)


def test_from_the_top_inpainting_is_regression_on_the_state():
    optimal, noisy = correlated(400), correlated(100, seed=1)
    demos, transform = fitted(optimal, noisy, reverse_step=1000, target="inpaint")
    design = np.column_stack([optimal[:, :2], np.ones(400)])
    slope, *_ = np.linalg.lstsq(design, optimal[:, 2], rcond=None)
    predicted = np.column_stack([noisy[:, :2], np.ones(100)]) @ slope
    purified = transform(demos.supplementary)
    np.testing.assert_allclose(purified.actions[:, 0], predicted, atol=2e-3 * noisy[:, 2].std())
    assert np.array_equal(purified.observations, demos.supplementary.observations)


def test_action_is_the_action_of_joint():
    optimal, noisy = correlated(100), correlated(50, seed=1)
    joint, action = (
        fitted(optimal, noisy, reverse_step=50, target=target) for target in ("joint", "action")
    )
    one, other = (transform(demos.supplementary) for demos, transform in (joint, action))
    assert np.array_equal(one.actions, other.actions)
    assert np.array_equal(other.observations, noisy[:, :2])
    assert not np.array_equal(one.observations, noisy[:, :2])


class CovarianceDenoiser(nn.Module):
    """eps*(x, i) if the data is N(mean, S)."""

    def __init__(self, mean, s):
        super().__init__()
        self.mean, self.s = mean, s

    def forward(self, x, step):
        a = LINEAR.alpha_bar[int(step)]
        inverse = np.linalg.inv(a * self.s + (1 - a) * np.eye(len(self.s)))
        eps = np.sqrt(1 - a) * (x.numpy() - np.sqrt(a) * self.mean) @ inverse
        return torch.from_numpy(eps).to(x.dtype)


@pytest.mark.parametrize("descents", [0, 5])
def test_it_is_the_mean_of_the_chain(descents):
    copies = 4096
    optimal, noisy = correlated(300), correlated(6, seed=1)
    demos, transform = fitted(optimal, noisy, reverse_step=101, target="joint")
    units = transform.normaliser.apply(optimal)
    chain = replace(
        around(CovarianceDenoiser(units.mean(axis=0), covariance(units)), 3),
        purifier=DiffusionPurifier(
            reverse_step=101, target="joint", descents=descents, eta=1.0, draws=1
        ),
        normaliser=transform.normaliser,
    )
    many = chain(demonstrations(noisy.repeat(copies, axis=0))).pairs
    expected = transform(demos.supplementary).pairs
    apart = (many.reshape(6, copies, 3).mean(axis=1) - expected) / transform.normaliser.scale
    np.testing.assert_allclose(apart, 0.0, atol=4 * LINEAR.noise[101] / np.sqrt(copies))


def test_step_zero_is_the_identity():
    demos, transform = fitted(correlated(20), correlated(30, seed=1), reverse_step=0)
    assert np.array_equal(transform(demos.supplementary).pairs, demos.supplementary.pairs)


def test_few_rows_shrink_the_covariance_towards_its_diagonal():
    many, few = correlated(50), np.tile(correlated(4), 2)
    np.testing.assert_allclose(covariance(many), np.cov(many.T))
    raw, shrunk = np.cov(few.T), covariance(few)
    np.testing.assert_allclose(np.diag(shrunk), np.diag(raw))
    np.testing.assert_allclose(shrunk[0, 1], (1 - SHRINK) * raw[0, 1])
    assert np.linalg.matrix_rank(raw) < 6 == np.linalg.matrix_rank(shrunk)


@pytest.mark.parametrize("target", ["joint", "action", "inpaint"])
def test_few_rows_and_a_column_that_the_optimal_set_never_moves(target):
    optimal = correlated(3)
    optimal[:, 1] = optimal[0, 1]
    demos, transform = fitted(optimal, correlated(30, seed=1), reverse_step=300, target=target)
    assert np.isfinite(transform(demos.supplementary).pairs).all()


def test_one_row_or_a_step_that_is_none_is_refused():
    with pytest.raises(EluteError, match="at least two"):
        fitted(correlated(1), correlated(5))
    with pytest.raises(EluteError, match="expected 0 to 1000"):
        WienerPurifier(reverse_step=1001)
