"""Tasks by name: what must be known about one to judge, replay and roll out.

Only facts, so that no simulator is needed to read them; `elute.envs.make` makes the environment.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from elute.episodes import Array
from elute.errors import EluteError

GYM = "gym:"
"""Before the id of any other Gymnasium environment."""
STARTS = "starts"
"""Name of the option with observations to begin in, where a task has it."""
SAWYER_REACH = "sawyer-reach"
"""The robot's task, which has demonstrations and tables of its own."""


@dataclass(frozen=True)
class Task:
    """A control task of Gymnasium."""

    name: str
    gym_id: str
    observation_sizes: tuple[int, ...]
    """How many observation columns its data may have; the first size is today's."""
    n_actions: int
    action_low: tuple[float, ...] = (-1.0,)
    """One for all actions, or one for each."""
    action_high: tuple[float, ...] = (1.0,)
    horizon: int = 1000
    hidden_positions: int = 0
    """How many leading joint positions the observation leaves out (where the robot is)."""
    columns: str = ""
    """Roles of columns that are not plain numbers, as `--columns` takes them."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the environment is made with."""
    initial_std: float = 1.0
    """Of the actions of a policy that begins to learn. Where moving costs more than living earns, a
    large one teaches to die early."""
    random_score: float | None = None
    """Mean return of actions drawn uniformly (`benchmarks/experts.py`)."""
    expert_score: float | None = None
    """Mean return of the shipped expert."""

    @property
    def n_observations(self) -> int:
        """How many columns an observation of the environment has."""
        return self.observation_sizes[0]

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lowest and highest value of each action."""
        low, high = (
            np.resize(side, self.n_actions) for side in (self.action_low, self.action_high)
        )
        return low, high

    def clip(self, actions: Array) -> Array:
        """Actions as the simulator is given them."""
        clipped: Array = np.clip(actions, *self.bounds)
        return clipped

    def normalised(self, score: float) -> float | None:
        """0 for random actions, 1 for the expert."""
        if self.random_score is None or self.expert_score is None:
            return None
        return (score - self.random_score) / (self.expert_score - self.random_score)

    def succeeded(self, score: float, length: int) -> bool | None:
        """Whether an episode did: it lasted, and earned half of what the expert does."""
        normalised = self.normalised(score)
        return None if normalised is None else length >= self.horizon and normalised >= 0.5


TASKS = {
    task.name: task
    for task in (
        Task(
            "ant",
            "Ant-v5",
            (27, 105, 111),
            8,
            hidden_positions=2,
            columns="observation[1:5]=quaternion",
            options={"include_cfrc_ext_in_observation": False},
            initial_std=0.35,
            random_score=-53.4,
            expert_score=5126.6,
        ),
        Task(
            "halfcheetah",
            "HalfCheetah-v5",
            (17,),
            6,
            hidden_positions=1,
            initial_std=0.6,
            random_score=-285.5,
            expert_score=5868.6,
        ),
        Task(
            "hopper",
            "Hopper-v5",
            (11,),
            3,
            hidden_positions=1,
            random_score=18.5,
            expert_score=3320.7,
        ),
        Task(
            "walker2d",
            "Walker2d-v5",
            (17,),
            6,
            hidden_positions=1,
            random_score=1.3,
            expert_score=4451.7,
        ),
        Task(
            SAWYER_REACH,
            "elute.envs.sawyer:SawyerReach-v0",
            (44,),
            7,
            horizon=500,
            columns="observation[21:23]=constant,observation[26:30]=quaternion,"
            "observation[33:37]=quaternion,observation[40:44]=quaternion",
            options={STARTS: ()},
        ),
    )
}
BACKENDS = {
    f"{SAWYER_REACH}@robosuite": replace(
        TASKS[SAWYER_REACH],
        name=f"{SAWYER_REACH}@robosuite",
        gym_id="elute.envs.sawyer_robosuite:SawyerReachRobosuite-v0",
    )
}
"""Tasks on another simulator, which is an extra."""


def find_task(name: str) -> Task:
    """The task of this name.

    Raises:
        EluteError: there is none.
    """
    if name in TASKS or name in BACKENDS:
        return TASKS[name] if name in TASKS else BACKENDS[name]
    if name.startswith(GYM):
        from elute.envs.make import gym_task  # noqa: PLC0415 (facts alone need no simulator)

        return gym_task(name)
    near = get_close_matches(name.lower(), [*TASKS, *BACKENDS], n=1)
    hint = f"did you mean {near[0]}?" if near else f"tasks are {', '.join(TASKS)} and {GYM}ID"
    raise EluteError(f"{name!r} is no task", hint=hint)


def without_backend(name: str) -> str:
    """The task alone: its policies and data are the same on every simulator."""
    return name.partition("@")[0] if name in BACKENDS else name


def starting_from(task: Task, observations: Array) -> Task:
    """The same task with episodes that begin in these states, of which one is drawn each time.

    Raises:
        EluteError: the task cannot, or the observations are of another or not finite.
    """
    if STARTS not in task.options:
        raise EluteError(f"{task.name} cannot begin in given states", hint=f"{SAWYER_REACH} can")
    if observations.ndim != 2 or observations.shape[1] != task.n_observations:
        raise EluteError(
            f"starts of shape {observations.shape}; {task.name} has {task.n_observations} "
            "observation columns"
        )
    spoilt = np.flatnonzero(~np.isfinite(observations).all(axis=1))
    if len(spoilt):
        raise EluteError(
            f"episode {spoilt[0]} begins with values that are not finite",
            hint="elute demos audit FILE --fix OUT drops such rows",
        )
    starts = tuple(map(tuple, observations.astype(float).tolist()))
    return replace(task, options={**task.options, STARTS: starts})


def check_columns(task: Task, n_observations: int, n_actions: int, file: str) -> None:
    """Refuse data that is not of the task.

    Raises:
        EluteError: it has other numbers of columns.
    """
    if n_observations not in task.observation_sizes or n_actions != task.n_actions:
        sizes = " or ".join(map(str, task.observation_sizes))
        raise EluteError(
            f"{file} has {n_observations} observation and {n_actions} action columns; "
            f"{task.name} has {sizes} and {task.n_actions}",
            hint="is it data of another task?",
        )
