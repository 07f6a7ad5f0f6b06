"""Minari datasets in HDF5 storage: a folder with `data/metadata.json` and `data/main_data.hdf5`.

Every episode has T + 1 observations; the last one has no action and stays as recorded. Where
nobody measured it, the one before is repeated and the episode is marked so. No environment and
no Minari is needed to read or write.
"""

import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py

from elute.columns import Column, blocks, columns
from elute.demos import arrays, hdf5, hdf5_write, note
from elute.demos import minari_spaces as spaces
from elute.demos.format import ReadOptions
from elute.demos.hdf5_output import OutputFile
from elute.episodes import Episodes, Origin, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

NAME = "minari"
SUFFIXES = ("",)

_METADATA, _MAIN = "metadata.json", "main_data.hdf5"
_VERSION = "0.5.3"  # of the storage layout written here
_ENDS: dict[str, hdf5.End] = {"terminations": "terminated", "truncations": "truncated"}
_STANDARD = ("observations", "actions", "rewards", *_ENDS, "infos")


def detect(path: Path) -> bool:
    """Whether it is a dataset folder, its `data` folder or its main file."""
    return _folder(path) is not None


def _folder(path: Path) -> Path | None:
    """The dataset folder of a path to it or into it."""
    inside = path.parent if path.name == _MAIN else path
    for folder in (inside, inside.parent if inside.name == "data" else inside):
        if os.path.isfile(folder / "data" / _METADATA):  # unlike Path's, never raises
            return folder
    return None


def read(path: Path, options: ReadOptions) -> hdf5.Hdf5Demos:
    """Open a Minari dataset."""
    folder = _folder(path)
    if folder is None:
        raise EluteError(f"{path}: no Minari dataset; expected data/{_METADATA} inside")
    metadata = _read_metadata(folder)
    stored = metadata.pop(note.NAME, None)
    main = folder / "data" / _MAIN
    with arrays.reading(main, NAME) as file:
        groups = _episode_groups(file, main)
        leaves = _leaves(metadata, groups[0], "observation")
        noted = note.decode(json.dumps(stored), str(folder)) if stored else None
        chosen = _chosen(leaves, options.keys or _noted_keys(noted, "observation", leaves), folder)
        action_leaves = _leaves(metadata, groups[0], "action")
        action_keys = _noted_keys(noted, "action", action_leaves)
        action_keys = action_keys or [key for key, kind in action_leaves if kind]
        actions = tuple(_inside("actions", key) for key in action_keys)
        if not actions:
            raise EluteError(f"{folder}: no action that is numbers per step")
        lengths = [arrays.Rows(group, actions[0], main).shape[0] for group in groups]
        infos = _infos(groups, lengths)
        layout = hdf5.Layout(
            groups=tuple(group.name for group in groups),
            group_rows=tuple(lengths),
            observations=tuple(_inside("observations", key) for key in chosen),
            actions=actions,
            rewards="rewards" if "rewards" in groups[0] else None,
            extras={name: f"infos/{name}" for name, held in infos.items() if held},
            extras_in="infos/",
            final_row=True,
            ends=_ENDS,
        )
        kinds = dict(leaves)
        header = note.Header(
            episodes=_episodes(groups, lengths, main, noted),
            observation_columns=_columns(groups[0], "observations", chosen, kinds, main),
            action_columns=_columns(
                groups[0], "actions", action_keys, dict(action_leaves), main
            ),
            provenance=Provenance(
                metadata={
                    NAME: metadata,
                    note.TYPES: {
                        "observations": arrays.mixed_types(
                            groups[0], layout.observations, chosen
                        ),
                        "actions": arrays.mixed_types(groups[0], actions, action_keys),
                    },
                }
            ),
        )  # fmt: skip
        carried = [f"observations/{key}" for key, _ in leaves if key not in chosen]
        carried += [f"actions/{key}" for key, _ in action_leaves if key not in action_keys]
        fillers = noted is not None and note.FINAL_INFOS in noted.absent
        carried += [
            f"infos/{name}{' (its row after the last action)' * held}"
            for name, held in infos.items()
            if not (held and fillers)
        ]
        return hdf5.opened(
            main,
            NAME,
            layout,
            header,
            note=noted,
            carried=carried,
            source=folder,
        )


def _read_metadata(folder: Path) -> dict[str, Any]:
    path = folder / "data" / _METADATA
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EluteError(f"{path}: cannot be read as JSON: {error}") from error
    storage = metadata.get("data_format", "hdf5") if isinstance(metadata, dict) else None
    if storage != "hdf5":
        raise EluteError(
            f"{folder}: data_format is {storage!r}; expected 'hdf5'",
            hint="convert it with Minari to HDF5 storage first",
        )
    return dict(metadata)


