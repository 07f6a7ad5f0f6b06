"""Per-episode numbers: a value, "not measurable" or "error", never a silent zero."""

from dataclasses import replace

import numpy as np

from elute.demos.audit.audit import audit
from elute.demos.audit.quality import ERROR, MEASURES, NOT_MEASURABLE
from elute.demos.pointmass import pointmass
from elute.episodes import Episodes
from elute.types import Demonstrations


def made(states, lengths, rewards=None):
    states = np.asarray(states, dtype=float).reshape(len(states), -1)
    return Demonstrations(observations=states, actions=np.zeros((len(states), 1)),
                          episodes=Episodes.of(lengths), rewards=rewards)  # fmt: skip


def test_every_episode_has_every_measure():
    for row in audit(pointmass(4)).episodes:
        assert set(row) == {"episode", *MEASURES}
        assert all(isinstance(row[name], float | int) for name in MEASURES)


def test_length_and_return_are_what_they_say():
    demos = pointmass(4)
    rows = audit(demos).episodes
    assert [row["length"] for row in rows] == demos.episodes.lengths.tolist()
    np.testing.assert_allclose([row["return"] for row in rows], demos.returns(), rtol=1e-5)


def test_velocity_is_the_mean_step_in_standard_deviations():
    ramp = np.arange(10.0)
    row = audit(made(ramp, [10])).episodes[0]
    np.testing.assert_allclose(row["velocity"], 1 / ramp.std(), rtol=1e-5)
    np.testing.assert_allclose(row["jerk"], 0, atol=1e-6)


def test_jerk_is_the_mean_third_difference():
    cubic = np.arange(10.0) ** 3
    row = audit(made(cubic, [10])).episodes[0]
    np.testing.assert_allclose(row["jerk"], 6 / cubic.std(), rtol=1e-4)


def test_differences_do_not_cross_episodes():
    states = np.concatenate([np.zeros(5), np.full(5, 100.0)])
    assert [row["velocity"] for row in audit(made(states, [5, 5])).episodes] == [0.0, 0.0]


def test_what_cannot_be_measured_says_so():
    rows = audit(made(np.arange(5.0), [2, 1, 2])).episodes
    assert [row["jerk"] for row in rows] == [NOT_MEASURABLE] * 3
    assert rows[1]["velocity"] == NOT_MEASURABLE
    assert rows[0]["return"] == NOT_MEASURABLE
    assert audit(made(np.arange(5.0), [5])).episodes[0]["end_distance"] == NOT_MEASURABLE


def test_a_broken_episode_is_an_error_not_a_zero():
    demos = pointmass(3)
    observations = demos.observations.copy()
    observations[2] = np.nan
    rows = audit(replace(demos, observations=observations)).episodes
    assert rows[0]["velocity"] == ERROR
    assert isinstance(rows[1]["velocity"], float)


def test_idle_shares_at_both_ends():
    moving = np.cumsum(np.ones(11))
    states = np.concatenate([np.full(10, moving[0]), moving[1:], np.full(20, moving[-1])])
    row = audit(made(states, [40])).episodes[0]
    np.testing.assert_allclose([row["idle_start"], row["idle_end"]], [9 / 39, 20 / 39], rtol=1e-5)


def test_idle_ends_are_noted():
    moving = np.cumsum(np.ones(11))
    states = np.concatenate([np.full(10, moving[0]), moving[1:], np.full(20, moving[-1])])
    assert "idle-ends" in {f.code for f in audit(made(states, [40])).findings}


def test_the_odd_episode_is_listed_by_measure():
    demos = pointmass(20)
    rewards = demos.rewards.copy()
    rewards[: demos.episodes.lengths[0]] -= 100
    found = audit(replace(demos, rewards=rewards)).findings
    listed = {f.numbers["measure"]: f.numbers["episodes"] for f in found
              if f.code == "outlying-episodes"}  # fmt: skip
    assert listed["return"] == [0]
