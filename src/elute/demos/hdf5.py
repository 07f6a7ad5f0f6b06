"""Reading HDF5 files of demonstrations, whole or a chunk at a time.

A format says once where its file keeps things (`Layout`); reading, chunking and patching then
need no further knowledge of it. Flat formats (VILD, D4RL) have one group, the root; the others
(robomimic, Minari) have one group per episode.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np

from elute.columns import Column, columns
from elute.demos import note as notes
from elute.episodes import Array, Episodes, Origin, Piece, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations

_UNREADABLE = (OSError, KeyError, ValueError, TypeError, RuntimeError, MemoryError, OverflowError)

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


@contextmanager
def reading(path: Path, format_name: str) -> Iterator[h5py.File]:
    """An HDF5 file open for reading; whatever is wrong with it becomes an `EluteError`."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except _UNREADABLE as error:
        reason = str(error.args[0] if error.args else error).splitlines()[0][:200]
        raise EluteError(
            f"{path}: cannot be read as {format_name}: {reason}",
            hint="the file may be truncated or damaged; `h5ls -r` shows what is in it",
        ) from error


def root_names(path: Path) -> list[str]:
    """What stands at the root of an HDF5 file; nothing if it is none."""
    try:
        with h5py.File(path, "r") as file:
            return list(file)
    except _UNREADABLE:
        return []


def dataset(group: h5py.Group, name: str, path: Path) -> h5py.Dataset:
    """An array that must be there.

    Raises:
        EluteError: it is missing, or no array of numbers with rows.
    """
    found = group.get(name)
    where = f"{path}: {group.name.rstrip('/')}/{name}"
    if found is None:
        present = ", ".join(sorted(group)[:12]) or "nothing"
        raise EluteError(f"{where} is missing", hint=f"{group.name} holds {present}")
    if not isinstance(found, h5py.Dataset) or found.dtype.kind not in "fiub" or not found.shape:
        raise EluteError(f"{where} is no array of numbers with one row per step")
    return found


def row_arrays(group: h5py.Group, rows: int, *, skip: Sequence[str] = ()) -> dict[str, bool]:
    """Names of all arrays below with one row per step -> whether elute can hold them.

    Images and other tensors, strings and compound types cannot be held; they are carried.
    """
    found: dict[str, bool] = {}

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if (
            name.split("/", maxsplit=1)[0] in skip
            or name in skip
            or not isinstance(item, h5py.Dataset)
        ):
            return
        if item.shape and item.shape[0] in (rows, rows + 1):
            held = item.ndim <= 2 and item.dtype.kind in "fiub" and item.shape[0] == rows
            found[name] = held

    group.visititems(visit)
    return found


