"""Record demonstrations: a policy plays whole episodes, with noise on its actions if asked for.

demos = record(policy, find_task("halfcheetah"), noise=ActionNoise("gaussian", 0.6), rows=1000)

actions            as the policy and the noise made them
executed_actions   clipped to the bounds: what the simulator was given
clean_actions      the policy's mean action in the same state
"""

from dataclasses import replace

import numpy as np

from elute.columns import assign_roles
from elute.demos.corrupt import CLEAN
from elute.envs.rollout import LANES, Rollouts, Stretch
from elute.envs.task import Task
from elute.episodes import Episodes, Provenance
from elute.errors import EluteError
from elute.evaluation import Sized, check_fits
from elute.noise import ActionNoise
from elute.rng import Seeds
from elute.types import Demonstrations

EXECUTED = "executed_actions"


def record(
    policy: Sized,
    task: Task,
    *,
    noise: ActionNoise | None = None,
    rows: int = 1000,
    seed: int = 0,
    workers: int = 1,
) -> Demonstrations:
    """Whole episodes, in order, until there are at least `rows` rows.

    Raises:
        EluteError: no rows asked for, a policy of other dimensions, or the environment failed.
    """
    if rows < 1:
        raise EluteError(f"{rows} rows asked for; expected at least 1")
    check_fits(policy, task)
    noise = ActionNoise() if noise is None else noise
    kept: list[Stretch] = []
    lanes = min(LANES, -(-rows // task.horizon))
    with Rollouts(task, Seeds(seed), noise=noise, lanes=lanes, workers=workers) as rollouts:
        while (missing := rows - sum(map(len, kept))) > 0:
            length = np.mean([len(stretch) for stretch in kept]) if kept else task.horizon
            # what is too many is dropped below, so this guess decides nothing
            kept += rollouts.episodes(policy, len(kept) + max(1, round(missing / length)))
    demos = demonstrations(_enough(kept, rows), task)
    who = dict(getattr(policy, "about", {}))
    step = demos.provenance.then("collect", policy=who, noise=str(noise), rows=rows, seed=seed)
    return replace(demos, provenance=step)


def _enough(played: list[Stretch], rows: int) -> list[Stretch]:
    """The first episodes that make up the rows."""
    total = np.cumsum([len(stretch) for stretch in played])
    return played[: int(np.searchsorted(total, rows)) + 1]


def demonstrations(played: list[Stretch], task: Task) -> Demonstrations:
    """Episodes as demonstrations."""
    actions = np.concatenate([stretch.actions for stretch in played])
    demos = Demonstrations(
        observations=np.concatenate([stretch.observations[:-1] for stretch in played]),
        next_observations=np.concatenate([stretch.observations[1:] for stretch in played]),
        actions=actions,
        rewards=np.concatenate([stretch.rewards for stretch in played]),
        episodes=Episodes.of(
            [len(stretch) for stretch in played],
            [stretch.terminated for stretch in played],
            [stretch.truncated for stretch in played],
        ),
        extras={
            EXECUTED: task.clip(actions),
            CLEAN: np.concatenate([stretch.means for stretch in played]),
        },
        provenance=Provenance(source=task.gym_id, task=task.name),
    )
    columns = assign_roles(demos.observation_columns, task.columns)
    return replace(demos, observation_columns=columns)
