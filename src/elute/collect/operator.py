"""A scripted operator for `sawyer-reach`: as good or as shaky as you like, and always synthetic.

A perfect hand (`Reacher`) moves the grip point straight to a point above the handle, with the
fingers down, by damped least squares, and slowly back to its usual pose in what freedom is left:

    twist = [v; w],   v = gain (goal - grip), no faster than `speed`,   w turns the fingers down
    q' = J^T (J J^T + damping^2 I)^-1 twist + (I - J^+ J) (stock - q)
    action = q' (gain_j + damping_j) / (gain_j speed_j)          what the soft servo lets through

An operator (`demonstrate`) has a skill from 0 to 1. What is lacking shows, in proportion, as

    delay       the arm waits before it moves
    detours     way-points off the straight line, at the start more than at the end
    pauses      moments without motion
    speed       slower
    overshoot   first past the goal, then back
    aim         the goal itself is off
    tremor      an Ornstein-Uhlenbeck process on the velocity of the hand

All of it is drawn before the episode begins, from the seed alone. What the perfect hand would do in
the same state is stored beside every action (`clean_actions`). `ten_like` matches the returns of
the ten human demonstrations; the file in the package was made by it. Nothing in it is human.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from elute.collect.record import EXECUTED
from elute.collect.roboturk import TEN
from elute.columns import assign_roles
from elute.demos.corrupt import CLEAN
from elute.envs.make import Environment, make
from elute.envs.sawyer_arm import (
    COS,
    GAINS,
    GRIP_AT,
    LINKS,
    N_JOINTS,
    N_OBSERVATIONS,
    SIN,
    SPEEDS,
    STOCK_POSE,
    Floats,
    handle,
    pose,
)
from elute.envs.task import SAWYER_REACH, Task, find_task
from elute.episodes import Array, Episodes, Provenance
from elute.errors import EluteError
from elute.rng import Seeds
from elute.types import Demonstrations

OPERATOR = "operator"
"""Before a colon and a skill, as the command line has it."""
SHIPPED = Path(__file__).parent / "sawyer-operator.npz"
"""Ten demonstrations, made by `ten_like(LEVELS)`."""
LEVELS = tuple(one.earned for one in TEN)
"""Returns of the human ones, in the paper's order."""
TOLERANCE = 5
TRIES = 400
SECOND = 100
"""Rows."""
ABOVE = np.array([0.0, 0.0, 0.045])
"""From the handle to the goal: near, but the human demonstrations end where the nut is touched."""
GAIN, SPEED, TURNING, DAMPING, POSTURE = 3.0, 0.3, 2.0, 0.05, 0.3
THROUGH = (np.array(GAINS) + [link.damping for link in LINKS]) / (np.array(GAINS) * SPEEDS)
"""Action per joint velocity wanted."""
DETOUR_LOW, DETOUR_HIGH = np.array([0.36, -0.28, 0.94]), np.array([0.60, 0.22, 1.10])


def twist_action(observations: Array, velocity: Array) -> Floats:
    """Actions, (n, 7), that move the grip point at a velocity, (n, 3), with the fingers down."""
    sin, cos = observations[:, SIN], observations[:, COS]
    now = pose(sin, cos)
    down = np.array([0.0, 0.0, -1.0])
    twist = np.concatenate([velocity, TURNING * np.cross(now.turn[:, :, 2], down)], axis=1)
    jacobian = now.jacobian
    transposed = jacobian.transpose(0, 2, 1)
    inverse = transposed @ np.linalg.inv(jacobian @ transposed + DAMPING**2 * np.eye(6))
    stock = np.array(STOCK_POSE)
    away = np.arctan2(
        np.sin(stock) * cos - np.cos(stock) * sin, np.cos(stock) * cos + np.sin(stock) * sin
    )
    free = np.eye(N_JOINTS) - inverse @ jacobian
    wanted = (inverse @ twist[:, :, None] + POSTURE * free @ away[:, :, None])[:, :, 0]
    actions: Floats = wanted * THROUGH
    return actions


def towards(goal: Array, grip: Array, gain: float | Array, speed: float | Array) -> Floats:
    """Velocity, (n, 3): in proportion to the distance, but no faster than `speed`."""
    wanted = gain * (goal - grip)
    length = np.linalg.norm(wanted, axis=1, keepdims=True)
    velocity: Floats = wanted * np.minimum(1.0, speed / np.maximum(length, 1e-12))
    return velocity


