"""LeRobot data sets as LeRobot lays them out, written by hand with nothing but pyarrow."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

LENGTHS = (4, 3, 6)
FPS = 10
STATS = ("min", "max", "mean", "std", "count", "q01", "q10", "q50", "q90", "q99")
CAMERA = "observation.images.front"
FEATURES = {
    "observation.state": {"dtype": "float32", "shape": [3], "names": {"motors": ["a", "b", "c"]}},
    "observation.environment_state": {"dtype": "float64", "shape": [2], "names": None},
    "observation.grid": {"dtype": "float32", "shape": [2, 2], "names": None},
    "observation.images.wrist": {"dtype": "image", "shape": [2, 2, 3], "names": None},
    "action": {"dtype": "float32", "shape": [2], "names": ["x", "y"]},
    "next.reward": {"dtype": "float32", "shape": [1], "names": None},
    "next.done": {"dtype": "bool", "shape": [1], "names": None},
    "remark": {"dtype": "string", "shape": [1], "names": None},
    "timestamp": {"dtype": "float32", "shape": [1], "names": None},
    "frame_index": {"dtype": "int64", "shape": [1], "names": None},
    "episode_index": {"dtype": "int64", "shape": [1], "names": None},
    "index": {"dtype": "int64", "shape": [1], "names": None},
    "task_index": {"dtype": "int64", "shape": [1], "names": None},
}
_PANDAS = {
    "index_columns": ["__index_level_0__"],
    "column_indexes": [],
    "columns": [
        {"name": "task_index", "field_name": "task_index", "pandas_type": "int64",
         "numpy_type": "int64", "metadata": None},
        {"name": None, "field_name": "__index_level_0__", "pandas_type": "unicode",
         "numpy_type": "object", "metadata": None},
    ],
    "pandas_version": "2.2.3",
}  # fmt: skip


@cache
def frames(lengths=LENGTHS, seed=0) -> pa.Table:
    """Rows of all episodes, in the types that LeRobot gives them."""
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    episode = np.repeat(np.arange(len(lengths)), lengths)
    frame = np.concatenate([np.arange(length) for length in lengths])
    images = [{"bytes": rng.bytes(20), "path": f"{i}.png"} for i in range(n)]
    return pa.table(
        {
            "observation.state": _vectors(rng.normal(size=(n, 3)), pa.float32()),
            "observation.environment_state": _vectors(rng.normal(size=(n, 2)), pa.float64()),
            "observation.grid": pa.array(
                rng.normal(size=(n, 2, 2)).astype("f4").tolist(), pa.list_(pa.list_(pa.float32()))
            ),
            "observation.images.wrist": pa.array(
                images, pa.struct([("bytes", pa.binary()), ("path", pa.string())])
            ),
            "action": _vectors(rng.normal(size=(n, 2)), pa.float32()),
            "next.reward": pa.array(rng.normal(size=n), pa.float32()),
            "next.done": pa.array(frame == np.repeat(lengths, lengths) - 1),
            "remark": pa.array([f"zoë {i}" for i in range(n)]),
            "timestamp": pa.array(frame / FPS, pa.float32()),
            "frame_index": pa.array(frame),
            "episode_index": pa.array(episode),
            "index": pa.array(np.arange(n)),
            "task_index": pa.array(episode % 2),
        }
    ).replace_schema_metadata({"huggingface": '{"info": {"features": {}}}'})


def _vectors(values, kind):
    flat = pa.array(values.reshape(-1), kind)
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


def array(column) -> np.ndarray:
    """A column of numbers, by the slow way round."""
    return np.array(column.to_pylist())


def statistics(table, lengths=LENGTHS) -> dict[str, list]:
    """Columns `stats/FEATURE/NAME` as LeRobot has them; quantiles are told apart by their name."""
    found = {}
    starts = np.cumsum((0, *lengths))[:-1]
    for name in ("observation.state", "observation.environment_state", "action", "next.reward",
                 "next.done", "timestamp", "frame_index", "episode_index", "index",
                 "task_index"):  # fmt: skip
        for stat in STATS:
            found[f"stats/{name}/{stat}"] = [
                _statistic(array(table[name].slice(int(s), n)).astype(float), stat)
                for s, n in zip(starts, lengths, strict=True)
            ]
    for stat in STATS:  # images: whatever stands there must stay
        value = [7] if stat == "count" else [[[0.25]], [[0.5]], [[0.75]]]
        found[f"stats/observation.images.wrist/{stat}"] = [value] * len(lengths)
    return found


@cache
def _known(lengths, seed):
    return statistics(frames(lengths, seed), lengths)


def _statistic(values, stat):
    values = values.reshape(len(values), -1)
    if stat == "count":
        return [len(values)]
    if stat[0] == "q":
        ordered = np.sort(values, axis=0)
        rank = int(np.ceil(int(stat[1:]) / 100 * len(values) - 1e-9))
        return ordered[max(rank, 1) - 1].tolist()
    return getattr(values, stat)(axis=0).tolist()


def v30(folder: Path, lengths=LENGTHS, *, files=2, video=b"", seed=0) -> Path:
    """A data set of today: several episodes per file, a row group each."""
    table = frames(lengths, seed)
    starts = np.cumsum((0, *lengths)).tolist()
    place = [min(e, files - 1) for e in range(len(lengths))]
    for file in range(files):
        path = folder / f"data/chunk-000/file-{file:03d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(path, table.schema) as writer:
            for e, length in enumerate(lengths):
                if place[e] == file:
                    writer.write_table(table.slice(starts[e], length))
    n = len(lengths)
    episodes = {
        "episode_index": list(range(n)),
        "tasks": [[["pick", "place"][e % 2]] for e in range(n)],
        "length": list(lengths),
        "data/chunk_index": [0] * n,
        "data/file_index": place,
        "dataset_from_index": starts[:-1],
        "dataset_to_index": starts[1:],
        "operator": [f"zoë {e}" for e in range(n)],
        "meta/episodes/chunk_index": [0] * n,
        "meta/episodes/file_index": [0] * n,
        **_known(lengths, seed),
    }
    if video:
        episodes |= {
            f"videos/{CAMERA}/chunk_index": [0] * n,
            f"videos/{CAMERA}/file_index": place,
            f"videos/{CAMERA}/from_timestamp": [starts[e] / FPS for e in range(n)],
            f"videos/{CAMERA}/to_timestamp": [starts[e + 1] / FPS for e in range(n)],
        }
        for file in range(files):
            path = folder / f"videos/{CAMERA}/chunk-000/file-{file:03d}.mp4"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(video + bytes([file]))
    path = folder / "meta/episodes/chunk-000/file-000.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table(episodes), path)
    tasks = pa.table({"task_index": [0, 1], "__index_level_0__": ["pick", "place"]})
    pq.write_table(
        tasks.replace_schema_metadata({"pandas": json.dumps(_PANDAS)}),
        folder / "meta/tasks.parquet",
    )
    put_json(folder / "meta/info.json", _info("v3.0", lengths, video=bool(video)))
    put_json(folder / "meta/stats.json", {"note": "as it was"})
    (folder / "README.md").write_text("hand made\n")
    return folder


def v21(folder: Path, lengths=LENGTHS, *, video=b"", seed=0) -> Path:
    """A data set of yesterday: a file per episode, lists of JSON."""
    table = frames(lengths, seed)
    starts = np.cumsum((0, *lengths)).tolist()
    (folder / "meta").mkdir(parents=True)
    (folder / "data/chunk-000").mkdir(parents=True)
    found = _known(lengths, seed)
    tasks = [{"task_index": 0, "task": "pick"}, {"task_index": 1, "task": "place"}]
    lists = {"episodes": [], "episodes_stats": [], "tasks": tasks}
    for e, length in enumerate(lengths):
        path = folder / f"data/chunk-000/episode_{e:06d}.parquet"
        pq.write_table(table.slice(starts[e], length), path)
        lists["episodes"].append(
            {"episode_index": e, "tasks": [["pick", "place"][e % 2]], "length": length}
        )
        stats = {}
        for name, values in found.items():
            _, feature, stat = name.split("/")
            if stat[0] != "q":  # v2.1 had none
                stats.setdefault(feature, {})[stat] = values[e]
        lists["episodes_stats"].append({"episode_index": e, "stats": stats})
        if video:
            path = folder / f"videos/chunk-000/{CAMERA}/episode_{e:06d}.mp4"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(video + bytes([e]))
    for name, lines in lists.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / "meta" / f"{name}.jsonl").write_text(text)
    info = _info("v2.1", lengths, video=bool(video)) | {
        "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        "video_path": "videos/chunk-{episode_chunk:03d}/{video_key}/"
        "episode_{episode_index:06d}.mp4",
        "total_chunks": 1,
        "total_videos": len(lengths) if video else 0,
    }
    put_json(folder / "meta/info.json", info)
    return folder


def _info(version, lengths, *, video):
    camera = {"dtype": "video", "shape": [16, 16, 3], "names": None, "info": {"video.fps": 10}}
    return {
        "codebase_version": version,
        "robot_type": "so100",
        "total_episodes": len(lengths),
        "total_frames": sum(lengths),
        "total_tasks": 2,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": FPS,
        "splits": {"train": f"0:{len(lengths)}"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": FEATURES | ({CAMERA: camera} if video else {}),
    }


def put_json(path: Path, value) -> None:
    path.write_text(json.dumps(value, indent=4))


def change_json(path: Path, **changes) -> None:
    """Replace fields of a JSON file; None takes one away."""
    value = json.loads(path.read_text()) | changes
    put_json(path, {k: v for k, v in value.items() if v is not None})


def all_frames(folder: Path) -> pa.Table:
    """The rows of a data set, as LeRobot reads them: files by name."""
    return pa.concat_tables(map(_read, sorted(folder.glob("data/*/*.parquet"))))


def all_episodes(folder: Path) -> pa.Table:
    return pa.concat_tables(map(_read, sorted(folder.glob("meta/episodes/*/*.parquet"))))


def _read(path):
    with pq.ParquetFile(path) as file:
        return file.read()
