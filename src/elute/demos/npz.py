"""elute's own `.npz`: every array by its name, episodes as lengths, the note as text.

Only `observations` and `actions` are required, so `np.savez(path, observations=o, actions=a)`
makes a valid file (one episode). Arrays are stored uncompressed and are mapped, not loaded.
"""

import lzma
import shutil
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from elute.columns import columns
from elute.demos import note
from elute.demos.format import ReadOptions
from elute.demos.hdf5 import stamp
from elute.demos.hdf5_write import container_losses
from elute.episodes import Array, Episodes, Origin, Piece, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

NAME = "npz"
SUFFIXES = (".npz",)

_CORE = ("observations", "actions", "rewards", "next_observations")
_LENGTHS = "episode_lengths"
_EXTRA = "extra/"
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error,
               lzma.LZMAError, RuntimeError, MemoryError, OverflowError, TypeError,
               SyntaxError)  # fmt: skip


def detect(path: Path) -> bool:
    """Whether it is a zip archive of `.npy` arrays."""
    try:
        return path.is_file() and zipfile.is_zipfile(path)
    except OSError:
        return False


def read(path: Path, options: ReadOptions) -> Demonstrations:
    """Open an npz file; its arrays are mapped into memory when they are used."""
    del options  # the file says all
    try:
        arrays = _mapped(path)
    except _UNREADABLE as error:
        raise EluteError(
            f"{path}: cannot be read as {NAME}: {error}",
            hint="the file may be truncated or damaged",
        ) from error
    for name in ("observations", "actions"):
        if name not in arrays:
            present = ", ".join(arrays) or "nothing"
            raise EluteError(f"{path}: array {name!r} is missing", hint=f"it holds {present}")
    header = _header(arrays, path)
    extras = {
        name.removeprefix(_EXTRA): array
        for name, array in arrays.items()
        if name not in (*_CORE, _LENGTHS, note.NAME)
    }
    starts, lengths = header.episodes.starts.tolist(), header.episodes.lengths.tolist()
    return Demonstrations(
        **{name: arrays[name] for name in _CORE if name in arrays},
        extras=extras,
        episodes=header.episodes,
        observation_columns=header.observation_columns,
        action_columns=header.action_columns,
        provenance=header.provenance,
        origin=Origin(path, NAME, stamp(path), tuple(map(Piece, starts, lengths))),
    )


def _header(arrays: dict[str, Array], path: Path) -> note.Header:
    for name in _CORE[:2]:
        if arrays[name].ndim != 2:
            raise EluteError(
                f"{path}: {name} has shape {arrays[name].shape}; expected (rows, columns)"
            )
    n = len(arrays["actions"])
    lengths = arrays.get(_LENGTHS, np.array([n] if n else [], dtype=np.int64))
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise EluteError(f"{path}: {_LENGTHS} are {lengths.dtype} of shape {lengths.shape}; "
                         "expected a list of integers")  # fmt: skip
    header = note.Header(
        episodes=Episodes.of(lengths),
        observation_columns=columns("observation", arrays["observations"].shape[1]),
        action_columns=columns("action", arrays["actions"].shape[1]),
        provenance=Provenance(source=str(path), format=NAME),
    )
    if note.NAME not in arrays:
        return header
    return note.apply(note.decode(str(arrays[note.NAME]), str(path)), header)


def _mapped(path: Path) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    with zipfile.ZipFile(path) as archive, path.open("rb") as raw:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            with archive.open(info) as member:
                shape, fortran, dtype = _npy_header(member)
                offset = member.tell()
                if info.compress_type != zipfile.ZIP_STORED or not shape or 0 in shape or fortran:
                    member.seek(0)
                    arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
                    continue
            raw.seek(info.header_offset + 26)  # the local header's own lengths of name and extra
            name_length, extra_length = np.frombuffer(raw.read(4), dtype="<u2").tolist()
            start = info.header_offset + 30 + name_length + extra_length + offset
            if dtype.hasobject:
                raise ValueError(f"{name} holds Python objects")
            arrays[name] = np.memmap(path, dtype, mode="r", offset=start, shape=shape)
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
        """Zip everything, uncompressed so that it can be mapped again."""
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
