"""VILD HDF5, the files of the paper: flat arrays `expert_*`, and a mask that is 0 at ends.

The mask does not tell an end from a time-out, so the kind of end is inferred: an episode as long
as the horizon was truncated. Actions are stored unclipped; no next observation is stored.
"""

from pathlib import Path

import h5py
import numpy as np

from elute.demos import arrays, hdf5, hdf5_write, note
from elute.demos.format import ReadOptions
from elute.demos.hdf5_output import OutputFile
from elute.episodes import Episodes, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

NAME = "vild"
SUFFIXES = (".h5", ".hdf5")
HORIZON = 1000
"""Of every task that the published files come from."""

_STANDARD = ("expert_states", "expert_actions", "expert_masks", "expert_rewards")
_SOURCE = "expert_source_path"


def detect(path: Path) -> bool:
    """Whether the expert's states or actions stand at the root."""
    return bool({"expert_states", "expert_actions"} & set(arrays.root_names(path)))


def read(path: Path, options: ReadOptions) -> hdf5.Hdf5Demos:
    """Open a VILD file."""
    with arrays.reading(path, NAME) as file:
        actions = arrays.dataset(file, "expert_actions", path)
        n = actions.shape[0]
        others = arrays.row_arrays(file, n, skip=(*_STANDARD, _SOURCE, note.NAME))
        layout = _layout(n, [name for name, held in others.items() if held], file)
        masks = arrays.dataset(file, "expert_masks", path)
        if masks.size != n or masks.shape[0] != n:
            raise EluteError(f"{path}: expert_masks has shape {masks.shape}; expected {n} rows")
        header = note.Header(
            episodes=_episodes(masks[:].reshape(-1), options.horizon or HORIZON),
            observation_columns=arrays.array_columns(
                file, layout.observations, ("observation",), path
            ),
            action_columns=arrays.array_columns(file, layout.actions, ("action",), path),
            provenance=Provenance(metadata={NAME: _metadata(file, masks.dtype)}),
        )
        carried = [name for name, held in others.items() if not held]
        carried += arrays.strangers(file, known=list(file))
        return hdf5.opened(
            path, NAME, layout, header, note=hdf5.read_note(file, path), carried=carried
        )


def _layout(n: int, extras: list[str], file: h5py.File) -> hdf5.Layout:
    return hdf5.Layout(
        groups=("/",),
        group_rows=(n,),
        observations=("expert_states",),
        actions=("expert_actions",),
        rewards="expert_rewards" if "expert_rewards" in file else None,
        extras={name: name for name in extras},
        ends={"expert_masks": "continues"},
    )


def _episodes(masks: np.ndarray, horizon: int) -> Episodes:
    stops = np.flatnonzero(masks == 0) + 1
    ended = np.ones(len(stops), dtype=bool)
    if len(masks) and (len(stops) == 0 or stops[-1] != len(masks)):
        stops, ended = np.append(stops, len(masks)), np.append(ended, False)
    lengths = np.diff(stops, prepend=0)
    timeout = lengths >= horizon
    return Episodes.of(lengths, ended & ~timeout, ended & timeout, inferred=True)


def _mask_type(stored: object) -> np.dtype:
    """The type that masks had before they went through another format."""
    try:
        found = np.dtype(str(stored))
    except TypeError:
        return np.dtype("int64")
    return found if found.kind in "fiub" else np.dtype("int64")


def _metadata(file: h5py.File, mask_type: np.dtype) -> dict[str, str]:
    metadata = {"mask_type": str(mask_type)}
    stored = file.get(_SOURCE)
    if isinstance(stored, h5py.Dataset) and stored.shape == ():
        metadata["source_path"] = note.jsonable(stored[()])
    return metadata


def write(path: Path, source: DemoSource, sample: Demonstrations) -> hdf5_write.Hdf5Writer:
    """Start a VILD file: a copy of the source's, or a fresh one."""
    n = source.episodes.n_rows
    origin = hdf5_write.container(source, NAME)
    losses = hdf5_write.container_losses(source, origin)
    file = (
        hdf5_write.flat_copy(path, origin, "expert_actions")
        if origin
        else _fresh(path, n, source, sample)
    )
    if origin is None:
        losses += hdf5_write.filler_losses(sample)
    if sample.next_observations is not None:
        losses.append("next observations: VILD has no place for them")
    writer = hdf5_write.Hdf5Writer(
        file, _layout(n, [], file), source.episodes, losses, copied=origin is not None
    )
    writer.put_ends()
    absent = [] if sample.rewards is not None else ["rewards"]
    attributes = source.episodes.attributes
    hdf5_write.write_note(file, note.encode(source, attributes=attributes, absent=absent))
    return writer


def _fresh(path: Path, n: int, source: DemoSource, sample: Demonstrations) -> OutputFile:
    metadata = source.provenance.metadata.get(NAME, {})
    file = OutputFile(path, "w")
    file.create_dataset(
        "expert_states", (n, sample.observations.shape[1]), sample.observations.dtype
    )
    file.create_dataset("expert_actions", (n, sample.actions.shape[1]), sample.actions.dtype)
    file["expert_masks"] = np.ones(n, dtype=_mask_type(metadata.get("mask_type")))
    rewards = "float64" if sample.rewards is None else sample.rewards.dtype
    file.create_dataset("expert_rewards", (n,), rewards)
    file[_SOURCE] = note.storable(str(metadata.get("source_path", source.provenance.source)))
    return file
