"""The controls do what they say, and never look at the action they replace."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import demonstrations

from elute.demos.corrupt import corrupt
from elute.demos.pointmass import pointmass
from elute.learners.bc import BC
from elute.purify.controls import NearestPurifier, RelabelPurifier
from elute.purify.identity import IdentityPurifier
from elute.rng import Seeds
from elute.types import DemoSet

DEMOS = DemoSet(pointmass(4), corrupt(pointmass(4, seed=1), "gaussian", 0.6))
RELABEL = RelabelPurifier(bc=BC(updates=200))


def test_nearest_takes_the_action_of_the_nearest_state_in_units_of_the_data():
    optimal = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 2.0], [0.0, 1000.0, 3.0]])
    noisy = np.array([[0.2, 20.0, 9.0], [0.9, -50.0, 9.0], [0.4, 900.0, 9.0]])
    demos = DemoSet(demonstrations(optimal), demonstrations(noisy))
    purified = NearestPurifier().fit(demos, Seeds(0))(demos.supplementary)
    assert purified.actions[:, 0].tolist() == [1.0, 2.0, 3.0]


def test_nearest_gives_the_optimal_set_back_to_itself():
    transform = NearestPurifier().fit(DEMOS, Seeds(0))
    assert np.array_equal(transform(DEMOS.optimal).actions, DEMOS.optimal.actions)


def test_relabelling_acts_like_the_policy_cloned_from_the_optimal_set():
    transform = RELABEL.fit(DEMOS, Seeds(3))
    policy = RELABEL.bc.clone(DEMOS.optimal, Seeds(3)("relabel"))
    expected = policy.act(DEMOS.supplementary.observations)
    np.testing.assert_allclose(transform(DEMOS.supplementary).actions, expected, atol=1e-5)


@pytest.mark.parametrize("purifier", [NearestPurifier(), RELABEL], ids=["nearest", "relabel"])
def test_the_old_action_does_not_matter(purifier):
    transform = purifier.fit(DEMOS, Seeds(0))
    rows = DEMOS.supplementary
    other = replace(rows, actions=np.zeros_like(rows.actions))
    assert np.array_equal(transform(rows).actions, transform(other).actions)
    assert np.array_equal(transform(rows).observations, rows.observations)


def test_identity_changes_nothing_but_the_provenance():
    rows = DEMOS.supplementary
    same = IdentityPurifier().fit(DEMOS, Seeds(0))(rows)
    assert np.array_equal(same.pairs, rows.pairs)
    assert same.provenance.steps[-1]["method"] == "identity"
