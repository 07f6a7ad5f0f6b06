"""Two controls that any purifier must beat: throw the noisy action away and make up a new one.

    nearest:  a_hat = a_j,  j = argmin_j || s_j - s || over D_o, in units of D_o and D_s
    relabel:  a_hat = pi(s), pi behaviour-cloned from D_o

Neither looks at the action it replaces. A purifier that is no better has learnt
nothing from D_s but its states.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial import cKDTree

from elute.episodes import Array
from elute.learners.bc import BC
from elute.purify.normaliser import Normaliser
from elute.purify.purifier import Progress, check_widths, put_back
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet, check_finite

BATCH = 512
"""Rows that go through a policy at once, aligned to row numbers, so that chunks do not matter."""


@dataclass(frozen=True, kw_only=True)
class NearestPurifier:
    """The action of the nearest optimal state."""

    def fit(
        self, demos: DemoSet, seeds: Seeds, *, progress: Progress = lambda done, total: None
    ) -> "ControlTransform":
        """Remember D_o."""
        check_finite(demos.optimal, "D_o")
        check_finite(demos.supplementary, "D_s")
        del seeds, progress
        optimal, others = demos.optimal.observations, demos.supplementary.observations
        columns = demos.optimal.observation_columns
        normaliser = Normaliser.fit(np.concatenate([optimal, others]), columns)
        actions = demos.optimal.actions.astype(np.float64)
        act = _Nearest(normaliser, cKDTree(_states(normaliser, optimal)), actions)
        return ControlTransform("nearest", act, optimal.shape[1], actions.shape[1])


@dataclass(frozen=True, eq=False)
class _Nearest:
    """A function that can be sent to another process."""

    normaliser: Normaliser
    tree: cKDTree
    actions: Array

    def __call__(self, observations: Array) -> Array:
        _, nearest = self.tree.query(_states(self.normaliser, observations))
        found: Array = self.actions[nearest]
        return found


@dataclass(frozen=True, kw_only=True)
class RelabelPurifier:
    """The action of a policy cloned from D_o."""

    bc: BC = field(default_factory=BC)

    def fit(
        self, demos: DemoSet, seeds: Seeds, *, progress: Progress = lambda done, total: None
    ) -> "ControlTransform":
        """Clone D_o."""
        check_finite(demos.optimal, "D_o")
        check_finite(demos.supplementary, "D_s")
        del progress
        policy = self.bc.clone(demos.optimal, seeds("relabel"))
        widths = demos.optimal.observations.shape[1], demos.optimal.actions.shape[1]
        return ControlTransform("relabel", policy.act, *widths)


@dataclass(frozen=True, eq=False)
class ControlTransform:
    """a <- act(s)."""

    method: str
    act: Callable[[Array], Array]
    n_observations: int
    n_actions: int

    def __call__(
        self, rows: Demonstrations, *, first_row: int = 0, seed: int = 0
    ) -> Demonstrations:
        """Other actions for the same states."""
        del seed
        check_widths(rows, self.n_observations, self.n_observations + self.n_actions)
        check_finite(rows, "D_s")
        pairs = rows.pairs.astype(np.float64)
        pairs[:, self.n_observations :] = _batches(self.act, rows.observations, first_row)
        return put_back(rows, pairs, target="action", operation="purify", method=self.method)


def _states(normaliser: Normaliser, observations: Array) -> Array:
    states: Array = normaliser.apply(observations.astype(np.float64))[:, normaliser.varies]
    return states


def _batches(act: Callable[[Array], Array], observations: Array, first_row: int) -> Array:
    """`act` on whole batches, padded with zeros before the first row and after the last."""
    before = first_row % BATCH
    whole = -(-(before + len(observations)) // BATCH) * BATCH
    padded = np.zeros((whole, observations.shape[1]))
    padded[before : before + len(observations)] = observations
    actions = np.concatenate([act(padded[i : i + BATCH]) for i in range(0, whole, BATCH)])
    return actions[before : before + len(observations)]
