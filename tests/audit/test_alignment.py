"""Misalignment is found where it is, and nowhere else."""

import numpy as np
import pytest

from elute.collect.catalogue import fetch
from elute.demos.audit.alignment import SHIFTS, measure_alignment
from elute.demos.audit.audit import audit
from elute.demos.audit.repair import realign
from elute.demos.files import load, open_demos
from elute.demos.pointmass import pointmass
from elute.envs.task import find_task
from elute.episodes import Episodes
from elute.types import Demonstrations

OTHER_SHIFTS = [k for k in SHIFTS if k != 0]


def runs(demos):
    return list(demos.iter_episodes())


def misplaced(demos, shift):
    """Data whose action of row t + shift belongs to the state of row t."""
    return realign(demos, -shift)


def codes(found):
    return [finding.code for finding in found.findings]


def test_aligned_data_is_called_aligned():
    assert measure_alignment(runs(pointmass(20))).verdict == "aligned"


@pytest.mark.parametrize("shift", OTHER_SHIFTS)
def test_every_shift_is_found_and_named(shift):
    demos = misplaced(pointmass(40, noise=0.3), shift)
    found = [f for f in audit(demos).findings if f.code == "misaligned"]
    assert [f.shift for f in found] == [shift]
    assert found[0].severity == "error"
    assert found[0].repair == "realign"


@pytest.mark.parametrize("shift", OTHER_SHIFTS)
def test_realigning_cures_it(shift):
    broken = misplaced(pointmass(40, noise=0.3), shift)
    assert measure_alignment(runs(realign(broken, shift))).verdict == "aligned"


def test_a_deterministic_driver_is_never_called_misaligned():
    # a_{t+1} is a function of s_{t+1} here, so the shift +1 explains the next state very well.
    for seed in range(5):
        assert "misaligned" not in codes(audit(pointmass(20, noise=0.0, seed=seed)))


def smooth_driving(seed):
    """A random linear system under actions that change slowly, as a human hand does."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((600, 3))
    actions = np.zeros((600, 3))
    states = np.zeros((600, 4))
    drive = 0.2 * rng.standard_normal((3, 4))
    for t in range(1, 600):
        actions[t] = 0.97 * actions[t - 1] + 0.1 * noise[t]
        states[t] = 0.95 * states[t - 1] + actions[t - 1] @ drive
    return Demonstrations(observations=states, actions=actions, episodes=Episodes.of([600]))


@pytest.mark.parametrize("seed", range(5))
def test_slow_actions_raise_no_false_alarm(seed):
    assert "misaligned" not in codes(audit(smooth_driving(seed)))


def test_too_few_rows_say_nothing():
    assert measure_alignment(runs(pointmass(1))).verdict == "not measurable"


def test_actions_without_effect_say_nothing():
    rng = np.random.default_rng(0)
    demos = Demonstrations(
        observations=rng.standard_normal((500, 3)),
        actions=rng.standard_normal((500, 2)),
        episodes=Episodes.of([500]),
    )
    assert measure_alignment(runs(demos)).verdict == "not measurable"


def test_rows_that_are_not_finite_do_not_disturb():
    demos = misplaced(pointmass(40, noise=0.3), 1)
    observations = demos.observations.copy()
    observations[100] = np.nan
    broken = Demonstrations(
        observations=observations, actions=demos.actions, episodes=demos.episodes
    )
    assert measure_alignment(runs(broken)).shift == 1


def test_a_simulator_has_the_last_word():
    demos = pointmass(20)
    told = measure_alignment(runs(demos), lambda _: {k: 0.01 if k == 2 else 1.0 for k in SHIFTS})
    assert (told.verdict, told.shift) == ("misaligned", 2)
    unsure = measure_alignment(runs(demos), lambda _: dict.fromkeys(SHIFTS, 1.0))
    assert unsure.verdict == "aligned"


def test_a_simulator_that_cannot_tell_is_not_quoted():
    demos = misplaced(pointmass(40, noise=0.3), 1)
    found = {f.code: f for f in audit(demos, replay=lambda _: dict.fromkeys(SHIFTS, 30.0)).findings}
    assert "explains" in found["misaligned"].message
    assert "30" in found["replay-inconclusive"].message


def test_the_published_expert_is_misaligned_by_one(data_folder):
    found = [f for f in audit(open_demos(data_folder / "halfcheetah/expert.h5")).findings
             if f.code == "misaligned"]  # fmt: skip
    assert [f.shift for f in found] == [1]


def test_no_other_published_file_is(data_folder):
    files = sorted((data_folder / "halfcheetah").glob("*.h5")) + sorted(
        (data_folder / "sawyer-reach").glob("*")
    )
    assert len(files) == 18
    alarms = [f.name for f in files if "misaligned" in codes(audit(open_demos(f)))]
    assert alarms == ["expert.h5"]


@pytest.mark.parametrize("shift", [-2, -1, 1, 2])
@pytest.mark.parametrize("name", ["d1-l1_action-noise-0.60", "d1-l3_action-noise-0.25",
                                  "checkpoint-t1", "checkpoint-t4"])  # fmt: skip
def test_the_others_are_caught_when_misplaced(data_folder, name, shift):
    demos = misplaced(load(data_folder / f"halfcheetah/{name}.h5"), shift)
    found = [f.shift for f in audit(demos).findings if f.code == "misaligned"]
    assert found == [shift]


@pytest.mark.mujoco
@pytest.mark.parametrize(("name", "shift"), [("expert", 1), ("checkpoint-t3", 0)])
def test_one_step_replay_agrees(data_folder, name, shift):
    from elute.collect.replay import one_step_errors  # noqa: PLC0415 (needs the simulator)

    demos = load(data_folder / f"halfcheetah/{name}.h5").first(1000)
    errors = one_step_errors(find_task("halfcheetah"), runs(demos), SHIFTS)
    assert min(errors, key=errors.get) == shift
    assert errors[shift] < 0.05 * min(e for k, e in errors.items() if k != shift)


@pytest.mark.mujoco
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_deterministic_policy_in_a_real_simulator_raises_no_alarm(seed):
    import gymnasium  # noqa: PLC0415 (needs the simulator)

    rng = np.random.default_rng(seed)
    environment = gymnasium.make("HalfCheetah-v5")
    weights = 0.4 * rng.standard_normal((environment.observation_space.shape[0], 6))
    states, actions = [], []
    state, _ = environment.reset(seed=seed)
    for _ in range(1000):
        states.append(state)
        actions.append(np.tanh(state @ weights))
        state = environment.step(actions[-1])[0]
    environment.close()
    demos = Demonstrations(
        observations=np.array(states), actions=np.array(actions), episodes=Episodes.of([1000])
    )
    assert "misaligned" not in codes(audit(demos))


@pytest.mark.mujoco
@pytest.mark.slow
@pytest.mark.parametrize("task", ["ant", "halfcheetah", "hopper", "walker2d"])
def test_our_experts_raise_no_alarm_and_shifted_ones_the_right_one(task):
    """Their mean action gives the next state away, more than the action that made it."""
    demos = load(fetch(f"{task}/expert"))
    assert "misaligned" not in codes(audit(demos))
    if task != "ant":  # whose actions explain less than a tenth
        (found,) = [f for f in audit(realign(demos, -1)).findings if f.code == "misaligned"]
        assert found.shift == 1
