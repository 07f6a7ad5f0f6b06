"""imitation's trajectories: a folder as Hugging Face `datasets` saves it, one row per trajectory.

    state.json              the names of the data files
    dataset_info.json       the types of the columns; elute's note is a further key
    data-0....arrow         obs (T + 1), acts (T), infos (T strings), terminal, [rews (T)]
    elute.arrow             extra columns, which imitation has no place for; only elute looks there

Infos are jsonpickle strings: whoever decodes one may run what it names. They are copied byte for
byte and never decoded. There is no flag for truncation: an end that is not terminal is taken for
one.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from elute.columns import Column, columns
from elute.demos import arrow_stream, note
from elute.demos.format import ReadOptions
from elute.demos.hdf5 import merged, pieces_in_file, selected, stamp
from elute.demos.imitation_write import COLUMNS, EXTRAS, INFOS, ImitationWriter
from elute.demos.inside import inside
from elute.demos.saved_dataset import INFO, STATE, data_files, read_json
from elute.episodes import Array, Episodes, Origin, Piece, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

NAME = "imitation"
SUFFIXES = ("",)


def detect(path: Path) -> bool:
    """Whether it is a folder that `datasets` saved."""
    if os.path.isfile(path / STATE):  # unlike Path's, never raises
        return True
    return os.path.isfile(path / INFO) and any(name.endswith(".arrow") for name in os.listdir(path))


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Views of one trajectory in the file."""

    observations: Array
    """(T + 1, S)"""
    actions: Array
    rewards: Array | None


@dataclass(frozen=True, eq=False)
class ImitationDemos:
    """A folder of trajectories, mapped into memory."""

    trajectories: Sequence[Trajectory]
    extras: Mapping[str, "_Extra"]
    episodes: Episodes
    observation_columns: tuple[Column, ...]
    action_columns: tuple[Column, ...]
    provenance: Provenance
    origin: Origin

    def select(self, episodes: Sequence[int]) -> "ImitationDemos":
        """The same folder, only these episodes."""
        kept, origin = selected(self.episodes, self.origin, episodes)
        return replace(self, episodes=kept, origin=origin)

    def rows(self, start: int, stop: int) -> Demonstrations:
        """Rows `start..stop`, taken off the disk."""
        pieces = pieces_in_file(self.episodes, self.origin, start, stop)
        stops = np.cumsum([len(t.actions) for t in self.trajectories])
        found = []
        for piece in pieces:
            owner = int(np.searchsorted(stops, piece.start, side="right"))
            trajectory = self.trajectories[owner]
            first = piece.start - int(stops[owner]) + len(trajectory.actions)
            found.append((trajectory, first, first + piece.length))
        measured = not self.episodes.final_repeated.all()
        rewarded = self.trajectories[0].rewards is not None
        runs = merged(pieces)
        return Demonstrations(
            observations=np.concatenate([t.observations[a:b] for t, a, b in found]),
            actions=np.concatenate([t.actions[a:b] for t, a, b in found]),
            rewards=(
                np.concatenate([t.rewards[a:b] for t, a, b in found if t.rewards is not None])
                if rewarded
                else None
            ),
            next_observations=(
                np.concatenate([t.observations[a + 1 : b + 1] for t, a, b in found])
                if measured
                else None
            ),
            extras={
                name: np.concatenate([extra.rows(a, b) for a, b in runs])
                for name, extra in self.extras.items()
            },
            episodes=self.episodes.cut(self.episodes.pieces(start, stop)),
            observation_columns=self.observation_columns,
            action_columns=self.action_columns,
            provenance=self.provenance,
            origin=replace(self.origin, pieces=pieces),
        )


def read(path: Path, options: ReadOptions) -> ImitationDemos:
    """Open a folder of trajectories."""
    del options  # there is nothing to choose
    info = read_json(path / INFO)
    stored = info.pop(note.NAME, None)
    files = data_files(path)
    streams = [arrow_stream.read_batches(file) for file in files]
    batches = [batch for _, found in streams for batch in found if len(batch)]
    with arrow_stream.reading(path):
        trajectories, terminal = _trajectories(batches, path)
    if not trajectories:
        raise EluteError(f"{path}: no trajectories")
    lengths = [len(trajectory.actions) for trajectory in trajectories]
    first = trajectories[0]
    header = note.Header(
        episodes=Episodes.of(lengths, terminal, [not ended for ended in terminal], inferred=True),
        observation_columns=columns("observation", first.observations.shape[1]),
        action_columns=columns(
            "action", first.actions.shape[1], discrete=first.actions.dtype.kind in "iub"
        ),
        provenance=Provenance(metadata={NAME: info}),
    )
    if stored:
        header = note.apply(note.decode(json.dumps(stored), str(path)), header)
    starts = header.episodes.starts.tolist()
    return ImitationDemos(
        trajectories=trajectories,
        extras=_extras(path, sum(lengths)),
        episodes=header.episodes,
        observation_columns=header.observation_columns,
        action_columns=header.action_columns,
        provenance=replace(header.provenance, source=str(path), format=NAME),
        origin=Origin(
            files[0], NAME, stamp(files[0]), tuple(map(Piece, starts, lengths)), _carried(batches)
        ),
    )


