"""Reading LeRobot data sets, whole or a chunk at a time.

The vectors of numbers among `observation.*` are joined (those chosen by `--keys`, or all), `action`
is the action, `next.reward` the reward; other columns of numbers are extra columns, and images,
text and arrays of more dimensions stay in the folder. An episode that ends with `next.done` has
terminated; where `next.truncated` is missing, any other end is taken for a cut, and marked as
inferred. What elute has no other place for is in `meta/elute.json`, which LeRobot does not read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pydantic

from elute.columns import Column, columns
from elute.demos import lerobot_meta as meta
from elute.demos import lerobot_parquet as parquet
from elute.demos import note as notes
from elute.demos.format import ReadOptions
from elute.demos.hdf5 import merged, pieces_in_file, selected, stamp
from elute.demos.uninterrupted import uninterrupted
from elute.episodes import Array, Episodes, Origin, Piece, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations

NAME = "lerobot"
STATE, ACTION, REWARD = "observation.state", "action", "next.reward"
DONE, TRUNCATED = "next.done", "next.truncated"
NEXT = "next."
"""Before the name of an observation: the same after the action."""

_COUNTS = ("total_episodes", "total_frames", "total_tasks", "total_videos", "total_chunks")
_EPISODE = ("episode_index", "length", "dataset_from_index", "dataset_to_index")


class Memo(pydantic.BaseModel):
    """What `meta/elute.json` holds."""

    note: notes.Note
    names: dict[str, str] = {}
    """Column -> name of the extra column, where LeRobot cannot have that name."""
    narrow: list[str] = []
    """Columns of one number per row that were arrays one column wide."""


@dataclass(frozen=True)
class Layout:
    """Which column is what."""

    observations: tuple[str, ...]
    actions: tuple[str, ...]
    rewards: str | None
    next_observations: tuple[str, ...]
    extras: Mapping[str, str]
    """Name of the extra column -> its column."""
    narrow: frozenset[str] = frozenset()

    @property
    def columns(self) -> list[str]:
        """All that are read."""
        rewards = (self.rewards,) if self.rewards else ()
        named = (*self.observations, *self.actions, *rewards, *self.next_observations)
        return list(dict.fromkeys((*named, *self.extras.values())))


@dataclass(frozen=True, eq=False)
class LeRobotDemos:
    """A data set, open in name only: every call opens, reads and closes its files."""

    data: meta.DataSet
    layout: Layout
    episodes: Episodes
    observation_columns: tuple[Column, ...]
    action_columns: tuple[Column, ...]
    provenance: Provenance
    origin: Origin

    def select(self, episodes: Sequence[int]) -> "LeRobotDemos":
        """The same data set, only these episodes."""
        kept, origin = selected(self.episodes, self.origin, episodes)
        return replace(self, episodes=kept, origin=origin)

    def rows(self, start: int, stop: int) -> Demonstrations:
        """Rows `start..stop`, read from their files."""
        file_pieces = pieces_in_file(self.episodes, self.origin, start, stop)
        with uninterrupted():
            read = read_columns(self.data, merged(file_pieces), self.layout.columns)
        layout = self.layout
        return Demonstrations(
            observations=_joined(read, layout.observations),
            actions=_joined(read, layout.actions),
            rewards=read[layout.rewards].reshape(-1) if layout.rewards else None,
            next_observations=(
                _joined(read, layout.next_observations) if layout.next_observations else None
            ),
            extras={
                name: read[column].reshape(-1, 1) if column in layout.narrow else read[column]
                for name, column in layout.extras.items()
            },
            episodes=self.episodes.cut(self.episodes.pieces(start, stop)),
            observation_columns=self.observation_columns,
            action_columns=self.action_columns,
            provenance=self.provenance,
            origin=replace(self.origin, pieces=file_pieces),
        )


def read_columns(
    data: meta.DataSet, runs: Sequence[tuple[int, int]], names: Sequence[str]
) -> dict[str, Array]:
    """Runs of rows of some columns, and a check that each row is of the episode it should be."""
    parts: dict[str, list[Array]] = {name: [] for name in (*names, "episode_index")}
    for start, stop in runs:
        for path, first, last in data.spans(start, stop):
            for table in parquet.pieces(path, first, last, list(parts)):
                with parquet.reading(path):
                    for name, arrays in parts.items():
                        arrays.append(_numbers(data, table[name], name, path))
    with parquet.reading(data.root):
        read = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    stops = np.cumsum(data.lengths)
    rows = np.concatenate([np.arange(start, stop) for start, stop in runs])
    expected = np.searchsorted(stops, rows, side="right")
    if not np.array_equal(read["episode_index"].reshape(-1), expected):
        raise EluteError(
            f"{data.root}: episode_index of the frames disagrees with the table of episodes",
            hint="frames must stand in the order of their episodes",
        )
    return read


def _numbers(data: meta.DataSet, column: pa.ChunkedArray, name: str, path: Path) -> Array:
    feature = data.info.features.get(name)
    try:
        return parquet.numbers(column, name, feature.shape if feature else (1,))
    except EluteError as error:
        raise EluteError(f"{path}: {error.message}", hint=error.hint) from error


def _joined(read: Mapping[str, Array], names: Sequence[str]) -> Array:
    parts = [read[name].reshape(len(read[name]), -1) for name in names]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def opened(root: Path, options: ReadOptions) -> LeRobotDemos:
    """Open a data set."""
    data = meta.opened(root)
    found = memo(root)
    note = found.note if found else None
    vectors = _vectors(data)
    keys = _chosen(data, vectors, options.keys, note)
    actions = _actions(data, vectors, note)
    layout = _layout(vectors, keys, actions, found)
    absent = note.absent if note else []
    header = notes.Header(
        episodes=_episodes(data, vectors, note),
        observation_columns=_columns(vectors, keys, note, "observation"),
        action_columns=_columns(vectors, actions, note, "action"),
        provenance=Provenance(metadata=_metadata(data, vectors, keys, actions, absent)),
    )
    if note:
        header = notes.apply(note, header)
    starts, lengths = header.episodes.starts.tolist(), header.episodes.lengths.tolist()
    return LeRobotDemos(
        data=data,
        layout=layout,
        episodes=header.episodes,
        observation_columns=header.observation_columns,
        action_columns=header.action_columns,
        provenance=replace(header.provenance, source=str(root), format=NAME),
        origin=Origin(
            root, NAME, stamp(root), tuple(map(Piece, starts, lengths)), _carried(data, vectors)
        ),
    )


def memo(root: Path) -> Memo | None:
    """What elute left in the folder when it wrote it.

    Raises:
        EluteError: it is damaged.
    """
    path = meta.inside(root, meta.NOTE_PATH)
    if not path.is_file():
        return None
    with parquet.reading(path):
        text = path.read_text(encoding="utf-8")
        stored = json.loads(text)
    if not isinstance(stored, dict):
        raise EluteError(f"{path}: no JSON object", hint="delete it to read without the note")
    if not stored.get("note"):
        return None
    note = notes.decode(json.dumps(stored["note"]), str(path))
    try:
        return Memo.model_validate({**stored, "note": note})
    except pydantic.ValidationError as error:
        raise EluteError(
            f"{path}: elute's note is damaged", hint="delete it to read without the note"
        ) from error


def _vectors(data: meta.DataSet) -> dict[str, tuple[int, np.dtype[Any]]]:
    """Columns of numbers, one or several per row -> how many, and their type."""
    found = {}
    for field in data.schema:
        if field.name in meta.BOOKKEEPING and not parquet.is_number(field.type):
            raise EluteError(
                f"{data.root}: {field.name} is {field.type}; expected one number per row"
            )
        kind, lists = parquet.number_type(field.type), parquet.depth(field.type)
        feature = data.info.features.get(field.name)
        if kind is None or lists > 1 or (feature is None and field.name not in meta.BOOKKEEPING):
            continue
        shape = feature.shape if feature else [1]
        width = int(np.prod(shape, dtype=object))
        if len(shape) > 1 or width < 1 or (lists == 0 and width > 1):
            continue
        if width > parquet.MAX_WIDTH:
            raise EluteError(f"{data.root}: {field.name} has {width} numbers per row")
        found[field.name] = (width, kind)
    return found


def _chosen(
    data: meta.DataSet,
    vectors: Mapping[str, Any],
    asked: Sequence[str],
    note: notes.Note | None,
) -> list[str]:
    known = [name for name in vectors if name.split(".")[0] == "observation"]
    for name in asked:
        if name not in known:
            raise EluteError(
                f"{data.root}: no observation {name!r}",
                hint="there are " + (", ".join(known) or "none that are numbers"),
            )
    noted = [block.key for block in note.observation_columns] if note else []
    if not asked and noted:
        if set(noted) <= set(known):
            return noted
        if STATE in known:  # elute joined them when it wrote the data set
            return [STATE]
    if not known:
        raise EluteError(
            f"{data.root}: no observation.* that is numbers per step; elute needs some",
            hint="features are " + ", ".join(data.info.features),
        )
    return list(asked) or known


def _actions(data: meta.DataSet, vectors: Mapping[str, Any], note: notes.Note | None) -> list[str]:
    noted = [block.key for block in note.action_columns] if note else []
    if noted and set(noted) <= set(vectors):
        return noted
    several = [name for name in vectors if name.startswith("action.")]
    actions = [ACTION] if ACTION in vectors else several
    if not actions:
        raise EluteError(
            f"{data.root}: no column 'action' that is numbers per step",
            hint="features are " + ", ".join(data.info.features),
        )
    return actions


def _layout(
    vectors: Mapping[str, Any], keys: Sequence[str], actions: Sequence[str], left: Memo | None
) -> Layout:
    following = tuple(NEXT + key for key in keys)
    if not set(following) <= set(vectors):
        following = ()
    derived = ("frame_index", "episode_index", "index")
    absent = set(left.note.absent) if left else set()
    used = {*keys, *actions, REWARD, *following, *derived, *absent}
    names = left.names if left else {}
    extras = {names.get(name, name): name for name in vectors if name not in used}
    for name in extras:
        if name in ("", ".") or "\0" in name:
            raise EluteError(f"a column is called {name!r}", hint="rename it")
    narrow = set(left.narrow) if left else set()
    scalars = {name for name, (width, _) in vectors.items() if width == 1}
    return Layout(
        observations=tuple(keys),
        actions=tuple(actions),
        rewards=REWARD if REWARD in scalars and REWARD not in absent else None,
        next_observations=following,
        extras=extras,
        narrow=frozenset(narrow & scalars),
    )


def _carried(data: meta.DataSet, vectors: Mapping[str, Any]) -> tuple[str, ...]:
    named = [f.name for f in data.schema] + data.videos
    return tuple(name for name in dict.fromkeys(named) if name not in vectors)


def _columns(
    vectors: Mapping[str, tuple[int, np.dtype[Any]]],
    keys: Sequence[str],
    note: notes.Note | None,
    kind: str,
) -> tuple[Column, ...]:
    noted = [block.key for block in getattr(note, f"{kind}_columns", ())]
    nameless = len(keys) == 1 and noted and noted != list(keys)
    return tuple(
        column
        for key in keys
        for column in columns(
            kind if nameless else key,  # a nameless array takes the names that were noted
            vectors[key][0],
            discrete=vectors[key][1].kind in "iub",
        )
    )


def _metadata(
    data: meta.DataSet,
    vectors: Mapping[str, tuple[int, np.dtype[Any]]],
    keys: Sequence[str],
    actions: Sequence[str],
    absent: Sequence[str],
) -> dict[str, Any]:
    said = {name: value for name, value in data.raw.items() if name not in _COUNTS}
    if "fps" in absent:
        del said["fps"]
    if "task_index" not in absent:
        said["tasks"] = list(data.tasks)
    metadata: dict[str, Any] = {NAME: said}
    types = {
        kind: {name: str(vectors[name][1]) for name in names}
        for kind, names in (("observations", keys), ("actions", actions))
        if len({vectors[name][1] for name in names}) > 1
    }
    return metadata | ({notes.TYPES: types} if types else {})


def _episodes(data: meta.DataSet, vectors: Mapping[str, Any], note: notes.Note | None) -> Episodes:
    absent = note.absent if note else []
    attributes = episode_attributes(data)
    if "task_index" in absent:
        for known in attributes:
            known.pop("tasks", None)
    flags = [name for name in (DONE, TRUNCATED) if vectors.get(name, (0,))[0] == 1]
    if note and len(note.ends) == len(data.lengths):  # the note will say how they ended
        flags = []
    ends = _last_rows(data, flags) if flags else {}
    no = np.zeros(len(data.lengths), dtype=bool)
    terminated = ends.get(DONE, no)
    inferred = TRUNCATED not in ends
    truncated = ~terminated if inferred else ends[TRUNCATED]
    return Episodes.of(
        data.lengths, terminated, truncated, inferred=inferred, attributes=attributes
    )


def episode_attributes(data: meta.DataSet) -> list[dict[str, Any]]:
    """What the table of episodes says about each, besides where it is and its statistics."""
    kept = [
        name
        for name in data.episodes.column_names
        if name not in _EPISODE and not name.startswith(("stats/", "videos/", "data/", "meta/"))
    ]
    with parquet.reading(data.root):
        rows = data.episodes.select(kept).to_pylist()
    return [{k: _plain(v) for k, v in row.items() if v is not None} for row in rows]


def _plain(value: Any) -> Any:  # noqa: ANN401 (whatever a table holds)
    plain = isinstance(value, str | int | float | list | dict)
    return value if plain else notes.jsonable(value)


def _last_rows(data: meta.DataSet, names: Sequence[str]) -> dict[str, Array]:
    """Flags on the last row of each episode."""
    ends: dict[str, list[Array]] = {name: [] for name in names}
    begin = 0
    stops = np.cumsum(data.lengths)
    for shard in data.shards:
        last = stops[(stops > begin) & (stops <= begin + shard.rows)] - 1 - begin
        at = 0
        for table in parquet.pieces(shard.path, 0, shard.rows, names):
            here = last[(last >= at) & (last < at + len(table))] - at
            with parquet.reading(shard.path):
                for name, found in ends.items():
                    flags = _numbers(data, table[name], name, shard.path)
                    found.append(flags.reshape(-1)[here].astype(bool))
            at += len(table)
        begin += shard.rows
    return {name: np.concatenate(found) for name, found in ends.items()}
