"""Raw recordings of robosuite: simulator states, actions and a model, but no observations.

    /data               attributes: env, env_info, repository_version, date, time
    /data/demo_1        attribute: model_file
        states (N, D)   [time, positions, velocities], before each action
        actions (N, A)  RoboTurk: joint_velocities (N, 7), gripper_actuations (N, 1)

States and models are the only ground truth of such a file, so they are never changed. Without a
simulator the states stand in for observations. Observations that are not the states (computed from
them, or purified) have an array of their own beside, which robosuite does not look at; so have
rewards.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elute.columns import Column, blocks, columns
from elute.demos import arrays, demo_groups, hdf5, hdf5_write, note
from elute.demos.hdf5_output import OutputFile
from elute.episodes import Array, Episodes, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

STATES, MODEL, MODEL_NAME = "states", "model_file", "model_name"
GRIPPER = "gripper_actuations"
FIRST = 1
"""robosuite counts from one."""
_OBSERVATIONS, _FOLLOWING, _REWARDS = "observations", "next_observations", "rewards"
_DERIVED = re.compile(r"(left|right)_d(pos|quat)")
"""The same action, as the displacement of a hand."""


@dataclass(frozen=True)
class Recording:
    """What robosuite and RoboTurk do in different ways."""

    format: str
    actions: tuple[str, ...]
    """The first must be there."""
    attributes: Callable[[h5py.Group, bool], dict[str, Any]]
    """Of a demonstration, its model included; and whether it may be without."""


def read(path: Path, of: Recording, *, source: Path | None = None) -> hdf5.Hdf5Demos:
    """Open a recording."""
    with arrays.reading(path, of.format) as file:
        names = demo_groups.demo_names(file, path)
        groups = [file[f"data/{name}"] for name in names]
        lengths = [arrays.Rows(group, of.actions[0], path).shape[0] for group in groups]
        noted = hdf5.read_note(file, path)
        layout, carried = _scan(groups, lengths, of, path)
        carried += arrays.strangers(file, known=("data", note.NAME))
        attributes = [
            {**of.attributes(group, noted is not None), "name": name}
            for name, group in zip(names, groups, strict=True)
        ]
        header = note.Header(
            # The collector throws failures away: it stops when the task is done.
            episodes=Episodes.of(
                lengths, [True] * len(lengths), inferred=True, attributes=attributes
            ),
            observation_columns=_columns(groups[0], layout.observations, (), path),
            action_columns=_columns(
                groups[0], layout.actions, noted.action_columns if noted else (), path
            ),
            provenance=Provenance(
                metadata={
                    of.format: demo_groups.attributes(file["data"]),
                    note.TYPES: {
                        "actions": arrays.mixed_types(groups[0], layout.actions, layout.actions)
                    },
                }
            ),
        )
        return hdf5.opened(
            path, of.format, layout, header, note=noted, carried=carried, source=source
        )


def _scan(
    groups: Sequence[h5py.Group], lengths: Sequence[int], of: Recording, path: Path
) -> tuple[hdf5.Layout, list[str]]:
    observations = _OBSERVATIONS if _OBSERVATIONS in groups[0] else STATES
    for group, rows in zip(groups, lengths, strict=True):
        found = arrays.Rows(group, observations, path).shape
        if found[0] != rows:
            raise EluteError(
                f"{path}: {group.name}/{observations} has shape {found}; expected {rows} rows like "
                f"{of.actions[0]}"
            )
    layout = _layout(groups, lengths, observations, of)
    others = arrays.shared_arrays(groups, lengths, skip=layout.arrays)
    held = [name for name, fits in others.items() if fits]
    carried = [name for name in others if name not in held]
    return replace(layout, extras={name: name for name in held}), carried


def _layout(
    groups: Sequence[h5py.Group], lengths: Sequence[int], observations: str, of: Recording
) -> hdf5.Layout:
    first = groups[0]
    return hdf5.Layout(
        groups=tuple(group.name for group in groups),
        group_rows=tuple(lengths),
        observations=(observations,),
        actions=tuple(name for name in of.actions if name in first),
        rewards=_REWARDS if _REWARDS in first else None,
        next_observations=(_FOLLOWING,) if _FOLLOWING in first else (),
    )


def _columns(
    group: h5py.Group, names: Sequence[str], noted: Sequence[Any], path: Path
) -> tuple[Column, ...]:
    """Columns named after their arrays, or without a name if elute noted one for each."""
    keys = {_OBSERVATIONS: "observation", "actions": "action"}
    found = arrays.array_columns(group, names, [keys.get(name, name) for name in names], path)
    if sum(len(block.roles) for block in noted) == len(found):
        return columns("action", len(found))
    return tuple(replace(c, role="discrete") if c.key == GRIPPER else c for c in found)


def write(
    copy: demo_groups.Copy | None,
    path: Path,
    of: Recording,
    source: DemoSource,
    sample: Demonstrations,
    put_model: Callable[[h5py.Group, Mapping[str, Any]], None] = lambda group, attributes: None,
) -> "RecordingWriter":
    """Start a recording: in a copy of the source's file, or a fresh one at `path`.

    Args:
        copy: the copy, if there is one.
        path: of the HDF5 file.
        of: which kind.
        source: what will be written.
        sample: a row of it.
        put_model: leaves the model of a fresh demonstration, where it is no attribute.
    """
    losses = hdf5_write.container_losses(source, source.origin if copy else None)
    losses += _stale(sample)
    if copy is None:
        names = demo_groups.new_names(source.episodes, FIRST)
        file = _fresh(path, names, of, source, sample, put_model)
        losses += _unknown([file[f"data/{name}"] for name in names], source, sample)
        if len(of.actions) > 1 and source.action_columns[-1].role != "discrete":
            losses.append(f"{source.action_columns[-1].name} stands in for the gripper")
    else:
        names, file = copy.names, copy.file
    groups = [file[f"data/{name}"] for name in names]
    observations = _OBSERVATIONS if _OBSERVATIONS in groups[0] else STATES
    for group in groups if copy else ():
        for name, like in ((_REWARDS, sample.rewards), (_FOLLOWING, sample.next_observations)):
            if like is not None and name not in group:
                group.create_dataset(name, (len(group[observations]), *like.shape[1:]), like.dtype)
    layout = _layout(groups, source.episodes.lengths.tolist(), observations, of)
    recorded = STATES in sample.extras or observations == STATES
    demo_groups.mark_purified(file, source.provenance, states=recorded)
    named = copy is not None or names == demo_groups.given_names(source.episodes)
    skip = ("name", MODEL_NAME) if named else ()
    attributes = hdf5_write.unheld(groups, source.episodes, skip=skip)
    absent = [] if sample.rewards is not None else ["rewards"]
    hdf5_write.write_note(file, note.encode(source, attributes=attributes, absent=absent))
    return RecordingWriter(
        hdf5_write.Hdf5Writer(file, layout, source.episodes, losses, copied=copy is not None)
    )


class RecordingWriter:
    """Writes rows, but never over the states that were recorded."""

    def __init__(self, inner: hdf5_write.Hdf5Writer) -> None:
        self.inner = inner
        self.losses, self.copied = inner.losses, inner.copied

    def put(
        self, start: int, rows: Demonstrations, unchanged: Demonstrations | None = None
    ) -> None:
        """Write a chunk; observations that are no longer the states part from them."""
        together = self.copied and self.inner.layout.observations == (STATES,)
        if together and not self._are_states(start, rows.observations):
            self._part()
        self.inner.put(start, rows, unchanged)

    def _are_states(self, start: int, values: Array) -> bool:
        layout, file = self.inner.layout, self.inner.file
        spans = layout.spans(start, start + len(values))
        return all(
            file[group][STATES][first:last].tobytes() == values[at : at + last - first].tobytes()
            for group, first, last, at in spans
        )

    def _part(self) -> None:
        layout = self.inner.layout
        for name in layout.groups:
            group = self.inner.file[name]
            group[_OBSERVATIONS] = group[STATES][:]
        self.inner.layout = replace(layout, observations=(_OBSERVATIONS,))

    def finish(self) -> None:
        """Everything is written."""
        self.inner.finish()

    def close(self) -> None:
        """Let go of the file."""
        self.inner.close()


def _stale(sample: Demonstrations) -> list[str]:
    """Arrays that say the action in another way and no longer agree with it."""
    done = {step["operation"] for step in sample.provenance.steps}
    changed = done & {"corrupt", "clip", "purify"}
    derived = [name for name in sample.extras if _DERIVED.fullmatch(name)]
    return [f"{name}: still that of the recorded actions" for name in derived if changed]


def _unknown(groups: Sequence[h5py.Group], source: DemoSource, sample: Demonstrations) -> list[str]:
    """What a simulator would need to play a fresh file."""
    lost = []
    if STATES not in sample.extras and not _observes_states(source, sample):
        lost.append("simulator states are unknown: robosuite cannot play the file")
    if not all(MODEL in group.attrs for group in groups):
        lost.append("the simulator's model is unknown: robosuite cannot play the file")
    return lost


def _observes_states(source: DemoSource, sample: Demonstrations) -> bool:
    """Whether the observations are the states of a recording, unchanged."""
    keys = [block.key for block in blocks(source.observation_columns)]
    moved = any(
        step["operation"] == "purify" and step.get("target") == "joint"
        for step in source.provenance.steps
    )
    return keys == [STATES] and STATES not in sample.extras and not moved


def _fresh(
    path: Path,
    names: Sequence[str],
    of: Recording,
    source: DemoSource,
    sample: Demonstrations,
    put_model: Callable[[h5py.Group, Mapping[str, Any]], None],
) -> OutputFile:
    file = OutputFile(path, "w", track_order=True, libver="v108")
    data = file.create_group("data", track_order=True)
    metadata = source.provenance.metadata
    known = {**metadata.get("robosuite", {}), **metadata.get("roboturk", {})}
    defaults = {"env": source.provenance.task or "unknown", "env_info": "{}"}
    hdf5_write.put_attributes(data, {**defaults, "repository_version": "unknown", **known})
    observations = STATES if _observes_states(source, sample) else _OBSERVATIONS
    shapes: dict[str, Array | None] = {
        observations: sample.observations,
        _FOLLOWING: sample.next_observations,
        _REWARDS: sample.rewards,
        **_split(sample.actions, of.actions),
    }
    types = note.types_of(source.provenance, "actions")
    for i, name in enumerate(names):
        group = data.create_group(name, track_order=True)
        given = {k: v for k, v in source.episodes.attributes[i].items() if k != "name"}
        put_model(group, given)
        hidden = {MODEL, MODEL_NAME} if MODEL in group.attrs else ()  # the model is a file now
        hdf5_write.put_attributes(group, {k: v for k, v in given.items() if k not in hidden})
        rows = int(source.episodes.lengths[i])
        for array, like in shapes.items():
            if like is not None:
                dtype = np.dtype(types.get(array, like.dtype))
                group.create_dataset(array, (rows, *like.shape[1:]), dtype)
    return file


def _split(actions: Array, names: Sequence[str]) -> dict[str, Array | None]:
    """The arrays of an action: with two of them, the gripper is the last column."""
    if len(names) == 1 or actions.shape[1] == 1:
        return {names[0]: actions}
    return {names[0]: actions[:, :-1], names[1]: actions[:, -1:]}
