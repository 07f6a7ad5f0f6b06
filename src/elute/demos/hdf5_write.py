"""Writing HDF5 files: copy a container and patch only what changed, or fill a fresh one."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elute.columns import is_action_side
from elute.demos import note as notes
from elute.demos.hdf5 import Layout, merged, stamp
from elute.demos.hdf5_output import OutputFile
from elute.demos.uninterrupted import uninterrupted
from elute.episodes import Array, Episodes, Origin, Piece
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

COPY_BYTES = 32 * 2**20
"""At most this much of a carried column (images) is in memory while it is copied."""


def write_note(file: h5py.File, text: str) -> None:
    """Leave the note, in place of an older one."""
    if notes.NAME in file:
        del file[notes.NAME]
    file[notes.NAME] = text


class Hdf5Writer:
    """A file whose arrays exist; rows are put into them chunk by chunk."""

    def __init__(
        self,
        file: OutputFile,
        layout: Layout,
        episodes: Episodes,
        losses: Sequence[str],
        *,
        copied: bool,
        then: Callable[[], None] = lambda: None,
    ) -> None:
        self.file, self.layout, self.episodes, self.then = file, layout, episodes, then
        self.losses, self.copied = list(losses), copied
        self._group_rows = dict(zip(layout.groups, layout.group_rows, strict=True))

    def put(
        self, start: int, rows: Demonstrations, unchanged: Demonstrations | None = None
    ) -> None:
        """Write a chunk; arrays that still are those of `unchanged` stand in the file already."""
        layout = self.layout
        following = rows.next_observations
        for group, first, last, at in layout.spans(start, start + len(rows)):
            here = _Put(self.file[group], slice(first, last), slice(at, at + last - first))
            if _differs(rows, unchanged, "observations"):
                here.split(layout.observations, rows.observations)
            if layout.final_row and last == self._group_rows[group]:
                here.final(layout, rows.observations if following is None else following)
            if _differs(rows, unchanged, "actions"):
                here.split(layout.actions, rows.actions)
            if layout.rewards and _differs(rows, unchanged, "rewards"):
                here.split((layout.rewards,), rows.rewards)
            if layout.next_observations and _differs(rows, unchanged, "next_observations"):
                here.split(layout.next_observations, following)
            for name, values in rows.extras.items():
                before = None if unchanged is None else unchanged.extras.get(name)
                if before is None or _moved(values, before):
                    self._put_extra(here, group, name, values)
        self.file.check()

    def _put_extra(self, here: "_Put", group: str, name: str, values: Array) -> None:
        inside = self.layout.extras.get(name, f"{self.layout.extras_in}{name}")
        if inside in self.layout.arrays or inside == notes.NAME:
            raise EluteError(
                f"the extra column {name!r} has the name of an array that the format itself uses",
                hint="write it as .npz, or rename the column",
            )
        if values.dtype.kind == "U":  # HDF5 has no UTF-32
            text = h5py.string_dtype("utf-8", values.dtype.itemsize)
            values = np.char.encode(values, "utf-8").astype(text)
        found = here.group.get(inside)
        if found is not None and (found.dtype, found.shape[1:]) != (values.dtype, values.shape[1:]):
            del here.group[inside]
        if inside not in here.group:
            rows = self.layout.rows_of(inside, self._group_rows[group])
            here.group.create_dataset(inside, (rows, *values.shape[1:]), dtype=values.dtype)
        here.group[inside][here.rows] = values[here.at]

    def put_ends(self) -> None:
        """Set the flags on the last row of every episode; other rows stay as they are."""
        stops, episodes = self.episodes.stops, self.episodes
        unfinished = ~(episodes.terminated | episodes.truncated)
        is_tail = np.arange(len(stops)) == len(stops) - 1
        truncated = episodes.truncated.copy()
        if len(self.layout.groups) == 1:
            truncated |= unfinished & ~is_tail  # only a flag can part two episodes of a flat file
        values = {
            "terminated": episodes.terminated,
            "truncated": truncated,
            "continues": unfinished & is_tail,
        }
        bounds = np.cumsum((0, *self.layout.group_rows)).tolist()
        for i, group in enumerate(self.layout.groups):
            inside = slice(*np.searchsorted(stops, bounds[i : i + 2], side="right"))
            for name, meaning in self.layout.ends.items():
                flags = self.file[group][name]
                changed = flags[:]
                last_rows = stops[inside] - 1 - bounds[i]
                changed[last_rows] = values[meaning][inside].reshape(-1, *flags.shape[1:])
                flags[:] = changed

    def finish(self) -> None:
        """Everything is written."""
        self.file.close()
        self.file.check()
        self.then()

    def close(self) -> None:
        """Let go of the file."""
        with uninterrupted():
            self.file.close()


@dataclass(frozen=True)
class _Put:
    """Where a chunk's rows `at` go: `rows` of a group."""

    group: h5py.Group
    rows: slice
    at: slice

    def split(self, names: Sequence[str], values: Array | None) -> None:
        if values is None:
            return
        column = 0
        for name in names:
            array = self.group[name]
            width = 1 if array.ndim == 1 else array.shape[1]
            part = values[self.at] if values.ndim == 1 else values[self.at, column : column + width]
            array[self.rows] = _fitting(part, array).reshape(-1, *array.shape[1:])
            column += width

    def final(self, layout: Layout, following: Array) -> None:
        """The observation after the last action of the group."""
        row, at = self.rows.stop, self.at.stop
        last = _Put(self.group, slice(row, row + 1), slice(at - 1, at))
        last.split(layout.observations, following)


