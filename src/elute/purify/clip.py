"""Purified actions within bounds, on request, for any purifier.

    bounds, said_by = action_bounds(demos)
    transform = ClippedTransform(purifier.fit(demos, seeds), bounds)

The simulator executes the clipped action anyway; whether data should hold it is the user's choice,
so nothing is clipped by default. Switches are left alone.
"""

from dataclasses import dataclass, replace

import numpy as np

from elute.demos.audit.audit import own_bounds
from elute.demos.audit.summary import Bounds
from elute.envs.task import TASKS
from elute.purify.purifier import Transform, purifiable
from elute.types import Demonstrations, DemoSet


@dataclass(frozen=True, eq=False)
class ClippedTransform:
    """A fitted purifier whose actions are clipped."""

    transform: Transform
    bounds: Bounds

    def __call__(
        self, rows: Demonstrations, *, first_row: int = 0, seed: int = 0
    ) -> Demonstrations:
        """Purify, then clip."""
        purified = self.transform(rows, first_row=first_row, seed=seed)
        clipped = np.clip(purified.actions, self.bounds.low, self.bounds.high)
        actions = np.where(purifiable(rows.action_columns), clipped, purified.actions)
        low, high = (side.tolist() for side in (self.bounds.low, self.bounds.high))
        return replace(
            purified,
            actions=actions.astype(purified.actions.dtype),
            provenance=purified.provenance.then("clip", low=low, high=high),
        )


def action_bounds(demos: DemoSet) -> tuple[Bounds, str]:
    """The bounds of the actions and who says so: the file, its task, or else what was recorded."""
    actions = demos.all.actions
    recorded = Bounds(actions.min(axis=0), actions.max(axis=0))
    return stated_bounds(demos) or (recorded, "the range of the recorded actions")


def stated_bounds(demos: DemoSet) -> tuple[Bounds, str] | None:
    """The bounds of the actions, if a file or its task states them, and which."""
    for rows in reversed(demos.given):
        stated = own_bounds(rows)
        if stated is not None:
            return stated, rows.provenance.source
        task = TASKS.get(rows.provenance.task)
        if task is not None:
            return Bounds(np.array(task.action_low), np.array(task.action_high)), task.name
    return None
