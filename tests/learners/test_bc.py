"""Behaviour cloning finds what is there to be cloned, and the same each time."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from elute.episodes import Episodes
from elute.errors import EluteError
from elute.learners.actor import Design
from elute.learners.average import Average
from elute.learners.bc import BC, _Fold
from elute.learners.learner import silent
from elute.rng import Seeds
from elute.types import Demonstrations

K = np.array([[0.5, -1.0], [0.0, 0.3], [0.2, 0.0]])
QUICK = BC(updates=30)


def linear(n=600, *, noise=0.0, seed=0):
    rng = Seeds(seed)("data")
    states = rng.standard_normal((n, 3)) * [1.0, 10.0, 0.05] + [0.0, 5.0, 1.0]
    actions = ((states - [0.0, 5.0, 1.0]) / [1.0, 10.0, 0.05]) @ K
    return Demonstrations(
        observations=states,
        actions=actions + noise * rng.standard_normal(actions.shape),
        episodes=Episodes.of([n]),
    )


def error(policy, demos):
    return ((policy.act(demos.observations) - demos.actions) ** 2).mean()


def permuted(demos):
    order = Seeds(9)("order").permutation(len(demos))
    return replace(demos, observations=demos.observations[order], actions=demos.actions[order])


def test_a_linear_policy_recovers_the_gain():
    policy = BC(actor=Design(hidden=()), updates=1500, learning_rate=1e-2).clone(
        linear(), Seeds(0)("bc")
    )
    centre, units = np.array([0.0, 5.0, 1.0]), np.diag([1.0, 10.0, 0.05])
    gain = policy.act(centre + units) - policy.act(centre)
    np.testing.assert_allclose(gain, K, atol=1e-3)


def test_two_hidden_layers_learn_linear_data_whatever_the_units():
    policy = BC(updates=1500).clone(linear(), Seeds(0)("bc"))
    assert error(policy, linear(200, seed=1)) < 0.01 * linear().actions.var()


def test_noise_is_averaged_and_not_learnt():
    noisy = linear(20_000, noise=0.5)
    policy = BC(updates=600).clone(noisy, Seeds(0)("bc"))
    assert error(policy, noisy) == pytest.approx(0.25, rel=0.05)


def test_the_order_of_rows_does_not_matter():
    demos, other = linear(), permuted(linear())
    policy, again = (BC(updates=600).clone(d, Seeds(0)("bc")) for d in (demos, other))
    # a policy acts in single precision, and some kernels round a row by its place in the batch
    assert error(policy, demos) == pytest.approx(error(policy, other), rel=1e-5)
    assert error(again, demos) == pytest.approx(error(policy, demos), rel=0.5, abs=1e-3)


def test_the_same_stream_gives_the_same_policy_and_another_one_another():
    demos = linear(100)
    first, second, other = (QUICK.clone(demos, Seeds(s)("bc")) for s in (0, 0, 1))
    probe = demos.observations
    assert np.array_equal(first.act(probe), second.act(probe))
    assert not np.array_equal(first.act(probe), other.act(probe))


def test_torchs_own_stream_is_left_alone():
    before = torch.random.get_rng_state()
    QUICK.clone(linear(50), Seeds(0)("bc"))
    assert torch.equal(before, torch.random.get_rng_state())


def test_bounds_clip_targets_and_actions():
    far = replace(linear(), actions=np.full((600, 2), 3.0))
    policy = BC(updates=600, actor=Design(bounds=(-1.0, 1.0))).clone(far, Seeds(0)("bc"))
    actions = policy.act(far.observations)
    assert actions.max() <= 1.0
    np.testing.assert_allclose(actions, 1.0, atol=0.1)


def test_a_constant_column_is_no_trouble():
    demos = linear(100)
    still = replace(demos, observations=demos.observations * [1, 0, 1] + [0, 1e6, 0])
    assert np.isfinite(QUICK.clone(still, Seeds(0)("bc")).act(still.observations)).all()


def test_values_that_are_not_finite_are_refused():
    actions = linear(10).actions.copy()
    actions[3, 1] = np.nan
    with pytest.raises(EluteError, match="not finite"):
        QUICK.clone(replace(linear(10), actions=actions), Seeds(0)("bc"))


def test_rows_held_out_stop_it_before_noise_is_learnt_by_heart():
    few = linear(120, noise=0.5)
    long = BC(updates=3000, hold_out=0.0).clone(few, Seeds(0)("bc"))
    stopped = BC(updates=3000).clone(few, Seeds(0)("bc"))
    truth = linear(2000, seed=1)
    assert error(long, few) < 0.1 * 0.25  # by heart
    assert error(stopped, truth) < 0.5 * error(long, truth)


def test_without_noise_it_goes_on():
    """Held-out rows get better all the time, so all updates are done, as without them."""
    demos = linear(300)
    stopped, whole = (
        BC(updates=400, hold_out=share).clone(demos, Seeds(0)("bc")) for share in (0.2, 0.0)
    )
    assert error(stopped, demos) == pytest.approx(error(whole, demos), rel=0.3)


def test_the_average_is_that_of_its_equation():
    class Number(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.value = torch.nn.Parameter(torch.tensor(5.0))

    number = Number()
    average = Average(number, 0.5)
    expected = 5.0
    for t, value in enumerate((1.0, 4.0, -2.0, 0.5, 3.0, 3.0, 3.0, 3.0, 8.0, 1.0, 2.0), start=1):
        with torch.no_grad():
            number.value.fill_(value)
        average.update()
        old = min(0.5, t / (t + 9))  # .1 at first: the weights before the first update are random
        expected = old * expected + (1 - old) * value
    assert average.network.value.item() == pytest.approx(expected, rel=1e-6)
    assert number.value.item() == 2.0
    assert Average(number, 0.0).network is number


def test_averaged_policies_a_few_updates_apart_are_alike():
    noisy, clean = linear(noise=1.0), linear(seed=1)

    def apart(averaging):
        one, other = (
            BC(updates=updates, hold_out=0.0, averaging=averaging).clone(noisy, Seeds(0)("bc"))
            for updates in (300, 310)
        )
        moved = one.act(clean.observations) - other.act(clean.observations)
        return (moved**2).mean(), error(one, clean)

    (last_moved, last_error), (moved, missed) = apart(0.0), apart(0.99)
    assert moved < 0.1 * last_moved
    assert missed < last_error


def test_held_out_rows_judge_the_average():
    bc, demos = BC(), linear(noise=1.0)
    fold = _Fold(bc, demos, torch.arange(40), Seeds(0)("bc"), 0, silent)
    for _ in itertools.islice(fold.updates, 50):
        fold.average.update()
    x, y = fold.held
    with torch.no_grad():
        averaged, last = (
            float(((network(x) - y) ** 2).mean()) for network in (fold.average.network, fold.actor)
        )
    assert fold.loss() == pytest.approx(averaged, rel=1e-6)
    assert averaged != pytest.approx(last, rel=1e-3)
