"""LeRobot's own classes write a data set, elute purifies it, and LeRobot reads the result.

Run with `make test-lerobot`. Values must be equal to the last bit. Statistics must be LeRobot's own
of the new values: it works in float32 and finds quantiles from 5000 bins, which is the tolerance.
"""

import sys
import types
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import numpy as np
import pytest

from elute.demos.corrupt import corrupt
from elute.demos.files import load, open_demos, save
from elute.demos.format import ReadOptions
from elute.demos.pointmass import pointmass

pytestmark = [
    pytest.mark.peers,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # LeRobot's and its dependencies' own
]

BINS = 5000
LENGTHS = (40, 25, 60)
FEATURES = {
    "observation.state": {"dtype": "float32", "shape": (3,), "names": ["a", "b", "c"]},
    "observation.environment_state": {"dtype": "float64", "shape": (2,), "names": None},
    "observation.grid": {"dtype": "float32", "shape": (2, 2), "names": None},
    "action": {"dtype": "float32", "shape": (2,), "names": {"motors": ["x", "y"]}},
    "next.reward": {"dtype": "float32", "shape": (1,), "names": None},
    "next.done": {"dtype": "bool", "shape": (1,), "names": None},
    "remark": {"dtype": "string", "shape": (1,), "names": None},
    "observation.images.wrist": {"dtype": "image", "shape": (32, 32, 3),
                                 "names": ["height", "width", "channels"]},
    "observation.images.front": {"dtype": "video", "shape": (64, 64, 3),
                                 "names": ["height", "width", "channels"]},
}  # fmt: skip


def stand_in(name, **members):
    """A module of which LeRobot needs only the name: torchvision does not fit a CPU's torch."""
    module = types.ModuleType(name)
    module.__spec__, module.__path__ = ModuleSpec(name, None), []
    module.__dict__.update(members)
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)


@pytest.fixture(scope="module")
def lerobot():
    """LeRobot's data set and its statistics."""
    pytest.importorskip("lerobot", reason="LeRobot is not installed: make test-lerobot")
    import torch  # noqa: PLC0415

    class ToTensor:
        def __call__(self, image):
            return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255

    stand_in("torchvision")
    stand_in("torchvision.transforms", ToTensor=ToTensor)
    from lerobot.datasets import compute_stats, lerobot_dataset  # noqa: PLC0415

    return SimpleNamespace(
        create=lerobot_dataset.LeRobotDataset.create,
        read=lambda path: lerobot_dataset.LeRobotDataset("someone/something", root=path),
        of_episode=compute_stats.compute_episode_stats,
        of_all=compute_stats.aggregate_stats,
    )


@pytest.fixture(scope="module")
def folder(lerobot, tmp_path_factory):
    """A data set by LeRobot itself, with images in the tables and a video beside them."""
    path = tmp_path_factory.mktemp("lerobot") / "in"
    data = lerobot.create(
        "someone/something", fps=10, root=path, robot_type="arm", features=FEATURES, vcodec="h264"
    )
    rng = np.random.default_rng(0)
    for episode, length in enumerate(LENGTHS):
        for t in range(length):
            data.add_frame(
                {
                    "observation.state": rng.normal(size=3).astype("f4"),
                    "observation.environment_state": rng.normal(size=2),
                    "observation.grid": rng.normal(size=(2, 2)).astype("f4"),
                    "action": rng.normal(size=2).astype("f4"),
                    "next.reward": np.array([t], dtype="f4"),
                    "next.done": np.array([t == length - 1]),
                    "remark": f"zoë {t}",
                    "observation.images.wrist": rng.integers(0, 255, (32, 32, 3)).astype("u1"),
                    "observation.images.front": np.full((64, 64, 3), 4 * t, dtype="u1"),
                    "task": ["pick", "place"][episode % 2],
                }
            )
        data.save_episode()
    data.finalize()
    return path


def columns(data):
    """All columns of numbers and text as LeRobot yields them, one array each."""
    table = data.hf_dataset.with_format("arrow")[:]  # as numpy it would become float32
    return {
        name: np.array(
            table[name].to_pylist(), None if feature["dtype"] == "string" else feature["dtype"]
        )
        for name, feature in data.features.items()
        if feature["dtype"] not in ("image", "video")
    }


def spoilt(start, rows):
    pairs = rows.pairs.copy()
    pairs[:, :3] += 0.25
    return corrupt(rows.with_pairs(pairs, "shift"), "gaussian", 0.3, first_row=start)


def agrees(lerobot, data):
    """The statistics in a data set against those that LeRobot computes of its rows."""
    values = columns(data)
    numbers = [n for n in values if data.features[n]["dtype"] != "string"]
    episode = values["episode_index"]
    episodes = [
        lerobot.of_episode({n: values[n][episode == e] for n in numbers}, data.features)
        for e in range(data.meta.total_episodes)
    ]
    stored = _episode_statistics(data)
    for e, expected in enumerate(episodes):
        _agree({n: stored[n][e] for n in numbers}, expected, values)
    _agree(data.meta.stats, lerobot.of_all(episodes), values)


def _episode_statistics(data):
    import pyarrow.parquet as pq  # noqa: PLC0415

    (path,) = (data.root / "meta/episodes").glob("*/*.parquet")
    rows = pq.read_table(path).to_pylist()
    found = {}
    for name in rows[0]:
        if name.startswith("stats/"):
            _, feature, statistic = name.split("/")
            for e, row in enumerate(rows):
                found.setdefault(feature, [{} for _ in rows])[e][statistic] = row[name]
    return found


