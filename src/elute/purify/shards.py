"""A file purified shard by shard, so that what is finished is never done again.

    with shard_folder(path, work) as shards:
        for start, stop in shards.missing(chunk_bounds(source.episodes)):
            rows = source.rows(start, stop)
            shards.put(start, differences(rows, purification(start, rows)))
        save(source, output, transform=shards.patch)         # one pass, in order

A shard is a chunk of rows: the noise of a row depends on its number alone, so shards can be
purified by anyone, in any order. One file holds the arrays of a shard that purification changed; it
has its name only when it is complete. `work` is a digest of all that the numbers depend on: a
folder of other work is begun anew.
"""

import fcntl
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from elute.episodes import Array
from elute.errors import EluteError
from elute.purify.purifier import Transform
from elute.types import Demonstrations

MOVED = "moved"
"""Extra column: how far each pair moved, in standard deviations per column."""
_CORE = ("observations", "actions", "rewards", "next_observations")
_EXTRA = "extra/"
_WORK = "work"


@dataclass(frozen=True, eq=False)
class Purification:
    """All that purifying any rows of a file takes."""

    transform: Transform
    scale: Array
    """What each column's moves are measured in."""
    seed: int

    def __call__(self, start: int, rows: Demonstrations) -> Demonstrations:
        """These rows, purified, with how far each moved."""
        cleaned = self.transform(rows, first_row=start, seed=self.seed)
        away = (cleaned.pairs - rows.pairs) / self.scale
        return cleaned.with_extra(MOVED, np.sqrt((away**2).mean(axis=1)))


def differences(before: Demonstrations, after: Demonstrations) -> dict[str, Array]:
    """The arrays of rows that are no longer as they were, by name."""
    old, new = _arrays(before), _arrays(after)
    return {
        name: array
        for name, array in new.items()
        if name not in old or not np.array_equal(array, old[name])
    }


def _arrays(rows: Demonstrations) -> dict[str, Array]:
    core = {name: getattr(rows, name) for name in _CORE}
    extras = {_EXTRA + name: array for name, array in rows.extras.items()}
    return {name: array for name, array in {**core, **extras}.items() if array is not None}


@dataclass(frozen=True)
class Shards:
    """A folder with the shards that are finished."""

    folder: Path

    def _path(self, start: int) -> Path:
        return self.folder / f"{start}.npz"

    def missing(self, bounds: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Of these shards, the ones that are not finished."""
        return [(start, stop) for start, stop in bounds if not self._path(start).exists()]

    def put(self, start: int, arrays: Mapping[str, Array]) -> None:
        """What changed in the shard that begins with this row; on the disk when this returns."""
        path = self._path(start)
        temporary = path.with_name(f"{start}.{os.getpid()}.partial")
        try:
            with temporary.open("wb") as file:
                given: dict[str, Any] = dict(arrays)
                np.savez(file, **given)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise EluteError(
                f"{path}: cannot be written: {error.strerror}",
                hint="finished shards are kept; the same command goes on with them",
            ) from error

    def patch(self, start: int, rows: Demonstrations) -> Demonstrations:
        """The rows of the file, as their shard has them."""
        try:
            with np.load(self._path(start), allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise EluteError(
                f"{self._path(start)}: a damaged shard", hint="delete it and begin again"
            ) from error
        core: dict[str, Any] = {name: arrays.pop(name) for name in _CORE if name in arrays}
        extras = {name.removeprefix(_EXTRA): array for name, array in arrays.items()}
        return replace(rows, **core, extras={**rows.extras, **extras})


@contextmanager
def shard_folder(folder: Path, work: str) -> Iterator[Shards]:
    """The finished shards of this work, for one process at a time; gone when the block ends well.

    Raises:
        EluteError: it cannot be made, or another process is at it.
    """
    if folder.is_symlink() or (folder.is_dir() and not (folder / _WORK).is_file()):
        raise EluteError(f"{folder}: stands in the way of the shards", hint="move it away")
    try:
        folder.mkdir(exist_ok=True)
        file = (folder / _WORK).open("a+", encoding="utf-8")
    except OSError as error:
        raise EluteError(f"{folder}: cannot be made: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # let go however the process ends
        except BlockingIOError as error:
            raise EluteError(
                f"{folder}: another process is writing this output", hint="wait for it"
            ) from error
        file.seek(0)
        if file.read() != work:
            for path in [*folder.glob("*.npz"), *folder.glob("*.partial")]:
                path.unlink()
            file.truncate(0)
            file.write(work)
            file.flush()
        yield Shards(folder)
        shutil.rmtree(folder, ignore_errors=True)
