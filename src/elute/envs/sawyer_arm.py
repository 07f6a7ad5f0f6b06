"""The Sawyer arm before a nut: lengths, masses, columns and geometry, in numpy alone.

Forward kinematics, link by link, from the base up, with q_j the angle of joint j:

    p <- p + R pos_j,   R <- R R(quat_j) R_z(q_j)                   j = 0..6
    hand = (p + R pos_hand, R R(quat_hand)),   grip point = hand + 0.12 m along its z axis

The observation (44 columns; quaternions are x, y, z, w):

     0:7  sin q      7:14 cos q      14:21 joint velocities (rad/s)     21:23 finger positions
    23:26 grip point               26:30 orientation of the hand        world frame
    30:33 centre of the nut        33:37 its orientation                world frame
    37:40 centre of the nut        40:44 its orientation, w >= 0        from the hand, at the grip

A demonstrator is paid 1 in each step in which the grip point is near the handle of the nut, which
lies 0.06 m from its centre along its x axis:

    reward = 1  if  0.1 (1 - tanh(10 |grip - handle|)) >= 0.03,  else 0        within 0.0867 m

Masses and inertias are those of the robot's public description; the inertia of the fingers is far
too large for their size, but it shaped the recorded motion.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elute.episodes import Array

Floats = NDArray[np.float64]
Triple = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
"""w, x, y, z, as the simulator has it."""


@dataclass(frozen=True)
class Link:
    """A rigid part of the arm, seen from the part before it."""

    position: Triple
    orientation: Quaternion
    mass: float
    centre: Triple
    """Of mass."""
    axes: Quaternion
    """Of inertia."""
    inertia: Triple
    """About those axes."""
    span: tuple[float, float]
    """How far its joint turns (rad)."""
    damping: float = 0.0


LINKS = (
    Link(
        (0.0, 0.0, 0.08),
        (1.0, 0.0, 0.0, 0.0),
        5.3213,
        (0.024366, 0.010969, 0.14363),
        (0.89482, 0.009, -0.17028, 0.41257),
        (0.0651588, 0.0510944, 0.0186218),
        (-3.0503, 3.0503),
    ),
    Link(
        (0.081, 0.05, 0.237),
        (0.5, -0.5, 0.5, 0.5),
        4.505,
        (-0.003085, -0.026811, 0.092521),
        (0.42489, 0.89199, 0.13236, -0.07943),
        (0.0224339, 0.0221624, 0.0097097),
        (-3.8095, 2.2736),
    ),
    Link(
        (0.0, -0.14, 0.1425),
        (0.707107, 0.707107, 0.0, 0.0),
        1.745,
        (-0.00016, -0.014967, 0.13582),
        (0.70783, -0.05248, 0.0516, 0.70254),
        (0.0257928, 0.025506, 0.00292515),
        (-3.0426, 3.0426),
    ),
    Link(
        (0.0, -0.042, 0.26),
        (0.707107, -0.707107, 0.0, 0.0),
        2.5097,
        (-0.004814, -0.0281, -0.084154),
        (0.903, 0.38539, -0.08809, 0.16825),
        (0.0102404, 0.0096997, 0.00369622),
        (-3.0439, 3.0439),
    ),
    Link(
        (0.0, -0.125, -0.1265),
        (0.707107, 0.707107, 0.0, 0.0),
        1.1136,
        (-0.001884, 0.0069, 0.1341),
        (0.80361, 0.03126, -0.02983, 0.59358),
        (0.0136549, 0.0135493, 0.00127353),
        (-2.9761, 2.9761),
    ),
    Link(
        (0.0, 0.031, 0.275),
        (0.707107, -0.707107, 0.0, 0.0),
        1.5625,
        (0.006113, -0.023697, 0.076416),
        (0.40408, 0.9135, 0.04731, 0.00158),
        (0.00474131, 0.00422857, 0.00190672),
        (-2.9761, 2.9761),
        damping=0.2,
    ),
    Link(
        (0.0, -0.11, 0.1053),
        (0.061625, 0.06163, -0.704416, 0.704416),
        0.3292,
        (0.0, 0.008584, -0.004957),
        (0.47904, 0.51564, -0.51307, 0.49132),
        (0.00036026, 0.00031107, 0.00021497),
        (-4.7124, 4.7124),
        damping=0.1,
    ),
)
HEAD = Link(
    (0.0, 0.0, 0.2965),
    (1.0, 0.0, 0.0, 0.0),
    1.5795,
    (0.005321, 0.0, 0.1021),
    (1.0, 0.0, -0.0036, -0.0006),
    (0.0118334, 0.00827089, 0.00496574),
    (0.0, 0.0),
)
"""Rigid, on the first link."""
BASE = (0.0, 0.0, 0.913)
HAND = ((0.0, 0.0, 0.0245), (0.707105, 0.0, 0.0, 0.707108))
"""On the last link."""
GRIP = 0.12
"""From the hand to the point between the finger tips."""
FINGERS = (0.0115, -0.0115)
"""Open, and never moved."""

TABLE = 0.82
"""Height of its top."""
PEGS = {"square": (0.73, 0.10), "round": (0.73, -0.10)}
NUT_LOW, NUT_HIGH = (0.465, -0.225), (0.470, -0.11)
"""Where the nut may lie, in any direction."""
NUT_HEIGHT = 0.83
HANDLE = 0.06
"""From the centre of the nut to its handle, along its x axis."""
NEAR = float(np.arctanh(0.7)) / 10
"""How near the handle a step must be to be paid."""

SPEEDS = np.array([1.74, 1.328, 1.957, 1.957, 3.485, 3.485, 4.545])
"""Of the joints at an action of 1 (rad/s)."""
GAINS = (8.0, 7.0, 6.0, 4.0, 2.0, 0.5, 0.1)
"""Torque of each joint per rad/s that it is too slow: soft, so that the last never gets there."""
STOCK_POSE = (0.0, -1.18, 0.0, 2.18, 0.0, 0.57, 3.3161)

N_OBSERVATIONS, N_JOINTS = 44, 7
SIN, COS, VELOCITY = slice(0, 7), slice(7, 14), slice(14, 21)
GRIP_AT, HAND_QUATERNION = slice(23, 26), slice(26, 30)
NUT_AT, NUT_QUATERNION = slice(30, 33), slice(33, 37)


def rotation(q: Array) -> Floats:
    """The matrix of a quaternion w, x, y, z of any length but 0."""
    w, x, y, z = np.asarray(q, dtype=np.float64) / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


_TURNS = np.array([rotation(np.array(link.orientation)) for link in LINKS])
_STEPS = np.array([link.position for link in LINKS])
_HAND_TURN, _HAND_STEP = rotation(np.array(HAND[1])), np.array(HAND[0])


@dataclass(frozen=True, eq=False)
class Pose:
    """Where the arm is, for n rows at once."""

    joints: Floats
    """(7, n, 3): the point about which each joint turns."""
    axes: Floats
    """(7, n, 3): and the direction."""
    turn: Floats
    """(n, 3, 3): of the hand."""
    grip: Floats
    """(n, 3)"""

    @property
    def jacobian(self) -> Floats:
        """(n, 6, 7): how the grip point moves and the hand turns with each joint."""
        along = np.cross(self.axes, self.grip - self.joints)
        return np.concatenate([along, self.axes], axis=2).transpose(1, 2, 0)


def pose(sin: Array, cos: Array) -> Pose:
    """Forward kinematics of rows of joint angles, (n, 7) each."""
    n = len(sin)
    point, turn = np.tile(BASE, (n, 1)), np.tile(np.eye(3), (n, 1, 1))
    joints, axes = np.empty((N_JOINTS, n, 3)), np.empty((N_JOINTS, n, 3))
    for j in range(N_JOINTS):
        point = point + turn @ _STEPS[j]
        turn = turn @ _TURNS[j]
        joints[j], axes[j] = point, turn[:, :, 2]
        s, c = sin[:, j, None], cos[:, j, None]
        x, y = turn[:, :, 0], turn[:, :, 1]
        turn = np.stack([c * x + s * y, c * y - s * x, turn[:, :, 2]], axis=2)
    point = point + turn @ _HAND_STEP
    turn = turn @ _HAND_TURN
    return Pose(joints, axes, turn, point + GRIP * turn[:, :, 2])


def hand_quaternion(angles: Array) -> Floats:
    """(n, 4), x, y, z, w: its sign turns with every full turn of a joint."""
    q = np.tile([1.0, 0.0, 0.0, 0.0], (len(angles), 1))
    for j, link in enumerate(LINKS):
        half = angles[:, j] / 2
        turned = np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], axis=1)
        q = product(product(q, np.array(link.orientation)), turned)
    q = product(q, np.array(HAND[1]))
    unit: Floats = (q / np.linalg.norm(q, axis=1, keepdims=True))[:, [1, 2, 3, 0]]
    return unit


def product(p: Array, q: Array) -> Floats:
    """Of quaternions w, x, y, z along the last axis."""
    a, b, c, d = (p[..., i] for i in range(4))
    w, x, y, z = (q[..., i] for i in range(4))
    return np.stack(
        [
            a * w - b * x - c * y - d * z,
            a * x + b * w + c * z - d * y,
            a * y - b * z + c * w + d * x,
            a * z + b * y - c * x + d * w,
        ],
        axis=-1,
    )


def angles(observations: Array) -> Floats:
    """Joint angles of rows, (n, 7).

    The last joint turns by more than a full turn. Which one it is in shows in the sign of the
    hand's quaternion.
    """
    found: Floats = np.arctan2(observations[:, SIN], observations[:, COS])
    other_turn = (hand_quaternion(found) * observations[:, HAND_QUATERNION]).sum(axis=1) < 0
    found[:, -1] -= np.where(other_turn, 2 * np.pi * np.sign(found[:, -1]), 0.0)
    return found


def handle(observations: Array) -> Floats:
    """Where the handle of the nut is, (n, 3)."""
    x, y, z, w = observations[:, NUT_QUATERNION].T
    along = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)], axis=1)
    there: Floats = observations[:, NUT_AT] + HANDLE * along
    return there


def handle_distance(observations: Array) -> Floats:
    """From the grip point, (n,)."""
    apart: Floats = np.linalg.norm(observations[:, GRIP_AT] - handle(observations), axis=1)
    return apart


def count_reward(distance: Array) -> Floats:
    """1 near the handle, 0 elsewhere."""
    near: Floats = (distance <= NEAR).astype(np.float64)
    return near
