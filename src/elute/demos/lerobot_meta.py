"""What a LeRobot folder says about itself, read and checked.

v3.0: `meta/info.json`, `meta/episodes/*/*.parquet` (where each episode's rows and videos are, and
statistics), `meta/tasks.parquet`, `meta/stats.json`. v2.1 has one parquet and one video file per
episode and lists in `.jsonl`; its table of episodes is made into one as v3.0 has it, so nobody
after this module needs to know. Names of files come from templates in the folder itself, so they
are not believed: no file outside the folder is touched.
"""

import json
import re
import string
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pydantic
from numpy.typing import NDArray

from elute.demos import lerobot_parquet as parquet
from elute.errors import EluteError

VERSION = "v3.0"
OLD = "v2.1"
BOOKKEEPING = ("timestamp", "frame_index", "episode_index", "index", "task_index")
"""Columns that LeRobot adds to every data set."""
DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
EPISODES_PATH = "meta/episodes/chunk-000/file-000.parquet"
NOTE_PATH = "meta/elute.json"
LONGEST_NAME = 255
"""Bytes that file systems allow."""
CHUNK_FILES = 1000

M = TypeVar("M", bound=pydantic.BaseModel)

_NUMBER = re.compile(r"(0?\d{1,2})?d?")
_VIDEO_COLUMNS = ("chunk_index", "file_index", "from_timestamp", "to_timestamp")


class _Feature(pydantic.BaseModel):
    dtype: str
    shape: list[pydantic.NonNegativeInt] = pydantic.Field(max_length=8)


class _Info(pydantic.BaseModel):
    """Of `info.json`, what is used here."""

    codebase_version: str
    fps: float = pydantic.Field(gt=0, lt=1e6)
    features: dict[str, _Feature]
    data_path: str
    video_path: str | None = None
    total_episodes: pydantic.NonNegativeInt
    total_frames: pydantic.NonNegativeInt
    chunks_size: pydantic.PositiveInt = CHUNK_FILES
    data_files_size_in_mb: float = pydantic.Field(100, gt=0)


class _OldEpisode(pydantic.BaseModel, extra="allow"):
    episode_index: int
    length: int
    tasks: list[str] = []


class _OldTask(pydantic.BaseModel):
    task_index: int
    task: str


class _OldStats(pydantic.BaseModel):
    episode_index: int
    stats: dict[str, dict[str, list[Any]]]


@dataclass(frozen=True)
class Shard:
    """A file of frames."""

    path: Path
    rows: int


@dataclass(frozen=True, eq=False)
class DataSet:
    """A folder, checked: its tables agree with one another and with the files that are there."""

    root: Path
    raw: dict[str, Any]
    """`info.json` as it is."""
    info: _Info
    episodes: pa.Table
    """One row per episode, in order, with the columns of v3.0."""
    tasks: tuple[str, ...]
    shards: tuple[Shard, ...]
    """In the order of rows."""

    @property
    def is_old(self) -> bool:
        """Whether it is v2.1."""
        return self.info.codebase_version == OLD

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Rows of each episode."""
        return _integers(self.episodes, "length", self.root)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the frames."""
        return parquet.schema(self.shards[0].path)

    @property
    def videos(self) -> list[str]:
        """Features that are videos."""
        return [name for name, f in self.info.features.items() if f.dtype == "video"]

    def video(self, key: str, episode: int) -> Path:
        """The file that holds an episode's frames of a camera."""
        where: dict[str, Any] = {"video_key": key}
        if self.is_old:
            where |= _old_numbers(episode, self.info.chunks_size)
        else:
            for name in ("chunk_index", "file_index"):
                column = _integers(self.episodes, f"videos/{key}/{name}", self.root)
                where[name] = int(column[episode])
        template = self.info.video_path or ""
        path = inside(self.root, filled(template, where, f"{self.root}: video_path"))
        if not path.is_file():
            raise EluteError(f"{path}: this video is missing", hint="is the data set complete?")
        return path

    def statistics(self) -> dict[str, Any] | None:
        """`meta/stats.json`, if it is there."""
        path = inside(self.root, "meta/stats.json")
        found = _json(path) if path.is_file() else None
        return found if isinstance(found, dict) else None

    def spans(self, start: int, stop: int) -> list[tuple[Path, int, int]]:
        """Rows `start..stop` of the whole data set as (file, first, last)."""
        found, begin = [], 0
        for shard in self.shards:
            first, last = max(start - begin, 0), min(stop - begin, shard.rows)
            if first < last:
                found.append((shard.path, first, last))
            begin += shard.rows
        return found


