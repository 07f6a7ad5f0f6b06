"""What a purifier is: F : D_s -> cleaner D_s, row by row.

    transform = DiffusionPurifier(reverse_step=100).fit(demos, Seeds(0))
    purified = transform(demos.supplementary, seed=0)

A purifier keeps the number and order of rows, episodes, types and every column that it does not
purify. Fitted and not fitted are two types, so that "not fitted yet" cannot be said.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal, Protocol

import numpy as np

from elute.columns import Column
from elute.episodes import Array
from elute.errors import EluteError
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet

Target = Literal["joint", "action", "inpaint"]
"""joint: state and action (the paper). action: keep the state, take the action of the purified
pair. inpaint: the state is held at its diffused original all the way down; only the action is
purified."""

Progress = Callable[[int, int], None]


class Transform(Protocol):
    """A fitted purifier."""

    def __call__(
        self, rows: Demonstrations, *, first_row: int = 0, seed: int = 0
    ) -> Demonstrations:
        """Purify rows; `first_row` is the number of the first one in the whole file."""


class Purifier(Protocol):
    """Hyper-parameters of a way to purify."""

    def fit(
        self, demos: DemoSet, seeds: Seeds, *, progress: Progress = lambda done, total: None
    ) -> Transform:
        """Learn what is normal from D_o (and units from both sets)."""


def purifiable(columns: tuple[Column, ...]) -> Array:
    """Which columns may be changed: not switches, not constants."""
    return np.array([column.role in ("continuous", "quaternion") for column in columns])


def put_back(
    rows: Demonstrations, pairs: Array, *, target: Target, operation: str, **details: object
) -> Demonstrations:
    """The rows with purified pairs, as far as target and roles of columns allow.

    Arrays of whole numbers stay as they are, like discrete columns; so do next observations, unless
    observations were purified too.
    """
    original = rows.pairs
    split = rows.observations.shape[1]
    may_change = purifiable((*rows.observation_columns, *rows.action_columns))
    may_change[:split] &= target == "joint" and rows.observations.dtype.kind == "f"
    may_change[split:] &= rows.actions.dtype.kind == "f"
    changed = np.where(may_change, pairs, original)
    for start, stop in quaternions((*rows.observation_columns, *rows.action_columns)):
        if may_change[start:stop].all():
            changed[:, start:stop] = _unit(changed[:, start:stop], original[:, start:stop])
    result = rows.with_pairs(changed, operation, target=target, **details)
    if may_change[:split].any():
        return result
    return replace(result, next_observations=rows.next_observations)


def quaternions(columns: Sequence[Column]) -> list[tuple[int, int]]:
    """Where whole quaternions stand: runs of such columns of one array, four by four."""
    found, start = [], 0
    for (_, role), run in groupby(columns, key=lambda c: (c.key, c.role)):
        size = len(list(run))
        if role == "quaternion" and size % 4 == 0:
            found += [(i, i + 4) for i in range(start, start + size, 4)]
        start += size
    return found


def _unit(changed: Array, original: Array) -> Array:
    """Those that changed, renormalised."""
    length = np.linalg.norm(changed, axis=1, keepdims=True)
    usable = (changed != original).any(axis=1, keepdims=True) & (length > 1e-9)
    unit: Array = np.where(usable, changed / np.maximum(length, 1e-9), original)
    return unit


def check_widths(rows: Demonstrations, n_observations: int, n_columns: int) -> None:
    """Refuse rows of another task.

    Raises:
        EluteError: there are other numbers of observation or action columns than in the fit.
    """
    given = (rows.observations.shape[1], rows.actions.shape[1])
    known = (n_observations, n_columns - n_observations)
    if given != known:
        raise EluteError(
            f"{rows.provenance.source}: {given[0]} observation and {given[1]} action columns; "
            f"the model was fitted on {known[0]} and {known[1]}",
            hint="fit a model on data of this task",
        )