def _trajectories(batches: Sequence[Any], path: Path) -> tuple[list[Trajectory], list[bool]]:
    found: list[Trajectory] = []
    terminal: list[bool] = []
    for batch in batches:
        names = batch.schema.names
        for name in ("obs", "acts", "terminal"):
            if names.count(name) != 1:
                raise EluteError(
                    f"{path}: no column {name!r}, so these are no trajectories",
                    hint="there are " + ", ".join(names[:12]),
                )
        ends = arrow_stream.numbers(batch["terminal"], f"{path}: terminal")
        terminal += ends.astype(bool).tolist()
        obs, acts = _steps(batch["obs"], f"{path}: obs"), _steps(batch["acts"], f"{path}: acts")
        rews = _steps(batch["rews"], f"{path}: rews") if "rews" in names else [None] * len(acts)
        found += [
            Trajectory(o, a, None if r is None else _flat(r, path))
            for o, a, r in zip(obs, acts, rews, strict=True)
        ]
    for i, trajectory in enumerate(found):
        _check(trajectory, found[0], f"{path}: trajectory {i}")
    return found, terminal


def _steps(column: Any, what: str) -> list[Array]:  # noqa: ANN401
    """The rows of each trajectory."""
    begins, items = arrow_stream.lists(column, what)
    rows = arrow_stream.matrix(items.slice(int(begins[0]), int(begins[-1] - begins[0])), what)
    begins = begins - begins[0]
    return [rows[a:b] for a, b in pairwise(begins)]


def _flat(rewards: Array, path: Path) -> Array:
    if rewards.shape[1] != 1:
        raise EluteError(f"{path}: rews has {rewards.shape[1]} numbers per step; expected one")
    return rewards[:, 0]


def _check(trajectory: Trajectory, first: Trajectory, what: str) -> None:
    n = len(trajectory.actions)
    rewards = n if trajectory.rewards is None else len(trajectory.rewards)
    if len(trajectory.observations) != n + 1 or rewards != n:
        raise EluteError(
            f"{what} has {len(trajectory.observations)} observations, {n} actions and {rewards} "
            "rewards; expected one observation more than actions"
        )
    for name in ("observations", "actions", "rewards"):
        mine, its = getattr(trajectory, name), getattr(first, name)
        kinds = [None if a is None else (a.dtype, a.shape[1:]) for a in (mine, its)]
        if kinds[0] != kinds[1]:
            raise EluteError(f"{what} has other {name} than the first: widths or types differ")


@dataclass(frozen=True, eq=False)
class _Extra:
    """An extra column of all rows of the file, in parts that stay on the disk."""

    parts: Sequence[Array]

    def rows(self, start: int, stop: int) -> Array:
        found, first = [], 0
        for part in self.parts:
            a, b = max(start - first, 0), stop - first
            if a < len(part) and b > 0:
                found.append(part[a:b])
            first += len(part)
        return np.concatenate(found)


def _extras(folder: Path, rows: int) -> dict[str, _Extra]:
    """The extra columns that elute keeps in a file of its own."""
    if not os.path.lexists(folder / EXTRAS):
        return {}
    path = inside(folder, "", EXTRAS)
    schema, batches = arrow_stream.read_batches(path)
    extras: dict[str, _Extra] = {}
    with arrow_stream.reading(path):
        for i, field in enumerate(schema):
            shape = json.loads((field.metadata or {})[b"shape"])
            parts = [_rows(batch.column(i), shape, f"{path}: {field.name}") for batch in batches]
            found = sum(map(len, parts))
            if found != rows:
                raise EluteError(
                    f"{path}: {found} rows of {field.name} for {rows} steps",
                    hint="delete the file to read the trajectories without it",
                )
            text = parts[0].dtype.kind in "SU"  # parts may be of different widths
            extras[field.name] = _Extra([np.concatenate(parts)] if text else parts)
    return extras


def _rows(array: Any, shape: Any, what: str) -> Array:  # noqa: ANN401
    """An extra column with the shape that its rows had."""
    pa = arrow_stream.arrow()
    whole = (len(array), *(int(size) for size in shape))
    if 0 in whole[1:]:
        return np.empty(whole)
    items = array.flatten() if arrow_stream.is_list(array.type) else array
    if pa.types.is_string(items.type) or pa.types.is_binary(items.type):
        return np.array(
            items.to_pylist(), dtype="S" if pa.types.is_binary(items.type) else "U"
        ).reshape(whole)
    return arrow_stream.numbers(items, what).reshape(whole)


def _carried(batches: Sequence[Any]) -> tuple[str, ...]:
    """Columns that elute does not hold; infos that say nothing are no loss."""
    pa = arrow_stream.arrow()
    names = [name for name in batches[0].schema.names if name not in COLUMNS]
    for batch in batches:
        if INFOS in batch.schema.names:
            infos = batch[INFOS]
            items = infos.flatten() if arrow_stream.is_list(infos.type) else infos
            text = pa.types.is_string(items.type) or pa.types.is_large_string(items.type)
            if not text or not pa.compute.all(pa.compute.equal(items, "{}")).as_py():
                return (*names, INFOS)
    return tuple(names)


def write(path: Path, source: DemoSource, sample: Demonstrations) -> ImitationWriter:
    """Start a folder of trajectories; columns of a source of the same format come along."""
    return ImitationWriter(path, source, sample)
