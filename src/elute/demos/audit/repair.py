"""The safe repairs that findings name. Each returns new demonstrations and is recorded."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from elute.demos.audit.finding import Finding
from elute.demos.audit.summary import Bounds
from elute.episodes import Piece
from elute.errors import EluteError
from elute.types import Demonstrations


def repaired(
    demos: Demonstrations, findings: Sequence[Finding], *, clip: Bounds | None = None
) -> Demonstrations:
    """Apply what the findings of this file name; clip only when asked to."""
    for finding in findings:
        if finding.repair == "realign" and finding.shift is not None:
            demos = realign(demos, finding.shift)
    for finding in findings:
        if finding.repair == "drop-non-finite":
            demos = drop_non_finite(demos)
    return clip_actions(demos, clip) if clip is not None else demos


def realign(demos: Demonstrations, shift: int) -> Demonstrations:
    """Pair each state with the action of the row `shift` further on, and what belongs to it.

    An episode loses `shift` rows: states at one end, actions at the other. One that is too short
    is left out.
    """
    lost = abs(shift)
    starts, lengths = demos.episodes.starts.tolist(), demos.episodes.lengths.tolist()
    pieces = [
        Piece(start + max(0, -shift), length - lost, shift)
        for start, length in zip(starts, lengths, strict=True)
        if length > lost
    ]
    if not pieces:
        raise EluteError(f"no episode is longer than the shift of {shift} rows: nothing is left")
    moved = demos.take(pieces)
    dropped = [i for i, length in enumerate(lengths) if length <= lost]
    step = moved.provenance.then("realign", shift=shift, dropped_episodes=dropped)
    return replace(moved, provenance=step)


def drop_non_finite(demos: Demonstrations) -> Demonstrations:
    """Leave out rows with NaN or infinity; their episodes are split there."""
    finite = np.asarray(np.isfinite(demos.pairs.astype(np.float64)).all(axis=1))
    if demos.next_observations is not None:
        finite &= np.isfinite(demos.next_observations.astype(np.float64)).all(axis=1)
    pieces = []
    for start, stop in zip(demos.episodes.starts, demos.episodes.stops, strict=True):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], finite[start:stop], [0]])))
        runs = edges.reshape(-1, 2) + start
        pieces += [Piece(int(first), int(last - first)) for first, last in runs]
    if not pieces:
        raise EluteError("every row holds NaN or infinity: nothing is left")
    kept = demos.take(pieces)
    step = kept.provenance.then("drop-non-finite", rows=int((~finite).sum()))
    return replace(kept, provenance=step)


def clip_actions(demos: Demonstrations, bounds: Bounds) -> Demonstrations:
    """Actions as the controller executed them."""
    clipped = np.clip(demos.actions, bounds.low, bounds.high).astype(demos.actions.dtype)
    changed = int((clipped != demos.actions).any(axis=1).sum())
    step = demos.provenance.then(
        "clip", low=bounds.low.tolist(), high=bounds.high.tolist(), rows=changed
    )
    return replace(demos, actions=clipped, provenance=step)
