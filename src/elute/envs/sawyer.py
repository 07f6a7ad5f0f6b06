"""`sawyer-reach`: bring the hand of a Sawyer arm to the handle of a nut, on MuJoCo alone.

    task = find_task("sawyer-reach")
    environment = make(task);  observation, info = environment.reset(seed=0)

Actions are target velocities of the seven joints, -1 to 1, at 100 Hz. A soft servo follows them

    torque_j = gain_j (action_j speed_j - velocity_j) + bias_j,      5 physics steps of 2 ms

where the bias (gravity, Coriolis) is the one of the last physics step before the action and stays
for all five: that is how the human demonstrations were recorded, and with it they replay.

Success is a distance of grip point and handle below 0.1 m at any time. Other readings stand beside
it in `info["readings"]`: the centre of the nut instead of its handle, nearness at the end, and the
paper's words taken literally, nut to peg, which nobody ever reaches, not even the demonstrators.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, inf, isfinite, tanh
from typing import Any, Literal

import gymnasium
import mujoco
import numpy as np
from gymnasium.spaces import Box

from elute.envs.sawyer_arm import (
    COS,
    FINGERS,
    GRIP,
    HANDLE,
    N_JOINTS,
    N_OBSERVATIONS,
    NEAR,
    NUT_AT,
    NUT_HEIGHT,
    NUT_HIGH,
    NUT_LOW,
    NUT_QUATERNION,
    PEGS,
    SIN,
    SPEEDS,
    STOCK_POSE,
    VELOCITY,
    angles,
)
from elute.envs.sawyer_scene import scene
from elute.episodes import Array
from elute.errors import EluteError

Reward = Literal["count", "shaped"]
HORIZON = 500
STOCK_SPREAD = 0.02
"""Standard deviation of the joints about the stock pose."""
WXYZ, XYZW = [3, 0, 1, 2], [1, 2, 3, 0]

gymnasium.register("SawyerReach-v0", "elute.envs.sawyer:SawyerReach", max_episode_steps=HORIZON)


@dataclass(frozen=True, eq=False)
class Robot:
    """A simulated arm with a nut, and where to find them in it."""

    model: Any
    joints: Array
    """Of the seven, their places among positions, ..."""
    dofs: Array
    """... velocities ..."""
    servos: Array
    """... and controls."""
    hand: int
    """Number of the body."""
    nut: int
    nut_joint: int
    """Its first place among positions."""
    grip: float = GRIP
    """From the hand to the grip point."""
    shift: Array | None = None
    """From its world to that of the recordings."""
    fingers: Array | None = None
    """Places of the fingers among positions; none if they are rigid."""
    controls: Array | None = None
    """What holds the fingers open."""


def native() -> Robot:
    """The scene of our own."""
    model = mujoco.MjModel.from_xml_string(scene())
    seven = np.arange(N_JOINTS)
    return Robot(
        model=model,
        joints=seven,
        dofs=seven,
        servos=seven,
        hand=model.body("hand").id,
        nut=model.body("nut").id,
        nut_joint=int(model.joint("nut").qposadr[0]),
    )


class SawyerReach(gymnasium.Env[Array, Array]):
    """The task, in any simulated robot."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 100}  # noqa: RUF012 (Gymnasium's)
    observation_space = Box(-np.inf, np.inf, (N_OBSERVATIONS,), np.float64)
    action_space = Box(-1.0, 1.0, (N_JOINTS,), np.float64)

    def __init__(
        self,
        robot: Robot | None = None,
        *,
        reward: Reward = "count",
        starts: Sequence[Sequence[float]] = (),
        stock_share: float = 0.1,
        threshold: float = 0.1,
        substeps: int = 5,
        render_mode: str | None = None,
    ) -> None:
        """Args: `starts` are observations to begin in, but for a share of stock resets.

        `substeps` are physics steps of 2 ms in an action.

        Raises:
            EluteError: a setting that makes no task.
        """
        if reward not in ("count", "shaped"):
            raise EluteError(f"{reward!r} is no reward of sawyer-reach", hint="count or shaped")
        _check_settings(stock_share, threshold, substeps)
        self.robot = native() if robot is None else robot
        self.model, self.data = self.robot.model, mujoco.MjData(self.robot.model)
        self.reward, self.stock_share = reward, stock_share
        self.starts = [checked(start, f"start {k}") for k, start in enumerate(starts)]
        self.threshold, self.substeps = threshold, substeps
        self.render_mode = render_mode
        self.renderer: Any = None
        self.seen = {"is_success": False, "nut_centre": False, "nut_peg": False}
        shift = self.robot.shift
        self.shift = np.zeros(3) if shift is None else shift
        self._turned = np.zeros(4)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin: `options` may be `{"observation": vector}` or `{"start": "stock"}`.

        Raises:
            EluteError: other options.
        """
        options = options or {}
        _check_options(options)
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        if "observation" in options:
            self._begin_at(checked(options["observation"]))
        elif self.starts and options.get("start") != "stock" and not self._stock():
            self._begin_at(self.starts[int(self.np_random.integers(len(self.starts)))])
        else:
            self._begin_anywhere()
        if self.robot.controls is not None:
            self.data.ctrl[:] = self.robot.controls
        mujoco.mj_forward(self.model, self.data)
        distances = self._distances()
        self.seen = dict.fromkeys(self.seen, False)
        self._see(distances)
        return self._observation(), self._info(distances)

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """One hundredth of a second.

        Raises:
            EluteError: no seven finite numbers, or the simulation diverged.
        """
        action = np.asarray(action, dtype=np.float64)
        if action.shape != (N_JOINTS,) or not np.isfinite(action).all():
            raise _no_action(action)
        data = self.data
        data.qfrc_applied[self.robot.dofs] = data.qfrc_bias[self.robot.dofs]
        data.ctrl[self.robot.servos] = np.minimum(np.maximum(action, -1.0), 1.0) * SPEEDS
        mujoco.mj_step(self.model, data, self.substeps)
        mujoco.mj_kinematics(self.model, data)  # positions are one physics step old
        observation = self._observation()
        if not isfinite(observation.sum()):
            raise EluteError("the simulation diverged", hint="is the start possible?")
        distances = self._distances()
        self._see(distances)
        return observation, self._paid(distances[0]), False, False, self._info(distances)

    def render(self) -> Array:
        """A picture, (480, 640, 3)."""
        if self.renderer is None:
            self.renderer = mujoco.Renderer(self.model, 480, 640)
        camera = 0 if self.model.ncam else -1
        self.renderer.update_scene(self.data, camera=camera)
        picture: Array = self.renderer.render()
        return picture

    def close(self) -> None:
        """Let go of what draws."""
        if self.renderer is not None:
            self.renderer.close()
            self.renderer = None

    def _stock(self) -> bool:
        return bool(self.np_random.random() < self.stock_share)

    def _begin_anywhere(self) -> None:
        """The stock pose, nearly, and the nut somewhere in its place, in any direction."""
        rng = self.np_random
        joints = np.array(STOCK_POSE) + STOCK_SPREAD * rng.standard_normal(N_JOINTS)
        place = rng.uniform(NUT_LOW, NUT_HIGH)
        half = rng.uniform(0.0, np.pi)
        position = np.array([*place, NUT_HEIGHT])
        self._put(
            joints, np.zeros(N_JOINTS), position, np.array([np.cos(half), 0, 0, np.sin(half)])
        )

    def _begin_at(self, start: Array) -> None:
        """All that the state needs can be read off an observation."""
        joints = angles(start[None])[0]
        self._put(joints, start[VELOCITY], start[NUT_AT], start[NUT_QUATERNION][WXYZ])

    def _put(self, joints: Array, speeds: Array, nut: Array, turn: Array) -> None:
        robot, data = self.robot, self.data
        data.qpos[robot.joints], data.qvel[robot.dofs] = joints, speeds
        first = robot.nut_joint
        data.qpos[first : first + 3] = nut - self.shift
        data.qpos[first + 3 : first + 7] = turn
        if robot.fingers is not None:
            data.qpos[robot.fingers] = FINGERS

    def _observation(self) -> Array:
        robot, data = self.robot, self.data
        joints, turn = data.qpos[robot.joints], data.xmat[robot.hand].reshape(3, 3)
        quaternion, nut = data.xquat[robot.hand], data.xquat[robot.nut]
        grip, there = self._grip(), data.xpos[robot.nut] + self.shift
        mujoco.mju_negQuat(self._turned, quaternion)
        mujoco.mju_mulQuat(self._turned, self._turned.copy(), nut)
        sign = -1.0 if self._turned[0] < 0 else 1.0
        return np.concatenate(
            (
                np.sin(joints),
                np.cos(joints),
                data.qvel[robot.dofs],
                FINGERS if robot.fingers is None else data.qpos[robot.fingers],
                grip,
                quaternion[XYZW],
                there,
                nut[XYZW],
                turn.T @ (there - grip),
                sign * self._turned[XYZW],
            )
        )

    def _grip(self) -> Array:
        robot, data = self.robot, self.data
        along = data.xmat[robot.hand][2::3]
        grip: Array = data.xpos[robot.hand] + robot.grip * along + self.shift
        return grip

    def _distances(self) -> tuple[float, float, float]:
        """Grip point to handle, grip point to the nut's centre, nut to peg (along the table)."""
        data, robot = self.data, self.robot
        nut = data.xpos[robot.nut] + self.shift
        apart = self._grip() - nut
        handle = apart - HANDLE * data.xmat[robot.nut][::3]
        x, y = PEGS["round"]
        return hypot(*handle), hypot(*apart), hypot(nut[0] - x, nut[1] - y)

    def _see(self, distances: tuple[float, float, float]) -> None:
        for name, distance in zip(self.seen, distances, strict=True):
            self.seen[name] = self.seen[name] or distance < self.threshold

    def _paid(self, distance: float) -> float:
        if self.reward == "shaped":
            return 1.0 - tanh(10.0 * distance)
        return float(distance <= NEAR)

    def _info(self, distances: tuple[float, float, float]) -> dict[str, Any]:
        handle, nut, peg = distances
        return {
            "handle_distance": handle,
            "nut_distance": nut,
            "peg_distance": peg,
            "is_success": self.seen["is_success"],
            "readings": self._readings(handle),
        }

    def _readings(self, handle: float) -> Mapping[str, bool]:
        return {
            "nut_centre": self.seen["nut_centre"],
            "at_end": handle < self.threshold,
            "nut_peg": self.seen["nut_peg"],
        }


