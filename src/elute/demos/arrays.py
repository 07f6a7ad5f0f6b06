"""Arrays in HDF5 files: opening what other tools wrote, and saying what is wrong with it."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np

from elute.columns import Column, columns
from elute.episodes import Array
from elute.errors import EluteError

_UNREADABLE = (
    OSError,
    LookupError,
    ValueError,
    TypeError,
    RuntimeError,
    MemoryError,
    OverflowError,
)


@contextmanager
def reading(path: Path, format_name: str) -> Iterator[h5py.File]:
    """An HDF5 file open for reading; whatever is wrong with it becomes an `EluteError`."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except _UNREADABLE as error:
        said = error.args[0] if isinstance(error, KeyError) and error.args else error
        reason = (str(said) or type(error).__name__).splitlines()[0][:200]
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
    try:
        found = group[name]
    except KeyError as error:
        present = ", ".join(sorted(group)[:12]) or "nothing"
        raise EluteError(
            f"{path}: {_inside(group, name)} is missing", hint=f"{group.name} holds {present}"
        ) from error
    if not isinstance(found, h5py.Dataset) or found.dtype.kind not in "fiub" or not found.shape:
        raise EluteError(
            f"{path}: {_inside(group, name)} is no array of numbers with one row per step"
        )
    return found


class Rows:
    """An array that must be there, read through h5py's low-level calls.

    A file with a group per episode has thousands of arrays, and the usual calls cost more to open
    one than to read it.
    """

    def __init__(self, group: h5py.Group, name: str, path: Path) -> None:
        try:
            self._id = h5py.h5d.open(group.id, name.encode())
            self.shape, self.dtype = self._id.shape, self._id.dtype
        except (KeyError, ValueError, TypeError):
            self._id = dataset(group, name, path).id  # says what is wrong
            self.shape, self.dtype = self._id.shape, self._id.dtype
        if self.dtype.kind not in "fiub" or not self.shape:
            dataset(group, name, path)

    def read(self, start: int, stop: int, into: Array | None = None) -> Array:
        """Rows `start..stop`, into a contiguous array of any type if one is given."""
        count = (stop - start, *self.shape[1:])
        rows = np.empty(count, self.dtype) if into is None else into
        space = self._id.get_space()
        space.select_hyperslab((start, *(0 for _ in count[1:])), count)
        self._id.read(h5py.h5s.create_simple(count), space, rows)
        return rows


def _inside(group: h5py.Group, name: str) -> str:
    return f"{group.name.rstrip('/')}/{name}"


def row_arrays(group: h5py.Group, rows: int, *, skip: Sequence[str] = ()) -> dict[str, bool]:
    """Names of all arrays below -> whether elute can hold them: numbers, one row per step.

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
        has_rows = bool(item.shape) and item.ndim <= 2 and item.shape[0] == rows
        found[name] = has_rows and item.dtype.kind in "fiub"

    group.visititems(visit)
    return found


def shared_arrays(
    groups: Sequence[h5py.Group], lengths: Sequence[int], *, skip: Collection[str]
) -> dict[str, bool]:
    """Names of all arrays below any group -> whether elute can hold them.

    It can hold numbers, one row per step, in every group, equally wide and of one type.
    """
    kinds: dict[str, list[object]] = {}
    for group, rows in zip(groups, lengths, strict=True):
        names: list[str] = []
        group.visit(names.append)  # only names: opening every object is what takes time
        for name in names:
            array = None if name in skip else group[name]
            if isinstance(array, h5py.Dataset):
                shape, dtype = array.shape, array.dtype
                held = 0 < len(shape) <= 2 and shape[0] == rows and dtype.kind in "fiub"
                kinds.setdefault(name, []).append((shape[1:], dtype) if held else None)
    return {
        name: found[0] is not None and found == found[:1] * len(groups)
        for name, found in kinds.items()
    }


def mixed_types(group: h5py.Group, names: Sequence[str], keys: Sequence[str]) -> dict[str, str]:
    """Key -> type of the arrays that are joined, where they differ; joined, they have one type."""
    types = {key: str(group[name].dtype) for name, key in zip(names, keys, strict=True)}
    return types if len(set(types.values())) > 1 else {}


def strangers(file: h5py.File, known: Collection[str]) -> list[str]:
    """What else stands at the root of a file."""
    return [name for name in file if name not in known] + ["attributes of the file"] * bool(
        len(file.attrs)
    )


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
