"""D4RL HDF5: flat arrays, `terminals` and `timeouts` mark ends, `infos/*` and `metadata/*` beside.

Rows after the last mark are an unfinished episode and are kept. The oldest files have no
`timeouts`; there an episode also ends where the next observation is not the next row's.
"""

from pathlib import Path

import h5py
import numpy as np

from elute.demos import arrays, hdf5, hdf5_write, note
from elute.demos.format import ReadOptions
from elute.demos.hdf5_output import OutputFile
from elute.episodes import Array, Episodes, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

NAME = "d4rl"
SUFFIXES = (".hdf5", ".h5")

_STANDARD = ("observations", "actions", "rewards", "terminals", "timeouts", "next_observations")


def detect(path: Path) -> bool:
    """Whether observations or actions stand at the root."""
    return bool({"observations", "actions"} & set(arrays.root_names(path)))


def read(path: Path, options: ReadOptions) -> hdf5.Hdf5Demos:
    """Open a D4RL file."""
    del options  # the file says all
    with arrays.reading(path, NAME) as file:
        n = arrays.dataset(file, "actions", path).shape[0]
        others = arrays.row_arrays(file, n, skip=(*_STANDARD, "metadata", note.NAME))
        layout = _layout(file, n, [name for name, held in others.items() if held])
        header = note.Header(
            episodes=_episodes(file, path, n),
            observation_columns=arrays.array_columns(
                file, layout.observations, ("observation",), path
            ),
            action_columns=arrays.array_columns(file, layout.actions, ("action",), path),
            provenance=Provenance(metadata={NAME: _metadata(file)}),
        )
        carried = [name for name, held in others.items() if not held]
        carried += arrays.strangers(file, known=list(file))
        carried += [name for name in ("metadata",) if name in file]
        return hdf5.opened(
            path, NAME, layout, header, note=hdf5.read_note(file, path), carried=carried
        )


def _layout(file: h5py.File, n: int, extras: list[str]) -> hdf5.Layout:
    following = "next_observations"
    ends: dict[str, hdf5.End] = {"terminals": "terminated", "timeouts": "truncated"}
    return hdf5.Layout(
        groups=("/",),
        group_rows=(n,),
        observations=("observations",),
        actions=("actions",),
        rewards="rewards" if "rewards" in file else None,
        next_observations=(following,) if following in file else (),
        extras={name: name for name in extras},
        ends={name: meaning for name, meaning in ends.items() if name in file},
    )


def _flags(file: h5py.File, name: str, path: Path, n: int) -> Array:
    array = arrays.dataset(file, name, path)
    if array.size != n or array.shape[0] != n:
        raise EluteError(f"{path}: {name} has shape {array.shape}; expected {n} rows")
    flags: Array = array[:].reshape(-1).astype(bool)  # old files store (n, 1)
    return flags


def _episodes(file: h5py.File, path: Path, n: int) -> Episodes:
    terminal = _flags(file, "terminals", path, n)
    known = "timeouts" in file
    timeout = _flags(file, "timeouts", path, n) if known else _jumps(file, n)
    stops = np.flatnonzero(terminal | timeout) + 1
    if n and (len(stops) == 0 or stops[-1] != n):
        stops = np.append(stops, n)
    return Episodes.of(
        np.diff(stops, prepend=0), terminal[stops - 1], timeout[stops - 1], inferred=not known
    )


def _jumps(file: h5py.File, n: int) -> Array:
    """Rows whose next observation is not the observation of the following row."""
    jump = np.zeros(n, dtype=bool)
    if "next_observations" in file and "observations" in file:
        here, following = file["observations"], file["next_observations"]
        if here.shape == following.shape and here.ndim == 2:
            for start in range(0, n - 1, 65_536):
                stop = min(start + 65_536, n - 1)
                different = following[start:stop] != here[start + 1 : stop + 1]
                jump[start:stop] = different.any(axis=1)
    return jump


def _metadata(file: h5py.File) -> dict[str, object]:
    """The small entries of `metadata`; arrays such as policy weights stay in the file."""
    group = file.get("metadata")
    if not isinstance(group, h5py.Group):
        return {}
    return {
        name: note.jsonable(item[()])
        for name, item in group.items()
        if isinstance(item, h5py.Dataset) and item.shape == ()
    }


def write(path: Path, source: DemoSource, sample: Demonstrations) -> hdf5_write.Hdf5Writer:
    """Start a D4RL file: a copy of the source's, or a fresh one."""
    n = source.episodes.n_rows
    origin = hdf5_write.container(source, NAME)
    losses = hdf5_write.container_losses(source, origin)
    file = (
        hdf5_write.flat_copy(path, origin, "actions", skip="metadata")
        if origin
        else (_fresh(path, n, sample))
    )
    if origin is None:
        losses += hdf5_write.filler_losses(sample)
    if "timeouts" not in file and _lacks_marks(file, path, source.episodes):
        file["timeouts"] = np.zeros(n, dtype=bool)  # an old file, cut
    writer = hdf5_write.Hdf5Writer(
        file, _layout(file, n, []), source.episodes, losses, copied=origin is not None
    )
    writer.put_ends()
    absent = [] if sample.rewards is not None else ["rewards"]
    attributes = source.episodes.attributes
    hdf5_write.write_note(file, note.encode(source, attributes=attributes, absent=absent))
    return writer


def _lacks_marks(file: h5py.File, path: Path, episodes: Episodes) -> bool:
    """Whether a reader of this file would find other episodes than there are."""
    found = _episodes(file, path, episodes.n_rows)
    return not np.array_equal(found.lengths, episodes.lengths)


def _fresh(path: Path, n: int, sample: Demonstrations) -> OutputFile:
    file = OutputFile(path, "w")
    for name in ("observations", "actions", "next_observations"):
        array = getattr(sample, name)
        if array is not None:
            file.create_dataset(name, (n, array.shape[1]), array.dtype, compression="gzip")
    rewards = "float32" if sample.rewards is None else sample.rewards.dtype
    file.create_dataset("rewards", (n,), rewards, compression="gzip")
    for name in ("terminals", "timeouts"):
        file.create_dataset(name, (n,), bool, compression="gzip")
    return file
