"""Arrow IPC streams of other people: mapped into memory, checked before anything is looked at.

A stream is a schema and record batches, uncompressed. What would let few bytes ask for much memory
(compressed buffers) or name Python classes (pickled extension types) is refused unread.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from elute.episodes import Array
from elute.errors import EluteError

_END = b"\xff\xff\xff\xff\0\0\0\0"
_HEADER, _RECORD_BATCH, _COMPRESSION = 2, 3, 3  # numbers of fields and of a type in Arrow's layout


def arrow() -> Any:  # noqa: ANN401 (pyarrow has no types)
    """The library.

    Raises:
        EluteError: it is not installed.
    """
    try:
        import pyarrow  # noqa: PLC0415 (an extra)
        import pyarrow.compute  # noqa: PLC0415
    except ImportError as error:
        raise EluteError(
            "Arrow files need pyarrow, which is not there", hint="pip install 'pyarrow>=17'"
        ) from error
    return pyarrow


@contextmanager
def reading(path: Path) -> Iterator[Any]:
    """The library, while whatever is wrong with a file becomes an `EluteError`."""
    pa = arrow()
    try:
        yield pa
    except (
        pa.ArrowException,
        OSError,
        LookupError,
        ValueError,
        TypeError,
        MemoryError,
        OverflowError,
        RecursionError,
        struct.error,
    ) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise EluteError(
            f"{path}: cannot be read as an Arrow stream: {reason}",
            hint="the file may be truncated or damaged",
        ) from error


def read_batches(path: Path) -> tuple[Any, list[Any]]:
    """The schema and the record batches of a file; their buffers stay on the disk.

    Raises:
        EluteError: the file is damaged, cut off, compressed or not what it should be.
    """
    with reading(path) as pa:
        with path.open("rb") as file:
            file.seek(-len(_END), 2)
            if file.read() != _END:
                raise ValueError("it is cut off, or no Arrow stream")
        messages = _messages(pa.ipc.MessageReader.open_stream(pa.memory_map(str(path))))
        first = next(messages, None)
        if first is None:
            raise ValueError("it is empty")
        if b"arrow.py_extension_type" in first.metadata.to_pybytes():
            raise ValueError("it holds pickled Python types, which are never loaded")
        # read_schema(first) would crash on a damaged one
        schema = pa.ipc.open_stream(pa.memory_map(str(path))).schema
        batches = []
        for message in messages:
            if message.type != "record batch":
                raise ValueError(f"it holds a {message.type}; expected only record batches")
            if _is_compressed(message.metadata.to_pybytes()):
                raise ValueError("it is compressed; expected plain buffers as datasets writes them")
            batch = pa.ipc.read_record_batch(message, schema)
            batch.validate(full=True)  # offsets may point anywhere
            batches.append(batch)
        return schema, batches


def _messages(reader: Any) -> Iterator[Any]:  # noqa: ANN401
    while True:
        try:
            yield reader.read_next_message()
        except StopIteration:
            return


def _is_compressed(message: bytes) -> bool:
    """Whether the header of a record batch says how its buffers are compressed."""
    root = struct.unpack_from("<I", message)[0]
    place = _field(message, root, _HEADER)
    batch = place + struct.unpack_from("<I", message, place)[0]
    return _field(message, batch, _COMPRESSION) > 0


def _field(message: bytes, table: int, number: int) -> int:
    """Where a field of a flatbuffer's table is; 0 if it is not there."""
    names = table - struct.unpack_from("<i", message, table)[0]
    size = struct.unpack_from("<H", message, names)[0]
    if 4 + 2 * number >= size:
        return 0
    offset = struct.unpack_from("<H", message, names + 4 + 2 * number)[0]
    return table + int(offset) if offset else 0


def is_list(kind: Any) -> bool:  # noqa: ANN401
    """Whether a type is one of the three kinds of lists."""
    types = arrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def lists(array: Any, what: str) -> tuple[Array, Any]:  # noqa: ANN401
    """Where each list of an array begins in all their items, and the items.

    Raises:
        EluteError: these are no lists, or some are missing.
    """
    if not is_list(array.type) or array.null_count:
        raise EluteError(f"{what} is {array.type}; expected lists, none of them missing")
    if arrow().types.is_fixed_size_list(array.type):
        size = array.type.list_size
        return np.arange(len(array) + 1, dtype=np.int64) * size, array.flatten()
    return array.offsets.to_numpy().astype(np.int64), array.values


def numbers(array: Any, what: str) -> Array:  # noqa: ANN401
    """An array of numbers, as a view where that can be.

    Raises:
        EluteError: it is none, or some are missing.
    """
    types = arrow().types
    kind = array.type
    numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if not numeric or array.null_count:
        missing = " with missing values" if array.null_count else ""
        raise EluteError(f"{what} is {kind}{missing}; expected numbers")
    found: Array = array.to_numpy(zero_copy_only=not types.is_boolean(kind))
    return found


def matrix(array: Any, what: str) -> Array:  # noqa: ANN401
    """One row of numbers for each list of an array; plain numbers are rows of one.

    Raises:
        EluteError: lists are of different lengths, empty, or hold no numbers.
    """
    if not is_list(array.type):
        return numbers(array, what).reshape(-1, 1)
    begins, items = lists(array, what)
    if is_list(items.type):
        raise EluteError(f"{what} is {array.type}; expected vectors of numbers, not images")
    widths = np.unique(np.diff(begins))
    if len(widths) != 1 or widths[0] == 0:
        raise EluteError(f"{what} has rows of {widths.tolist()[:5]} numbers; expected one width")
    rows: Array = numbers(items, what)[begins[0] : begins[-1]].reshape(-1, int(widths[0]))
    return rows