class Reacher:
    """The perfect hand, as a policy: it looks at the observation alone."""

    n_observations, n_actions = N_OBSERVATIONS, N_JOINTS
    std = np.zeros(N_JOINTS)
    about = {"task": SAWYER_REACH, "method": "scripted"}  # noqa: RUF012 (as policies have it)

    def act(self, observations: Array) -> Floats:
        """Straight to the handle."""
        return twist_action(observations, self.velocity(observations))

    def velocity(self, observations: Array) -> Floats:
        """Of the hand, (n, 3)."""
        goal = handle(observations) + ABOVE
        return towards(goal, observations[:, GRIP_AT], GAIN, SPEED)


@dataclass(frozen=True, eq=False)
class Flaws:
    """How one episode goes wrong; arrays have an entry for each row."""

    delay: int
    detours: Array
    """(k, 3): way-points, in order."""
    paused: Array
    speed: float
    gain: float
    """Above `GAIN` the soft servo overshoots."""
    aim: Array
    """(3,): how far the goal is off."""
    tremor: Array
    """(n, 3): added to the velocity of the hand (m/s)."""


def draw_flaws(skill: float, rng: np.random.Generator, horizon: int) -> Flaws:
    """What the lack of skill leads to, this time.

    Raises:
        EluteError: a skill outside 0..1.
    """
    if not 0.0 <= skill <= 1.0:
        raise EluteError(f"a skill of {skill} asked for; expected 0 to 1")
    lack = 1.0 - skill
    delay = int(lack * rng.uniform(10, 120))
    detours = rng.uniform(DETOUR_LOW, DETOUR_HIGH, (rng.binomial(3, 0.8 * lack), 3))
    aim = lack * rng.normal(0.0, [0.025, 0.025, 0.01])
    aim[2] = abs(aim[2])  # a hand too low would push the nut
    return Flaws(
        delay=delay,
        detours=detours,
        paused=_pauses(lack, rng, horizon),
        speed=SPEED * (1.0 - 0.55 * lack * rng.uniform(0.5, 1.0)),
        gain=GAIN * (1.0 + 0.8 * lack * rng.uniform(0.0, 1.0)),
        aim=aim,
        tremor=_tremor(lack, rng, horizon),
    )


