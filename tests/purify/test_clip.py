"""Purified actions stay within bounds, on request."""

import json
from dataclasses import replace

import numpy as np
import pytest

from elute.columns import columns
from elute.demos.audit.summary import Bounds
from elute.demos.corrupt import corrupt
from elute.demos.pointmass import pointmass
from elute.purify.clip import ClippedTransform, action_bounds
from elute.purify.identity import IdentityPurifier
from elute.rng import Seeds
from elute.types import DemoSet

GOOD = pointmass(2)
DEMOS = DemoSet(GOOD, corrupt(pointmass(2, seed=1), "gaussian", 1.0))
KEPT = IdentityPurifier().fit(DEMOS, Seeds(0))
BOUNDS = Bounds(np.array([-0.5, -1.0]), np.array([0.5, 2.0]))


def test_actions_are_clipped_column_by_column_and_nothing_else_changes():
    noisy = DEMOS.supplementary
    clipped = ClippedTransform(KEPT, BOUNDS)(noisy)
    np.testing.assert_array_equal(clipped.actions, np.clip(noisy.actions, [-0.5, -1], [0.5, 2]))
    assert np.abs(noisy.actions[:, 0]).max() > 0.5
    np.testing.assert_array_equal(clipped.observations, noisy.observations)
    assert clipped.actions.dtype == noisy.actions.dtype
    assert clipped.provenance.steps[-1] == {
        "operation": "clip", "low": [-0.5, -1.0], "high": [0.5, 2.0]
    }  # fmt: skip


def test_switches_are_not_clipped():
    roles = (*columns("force", 1), *columns("gripper", 1, discrete=True))
    noisy = replace(DEMOS.supplementary, action_columns=roles)
    narrow = Bounds(np.array([-0.1]), np.array([0.1]))
    clipped = ClippedTransform(KEPT, narrow)(noisy)
    np.testing.assert_array_equal(clipped.actions[:, 1], noisy.actions[:, 1])
    assert np.abs(clipped.actions[:, 0]).max() == pytest.approx(0.1)


def test_row_numbers_and_seed_reach_the_purifier():
    seen = []

    def watched(rows, *, first_row=0, seed=0):
        seen.append((first_row, seed))
        return rows

    ClippedTransform(watched, BOUNDS)(DEMOS.supplementary, first_row=7, seed=3)
    assert seen == [(7, 3)]


def with_metadata(demos, **changes):
    return replace(demos, provenance=replace(demos.provenance, **changes))


def test_bounds_are_what_the_file_says_else_its_task_else_what_was_recorded():
    recorded, said_by = action_bounds(DEMOS)
    both = np.concatenate([DEMOS.optimal.actions, DEMOS.supplementary.actions])
    np.testing.assert_array_equal([recorded.low, recorded.high], [both.min(0), both.max(0)])
    assert said_by == "the range of the recorded actions"

    of_task = DemoSet(with_metadata(GOOD, task="halfcheetah"), DEMOS.supplementary)
    bounds, said_by = action_bounds(of_task)
    assert (bounds.low.tolist(), bounds.high.tolist(), said_by) == ([-1.0], [1.0], "halfcheetah")

    space = json.dumps({"low": [-3.0, -3.0], "high": [3.0, 3.0]})
    noisy = with_metadata(
        DEMOS.supplementary, metadata={"minari": {"action_space": space}}, source="set-v0"
    )
    bounds, said_by = action_bounds(DemoSet(of_task.optimal, noisy))
    assert (bounds.high.tolist(), said_by) == ([3.0, 3.0], "set-v0")
