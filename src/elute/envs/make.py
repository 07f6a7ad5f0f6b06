"""Tasks as environments: the only place where Gymnasium makes one."""

from importlib.util import find_spec
from typing import Any

import gymnasium
from gymnasium.spaces import Box

from elute.envs.task import GYM, Task
from elute.episodes import Array
from elute.errors import EluteError

Environment = gymnasium.Env[Array, Array]
HORIZON = 1000
"""Where the environment sets no time limit."""


def make(task: Task, *, render: bool = False) -> Environment:
    """The environment of a task without its time limit, which is the rollout's to keep.

    Wrappers (order checks, time limits) are left off: the rollout does their work at less cost.

    Raises:
        EluteError: it cannot be made.
    """
    drawn = {"render_mode": "rgb_array"} if render else {}
    return _made(task.gym_id, dict(task.options) | drawn).unwrapped


def _made(gym_id: str, options: dict[str, Any]) -> Environment:
    try:
        return gymnasium.make(gym_id, **options)
    except (gymnasium.error.Error, ImportError, ModuleNotFoundError) as error:
        missing = find_spec("mujoco") is None and "mujoco" in str(error).lower()
        hint = "pip install 'elute[mujoco]'" if missing else "is the environment registered?"
        raise EluteError(f"{gym_id} cannot be made: {error}", hint=hint) from error


def gym_task(name: str) -> Task:
    """The facts of `gym:ID`, read off the environment itself.

    Raises:
        EluteError: no such environment, or its spaces are no vectors of numbers.
    """
    gym_id = name.removeprefix(GYM)
    environment = _made(gym_id, {})
    seen, acts = environment.observation_space, environment.action_space
    environment.close()
    for kind, space in (("observations", seen), ("actions", acts)):
        if not isinstance(space, Box) or len(space.shape) != 1:
            raise EluteError(
                f"{name}: {kind} are {space}; expected a Box of one dimension",
                hint="wrap the environment so that it is flat",
            )
    assert isinstance(acts, Box)
    limit = None if environment.spec is None else environment.spec.max_episode_steps
    return Task(
        name=name,
        gym_id=gym_id,
        observation_sizes=seen.shape or (),
        n_actions=acts.shape[0],
        action_low=tuple(acts.low.tolist()),
        action_high=tuple(acts.high.tolist()),
        horizon=limit or HORIZON,
    )
