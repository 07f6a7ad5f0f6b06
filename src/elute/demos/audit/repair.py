"""The safe repairs that findings name. Each returns a new source and is recorded.

What a repair of a file keeps is a view of it, read when it is written: files may be larger than
memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from elute.demos.audit.finding import Finding
from elute.demos.audit.summary import Bounds
from elute.demos.view import S, taken
from elute.episodes import Array, Episodes, Piece, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource, chunks


def repaired(source: S, findings: Sequence[Finding]) -> S:
    """Apply what the findings of this file name; clipping is asked for by itself."""
    for finding in findings:
        if finding.repair == "realign" and finding.shift is not None:
            source = realign(source, finding.shift)
    for finding in findings:
        if finding.repair == "drop-non-finite":
            source = drop_non_finite(source)
    return source


def realign(source: S, shift: int) -> S:
    """Pair each state with the action of the row `shift` further on, and what belongs to it.

    An episode loses `shift` rows: states at one end, actions at the other. One that is too short
    is left out.
    """
    lost = abs(shift)
    starts, lengths = source.episodes.starts.tolist(), source.episodes.lengths.tolist()
    pieces = [
        Piece(start + max(0, -shift), length - lost, shift)
        for start, length in zip(starts, lengths, strict=True)
        if length > lost
    ]
    if not pieces:
        raise EluteError(f"no episode is longer than the shift of {shift} rows: nothing is left")
    dropped = [i for i, length in enumerate(lengths) if length <= lost]
    step = source.provenance.then("realign", shift=shift, dropped_episodes=dropped)
    return _recorded(taken(source, pieces), step)


def drop_non_finite(source: S) -> S:
    """Leave out rows with NaN or infinity; their episodes are split there."""
    finite = np.concatenate([_finite(rows) for _, rows in chunks(source)])
    pieces = _runs(finite, source.episodes)
    if not pieces:
        raise EluteError("every row holds NaN or infinity: nothing is left")
    step = source.provenance.then("drop-non-finite", rows=int((~finite).sum()))
    return _recorded(taken(source, pieces), step)


def _finite(rows: Demonstrations) -> Array:
    finite = np.asarray(np.isfinite(rows.pairs.astype(np.float64)).all(axis=1))
    if rows.next_observations is not None:
        finite &= np.isfinite(rows.next_observations.astype(np.float64)).all(axis=1)
    return finite


def _runs(kept: Array, episodes: Episodes) -> list[Piece]:
    """Runs of rows to keep, within episodes."""
    pieces = []
    for start, stop in zip(episodes.starts, episodes.stops, strict=True):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], kept[start:stop], [0]])))
        runs = edges.reshape(-1, 2) + start
        pieces += [Piece(int(first), int(last - first)) for first, last in runs]
    return pieces


def _recorded(source: S, provenance: Provenance) -> S:
    return replace(source, provenance=provenance)  # type: ignore[type-var] # all are dataclasses


def clipping(source: DemoSource, bounds: Bounds) -> Callable[[int, Demonstrations], Demonstrations]:
    """Makes actions of any chunk of a source what the controller executed.

    That it clips and how many rows is recorded.
    """
    changed = sum(
        int((_clipped(rows.actions, bounds) != rows.actions).any(axis=1).sum())
        for _, rows in chunks(source)
    )
    step = source.provenance.then(
        "clip", low=bounds.low.tolist(), high=bounds.high.tolist(), rows=changed
    )

    def clip(start: int, rows: Demonstrations) -> Demonstrations:
        del start  # every row alike
        return replace(rows, actions=_clipped(rows.actions, bounds), provenance=step)

    return clip


def _clipped(actions: Array, bounds: Bounds) -> Array:
    clipped: Array = np.clip(actions, bounds.low, bounds.high).astype(actions.dtype)
    return clipped
