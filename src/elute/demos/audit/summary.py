"""One streaming pass over a file: what the checks need of every row, and nothing more.

Per row only a few numbers are kept (a hash, a speed, a jerk, a jump, a reward), so a file of any
size can be audited a chunk at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elute.demos.audit.sample import Sample, spread
from elute.episodes import Array
from elute.types import Demonstrations, DemoSource, chunks

_MIX = np.random.default_rng(0x51).integers(1, 2**63, size=4096, dtype=np.uint64) * 2 + 1


@dataclass(frozen=True)
class Bounds:
    """What the controller can do: lowest and highest value of each action column."""

    low: Array
    high: Array


@dataclass(eq=False)
class Summary:
    """What one pass over a source found."""

    low: Array
    """Smallest finite value of each observation and action column."""
    high: Array
    hashes: NDArray[np.uint64]
    """Of each row; equal rows have equal hashes."""
    column_hashes: NDArray[np.uint64]
    non_finite: NDArray[np.int64]
    """Numbers of the rows with a value that is not finite."""
    non_finite_by_column: NDArray[np.int64]
    speed: NDArray[np.float32]
    """Size of the change of state since the row before, in standard deviations per column."""
    jerk: NDArray[np.float32]
    """Size of the third difference of the state, likewise."""
    jump: NDArray[np.float32]
    """Largest change of an action column since the row before, in typical changes."""
    rewards: NDArray[np.float64] | None
    last_states: Array
    """The last observation of each episode."""
    outside: NDArray[np.int64]
    """Rows per action column that lie outside the bounds."""
    at_bounds: NDArray[np.int64]
    """Rows per action column that lie on or outside them."""
    excess: float
    """How far outside the bounds the worst action lies."""
    broken_steps: NDArray[np.int64]
    """Rows whose next observation is not the observation of the following row."""


def summarise(
    source: DemoSource,
    sample: Sample,
    bounds: Bounds | None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Summary:
    """Pass over every row once."""
    n, k = source.episodes.n_rows, len(source.episodes)
    state_scale, step_scale = _scales(sample)
    first = sample.runs[0]
    width, n_actions = first.pairs.shape[1], first.actions.shape[1]
    step_scale[[column.role == "discrete" for column in source.action_columns]] = np.inf
    found = Summary(
        low=np.full(width, np.inf),
        high=np.full(width, -np.inf),
        hashes=np.empty(n, dtype=np.uint64),
        column_hashes=np.zeros(width, dtype=np.uint64),
        non_finite=np.empty(0, dtype=np.int64),
        non_finite_by_column=np.zeros(width, dtype=np.int64),
        speed=np.full(n, np.nan, dtype=np.float32),
        jerk=np.full(n, np.nan, dtype=np.float32),
        jump=np.full(n, np.nan, dtype=np.float32),
        rewards=None if first.rewards is None else np.empty(n),
        last_states=np.empty((k, width - n_actions)),
        outside=np.zeros(n_actions, dtype=np.int64),
        at_bounds=np.zeros(n_actions, dtype=np.int64),
        excess=0.0,
        broken_steps=np.empty(0, dtype=np.int64),
    )
    for start, rows in chunks(source):
        _add_rows(found, start, rows)
        _add_motion(found, start, rows, state_scale, step_scale)
        if bounds is not None:
            _add_bounds(found, rows.actions, bounds)
        first_episode = source.episodes.of_row(start)
        ends = rows.episodes.stops - 1
        found.last_states[first_episode : first_episode + len(ends)] = rows.observations[ends]
        progress(start + len(rows), n)
    return found


def _scales(sample: Sample) -> tuple[Array, Array]:
    """What a state and a change of the action are measured in; infinite where they say nothing.

    An action that mostly stays as it is (a gripper, a command held for some steps) has no typical
    change, so nothing can be a jump.
    """
    states, steps = spread(sample.observations), sample.action_steps
    typical = np.median(steps, axis=0) if len(steps) else np.zeros(steps.shape[1])
    return np.where(states > 0, states, np.inf), np.where(typical > 0, typical, np.inf)


def _add_rows(found: Summary, start: int, rows: Demonstrations) -> None:
    pairs = rows.pairs.astype(np.float64, copy=False)
    finite = np.isfinite(pairs)
    after = rows.next_observations
    after_finite = np.array(True) if after is None else np.isfinite(after).all(axis=1)
    if not finite.all() or not after_finite.all():
        bad = ~(finite.all(axis=1) & after_finite)
        found.non_finite = np.append(found.non_finite, start + np.flatnonzero(bad))
        found.non_finite_by_column += (~finite).sum(axis=0)
        kept = pairs[~bad]
    else:
        kept = pairs
    if len(kept):
        np.minimum(found.low, kept.min(axis=0), out=found.low)
        np.maximum(found.high, kept.max(axis=0), out=found.high)
    stop = start + len(rows)
    found.hashes[start:stop], columns = _hashes(pairs, start)
    found.column_hashes += columns
    if rows.next_observations is not None:
        after, here = rows.next_observations[:-1], rows.observations[1:]
        differs = ((after != here) & ~(np.isnan(after) & np.isnan(here))).any(axis=1)
        differs[rows.episodes.stops[:-1] - 1] = False  # the last step of an episode leads elsewhere
        found.broken_steps = np.append(found.broken_steps, start + np.flatnonzero(differs))
    if found.rewards is not None and rows.rewards is not None:
        found.rewards[start:stop] = rows.rewards


def _hashes(pairs: Array, start: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    bits = np.ascontiguousarray(pairs).view(np.uint64)
    mixed = bits ^ (bits >> np.uint64(32))  # round numbers differ only in their high bits
    weights = _MIX[np.arange(pairs.shape[1]) % len(_MIX)]
    by_row = np.einsum("ij,j->i", mixed, weights)
    row_weights = _MIX[(start + np.arange(len(pairs))) % len(_MIX)]
    return by_row, np.einsum("ij,i->j", mixed, row_weights)


def _add_motion(
    found: Summary, start: int, rows: Demonstrations, state_scale: Array, step_scale: Array
) -> None:
    stop = start + len(rows)
    width = np.sqrt(np.float32(max(1, np.isfinite(state_scale).sum())))
    with np.errstate(all="ignore"):  # what is not finite is reported elsewhere
        states = (rows.observations / state_scale).astype(np.float32)
        first = np.diff(states, axis=0)
        third = np.diff(first, n=2, axis=0)
        found.speed[start + 1 : stop] = np.sqrt(np.einsum("ij,ij->i", first, first)) / width
        found.jerk[start + 3 : stop] = np.sqrt(np.einsum("ij,ij->i", third, third)) / width
        steps = np.abs(np.diff(rows.actions.astype(np.float64), axis=0)) / step_scale
        found.jump[start + 1 : stop] = steps.max(axis=1)
    begins = start + rows.episodes.starts
    found.speed[begins] = found.jump[begins] = np.nan  # differences across episodes mean nothing
    for offset in range(3):
        inside = begins + offset
        found.jerk[inside[inside < stop]] = np.nan


def _add_bounds(found: Summary, actions: Array, bounds: Bounds) -> None:
    margin = 1e-6 * np.where(np.isfinite(bounds.high - bounds.low), bounds.high - bounds.low, 1.0)
    with np.errstate(invalid="ignore"):
        above, below = actions - bounds.high, bounds.low - actions
        found.outside += ((above > margin) | (below > margin)).sum(axis=0)
        found.at_bounds += ((above > -margin) | (below > -margin)).sum(axis=0)
        excess = np.maximum(above, below)
    worst = np.max(excess, initial=0.0, where=np.isfinite(excess))
    found.excess = max(found.excess, float(worst))
