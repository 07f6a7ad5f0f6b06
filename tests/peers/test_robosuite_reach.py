"""The same task on robosuite: the same observations of the same state, the same motion."""

import h5py
import numpy as np
import pytest

from elute.collect.operator import Reacher
from elute.collect.roboturk import FILE, TEN
from elute.envs.make import make
from elute.envs.sawyer_arm import (
    GRIP_AT,
    NUT_AT,
    count_reward,
    handle_distance,
)
from elute.envs.task import find_task
from elute.evaluation import evaluate

pytest.importorskip("robosuite")
pytestmark = pytest.mark.peers

BASE = 1.1e-3
"""Its arm stands 1 mm lower."""
NATIVE, THEIRS = find_task("sawyer-reach"), find_task("sawyer-reach@robosuite")


@pytest.fixture(scope="module")
def pair():
    both = make(NATIVE), make(THEIRS)
    yield both
    for environment in both:
        environment.close()


def recording(folder, number):
    with h5py.File(folder / "sawyer-reach" / FILE.format(number)) as file:
        return {name: file[f"expert_{name}"][:] for name in ("states", "actions", "rewards")}


def replayed(environment, start, actions, substeps=5):
    environment.unwrapped.substeps = substeps
    seen = [environment.reset(options={"observation": start})[0]]
    seen += [environment.step(action)[0] for action in actions]
    environment.unwrapped.substeps = 5
    return np.array(seen)


def apart(one, other, what=GRIP_AT):
    return np.linalg.norm((one - other)[:, what], axis=1).max()


def test_the_same_seed_begins_in_the_same_state(pair):
    for seed in range(5):
        mine, theirs = (environment.reset(seed=seed)[0] for environment in pair)
        assert np.abs(mine - theirs).max() < BASE
        assert np.abs((mine - theirs)[:23]).max() < 1e-9


def test_recorded_states_are_seen_as_they_were(pair, data_folder):
    for number, *_ in TEN:
        states = recording(data_folder, number)["states"][::100]
        for environment in pair:
            for state in states:
                seen, _ = environment.reset(options={"observation": state})
                fingers = slice(21, 23)  # one operator closed them; here they are held open
                seen[fingers] = state[fingers]
                flipped = np.abs(seen[40:44] + state[40:44]).max() < 1e-3  # w = 0: either sign
                seen[40:44] *= -1 if flipped else 1
                assert np.abs(seen - state).max() < BASE


def test_the_same_actions_move_both_alike(pair):
    """A wandering arm, nothing touched: one second apart by less than 4 mm."""
    rng = np.random.default_rng(0)
    for seed in range(3):
        start, _ = pair[0].reset(seed=seed)
        actions = 0.25 * np.cumsum(rng.standard_normal((100, 7)), axis=0) / 10
        actions[:, 1] = -np.abs(actions[:, 1])  # upwards, away from the table
        mine, theirs = (replayed(environment, start, actions) for environment in pair)
        assert apart(mine, theirs) < 4e-3
        assert apart(mine, mine[:1], GRIP_AT) > 0.05
        assert apart(mine, theirs, NUT_AT) < 1e-3


@pytest.mark.parametrize(("number", "substeps"), [(12, 5), (640, 6), (442, 5)])
def test_recordings_replay_in_both(pair, data_folder, number, substeps):
    recorded = recording(data_folder, number)
    states, actions = recorded["states"], recorded["actions"][:-1]
    mine, theirs = (replayed(one, states[0], actions, substeps) for one in pair)
    assert apart(mine, states) < 5e-4
    assert apart(theirs, states) < 5e-3
    earned = count_reward(handle_distance(theirs)).sum()
    assert abs(earned - recorded["rewards"].sum()) <= 3


def test_the_scripted_operator_succeeds_there_too():
    score = evaluate(Reacher(), THEIRS, episodes=5)
    assert score.success == 1.0
    assert score.readings["nut_peg"] == (False,) * 5
