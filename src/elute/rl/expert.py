"""Experts: TRPO on the task's own reward, with checkpoints along the way.

repeat:  5000 steps with sampled actions -> one update
every 100 000 steps:  mean return of the mean action; keep the best policy; put the state down
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from elute.envs.rollout import Stretch
from elute.envs.task import Task
from elute.episodes import Array
from elute.policy import StoredPolicy, load_policy, save_policy
from elute.rl.agent import Agent
from elute.rl.run import CURVE, STATE, Loop, Run, run_rollouts

__all__ = ["CURVE", "STATE", "ExpertTraining", "train_expert"]
BEST = "best.safetensors"
Log = Callable[[dict[str, float]], None]


@dataclass(frozen=True, kw_only=True)
class ExpertTraining(Loop):
    """How an expert is made; defaults are the paper's."""

    marks: tuple[int, ...] = (1_000_000, 1_500_000, 3_000_000)
    """Steps at which a policy is kept."""


def train_expert(
    task: Task,
    settings: ExpertTraining,
    folder: Path,
    *,
    seed: int = 0,
    workers: int = 1,
    log: Log = lambda row: None,
) -> StoredPolicy:
    """Train, or go on training, in a folder; the best policy by mean return of the mean action.

    Writes `1M.safetensors` and so on, `best.safetensors`, `curve.json`, and `state.safetensors` to
    go on from.

    Raises:
        EluteError: the folder holds a run of other settings, or cannot be written.
    """
    fixed = asdict(settings)
    del fixed["env_steps"]  # a run may be prolonged
    run = Run(
        task,
        settings,
        folder,
        seed=seed,
        rewards=TaskRewards(),
        identity={"task": task.name, "seed": seed, "settings": fixed},
        about={"method": "trpo"},
        notes={"best_score": -np.inf},
    )

    def keep_marks(run: Run) -> None:
        for mark in settings.marks:
            if run.env_steps - settings.batch < mark <= run.env_steps:
                save_policy(run.policy(), folder / f"{mark / 1e6:g}M.safetensors")

    with run_rollouts(task, settings, seed, workers) as (training, checking):
        while not run.done:
            run.block(training, keep_marks)
            score = run.check(checking)
            if score > run.notes["best_score"]:
                run.notes["best_score"] = score
                save_policy(run.policy(), folder / BEST)
            run.put_down()
            log(run.curve[-1])
    return load_policy(folder / BEST)


class TaskRewards:
    """The task's own."""

    def earned(
        self, stretches: Sequence[Stretch], agent: Agent, run: Run
    ) -> tuple[list[Array], Mapping[str, float]]:
        """As the environment gave them."""
        del agent, run
        return [stretch.rewards for stretch in stretches], {}

    def state(self) -> dict[str, Tensor]:
        """None: it does not learn."""
        return {}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Nothing to restore."""