def opened(root: Path) -> DataSet:
    """Read a data set's own description.

    Raises:
        EluteError: something is missing, of another version, or disagrees.
    """
    raw = _json(inside(root, "meta/info.json"))
    if not isinstance(raw, dict):
        raise EluteError(f"{root}: meta/info.json is no JSON object")
    _check_version(raw.get("codebase_version"), root)
    info = _checked(_Info, raw, root / "meta" / "info.json")
    episodes, tasks = _old_tables(root, info) if raw["codebase_version"] == OLD else _tables(root)
    n = len(episodes)
    if _integers(episodes, "episode_index", root).tolist() != list(range(n)):
        raise EluteError(
            f"{root}: the episodes are not numbered 0 to {n - 1} without gaps",
            hint="LeRobot needs that; its lerobot-edit-dataset deletes episodes and renumbers",
        )
    lengths = _integers(episodes, "length", root)
    if n == 0 or lengths.min() < 1:
        raise EluteError(f"{root}: no rows", hint="an episode, or the data set, is empty")
    for name, said, found in (
        ("total_episodes", info.total_episodes, n),
        ("total_frames", info.total_frames, sum(lengths.tolist())),
    ):
        if said != found:
            raise EluteError(
                f"{root}: meta/info.json says {name} = {said}, the episodes make {found}",
                hint="is the data set complete?",
            )
    shards = _shards(root, info, episodes, lengths)
    return DataSet(root, raw, info, episodes, tuple(tasks), tuple(shards))


def _check_version(version: object, root: Path) -> None:
    if version in (VERSION, OLD):
        return
    hint = "is it a LeRobot data set at all?"
    if isinstance(version, str):
        hint = f"elute reads {VERSION} and {OLD}"
        if re.match(r"v?[12](\.0)?$", version):
            hint += (
                "; convert it with LeRobot: convert_dataset_v1_to_v2.py (in releases up to 0.3), "
                "convert_dataset_v20_to_v21.py, convert_dataset_v21_to_v30.py, one after the other"
            )
    raise EluteError(f"{root}: codebase_version is {version!r:.80}", hint=hint)


def _checked(model: type[M], given: object, where: Path) -> M:
    try:
        return model.model_validate(given)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise EluteError(f"{where}: {place or 'this'}: {first['msg']}") from error


def _json(path: Path) -> Any:  # noqa: ANN401 (JSON of any shape)
    with parquet.reading(path):
        return json.loads(path.read_text(encoding="utf-8"))


def inside(root: Path, name: str) -> Path:
    """A file of the data set by its relative name.

    Raises:
        EluteError: the name, or a link on the way, leads out of the folder, or none could be it.
    """
    path = root / name
    if any(len(part.encode()) > LONGEST_NAME for part in path.parts):
        raise EluteError(f"{root}: {name!r:.60} is longer than a file's name may be")
    with parquet.reading(root):
        escapes = Path(name).is_absolute() or ".." in Path(name).parts
        if escapes or not path.resolve().is_relative_to(root.resolve()):
            raise EluteError(
                f"{root}: {name!r:.200} leads out of the folder",
                hint="a data set must hold its own files; `cp -rL` copies one without links",
            )
    return path


def filled(template: str, values: dict[str, Any], where: str) -> str:
    """A template of a file name with its numbers; it may ask for nothing else.

    Raises:
        EluteError: it is no such template.
    """
    try:
        parts = list(string.Formatter().parse(template))
        sound = all(
            field is None
            or (field in values and not conversion and _fits(values[field], form or ""))
            for _, field, form, conversion in parts
        )
        if not sound or not template:
            raise ValueError
        return template.format(**values)
    except ValueError as error:
        raise EluteError(
            f"{where} is {template!r:.200}; expected a file name with " + ", ".join(values)
        ) from error


def _fits(value: object, form: str) -> bool:
    return _NUMBER.fullmatch(form) is not None if isinstance(value, int) else form == ""


def _tables(root: Path) -> tuple[pa.Table, list[str]]:
    with parquet.reading(root):
        found = sorted((root / "meta" / "episodes").glob("*/*.parquet"))
    paths = [inside(root, str(path.relative_to(root))) for path in found]
    if not paths:
        raise EluteError(
            f"{root}: meta/episodes/*/*.parquet is missing", hint="is the data set complete?"
        )
    tables = [parquet.table(path) for path in paths]
    with parquet.reading(paths[0]):
        episodes = pa.concat_tables(tables, promote_options="default")
    return episodes, _tasks(inside(root, "meta/tasks.parquet"))


def _tasks(path: Path) -> list[str]:
    """Task texts in the order of their index: pandas keeps the texts as the table's index."""
    table = parquet.table(path)
    texts = [f.name for f in table.schema if f.type in (pa.string(), pa.large_string())]
    if not texts:
        raise EluteError(f"{path}: expected a column of texts")
    numbers = _integers(table, "task_index", path).tolist()
    with parquet.reading(path):
        named = table[texts[-1]].to_pylist()
    return _in_order(dict(zip(numbers, named, strict=True)), path)


