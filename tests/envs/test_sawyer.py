"""The Sawyer scene: kinematics, servo, resets, rewards, and that human recordings replay in it."""

from dataclasses import replace

import h5py
import mujoco
import numpy as np
import pytest

from elute.collect.operator import Reacher, twist_action
from elute.collect.roboturk import FILE, TEN
from elute.envs.make import make
from elute.envs.rollout import Rollouts
from elute.envs.sawyer import SawyerReach
from elute.envs.sawyer_arm import (
    COS,
    GAINS,
    GRIP_AT,
    HAND_QUATERNION,
    LINKS,
    NEAR,
    NUT_AT,
    NUT_QUATERNION,
    SIN,
    SPEEDS,
    angles,
    count_reward,
    hand_quaternion,
    handle,
    handle_distance,
    pose,
    product,
)
from elute.envs.sawyer_robosuite import check_versions
from elute.envs.task import find_task, starting_from
from elute.errors import EluteError
from elute.noise import ActionNoise
from elute.rng import Seeds

TASK = find_task("sawyer-reach")


def recording(folder, number):
    with h5py.File(folder / "sawyer-reach" / FILE.format(number)) as file:
        return {name: file[f"expert_{name}"][:] for name in ("states", "actions", "rewards")}


@pytest.fixture
def sawyer():
    environment = make(TASK)
    yield environment
    environment.close()


def poses(n, seed=0):
    spans = np.array([link.span for link in LINKS])
    return np.random.default_rng(seed).uniform(0.9 * spans[:, 0], 0.9 * spans[:, 1], (n, 7))


def observed(environment, joints):
    """The observation of a pose, with the nut where a reset put it."""
    environment.unwrapped.data.qpos[:7] = joints
    mujoco.mj_forward(environment.unwrapped.model, environment.unwrapped.data)
    return environment.unwrapped._observation()


def test_kinematics_are_those_of_the_scene(sawyer):
    sawyer.reset(seed=0)
    for joints in poses(50):
        seen = observed(sawyer, joints)
        now = pose(np.sin(joints)[None], np.cos(joints)[None])
        np.testing.assert_allclose(now.grip[0], seen[GRIP_AT], atol=1e-9)
        np.testing.assert_allclose(hand_quaternion(joints[None])[0], seen[26:30], atol=1e-9)


def test_the_jacobian_is_the_derivative():
    joints, h = poses(5), 1e-6
    now = pose(np.sin(joints), np.cos(joints))
    for j in range(7):
        moved = joints + h * np.eye(7)[j]
        there = pose(np.sin(moved), np.cos(moved))
        np.testing.assert_allclose((there.grip - now.grip) / h, now.jacobian[:, :3, j], atol=1e-5)
        turned = (there.turn - now.turn) / h @ now.turn.transpose(0, 2, 1)  # [w]_x
        axis = turned[:, [2, 0, 1], [1, 2, 0]]
        np.testing.assert_allclose(axis, now.jacobian[:, 3:, j], atol=1e-5)


def test_angles_are_found_in_both_turns_of_the_last_joint(sawyer):
    sawyer.reset(seed=0)
    for joints in poses(30, seed=1) * 0.8:
        for turn in (-3.9, -2.0, 2.0, 3.9):
            joints[6] = turn
            np.testing.assert_allclose(angles(observed(sawyer, joints)[None])[0], joints, atol=1e-9)


def test_the_nut_is_seen_from_the_hand(sawyer):
    seen, _ = sawyer.reset(seed=3)
    turn = pose(seen[None, SIN], seen[None, COS]).turn[0]
    np.testing.assert_allclose(seen[37:40], turn.T @ (seen[NUT_AT] - seen[GRIP_AT]), atol=1e-9)
    hand, nut, apart = (seen[i : i + 4][[3, 0, 1, 2]] for i in (26, 33, 40))
    assert apart[0] >= 0
    assert abs(product(hand, apart) @ nut) == pytest.approx(1.0)


