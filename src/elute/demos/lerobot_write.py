"""Writing LeRobot data sets (v3.0), shard after shard.

From a LeRobot data set, the frames are read again beside the new values, so that columns that elute
does not hold, and all that did not change, pass through as they are; videos are linked, not read.
The table of episodes and `stats.json` are the source's but for the statistics of changed columns.
From anything else, a fresh data set is written: `observation.state` holds the whole vector, unless
its arrays have LeRobot's names.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elute.columns import Column, blocks, is_action_side
from elute.demos import hdf5_write, note
from elute.demos import lerobot_meta as meta
from elute.demos import lerobot_parquet as parquet
from elute.demos import lerobot_stats as stats
from elute.demos.hdf5 import merged
from elute.demos.lerobot_read import ACTION, DONE, NAME, NEXT, REWARD, STATE, TRUNCATED, memo
from elute.episodes import Array, Episodes, Origin, Piece
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

FPS = 10
"""Stands in where nobody said how many frames a second has."""

_DERIVED = ("frame_index", "episode_index", "index")
_FILLERS = ("timestamp", "task_index", DONE, TRUNCATED)
_TYPES = {"timestamp": pa.float32(), DONE: pa.bool_(), TRUNCATED: pa.bool_()}
_SHARD_MB, _VIDEO_MB = 100, 200
_MAX_DIMENSIONS = 5  # of a feature in LeRobot


def started(path: Path, source: DemoSource, sample: Demonstrations) -> "LeRobotWriter":
    """Start a data set."""
    origin = hdf5_write.container(source, NAME)
    copy = _Copy.of(origin) if origin is not None else None
    if copy is not None and not _same_vectors(copy, source):
        origin = copy = None
    losses = hdf5_write.container_losses(source, origin)
    plan = _plan(source, sample, copy)
    if copy is None:
        losses += plan.fresh_losses(source, sample)
    elif copy.cut:
        images = [n for n, f in copy.data.info.features.items() if f.dtype in ("image", "video")]
        losses += [f"{name}: its statistics are those of the uncut episodes" for name in images]
    return LeRobotWriter(path, source, sample, plan, copy, losses + plan.unheld)


def _same_vectors(copy: "_Copy", source: DemoSource) -> bool:
    """Whether the vectors still are those of the data set, not cut to some columns."""
    for kind, flat in (("observation", STATE), ("action", ACTION)):
        for name, part in _targets(getattr(source, f"{kind}_columns"), copy.schema.names, flat):
            feature = copy.data.info.features.get(name)
            if feature is None or feature.shape != [part.stop - part.start]:
                return False
    return True


@dataclass(frozen=True, eq=False)
class _Copy:
    """The data set that is copied, and which of its rows."""

    data: meta.DataSet
    pieces: tuple[Piece, ...]
    whole: bool
    """All episodes, in their order."""
    owners: list[int]
    """Of each new episode, the source's."""
    cut: bool
    """Some episode is not whole."""

    @classmethod
    def of(cls, origin: Origin) -> "_Copy":
        data = meta.opened(origin.path)
        stops = np.cumsum(data.lengths)
        owners = [int(np.searchsorted(stops, p.start, side="right")) for p in origin.pieces]
        cut = any(
            p != Piece(int(stops[owner] - data.lengths[owner]), int(data.lengths[owner]))
            for p, owner in zip(origin.pieces, owners, strict=True)
        )
        whole = hdf5_write.is_every_group(origin, data.lengths.tolist())
        return cls(data, origin.pieces, whole, owners, cut)

    @property
    def schema(self) -> pa.Schema:
        return self.data.schema

    def rows(self, episodes: Episodes, start: int, stop: int) -> Iterator[pa.Table]:
        """The source's rows for `start..stop` of the new data set, a bounded piece at a time."""
        first = episodes.of_row(start)
        chosen = [
            Piece(
                self.pieces[first + i].start + piece.start - int(episodes.starts[first + i]),
                piece.length,
                self.pieces[first + i].shift,
            )
            for i, piece in enumerate(episodes.pieces(start, stop))
        ]
        if any(piece.shift for piece in chosen):
            for piece in chosen:
                yield self._shifted(piece)
        else:
            for begin, end in merged(chosen):
                yield from self._read(begin, end, self.schema.names)

    def _read(self, start: int, stop: int, names: Sequence[str]) -> Iterator[pa.Table]:
        for path, first, last in self.data.spans(start, stop):
            yield from parquet.pieces(path, first, last, names)

    def _shifted(self, piece: Piece) -> pa.Table:
        """What belongs to the action comes from other rows than what belongs to the state."""
        sides: dict[bool, list[str]] = {False: [], True: []}
        for name in self.schema.names:
            sides[is_action_side(name)].append(name)
        columns: dict[str, pa.ChunkedArray] = {}
        for shifted, names in sides.items():
            begin = piece.start + piece.shift * shifted
            if names:
                table = pa.concat_tables(self._read(begin, begin + piece.length, names))
                columns |= dict(zip(names, table.columns, strict=True))
        return pa.table([columns[name] for name in self.schema.names], names=self.schema.names)