def _agree(stored, expected, values):
    for name, statistics in expected.items():
        rows = values[name].astype(float)
        spread, size = np.ptp(rows), max(np.abs(rows).max(), 1e-6)
        for statistic, value in statistics.items():
            # Two bins: LeRobot returns an edge of the bin that it finds, or one beyond.
            tolerance = 2 * spread / BINS if statistic[0] == "q" else 0
            np.testing.assert_allclose(
                np.asarray(stored[name][statistic], dtype=float),
                np.asarray(value, dtype=float),
                rtol=1e-5,
                atol=tolerance + 1e-6 * size,
                err_msg=f"{name} {statistic}",
            )


def test_elute_reads_what_lerobot_wrote(lerobot, folder):
    data, demos = columns(lerobot.read(folder)), load(folder)
    np.testing.assert_array_equal(demos.observations[:, :3], data["observation.state"])
    np.testing.assert_array_equal(demos.observations[:, 3:], data["observation.environment_state"])
    np.testing.assert_array_equal(demos.actions, data["action"])
    assert demos.actions.dtype == data["action"].dtype
    assert demos.episodes.lengths.tolist() == list(LENGTHS)


def test_lerobot_reads_what_elute_purified(lerobot, folder, tmp_path):
    save(open_demos(folder), tmp_path / "out", transform=spoilt, strict=True)
    expected = spoilt(0, load(folder))
    before, read = lerobot.read(folder), lerobot.read(tmp_path / "out")
    old, new = columns(before), columns(read)
    np.testing.assert_array_equal(new["action"], expected.actions)
    np.testing.assert_array_equal(
        new["observation.state"], expected.observations[:, :3].astype("f4")
    )
    np.testing.assert_array_equal(new["clean_actions"], old["action"])
    for name in old:
        if name not in ("action", "observation.state"):
            assert new[name].dtype == old[name].dtype
            np.testing.assert_array_equal(new[name], old[name], err_msg=name)
    assert set(read.features) - set(before.features) == {"clean_actions"}
    for row in (0, 39, 40, 124):
        one, other = (d.hf_dataset[row]["observation.images.wrist"] for d in (before, read))
        assert (one == other).all()
    assert read.meta.tasks.equals(before.meta.tasks)
    assert read.meta.names["action"] == {"motors": ["x", "y"]}
    agrees(lerobot, read)
    for image in ("observation.images.wrist", "observation.images.front"):
        for name, value in before.meta.stats[image].items():
            np.testing.assert_array_equal(read.meta.stats[image][name], value)


def test_the_frames_of_a_video_are_found(lerobot, folder, tmp_path):
    av = pytest.importorskip("av")
    save(open_demos(f"{folder}#episodes=2,1"), tmp_path / "out", strict=True)
    data = lerobot.read(tmp_path / "out")
    row = data.meta.episodes[0]
    key = "observation.images.front"
    with av.open(str(data.root / data.meta.get_video_file_path(0, key))) as video:
        decoded = {round(f.time * 10): f.to_ndarray(format="rgb24").mean()
                   for f in video.decode(video=0)}  # fmt: skip
    first = round(row[f"videos/{key}/from_timestamp"] * 10)
    assert first == LENGTHS[0] + LENGTHS[1]
    for t in (0, 17, 59):
        assert decoded[first + t] == pytest.approx(4 * t, abs=4)


def test_a_selection_and_a_cut(lerobot, folder, tmp_path):
    save(open_demos(f"{folder}#episodes=2,0"), tmp_path / "some", strict=True)
    some, all_ = lerobot.read(tmp_path / "some"), columns(lerobot.read(folder))
    np.testing.assert_array_equal(
        columns(some)["action"], np.concatenate([all_["action"][65:], all_["action"][:40]])
    )
    agrees(lerobot, some)
    save(load(folder)[10:50], tmp_path / "cut")
    cut = lerobot.read(tmp_path / "cut")
    np.testing.assert_array_equal(columns(cut)["observation.grid"], all_["observation.grid"][10:50])
    assert columns(cut)["frame_index"].tolist() == [*range(30), *range(10)]
    agrees(lerobot, cut)


def test_a_data_set_from_another_format(lerobot, tmp_path):
    demos = pointmass(6)
    save(demos, tmp_path / "a.npz")
    source = open_demos(tmp_path / "a.npz", options=ReadOptions(fps=20))
    save(source, tmp_path / "out", format="lerobot", strict=True)
    data = lerobot.read(tmp_path / "out")
    read = columns(data)
    np.testing.assert_array_equal(read["observation.state"], demos.observations)
    np.testing.assert_array_equal(read["action"], demos.actions)
    np.testing.assert_array_equal(read["next.reward"], demos.rewards)
    assert data.fps == 20
    assert data[3]["task"] == "pointmass"
    assert len(data) == len(demos)
    agrees(lerobot, data)


def test_windows_of_actions_stop_at_the_end_of_an_episode(lerobot, folder, tmp_path):
    """The table of episodes is what LeRobot finds neighbours by."""
    save(open_demos(f"{folder}#episodes=1,0"), tmp_path / "out", transform=spoilt)
    data = lerobot.read(tmp_path / "out")
    data.delta_indices = {"action": [0, 1]}
    indices, padding = data._get_query_indices(24, 0)
    assert indices == {"action": [24, 24]}
    assert padding["action_is_pad"].tolist() == [False, True]
