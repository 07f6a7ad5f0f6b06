"""Reading HDF5 files of demonstrations, whole or a chunk at a time.

A format says once where its file keeps things (`Layout`); reading, chunking and patching then
need no further knowledge of it. Flat formats (VILD, D4RL) have one group, the root; the others
(robomimic, Minari) have one group per episode.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np

from elute.columns import Column
from elute.demos import arrays
from elute.demos import note as notes
from elute.demos.uninterrupted import uninterrupted
from elute.demos.view import whole
from elute.episodes import Array, Episodes, Origin, Piece, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations

End = Literal["terminated", "truncated", "continues"]


@dataclass(frozen=True)
class Layout:
    """Where a file keeps its rows. Names are relative to each group."""

    groups: tuple[str, ...]
    group_rows: tuple[int, ...]
    observations: tuple[str, ...]
    """Arrays that are concatenated into the observation vector."""
    actions: tuple[str, ...]
    rewards: str | None = None
    next_observations: tuple[str, ...] = ()
    extras: Mapping[str, str] = field(default_factory=dict)
    """Name of the extra column -> its array."""
    extras_in: str = ""
    """Group that new extra columns are created in."""
    final_row: bool = False
    """Observations (and arrays in `extras_in`) have one row more than there are actions."""
    ends: Mapping[str, End] = field(default_factory=dict)
    """Flag arrays, and what they say on the last row of an episode."""

    @property
    def arrays(self) -> set[str]:
        """All arrays that are not extra columns."""
        rewards = (self.rewards,) if self.rewards else ()
        return {*self.observations, *self.actions, *rewards, *self.next_observations, *self.ends}

    def spans(self, start: int, stop: int) -> Iterator[tuple[str, int, int, int]]:
        """Rows `start..stop` of the whole file as (group, first, last, offset in the result)."""
        stops = np.cumsum(self.group_rows)
        at, index = start, int(np.searchsorted(stops, start, side="right"))
        while at < stop:
            first = at - int(stops[index] - self.group_rows[index])
            last = min(self.group_rows[index], first + stop - at)
            yield self.groups[index], first, last, at - start
            at, index = at + last - first, index + 1

    def rows_of(self, name: str, group_rows: int) -> int:
        """How many rows the array must have in a group of so many steps."""
        longer = name in self.observations or bool(
            self.extras_in and name.startswith(self.extras_in)
        )
        return group_rows + int(self.final_row and longer)


@dataclass(frozen=True, eq=False)
class Hdf5Demos:
    """A file of demonstrations, open in name only: every call opens, reads and closes it."""

    path: Path
    format: str
    layout: Layout
    episodes: Episodes
    observation_columns: tuple[Column, ...]
    action_columns: tuple[Column, ...]
    provenance: Provenance
    origin: Origin

    def select(self, episodes: Sequence[int]) -> "Hdf5Demos":
        """The same file, only these episodes."""
        kept, origin = selected(self.episodes, self.origin, episodes)
        return replace(self, episodes=kept, origin=origin)

    def rows(self, start: int, stop: int) -> Demonstrations:
        """Rows `start..stop`, read from the file."""
        episodes = self.episodes.cut(self.episodes.pieces(start, stop))
        file_pieces = pieces_in_file(self.episodes, self.origin, start, stop)
        with uninterrupted(), arrays.reading(self.path, self.format) as file:
            # Where every final observation is a copy of the one before, none was measured.
            measured = not self.episodes.final_repeated.all()
            final_row = self.layout.final_row and measured
            read = _Reader(file, self.path, self.layout).read(merged(file_pieces), final_row)
        return Demonstrations(
            observations=read["observations"],
            actions=read["actions"],
            rewards=read["rewards"],
            next_observations=read["next_observations"] if measured else None,
            extras=read["extras"],
            episodes=episodes,
            observation_columns=self.observation_columns,
            action_columns=self.action_columns,
            provenance=self.provenance,
            origin=replace(self.origin, pieces=file_pieces),
        )


def opened(
    path: Path,
    format_name: str,
    layout: Layout,
    header: notes.Header,
    *,
    note: notes.Note | None,
    carried: Sequence[str] = (),
    source: Path | None = None,
) -> Hdf5Demos:
    """Put together what a format found in a file (or in the folder `source` around it)."""
    if header.episodes.n_rows == 0:
        raise EluteError(f"{path}: no rows", hint="the file holds no demonstrations")
    if note is not None:
        header = notes.apply(note, header)
        measured = {k: v for k, v in layout.extras.items() if k not in note.absent}
        rewards = None if "rewards" in note.absent else layout.rewards
        layout = replace(layout, rewards=rewards, extras=measured)
    starts, lengths = header.episodes.starts.tolist(), header.episodes.lengths.tolist()
    return Hdf5Demos(
        path=path,
        format=format_name,
        layout=layout,
        episodes=header.episodes,
        observation_columns=header.observation_columns,
        action_columns=header.action_columns,
        provenance=replace(header.provenance, source=str(source or path), format=format_name),
        origin=Origin(
            path, format_name, stamp(path), tuple(map(Piece, starts, lengths)), tuple(carried)
        ),
    )


def selected(episodes: Episodes, origin: Origin, chosen: Sequence[int]) -> tuple[Episodes, Origin]:
    """Whole episodes of a selection by number, and where they are in the file it is from."""
    pieces = tuple(origin.pieces[e] for e in chosen)
    return episodes.cut(whole(episodes, chosen)), replace(origin, pieces=pieces)


def pieces_in_file(episodes: Episodes, origin: Origin, start: int, stop: int) -> tuple[Piece, ...]:
    """Rows `start..stop` of a selection as pieces of the file it is from."""
    first, starts = episodes.of_row(start), episodes.starts.tolist()
    return tuple(
        Piece(origin.pieces[first + i].start + piece.start - starts[first + i], piece.length)
        for i, piece in enumerate(episodes.pieces(start, stop))
    )


def stamp(path: Path) -> tuple[int, int]:
    """Changes when the file does, or any file in the folder."""
    files = [item for item in path.rglob("*") if item.is_file()] if path.is_dir() else [path]
    found = [item.stat() for item in files]
    return sum(s.st_size for s in found), max((s.st_mtime_ns for s in found), default=0)


def read_note(file: h5py.File, path: Path) -> notes.Note | None:
    """Elute's note in an HDF5 file."""
    stored = file.get(notes.NAME)
    if not isinstance(stored, h5py.Dataset) or stored.shape != ():
        return None
    text = stored[()]
    return notes.decode(text.decode() if isinstance(text, bytes) else str(text), str(path))


