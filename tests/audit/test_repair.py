"""Repairs do what they say, record it, and lose no more than they must."""

from dataclasses import replace

import numpy as np
import pytest

from elute.demos.audit.audit import audit
from elute.demos.audit.repair import clipping, drop_non_finite, realign, repaired
from elute.demos.audit.summary import Bounds
from elute.demos.pointmass import pointmass, step
from elute.errors import EluteError


@pytest.mark.parametrize("shift", [1, 2, -1, -3])
def test_realign_restores_what_was_misplaced(shift):
    demos = pointmass(5).with_extra("clean_actions", pointmass(5).actions)
    back = realign(realign(demos, -shift), shift)
    starts, lost = demos.episodes.starts, abs(shift)
    lengths = demos.episodes.lengths
    kept = np.concatenate(
        [np.arange(s + lost, s + n - lost) for s, n in zip(starts, lengths, strict=True)]
    )
    for name in ("observations", "actions", "rewards", "next_observations"):
        np.testing.assert_array_equal(getattr(back, name), getattr(demos, name)[kept])
    np.testing.assert_array_equal(back.extras["clean_actions"], demos.actions[kept])


def test_realigned_rows_obey_the_dynamics():
    broken = realign(pointmass(5), -1)
    mended = realign(broken, 1)
    for row in range(0, len(mended), 7):
        expected = step(mended.observations[row], mended.actions[row])
        np.testing.assert_allclose(mended.next_observations[row], expected)


def test_realign_drops_episodes_that_are_too_short_and_says_so():
    demos = pointmass(2)
    short = demos.rows(0, 1) + demos.select([1])
    mended = realign(short, 1)
    assert len(mended.episodes) == 1
    assert mended.provenance.steps[-1] == {
        "operation": "realign", "shift": 1, "dropped_episodes": [0]
    }  # fmt: skip
    with pytest.raises(EluteError, match="nothing is left"):
        realign(demos.rows(0, 1), 1)


def test_dropping_splits_the_episode_and_ends_the_first_part_as_truncated():
    demos = pointmass(2)
    observations = demos.observations.copy()
    observations[[5, 6], 0] = np.nan
    mended = drop_non_finite(replace(demos, observations=observations))
    assert mended.episodes.lengths.tolist() == [
        5, int(demos.episodes.lengths[0]) - 7, int(demos.episodes.lengths[1])
    ]  # fmt: skip
    assert mended.episodes.truncated.tolist() == [True, False, False]
    assert mended.episodes.terminated.tolist() == [False, True, True]
    assert mended.provenance.steps[-1] == {"operation": "drop-non-finite", "rows": 2}
    assert np.isfinite(mended.pairs).all()


def test_a_next_observation_that_is_not_finite_goes_too():
    demos = pointmass(2)
    observations, following = demos.observations.copy(), demos.next_observations.copy()
    observations[5] = following[4] = np.nan
    mended = drop_non_finite(replace(demos, observations=observations, next_observations=following))
    assert np.isfinite(mended.next_observations).all()
    assert audit(mended).errors == ()


def test_all_rows_broken_is_an_error():
    demos = pointmass(1)
    with pytest.raises(EluteError, match="nothing is left"):
        drop_non_finite(replace(demos, actions=np.full_like(demos.actions, np.nan)))


def test_clip_counts_the_rows_it_changed():
    demos = pointmass(3)
    bounds = Bounds(np.array([-1.0]), np.array([1.0]))
    clipped = clipping(demos, bounds)(0, demos)
    assert np.abs(clipped.actions).max() == 1.0
    changed = int((np.abs(demos.actions) > 1).any(axis=1).sum())
    assert clipped.provenance.steps[-1]["rows"] == changed


def test_everything_named_is_repaired_and_nothing_else():
    broken = realign(pointmass(30, noise=0.3), -1)
    actions = broken.actions.copy()
    actions[3] = np.inf
    broken = replace(broken, actions=actions)
    mended = repaired(broken, audit(broken).findings)
    assert [s["operation"] for s in mended.provenance.steps[-2:]] == ["realign", "drop-non-finite"]
    assert audit(mended).errors == ()
    clean = pointmass(30)
    assert repaired(clean, audit(clean).findings) is clean
