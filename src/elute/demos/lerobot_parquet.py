"""Columns of parquet files as numpy arrays, and rows of a file a piece at a time."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from elute.demos.note import storable
from elute.episodes import Array
from elute.errors import EluteError

MOST_BYTES, LONGEST_TEXT = 2**31, 2**20
"""Of a table that is read whole, and of a text in it."""
PIECE_BYTES = 32 * 2**20
"""At most about this much of a file (images, say) is in memory while it is copied."""
MAX_WIDTH = 2**20
"""Nobody observes or does more numbers than this in one step."""

_MAX_ROWS = 65_536
_UNREADABLE = (
    OSError,
    LookupError,
    ValueError,
    TypeError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
    pa.ArrowException,
)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever is wrong with a file becomes an `EluteError` that names it."""
    try:
        yield
    except _UNREADABLE as error:
        said = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise EluteError(
            f"{path}: cannot be read: {said}", hint="the file may be truncated or damaged"
        ) from error


def number_type(kind: pa.DataType) -> np.dtype[Any] | None:
    """The numpy type of a column of numbers or of lists of numbers, if it is one."""
    kind = _inner(_storage(kind))
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return np.dtype(kind.to_pandas_dtype()) if numbers else None


def depth(kind: pa.DataType) -> int:
    """How many lists are inside one another: 0 for one number per row, 1 for a vector."""
    kind, lists = _storage(kind), 0
    while _is_list(kind):
        kind, lists = kind.value_type, lists + 1
    return lists


def is_number(kind: pa.DataType) -> bool:
    """Whether a column has one number per row."""
    return number_type(kind) is not None and not _is_list(kind)


