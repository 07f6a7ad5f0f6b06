"""The discriminator finds the ratio of two densities, high for the expert."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from elute.learners.descent import Descent
from elute.learners.ratio import Critic, Ratio, log_ratio, mixes, slopes
from elute.rng import Seeds

EXPERT, OTHER = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.0, 0.1, 0.3, 0.6])
UNION = (EXPERT + OTHER) / 2


def descend(updates):
    return lambda networks: Descent(updates, networks, lambda: None)


def test_the_guarded_ratio_has_the_bounds_of_the_released_code():
    low, middle, high = log_ratio(torch.tensor([-50.0, 0.0, 50.0], dtype=torch.float64), 1e-3)
    assert low.item() == pytest.approx(-6.907, abs=1e-3)
    assert middle.item() == pytest.approx(0.003, abs=1e-5)
    assert high.item() == pytest.approx(math.log(1 / (1e-3 - 1 + 1 / 1.001)), rel=1e-6)
    assert high.item() == pytest.approx(13.8, abs=0.02)


def test_without_a_guard_the_logit_is_the_log_ratio():
    logit = torch.linspace(-3, 3, 7, dtype=torch.float64)
    c = torch.sigmoid(logit)
    torch.testing.assert_close(log_ratio(logit), -torch.log(1 / c - 1))


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_slopes_are_derivatives(activation):
    rows = Seeds(0)("rows").standard_normal((5, 3))
    critic = Critic(rows, (16, 16), activation, Seeds(0)("net")).double()
    x = torch.tensor(rows, requires_grad=True)
    found, step = slopes(log_ratio(critic(x), 1e-3), x), 1e-6
    for column in range(3):
        shift = step * torch.eye(3, dtype=torch.float64)[column]
        with torch.no_grad():
            up, down = (log_ratio(critic(x + sign * shift), 1e-3) for sign in (1, -1))
        torch.testing.assert_close(found[:, column], (up - down) / (2 * step), atol=1e-8, rtol=1e-5)


def test_the_penalty_can_be_descended_on():
    linear = nn.Linear(3, 1)
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    slope = slopes(linear(x)[:, 0], x).norm(dim=1)
    torch.testing.assert_close(slope, linear.weight.norm().expand(8))
    slope.mean().backward()
    torch.testing.assert_close(linear.weight.grad[0], linear.weight[0] / linear.weight.norm())


def test_mixes_lie_between_the_sets_and_within_the_second():
    top, base = torch.full((50, 1), 1.0), torch.zeros(50, 1)
    first, second = mixes(top, base, torch.Generator().manual_seed(0)).split(50)
    assert 0 <= first.min() < 0.2
    assert 0.8 < first.max() <= 1
    assert (second == 0).all()


def histogram(shares, n=1000):
    """Rows that stand for bins, as unit vectors."""
    return np.repeat(np.eye(4), np.round(n * shares).astype(int), axis=0)


def test_a_histogram_gives_its_ratios():
    top, base = histogram(EXPERT), histogram(UNION, 2000)
    settings = Ratio(hidden=(), penalty=0.0, learning_rate=0.05, batch_size=4096)
    found = settings.learn(top, base, Seeds(0)("ratio"), descend(300)).exp().numpy()
    by_bin = [found[base[:, k] == 1].mean() for k in range(4)]
    np.testing.assert_allclose(by_bin, [2.0, 1.5, 0.8, 0.0], atol=0.1)


def test_equal_sets_have_ratio_one():
    rows = Seeds(0)("rows").standard_normal((300, 3))
    found = Ratio().learn(rows, rows, Seeds(0)("ratio"), descend(300)).exp().numpy()
    assert (found <= 1).all()  # no more is possible
    assert found.mean() == pytest.approx(1.0, abs=0.2)


def test_no_ratio_is_higher_than_can_be():
    rng = Seeds(0)("rows")
    top, rest = rng.standard_normal((20, 2)) + 6, rng.standard_normal((180, 2)) - 6
    base = np.concatenate([top, rest])
    free = Ratio(penalty=0.0, learning_rate=1e-2)
    found = free.learn(top, base, Seeds(0)("ratio"), descend(300)).numpy()
    assert found.max() <= math.log(10) + 1e-6
    assert found[:20].min() > 1.5
    assert found[20:].max() < -1.5


def test_the_penalty_keeps_slopes_near_one():
    rng = Seeds(0)("rows")
    top, rest = rng.standard_normal((100, 1)) + 3, rng.standard_normal((100, 1)) - 3
    base = np.concatenate([top, rest])

    def steepness(penalty):
        settings = Ratio(
            penalty=penalty,
            learning_rate=1e-2,
            guard=1e-6,
            allowed=(1.0, 1.0),
            hidden=(30,),
            batch_size=64,
        )
        found = settings.learn(top, base, Seeds(0)("ratio"), descend(500)).numpy()
        return np.ptp(found) / np.ptp(base / base.std())

    assert steepness(0.0) > 2
    assert steepness(100.0) == pytest.approx(1.0, abs=0.15)