def _pauses(lack: float, rng: np.random.Generator, horizon: int) -> Array:
    paused = np.zeros(horizon, dtype=bool)
    for start in rng.integers(0, horizon, rng.poisson(3.0 * lack)):
        paused[start : start + rng.integers(SECOND // 5, SECOND)] = True
    return paused


def _tremor(lack: float, rng: np.random.Generator, horizon: int) -> Array:
    """Noise of 0.12 m/s at no skill, that forgets itself in about a tenth of a second."""
    keep = np.exp(-10.0 / SECOND)
    noise = rng.standard_normal((horizon, 3)) * np.sqrt(1 - keep**2)
    for t in range(1, horizon):
        noise[t] += keep * noise[t - 1]
    tremor: Array = 0.12 * lack * noise
    return tremor


def parse_skill(text: str) -> float:
    """The skill of `operator:0.6`.

    Raises:
        EluteError: it is no number.
    """
    try:
        return float(text.removeprefix(f"{OPERATOR}:"))
    except ValueError as error:
        raise EluteError(f"{text}: expected a skill from 0 to 1", hint="operator:0.6") from error


def operate(skill: float, task: Task, *, rows: int, seed: int = 0) -> Demonstrations:
    """Whole episodes, until there are at least `rows` rows.

    Raises:
        EluteError: a skill outside 0..1, or a task that is not the operator's.
    """
    if (task.n_observations, task.n_actions) != (N_OBSERVATIONS, N_JOINTS):
        raise EluteError(
            f"the scripted operator cannot do {task.name}", hint=f"only {SAWYER_REACH}"
        )
    environment = make(task)
    seeds = Seeds(seed)("operate").integers(2**31, size=-(-rows // task.horizon)).tolist()
    try:
        played = [demonstrate(skill, one, task=task, environment=environment) for one in seeds]
    finally:
        environment.close()
    together = sum(played[1:], start=played[0])
    provenance = replace(played[0].provenance, steps=())
    step = provenance.then("operate", synthetic=True, skill=skill, rows=rows, seed=seed)
    return replace(together, provenance=step)


def demonstrate(
    skill: float,
    seed: int = 0,
    *,
    task: Task | None = None,
    environment: Environment | None = None,
) -> Demonstrations:
    """One episode by an operator of this skill.

    Raises:
        EluteError: a skill outside 0..1, or the simulation failed.
    """
    where = task or find_task(SAWYER_REACH)
    flaws = draw_flaws(skill, Seeds(seed)("operator"), where.horizon)
    own = make(where) if environment is None else environment
    try:
        states, actions, clean, rewards = _played(own, flaws, seed, where.horizon)
    finally:
        if environment is None:
            own.close()
    demos = Demonstrations(
        observations=states[:-1],
        next_observations=states[1:],
        actions=actions,
        rewards=rewards,
        extras={EXECUTED: where.clip(actions), CLEAN: clean},
        episodes=Episodes.of(
            [len(actions)], truncated=[True], attributes=[{"skill": skill, "seed": seed}]
        ),
        provenance=Provenance(source="scripted operator (synthetic)", task=where.name),
    )
    columns = assign_roles(demos.observation_columns, where.columns)
    return replace(demos, observation_columns=columns)


def _played(
    environment: Environment, flaws: Flaws, seed: int, horizon: int
) -> tuple[Array, Array, Array, Array]:
    start = int(Seeds(seed)("start").integers(2**31))
    observation, _ = environment.reset(seed=start)
    states, actions, clean, rewards = [observation], [], [], []
    detours = list(flaws.detours)
    for t in range(horizon):
        seen = observation[None]
        velocities = np.concatenate([_velocity(seen, flaws, detours, t), Reacher().velocity(seen)])
        action, better = twist_action(np.repeat(seen, 2, axis=0), velocities)
        actions.append(action)
        clean.append(better)
        observation, reward, *_ = environment.step(np.clip(action, -1.0, 1.0))
        states.append(observation)
        rewards.append(reward)
    return np.array(states), np.array(actions), np.array(clean), np.array(rewards, dtype=float)


def _velocity(seen: Array, flaws: Flaws, detours: list[Array], t: int) -> Floats:
    """Of the operator's hand now; way-points that were passed are struck off."""
    grip = seen[:, GRIP_AT]
    while detours and np.linalg.norm(detours[0] - grip) < 0.05:
        detours.pop(0)
    goal = detours[0][None] if detours else handle(seen) + ABOVE + flaws.aim
    velocity = towards(goal, grip, flaws.gain, flaws.speed)
    if t < flaws.delay or flaws.paused[t]:
        velocity = np.zeros((1, 3))
    trembling: Floats = velocity + flaws.tremor[t]
    return trembling


def ten_like(
    levels: Sequence[float] = LEVELS,
    *,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    say: Callable[[str], None] = lambda text: None,
) -> Demonstrations:
    """A demonstration for each return, within the tolerance, in the order given.

    As small as the human files are: no next observations, and single precision.

    Raises:
        EluteError: a return that no operator reaches.
    """
    environment = make(find_task(SAWYER_REACH))
    try:
        found = [
            _matched(level, Seeds(seed)("level", place), tolerance, environment, say)
            for place, level in enumerate(levels)
        ]
    finally:
        environment.close()
    first, *others = (_small(one) for one in found)
    together = sum(others, start=first)
    attributes = [
        {**about, **_label(place, len(levels))}
        for place, about in enumerate(together.episodes.attributes)
    ]
    source = replace(first.provenance, steps=())
    return replace(
        together,
        episodes=replace(together.episodes, attributes=tuple(attributes)),
        provenance=source.then(
            "operate", synthetic=True, levels=list(levels), seed=seed, tolerance=tolerance
        ),
    )


def _small(one: Demonstrations) -> Demonstrations:
    return replace(
        one,
        observations=one.observations.astype(np.float32),
        actions=one.actions.astype(np.float32),
        next_observations=None,
        extras={CLEAN: one.extras[CLEAN].astype(np.float32)},
    )


def _label(place: int, n: int) -> dict[str, Any]:
    """The paper's number and group, if these are its ten."""
    return {"paper": place + 1, "filters": [TEN[place].group]} if n == len(LEVELS) else {}


def _matched(
    level: float,
    rng: np.random.Generator,
    tolerance: float,
    environment: Environment,
    say: Callable[[str], None],
) -> Demonstrations:
    """Try skills that should earn about as much, until one does."""
    for attempt in range(TRIES):
        skill = float(np.clip(0.09 + level / 560 + rng.uniform(-0.12, 0.12), 0.0, 1.0))
        one = demonstrate(round(skill, 3), int(rng.integers(2**31)), environment=environment)
        assert one.rewards is not None
        earned = float(one.rewards.sum())
        if abs(earned - level) <= tolerance:
            say(f"return {earned:.0f} for {level}, skill {skill:.2f}, {attempt + 1} tries")
            return one
    raise EluteError(f"no operator earned {level} in {TRIES} tries", hint="at most about 380")
