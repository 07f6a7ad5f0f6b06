"""Writing LeRobot data sets (v3.0), shard after shard.

From a LeRobot data set, the frames are read again beside the new values, so that columns that elute
does not hold, and all that did not change, pass through as they are; videos are linked, not read.
The table of episodes and `stats.json` are the source's but for the statistics of changed columns.
From anything else, a fresh data set is written: `observation.state` holds the whole vector, unless
its arrays have LeRobot's names.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from elute.demos import hdf5_write, note
from elute.demos import lerobot_meta as meta
from elute.demos import lerobot_parquet as parquet
from elute.demos import lerobot_stats as stats
from elute.demos.lerobot_copy import Copy, bring_along, check_along
from elute.demos.lerobot_plan import Plan, Targets, planned, same_vectors
from elute.demos.lerobot_read import DONE, NAME, REWARD, TRUNCATED
from elute.demos.lerobot_shards import SHARD_MB, Shards
from elute.episodes import Array, Piece
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

_VIDEO_MB = 200


def started(path: Path, source: DemoSource, sample: Demonstrations) -> "LeRobotWriter":
    """Start a data set."""
    origin = hdf5_write.container(source, NAME)
    copy = Copy.of(origin) if origin is not None else None
    if copy is not None and not same_vectors(copy, source):
        origin = copy = None
    losses = hdf5_write.container_losses(source, origin)
    plan = planned(source, sample, copy)
    if copy is None:
        losses += plan.fresh_losses(source, sample)
    elif copy.cut:
        images = [n for n, f in copy.data.info.features.items() if f.dtype in ("image", "video")]
        losses += [f"{name}: its statistics are those of the uncut episodes" for name in images]
    if copy is not None:
        check_along(copy)
    return LeRobotWriter(path, source, sample, plan, copy, losses + plan.unheld)


class LeRobotWriter:
    """A folder that fills with frames; the tables about them are written last."""

    def __init__(
        self,
        path: Path,
        source: DemoSource,
        sample: Demonstrations,
        plan: Plan,
        copy: Copy | None,
        losses: list[str],
    ) -> None:
        self.path, self.source, self.plan, self.copy = path, source, plan, copy
        self.losses, self.copied = losses, copy is not None
        self.has_rewards = sample.rewards is not None
        self.shards = Shards(path, plan.schema, copy)
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
            if key in before and _is(values, before[key]) and self._stand(targets):
                continue
            for name, part in targets:
                column = values if values.ndim == 1 else values[:, part]
                new[name] = parquet.column(column, self.plan.schema.field(name).type, name)
        return new

    def _stand(self, targets: Targets) -> bool:
        """Whether the source has these columns, in the types that they will have."""
        old, new = self.copy.schema if self.copy else pa.schema([]), self.plan.schema
        return all(n in old.names and old.field(n).type == new.field(n).type for n, _ in targets)

    def _bases(self, start: int, n: int) -> Iterator[pa.Table | None]:
        if self.copy is None:
            yield None
        else:
            yield from self.copy.rows(self.source.episodes, start, start + n)

    def _write(self, piece: Piece, base: pa.Table | None, new: dict[str, pa.Array]) -> None:
        episode = self.source.episodes.of_row(piece.start)
        known = () if base is None else base.schema.names
        stands = known if self.copy is not None and self.copy.whole else ()
        new = self._book(piece, episode, stands) | new
        columns = []
        for field in self.plan.schema:
            array = new.get(field.name)
            before = base[field.name] if base is not None and field.name in known else None
            kept = before is not None and array is not None
            if array is None or (kept and pa.chunked_array([array]).equals(before)):
                array = before
            else:
                self.changed.add(field.name)
            columns.append(array)
        table = pa.table(columns, schema=self.plan.schema)
        if self.copy is None:
            self._note_tasks(episode, table["task_index"])
        self.shards.write(episode, table)

    def _book(self, piece: Piece, episode: int, stands: Sequence[str]) -> dict[str, pa.Array]:
        """The columns that follow from where a row stands, but for those that are there."""
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
            if name not in stands
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
            bring_along(self.copy, self.path)

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
        for path, lengths in self.shards.files(self.source.episodes) if names else ():
            pieces = parquet.pieces(path, 0, sum(lengths), names)
            for table in parquet.regrouped(pieces, lengths):
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
                "data_files_size_in_mb": SHARD_MB,
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


def _is(new: Array, old: Array) -> bool:
    return bool(new.ctypes.data == old.ctypes.data and new.shape == old.shape)


def _put_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, indent=4, ensure_ascii=False, default=note.jsonable)
    path.write_text(note.storable(text), encoding="utf-8")


def _task_table(tasks: Sequence[str]) -> pa.Table:
    """Texts as the index of a pandas table: LeRobot looks there."""
    index = "__index_level_0__"
    described: list[dict[str, Any]] = [
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
