"""Results as lines of JSON: one for each run, appended whole or not at all.

A line is flushed to the disk before anything else is done. If a process was killed in the middle of
one, the torn line stays where it is, is reported when the file is read, and counts for nothing.
"""

import errno
import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from sys import float_info
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from elute.errors import EluteError

Row = Mapping[str, Any]
KEYS = {"digest", "method", "task", "demos", "regime", "seed", "run", "data", "metrics"}
"""Of every run."""
NAMES = ("digest", "method", "task", "demos", "regime")
NUMBERS = ("mean", "stderr", "normalised", "success")
RUN_KEYS = {"preset", "purifier", "settings"}
FEW = 5
"""Lines that are named one by one."""


class Read(NamedTuple):
    """What a file holds."""

    rows: list[dict[str, Any]]
    numbers: list[int]
    """Of the line of each row, from 1."""
    torn: list[int]
    """Numbers of lines that hold no run."""

    @property
    def warning(self) -> str:
        """Which lines hold no run, in a few words; nothing if all do."""
        first, more = ", ".join(map(str, self.torn[:FEW])), len(self.torn) - FEW
        if not first:
            return ""
        if len(self.torn) == 1:
            return f"line {first} is torn or holds no run"
        return f"lines {first}{f' and {more} more' if more > 0 else ''} are torn or hold no run"


def read(path: Path) -> Read:
    """All rows of a file; of none if there is no file, or a device that may have no end."""
    rows, numbers, torn = [], [], []
    try:
        text = path.read_bytes() if path.exists() and not path.is_char_device() else b""
    except OSError as error:
        raise EluteError(f"{path}: cannot be read: {error.strerror}") from error
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if _holds_run(row):
            rows.append(row)
            numbers.append(number)
        else:
            torn.append(number)
    return Read(rows, numbers, torn)


def _holds_run(row: object) -> bool:
    """Whether it says all that is asked of a line, in the types that are expected."""
    if not (isinstance(row, dict) and row.keys() >= KEYS and type(row["seed"]) is int):
        return False
    run, metrics = row["run"], row["metrics"]
    return (
        isinstance(run, dict)
        and run.keys() >= RUN_KEYS
        and isinstance(run["purifier"], dict | None)
        and isinstance(metrics, dict)
        and isinstance(row["data"], dict | None)
        and all(isinstance(row[name], str) for name in NAMES)
        and isinstance(row.get("reverse_step"), int | None)
        and isinstance(row.get("versions", {}), dict)
        and all(_is_number(metrics.get(name)) for name in NUMBERS)
        and _are_numbers(metrics.get("returns", []))
        and isinstance(metrics.get("readings", {}), dict)
        and _are_numbers([*metrics.get("readings", {}).values()])
        and (row.get("curve") is None or _is_curve(row["curve"]))
    )


def _is_number(value: object) -> bool:
    """Or nothing, as of a run that diverged."""
    # an integer may be too large for a float
    return value is None or (isinstance(value, int | float) and abs(value) <= float_info.max)


def _are_numbers(values: object) -> bool:
    return isinstance(values, list) and all(v is not None and _is_number(v) for v in values)


def _is_curve(curve: object) -> bool:
    """Steps and the return at each."""
    if not (isinstance(curve, dict) and curve.keys() >= {"steps", "mean"}):
        return False
    steps, means = curve["steps"], curve["mean"]
    return _are_numbers(steps) and _are_numbers(means) and len(steps) == len(means) > 0


def append(path: Path, row: Row) -> None:
    """One more line, on the disk when this returns.

    Raises:
        EluteError: it cannot be written; then the file is as it was.
    """
    line = json.dumps(row, allow_nan=False).encode() + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # another process may append, too
            _write(file.fileno(), line)
    except OSError as error:
        raise _unwritable(path, error) from error


def check_writable(path: Path) -> None:
    """Refuse a file that lines could not be appended to, before the work is done.

    Raises:
        EluteError: why not.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # never the file itself, if it is not there: another process may begin it at any moment
        with path.open("ab") if path.exists() else TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> EluteError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = "what was done is kept; make room and run it again" if full else ""
    return EluteError(f"{path}: cannot be written: {error.strerror}", hint=hint)


def _write(file: int, line: bytes) -> None:
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        line = b"\n" + line  # a torn line stays by itself
    try:
        if os.write(file, line) != len(line):
            raise OSError(errno.ENOSPC, "only a part was written")
        os.fsync(file)
    except OSError:
        os.ftruncate(file, size)
        raise
