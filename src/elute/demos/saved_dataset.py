"""Folders as `save_to_disk` of Hugging Face's `datasets` leaves them, without that library.

state.json          the names of the data files, and a fingerprint of the content
dataset_info.json   the types of the columns ("features")
data-....arrow      Arrow streams
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from elute.demos.inside import inside
from elute.errors import EluteError

STATE, INFO, DATA = "state.json", "dataset_info.json", "data-00000-of-00001.arrow"


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object.

    Raises:
        EluteError: it is missing or none.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise EluteError(
            f"{path}: cannot be read as JSON: {error}",
            hint=f"a folder that datasets saved has {STATE}, {INFO} and a data file",
        ) from error
    if not isinstance(found, dict):
        raise EluteError(f"{path}: holds no JSON object")
    return found


def data_files(folder: Path) -> list[Path]:
    """The data files that a folder names, all of which lie in it.

    Raises:
        EluteError: it names none, or others.
    """
    entries = read_json(folder / STATE).get("_data_files")
    usable = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
    if not usable or not entries:
        raise EluteError(f"{folder / STATE}: names no _data_files")
    return [inside(folder, "", entry.get("filename")) for entry in entries]


def write_json(
    folder: Path, features: dict[str, Any] | None, known: dict[str, Any], state: dict[str, Any]
) -> None:
    """Describe the data file that is there; `known` and `state` are what another folder said."""
    info = {"citation": "", "description": "", "homepage": "", "license": "", **known}
    state = {
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
        **state,
        "_data_files": [{"filename": DATA}],
        "_fingerprint": fingerprint(folder / DATA),
    }
    for name, content in ((INFO, info | {"features": features}), (STATE, state)):
        text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
        (folder / name).write_text(text, encoding="utf-8")


def fingerprint(path: Path) -> str:
    """By the content: `datasets` finds what it computed from it earlier by this name."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def feature(dtype: np.dtype[Any] | str, depth: int) -> dict[str, Any]:
    """The type of a column of numbers or "string", inside so many lists."""
    name = dtype if isinstance(dtype, str) else dtype.name
    found: dict[str, Any] = {"dtype": name, "_type": "Value"}
    for _ in range(depth):
        # Called List since datasets 4, which reads this name as well; older ones only this.
        found = {"feature": found, "length": -1, "_type": "Sequence"}
    return found
