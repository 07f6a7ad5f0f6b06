"""One-step replay: put the simulator into a recorded state, apply a recorded action, compare.

This decides beyond doubt whether states and actions are aligned, for tasks whose full state can be
read off the observation. The action is clipped to its bounds, as every recorder did.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec

import numpy as np

from elute.envs.make import Environment, make
from elute.envs.task import STARTS, Task
from elute.errors import EluteError
from elute.types import Demonstrations

MOST_ROWS = 200


def can_replay() -> bool:
    """Whether the simulator is installed."""
    return find_spec("mujoco") is not None


def one_step_errors(
    task: Task, runs: Sequence[Demonstrations], shifts: range
) -> Mapping[int, float]:
    """Median error of one simulated step from row t with the action of row t + k, for each k."""
    if not can_replay():
        raise EluteError("no simulator is installed", hint="pip install 'elute[mujoco]'")
    environment = make(task)
    environment.reset(seed=0)
    try:
        errors = [
            [_error(environment, task, run, row, row + k) for k in shifts]
            for run, row in _rows(runs, shifts)
        ]
    finally:
        environment.close()
    if not errors:
        return {}
    return dict(zip(shifts, np.median(errors, axis=0).tolist(), strict=True))


def _rows(runs: Sequence[Demonstrations], shifts: range) -> list[tuple[Demonstrations, int]]:
    """Rows spread over the runs, far enough from their ends, whose neighbourhood is finite."""
    reach = max(abs(k) for k in shifts)
    candidates = [(run, row) for run in runs for row in range(reach, len(run) - reach - 1)]
    stride = max(1, len(candidates) // MOST_ROWS)
    return [
        (run, row)
        for run, row in candidates[::stride][:MOST_ROWS]
        if np.isfinite(run.observations[row : row + 2]).all()
        and np.isfinite(run.actions[row - reach : row + reach + 1]).all()
    ]


def _error(
    environment: Environment,
    task: Task,
    run: Demonstrations,
    row: int,
    action_row: int,
) -> float:
    action = task.clip(run.actions[action_row])
    if STARTS in task.options:
        environment.reset(options={"observation": run.observations[row]})
        after = environment.step(action)[0]
        return float(np.linalg.norm(after - run.observations[row + 1]))
    simulator = environment.unwrapped
    data = simulator.data  # type: ignore[attr-defined] # every MuJoCo environment has it
    hidden, n_positions = task.hidden_positions, len(data.qpos)
    size = n_positions - hidden + len(data.qvel)
    state = run.observations[row][:size]
    positions = np.concatenate([np.zeros(hidden), state[: n_positions - hidden]])
    simulator.set_state(positions, state[n_positions - hidden :])  # type: ignore[attr-defined]
    simulator.do_simulation(action, simulator.frame_skip)  # type: ignore[attr-defined]
    reached = np.concatenate([data.qpos[hidden:], data.qvel])
    return float(np.linalg.norm(reached - run.observations[row + 1][:size]))
