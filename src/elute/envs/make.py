"""Tasks as environments: the only place where Gymnasium makes one."""

from importlib.util import find_spec
from typing import Any

import gymnasium
from gymnasium.spaces import Box
from gymnasium.wrappers import OrderEnforcing, TimeLimit

from elute.envs.task import GYM, Task
from elute.episodes import Array
from elute.errors import EluteError

Environment = gymnasium.Env[Array, Array]
HORIZON = 1000
"""Time limit of an environment that has none."""


def make(task: Task, *, render: bool = False) -> Environment:
    """The environment of a task without its time limit, which is the rollout's to keep.

    Gymnasium's own checks are left off too: the rollout does their work at less cost. Any other
    wrapper is part of the task.

    Raises:
        EluteError: it cannot be made.
    """
    drawn = {"render_mode": "rgb_array"} if render else {}
    environment = _made(task.gym_id, dict(task.options) | drawn)
    while isinstance(environment, TimeLimit | OrderEnforcing):
        environment = environment.env
    return environment


def _made(gym_id: str, options: dict[str, Any]) -> Environment:
    try:
        return gymnasium.make(gym_id, disable_env_checker=True, **options)
    except EluteError:
        raise
    except gymnasium.error.UnregisteredEnv as error:
        raise EluteError(
            f"{gym_id} cannot be made: {error}",
            hint="is it registered? gym:MODULE:ID imports",
        ) from error
    except Exception as error:  # whatever an environment's constructor raises
        missing = find_spec("mujoco") is None and "mujoco" in str(error).lower()
        hint = "pip install 'elute[mujoco]'" if missing else ""
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