def array_columns(
    group: h5py.Group, names: Sequence[str], keys: Sequence[str], path: Path
) -> tuple[Column, ...]:
    """The columns that these arrays make when they are concatenated under these key names."""
    made: list[Column] = []
    for name, key in zip(names, keys, strict=True):
        array = dataset(group, name, path)
        if array.ndim > 2:
            raise EluteError(
                f"{path}: {array.name} has shape {array.shape}; expected (rows, columns)"
            )
        width = 1 if array.ndim == 1 else array.shape[1]
        made += columns(key, width, discrete=array.dtype.kind in "iub")
    return tuple(made)


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
        starts, lengths = self.episodes.starts, self.episodes.lengths
        pieces = [Piece(int(starts[e]), int(lengths[e])) for e in episodes]
        chosen = tuple(self.origin.pieces[e] for e in episodes)
        return replace(
            self, episodes=self.episodes.cut(pieces), origin=replace(self.origin, pieces=chosen)
        )

    def rows(self, start: int, stop: int) -> Demonstrations:
        """Rows `start..stop`, read from the file."""
        pieces = self.episodes.pieces(start, stop)
        episodes = self.episodes.cut(pieces)
        first = self.episodes.of_row(start)
        starts = self.episodes.starts
        file_pieces = tuple(
            Piece(self.origin.pieces[first + i].start + piece.start - int(starts[first + i]),
                  piece.length)
            for i, piece in enumerate(pieces)
        )  # fmt: skip
        with reading(self.path, self.format) as file:
            arrays = _Reader(file, self.path, self.layout).read(merged(file_pieces))
        following = arrays["next_observations"]
        if self.episodes.final_repeated.all():
            following = None  # there is none but the repeated ones
        return Demonstrations(
            observations=arrays["observations"],
            actions=arrays["actions"],
            rewards=arrays["rewards"],
            next_observations=following,
            extras=arrays["extras"],
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


def stamp(path: Path) -> tuple[int, int]:
    """Changes when the file does."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns


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


class _Reader:
    """Fills arrays from runs of file rows."""

    def __init__(self, file: h5py.File, path: Path, layout: Layout) -> None:
        self.file, self.path, self.layout = file, path, layout
        self.group_rows = dict(zip(layout.groups, layout.group_rows, strict=True))

    def read(self, runs: list[tuple[int, int]]) -> dict[str, Any]:
        layout = self.layout
        spans = [
            (group, first, last, base + at)
            for (start, stop), base in zip(runs, _offsets(runs), strict=True)
            for group, first, last, at in layout.spans(start, stop)
        ]
        n = sum(stop - start for start, stop in runs)
        observations = self._joined(layout.observations, spans, n)
        following = None
        if layout.final_row:
            following = self._joined(layout.observations, spans, n, offset=1)
        elif layout.next_observations:
            following = self._joined(layout.next_observations, spans, n)
        rewards = self._joined((layout.rewards,), spans, n)[:, 0] if layout.rewards else None
        return {
            "observations": observations,
            "actions": self._joined(layout.actions, spans, n),
            "rewards": rewards,
            "next_observations": following,
            "extras": {k: self._extra(name, spans, n) for k, name in layout.extras.items()},
        }

    def _joined(
        self, names: Sequence[str], spans: list[tuple[str, int, int, int]], n: int, offset: int = 0
    ) -> Array:
        first = [dataset(self.file[spans[0][0]], name, self.path) for name in names]
        widths = [1 if array.ndim == 1 else array.shape[1] for array in first]
        joined = np.empty((n, sum(widths)), dtype=np.result_type(*(a.dtype for a in first)))
        for group, start, stop, at in spans:
            column = 0
            for name, width in zip(names, widths, strict=True):
                source = self._array(group, name, width, joined.dtype)
                target = joined[at : at + stop - start, column : column + width]
                self._fill(target, source, start + offset, stop + offset)
                column += width
        return joined

    def _extra(self, name: str, spans: list[tuple[str, int, int, int]], n: int) -> Array:
        flat = dataset(self.file[spans[0][0]], name, self.path).ndim == 1
        joined = self._joined((name,), spans, n)
        return joined[:, 0] if flat else joined

    def _array(self, group: str, name: str, width: int, dtype: np.dtype[Any]) -> h5py.Dataset:
        array = dataset(self.file[group], name, self.path)
        rows = self.layout.rows_of(name, self.group_rows[group])
        found = 1 if array.ndim == 1 else array.shape[1]
        if array.ndim > 2 or array.shape[0] != rows or found != width:
            raise EluteError(
                f"{self.path}: {array.name} has shape {array.shape}; "
                f"expected {rows} rows of {width}",
                hint="all arrays of a step must be equally long, and equally wide in every episode",
            )
        if not np.can_cast(array.dtype, dtype):
            raise EluteError(
                f"{self.path}: {array.name} is {array.dtype}, other episodes are {dtype}"
            )
        return array

    @staticmethod
    def _fill(target: Array, source: h5py.Dataset, start: int, stop: int) -> None:
        if source.ndim == 1:
            target[:, 0] = source[start:stop]
        elif target.flags.c_contiguous and target.dtype == source.dtype:
            source.read_direct(target, np.s_[start:stop])
        else:
            target[...] = source[start:stop]


def _offsets(runs: list[tuple[int, int]]) -> list[int]:
    return [0, *np.cumsum([stop - start for start, stop in runs])[:-1].tolist()]