def _episode_groups(file: h5py.File, path: Path) -> list[h5py.Group]:
    numbered = [(int(m.group(1)), n) for n in file if (m := re.fullmatch(r"episode_(\d+)", n))]
    groups = [file[name] for _, name in sorted(numbered)]
    for group in groups:
        for name in ("observations", "actions"):
            if name not in group:
                raise EluteError(f"{path}: {group.name}/{name} is missing")
    if not groups:
        raise EluteError(f"{path}: no episodes; expected groups episode_0, episode_1, ...")
    return groups


def _leaves(metadata: dict[str, Any], group: h5py.Group, kind: str) -> list[tuple[str, str]]:
    """The arrays of the observation or action space, each with its kind."""
    space = spaces.stored_space(metadata, f"{kind}_space", group[f"{kind}s"])
    return list(spaces.leaves_of(space))


def _inside(folder: str, key: str) -> str:
    return f"{folder}/{key}" if key else folder


def _chosen(leaves: list[tuple[str, str]], asked: Sequence[str], folder: Path) -> list[str]:
    held = [key for key, kind in leaves if kind]
    for key in asked:
        if key not in held:
            raise EluteError(
                f"{folder}: no observation {key!r}", hint="there are " + ", ".join(held)
            )
    if not held:
        raise EluteError(f"{folder}: observations are only images or text; elute needs numbers")
    return list(asked) or held


def _noted_keys(noted: note.Note | None, kind: str, leaves: list[tuple[str, str]]) -> list[str]:
    """The arrays that elute put together when it wrote the dataset, in their order."""
    keys = [block.key for block in getattr(noted, f"{kind}_columns", ())]
    held = [key for key, numbers in leaves if numbers]
    return keys if set(keys) <= set(held) else []


def _columns(
    group: h5py.Group, folder: str, keys: Sequence[str], kinds: dict[str, str], path: Path
) -> tuple[Column, ...]:
    made: list[Column] = []
    for key in keys:
        array = arrays.dataset(group, _inside(folder, key), path)
        width = array.shape[1] if array.ndim == 2 else 1
        name = key or folder.removesuffix("s")
        made += columns(name, width, discrete=kinds[key] in spaces.DISCRETE)
    return tuple(made)


def _infos(groups: Sequence[h5py.Group], lengths: Sequence[int]) -> dict[str, bool]:
    """Names below `infos` -> whether elute can hold them: numbers, T + 1 rows, in every episode."""
    found: dict[str, bool] = {}
    if isinstance(groups[0].get("infos"), h5py.Group):
        for name, _ in arrays.row_arrays(groups[0]["infos"], lengths[0]).items():
            stored = [group.get(f"infos/{name}") for group in groups]
            found[name] = all(
                isinstance(a, h5py.Dataset) and a.dtype.kind in "fiub" and a.ndim <= 2
                and a.shape[0] == rows + 1
                for a, rows in zip(stored, lengths, strict=True)
            )  # fmt: skip
    return found


def _episodes(
    groups: Sequence[h5py.Group], lengths: Sequence[int], path: Path, noted: note.Note | None
) -> Episodes:
    known = noted is not None and len(noted.ends) == len(groups)  # the note will say how they ended
    last: dict[str, list[bool]] = {name: [] for name in _ENDS}
    for name, flags in last.items():
        for group, rows in zip(groups, lengths, strict=True):
            array = arrays.Rows(group, name, path)
            if array.shape not in ((rows,), (rows, 1)):
                raise EluteError(
                    f"{path}: {group.name}/{name} is {array.shape}; expected {rows} rows"
                )
            flags.append(bool(not known and rows and array.read(rows - 1, rows).any()))
    attributes = [
        {
            name: note.jsonable(v) if not isinstance(v, str) else v
            for name, v in g.attrs.items()
            if name != "total_steps"
        }
        for g in groups
    ]
    return Episodes.of(lengths, last["terminations"], last["truncations"], attributes=attributes)


def write(path: Path, source: DemoSource, sample: Demonstrations) -> hdf5_write.Hdf5Writer:
    """Start a Minari dataset: a copy of the source's, or a fresh one."""
    origin = hdf5_write.container(source, NAME)
    losses = hdf5_write.container_losses(source, origin)
    repeated = sample.next_observations is None
    (path / "data").mkdir(parents=True)
    if origin is not None:
        metadata = _read_metadata(origin.path.parent.parent)
        file = _copy(path / "data", origin)
    else:
        losses += hdf5_write.filler_losses(sample)
        if repeated:
            losses.append("the observation after the last action is unknown: repeated, so marked")
        metadata = _described(source, sample)
        file = _fresh(path / "data" / _MAIN, source, sample, metadata)
    layout = hdf5.Layout(
        groups=tuple(f"/episode_{i}" for i in range(len(source.episodes))),
        group_rows=tuple(source.episodes.lengths.tolist()),
        observations=_arrays(file, "observations", source.observation_columns),
        actions=_arrays(file, "actions", source.action_columns),
        rewards="rewards" if "rewards" in file["episode_0"] else None,
        extras_in="infos/",
        final_row=True,
        ends=_ENDS,
    )
    absent = [] if sample.rewards is not None else ["rewards"]
    absent += [note.FINAL_INFOS] * (origin is None)
    attributes = hdf5_write.unheld([file[name] for name in layout.groups], source.episodes)
    noted = note.encode(source, attributes=attributes, absent=absent, final_repeated=repeated)
    metadata |= {
        "total_episodes": len(source.episodes),
        "total_steps": source.episodes.n_rows,
        note.NAME: json.loads(noted),
    }

    def describe() -> None:
        metadata["dataset_size"] = round((path / "data" / _MAIN).stat().st_size / 1e6, 1)
        metadata["dataset_id"] = dataset_id(path.name)
        (path / "data" / _METADATA).write_text(json.dumps(metadata), encoding="utf-8")

    writer = hdf5_write.Hdf5Writer(
        file, layout, source.episodes, losses, copied=origin is not None, then=describe
    )
    writer.put_ends()
    return writer


