"""Which array of demonstrations goes into which column of a LeRobot data set."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from elute.columns import Column, blocks
from elute.demos import lerobot_meta as meta
from elute.demos import lerobot_parquet as parquet
from elute.demos import note
from elute.demos.lerobot_copy import Copy
from elute.demos.lerobot_read import ACTION, DONE, NAME, NEXT, REWARD, STATE, TRUNCATED, memo
from elute.episodes import Array
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

FPS = 10
"""Stands in where nobody said how many frames a second has."""

_DERIVED = ("frame_index", "episode_index", "index")
_FILLERS = ("timestamp", "task_index", DONE, TRUNCATED)
_TYPES = {"timestamp": pa.float32(), DONE: pa.bool_(), TRUNCATED: pa.bool_()}
_MAX_DIMENSIONS = 5  # of a feature in LeRobot

Targets = list[tuple[str, slice]]


def _targets(of: Sequence[Column], known: Sequence[str], flat: str) -> Targets:
    """Which columns of the data set hold which columns of a vector."""
    found = blocks(of)
    keys = [block.key for block in found]
    if set(keys) <= set(known) and len(set(keys)) == len(keys):
        return [(block.key, slice(block.start, block.stop)) for block in found]
    return [(flat, slice(0, len(of)))]


@dataclass(frozen=True)
class Plan:
    """What goes where in the new data set."""

    observations: Targets
    actions: Targets
    following: Targets
    extras: dict[str, str]
    """Name of the extra column -> column."""
    schema: pa.Schema
    features: dict[str, Any]
    tasks: tuple[str, ...]
    fps: float
    narrow: list[str]
    fillers: list[str]
    """Columns that nobody measured, and "fps"."""
    unheld: list[str]
    """What cannot be kept."""

    def fresh_losses(self, source: DemoSource, sample: Demonstrations) -> list[str]:
        """What is made up in a fresh data set because LeRobot demands it."""
        losses = []
        if "fps" in self.fillers:
            losses.append(f"frames per second are unknown: {FPS} stand in, so marked (say --fps)")
        if not source.provenance.task and "task_index" not in sample.extras:
            losses.append("the task is unknown: 'unknown' stands in, so marked")
        return losses

    def held(self, rows: Demonstrations) -> Iterator[tuple[str, Array, Targets]]:
        """Each array of the rows: its name, itself, and the columns that it goes into."""
        vectors = (("observations", self.observations), ("actions", self.actions),
                   ("rewards", [(REWARD, slice(None))]),
                   ("next_observations", self.following))  # fmt: skip
        for name, targets in vectors:
            values = getattr(rows, name)
            if values is not None:
                yield name, values, targets
        for name, column in self.extras.items():
            if name in rows.extras:
                yield f"extras/{name}", rows.extras[name], [(column, slice(None))]


def planned(source: DemoSource, sample: Demonstrations, copy: Copy | None) -> Plan:
    """What goes where, for rows like `sample`."""
    known = dict(source.provenance.metadata.get(NAME, {}))
    features = dict(copy.data.raw["features"]) if copy else {}
    fields = {field.name: field for field in copy.schema} if copy else {}
    names = list(fields) if copy else _own_names(source)
    columns = _Columns(fields, features, _known_features(known))
    observations = _targets(source.observation_columns, names, STATE)
    actions = _targets(source.action_columns, names, ACTION)
    following = [(NEXT + name, part) for name, part in observations]
    columns.vector(observations, sample.observations, source, "observation")
    columns.vector(actions, sample.actions, source, "action")
    if sample.next_observations is not None:
        columns.vector(following, sample.next_observations, source, "observation")
    if sample.rewards is not None:
        columns.add(REWARD, sample.rewards)
    tasks = copy.data.tasks if copy else _known_tasks(known)
    extras = columns.extras(sample, _stored_names(copy), has_tasks=bool(tasks))
    fps = copy.data.info.fps if copy else _fps(source)
    for name in (*_FILLERS, *_DERIVED):
        if name not in fields and (copy is None or name not in (DONE, TRUNCATED)):
            columns.book(name)
    return Plan(
        observations=observations,
        actions=actions,
        following=following,
        extras=extras,
        schema=columns.schema(copy),
        features=columns.features,
        tasks=tasks or (source.provenance.task or "unknown",),
        fps=fps or FPS,
        narrow=columns.narrow,
        fillers=[
            name
            for name in _FILLERS
            if name in fields
            and name not in extras.values()
            and parquet.is_number(fields[name].type)
        ]
        + ["fps"] * (fps is None or (copy is not None and "fps" not in known)),
        unheld=columns.unheld,
    )


class _Columns:
    """The columns and features of a new data set while they are put together."""

    def __init__(
        self, fields: dict[str, pa.Field], features: dict[str, Any], known: Mapping[str, Any]
    ) -> None:
        self.fields, self.features, self.known = fields, features, known
        self.given = dict(fields)
        self.narrow: list[str] = []
        self.unheld: list[str] = []

    def vector(self, targets: Targets, like: Array, source: DemoSource, kind: str) -> None:
        """Columns that hold a vector, in the types of the arrays that it was joined from."""
        types = note.types_of(source.provenance, f"{kind}s")
        of = getattr(source, f"{kind}_columns")
        for name, part in targets:
            values = like[:, part]
            if name not in self.fields:
                values = values.astype(types.get(name.removeprefix(NEXT), values.dtype))
                flat = name.removeprefix(NEXT) not in {column.key for column in of}
                self.add(name, values, names=[c.name for c in of[part]] if flat else None)

    def add(self, name: str, values: Array, names: list[str] | None = None) -> None:
        """A column for such values, unless there is one that fits."""
        shape = list(values.shape[1:]) or [1]
        if name in self.fields and self._fits(name, values, shape):
            return
        try:
            self.fields[name] = pa.field(name, parquet.column_type(values))
        except pa.ArrowException as error:
            raise EluteError(
                f"{name} is {values.dtype}, which LeRobot cannot hold", hint="write it as .npz"
            ) from error
        dtype = "string" if values.dtype.kind == "U" else values.dtype.name
        said = self.known.get(name)
        agrees = isinstance(said, dict) and (said.get("dtype"), said.get("shape")) == (dtype, shape)
        made = {"dtype": dtype, "shape": shape, "names": names}
        self.features[name] = said if agrees else made

    def _fits(self, name: str, values: Array, shape: list[int]) -> bool:
        kind = self.fields[name].type
        lists = parquet.depth(kind)
        feature = self.features.get(name)
        known = feature.get("shape") if isinstance(feature, dict) else None
        same = parquet.number_type(kind) == values.dtype and known == shape
        return same and (lists == values.ndim - 1 or (lists == 0 and shape == [1]))

    def extras(
        self, sample: Demonstrations, stored: Mapping[str, str], *, has_tasks: bool
    ) -> dict[str, str]:
        """A column for each extra column that LeRobot can hold."""
        found: dict[str, str] = {}
        taken = {*self.fields} - {*self.given}
        for name, values in sample.extras.items():
            if values.dtype.kind == "S" or 0 in values.shape or values.ndim - 1 > _MAX_DIMENSIONS:
                self.unheld.append(f"{name}: {values.dtype} of shape {values.shape[1:]} per row")
                continue
            column = stored.get(name) or self._named(name, values, has_tasks=has_tasks)
            if column in taken:
                raise EluteError(
                    f"the extra column {name!r} has the name of a column that the format itself "
                    "uses",
                    hint="write it as .npz, or rename the column",
                )
            taken.add(column)
            self.add(column, values)
            if values.shape[1:] == (1,) and parquet.depth(self.fields[column].type) == 0:
                self.narrow.append(column)
            found[name] = column
        return found

    def _named(self, name: str, values: Array, *, has_tasks: bool) -> str:
        """LeRobot takes what begins with action for actions, and / for a folder."""
        if name in self.given or name in self.known:
            own = {"timestamp": np.float32, "task_index": np.int64 if has_tasks else None}
            if name not in own or (values.dtype == own[name] and values.ndim == 1):
                return name
        plain = name.replace("/", ".")
        reserved = plain.split(".")[0].startswith(("observation", "action")) or plain in (
            *meta.BOOKKEEPING,
            REWARD,
            DONE,
            TRUNCATED,
        )
        return f"extra.{plain}" if reserved else plain

    def book(self, name: str) -> None:
        """A column that LeRobot itself would have made."""
        if name not in self.fields:
            kind = _TYPES.get(name, pa.int64())
            self.fields[name] = pa.field(name, kind)
            dtype = str(np.dtype(kind.to_pandas_dtype()))
            self.features[name] = {"dtype": dtype, "shape": [1], "names": None}

    def schema(self, copy: Copy | None) -> pa.Schema:
        """The columns in order; what Hugging Face noted about them goes if it is no longer true."""
        same = self.fields == self.given
        return pa.schema(
            list(self.fields.values()), metadata=copy.schema.metadata if copy and same else None
        )


def _stored_names(copy: Copy | None) -> dict[str, str]:
    left = memo(copy.data.root) if copy else None
    return {name: column for column, name in left.names.items()} if left else {}


def _own_names(source: DemoSource) -> list[str]:
    """Arrays of a fresh data set that may keep their names, because they are LeRobot's."""
    observed = [c.key for c in source.observation_columns]
    acted = [c.key for c in source.action_columns]
    ours = all(key.startswith("observation.") and "/" not in key for key in observed)
    theirs = all(key.split(".")[0] == ACTION and "/" not in key for key in acted)
    return [*observed] * ours + [*acted] * theirs


def _known_features(known: Mapping[str, Any]) -> dict[str, Any]:
    features = known.get("features")
    return dict(features) if isinstance(features, dict) else {}


def _known_tasks(known: Mapping[str, Any]) -> tuple[str, ...]:
    tasks = known.get("tasks")
    texts = isinstance(tasks, list) and all(isinstance(task, str) for task in tasks)
    return tuple(tasks) if texts and isinstance(tasks, list) else ()


def _fps(source: DemoSource) -> float | None:
    for key in ("rate", NAME):
        said = source.provenance.metadata.get(key)
        fps = said.get("fps") if isinstance(said, dict) else None
        if isinstance(fps, int | float) and 0 < fps < 1e6:
            return fps
    return None


def same_vectors(copy: Copy, source: DemoSource) -> bool:
    """Whether the vectors still are those of the data set, not cut to some columns."""
    for kind, flat in (("observation", STATE), ("action", ACTION)):
        for name, part in _targets(getattr(source, f"{kind}_columns"), copy.schema.names, flat):
            feature = copy.data.info.features.get(name)
            if feature is None or feature.shape != [part.stop - part.start]:
                return False
    return True