def _storage(kind: pa.DataType) -> pa.DataType:
    """Hugging Face has types of its own for arrays, where its library is loaded."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _inner(kind: pa.DataType) -> pa.DataType:
    while _is_list(kind):
        kind = kind.value_type
    return kind


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)
    )


def numbers(column: pa.ChunkedArray, name: str, shape: Sequence[int]) -> Array:
    """A column as an array of one row per step; scalars come as (n,), lists as (n, *shape).

    Raises:
        EluteError: an entry is missing, or the lists are not of that shape.
    """
    flat, lists = pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0), 0
    if isinstance(flat, pa.ExtensionArray):
        flat = flat.storage
    rows = len(flat)
    while True:
        if flat.null_count:
            raise EluteError(f"column {name!r} has missing entries")
        if not _is_list(flat.type):
            break
        _check_lengths(flat, name, shape[lists] if lists < len(shape) else 0)
        flat, lists = flat.flatten(), lists + 1
    values: Array = flat.to_numpy(zero_copy_only=False)
    return values.reshape(rows, *shape) if lists else values


def _check_lengths(lists: pa.Array, name: str, expected: int) -> None:
    if pa.types.is_fixed_size_list(lists.type):
        found = {lists.type.list_size}
    else:
        found = set(np.unique(lists.value_lengths().to_numpy(zero_copy_only=False)).tolist())
    if len(lists) and found != {expected}:
        sizes = ", ".join(map(str, sorted(found)[:5]))
        raise EluteError(
            f"column {name!r} holds lists of {sizes} numbers; expected {expected} in every row",
            hint="meta/info.json gives the shape of each feature",
        )


def column_type(values: Array) -> pa.DataType:
    """How LeRobot stores such an array: scalars, vectors of fixed size, nested lists."""
    if values.dtype.kind == "U":
        return pa.string()
    kind = pa.from_numpy_dtype(values.dtype.newbyteorder("="))
    if values.shape[1:] in ((), (1,)):
        return kind
    if values.ndim == 2:
        return pa.list_(kind, values.shape[1])
    for _ in values.shape[1:]:
        kind = pa.list_(kind)
    return kind


def column(values: Array, kind: pa.DataType, name: str) -> pa.Array:
    """An array as a column of that type.

    Raises:
        EluteError: the type cannot hold the values.
    """
    if values.dtype.kind == "U":
        return pa.array([storable(text) for text in values.tolist()], type=kind)
    if values.ndim == 1 and _is_list(kind):
        values = values[:, None]
    flat = pa.array(_fitting(values, _inner(kind), name).reshape(-1), type=_inner(kind))
    kinds = []
    while _is_list(kind):
        kinds.append(kind)
        kind = kind.value_type
    for i, outer in reversed(list(enumerate(kinds, start=1))):
        size, count = values.shape[i], prod(values.shape[:i])
        if pa.types.is_fixed_size_list(outer):
            flat = pa.FixedSizeListArray.from_arrays(flat, type=outer)
        else:
            large = pa.types.is_large_list(outer)
            offsets = pa.array(np.arange(count + 1) * size, pa.int64() if large else pa.int32())
            of = pa.LargeListArray if large else pa.ListArray
            flat = of.from_arrays(offsets, flat, type=outer)
    return flat


def _fitting(values: Array, kind: pa.DataType, name: str) -> Array:
    """Values in the type of a column; whole numbers are never rounded without a word."""
    dtype = np.dtype(kind.to_pandas_dtype())
    with np.errstate(invalid="ignore", over="ignore"):
        cast = np.ascontiguousarray(values, dtype=dtype)
    if dtype.kind in "iub" and cast.dtype != values.dtype and not np.array_equal(cast, values):
        raise EluteError(
            f"{name} is stored as {dtype}, which cannot hold the new values",
            hint="write it as .npz",
        )
    return cast


def row_count(path: Path) -> int:
    """How many rows a parquet file has."""
    with reading(path):
        rows: int = pq.read_metadata(path).num_rows
    return rows


def schema(path: Path) -> pa.Schema:
    """The columns of a parquet file."""
    with reading(path):
        found = pq.read_schema(path)
    _check_names(found, path)
    return found


def table(path: Path) -> pa.Table:
    """All of a small parquet file; one that would fill the memory is refused."""
    with reading(path), pq.ParquetFile(path) as file:
        _check_names(file.schema_arrow, path)
        schema = file.schema_arrow
        leaves = [file.schema.column(i) for i in range(len(file.schema))]
        groups = range(file.num_row_groups)
        size = sum(file.metadata.row_group(g).total_byte_size for g in groups)
    if size > MOST_BYTES:
        raise EluteError(f"{path}: {size / 2**30:.1f} GiB, for a table about episodes")
    # A text that is stored once may stand in every row: it is not repeated before it is looked at.
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    with reading(path), pq.ParquetFile(path, read_dictionary=texts) as file:
        found = file.read(use_threads=False)
        for column in found.columns:
            for chunk in column.chunks:
                _check_texts(chunk, path)
        return found.cast(schema)


def _check_texts(values: pa.Array, path: Path) -> None:
    while pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        values = values.flatten()
    if pa.types.is_dictionary(values.type) and len(values.dictionary):
        longest = pc.max(pc.binary_length(values.dictionary)).as_py() or 0
        if longest > LONGEST_TEXT:
            raise EluteError(f"{path}: a text of {longest / 2**20:.0f} MiB")


def _check_names(found: pa.Schema, path: Path) -> None:
    twice = [name for name in set(found.names) if found.names.count(name) > 1]
    if twice:
        raise EluteError(f"{path}: holds the column {twice[0]!r} twice")


def pieces(path: Path, first: int, last: int, names: Sequence[str]) -> Iterator[pa.Table]:
    """Rows `first..last` of some columns, a bounded piece at a time; row groups are skipped."""
    with reading(path), pq.ParquetFile(path) as file:
        _check_names(file.schema_arrow, path)
        missing = [name for name in names if name not in file.schema_arrow.names]
        if missing:
            raise EluteError(f"{path}: column {missing[0]!r} is missing")
        groups, at = _groups(file.metadata, first, last)
        if not groups:
            return
        size = _piece_rows(file.metadata, groups, names)
        for batch in file.iter_batches(size, row_groups=groups, columns=list(names)):
            begin, end = max(first - at, 0), min(last - at, len(batch))
            if begin < end:
                part = batch.slice(begin, end - begin)
                yield pa.Table.from_batches([part]).select(list(names))
            at += len(batch)
            if at >= last:
                return


def regrouped(tables: Iterator[pa.Table], lengths: Sequence[int]) -> Iterator[pa.Table]:
    """The rows of tables as tables of these lengths."""
    waiting: list[pa.Table] = []
    for length in lengths:
        while sum(map(len, waiting)) < length:
            waiting.append(next(tables))
        together = pa.concat_tables(waiting)
        yield together.slice(0, length)
        waiting = [together.slice(length)]


def _groups(metadata: pq.FileMetaData, first: int, last: int) -> tuple[list[int], int]:
    """The row groups that hold these rows, and the first row of the first of them."""
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    stops = np.cumsum(sizes)
    begin = int(np.searchsorted(stops, first, side="right"))
    end = int(np.searchsorted(stops, last, side="left")) + 1
    return list(range(begin, min(end, len(sizes)))), int(stops[begin] - sizes[begin])


def _piece_rows(metadata: pq.FileMetaData, groups: Sequence[int], names: Sequence[str]) -> int:
    """How many rows make a piece: by the size of the columns in the largest of the row groups."""
    largest = 1.0
    for i in groups:
        group = metadata.row_group(i)
        size = sum(
            part.total_uncompressed_size
            for part in map(group.column, range(group.num_columns))
            if any(part.path_in_schema == n or part.path_in_schema.startswith(f"{n}.")
                   for n in names)
        )  # fmt: skip
        largest = max(largest, size / max(1, group.num_rows))
    return int(min(_MAX_ROWS, max(1, PIECE_BYTES // largest)))


def link(source: Path, target: Path) -> None:
    """The same file under another name; a copy where the file system cannot do that."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copyfile(source, target)
