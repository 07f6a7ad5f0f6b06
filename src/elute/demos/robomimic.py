"""robomimic HDF5: one group per demonstration below `/data`, filter keys below `/mask`.

Observations are several named arrays; the low-dimensional ones that are chosen are concatenated,
the others stay beside as extra columns, images stay in the file. `dones` may mark success on any
row, so it is no boundary. Filter keys (better, okay, worse, ...) become `#better` selections.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elute.columns import Column, blocks
from elute.demos import arrays, demo_groups, hdf5, hdf5_write, note
from elute.demos.format import ReadOptions
from elute.demos.hdf5_output import OutputFile
from elute.episodes import Episodes, Origin, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

NAME = "robomimic"
SUFFIXES = (".hdf5", ".h5")

_USUAL = re.compile(r"robot\d+_(eef_pos|eef_quat|gripper_qpos)|object")
"""What robomimic's own low-dimensional configurations observe."""
_GYM = 2  # robomimic's code for an environment of Gym


def detect(path: Path) -> bool:
    """Whether there is a `/data` group, and not that of a raw recording."""
    return demo_groups.kind(path) == NAME


def read(path: Path, options: ReadOptions) -> hdf5.Hdf5Demos:
    """Open a robomimic file."""
    with arrays.reading(path, NAME) as file:
        names = demo_groups.demo_names(file, path)
        groups = [file[f"data/{name}"] for name in names]
        lengths = [arrays.Rows(group, "actions", path).shape[0] for group in groups]
        noted = hdf5.read_note(file, path)
        keys = _chosen(groups[0], options.keys or _noted_keys(groups[0], noted), path)
        layout, carried = _scan(groups, lengths, keys)
        carried += arrays.strangers(file, known=("data", "mask", note.NAME))
        header = note.Header(
            episodes=_episodes(file, groups, names, lengths, path),
            observation_columns=arrays.array_columns(groups[0], layout.observations, keys, path),
            action_columns=arrays.array_columns(groups[0], ("actions",), ("action",), path),
            provenance=Provenance(
                metadata={
                    NAME: _attributes(file["data"]),
                    note.TYPES: {
                        "observations": arrays.mixed_types(groups[0], layout.observations, keys)
                    },
                }
            ),
        )
        return hdf5.opened(path, NAME, layout, header, note=noted, carried=carried)


def _noted_keys(group: h5py.Group, noted: note.Note | None) -> list[str]:
    """The keys that elute wrote, in its order: HDF5 lists names by the alphabet."""
    keys = [_stored_key(block.key) for block in noted.observation_columns] if noted else []
    if keys and note.FLAT in group.get("obs", ()):
        return [note.FLAT]
    return keys if all(f"obs/{key}" in group for key in keys) else []


def _chosen(group: h5py.Group, asked: Sequence[str], path: Path) -> list[str]:
    observations = group.get("obs")
    if not isinstance(observations, h5py.Group) or not len(observations):
        raise EluteError(
            f"{path}: {group.name} has no observations (obs/)",
            hint="this may be a raw recording: extract observations with robomimic's "
            "dataset_states_to_obs.py first",
        )
    low = [
        name
        for name, item in observations.items()
        if isinstance(item, h5py.Dataset) and item.ndim in (1, 2) and item.dtype.kind in "fiub"
    ]
    for name in asked:
        if name not in low:
            raise EluteError(
                f"{path}: no low-dimensional observation {name!r}",
                hint="there are " + ", ".join(low),
            )
    chosen = list(asked) or [name for name in low if _USUAL.fullmatch(name)] or low
    if not chosen:
        raise EluteError(
            f"{path}: {group.name}/obs holds only images; elute needs numbers per step"
        )
    return chosen


def _scan(
    groups: Sequence[h5py.Group], lengths: Sequence[int], keys: Sequence[str]
) -> tuple[hdf5.Layout, list[str]]:
    following = tuple(f"next_obs/{key}" for key in keys)
    if not all(name in groups[0] for name in following):
        following = ()
    observations = tuple(f"obs/{key}" for key in keys)
    used = {*observations, *following, "actions", "rewards"}
    others = arrays.shared_arrays(groups, lengths, skip=used)
    held = [name for name, fits in others.items() if fits]
    layout = hdf5.Layout(
        groups=tuple(group.name for group in groups),
        group_rows=tuple(lengths),
        observations=observations,
        actions=("actions",),
        rewards="rewards" if "rewards" in groups[0] else None,
        next_observations=following,
        extras={name: name for name in held},
    )
    return layout, [name for name in others if name not in held]