def _check_settings(stock_share: float, threshold: float, substeps: int) -> None:
    if not 0.0 <= stock_share <= 1.0:
        raise EluteError(f"a stock share of {stock_share}; expected 0 to 1")
    if not 0.0 < threshold < inf:
        raise EluteError(f"a threshold of {threshold} m; expected a distance above 0")
    if substeps < 1:
        raise EluteError(f"{substeps} physics steps in an action; expected at least 1")


def _check_options(options: Mapping[str, Any]) -> None:
    """Of a reset."""
    hint = 'there are {"observation": vector} and {"start": "stock"}'
    strange = sorted(map(str, set(options) - {"observation", "start"}))
    if strange:
        raise EluteError(f"a reset has no option {', '.join(strange)}", hint=hint)
    start = options.get("start", "stock")
    if not isinstance(start, str) or start != "stock":
        raise EluteError("the option start of a reset can only be 'stock'", hint=hint)


def _no_action(action: Array) -> EluteError:
    if action.shape != (N_JOINTS,):
        return EluteError(f"an action of shape {action.shape}; expected ({N_JOINTS},)")
    return EluteError(f"the action is not finite: {action}", hint="did the policy diverge?")


def checked(start: Sequence[float] | Array, name: str = "the start") -> Array:
    """An observation to begin in.

    Raises:
        EluteError: it is none.
    """
    vector = np.asarray(start, dtype=np.float64)
    if vector.shape != (N_OBSERVATIONS,):
        raise EluteError(
            f"{name} has shape {vector.shape}; expected an observation of {N_OBSERVATIONS} numbers",
            hint="are the demonstrations of another task?",
        )
    if not np.isfinite(vector).all():
        raise EluteError(f"{name} is not finite")
    turns = [*np.hypot(vector[SIN], vector[COS]), np.linalg.norm(vector[NUT_QUATERNION])]
    if not all(0.5 < length < 2.0 for length in turns):  # purified ones are near 1 only
        raise EluteError(
            f"{name} is no state: sine and cosine of a joint, or the nut's quaternion, are far "
            "from length 1",
            hint="are the demonstrations of another task?",
        )
    return vector
