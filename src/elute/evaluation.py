"""Judge a policy by its returns.

    score = evaluate(policy, find_task("hopper"), episodes=10)
    print(f"{score.mean:.0f} ± {score.stderr:.0f}")

The policy takes its mean action, clipped to the bounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from elute.envs.rollout import LANES, Actor, Rollouts
from elute.envs.task import Task
from elute.errors import EluteError
from elute.rng import Seeds
from elute.types import Demonstrations
from elute.uncertainty import stderr, wilson

SEED = 1000
"""Recordings begin with 0, and a policy is not to be judged where it learnt to start."""


@dataclass(frozen=True)
class Evaluation:
    """What happened in each episode; everything else is computed from it."""

    task: Task
    returns: tuple[float, ...]
    lengths: tuple[int, ...]
    successes: tuple[bool | None, ...]
    """None where neither the task nor the environment says what success is."""
    readings: Mapping[str, tuple[bool, ...]] = field(default_factory=dict)
    """Success in other senses, where the environment knows of any."""

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(np.mean(self.returns))

    @property
    def stderr(self) -> float | None:
        """Standard error of the mean over episodes; none of a single one."""
        return stderr(self.returns)

    @property
    def normalised(self) -> float | None:
        """0 for random actions, 1 for the expert."""
        return self.task.normalised(self.mean)

    @property
    def success(self) -> float | None:
        """Share of episodes that succeeded."""
        known = [success for success in self.successes if success is not None]
        return float(np.mean(known)) if known else None

    @property
    def success_interval(self) -> tuple[float, float] | None:
        """Where the true share lies (Wilson, 95 %)."""
        known = [success for success in self.successes if success is not None]
        return wilson(sum(known), len(known)) if known else None


class Sized(Actor, Protocol):
    """A policy that knows its widths."""

    @property
    def n_observations(self) -> int: ...  # noqa: D102
    @property
    def n_actions(self) -> int: ...  # noqa: D102


def evaluate(
    policy: Sized, task: Task, *, episodes: int = 10, seed: int = SEED, workers: int = 1
) -> Evaluation:
    """Play episodes with the mean action; the same whatever the number of workers.

    Raises:
        EluteError: no episodes, a policy of other dimensions, or the environment failed.
    """
    if episodes < 1:
        raise EluteError(f"{episodes} episodes asked for; expected at least 1")
    check_fits(policy, task)
    with Rollouts(task, Seeds(seed), lanes=min(episodes, LANES), workers=workers) as rollouts:
        played = rollouts.episodes(policy, episodes)
    return Evaluation(
        task,
        returns=tuple(stretch.score for stretch in played),
        lengths=tuple(map(len, played)),
        successes=tuple(
            task.succeeded(s.score, len(s)) if s.success is None else s.success for s in played
        ),
        readings={
            name: tuple(bool(stretch.readings[name]) for stretch in played)
            for name in played[0].readings
        },
    )


def recorded(task: Task, demos: Demonstrations) -> Evaluation:
    """What the demonstrator earned, in all its episodes.

    Raises:
        EluteError: the demonstrations hold no rewards.
    """
    returns = demos.returns()
    if returns is None:
        raise EluteError("the demonstrations hold no rewards, so they have no returns")
    lengths = tuple(int(n) for n in demos.episodes.lengths)
    scores = tuple(float(score) for score in returns)
    won = tuple(task.succeeded(*played) for played in zip(scores, lengths, strict=True))
    return Evaluation(task, scores, lengths, won)


def check_fits(policy: Sized, task: Task) -> None:
    """Refuse a policy of another task.

    Raises:
        EluteError: it reads or writes other numbers of columns.
    """
    has = policy.n_observations, policy.n_actions
    wants = task.n_observations, task.n_actions
    if has != wants:
        raise EluteError(
            f"the policy has {has[0]} observation and {has[1]} action columns; "
            f"{task.name} has {wants[0]} and {wants[1]}",
            hint="is it a policy of another task?",
        )