_Targets = list[tuple[str, slice]]


def _targets(of: Sequence[Column], known: Sequence[str], flat: str) -> _Targets:
    """Which columns of the data set hold which columns of a vector."""
    found = blocks(of)
    keys = [block.key for block in found]
    if set(keys) <= set(known) and len(set(keys)) == len(keys):
        return [(block.key, slice(block.start, block.stop)) for block in found]
    return [(flat, slice(0, len(of)))]


@dataclass(frozen=True)
class _Plan:
    """What goes where in the new data set."""

    observations: _Targets
    actions: _Targets
    following: _Targets
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

    def held(self, rows: Demonstrations) -> Iterator[tuple[str, Array, _Targets]]:
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


def _plan(source: DemoSource, sample: Demonstrations, copy: _Copy | None) -> _Plan:
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
    return _Plan(
        observations=observations,
        actions=actions,
        following=following,
        extras=extras,
        schema=columns.schema(copy),
        features=columns.features,
        tasks=tasks or (source.provenance.task or "unknown",),
        fps=fps or FPS,
        narrow=columns.narrow,
        fillers=[name for name in _FILLERS if name in fields and name not in extras.values()]
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

    def vector(self, targets: _Targets, like: Array, source: DemoSource, kind: str) -> None:
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
        except (pa.ArrowException, NotImplementedError) as error:
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

    def schema(self, copy: _Copy | None) -> pa.Schema:
        """The columns in order; what Hugging Face noted about them goes if it is no longer true."""
        same = self.fields == self.given
        return pa.schema(
            list(self.fields.values()), metadata=copy.schema.metadata if copy and same else None
        )


def _stored_names(copy: _Copy | None) -> dict[str, str]:
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


class LeRobotWriter:
    """A folder that fills with frames; the tables about them are written last."""

    def __init__(
        self,
        path: Path,
        source: DemoSource,
        sample: Demonstrations,
        plan: _Plan,
        copy: _Copy | None,
        losses: list[str],
    ) -> None:
        self.path, self.source, self.plan, self.copy = path, source, plan, copy
        self.losses, self.copied = losses, copy is not None
        self.has_rewards = sample.rewards is not None
        self.shards = _Shards(path, plan.schema, copy)
        self.changed: set[str] = set()
        self.tasks: dict[int, list[int]] = {}
        path.mkdir()

    def put(
        self, start: int, rows: Demonstrations, unchanged: Demonstrations | None = None
    ) -> None:
        """Write a chunk; arrays that still are those of `unchanged` are taken from the source."""
        new = self._new_columns(rows, unchanged)
        at = 0
        for base in self._bases(start, len(rows)):
            length = len(rows) if base is None else len(base)
            for piece in self.source.episodes.pieces(start + at, start + at + length):
                here = piece.start - start
                part = {name: array.slice(here, piece.length) for name, array in new.items()}
                under = None if base is None else base.slice(here - at, piece.length)
                self._write(piece, under, part)
            at += length

    def _new_columns(
        self, rows: Demonstrations, unchanged: Demonstrations | None
    ) -> dict[str, pa.Array]:
        held = self.plan.held(unchanged) if unchanged is not None else ()
        before = {name: values for name, values, _ in held}
        new: dict[str, pa.Array] = {}
        for key, values, targets in self.plan.held(rows):
            if key in before and _is(values, before[key]):
                continue
            for name, part in targets:
                column = values if values.ndim == 1 else values[:, part]
                new[name] = parquet.column(column, self.plan.schema.field(name).type, name)
        return new

    def _bases(self, start: int, n: int) -> Iterator[pa.Table | None]:
        if self.copy is None:
            yield None
        else:
            yield from self.copy.rows(self.source.episodes, start, start + n)

    def _write(self, piece: Piece, base: pa.Table | None, new: dict[str, pa.Array]) -> None:
        episode = self.source.episodes.of_row(piece.start)
        if base is None or (self.copy is not None and not self.copy.whole):
            new = self._book(piece, episode) | new
        columns = []
        for field in self.plan.schema:
            array = new.get(field.name)
            before = base[field.name] if base is not None and field.name in base.schema.names else None
            if array is None:
                array = before
            elif before is not None and pa.chunked_array([array]).equals(before):
                array = before
            else:
                self.changed.add(field.name)
            columns.append(array)
        table = pa.table(columns, schema=self.plan.schema)
        if self.copy is None:
            self._note_tasks(episode, table["task_index"])
        self.shards.write(episode, table)

    def _book(self, piece: Piece, episode: int) -> dict[str, pa.Array]:
        """The columns that follow from where a row stands."""
        episodes = self.source.episodes
        index = np.arange(piece.start, piece.start + piece.length)
        frame = index - int(episodes.starts[episode])
        last = index == int(episodes.stops[episode]) - 1
        made: dict[str, Array] = {
            "index": index,
            "frame_index": frame,
            "episode_index": np.full(piece.length, episode),
        }
        fillers: dict[str, Array] = {
            "timestamp": frame / self.plan.fps,
            "task_index": np.zeros(piece.length, dtype=np.int64),
            DONE: last & episodes.terminated[episode],
            TRUNCATED: last & episodes.truncated[episode],
        }
        made |= {name: values for name, values in fillers.items() if name in self.plan.fillers}
        return {
            name: parquet.column(values, self.plan.schema.field(name).type, name)
            for name, values in made.items()
        }

    def _note_tasks(self, episode: int, column: pa.ChunkedArray) -> None:
        known = self.tasks.setdefault(episode, [])
        for task in column.unique().to_pylist():
            if not 0 <= task < len(self.plan.tasks):
                raise EluteError(f"task_index holds {task}; there are {len(self.plan.tasks)} tasks")
            if task not in known:
                known.append(task)

    def finish(self) -> None:
        """Describe the frames that were written, and bring along what belongs to them."""
        self.shards.close()
        table = self._episodes()
        recomputed = self._recomputed(table)
        for name, values in self._statistics(recomputed).items():
            table = stats.replaced(table, name, values)
        folder = self.path / "meta"
        (self.path / meta.EPISODES_PATH).parent.mkdir(parents=True)
        pq.write_table(table, self.path / meta.EPISODES_PATH)
        _put_json(folder / "stats.json", self._totals(table, recomputed))
        _put_json(folder / "info.json", self._info())
        if self.copy is None or self.copy.data.is_old:
            pq.write_table(_task_table(self.plan.tasks), folder / "tasks.parquet")
        _put_json(self.path / meta.NOTE_PATH, self._memo())
        if self.copy is not None:
            _bring_along(self.copy, self.path)

    def _episodes(self) -> pa.Table:
        episodes, n = self.source.episodes, len(self.source.episodes)
        if self.copy is not None:
            table = self.copy.data.episodes.take(self.copy.owners)
        else:
            texts = [[self.plan.tasks[task] for task in self.tasks[e]] for e in range(n)]
            table = pa.table({"episode_index": list(range(n)), "tasks": texts})
        chunks, files = zip(*self.shards.places, strict=True)
        placed = {
            "episode_index": list(range(n)),
            "length": episodes.lengths,
            "data/chunk_index": chunks,
            "data/file_index": files,
            "dataset_from_index": episodes.starts,
            "dataset_to_index": episodes.stops,
            "meta/episodes/chunk_index": [0] * n,
            "meta/episodes/file_index": [0] * n,
        }
        for name, values in placed.items():
            field, array = pa.field(name, pa.int64()), pa.array(values, pa.int64())
            if name in table.column_names:
                table = table.set_column(table.column_names.index(name), field, array)
            else:
                table = table.append_column(field, array)
        return table

    def _recomputed(self, table: pa.Table) -> list[str]:
        """Features whose statistics in the table of episodes are no longer true."""
        numeric = [
            field.name
            for field in self.plan.schema
            if parquet.number_type(field.type) is not None and field.name in self.plan.features
        ]
        if self.copy is None or self.copy.cut:
            kept = numeric if self.copy is None else [n for n in numeric if self._had(table, n)]
            return [n for n in numeric if n in kept or n in self.changed]
        return [name for name in numeric if name in self.changed]

    def _had(self, table: pa.Table, name: str) -> bool:
        return name in stats.features(table)

    def _statistics(self, names: Sequence[str]) -> dict[str, list[dict[str, Array]]]:
        """Of each episode, read back from what was written: an episode may have come in parts."""
        found: dict[str, list[dict[str, Array]]] = {name: [] for name in names}
        for path, first, last in self.shards.spans(self.source.episodes) if names else ():
            table = pa.concat_tables(parquet.pieces(path, first, last, names))
            for name, values in found.items():
                shape = self.plan.features[name]["shape"]
                values.append(stats.of_episode(parquet.numbers(table[name], name, shape)))
        return found

    def _totals(self, table: pa.Table, recomputed: Sequence[str]) -> dict[str, Any]:
        known = self.copy.data.statistics() if self.copy and self.copy.whole else None
        if known is None:
            known, recomputed = {}, stats.features(table)
        found = {name: stats.aggregated(table, name) for name in recomputed}
        return known | {name: total for name, total in found.items() if total is not None}

    def _info(self) -> dict[str, Any]:
        n = len(self.source.episodes)
        said = self.copy.data.raw if self.copy else self.source.provenance.metadata.get(NAME, {})
        info = {"codebase_version": meta.VERSION, "robot_type": None, **said}
        if self.copy is None or self.copy.data.is_old:
            gone = ("total_videos", "total_chunks", "tasks")
            info = {name: value for name, value in info.items() if name not in gone}
            has_videos = any(f.get("dtype") == "video" for f in self.plan.features.values())
            info |= {
                "codebase_version": meta.VERSION,
                "chunks_size": meta.CHUNK_FILES,
                "data_files_size_in_mb": _SHARD_MB,
                "video_files_size_in_mb": _VIDEO_MB,
                "data_path": meta.DATA_PATH,
                "video_path": meta.VIDEO_PATH if has_videos else None,
            }
        if self.copy is None or not self.copy.whole:
            info["splits"] = {"train": f"0:{n}"}
        if self.copy is None:
            info["fps"] = self.plan.fps
        return info | {
            "total_episodes": n,
            "total_frames": self.source.episodes.n_rows,
            "total_tasks": len(self.plan.tasks),
            "features": self.plan.features,
        }

    def _memo(self) -> dict[str, Any]:
        absent = [*self.plan.fillers]
        if not self.has_rewards and REWARD in self.plan.schema.names:
            absent.append(REWARD)
        encoded = note.encode(
            self.source, attributes=self.source.episodes.attributes, absent=absent
        )
        renamed = {column: name for name, column in self.plan.extras.items() if column != name}
        return {"note": json.loads(encoded), "names": renamed, "narrow": self.plan.narrow}

    def close(self) -> None:
        """Let go of the file of frames that is open."""
        self.shards.abandon()


class _Shards:
    """Files of frames, one after the other: where the source has them, or a new one when full."""

    def __init__(self, path: Path, schema: pa.Schema, copy: _Copy | None) -> None:
        self.path, self.schema = path, schema
        self.keep = copy.data if copy is not None and copy.whole and not copy.data.is_old else None
        self.limit = (copy.data.info.data_files_size_in_mb if copy else _SHARD_MB) * 2**20
        self.places: list[tuple[int, int]] = []
        """(chunk, file) of each episode so far."""
        self._file: pa.NativeFile | None = None
        self._writer: pq.ParquetWriter | None = None

    def write(self, episode: int, table: pa.Table) -> None:
        """Rows of the last episode so far, or of the one after it."""
        if episode == len(self.places):
            place = self._next(episode)
            if not self.places or place != self.places[-1]:
                self.close()
                self._open(self._name(place))
            self.places.append(place)
        if self._writer is not None:
            self._writer.write_table(table)

    def _next(self, episode: int) -> tuple[int, int]:
        if self.keep is not None:
            chunk, file = (self.keep.episodes[f"data/{name}_index"][episode].as_py()
                           for name in ("chunk", "file"))  # fmt: skip
            return chunk, file
        if not self.places:
            return 0, 0
        if self._file is None or self._file.tell() < self.limit:
            return self.places[-1]
        chunk, file = self.places[-1]
        return (chunk, file + 1) if file + 1 < meta.CHUNK_FILES else (chunk + 1, 0)

    def _name(self, place: tuple[int, int]) -> Path:
        template = meta.DATA_PATH if self.keep is None else self.keep.info.data_path
        where = dict(zip(("chunk_index", "file_index"), place, strict=True))
        return meta.inside(self.path, meta.filled(template, where, "data_path"))

    def _open(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = pa.OSFile(str(path), "wb")
        self._writer = pq.ParquetWriter(self._file, self.schema, compression="snappy")

    def spans(self, episodes: Episodes) -> Iterator[tuple[Path, int, int]]:
        """(file, first row, last row) of each episode."""
        at, before = 0, None
        for place, length in zip(self.places, episodes.lengths.tolist(), strict=True):
            at = at if place == before else 0
            yield self._name(place), at, at + length
            at, before = at + length, place

    def close(self) -> None:
        """The file that is open is complete."""
        if self._writer is not None and self._file is not None:
            self._writer.close()
            self._file.close()
        self._writer = self._file = None

    def abandon(self) -> None:
        """The file that is open is not wanted any more."""
        try:
            self.close()
        except (OSError, pa.ArrowException):
            self._writer = self._file = None


def _is(new: Array, old: Array) -> bool:
    return bool(new.ctypes.data == old.ctypes.data and new.shape == old.shape)


def _put_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, indent=4, ensure_ascii=False, default=note.jsonable)
    path.write_text(note.storable(text), encoding="utf-8")


def _task_table(tasks: Sequence[str]) -> pa.Table:
    """Texts as the index of a pandas table: LeRobot looks there."""
    index = "__index_level_0__"
    described = [
        {"name": None, "field_name": index, "pandas_type": "unicode", "numpy_type": "object"},
        {"name": "task_index", "field_name": "task_index", "pandas_type": "int64",
         "numpy_type": "int64"},
    ]  # fmt: skip
    pandas = {
        "index_columns": [index],
        "column_indexes": [],
        "columns": [{**one, "metadata": None} for one in reversed(described)],
        "pandas_version": "2.2.3",
    }
    table = pa.table({"task_index": list(range(len(tasks))), index: list(tasks)})
    return table.replace_schema_metadata({"pandas": json.dumps(pandas)})


def _bring_along(copy: _Copy, path: Path) -> None:
    """Videos, linked; and everything else in the folder that is no table written here."""
    data = copy.data
    for key in data.videos:
        for owner in sorted(set(copy.owners)):
            video = data.video(key, owner)
            target = _video_target(data, key, owner, path)
            if not target.exists():
                parquet.link(video, target)
    written = ("data", "videos", "meta/episodes", "meta/stats.json", "meta/info.json",
               meta.NOTE_PATH)  # fmt: skip
    old = ("meta/episodes.jsonl", "meta/tasks.jsonl", "meta/episodes_stats.jsonl")
    for item in sorted(data.root.rglob("*")):
        name = item.relative_to(data.root)
        ours = any(name == Path(w) or Path(w) in name.parents for w in (*written, *old))
        hidden = any(part.startswith(".") for part in name.parts[:-1])
        if not ours and not hidden and item.is_file():
            target = path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(meta.inside(data.root, str(name)), target)


def _video_target(data: meta.DataSet, key: str, episode: int, path: Path) -> Path:
    if not data.is_old:
        return path / data.video(key, episode).relative_to(data.root)
    chunk, file = divmod(episode, meta.CHUNK_FILES)
    where = {"video_key": key, "chunk_index": chunk, "file_index": file}
    return meta.inside(path, meta.filled(meta.VIDEO_PATH, where, "video_path"))
