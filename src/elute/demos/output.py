"""Writing so that a killed or failed process leaves the old file or the new one, never a half."""

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from elute.errors import EluteError

_DATASETS = (
    ("data/metadata.json",),
    ("demo.hdf5", "models"),
    ("state.json", "dataset_info.json"),
    ("meta/info.json",),
)
"""What stands in the folder of a dataset, for each format that writes one."""


@contextmanager
def output(path: Path, *, inputs: Sequence[Path] = ()) -> Iterator[Path]:
    """A temporary name beside `path` that takes its place when the block ends well.

    Raises:
        EluteError: the output is one of the inputs, cannot be created, or the disk is full.
    """
    check_output(path, inputs)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield temporary
        _replace(temporary, path)
    except OSError as error:
        raise _explained(error, path) from error
    finally:
        _remove(temporary)


def check_output(path: Path, inputs: Sequence[Path] = ()) -> None:
    """Refuse a path that cannot be written, before any work is done for it.

    Raises:
        EluteError: it is an input, has no folder, or something else stands there.
    """
    if not path.name:
        raise EluteError("the output has no name", hint="give a path to write to")
    for given in inputs:
        if path.resolve() == given.resolve() or path.resolve() in given.resolve().parents:
            raise EluteError(f"{path}: the output is the input", hint="give another output path")
        if given.is_dir() and given.resolve() in path.resolve().parents:
            raise EluteError(f"{path}: the output lies inside the input {given}")
    if path.parent.exists() and not path.parent.is_dir():
        raise EluteError(f"{path}: {path.parent} is a file, not a folder")
    if not path.parent.is_dir():
        raise EluteError(f"{path}: the folder {path.parent} does not exist", hint="create it first")
    if path.is_dir() and any(path.iterdir()) and not _is_dataset(path):
        raise EluteError(f"{path}: a folder that is not a dataset stands here; it is left alone")


def _is_dataset(path: Path) -> bool:
    """Whether a folder is one that a format of folders writes."""
    return any(all((path / name).exists() for name in names) for names in _DATASETS)


def _replace(temporary: Path, path: Path) -> None:
    if path.is_dir() and not temporary.is_dir():
        raise EluteError(f"{path}: is a folder; the output is a file")
    if path.is_dir():  # folders cannot be replaced in one step: move the old one away first
        old = path.with_name(f".{path.name}.{os.getpid()}.old")
        path.rename(old)
        temporary.rename(path)
        shutil.rmtree(old)
    elif temporary.is_dir() and path.exists():
        raise EluteError(f"{path}: is a file; the output is a folder")
    else:
        temporary.replace(path)


def _explained(error: OSError, path: Path) -> EluteError:
    full = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the quota is used up"}
    reason = full.get(error.errno or 0, os.strerror(error.errno) if error.errno else str(error))
    return EluteError(f"{path}: cannot be written: {reason}", hint="nothing was left behind")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