def merged(pieces: Sequence[Piece]) -> list[tuple[int, int]]:
    """Merge neighbouring pieces, so that a whole file is one read."""
    runs: list[tuple[int, int]] = []
    for piece in pieces:
        if runs and runs[-1][1] == piece.start:
            runs[-1] = (runs[-1][0], piece.start + piece.length)
        else:
            runs.append((piece.start, piece.start + piece.length))
    return runs


_Span = tuple[str, int, int, int]
"""(group, first row, last row, where they go)"""


class _Reader:
    """Fills arrays from runs of file rows."""

    def __init__(self, file: h5py.File, path: Path, layout: Layout) -> None:
        self.file, self.path, self.layout = file, path, layout
        self.group_rows = dict(zip(layout.groups, layout.group_rows, strict=True))

    def read(self, runs: list[tuple[int, int]], final_row: bool) -> dict[str, Any]:
        layout = self.layout
        spans = [
            (group, first, last, base + at)
            for (start, stop), base in zip(runs, _offsets(runs), strict=True)
            for group, first, last, at in layout.spans(start, stop)
        ]
        n = sum(stop - start for start, stop in runs)
        observations, following = self._joined(layout.observations, spans, n, final_row=final_row)
        if layout.next_observations:
            following, _ = self._joined(layout.next_observations, spans, n)
        return {
            "observations": observations,
            "actions": self._joined(layout.actions, spans, n)[0],
            "rewards": self._joined((layout.rewards,), spans, n)[0][:, 0]
            if layout.rewards
            else None,
            "next_observations": following,
            "extras": {k: self._extra(name, spans, n) for k, name in layout.extras.items()},
        }

    def _joined(
        self, names: Sequence[str], spans: list[_Span], n: int, *, final_row: bool = False
    ) -> tuple[Array, Array | None]:
        """The arrays side by side and, if they have a final row, the same one row later."""
        first = [arrays.dataset(self.file[spans[0][0]], name, self.path) for name in names]
        widths = [1 if array.ndim == 1 else array.shape[1] for array in first]
        joined = np.empty((n, sum(widths)), dtype=np.result_type(*(a.dtype for a in first)))
        following = np.empty_like(joined) if final_row else None
        for group, start, stop, at in spans:
            rows, column = slice(at, at + stop - start), 0
            for name, width in zip(names, widths, strict=True):
                array = self._array(group, name, width, joined.dtype)
                columns = slice(column, column + width)
                if following is not None:
                    longer = array.read(start, stop + 1).reshape(-1, width)
                    joined[rows, columns], following[rows, columns] = longer[:-1], longer[1:]
                elif len(names) == 1:
                    array.read(start, stop, into=joined[rows])
                else:
                    joined[rows, columns] = array.read(start, stop).reshape(-1, width)
                column += width
        return joined, following

    def _extra(self, name: str, spans: list[_Span], n: int) -> Array:
        flat = arrays.dataset(self.file[spans[0][0]], name, self.path).ndim == 1
        joined, _ = self._joined((name,), spans, n)
        return joined[:, 0] if flat else joined

    def _array(self, group: str, name: str, width: int, dtype: np.dtype[Any]) -> arrays.Rows:
        array = arrays.Rows(self.file, f"{group}/{name}", self.path)
        rows = self.layout.rows_of(name, self.group_rows[group])
        if array.shape not in ((rows, width), (rows,) if width == 1 else None):
            raise EluteError(
                f"{self.path}: {group.rstrip('/')}/{name} has shape {array.shape}; "
                f"expected {rows} rows of {width}",
                hint="all arrays of a step must be equally long, and equally wide in every episode",
            )
        if array.dtype != dtype and not np.can_cast(array.dtype, dtype):
            raise EluteError(
                f"{self.path}: {group.rstrip('/')}/{name} is {array.dtype}, "
                f"other episodes are {dtype}"
            )
        return array


def _offsets(runs: list[tuple[int, int]]) -> list[int]:
    return [0, *np.cumsum([stop - start for start, stop in runs])[:-1].tolist()]