def test_kinematics_fit_the_recordings(data_folder):
    for number, *_ in TEN:
        states = recording(data_folder, number)["states"]
        now = pose(states[:, SIN], states[:, COS])
        assert np.linalg.norm(now.grip - states[:, GRIP_AT], axis=1).max() < 1e-6
        found = angles(states)
        assert np.abs(hand_quaternion(found) - states[:, HAND_QUATERNION]).max() < 1e-6
        assert np.abs(np.diff(found, axis=0)).max() < 0.05  # no jump by a turn
        assert (found[0, 6] > np.pi) == (number in (291, 580))


@pytest.mark.parametrize(("number", "substeps"), [(12, 5), (640, 6), (442, 5)])
def test_recordings_replay_open_loop(data_folder, number, substeps):
    """The measure is 5 mm; a tenth of it is reached."""
    recorded = recording(data_folder, number)
    environment = SawyerReach(substeps=substeps)
    seen = [environment.reset(options={"observation": recorded["states"][0]})[0]]
    np.testing.assert_allclose(seen[0], recorded["states"][0], atol=2e-4)
    for action in recorded["actions"][:-1]:
        seen.append(environment.step(action)[0])
    replayed = np.array(seen)
    apart = np.linalg.norm((replayed - recorded["states"])[:, GRIP_AT], axis=1)
    assert apart.max() < 5e-4
    paid = count_reward(handle_distance(replayed))
    np.testing.assert_array_equal(paid, recorded["rewards"])


def test_the_servo_is_soft(sawyer):
    """Where a joint is damped, its speed falls short by gain / (gain + damping)."""
    sawyer.reset(seed=0)
    action = np.zeros(7)
    action[6] = -0.5
    for _ in range(100):
        seen = sawyer.step(action)[0]
    expected = -0.5 * SPEEDS[6] * GAINS[6] / (GAINS[6] + LINKS[6].damping)
    assert seen[20] == pytest.approx(expected, rel=0.02)


def test_an_arm_at_rest_stays_where_it_is(sawyer):
    before, _ = sawyer.reset(seed=0)
    for _ in range(100):
        after = sawyer.step(np.zeros(7))[0]
    assert np.abs(after - before)[:21].max() < 1e-3
    assert np.abs((after - before)[NUT_AT]).max() < 1e-4


def test_actions_beyond_the_bounds_are_clipped(sawyer):
    sawyer.reset(seed=0)
    bold = sawyer.step(np.full(7, 3.0))[0]
    sawyer.reset(seed=0)
    np.testing.assert_array_equal(bold, sawyer.step(np.ones(7))[0])


def test_stock_resets_spread_over_their_ranges(sawyer):
    seen = np.array([sawyer.reset(seed=seed)[0] for seed in range(200)])
    nut = seen[:, NUT_AT]
    assert ((nut >= [0.465, -0.225, 0.8299]) & (nut <= [0.47, -0.11, 0.8301])).all()
    assert nut[:, 1].min() < -0.22
    assert nut[:, 1].max() > -0.115
    _, _, z, w = seen[:, NUT_QUATERNION].T
    yaw = 2 * np.arctan2(z, w)
    assert np.histogram(yaw, 4, (0, 2 * np.pi))[0].min() > 30
    spread = angles(seen).std(axis=0)
    np.testing.assert_allclose(spread, 0.02, rtol=0.25)
    assert (seen[:, 14:21] == 0).all()


def test_starts_are_drawn_but_for_the_stock_share():
    first, second = (make(TASK).reset(seed=seed)[0] for seed in (5, 6))
    task = starting_from(TASK, np.array([first, second]))
    environment = make(task)
    began = [environment.reset(seed=seed)[0] for seed in range(300)]
    hits = [[np.allclose(seen, start, atol=1e-9) for seen in began] for start in (first, second)]
    assert 110 < sum(hits[0]) < 160
    assert 110 < sum(hits[1]) < 160
    assert 15 < 300 - sum(hits[0]) - sum(hits[1]) < 50
    seen, _ = environment.reset(seed=0, options={"start": "stock"})
    assert not any(np.allclose(seen, start) for start in (first, second))


