"""Recording: columns, noise, and that the simulator agrees with what was written."""

import numpy as np
import pytest

from elute.collect.adapt import adapt
from elute.collect.record import record
from elute.collect.replay import one_step_errors
from elute.demos.audit.audit import audit
from elute.demos.files import load
from elute.envs.task import TASKS, find_task
from elute.errors import EluteError
from elute.noise import ActionNoise
from elute.policy import GaussianPolicy
from elute.types import Demonstrations


def policy(task, seed=0):
    rng = np.random.default_rng(seed)
    low, high = task.bounds
    sizes = (task.n_observations, task.n_actions)
    return GaussianPolicy(
        layers=((0.03 * rng.normal(size=sizes).astype("f4"), np.zeros(sizes[1], "f4")),),
        log_std=np.full(sizes[1], np.log(0.2)),
        mean=np.zeros(sizes[0]),
        scale=np.ones(sizes[0]),
        low=low,
        high=high,
    )


CHEETAH, HOPPER = TASKS["halfcheetah"], TASKS["hopper"]


def recorded(noise, rows=1000, task=CHEETAH, **options):
    kind = ActionNoise.parse(noise)
    return record(policy(task), task, noise=kind, rows=rows, **options)


def left(demos):
    return demos.actions - demos.extras["clean_actions"]


def test_without_noise_the_action_is_the_mean_action():
    demos = recorded("none")
    assert len(demos) == 1000
    np.testing.assert_array_equal(demos.actions, demos.extras["clean_actions"])
    expected = policy(CHEETAH).act(demos.observations)
    np.testing.assert_allclose(demos.actions, expected, atol=1e-6)
    assert demos.episodes.truncated.tolist() == [True]


@pytest.mark.parametrize(("noise", "std"), [("gaussian:0.6", 0.6), ("sample", 0.2)])
def test_normal_noise_has_its_level(noise, std):
    z = left(recorded(noise)) / std
    assert abs(z.std() - 1) < 0.03
    assert abs((z**4).mean() - 3) < 0.4


def test_uniform_noise_has_the_same_spread_and_ends_at_sqrt_three():
    z = left(recorded("uniform:0.4")) / 0.4
    assert abs(z.std() - 1) < 0.03
    assert 1.70 < np.abs(z).max() <= np.sqrt(3)


def test_salt_and_pepper_replaces_its_share_by_the_bounds():
    demos = recorded("salt-pepper:0.25")
    clean = demos.extras["clean_actions"]
    hit = demos.actions != clean
    assert abs(hit[np.abs(clean) < 1].mean() - 0.25) < 0.02  # a grain on a bound cannot be seen
    assert set(np.unique(demos.actions[hit])) == {-1.0, 1.0}


def test_noise_changes_the_states_and_the_simulator_was_given_the_clipped_action():
    clean, noisy = recorded("none"), recorded("gaussian:0.6")
    assert not np.allclose(clean.observations[1:10], noisy.observations[1:10])
    executed = noisy.extras["executed_actions"]
    np.testing.assert_array_equal(executed, np.clip(noisy.actions, -1, 1))
    assert (executed != noisy.actions).any()
    errors = one_step_errors(CHEETAH, [noisy], range(-1, 2))
    assert errors[0] < 1e-6
    assert min(errors[-1], errors[1]) > 0.5


def test_what_is_recorded_passes_the_audit():
    found = audit(recorded("gaussian:0.25", 3000)).findings
    assert not [finding for finding in found if finding.severity == "error"]


def test_episodes_are_whole_and_just_enough():
    demos = recorded("gaussian:0.6", 300, task=HOPPER)
    lengths = demos.episodes.lengths
    assert lengths.sum() >= 300 > lengths[:-1].sum()
    assert demos.episodes.terminated.all()


def test_more_rows_begin_with_the_same_rows_and_workers_change_nothing():
    few, many = recorded("sample", 100, task=HOPPER), recorded("sample", 400, task=HOPPER)
    np.testing.assert_array_equal(many.actions[: len(few)], few.actions)
    long = HOPPER.horizon * 7  # so many lanes that there are two crews to share out
    alone, shared = (recorded("sample", long, task=HOPPER, workers=n) for n in (1, 2))
    np.testing.assert_array_equal(shared.observations, alone.observations)
    np.testing.assert_array_equal(alone.actions[: len(many)], many.actions)


def test_other_seeds_are_other_data():
    assert not np.array_equal(recorded("none", seed=1).observations, recorded("none").observations)


def test_ants_quaternion_is_marked():
    ant = TASKS["ant"]
    demos = record(policy(ant), ant, rows=50)
    roles = [column.role for column in demos.observation_columns]
    assert roles[1:5] == ["quaternion"] * 4
    assert "quaternion" not in roles[5:]


def test_no_rows_and_strange_noise_are_refused():
    with pytest.raises(EluteError, match="at least 1"):
        recorded("none", 0)
    for bad in ("gaussian", "gaussian:x", "gaussian:-1", "salt-pepper:1.5", "pink:0.1", ""):
        with pytest.raises(EluteError):
            ActionNoise.parse(bad)
    assert str(ActionNoise.parse("uniform:0.4")) == "uniform:0.4"


@pytest.mark.parametrize("width", [111, 105])
def test_ant_of_other_versions_is_cut_to_the_columns_both_have(width):
    ant = TASKS["ant"]
    today = record(policy(ant), ant, rows=30)
    n = len(today)
    contacts = np.ones((n, width - 27))
    old = Demonstrations(
        observations=np.hstack([today.observations, contacts]),
        next_observations=np.hstack([today.next_observations, contacts]),
        actions=today.actions,
        rewards=today.rewards,
        episodes=today.episodes,
    )
    fitted = adapt(old, ant)
    np.testing.assert_array_equal(fitted.observations, today.observations)
    np.testing.assert_array_equal(fitted.next_observations, today.next_observations)
    assert fitted.provenance.steps[-1]["of"] == width
    assert max(one_step_errors(ant, [fitted], range(1)).values()) < 1e-6
    assert adapt(today, ant) is today
    with pytest.raises(EluteError, match="another task"):
        adapt(old, CHEETAH)


def test_the_published_files_replay_on_todays_simulator(data_folder):
    """Aligned files agree within what MuJoCo versions differ by; the expert's is a step off."""
    task = find_task("halfcheetah")
    for name in ("d1-l1_action-noise-0.60", "d1-l3_action-noise-0.25", "checkpoint-t3"):
        demos = load(data_folder / "halfcheetah" / f"{name}.h5").first(1000)
        errors = one_step_errors(task, [demos], range(-1, 2))
        assert errors[0] < 0.25  # distance over 17 columns, where one step off is 15 to 20
        assert min(errors[-1], errors[1]) > 10
    expert = load(data_folder / "halfcheetah" / "expert.h5").first(1000)
    errors = one_step_errors(task, [expert], range(-1, 2))
    assert errors[1] < 0.25
    assert errors[0] > 10