def dataset_id(name: str) -> str:
    """The id of a dataset in a folder of this name: Minari wants NAME-vN."""
    name = re.sub(r"^\.(.*)\.\d+\.partial$", r"\1", name)  # while it has a temporary name
    name = re.sub(r"[^-\w]", "_", name)
    return name if re.search(r"-v\d+$", name) else f"{name}-v0"


def _arrays(file: h5py.File, folder: str, of: Sequence[Column]) -> tuple[str, ...]:
    """Names of the arrays that hold these columns."""
    if isinstance(file[f"episode_0/{folder}"], h5py.Dataset):
        return (folder,)
    return tuple(f"{folder}/{block.key}" for block in blocks(of))


def _copy(folder: Path, origin: Origin) -> OutputFile:
    for item in origin.path.parent.iterdir():  # whatever else lies there comes along
        if item.is_file() and item.name not in (_MAIN, _METADATA):
            shutil.copyfile(item, folder / item.name)
    with h5py.File(origin.path, "r") as source:
        groups = _episode_groups(source, origin.path)
        rows = [(group.name, group["terminations"].shape[0]) for group in groups]
        numbered = [name for name, _ in rows] == [f"/episode_{i}" for i in range(len(rows))]
        if not numbered or not hdf5_write.is_every_group(origin, [n for _, n in rows]):
            target = OutputFile(folder / _MAIN, "w", track_order=True, libver="v108")
            names = [f"episode_{i}" for i in range(len(origin.pieces))]
            pieces = list(zip(names, origin.pieces, strict=True))
            hdf5_write.group_copies(source, target, rows, pieces)
            for i, (name, piece) in enumerate(pieces):
                target[name].attrs["id"] = i
                target[name].attrs["total_steps"] = piece.length
            return target
    shutil.copyfile(origin.path, folder / _MAIN)
    return OutputFile(folder / _MAIN, "r+")


def _described(source: DemoSource, sample: Demonstrations) -> dict[str, Any]:
    """Metadata of a fresh dataset; what an earlier Minari dataset said is kept if it fits."""
    known = dict(source.provenance.metadata.get(NAME, {}))
    built = {
        "observation_space": spaces.built_space(source.observation_columns, sample.observations),
        "action_space": spaces.built_space(source.action_columns, sample.actions),
    }
    for name, space in built.items():
        if spaces.known_widths(known.get(name)) != spaces.widths(spaces.shapes(space)):
            known[name] = json.dumps(space)
    return {"data_format": "hdf5", "minari_version": _VERSION, **known}


def _fresh(
    path: Path, source: DemoSource, sample: Demonstrations, metadata: dict[str, Any]
) -> OutputFile:
    file = OutputFile(path, "w", track_order=True, libver="v108")
    kind = "float64" if sample.rewards is None else sample.rewards.dtype
    for i, rows in enumerate(source.episodes.lengths.tolist()):
        group = file.create_group(f"episode_{i}", track_order=True)
        hdf5_write.put_attributes(group, source.episodes.attributes[i])
        group.attrs.update({"id": i, "total_steps": rows})
        kinds = {
            "observations": ("observation_space", rows + 1, sample.observations.dtype),
            "actions": ("action_space", rows, sample.actions.dtype),
        }
        for folder, (space, length, dtype) in kinds.items():
            types = note.types_of(source.provenance, folder)
            for key, shape in spaces.shapes(json.loads(metadata[space])) or []:
                name = _inside(folder, key)
                _create(group, name, (length, *shape), types.get(key, dtype))
        _create(group, "rewards", (rows,), kind)
        for name in _ENDS:
            _create(group, name, (rows,), bool)
    return file


def _create(group: h5py.Group, name: str, shape: tuple[int, ...], dtype: Any) -> None:  # noqa: ANN401
    group.create_dataset(name, shape, dtype, chunks=True, maxshape=(None, *shape[1:]))