def test_any_state_can_be_begun_in(sawyer):
    sawyer.reset(seed=1)
    for _ in range(40):
        middle, *_ = sawyer.step(np.linspace(-0.4, 0.4, 7))
    again, info = sawyer.reset(options={"observation": middle})
    np.testing.assert_allclose(again, middle, atol=1e-9)
    assert info["handle_distance"] == pytest.approx(handle_distance(middle[None])[0])


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (np.zeros(43), "an observation of 44 numbers"),
        (np.zeros((2, 44)), "an observation of 44 numbers"),
        (np.full(44, np.nan), "the start is not finite"),
        (np.zeros(44), "is no state"),
        (np.full(44, 5.0), "is no state"),
    ],
)
def test_what_is_no_state_is_refused(sawyer, start, message):
    with pytest.raises(EluteError, match=message):
        sawyer.reset(options={"observation": start})
    good = sawyer.reset(seed=0)[0]
    if start.ndim == 1:
        with pytest.raises(EluteError, match=message.replace("the start", "start 1")):
            SawyerReach(starts=[good, start])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": "demo"}, "can only be 'stock'"),
        ({"start": np.zeros(44)}, "can only be 'stock'"),
        ({"observatoin": np.zeros(44)}, "no option observatoin"),
    ],
)
def test_strange_options_of_a_reset_are_refused(sawyer, options, message):
    with pytest.raises(EluteError, match=message):
        sawyer.reset(options=options)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": float("nan")}, "a threshold of nan"),
        ({"threshold": 0.0}, "a threshold of 0"),
        ({"stock_share": 3}, "a stock share of 3"),
        ({"stock_share": float("nan")}, "a stock share of nan"),
        ({"substeps": 0}, "0 physics steps"),
    ],
)
def test_strange_settings_are_refused(settings, message):
    with pytest.raises(EluteError, match=message):
        SawyerReach(**settings)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.full(7, np.nan), "not finite"),
        (np.array([0, 0, 0, np.inf, 0, 0, -np.inf]), "not finite"),
        (np.zeros(1), r"shape \(1,\); expected \(7,\)"),
        (np.zeros((1, 7)), r"shape \(1, 7\)"),
        (np.zeros(6), r"shape \(6,\)"),
    ],
)
def test_what_is_no_action_is_refused_before_anything_moves(sawyer, action, message):
    sawyer.reset(seed=0)
    with pytest.raises(EluteError, match=message):
        sawyer.step(action)
    after = sawyer.step(np.zeros(7))[0]
    sawyer.reset(seed=0)
    np.testing.assert_array_equal(after, sawyer.step(np.zeros(7))[0])


def test_a_start_in_the_region_of_success_is_one(sawyer):
    seen, _ = sawyer.reset(seed=2)
    while handle_distance(seen[None])[0] >= 0.09:
        seen = sawyer.step(Reacher().act(seen[None])[0])[0]
    info = sawyer.reset(options={"observation": seen})[1]
    assert info["is_success"]
    assert info["readings"]["at_end"]


def test_starts_of_another_task_are_refused():
    with pytest.raises(EluteError, match="44 observation columns"):
        starting_from(TASK, np.zeros((3, 11)))
    with pytest.raises(EluteError, match="cannot begin in given states"):
        starting_from(find_task("hopper"), np.zeros((3, 11)))


def test_a_step_is_paid_near_the_handle():
    """0.1 (1 - tanh(10 d)) >= 0.03."""
    assert 0.1 * (1 - np.tanh(10 * NEAR)) == pytest.approx(0.03)
    np.testing.assert_array_equal(count_reward(np.array([0.08, 0.0867, 0.0868, 0.1])), [1, 1, 0, 0])


