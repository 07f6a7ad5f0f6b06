"""HDF5 files with a group `/data/demo_N` per demonstration: robomimic, robosuite, RoboTurk."""

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elute.demos import arrays, hdf5_write, note
from elute.demos.hdf5_output import OutputFile
from elute.episodes import Episodes, Origin, Provenance
from elute.errors import EluteError

ROBOMIMIC, ROBOSUITE, ROBOTURK = "robomimic", "robosuite", "roboturk"

JOINT_VELOCITIES = "joint_velocities"
"""The actions of an arm, where RoboTurk keeps those of the gripper apart."""
PURIFICATION = "purification"
"""Attribute of `/data`, for whoever reads the file without elute: how it was purified."""


def kind(path: Path) -> str:
    """Which of the three a file is; nothing if it has no `/data`. Never raises."""
    if "data" not in arrays.root_names(path):
        return ""
    try:
        with arrays.reading(path, ROBOMIMIC) as file:
            data = file["data"]
            first = next((data[name] for name in data if re.search(r"\d$", name)), ())
            if JOINT_VELOCITIES in first:
                return ROBOTURK
            said = {"env", "env_info", "repository_version"} & set(data.attrs)
            return ROBOSUITE if said and "env_args" not in data.attrs else ROBOMIMIC
    except EluteError:
        return ROBOMIMIC  # its reader says what is wrong


def demo_names(file: h5py.File, path: Path) -> list[str]:
    """Names of the demonstrations, by number: HDF5 sorts 10 before 2.

    Raises:
        EluteError: there are none.
    """
    data = file["data"]
    if not isinstance(data, h5py.Group):
        raise EluteError(f"{path}: /data is no group; expected /data/demo_0, /data/demo_1, ...")
    named = {name: re.fullmatch(r"\D*(\d+)", name) for name in data}
    found = [name for name, match in named.items() if match and isinstance(data[name], h5py.Group)]
    if not found:
        raise EluteError(f"{path}: /data holds no demonstrations; expected demo_0, demo_1, ...")
    return sorted(found, key=_number)


def in_order(names: Sequence[str]) -> bool:
    """Whether they can stay: a reader sorts by number, and parts of one episode share a name."""
    return all(one < other for one, other in pairwise(map(_number, names)))


def _number(name: str) -> int:
    return int(re.sub(r"\D", "", name))


def given_names(episodes: Episodes) -> list[str]:
    """The name that each demonstration had in a file of this kind."""
    return [str(attributes.get("name", "")) for attributes in episodes.attributes]


def new_names(episodes: Episodes, first: int) -> list[str]:
    """Names for a fresh file: those given if they can stay, or numbers from `first` on."""
    given = given_names(episodes)
    usable = all(re.fullmatch(r"demo_\d{1,18}", name) for name in given)
    if usable and in_order(given):
        return given
    return [f"demo_{first + i}" for i in range(len(episodes))]


def attributes(item: h5py.Group) -> dict[str, Any]:
    """Attributes as elute holds them."""
    return {k: v if isinstance(v, str) else note.jsonable(v) for k, v in item.attrs.items()}


def mark_purified(file: h5py.File, provenance: Provenance, *, states: bool) -> None:
    """Say in the format's own place how the demonstrations were purified, and states were not."""
    steps = [step for step in provenance.steps if step["operation"] == "purify"]
    if steps:
        said = {**steps[-1], **({"states": "as recorded"} if states else {})}
        file["data"].attrs[PURIFICATION] = note.storable(json.dumps(said, default=note.jsonable))


@dataclass(frozen=True)
class Copy:
    """A copy that is open for patching."""

    file: OutputFile
    names: list[str]
    """Of its demonstrations."""
    owners: list[str]
    """Of each, the name of the one in the source that it is from."""
    whole: bool
    """Whether it is the source byte for byte."""


def copy(path: Path, origin: Origin, rows_of: str, *, first: int, skip: Sequence[str] = ()) -> Copy:
    """Copy the demonstrations of `origin`, and everything else in its file.

    Args:
        path: the new file.
        origin: which rows of which file.
        rows_of: the array that says how many rows a demonstration has.
        first: number of the first demonstration, where names cannot stay.
        skip: what is left out at the root when only some demonstrations are copied.
    """
    with h5py.File(origin.path, "r") as source:
        old = demo_names(source, origin.path)
        rows = [source[f"data/{name}/{rows_of}"].shape[0] for name in old]
        if not hdf5_write.is_every_group(origin, rows):
            demos = dict(zip(old, rows, strict=True))
            return _copy_pieces(path, origin, source, demos, first, skip)
    shutil.copyfile(origin.path, path)
    return Copy(OutputFile(path, "r+"), old, old, whole=True)


def _copy_pieces(
    path: Path,
    origin: Origin,
    source: h5py.File,
    demos: dict[str, int],
    first: int,
    skip: Sequence[str],
) -> Copy:
    stops = np.cumsum(list(demos.values()))
    places = [int(np.searchsorted(stops, p.start, side="right")) for p in origin.pieces]
    owners = [list(demos)[place] for place in places]
    numbered = [f"demo_{first + i}" for i in range(len(owners))]
    names = owners if in_order(owners) else numbered
    target = OutputFile(path, "w", track_order=True, libver="v108")
    target.attrs.update(source.attrs)
    for name in source:
        if name not in ("data", note.NAME, *skip):
            source.copy(name, target)
    data = target.create_group("data", track_order=True)
    data.attrs.update(source["data"].attrs)
    groups = [(f"data/{name}", rows) for name, rows in demos.items()]
    hdf5_write.group_copies(source, data, groups, list(zip(names, origin.pieces, strict=True)))
    return Copy(target, names, owners, whole=False)
