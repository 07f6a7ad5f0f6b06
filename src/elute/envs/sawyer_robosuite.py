"""`sawyer-reach@robosuite`: the same task on the platform that the paper names.

robosuite 1.5.2 builds its Sawyer with a table, two pegs and a round nut; then it is made to be what
the recordings were made with, which were of the first release:

    world         shifted by 0.5 m along x; table and pegs placed as they were
    joints        no armature, no dry friction, damping in the last two only
    air           none: with the large inertia of the fingers its drag reaches 10 Nm
    arm's base    touches nothing: it brakes the first joint in every pose
    servo         gains and bias as in `sawyer`, on the simulator itself: its own joint-velocity
                  controller cannot be made in this release
    grip point    0.1205 m from the hand: its own is 11.5 mm off
    fingers       held open

What differs from `sawyer`: meshes, fingers that give way, and a base 1 mm lower.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import gymnasium
import numpy as np

from elute.envs.sawyer import HORIZON, Robot, SawyerReach
from elute.envs.sawyer_arm import FINGERS, GAINS, LINKS, N_JOINTS
from elute.errors import EluteError

PINS = "robosuite==1.5.2 with mujoco>=3.3,<3.10"
AFFINE = 1
"""Kind of bias: a sum of a constant, position and velocity, times their factors."""
OUT_OF_THE_WAY = (10.0, 10.0, 10.0)

gymnasium.register(
    "SawyerReachRobosuite-v0",
    "elute.envs.sawyer_robosuite:robosuite_reach",
    max_episode_steps=HORIZON,
)


def robosuite_reach(**options: Any) -> SawyerReach:  # noqa: ANN401 (those of the environment)
    """The environment.

    Raises:
        EluteError: robosuite is missing, or of a version that does not work with this simulator.
    """
    check_versions(_version("robosuite"), _version("mujoco"))
    return SawyerReach(_robot(), **options)


def check_versions(robosuite: str | None, mujoco: str | None) -> None:
    """Refuse what was seen to fail.

    Raises:
        EluteError: other versions than those pinned.
    """
    known = robosuite == "1.5.2" and mujoco is not None
    if not known or not (3, 3) <= _first_two(mujoco or "0.0") < (3, 10):
        raise EluteError(
            f"sawyer-reach@robosuite needs {PINS}; here are robosuite {robosuite or 'absent'} and "
            f"mujoco {mujoco or 'absent'}",
            hint="pip install 'elute[robosuite]' in an environment of its own, which gets numpy<2",
        )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _first_two(text: str) -> tuple[int, int]:
    major, minor, *_ = (int("".join(filter(str.isdigit, part)) or 0) for part in text.split("."))
    return major, minor


def _robot() -> Robot:
    model = _model()
    joints = [model.joint(f"robot0_right_j{j}") for j in range(N_JOINTS)]
    fingers = [model.joint(f"gripper0_right_{side}_finger_joint") for side in "lr"]
    servos = np.array([model.actuator(f"robot0_torq_right_j{j}").id for j in range(N_JOINTS)])
    held = [model.actuator(f"gripper0_right_gripper_{side}_finger_joint").id for side in "lr"]
    dofs = np.array([joint.dofadr[0] for joint in joints])
    _as_recorded(model, dofs, servos)
    controls = np.zeros(model.nu)
    controls[held] = FINGERS
    return Robot(
        model=model,
        joints=np.array([joint.qposadr[0] for joint in joints]),
        dofs=dofs,
        servos=servos,
        hand=model.body("robot0_right_hand").id,
        nut=model.body("RoundNut_main").id,
        nut_joint=int(model.joint("RoundNut_joint0").qposadr[0]),
        grip=0.1205,
        shift=np.array([0.5, 0.0, 0.0]),
        fingers=np.array([finger.qposadr[0] for finger in fingers]),
        controls=controls,
    )


def _model() -> Any:  # noqa: ANN401 (MuJoCo's)
    with _quiet():
        environment = import_module("robosuite").make(
            "NutAssemblyRound",
            robots="Sawyer",
            has_renderer=False,
            has_offscreen_renderer=False,
            use_camera_obs=False,
            table_full_size=(0.68, 0.8, 0.05),
            table_offset=(0.08, 0.0, 0.82),
        )
    return environment.sim.model._model


@contextmanager
def _quiet() -> Iterator[None]:
    """It warns of robots and controllers that are not used here."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _as_recorded(model: Any, dofs: Any, servos: Any) -> None:  # noqa: ANN401
    """Turn today's model into the one of the recordings."""
    model.dof_damping[dofs] = [link.damping for link in LINKS]
    model.dof_armature[dofs] = 0.0
    model.dof_frictionloss[dofs] = 0.0
    model.opt.density = model.opt.viscosity = 0.0
    base = model.geom("robot0_base_col").id
    model.geom_contype[base] = model.geom_conaffinity[base] = 0
    model.actuator_gainprm[servos, 0] = GAINS
    model.actuator_biastype[servos] = AFFINE
    model.actuator_biasprm[servos, 2] = -np.array(GAINS)
    model.actuator_ctrllimited[servos] = 0
    other = int(model.joint("SquareNut_joint0").qposadr[0])
    model.qpos0[other : other + 3] = OUT_OF_THE_WAY