@pytest.mark.parametrize("reward", ["count", "shaped"])
def test_rewards_and_readings_follow_from_the_states(reward):
    environment = make(replace(TASK, options={"reward": reward}))
    seen, info = environment.reset(seed=2)
    near, centre = [], []
    for _ in range(250):
        seen, paid, terminated, truncated, info = environment.step(Reacher().act(seen[None])[0])
        distance = handle_distance(seen[None])[0]
        assert info["handle_distance"] == pytest.approx(distance)
        near.append(distance < 0.1)
        centre.append(np.linalg.norm(seen[GRIP_AT] - seen[NUT_AT]) < 0.1)
        expected = {"count": float(distance <= NEAR), "shaped": 1 - np.tanh(10 * distance)}
        assert paid == pytest.approx(expected[reward])
        assert info["is_success"] == any(near)
        assert info["readings"]["nut_centre"] == any(centre)
        assert info["readings"]["at_end"] == near[-1]
        assert (terminated, truncated, info["readings"]["nut_peg"]) == (False, False, False)
    assert info["is_success"]
    back = environment.reset(seed=2)[1]
    assert not back["is_success"]


def test_the_nut_can_be_pushed(sawyer):
    """So that the nut-peg distance is a measurement and not a constant."""
    seen, before = sawyer.reset(seed=0)
    down = handle(seen[None])[0] - [0, 0, 0.005]
    reach = Reacher()
    for _ in range(300):
        seen = sawyer.step(reach.act(seen[None])[0])[0]
    for t in range(200):
        goal = down - seen[GRIP_AT] if t < 60 else np.array([0.2, 0.0, -0.02])
        info = sawyer.step(twist_action(seen[None], 3 * goal[None])[0])[4]
        seen = sawyer.unwrapped._observation()
    assert abs(info["peg_distance"] - before["peg_distance"]) > 0.002


def test_seeded_rollouts_are_identical_whoever_plays_them():
    def played(workers):
        short, noise = replace(TASK, horizon=40), ActionNoise("gaussian", 0.5)
        with Rollouts(short, Seeds(4), noise=noise, lanes=10, workers=workers) as rollouts:
            return rollouts.episodes(Reacher(), 12)

    one, again, two = played(1), played(1), played(2)
    for other in (again, two):
        for mine, theirs in zip(one, other, strict=True):
            assert mine.observations.tobytes() == theirs.observations.tobytes()
            assert mine.rewards.tobytes() == theirs.rewards.tobytes()


def test_a_simulation_that_diverges_says_in_which_episode(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log where it is
    wild = make(TASK).reset(seed=0)[0]
    wild[14:21] = 1e160
    with (
        Rollouts(starting_from(TASK, wild[None]), Seeds(0), lanes=1) as rollouts,
        pytest.raises(EluteError, match=r"sawyer-reach, episode 0, step 0: .*diverged"),
    ):
        rollouts.episodes(Reacher(), 1)


def test_strange_rewards_are_refused():
    with pytest.raises(EluteError, match="count or shaped") as caught:
        make(replace(TASK, options={"reward": "sparse"}))
    assert "sparse" in str(caught.value)


@pytest.mark.parametrize(
    ("robosuite", "mujoco_version"),
    [(None, "3.9.0"), ("1.5.1", "3.9.0"), ("1.5.2", "3.10.0"), ("1.5.2", "4.0.0"),
     ("1.5.2", "3.2.7"), ("1.5.2", None)],
)  # fmt: skip
def test_versions_of_robosuite_that_fail_are_refused_by_name(robosuite, mujoco_version):
    with pytest.raises(EluteError, match=r"robosuite==1.5.2 with mujoco>=3.3,<3.10") as caught:
        check_versions(robosuite, mujoco_version)
    assert (robosuite or "absent") in caught.value.message
    assert "elute[robosuite]" in caught.value.hint


def test_the_pinned_versions_pass():
    check_versions("1.5.2", "3.3.7")
    check_versions("1.5.2", "3.9.0")
