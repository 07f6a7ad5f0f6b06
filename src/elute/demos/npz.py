"""elute's own `.npz`: every array by its name, episodes as lengths, the note as text.

Only `observations` and `actions` are required, so `np.savez(path, observations=o, actions=a)`
makes a valid file (one episode). Arrays are stored uncompressed, so that any rows of them can be
read alone; those that somebody else compressed are read whole.
"""

import lzma
import math
import shutil
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from elute.columns import Column, columns
from elute.demos import note
from elute.demos.format import ReadOptions
from elute.demos.hdf5 import stamp
from elute.demos.hdf5_write import container_losses
from elute.demos.view import taken, whole
from elute.episodes import Array, Episodes, Origin, Piece, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

NAME = "npz"
SUFFIXES = (".npz",)

_CORE = ("observations", "actions", "rewards", "next_observations")
_LENGTHS = "episode_lengths"
_EXTRA = "extra/"
_LARGE, _FOLDED = 2**29, 100
"""Bytes above which an array may not be more than so many times its compressed size."""
_SMALL = (_LENGTHS, note.NAME)
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error,
               lzma.LZMAError, RuntimeError, MemoryError, OverflowError, TypeError,
               SyntaxError, tokenize.TokenError)  # fmt: skip


def detect(path: Path) -> bool:
    """Whether it is a zip archive of `.npy` arrays."""
    try:
        return path.is_file() and zipfile.is_zipfile(path)
    except OSError:
        return False


@dataclass(frozen=True)
class _Stored:
    """Where an array lies in the file."""

    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def read(self, path: Path, start: int, stop: int) -> Array:
        """Rows `start..stop`."""
        entries = int(np.prod(self.shape[1:], dtype=np.int64))
        with path.open("rb") as file:
            file.seek(self.offset + start * entries * self.dtype.itemsize)
            values: Array = np.fromfile(file, self.dtype, (stop - start) * entries)
        if len(values) < (stop - start) * entries:
            raise EluteError(f"{path}: ends too early", hint="the file may be truncated")
        return values.reshape(stop - start, *self.shape[1:])


@dataclass(frozen=True, eq=False)
class NpzDemos:
    """An npz file, open in name only: every call opens, reads and closes it."""

    path: Path
    arrays: Mapping[str, "Array | _Stored"]
    episodes: Episodes
    observation_columns: tuple[Column, ...]
    action_columns: tuple[Column, ...]
    provenance: Provenance
    origin: Origin

    def select(self, episodes: Sequence[int]) -> DemoSource:
        """The same file, only these episodes."""
        source: DemoSource = self
        return taken(source, whole(self.episodes, episodes))

    def rows(self, start: int, stop: int) -> Demonstrations:
        """Rows `start..stop`, read from the file."""
        read = {
            name: array.read(self.path, start, stop)
            if isinstance(array, _Stored)
            else array[start:stop]
            for name, array in self.arrays.items()
        }
        inside = self.episodes.pieces(start, stop)
        return self._demonstrations(read, self.episodes.cut(inside), inside)

    def check(self) -> None:
        """Refuse arrays that do not fit each other, without reading them."""
        shapes = {
            name: np.broadcast_to(np.zeros((), array.dtype), array.shape)
            for name, array in self.arrays.items()
        }
        self._demonstrations(shapes, self.episodes, whole(self.episodes, range(len(self.episodes))))

    def _demonstrations(
        self, arrays: Mapping[str, Array], episodes: Episodes, pieces: Sequence[Piece]
    ) -> Demonstrations:
        core = {name: array for name, array in arrays.items() if name in _CORE}
        extras = {k.removeprefix(_EXTRA): array for k, array in arrays.items() if k not in _CORE}
        return Demonstrations(
            **core,
            extras=extras,
            episodes=episodes,
            observation_columns=self.observation_columns,
            action_columns=self.action_columns,
            provenance=self.provenance,
            origin=replace(self.origin, pieces=tuple(pieces)),
        )


def read(path: Path, options: ReadOptions) -> NpzDemos:
    """Open an npz file."""
    del options  # the file says all
    try:
        found = _arrays(path)
        small = {name: _whole(found[name], path) for name in _SMALL if name in found}
    except _UNREADABLE as error:
        raise EluteError(
            f"{path}: cannot be read as {NAME}: {error}",
            hint="the file may be truncated or damaged",
        ) from error
    for name in ("observations", "actions"):
        if name not in found:
            present = ", ".join(found) or "nothing"
            raise EluteError(f"{path}: array {name!r} is missing", hint=f"it holds {present}")
    header = _header(found, small, path)
    demos = NpzDemos(
        path=path,
        arrays={name: array for name, array in found.items() if name not in _SMALL},
        episodes=header.episodes,
        observation_columns=header.observation_columns,
        action_columns=header.action_columns,
        provenance=header.provenance,
        origin=Origin(
            path, NAME, stamp(path), tuple(whole(header.episodes, range(len(header.episodes))))
        ),
    )
    demos.check()
    return demos


def _whole(array: "Array | _Stored", path: Path) -> Array:
    return array.read(path, 0, array.shape[0]) if isinstance(array, _Stored) else array


