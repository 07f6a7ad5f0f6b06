"""Observations of `sawyer-reach` from the simulator states of a RoboTurk recording."""

import h5py
import numpy as np
import pytest

from commands import elute
from elute.collect.adapt import adapt
from elute.collect.extract import find_places, joints_of
from elute.collect.roboturk import read_roboturk
from elute.demos.files import load
from elute.envs.make import make
from elute.envs.sawyer_arm import NUT_AT, NUT_QUATERNION, VELOCITY, angles
from elute.envs.task import find_task
from elute.errors import EluteError

pytest.importorskip("mujoco", reason="the simulator is not installed: pip install 'elute[mujoco]'")

TASK = find_task("sawyer-reach")
ARM = "".join(f'<body><joint name="right_j{j}" type="hinge"/>' for j in range(7))
MODEL = (
    '<mujoco><default><joint name="right_j9" type="ball"/></default><worldbody>'
    f'<geom/><body name="base">{ARM}'
    '<body><joint name="r_gripper_l_finger_joint" type="slide"/></body>'
    '<body><joint name="r_gripper_r_finger_joint" type="slide"/></body>'
    f"{'</body>' * 7}</body>"
    '<body name="SquareNut0"><joint name="SquareNut0" type="free"/></body>'
    '<body name="RoundNut0"><freejoint name="RoundNut0"/></body>'
    "</worldbody></mujoco>"
)
WIDTH = 1 + (7 + 2 + 14) + (7 + 2 + 12)
BOMB = MODEL.replace(
    "<mujoco>", '<!DOCTYPE m [<!ENTITY a "aaaaaaaaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><mujoco>&b;'
)


def states_of(observations):
    """The states that a simulator would have recorded."""
    n = len(observations)
    time = 0.01 * np.arange(n)[:, None]
    x, y, z, w = (observations[:, NUT_QUATERNION][:, [i]] for i in range(4))
    square = np.tile([0.5, 0.1, 0.8, 1, 0, 0, 0], (n, 1))
    nut = np.concatenate([observations[:, NUT_AT], w, x, y, z], axis=1)
    still = np.zeros((n, 14))
    return np.concatenate(
        [time, angles(observations), observations[:, 21:23], square, nut,
         observations[:, VELOCITY], still], axis=1
    )  # fmt: skip


def recorded(folder, observations, actions, model=MODEL):
    """A folder as RoboTurk's."""
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "model_1.xml").write_text(model)
    with h5py.File(folder / "demo.hdf5", "w") as file:
        demo = file.create_group("data/demo_1")
        demo.attrs["model_file"] = "model_1.xml"
        file["data"].attrs["env"] = "SawyerNutAssemblyRound"
        demo["states"] = states_of(observations)
        demo["joint_velocities"] = actions
        demo["gripper_actuations"] = -np.ones((len(actions), 1))
    return folder


@pytest.fixture(scope="module")
def played():
    """Observations and actions of a few steps."""
    environment, rng = make(TASK), np.random.default_rng(0)
    seen, _ = environment.reset(seed=0)
    observations, actions = [], rng.uniform(-1, 1, (20, 7))
    for action in actions:
        observations.append(seen)
        seen, *_ = environment.step(action)
    environment.close()
    return np.array(observations), actions


def test_what_was_observed_is_observed_again(played, tmp_path):
    observations, actions = played
    demos = adapt(load(recorded(tmp_path / "in", observations, actions)), TASK)
    np.testing.assert_allclose(demos.observations, observations, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(demos.actions, actions)
    np.testing.assert_array_equal(demos.extras["states"], states_of(observations))
    np.testing.assert_array_equal(demos.extras["gripper_actuations"], -np.ones((20, 1)))
    roles = [column.role for column in demos.observation_columns]
    assert roles[21:30] == ["constant"] * 2 + ["continuous"] * 3 + ["quaternion"] * 4
    assert demos.provenance.steps[-1]["operation"] == "extract"


def test_human_recordings_are_observed_as_published(data_folder, tmp_path):
    human = read_roboturk(data_folder / "sawyer-reach").select([5]).rows(0, 100)
    raw = load(recorded(tmp_path / "in", human.observations, human.actions))
    demos = adapt(raw, TASK)
    np.testing.assert_allclose(demos.observations, human.observations, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(demos.rewards, human.rewards)


def test_the_command_says_no_loss(played, tmp_path):
    recorded(tmp_path / "in", *played)
    done = elute(
        *("demos", "convert", str(tmp_path / "in"), str(tmp_path / "out.npz")),
        *("--adapt", "sawyer-reach", "--strict"),
    )
    assert done.returncode == 0, done.stderr
    assert load(tmp_path / "out.npz").observations.shape == (20, 44)


def test_joints_are_listed_body_by_body():
    model = (
        "<mujoco><worldbody><body><body><joint name='late'/></body><joint name='early'/></body>"
        "</worldbody><tendon><joint name='none'/></tendon></mujoco>"
    )
    assert [name for name, _ in joints_of(model)] == ["early", "late"]


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (BOMB, "declares entities"),
        ("no xml", "no XML"),
        ("", "no XML"),
        ("<a>" * 300 + "</a>" * 300, "nested"),
        (MODEL.replace("right_j3", "left_j3"), "right_j3"),
        (MODEL.replace("RoundNut0", "Cereal0"), "nut"),
    ],
)
def test_a_model_that_is_none(model, says):
    with pytest.raises(EluteError, match=says):
        find_places(model, WIDTH)


def test_states_of_another_model():
    with pytest.raises(EluteError, match="states of 46 numbers"):
        find_places(MODEL, WIDTH + 1)


def test_another_task_or_controller_is_refused(played, tmp_path):
    raw = load(recorded(tmp_path / "in", *played))
    with pytest.raises(EluteError, match="sawyer-reach only"):
        adapt(raw, find_task("hopper"))
    recorded(tmp_path / "other", played[0], played[1][:, :6])
    with pytest.raises(EluteError, match="7 joint velocities"):
        adapt(load(tmp_path / "other"), TASK)