def _differs(rows: Demonstrations, unchanged: Demonstrations | None, name: str) -> bool:
    if unchanged is None:
        return True
    new, old = getattr(rows, name), getattr(unchanged, name)
    if new is None or old is None:
        return new is not old
    return _moved(new, old)


def _moved(new: Array, old: Array) -> bool:
    return bool(new.ctypes.data != old.ctypes.data or new.shape != old.shape)


def _fitting(values: Array, target: h5py.Dataset) -> Array:
    """Values in the type of an array; HDF5 itself would round them without a word."""
    if target.dtype.kind not in "iub" or values.dtype.kind != "f":
        return values
    with np.errstate(invalid="ignore"):
        rounded = values.astype(target.dtype)
    if not np.array_equal(rounded, values):
        raise EluteError(
            f"{target.name} is stored as {target.dtype}, which cannot hold the new values",
            hint="write it as .npz",
        )
    return rounded


def put_attributes(group: h5py.Group, attributes: Mapping[str, Any]) -> None:
    """What an HDF5 attribute can hold as it is; the rest goes into the note."""
    for name, value in attributes.items():
        number = isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63)
        if number:
            group.attrs[name] = value
        elif isinstance(value, str) and "\0" not in value:
            group.attrs[name] = notes.storable(value)
        elif isinstance(value, list) and value and {type(item) for item in value} <= {float, int}:
            group.attrs[name] = np.array(value)


