"""Self-weighted BC: the released code's weights, what they find and where they fail."""

import numpy as np
import pytest
import torch
from scipy.optimize import brentq

from elute.learners.actor import Design
from elute.learners.self_weighted import SelfWeightedBC, relative_density, weighted_std
from elute.rng import Seeds
from learners.test_bcnd import one_state

SOLVER = SelfWeightedBC(actor=Design(hidden=()), updates=500, batch_size=1000, learning_rate=1e-2)


def mean_of(policy):
    return policy.act(np.zeros((1, 1)))[0, 0]


def test_a_weight_is_the_density_at_deviation_one_over_its_peak():
    errors = torch.tensor([[0.0, 0.0], [0.6, 0.8], [3.0, 4.0]], requires_grad=True)
    weights = relative_density(errors)
    np.testing.assert_allclose(weights.numpy(), np.exp([0.0, -0.5, -12.5]), rtol=1e-5)
    assert not weights.requires_grad


def test_it_stops_where_its_weighted_errors_cancel():
    actions = np.concatenate([np.zeros(650), np.full(350, 2.0)])

    def pull(mean):
        errors = actions - mean
        return float((np.exp(-(errors**2) / 2) * errors).sum())

    expected = brentq(pull, -0.5, 0.9)
    policy, weights = SOLVER.weigh(one_state(actions), Seeds(0)("learn"))
    assert mean_of(policy) == pytest.approx(expected, abs=0.03)
    assert expected < actions.mean() - 0.2  # where plain cloning would stop
    errors = actions - mean_of(policy)
    np.testing.assert_allclose(weights, np.exp(-(errors**2) / 2), rtol=1e-4)


def test_what_is_far_from_its_start_is_never_learnt():
    policy, weights = SOLVER.weigh(one_state(np.full(50, 40.0)), Seeds(0)("learn"))
    assert abs(mean_of(policy)) < 2
    np.testing.assert_array_equal(weights, 0.0)
    assert policy.std[0] > 2  # that of all rows, as none counts


def test_the_deviation_is_that_of_the_rows_that_count():
    errors, weights = np.array([[1.0], [2.0], [50.0]]), np.array([3.0, 1.0, 0.0])
    assert weighted_std(errors, weights)[0] == pytest.approx(np.sqrt((3 * 1 + 4) / 4))
    assert weighted_std(errors, np.zeros(3))[0] == pytest.approx(np.sqrt(2505 / 3))


def test_it_has_its_own_name():
    policy = SelfWeightedBC(updates=1).fit(one_state([0.0, 1.0]), Seeds(0)("learn"))
    assert policy.about["method"] == "self-weighted-bc"
    assert SelfWeightedBC.reference().actor.squashed