def _header(
    arrays: "Mapping[str, Array | _Stored]", small: Mapping[str, Array], path: Path
) -> note.Header:
    for name in _CORE[:2]:
        if len(arrays[name].shape) != 2:
            raise EluteError(
                f"{path}: {name} has shape {arrays[name].shape}; expected (rows, columns)"
            )
    n = arrays["actions"].shape[0]
    lengths = small.get(_LENGTHS, np.array([n] if n else [], dtype=np.int64))
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise EluteError(f"{path}: {_LENGTHS} are {lengths.dtype} of shape {lengths.shape}; "
                         "expected a list of integers")  # fmt: skip
    header = note.Header(
        episodes=Episodes.of(lengths),
        observation_columns=columns("observation", arrays["observations"].shape[1]),
        action_columns=columns("action", arrays["actions"].shape[1]),
        provenance=Provenance(source=str(path), format=NAME),
    )
    if note.NAME not in small:
        return header
    return note.apply(note.decode(str(small[note.NAME]), str(path)), header)


def _check_unfolding(info: zipfile.ZipInfo) -> None:
    """Refuse a small member that would fill the memory."""
    if info.file_size > _LARGE and info.file_size > _FOLDED * info.compress_size:
        raise ValueError(
            f"{info.filename} would unfold from {info.compress_size / 2**20:.1f} MiB to "
            f"{info.file_size / 2**30:.1f} GiB; what np.savez writes is read in pieces instead"
        )


def _arrays(path: Path) -> "dict[str, Array | _Stored]":
    arrays: dict[str, Array | _Stored] = {}
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive, path.open("rb") as raw:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            with archive.open(info) as member:
                shape, fortran, dtype = _npy_header(member)
                offset = member.tell()
                _check_unfolding(info)
                if info.compress_type != zipfile.ZIP_STORED or not shape or 0 in shape or fortran:
                    member.seek(0)
                    arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
                    continue
            raw.seek(info.header_offset + 26)  # the local header's own lengths of name and extra
            name_length, extra_length = np.frombuffer(raw.read(4), dtype="<u2").tolist()
            start = info.header_offset + 30 + name_length + extra_length + offset
            if dtype.hasobject:
                raise ValueError(f"{name} holds Python objects")
            arrays[name] = _Stored(start, dtype, shape)
            if start + dtype.itemsize * math.prod(shape) > size or min(shape) < 0:
                raise ValueError(f"{name} is longer than the file")
    return arrays


def _npy_header(member: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:  # noqa: ANN401
    version = np.lib.format.read_magic(member)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(member)
    return np.lib.format.read_array_header_2_0(member)


def write(path: Path, source: DemoSource, sample: Demonstrations) -> "NpzWriter":
    """Start an npz file."""
    return NpzWriter(path, source, sample)


class NpzWriter:
    """Gathers rows in nameless files beside the output and zips them when all are there."""

    def __init__(self, path: Path, source: DemoSource, sample: Demonstrations) -> None:
        self.path, self.source = path, source
        self.losses = container_losses(source, None)
        self.copied = False
        self.types = {name: like.dtype for name, like in _named(sample).items()}
        self.parts: dict[str, Any] = {}
        for name, like in _named(sample).items():
            self.parts[name] = tempfile.TemporaryFile(dir=path.parent)  # noqa: SIM115 (see close)
            header = {
                "descr": np.lib.format.dtype_to_descr(like.dtype),
                "fortran_order": False,
                "shape": (source.episodes.n_rows, *like.shape[1:]),
            }
            np.lib.format.write_array_header_1_0(self.parts[name], header)

    def put(
        self, start: int, rows: Demonstrations, unchanged: Demonstrations | None = None
    ) -> None:
        """Write rows from `start` on."""
        del start, unchanged  # every array is written anew, in order
        for name, values in _named(rows).items():
            self.parts[name].write(values.astype(self.types[name], copy=False).tobytes())

    def finish(self) -> None:
        """Zip everything, uncompressed so that its rows can be read alone."""
        small: dict[str, Array] = {
            _LENGTHS: self.source.episodes.lengths,
            note.NAME: np.array(
                note.encode(self.source, attributes=self.source.episodes.attributes)
            ),
        }
        with zipfile.ZipFile(self.path, "w", zipfile.ZIP_STORED) as archive:
            for name, part in self.parts.items():
                part.seek(0)
                info = zipfile.ZipInfo(f"{name}.npy")  # no time of day: same rows, same bytes
                with archive.open(info, "w", force_zip64=True) as member:
                    shutil.copyfileobj(part, member, 2**20)
            for name, values in small.items():
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                    np.lib.format.write_array(member, values, allow_pickle=False)

    def close(self) -> None:
        """The nameless files vanish when they are closed."""
        for part in self.parts.values():
            part.close()


def _named(rows: Demonstrations) -> dict[str, Array]:
    core = {name: getattr(rows, name) for name in _CORE}
    extras = {_EXTRA + name: values for name, values in rows.extras.items()}
    return {name: array for name, array in {**core, **extras}.items() if array is not None}