def _in_order(tasks: dict[Any, Any], path: Path) -> list[str]:
    numbered = tasks and set(tasks) == set(range(len(tasks)))
    if not numbered or not all(isinstance(text, str) for text in tasks.values()):
        raise EluteError(f"{path}: tasks are not texts numbered from 0 without gaps")
    return [tasks[i] for i in range(len(tasks))]


def _lines(root: Path, name: str, model: type[M]) -> list[M]:
    path = inside(root, f"meta/{name}")
    with parquet.reading(path):
        lines = path.read_text(encoding="utf-8").splitlines()
        given = [json.loads(line) for line in lines if line.strip()]
    return [_checked(model, one, path) for one in given]


def _old_tables(root: Path, info: _Info) -> tuple[pa.Table, list[str]]:
    episodes = sorted(_lines(root, "episodes.jsonl", _OldEpisode), key=lambda e: e.episode_index)
    tasks = {t.task_index: t.task for t in _lines(root, "tasks.jsonl", _OldTask)}
    rows = [episode.model_dump() for episode in episodes]
    if (root / "meta" / "episodes_stats.jsonl").is_file():
        known = {s.episode_index: s.stats for s in _lines(root, "episodes_stats.jsonl", _OldStats)}
        for row in rows:
            for feature, stats in known.get(row["episode_index"], {}).items():
                row |= {f"stats/{feature}/{name}": value for name, value in stats.items()}
    videos = [name for name, f in info.features.items() if f.dtype == "video"]
    for row in rows:
        end = row["length"] / info.fps
        for key in videos:
            where = (*divmod(row["episode_index"], CHUNK_FILES), 0.0, end)
            named = [f"videos/{key}/{name}" for name in _VIDEO_COLUMNS]
            row |= dict(zip(named, where, strict=True))
    names = list(dict.fromkeys(name for row in rows for name in row))
    with parquet.reading(root / "meta" / "episodes.jsonl"):
        table = pa.table({name: [row.get(name) for row in rows] for name in names})
    return table, _in_order(tasks, root / "meta" / "tasks.jsonl")


def _old_numbers(episode: int, chunks_size: int) -> dict[str, int]:
    return {"episode_chunk": episode // chunks_size, "episode_index": episode}


def _integers(table: pa.Table, name: str, root: Path) -> NDArray[np.int64]:
    """A column of a table of episodes or tasks that must be there."""
    if name not in table.column_names:
        raise EluteError(f"{root}: {name!r} is missing from its table")
    column = table[name]
    if not pa.types.is_integer(column.type) or column.null_count:
        raise EluteError(f"{root}: {name!r} of its table is no column of whole numbers")
    with parquet.reading(root):
        values: NDArray[np.int64] = column.cast(pa.int64()).combine_chunks().to_numpy()
    return values


def _shards(root: Path, info: _Info, episodes: pa.Table, lengths: NDArray[np.int64]) -> list[Shard]:
    n = len(lengths)
    if info.codebase_version == OLD:
        wheres = [_old_numbers(e, info.chunks_size) for e in range(n)]
    else:
        _check_order(root, episodes, lengths)
        numbers = [_integers(episodes, f"data/{name}", root).tolist()
                   for name in ("chunk_index", "file_index")]  # fmt: skip
        wheres = [
            {"chunk_index": chunk, "file_index": file} for chunk, file in zip(*numbers, strict=True)
        ]
    rows: dict[str, int] = {}
    last = ""
    for where, length in zip(wheres, lengths.tolist(), strict=True):
        name = filled(info.data_path, where, f"{root}: data_path")
        if name in rows and name != last:
            raise EluteError(f"{root}: episodes in {name} do not follow one another")
        rows[name] = rows.get(name, 0) + length
        last = name
    return [_shard(inside(root, name), expected) for name, expected in rows.items()]


def _check_order(root: Path, episodes: pa.Table, lengths: NDArray[np.int64]) -> None:
    stops = np.cumsum(lengths)
    for name, expected in (("dataset_from_index", stops - lengths), ("dataset_to_index", stops)):
        if not np.array_equal(_integers(episodes, name, root), expected):
            raise EluteError(
                f"{root}: {name} in the table of episodes disagrees with their lengths"
            )


def _shard(path: Path, expected: int) -> Shard:
    if not path.is_file():
        raise EluteError(f"{path}: this file of frames is missing", hint="is it complete?")
    rows = parquet.row_count(path)
    if rows != expected:
        raise EluteError(f"{path}: holds {rows} rows; the table of episodes says {expected}")
    return Shard(path, rows)