def unheld(
    groups: Sequence[h5py.Group], episodes: Episodes, *, skip: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Of each episode, the attributes that its group has not."""
    return [
        {name: value for name, value in attributes.items()
         if name not in group.attrs and name not in skip}
        for group, attributes in zip(groups, episodes.attributes, strict=True)
    ]  # fmt: skip


def is_whole(origin: Origin, rows: int) -> bool:
    """Whether the pieces are the whole file in its order, so that it can be copied as it is."""
    at = 0
    for piece in origin.pieces:
        if piece.start != at or piece.shift:
            return False
        at += piece.length
    return at == rows


def is_every_group(origin: Origin, rows: Sequence[int]) -> bool:
    """The same for a file with one group per episode: no episode may have been split either."""
    whole = is_whole(origin, sum(rows))
    return whole and [piece.length for piece in origin.pieces] == list(rows)


def container(source: DemoSource, format_name: str) -> Origin | None:
    """The file these demonstrations were read from, if a writer of the format can copy it."""
    origin = source.origin
    if origin is None or origin.format != format_name or not origin.path.exists():
        return None
    return origin if stamp(origin.path) == origin.stamp else None


def container_losses(source: DemoSource, copied: Origin | None) -> list[str]:
    """What stays behind in the source file because its container is not copied."""
    origin = source.origin
    if origin is None or copied is not None:
        return []
    lost = [f"{name}: not an array elute holds; only {origin.format} to {origin.format} keeps it"
            for name in origin.carried]  # fmt: skip
    if origin.path.exists() and stamp(origin.path) != origin.stamp:
        lost.append(f"{origin.path} has changed since it was read: what elute does not hold")
    return lost


def filler_losses(sample: Demonstrations) -> list[str]:
    """What is said when a format demands rewards and nobody measured them."""
    return [] if sample.rewards is not None else ["rewards are unknown: zeros stand in, so marked"]


def flat_copy(path: Path, origin: Origin, actions: str, *, skip: str = "") -> OutputFile:
    """A copy of a flat file with the rows of `origin`, open for patching."""
    with h5py.File(origin.path, "r") as source:
        rows = source[actions].shape[0]
        if not is_whole(origin, rows):
            target = OutputFile(path, "w", track_order=True, libver="v108")
            copy_rows(source, target, rows, origin.pieces, skip=skip)
            return target
    shutil.copyfile(origin.path, path)
    return OutputFile(path, "r+")


def group_copies(
    source: h5py.File,
    target: h5py.Group,
    groups: Sequence[tuple[str, int]],
    pieces: Sequence[tuple[str, Piece]],
) -> list[int]:
    """Copy pieces of a file with one group per episode, each under its new name.

    Args:
        source: the file that is copied from.
        target: the group that the episodes go into.
        groups: name and rows of each episode of the source, in order.
        pieces: new name and rows of each episode of the target.

    Returns:
        For each piece, the source episode it is from.
    """
    stops = np.cumsum([rows for _, rows in groups])
    owners = []
    for name, piece in pieces:
        owner = int(np.searchsorted(stops, piece.start, side="right"))
        group, rows = groups[owner]
        local = piece._replace(start=piece.start - int(stops[owner]) + rows)
        if local == Piece(0, rows):
            source.copy(group, target, name)
        else:
            copy = target.create_group(name, track_order=True)
            copy_rows(source[group], copy, rows, [local], final_row=True)
        owners.append(owner)
    return owners


def copy_rows(
    source: h5py.Group,
    target: h5py.Group,
    rows: int,
    pieces: Sequence[Piece],
    *,
    skip: str = "",
    final_row: bool = False,
) -> None:
    """Copy everything below a group; arrays with one row per step only in these pieces.

    With `final_row`, arrays with one row more are known to be of the steps as well.
    """
    target.attrs.update(source.attrs)
    for name, item in source.items():
        if name == skip:
            source.copy(item, target, name)
        elif isinstance(item, h5py.Group):
            copy = target.create_group(name, track_order=True)
            copy_rows(item, copy, rows, pieces, final_row=final_row)
        elif item.shape and item.shape[0] in (rows, rows + final_row):
            _copy_pieces(item, target, name, pieces, final_row=item.shape[0] == rows + 1)
        else:
            source.copy(item, target, name)


def _copy_pieces(
    array: h5py.Dataset, target: h5py.Group, name: str, pieces: Sequence[Piece], *, final_row: bool
) -> None:
    shifted = is_action_side(array.name)
    runs = merged([Piece(p.start + p.shift * shifted, p.length + final_row) for p in pieces])
    length = sum(stop - start for start, stop in runs)
    copy = target.create_dataset(name, (length, *array.shape[1:]), **_storage(array, length))
    copy.attrs.update(array.attrs)
    step = max(1, COPY_BYTES // max(1, array.dtype.itemsize * int(np.prod(array.shape[1:]))))
    at = 0
    for start, stop in runs:
        for first in range(start, stop, step):
            last = min(first + step, stop)
            copy[at : at + last - first] = array[first:last]
            at += last - first


def _storage(array: h5py.Dataset, length: int) -> dict[str, Any]:
    """How an array is stored, for a copy with another number of rows."""
    if array.chunks is None:
        return {"dtype": array.dtype}
    growing = (None, *array.maxshape[1:]) if array.maxshape[0] is None else None
    return {
        "dtype": array.dtype,
        "chunks": (min(array.chunks[0], length), *array.chunks[1:]),
        "compression": array.compression,
        "compression_opts": array.compression_opts,
        "shuffle": array.shuffle,
        "fletcher32": array.fletcher32,
        "maxshape": growing,
    }
