"""Tasks by name: what must be known about one to judge and to replay its demonstrations.

Only facts, so that no simulator is needed to read them.
"""

from dataclasses import dataclass
from difflib import get_close_matches

from elute.errors import EluteError


@dataclass(frozen=True)
class Task:
    """A control task of Gymnasium."""

    name: str
    gym_id: str
    observation_sizes: tuple[int, ...]
    """How many observation columns its data may have; the first size is today's."""
    n_actions: int
    action_low: float
    action_high: float
    horizon: int
    hidden_positions: int
    """How many leading joint positions the observation leaves out (where the robot is)."""
    columns: str = ""
    """Roles of columns that are not plain numbers, as `--columns` takes them."""


TASKS = {
    task.name: task
    for task in (
        Task("ant", "Ant-v5", (27, 105, 111), 8, -1.0, 1.0, 1000, 2, "observation[1:5]=quaternion"),
        Task("halfcheetah", "HalfCheetah-v5", (17,), 6, -1.0, 1.0, 1000, 1),
        Task("hopper", "Hopper-v5", (11,), 3, -1.0, 1.0, 1000, 1),
        Task("walker2d", "Walker2d-v5", (17,), 6, -1.0, 1.0, 1000, 1),
    )
}


def find_task(name: str) -> Task:
    """The task of this name.

    Raises:
        EluteError: there is none.
    """
    if name in TASKS:
        return TASKS[name]
    near = get_close_matches(name.lower(), TASKS, n=1)
    hint = f"did you mean {near[0]}?" if near else "tasks are " + ", ".join(TASKS)
    raise EluteError(f"{name!r} is no task", hint=hint)


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
