"""Results as lines of JSON: one for each run, appended whole or not at all.

A line is flushed to the disk before anything else is done. If a process was killed in the middle of
one, the torn line stays where it is, is reported when the file is read, and counts for nothing.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from elute.errors import EluteError

Row = Mapping[str, Any]


class Read(NamedTuple):
    """What a file holds."""

    rows: list[dict[str, Any]]
    torn: list[int]
    """Numbers of lines, from 1, that are no JSON object."""


def read(path: Path) -> Read:
    """All rows of a file; of none if there is no file."""
    rows, torn = [], []
    try:
        text = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise EluteError(f"{path}: cannot be read: {error.strerror}") from error
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, dict):
            rows.append(row)
        else:
            torn.append(number)
    return Read(rows, torn)


def append(path: Path, row: Row) -> None:
    """One more line, on the disk when this returns.

    Raises:
        EluteError: it cannot be written; then the file is as it was.
    """
    line = json.dumps(row, allow_nan=False).encode() + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # another process may append, too
            _write(file.fileno(), line)
    except OSError as error:
        raise EluteError(
            f"{path}: cannot be written: {error.strerror}", hint="is the disk full?"
        ) from error


def _write(file: int, line: bytes) -> None:
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        line = b"\n" + line  # a torn line stays by itself
    try:
        if os.write(file, line) != len(line):
            raise OSError(28, "only a part was written")
        os.fsync(file)
    except OSError:
        os.ftruncate(file, size)
        raise