def _episodes(
    file: h5py.File,
    groups: Sequence[h5py.Group],
    names: Sequence[str],
    lengths: Sequence[int],
    path: Path,
) -> Episodes:
    filters: dict[str, list[str]] = {name: [] for name in names}
    for key, members in _filters(file).items():
        for member in members:
            if member in filters:
                filters[member].append(key)
    done = np.array([_last_done(group, path) for group in groups])
    return Episodes.of(
        lengths,
        done,
        ~done,
        inferred=True,
        attributes=[
            {**_attributes(group), "name": name, "filters": filters[name]}
            for name, group in zip(names, groups, strict=True)
        ],
    )


def _filters(file: h5py.File) -> dict[str, list[str]]:
    """Filter key -> names of its demonstrations."""
    group = file.get("mask")
    stored = group.items() if isinstance(group, h5py.Group) else ()
    return {
        key: [m.decode() if isinstance(m, bytes) else str(m) for m in members[:]]
        for key, members in stored
        if isinstance(members, h5py.Dataset) and members.ndim == 1
    }


def _last_done(group: h5py.Group, path: Path) -> bool:
    if "dones" not in group:
        return False
    done = arrays.Rows(group, "dones", path)
    rows = done.shape[0]
    return bool(rows and done.read(rows - 1, rows).any())


def _attributes(item: h5py.Group) -> dict[str, Any]:
    found = demo_groups.attributes(item)
    return {name: found[name] for name in found if name not in ("num_samples", "total")}


def write(path: Path, source: DemoSource, sample: Demonstrations) -> hdf5_write.Hdf5Writer:
    """Start a robomimic file: a copy of the source's, or a fresh one."""
    origin = hdf5_write.container(source, NAME)
    losses = hdf5_write.container_losses(source, origin)
    if origin is not None:
        file, names = _copy(path, origin)
        keys = [block.key for block in blocks(source.observation_columns)]
        if f"data/{names[0]}/obs/{keys[0]}" not in file:  # elute named the arrays
            keys = _observation_names(source.observation_columns)
    else:
        losses += hdf5_write.filler_losses(sample)
        names = demo_groups.new_names(source.episodes, first=0)
        keys = _observation_names(source.observation_columns)
        file = _fresh(path, names, keys, source, sample)
    layout = hdf5.Layout(
        groups=tuple(f"/data/{name}" for name in names),
        group_rows=tuple(source.episodes.lengths.tolist()),
        observations=tuple(f"obs/{key}" for key in keys),
        actions=("actions",),
        rewards="rewards" if "rewards" in file[f"data/{names[0]}"] else None,
        next_observations=tuple(
            f"next_obs/{key}" for key in keys if f"data/{names[0]}/next_obs/{key}" in file
        ),
    )
    losses += _stale(sample)
    absent = [] if sample.rewards is not None else ["rewards"]
    if "dones" not in sample.extras:
        absent.append("dones")
    named = origin is not None or names == demo_groups.given_names(source.episodes)
    skip = ("filters", "name") if named else ("filters",)
    attributes = hdf5_write.unheld(
        [file[group] for group in layout.groups], source.episodes, skip=skip
    )
    _add_filters(file, names, source.episodes)
    demo_groups.mark_purified(file, source.provenance, states="states" in sample.extras)
    hdf5_write.write_note(file, note.encode(source, attributes=attributes, absent=absent))
    return hdf5_write.Hdf5Writer(file, layout, source.episodes, losses, copied=origin is not None)


def _stale(sample: Demonstrations) -> list[str]:
    """Arrays that were computed from the actions and no longer agree with them."""
    done = {step["operation"] for step in sample.provenance.steps}
    changed = done & {"corrupt", "clip", "purify"}
    derived = [name for name in sample.extras if re.match("actions_abs|action_dict/", name)]
    return [f"{name}: still that of the recorded actions" for name in derived if changed]


