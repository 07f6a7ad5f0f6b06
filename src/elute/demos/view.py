"""Pieces of a file that are read when they are asked for.

    first = taken(source, source.episodes.pieces(0, 1000))
    rows = first.rows(0, 10)                   # only these are read

Selections and repairs keep pieces of episodes, some with their actions taken from other rows. In
memory that is `Demonstrations.take`; a file that does not fit into memory is viewed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from elute.columns import Column
from elute.episodes import Episodes, Origin, Piece, Provenance
from elute.types import Demonstrations, DemoSource

S = TypeVar("S", Demonstrations, DemoSource)


def taken(source: S, pieces: Sequence[Piece]) -> S:
    """These pieces of episodes, each an episode of the result; rows of a file stay unread."""
    if isinstance(source, Demonstrations):
        return source.take(pieces)
    origin = source.origin
    return View(
        source=source,
        pieces=tuple(pieces),
        episodes=source.episodes.cut(pieces),
        observation_columns=source.observation_columns,
        action_columns=source.action_columns,
        provenance=source.provenance,
        origin=None if origin is None else origin.cut(source.episodes, pieces),
    )


def whole(episodes: Episodes, chosen: Sequence[int]) -> list[Piece]:
    """These episodes, as pieces."""
    starts, lengths = episodes.starts, episodes.lengths
    return [Piece(int(starts[e]), int(lengths[e])) for e in chosen]


@dataclass(frozen=True, eq=False)
class View:
    """Pieces of the episodes of another source."""

    source: DemoSource
    pieces: tuple[Piece, ...]
    episodes: Episodes
    observation_columns: tuple[Column, ...]
    action_columns: tuple[Column, ...]
    provenance: Provenance
    origin: Origin | None

    def select(self, episodes: Sequence[int]) -> DemoSource:
        """Whole episodes by number, in the order given."""
        source: DemoSource = self
        return taken(source, whole(self.episodes, episodes))

    def rows(self, start: int, stop: int) -> Demonstrations:
        """Rows `start..stop`; of the source, not more than twice as many are read at once."""
        inside = self.episodes.pieces(start, stop)
        groups = _groups(self._of_source(inside), most=2 * (stop - start))
        parts = [self._read(group) for group in groups]
        joined = parts[0] if len(parts) == 1 else _joined(parts)
        return replace(
            joined,
            episodes=self.episodes.cut(inside),
            observation_columns=self.observation_columns,
            action_columns=self.action_columns,
            provenance=self.provenance,
            origin=None if self.origin is None else self.origin.cut(self.episodes, inside),
        )

    def _of_source(self, inside: Sequence[Piece]) -> list[Piece]:
        """The same rows by their numbers in the source."""
        first, starts = self.episodes.of_row(inside[0].start), self.episodes.starts
        found = []
        for i, part in enumerate(inside, start=first):
            piece = self.pieces[i]
            begin = piece.start + part.start - int(starts[i])
            found.append(Piece(begin, part.length, piece.shift))
        return found

    def _read(self, group: Sequence[Piece]) -> Demonstrations:
        low, high = _first(group[0]), max(map(_last, group))
        rows = self.source.rows(low, high)
        return rows.take([piece._replace(start=piece.start - low) for piece in group])


def _first(piece: Piece) -> int:
    """The first row that it needs: of its states or of its actions."""
    return piece.start + min(0, piece.shift)


def _last(piece: Piece) -> int:
    return piece.start + max(0, piece.shift) + piece.length


def _groups(pieces: Sequence[Piece], most: int) -> list[list[Piece]]:
    """Neighbouring pieces that are read together."""
    groups: list[list[Piece]] = []
    for piece in pieces:
        near = groups and _first(piece) >= _first(groups[-1][-1])
        if near and _last(piece) - _first(groups[-1][0]) <= most:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return groups


def _joined(parts: Sequence[Demonstrations]) -> Demonstrations:
    """One after the other; all are of one source, so all have the same arrays."""
    first = parts[0]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("observations", "actions", "rewards", "next_observations")
        if getattr(first, name) is not None
    }
    extras = {name: np.concatenate([part.extras[name] for part in parts]) for name in first.extras}
    lengths = np.concatenate([part.episodes.lengths for part in parts])
    return replace(first, **arrays, extras=extras, episodes=Episodes.of(lengths))
