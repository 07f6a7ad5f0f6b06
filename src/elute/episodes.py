"""How rows fall into episodes, how each of them ended, and where they came from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError

Array = NDArray[Any]


class Piece(NamedTuple):
    """Rows to keep from within one episode, and how far ahead their actions are taken."""

    start: int
    length: int
    shift: int = 0
    """The kept actions, rewards and action-side extras come from rows `start + shift` on."""


@dataclass(frozen=True)
class Provenance:
    """Where demonstrations come from and everything done to them since, in order."""

    source: str = ""
    format: str = ""
    task: str = ""
    steps: tuple[Mapping[str, Any], ...] = ()
    """One mapping per transformation; its "operation" says which."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What each format said about the data as a whole, by format (environment, spaces, ...)."""

    def then(self, operation: str, **details: Any) -> Self:  # noqa: ANN401 (JSON of any shape)
        """The same with one more transformation."""
        return replace(self, steps=(*self.steps, {"operation": operation, **details}))


@dataclass(frozen=True, eq=False)
class Episodes:
    """How rows fall into episodes and how each of them ended (arrays of one entry per episode)."""

    lengths: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    """The task itself ended: success, a fall."""
    truncated: NDArray[np.bool_]
    """Something outside the task ended it: a time limit, a cut."""
    inferred: NDArray[np.bool_]
    """The kind of end was guessed, because the format does not say."""
    final_repeated: NDArray[np.bool_]
    """The next observation of the last row is a copy of its observation, not a measurement."""
    attributes: tuple[Mapping[str, Any], ...]
    """What the source says about the episode: seed, options, operator, filter keys, ..."""

    @classmethod
    def of(
        cls,
        lengths: Sequence[int] | Array,
        terminated: Sequence[bool] | Array | None = None,
        truncated: Sequence[bool] | Array | None = None,
        *,
        inferred: bool = False,
        final_repeated: Sequence[bool] | Array | None = None,
        attributes: Sequence[Mapping[str, Any]] | None = None,
    ) -> Self:
        """Episodes of these lengths; an end that is not given is neither kind."""
        n = len(lengths)
        no = np.zeros(n, dtype=bool)
        return cls(
            lengths=np.asarray(lengths, dtype=np.int64),
            terminated=no if terminated is None else np.asarray(terminated, dtype=bool),
            truncated=no if truncated is None else np.asarray(truncated, dtype=bool),
            inferred=np.full(n, inferred),
            final_repeated=no if final_repeated is None else np.asarray(final_repeated, dtype=bool),
            attributes=tuple(attributes) if attributes is not None else ({},) * n,
        )

    def __post_init__(self) -> None:
        n = len(self.lengths)
        for f in fields(self):
            if len(getattr(self, f.name)) != n:
                raise EluteError(f"episodes: {f.name} has not one entry for each of {n} episodes")
        if n and self.lengths.min() < 1:
            bad = int(self.lengths.argmin())
            raise EluteError(f"episode {bad} has {self.lengths[bad]} rows; expected at least one")
        for f in fields(self)[:-1]:
            object.__setattr__(self, f.name, read_only(getattr(self, f.name)))

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def n_rows(self) -> int:
        """Rows of all episodes."""
        return int(self.lengths.sum())

    @cached_property
    def stops(self) -> NDArray[np.int64]:
        """The row after each episode's last."""
        return read_only(np.cumsum(self.lengths))

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Each episode's first row."""
        return read_only(self.stops - self.lengths)

    @property
    def filters(self) -> list[tuple[str, ...]]:
        """The filter keys (better, worse, ...) that each episode is in."""
        given = [attributes.get("filters") for attributes in self.attributes]
        return [tuple(map(str, keys)) if isinstance(keys, list | tuple) else () for keys in given]

    def with_filter(self, key: str, members: Sequence[int]) -> Self:
        """The same with these episodes in one more filter key."""
        added = [
            {**about, "filters": [*keys, key]} if i in members and key not in keys else about
            for i, (about, keys) in enumerate(zip(self.attributes, self.filters, strict=True))
        ]
        return replace(self, attributes=tuple(added))

    def of_row(self, row: int) -> int:
        """The episode that holds a row."""
        return int(np.searchsorted(self.stops, row, side="right"))

    def pieces(self, start: int, stop: int) -> list[Piece]:
        """The rows `start..stop` as pieces of episodes."""
        first, last = self.of_row(start), self.of_row(stop - 1)
        begins = np.maximum(self.starts[first : last + 1], start).tolist()
        ends = np.minimum(self.stops[first : last + 1], stop).tolist()
        return [Piece(b, e - b) for b, e in zip(begins, ends, strict=True)]

    def cut(self, pieces: Sequence[Piece]) -> Self:
        """The episodes that these pieces make."""
        starts = np.array([p.start for p in pieces])
        lengths = np.array([p.length for p in pieces])
        shifts = np.array([p.shift for p in pieces])
        owner = np.searchsorted(self.stops, starts, side="right")
        stops = self.stops[owner]
        ended = starts + lengths + shifts == stops  # its last action is the episode's last
        return type(self)(
            lengths=lengths,
            terminated=self.terminated[owner] & ended,
            truncated=self.truncated[owner] | ~ended,
            inferred=self.inferred[owner] & ended,
            final_repeated=self.final_repeated[owner] & (starts + lengths == stops),
            attributes=tuple(self.attributes[e] for e in owner.tolist()),
        )

    def __add__(self, other: Self) -> Self:
        joined = {
            f.name: np.concatenate([getattr(self, f.name), getattr(other, f.name)])
            for f in fields(self)[:-1]
        }
        return type(self)(**joined, attributes=self.attributes + other.attributes)


@dataclass(frozen=True, eq=False)
class Origin:
    """The file that rows were read from, so that a writer can copy what elute does not hold."""

    path: Path
    format: str
    stamp: tuple[int, int]
    """Size and modification time when it was read."""
    pieces: tuple[Piece, ...]
    """For each episode: which rows of the whole file it is, and the shift of its actions."""
    carried: tuple[str, ...] = ()
    """Per-row arrays that elute does not hold; a writer of the same format copies them."""

    def cut(self, episodes: Episodes, pieces: Sequence[Piece]) -> "Origin":
        """Of these pieces of the episodes that it is the origin of."""
        starts = episodes.starts
        moved = []
        for piece in pieces:
            episode = episodes.of_row(piece.start)
            source = self.pieces[episode]
            first = source.start + piece.start - int(starts[episode])
            moved.append(Piece(first, piece.length, source.shift + piece.shift))
        return replace(self, pieces=tuple(moved))


def read_only(array: Array) -> Array:
    """A view that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view
