"""LeRobot data sets as other people have them: read, purified, cut, and refused."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lerobot_folders as folders
from builders import assert_same_rows, fingerprint, rich
from elute.demos import lerobot_parquet, lerobot_shards, lerobot_stats
from elute.demos.files import load, open_demos, save
from elute.demos.format import ReadOptions
from elute.episodes import Piece
from elute.errors import EluteError
from lerobot_folders import (
    CAMERA,
    FEATURES,
    LENGTHS,
    all_episodes,
    all_frames,
    array,
    change_json,
    v21,
    v30,
)

STATE, OTHER = "observation.state", "observation.environment_state"


@pytest.fixture(scope="module")
def mp4(tmp_path_factory):
    """A real video, tiny."""
    imageio = pytest.importorskip("imageio.v2")
    path = tmp_path_factory.mktemp("video") / "a.mp4"
    with imageio.get_writer(path, fps=10, macro_block_size=16) as writer:
        for i in range(13):
            writer.append_data(np.full((16, 16, 3), 10 * i, dtype="uint8"))
    return path.read_bytes()


def purified(start, rows):
    """Moves the first observation and all actions, and leaves the rest alone."""
    pairs = rows.pairs.copy()
    pairs[:, :3] *= 0.5
    pairs[:, 5:] += 1
    return rows.with_pairs(pairs, "purify")


@pytest.fixture(params=[v30, v21], ids=["v3.0", "v2.1"])
def folder(request, tmp_path):
    """The same rows in both versions."""
    return request.param(tmp_path / "in")


def test_vectors_are_joined_and_the_rest_is_beside(folder):
    demos, table = load(folder), folders.frames()
    np.testing.assert_array_equal(
        demos.observations, np.concatenate([array(table[STATE]), array(table[OTHER])], axis=1)
    )
    np.testing.assert_array_equal(demos.actions, array(table["action"]).astype("f4"))
    assert demos.actions.dtype == np.float32
    np.testing.assert_array_equal(demos.rewards, array(table["next.reward"]).astype("f4"))
    assert set(demos.extras) == {"next.done", "timestamp", "task_index"}
    assert [b.key for b in demos.observation_columns] == [STATE] * 3 + [OTHER] * 2
    assert demos.episodes.lengths.tolist() == list(LENGTHS)
    assert demos.episodes.terminated.all()
    assert demos.episodes.attributes[1]["tasks"] == ["place"]
    assert set(demos.origin.carried) == {"observation.grid", "observation.images.wrist", "remark"}


def test_keys_choose_and_the_others_become_extras(folder):
    demos = load(folder, options=ReadOptions(keys=(OTHER,)))
    assert demos.observations.dtype == np.float64
    assert demos.observations.shape == (13, 2)
    assert demos.extras[STATE].shape == (13, 3)
    with pytest.raises(EluteError, match=r"no observation 'observation\.grid'") as caught:
        open_demos(folder, options=ReadOptions(keys=("observation.grid",)))
    assert STATE in caught.value.hint


def test_purifying_changes_two_columns_and_their_statistics_only(tmp_path):
    path = v30(tmp_path / "in")
    assert save(open_demos(path), tmp_path / "out", transform=purified, strict=True) == []
    before, after = all_frames(path), all_frames(tmp_path / "out")
    assert after.schema.equals(before.schema, check_metadata=True)
    for name in before.column_names:
        assert after[name].equals(before[name]) == (name not in (STATE, "action")), name
    np.testing.assert_array_equal(array(after["action"]), array(before["action"]).astype("f4") + 1)
    old, new = all_episodes(path), all_episodes(tmp_path / "out")
    assert new.schema.equals(old.schema)
    expected = folders.statistics(after)
    for name in old.column_names:
        feature = name.split("/")[1] if name.startswith("stats/") else ""
        if feature in (STATE, "action"):
            np.testing.assert_allclose(new[name].to_pylist(), expected[name], rtol=1e-12)
        else:
            assert new[name].equals(old[name]), name
    described = [json.loads((p / "meta/info.json").read_text()) for p in (path, tmp_path / "out")]
    assert described[0] == described[1]
    for name in ("README.md", "meta/tasks.parquet"):
        assert (tmp_path / "out" / name).read_bytes() == (path / name).read_bytes()


def test_totals_are_those_of_all_rows(tmp_path):
    path = v30(tmp_path / "in")
    save(open_demos(path), tmp_path / "out", transform=purified)
    totals = json.loads((tmp_path / "out/meta/stats.json").read_text())
    assert totals.pop("note") == "as it was"  # what did not change is not touched
    assert set(totals) == {STATE, "action"}
    rows = array(all_frames(tmp_path / "out")["action"])
    for name, value in (("min", rows.min(0)), ("max", rows.max(0)), ("mean", rows.mean(0)),
                        ("std", rows.std(0)), ("count", [13])):  # fmt: skip
        np.testing.assert_allclose(totals["action"][name], value, rtol=1e-12)
    median = array(all_episodes(tmp_path / "out")["stats/action/q50"])
    weighted = (median * np.array(LENGTHS)[:, None]).sum(0) / 13  # LeRobot's rule
    np.testing.assert_allclose(totals["action"]["q50"], weighted, rtol=1e-12)


def test_statistics_by_hand():
    found = lerobot_stats.of_episode(np.arange(1, 101, dtype="f4")[:, None])
    assert [found[q].item() for q in ("q01", "q10", "q50", "q90", "q99")] == [1, 10, 50, 90, 99]
    assert found["std"].item() == pytest.approx(np.sqrt((100**2 - 1) / 12))
    single = lerobot_stats.of_episode(np.array([[3.0, -1.0]]))
    assert all(single[name].tolist() == [3, -1] for name in ("min", "mean", "q01", "q99"))
    assert single["std"].tolist() == [0, 0]


def test_a_selection_is_numbered_anew_and_keeps_the_rest(tmp_path):
    path = v30(tmp_path / "in")
    save(open_demos(f"{path}#episodes=2,0"), tmp_path / "out", strict=True)
    before, after = all_frames(path), all_frames(tmp_path / "out")
    rows = [*range(7, 13), *range(4)]
    for name in before.column_names:
        if name not in ("index", "episode_index"):
            assert after[name].to_pylist() == before[name].take(rows).to_pylist(), name
    assert after["index"].to_pylist() == list(range(10))
    assert after["episode_index"].to_pylist() == [0] * 6 + [1] * 4
    episodes = all_episodes(tmp_path / "out")
    assert episodes["operator"].to_pylist() == ["zoë 2", "zoë 0"]
    assert episodes["dataset_to_index"].to_pylist() == [6, 10]
    np.testing.assert_allclose(
        episodes["stats/action/mean"].to_pylist(),
        all_episodes(path)["stats/action/mean"].take([2, 0]).to_pylist(),
    )
    totals = json.loads((tmp_path / "out/meta/stats.json").read_text())
    np.testing.assert_allclose(totals["index"]["mean"], [4.5])
    np.testing.assert_allclose(totals["observation.images.wrist"]["mean"][1], [[0.5]])
    assert totals["observation.images.wrist"]["count"] == [14]


def test_a_cut_and_shifted_episode_keeps_each_side_together(tmp_path):
    path = v30(tmp_path / "in")
    moved = load(path).take([Piece(8, 4, 1)])
    losses = save(moved, tmp_path / "out")
    assert losses == ["observation.images.wrist: its statistics are those of the uncut episodes"]
    before, after = all_frames(path), all_frames(tmp_path / "out")
    for name in (STATE, "remark", "observation.grid", "timestamp", "observation.images.wrist"):
        assert after[name].to_pylist() == before[name].slice(8, 4).to_pylist(), name
    for name in ("action", "next.reward", "next.done"):
        assert after[name].to_pylist() == before[name].slice(9, 4).to_pylist(), name
    np.testing.assert_allclose(
        all_episodes(tmp_path / "out")[f"stats/{STATE}/max"].to_pylist()[0],
        array(after[STATE]).max(0),
    )


def test_the_old_version_is_written_as_the_new_one(tmp_path, mp4):
    path = v21(tmp_path / "in", video=mp4)
    assert save(open_demos(path), tmp_path / "out", transform=purified, strict=True) == []
    info = json.loads((tmp_path / "out/meta/info.json").read_text())
    assert info["codebase_version"] == "v3.0"
    assert "total_chunks" not in info
    assert not list((tmp_path / "out/meta").glob("*.jsonl"))
    before, after = folders.frames(), all_frames(tmp_path / "out")
    for name in before.column_names:
        assert after[name].equals(before[name]) == (name not in (STATE, "action")), name
    episodes = all_episodes(tmp_path / "out")
    assert "stats/action/q50" not in episodes.column_names  # the old version had none
    np.testing.assert_allclose(
        episodes["stats/action/mean"].to_pylist(), folders.statistics(after)["stats/action/mean"]
    )
    for e, length in enumerate(LENGTHS):
        video = tmp_path / f"out/videos/{CAMERA}/chunk-000/file-{e:03d}.mp4"
        assert video.read_bytes() == mp4 + bytes([e])
        row = episodes.slice(e, 1).to_pylist()[0]
        assert row[f"videos/{CAMERA}/file_index"] == e
        assert row[f"videos/{CAMERA}/to_timestamp"] == pytest.approx(length / 10)
    again = load(tmp_path / "out")
    np.testing.assert_array_equal(again.actions, load(path).actions + np.float32(1))


def test_videos_are_linked(tmp_path, mp4):
    path = v30(tmp_path / "in", video=mp4)
    save(open_demos(path), tmp_path / "out", transform=purified, strict=True)
    for video in sorted(path.glob("videos/*/*/*.mp4")):
        assert (tmp_path / "out" / video.relative_to(path)).samefile(video)


def test_videos_are_copied_where_links_are_not_possible(tmp_path, mp4, monkeypatch):
    def refuse(*_):
        raise OSError("another file system")

    monkeypatch.setattr(lerobot_parquet.os, "link", refuse)
    path = v30(tmp_path / "in", video=mp4)
    save(open_demos(f"{path}#episodes=0"), tmp_path / "out")
    (video,) = (tmp_path / "out").glob("videos/*/*/*.mp4")  # only the one that is needed
    assert video.read_bytes() == mp4 + b"\0"
    assert not video.samefile(path / video.relative_to(tmp_path / "out"))


def test_a_missing_video_is_refused_when_it_is_needed(tmp_path, mp4):
    path = v30(tmp_path / "in", video=mp4)
    (path / f"videos/{CAMERA}/chunk-000/file-001.mp4").unlink()
    load(path)
    with pytest.raises(EluteError, match="video is missing"):
        save(open_demos(path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_format_and_back_keeps_names_tasks_and_speed(tmp_path):
    path = v30(tmp_path / "in")
    losses = save(open_demos(path), tmp_path / "a.npz")
    assert {loss.split(":")[0] for loss in losses} == {
        "observation.grid", "observation.images.wrist", "remark"
    }  # fmt: skip
    assert save(open_demos(tmp_path / "a.npz"), tmp_path / "out", format="lerobot") == []
    before, after = all_frames(path), all_frames(tmp_path / "out")
    for name in after.column_names:
        if name != "next.truncated":
            assert after[name].equals(before[name]), name
    info = json.loads((tmp_path / "out/meta/info.json").read_text())
    assert info["fps"] == 10
    assert info["robot_type"] == "so100"
    for name in (STATE, OTHER, "action", "next.reward"):
        assert info["features"][name] == FEATURES[name]
    assert all_episodes(tmp_path / "out")["tasks"].to_pylist() == [["pick"], ["place"], ["pick"]]


def test_what_lerobot_demands_and_nobody_knows_is_said(tmp_path):
    save(rich(), tmp_path / "a.npz")
    losses = save(open_demos(tmp_path / "a.npz"), tmp_path / "out", format="lerobot")
    assert losses == ["frames per second are unknown: 10 stand in, so marked (say --fps)"]
    assert "fps" not in load(tmp_path / "out").provenance.metadata["lerobot"]
    known = open_demos(tmp_path / "a.npz", options=ReadOptions(fps=25))
    assert save(known, tmp_path / "known", format="lerobot", strict=True) == []
    stamps = array(all_frames(tmp_path / "known")["timestamp"])[:3]
    np.testing.assert_allclose(stamps, [0, 0.04, 0.08], rtol=1e-6)
    with pytest.raises(EluteError, match="steps per second"):
        open_demos(tmp_path / "a.npz", options=ReadOptions(fps=-1))


def test_nothing_that_is_no_action_looks_like_one(tmp_path):
    demos = rich().with_extra("action_dict/pos", np.ones((20, 2))).with_extra("b/c", np.ones(20))
    save(demos, tmp_path / "out", format="lerobot")
    features = json.loads((tmp_path / "out/meta/info.json").read_text())["features"]
    assert [name for name in features if name.startswith("action")] == ["action"]
    assert not any("/" in name for name in features)
    read = load(tmp_path / "out")
    assert read.extras["action_dict/pos"].shape == (20, 2)
    assert "b/c" in read.extras


def test_bytes_are_no_text(tmp_path):
    demos = rich().with_extra("raw", np.array([b"\xff"] * 20))
    losses = save(demos, tmp_path / "out", format="lerobot")
    assert any(loss.startswith("raw:") for loss in losses)


def test_files_fill_up_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.setattr(lerobot_shards, "SHARD_MB", 1e-6)
    save(rich(), tmp_path / "out", format="lerobot")
    names = sorted(p.name for p in (tmp_path / "out").glob("data/*/*.parquet"))
    assert names == [f"file-{i:03d}.parquet" for i in range(5)]
    assert all_frames(tmp_path / "out")["index"].to_pylist() == list(range(20))
    assert len(load(tmp_path / "out").episodes) == 5


def test_images_are_never_all_in_memory(tmp_path, monkeypatch):
    path = v30(tmp_path / "in", lengths=(400, 300), files=1)
    monkeypatch.setattr(lerobot_parquet, "PIECE_BYTES", 4096)
    sizes = []
    pieces = lerobot_parquet.pieces

    def watched(*arguments):
        for table in pieces(*arguments):
            sizes.append(table.nbytes)
            yield table

    monkeypatch.setattr(lerobot_parquet, "pieces", watched)
    save(open_demos(path), tmp_path / "out", transform=purified)
    assert max(sizes) < 5 * 4096
    assert sum(sizes) > 20 * 4096
    assert all_frames(tmp_path / "out")["remark"].equals(all_frames(path)["remark"])


def test_one_row_group_of_many_episodes(tmp_path):
    """As converters write it that go through pandas."""
    path = v30(tmp_path / "in", files=1)
    file = path / "data/chunk-000/file-000.parquet"
    table = all_frames(path)
    lists = pa.list_(pa.float32())
    at = table.column_names.index("action")
    table = table.set_column(at, pa.field("action", lists), table["action"].cast(lists))
    pq.write_table(table, file)
    save(open_demos(path), tmp_path / "out", transform=purified)
    assert all_frames(tmp_path / "out").schema.field("action").type == lists
    np.testing.assert_array_equal(load(tmp_path / "out").actions, load(path).actions + 1)


# What is refused


def refused(path, *says):
    before = fingerprint(path)
    with pytest.raises(EluteError) as caught:
        load(path)
    for part in says:
        assert part in str(caught.value)
    assert path.name in str(caught.value)
    assert fingerprint(path) == before


@pytest.mark.parametrize(
    ("name", "file"),
    [(make, file) for make, files in {
        "v30": ["meta/tasks.parquet", "meta/episodes", "data/chunk-000/file-001.parquet"],
        "v21": ["meta/tasks.jsonl", "meta/episodes.jsonl", "data/chunk-000/episode_000001.parquet"],
    }.items() for file in files],
)  # fmt: skip
def test_a_missing_part(tmp_path, name, file):
    path = getattr(folders, name)(tmp_path / "in")
    (shutil.rmtree if (path / file).is_dir() else (lambda p: p.unlink()))(path / file)
    refused(path, file.split("/")[-1].split(".")[0])


@pytest.mark.parametrize("version", ["v1.6", "v2.0", "2.0", "v3.1", "v4.0", None, 3, ["v3.0"]])
def test_another_version(tmp_path, version):
    path = v30(tmp_path / "in")
    change_json(path / "meta/info.json", codebase_version=version)
    refused(path, "codebase_version")


def test_the_way_from_an_older_version_is_shown(tmp_path):
    path = v30(tmp_path / "in")
    change_json(path / "meta/info.json", codebase_version="v2.0")
    refused(path, "convert_dataset_v20_to_v21", "v3.0 and v2.1")


@pytest.mark.parametrize(
    ("field", "value"),
    [("fps", 0), ("fps", "x"), ("fps", None), ("features", []), ("features", {"action": 3}),
     ("features", {"action": {"dtype": "float32", "shape": [-1]}}), ("features", {}),
     ("total_frames", 14), ("total_episodes", 2), ("data_path", None), ("data_path", "")],
)  # fmt: skip
def test_damaged_info(tmp_path, field, value):
    path = v30(tmp_path / "in")
    change_json(path / "meta/info.json", **{field: value})
    refused(path)


TEMPLATES = [
    "../in/data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
    "/etc/passwd",
    "data/../../x/{file_index}",
    "{chunk_index.__class__}",
    "{0}",
    "{file_index!r}",
    "{file_index:0999999999d}",
    "{file_index:{chunk_index}}",
    "{",
    "data/{nothing}.parquet",
    "data/\0{file_index}",
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_that_leads_elsewhere(tmp_path, template, mp4):
    path = v30(tmp_path / "in", video=mp4)
    info = path / "meta/info.json"
    usual = json.loads(info.read_text())["data_path"]
    change_json(info, data_path=template)
    refused(path)
    change_json(info, data_path=usual, video_path=template)
    with pytest.raises(EluteError):
        save(open_demos(path), tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"]


def test_a_camera_whose_name_is_a_path(tmp_path, mp4):
    path = v30(tmp_path / "in", video=mp4)
    text = (path / "meta/info.json").read_text().replace(CAMERA, "../../../outside")
    (path / "meta/info.json").write_text(text)
    table = all_episodes(path)
    names = [name.replace(CAMERA, "../../../outside") for name in table.column_names]
    pq.write_table(table.rename_columns(names), path / "meta/episodes/chunk-000/file-000.parquet")
    with pytest.raises(EluteError, match="leads out of the folder"):
        save(open_demos(path), tmp_path / "out")


@pytest.mark.parametrize(
    "file", ["data/chunk-000/file-000.parquet", "meta/info.json", "meta/tasks.parquet",
             "meta/episodes/chunk-000/file-000.parquet", "meta/elute.json"]
)  # fmt: skip
def test_a_link_out_of_the_folder(tmp_path, file):
    path = v30(tmp_path / "in")
    save(open_demos(path), tmp_path / "out")
    path, outside = tmp_path / "out", tmp_path / "outside"
    (path / file).rename(outside)
    (path / file).symlink_to(outside)
    refused(path, "leads out of the folder")


def test_a_link_inside_the_folder_is_followed(tmp_path):
    path = v30(tmp_path / "in")
    (path / "data").rename(path / "elsewhere")
    (path / "data").symlink_to("elsewhere")
    (tmp_path / "link").symlink_to(path)
    assert len(load(tmp_path / "link")) == 13


def test_another_file_that_links_out_is_not_copied(tmp_path):
    path = v30(tmp_path / "in")
    (tmp_path / "secret").write_text("x")
    (path / "notes.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(EluteError, match="leads out of the folder"):
        save(open_demos(path), tmp_path / "out")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
@pytest.mark.parametrize("file", ["data/chunk-000/file-001.parquet", "meta/tasks.parquet",
                                  "meta/episodes/chunk-000/file-000.parquet"])  # fmt: skip
def test_a_truncated_table(tmp_path, file, share):
    path = v30(tmp_path / "in")
    content = (path / file).read_bytes()
    (path / file).write_bytes(content[: int(share * len(content))])
    refused(path, "cannot be read")


def patched(path, file, name, column):
    with pq.ParquetFile(path / file) as stored:
        table = stored.read()
    if column is None:
        table = table.drop_columns([name])
    else:
        at = table.column_names.index(name)
        table = table.set_column(at, pa.field(name, column.type), column)
    pq.write_table(table, path / file)


EPISODES = "meta/episodes/chunk-000/file-000.parquet"


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        ("episode_index", [0, 1, 3], "without gaps"),
        ("episode_index", [1, 2, 3], "without gaps"),
        ("episode_index", [0, 0, 1], "without gaps"),
        ("length", [4, 4, 6], "total_frames"),
        ("length", [4, 2, 7], "disagrees with their lengths"),
        ("length", [0, 7, 6], "empty"),
        ("length", [2**62, 2**62, 2**62], "total_frames"),
        ("length", [4.0, 3.0, 6.0], "whole numbers"),
        ("dataset_from_index", [0, 5, 7], "dataset_from_index"),
        ("data/file_index", [0, 1, 0], "do not follow one another"),
        ("data/file_index", [0, 0, 1], "holds 4 rows"),
        ("data/file_index", [5, 1, 1], "is missing"),
        ("data/file_index", [None, 1, 1], "whole numbers"),
        ("data/chunk_index", None, "is missing"),
    ],
)
def test_a_table_of_episodes_that_disagrees(tmp_path, name, values, says):
    path = v30(tmp_path / "in")
    patched(path, EPISODES, name, None if values is None else pa.array(values))
    refused(path, says)


DATA = "data/chunk-000/file-001.parquet"


@pytest.mark.parametrize(
    ("name", "column", "says"),
    [
        ("episode_index", pa.array([1] * 4 + [2] * 5), "episode_index"),
        ("episode_index", pa.array(["a"] * 9), ""),
        ("action", pa.array([[1.0, 2.0]] * 8 + [[1.0]], pa.list_(pa.float32())), "lists of 1, 2"),
        ("action", pa.array([[1.0, 2.0]] * 8 + [None], pa.list_(pa.float32())), "missing entries"),
        ("action", pa.array([[1.0, None]] * 9, pa.list_(pa.float32())), "missing entries"),
        ("action", pa.array([[1.0, 2.0, 3.0]] * 9, pa.list_(pa.float32(), 3)), "expected 2"),
        ("action", None, "'action' is missing"),
        ("next.reward", None, "'next.reward' is missing"),
    ],
)
def test_frames_that_disagree(tmp_path, name, column, says):
    path = v30(tmp_path / "in")
    patched(path, DATA, name, column)
    refused(path, says)


@pytest.mark.parametrize(
    "column", [pa.array(["a"] * 13), pa.array([[[1.0]]] * 13), pa.nulls(13), pa.array([b"a"] * 13)]
)
@pytest.mark.parametrize("name", ["action", "timestamp"])
def test_no_numbers_where_numbers_are_needed(tmp_path, name, column):
    path = v30(tmp_path / "in", files=1)
    patched(path, "data/chunk-000/file-000.parquet", name, column)
    refused(path, name)


@pytest.mark.parametrize("shape", [[2**40], [2**31], [0], [3], [2**20, 2**20, 2**20], [1, 2]])
def test_an_absurd_shape(tmp_path, shape):
    path = v30(tmp_path / "in")
    features = {**FEATURES, "action": {"dtype": "float32", "shape": shape}}
    change_json(path / "meta/info.json", features=features)
    refused(path)


def test_a_column_that_is_there_twice(tmp_path):
    path = v30(tmp_path / "in", files=1)
    table = all_frames(path)
    pq.write_table(table.append_column("action", table["action"]),
                   path / "data/chunk-000/file-000.parquet")  # fmt: skip
    refused(path, "twice")


@pytest.mark.parametrize("text", ["", "{", "3", "[1]", '{"episode_index": 0}', "\xff"])
@pytest.mark.parametrize("file", ["episodes", "tasks", "episodes_stats"])
def test_damaged_lines(tmp_path, file, text):
    path = v21(tmp_path / "in")
    file = path / f"meta/{file}.jsonl"
    file.write_text(file.read_text() + "\n" + text + "\n" if text else "", encoding="latin-1")
    if text or file.stem != "episodes_stats":
        refused(path)


def test_a_data_set_that_changed_meanwhile_is_not_copied_blindly(tmp_path):
    path = v30(tmp_path / "in")
    demos = load(path)
    with (path / "README.md").open("a") as file:
        file.write("more")
    losses = save(demos, tmp_path / "out", format="lerobot")
    assert any("has changed since it was read" in loss for loss in losses)


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name=name.replace("elute.demos.lerobot_read", "pyarrow"))

    path = v30(tmp_path / "in")
    monkeypatch.setattr("elute.demos.lerobot.import_module", absent)
    with pytest.raises(EluteError, match="need pyarrow") as caught:
        load(path)
    assert "elute[lerobot]" in caught.value.hint


def test_files_of_one_name_stay_one_file(tmp_path):
    """A template without `{file_index}`: what was written first must not be lost."""
    path = v30(tmp_path / "in", files=1)
    (path / "data/chunk-000/file-000.parquet").rename(path / "data/chunk-000/all.parquet")
    change_json(path / "meta/info.json", data_path="data/chunk-{chunk_index:03d}/all.parquet")
    table = pq.read_table(path / "meta/episodes/chunk-000/file-000.parquet")
    at = table.column_names.index("data/file_index")
    table = table.set_column(at, "data/file_index", pa.array([0, 1, 1]))
    pq.write_table(table, path / "meta/episodes/chunk-000/file-000.parquet")
    before = load(path)
    save(open_demos(path), tmp_path / "out")
    assert_same_rows(before, load(tmp_path / "out"))


def test_a_text_that_would_fill_the_memory_is_refused(tmp_path):
    """Stored once, but standing in every row."""
    path = v30(tmp_path / "in")
    texts = pa.DictionaryArray.from_arrays(np.zeros(5000, "i4"), ["x" * 2**23])
    table = pa.table({"task_index": np.arange(5000), "task": texts})
    pq.write_table(table, path / "meta/tasks.parquet")
    assert (path / "meta/tasks.parquet").stat().st_size < 2**20
    with pytest.raises(EluteError, match="a text of 8 MiB"):
        load(path)


def test_a_name_that_no_file_can_have(tmp_path):
    path = v30(tmp_path / "in")
    change_json(path / "meta/info.json", data_path="a" * 10_000)
    with pytest.raises(EluteError, match="longer than a file's name"):
        load(path)


def test_tasks_that_are_no_text(tmp_path):
    """An input of the fuzz campaign: bytes that are no UTF-8, in a column of texts."""
    path = v30(tmp_path / "set")
    texts = pa.array([b"pi\xfeck", b"place"]).view(pa.string())
    table = pa.table({"task_index": [0, 1], "__index_level_0__": texts})
    pq.write_table(table, path / "meta/tasks.parquet")
    with pytest.raises(EluteError, match=r"tasks\.parquet: cannot be read"):
        open_demos(path)