def _copy(path: Path, origin: Origin) -> tuple[OutputFile, list[str]]:
    copy = demo_groups.copy(path, origin, "actions", first=0, skip=("mask",))
    file = copy.file
    if not copy.whole:
        file["data"].attrs["total"] = sum(piece.length for piece in origin.pieces)
        for name, piece in zip(copy.names, origin.pieces, strict=True):
            file[f"data/{name}"].attrs["num_samples"] = piece.length
        with h5py.File(origin.path, "r") as source:
            for key, kept in _filters(source).items():
                pairs = zip(copy.names, copy.owners, strict=True)
                new = [name for name, owner in pairs if owner in kept]
                _put_filter(file, key, new, source[f"mask/{key}"].dtype)
    return file, copy.names


def _add_filters(file: h5py.File, names: Sequence[str], episodes: Episodes) -> None:
    """Write what the filter keys of the episodes say beyond those in the file."""
    stored, wanted = _filters(file), dict[str, list[str]]()
    for name, keys in zip(names, episodes.filters, strict=True):
        for key in keys:
            wanted.setdefault(key, []).append(name)
    for key, members in wanted.items():
        if not set(members) <= set(stored.get(key, ())):
            others = [name for name in stored.get(key, ()) if name not in members]
            like = file[f"mask/{key}"].dtype if key in stored else np.dtype("S1")
            file.pop(f"mask/{key}", None)
            _put_filter(file, key, [*others, *members], like)


def _put_filter(file: h5py.File, key: str, names: list[str], like: np.dtype[Any]) -> None:
    longest = max(map(len, names), default=1)
    fits = like.kind == "O" or like.itemsize >= longest
    array = file.create_dataset(f"mask/{key}", (len(names),), like if fits else f"S{longest}")
    array[:] = np.array(names, dtype="S" if names else "S1")


def _stored_key(key: str) -> str:
    return key.replace("/", "_")  # robomimic looks for arrays, not for deeper groups


def _observation_names(columns: Sequence[Column]) -> list[str]:
    keys = [_stored_key(block.key) for block in blocks(columns)]
    return keys if len(set(keys)) == len(keys) and keys != ["observation"] else [note.FLAT]


def _fresh(
    path: Path, names: list[str], keys: list[str], source: DemoSource, sample: Demonstrations
) -> OutputFile:
    file = OutputFile(path, "w", track_order=True, libver="v108")
    data = file.create_group("data", track_order=True)
    data.attrs["total"] = source.episodes.n_rows
    metadata = dict(source.provenance.metadata.get(NAME, {}))
    default = {"env_name": source.provenance.task or "unknown", "type": _GYM, "env_kwargs": {}}
    metadata.setdefault("env_args", json.dumps(default))
    hdf5_write.put_attributes(data, metadata)
    for i, name in enumerate(names):
        group = data.create_group(name, track_order=True)
        given = source.episodes.attributes[i]
        kept = {k: v for k, v in given.items() if k not in ("name", "filters")}
        hdf5_write.put_attributes(group, kept)
        _create_arrays(group, int(source.episodes.lengths[i]), keys, source, sample)
    return file


def _create_arrays(
    group: h5py.Group, rows: int, keys: list[str], source: DemoSource, sample: Demonstrations
) -> None:
    group.attrs["num_samples"] = rows
    group.create_dataset("actions", (rows, sample.actions.shape[1]), sample.actions.dtype)
    widths = [block.size for block in blocks(source.observation_columns)]
    if keys == [note.FLAT]:
        widths = [sample.observations.shape[1]]
    types = note.types_of(source.provenance, "observations")
    folders = {"obs": sample.observations, "next_obs": sample.next_observations}
    for folder, like in folders.items():
        for key, width in zip(keys, widths, strict=True):
            if like is not None:
                dtype = types.get(key, like.dtype)
                group.create_dataset(f"{folder}/{key}", (rows, width), dtype)
    kind = "float64" if sample.rewards is None else sample.rewards.dtype
    group.create_dataset("rewards", (rows,), kind)
    if "dones" not in sample.extras:
        group["dones"] = (np.arange(rows) == rows - 1).astype("int64")
