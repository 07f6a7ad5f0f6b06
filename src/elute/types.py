"""Demonstrations as one type: numpy arrays that are checked at birth and never change.

    optimal = load("expert.h5").first(50)
    demos = DemoSet(optimal=optimal, supplementary=load("noisy.h5"))
    x = demos.supplementary.pairs              # the paper's x = [s, a]

Rows are steps, in order, episode after episode. What an operation does to episodes follows one
rule: a piece that does not reach the end of its episode ends as truncated.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from elute.columns import Column, columns, is_action_side
from elute.episodes import Array, Episodes, Origin, Piece, Provenance, read_only
from elute.errors import EluteError

CHUNK_ROWS = 65_536
"""Rows that are in memory at once while a file is worked through."""


class DemoSource(Protocol):
    """Rows that can be read a chunk at a time: an open file, or demonstrations in memory."""

    @property
    def episodes(self) -> Episodes: ...  # noqa: D102
    @property
    def observation_columns(self) -> tuple[Column, ...]: ...  # noqa: D102
    @property
    def action_columns(self) -> tuple[Column, ...]: ...  # noqa: D102
    @property
    def provenance(self) -> Provenance: ...  # noqa: D102
    @property
    def origin(self) -> Origin | None: ...  # noqa: D102
    def rows(self, start: int, stop: int) -> "Demonstrations":
        """Rows `start..stop`, in memory."""


@dataclass(frozen=True, eq=False, repr=False)
class Demonstrations:
    """Steps of recorded episodes. Arrays are read-only; every operation returns a new object."""

    observations: Array
    """(n, S), as recorded, in the source's type."""
    actions: Array
    """(n, A), as recorded: not clipped."""
    episodes: Episodes
    rewards: Array | None = None
    """(n,)"""
    next_observations: Array | None = None
    """(n, S): the observation after the action."""
    extras: Mapping[str, Array] = field(default_factory=dict)
    """Any further per-row arrays by name: `clean_actions`, `operator`, `states`, ..."""
    observation_columns: tuple[Column, ...] = ()
    action_columns: tuple[Column, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)
    origin: Origin | None = None

    def __post_init__(self) -> None:
        n = self.episodes.n_rows
        if n == 0:
            raise EluteError(f"{self._source()}: no rows", hint="is the file or selection empty?")
        for name in ("observations", "actions", "next_observations", "rewards"):
            array = getattr(self, name)
            if array is not None:
                object.__setattr__(self, name, self._checked(name, array, n))
        if self.next_observations is not None and (
            self.next_observations.shape != self.observations.shape
        ):
            raise EluteError(
                f"{self._source()}: next_observations are {self.next_observations.shape}; "
                f"expected {self.observations.shape} like the observations"
            )
        extras = {name: self._checked(name, a, n) for name, a in self.extras.items()}
        object.__setattr__(self, "extras", MappingProxyType(extras))
        self._check_columns("observation", self.observations.shape[1])
        self._check_columns("action", self.actions.shape[1])

    def _source(self) -> str:
        return self.provenance.source or "demonstrations"

    def _checked(self, name: str, array: Array, n: int) -> Array:
        array = np.asarray(array)
        core = name in ("observations", "actions", "next_observations")
        if array.dtype.kind not in ("fiub" if core or name == "rewards" else "fiubSU"):
            raise EluteError(f"{self._source()}: {name} are {array.dtype}; expected numbers")
        if (core and array.ndim != 2) or (name == "rewards" and array.ndim != 1):
            expected = "(rows, columns)" if core else "(rows,)"
            raise EluteError(f"{self._source()}: {name} have shape {array.shape}, not {expected}")
        if array.ndim == 0 or len(array) != n or (core and array.shape[1] == 0):
            raise EluteError(
                f"{self._source()}: {name} have shape {array.shape}; expected {n} rows like the "
                "episodes, and at least one column",
                hint="arrays of one file must be equally long",
            )
        return read_only(array)

    def _check_columns(self, kind: str, size: int) -> None:
        given = getattr(self, f"{kind}_columns")
        if not given:
            object.__setattr__(self, f"{kind}_columns", columns(kind, size))
        elif len(given) != size:
            raise EluteError(
                f"{self._source()}: {len(given)} {kind} columns named, {size} in the data"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return _made, (given | {"extras": dict(self.extras)},)

    def __len__(self) -> int:
        return self.episodes.n_rows

    def __repr__(self) -> str:
        s, a = self.observations.shape[1], self.actions.shape[1]
        return (
            f"Demonstrations({len(self)} rows in {len(self.episodes)} episodes, "
            f"{s} observation and {a} action columns, from {self._source()})"
        )

    def take(self, pieces: Sequence[Piece]) -> Self:
        """These pieces of episodes, each an episode of the result.

        Raises:
            EluteError: a piece is empty, crosses an episode's end or leaves the data.
        """
        if not pieces:
            raise EluteError(f"{self._source()}: nothing selected, so no rows are left")
        self._check_pieces(pieces)
        state, action = _rows(pieces, shifted=False), _rows(pieces, shifted=True)
        extras = {n: a[action if is_action_side(n) else state] for n, a in self.extras.items()}
        return replace(
            self,
            observations=self.observations[state],
            actions=self.actions[action],
            rewards=None if self.rewards is None else self.rewards[action],
            next_observations=(
                None if self.next_observations is None else self.next_observations[state]
            ),
            extras=extras,
            episodes=self.episodes.cut(pieces),
            origin=self.origin.cut(self.episodes, pieces) if self.origin is not None else None,
        )

    def _check_pieces(self, pieces: Sequence[Piece]) -> None:
        stops, starts = self.episodes.stops, self.episodes.starts
        for piece in pieces:
            episode = min(self.episodes.of_row(max(piece.start, 0)), len(stops) - 1)
            low = min(piece.start, piece.start + piece.shift)
            high = max(piece.start, piece.start + piece.shift) + piece.length
            if piece.length < 1 or low < starts[episode] or high > stops[episode]:
                raise EluteError(f"{piece} is not inside one episode of {self._source()}")

    def rows(self, start: int, stop: int) -> Self:
        """Rows `start..stop`; an episode that is cut ends as truncated."""
        if not 0 <= start < stop <= len(self):
            raise EluteError(f"rows {start}..{stop} of {len(self)} asked for")
        return self.take(self.episodes.pieces(start, stop))

    def __getitem__(self, rows: slice) -> Self:
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise EluteError(
                f"demonstrations[{rows}] asked for; expected a slice in steps of one",
                hint="write demos[3:4] for one row, demos.select([...]) for episodes",
            )
        start, stop, _ = rows.indices(len(self))
        return self.rows(start, stop)

    def first(self, n: int) -> Self:
        """The first `n` rows, or all if there are fewer."""
        if n < 1:
            raise EluteError(f"first({n}) asked for; expected at least one row")
        return self.rows(0, min(n, len(self)))

    def sample(self, n: int, rng: np.random.Generator) -> Self:
        """`n` different rows drawn at random, in their order; neighbours stay one episode."""
        if not 1 <= n <= len(self):
            raise EluteError(f"sample of {n} rows asked for; there are {len(self)}")
        return self.pick(np.sort(rng.choice(len(self), size=n, replace=False)))

    def pick(self, chosen: NDArray[np.int64]) -> Self:
        """Rows by number, in increasing order; neighbours stay one episode."""
        owner = np.searchsorted(self.episodes.stops, chosen, side="right")
        breaks = np.flatnonzero((np.diff(chosen) != 1) | (np.diff(owner) != 0)) + 1
        runs = np.split(chosen, breaks)
        return self.take([Piece(int(run[0]), len(run)) for run in runs])

    def select(self, episodes: Sequence[int]) -> Self:
        """Whole episodes by number, in the order given."""
        known = len(self.episodes)
        for episode in episodes:
            if not 0 <= episode < known:
                raise EluteError(f"episode {episode} asked for; there are 0..{known - 1}")
        starts, lengths = self.episodes.starts, self.episodes.lengths
        return self.take([Piece(int(starts[e]), int(lengths[e])) for e in episodes])

    def iter_episodes(self) -> Iterator[Self]:
        """Each episode by itself."""
        return (self.select([episode]) for episode in range(len(self.episodes)))

    def __add__(self, other: Self) -> Self:
        """Both, one after the other. Only what both have is kept, and provenance says so."""
        _check_same_shape(self, other)
        kept = [
            n for n in self.extras if n in other.extras and _join(self.extras[n], other.extras[n])
        ]
        dropped = sorted({*self.extras, *other.extras} - set(kept))
        optional: dict[str, Any] = {}
        for name in ("rewards", "next_observations"):
            mine, theirs = getattr(self, name), getattr(other, name)
            both = mine is not None and theirs is not None
            optional[name] = np.concatenate([mine, theirs]) if both else None
            if not both and (mine is not None or theirs is not None):
                dropped.append(name)
        return replace(
            self,
            observations=np.concatenate([self.observations, other.observations]),
            actions=np.concatenate([self.actions, other.actions]),
            extras={n: np.concatenate([self.extras[n], other.extras[n]]) for n in kept},
            episodes=self.episodes + other.episodes,
            provenance=self.provenance.then(
                "concatenate",
                source=other.provenance.source,
                steps=list(other.provenance.steps),
                dropped=dropped,
            ),
            origin=None,
            **optional,
        )

    @property
    def pairs(self) -> Array:
        """The paper's x = [s, a], one row per step."""
        return np.concatenate([self.observations, self.actions], axis=1)

    def with_pairs(self, pairs: Array, operation: str, **details: Any) -> Self:  # noqa: ANN401
        """The same rows with other observations and actions, cast back to their types.

        Next observations inside an episode follow; the last of each episode stays as recorded.
        """
        split = self.observations.shape[1]
        expected = (len(self), split + self.actions.shape[1])
        if pairs.shape != expected:
            raise EluteError(f"pairs have shape {pairs.shape}; expected {expected}")
        observations = pairs[:, :split].astype(self.observations.dtype)
        following = self.next_observations
        if following is not None:
            following = following.copy()
            inner = np.ones(len(self), dtype=bool)
            inner[self.episodes.stops - 1] = False
            following[inner] = observations[1:][inner[:-1]]
        return replace(
            self,
            observations=observations,
            actions=pairs[:, split:].astype(self.actions.dtype),
            next_observations=following,
            provenance=self.provenance.then(operation, **details),
        )

    def with_extra(self, name: str, values: Array) -> Self:
        """The same with one more per-row array."""
        return replace(self, extras={**self.extras, name: values})

    def returns(self) -> NDArray[np.float64] | None:
        """Sum of rewards of each episode, if rewards are known."""
        if self.rewards is None:
            return None
        return np.add.reduceat(self.rewards.astype(np.float64), self.episodes.starts)


def _made(given: dict[str, Any]) -> Demonstrations:
    """In another process: checked and read-only as here."""
    return Demonstrations(**given)


class DemoSet:
    """The paper's two sets, by name so that they cannot be swapped: D_o and D_s.

    Either may be missing; whoever asks for it is then told so.
    """

    def __init__(
        self,
        optimal: Demonstrations | None = None,
        supplementary: Demonstrations | None = None,
    ) -> None:
        self._optimal, self._supplementary = optimal, supplementary
        if optimal is not None and supplementary is not None:
            _check_same_shape(optimal, supplementary)

    @property
    def optimal(self) -> Demonstrations:
        """D_o."""
        return _given(self._optimal, "optimal")

    @property
    def supplementary(self) -> Demonstrations:
        """D_s."""
        return _given(self._supplementary, "supplementary")

    @property
    def given(self) -> tuple[Demonstrations, ...]:
        """Those that are there, D_o first."""
        return tuple(d for d in (self._optimal, self._supplementary) if d is not None)

    @property
    def all(self) -> Demonstrations:
        """D_o followed by D_s, or the one that is there."""
        first, *second = self.given or (_given(None, "optimal or supplementary"),)
        return first + second[0] if second else first


def _given(rows: Demonstrations | None, name: str) -> Demonstrations:
    if rows is None:
        raise EluteError(f"no {name} demonstrations; this method learns from them")
    return rows


def check_finite(rows: Demonstrations, what: str = "demonstrations") -> None:
    """Refuse what nothing can learn from.

    Raises:
        EluteError: a value is NaN or infinite.
    """
    if not np.isfinite(rows.pairs).all():
        source = rows.provenance.source or what
        raise EluteError(
            f"{source}: holds values that are not finite",
            hint="elute demos audit FILE --fix OUT drops them",
        )


def chunks(source: DemoSource, max_rows: int = CHUNK_ROWS) -> Iterator[tuple[int, Demonstrations]]:
    """Read a source in order, at most `max_rows` at a time: (first row, rows).

    Chunks end with an episode where they can; only an episode longer than a chunk is cut.
    """
    for start, stop in chunk_bounds(source.episodes, max_rows):
        yield start, source.rows(start, stop)


def chunk_bounds(episodes: Episodes, max_rows: int = CHUNK_ROWS) -> list[tuple[int, int]]:
    """First row of each chunk, and the row after its last."""
    stops, bounds = episodes.stops, []
    start, total = 0, episodes.n_rows
    while start < total:
        fitting = int(np.searchsorted(stops, start + max_rows, side="right")) - 1
        stop = int(stops[fitting]) if fitting >= 0 and stops[fitting] > start else start + max_rows
        bounds.append((start, min(stop, total)))
        start = stop
    return bounds


def _rows(pieces: Sequence[Piece], *, shifted: bool) -> slice | NDArray[np.int64]:
    begins = [p.start + p.shift * shifted for p in pieces]
    ends = [b + p.length for b, p in zip(begins, pieces, strict=True)]
    if begins[1:] == ends[:-1]:
        return slice(begins[0], ends[-1])  # a view, not a copy
    return np.concatenate([np.arange(b, e) for b, e in zip(begins, ends, strict=True)])


def _join(one: Array, other: Array) -> bool:
    """Whether two extra columns of one name hold the same kind of thing."""
    text = [array.dtype.kind in "SU" for array in (one, other)]
    return one.shape[1:] == other.shape[1:] and text[0] == text[1]


def _check_same_shape(one: Demonstrations, other: Demonstrations) -> None:
    for name in ("observations", "actions"):
        mine, theirs = getattr(one, name).shape[1], getattr(other, name).shape[1]
        if mine != theirs:
            raise EluteError(
                f"{other._source()} has {theirs} columns of {name}, {one._source()} has {mine}",
                hint="both sets must come from the same task and observation keys",
            )
