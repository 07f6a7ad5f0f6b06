"""Minari datasets made by Minari, and what elute writes opened by Minari."""

import json
from dataclasses import replace

import gymnasium
import h5py
import minari
import numpy as np
import pytest
from gymnasium import spaces
from minari.data_collector import EpisodeBuffer

from builders import assert_same_array, assert_same_rows, hdf5_tree, plain, rich, vild_file
from elute.columns import blocks, columns
from elute.demos.corrupt import corrupt
from elute.demos.files import load, open_demos, save
from elute.demos.format import ReadOptions
from elute.errors import EluteError

pytestmark = pytest.mark.filterwarnings("ignore:.*(is set to None|env_spec is None)")

LENGTHS = (4, 3, 5)
BOX = spaces.Box(-np.inf, np.inf, (3,), np.float64)
ACTION = spaces.Box(-1, 1, (2,), np.float32)
DICT = spaces.Dict(
    {
        "goal": spaces.Box(-1, 1, (2,), np.float32),
        "arm": spaces.Dict({"quat": spaces.Box(-1, 1, (4,), np.float64)}),
        "mode": spaces.Discrete(3),
        "camera": spaces.Box(0, 255, (8, 8, 3), np.uint8),
        "words": spaces.Text(8),
    }
)


@pytest.fixture(autouse=True)
def minari_folder(tmp_path, monkeypatch):
    folder = tmp_path / "minari"
    folder.mkdir()
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    return folder


LAST_INFOS = {f"infos/{name} (its row after the last action)" for name in ("qpos", "deep/success")}
"""What elute does not hold of the infos that it holds."""


def recorded(space, action_space=ACTION, *, name="lab/made-v0", lengths=LENGTHS, **options):
    """A dataset that Minari itself writes."""
    space.seed(0)
    action_space.seed(0)
    buffers = [buffer(i, n, space, action_space) for i, n in enumerate(lengths)]
    dataset = minari.create_dataset_from_buffers(
        name,
        buffers,
        observation_space=space,
        action_space=action_space,
        algorithm_name="by hand",
        author="ann",
        author_email="ann@example.org",
        code_permalink="https://example.org",
        description="made for a test",
        **options,
    )
    labels = [
        {"quality": "better" if i else "worse", "score": 0.5 * i} for i in range(len(lengths))
    ]
    dataset.storage.update_episode_metadata(labels)
    return dataset


def buffer(i, n, space, action_space):
    rng = np.random.default_rng(i)
    return EpisodeBuffer(
        id=i,
        seed=100 + i,
        options={"start": {"x": 0.5}, "level": i},
        observations=stacked(space, n + 1),
        actions=stacked(action_space, n),
        rewards=rng.normal(size=n).tolist(),
        terminations=[False] * (n - 1) + [i == 0],
        truncations=[False] * (n - 1) + [i == 1],
        infos={"qpos": rng.normal(size=(n + 1, 2)), "deep": {"success": np.arange(n + 1) > 2},
               "text": ["a"] * (n + 1)},
    )  # fmt: skip


def stacked(space, n):
    if isinstance(space, spaces.Dict):
        return {key: stacked(sub, n) for key, sub in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(stacked(sub, n) for sub in space.spaces)
    return [space.sample() for _ in range(n)]


def folder_of(dataset):
    return dataset.storage.data_path.parent


def test_a_dataset_is_read_as_recorded():
    dataset = recorded(BOX)
    demos = load(folder_of(dataset))
    episodes = list(dataset.iterate_episodes())
    for name, rows in (("observations", slice(None, -1)), ("next_observations", slice(1, None))):
        stored = np.concatenate([e.observations[rows] for e in episodes])
        assert_same_array(getattr(demos, name), stored, name)
    assert_same_array(demos.actions, np.concatenate([e.actions for e in episodes]))
    assert_same_array(demos.rewards, np.concatenate([e.rewards for e in episodes]))
    qpos = np.concatenate([e.infos["qpos"][:-1] for e in episodes])
    assert_same_array(demos.extras["qpos"], qpos)
    assert set(demos.extras) == {"qpos", "deep/success"}
    assert set(demos.origin.carried) == {"infos/text", *LAST_INFOS}
    assert demos.episodes.terminated.tolist() == [True, False, False]
    assert demos.episodes.truncated.tolist() == [False, True, False]
    assert not demos.episodes.inferred.any()
    assert not demos.episodes.final_repeated.any()


def test_seeds_options_and_labels_are_read():
    attributes = load(folder_of(recorded(BOX))).episodes.attributes
    assert [a["seed"] for a in attributes] == [100, 101, 102]
    assert [a["options/start/x"] for a in attributes] == [0.5] * 3
    assert [a["quality"] for a in attributes] == ["worse", "better", "better"]


def test_a_dataset_is_found_by_its_id_and_inside_its_folder():
    folder = folder_of(recorded(BOX))
    demos = load("minari:lab/made-v0")
    assert_same_rows(demos, load(folder))
    assert_same_rows(demos, load(folder / "data"))
    assert_same_rows(demos, load(folder / "data" / "main_data.hdf5"))
    assert len(load("minari:lab/made-v0#episodes=1")) == 3


def test_named_observations_are_put_together_and_images_carried():
    source = open_demos(folder_of(recorded(DICT)))
    keys = {block.key: block.roles for block in blocks(source.observation_columns)}
    assert keys == {
        "goal": ("continuous",) * 2, "arm/quat": ("quaternion",) * 4, "mode": ("discrete",)
    }  # fmt: skip
    carried = {"observations/camera", "observations/words", "infos/text", *LAST_INFOS}
    assert carried == set(source.origin.carried)
    chosen = open_demos(source.provenance.source, options=ReadOptions(keys=("mode", "goal")))
    assert chosen.rows(0, 12).observations.shape == (12, 3)
    with pytest.raises(EluteError, match="no observation 'camera'"):
        open_demos(source.provenance.source, options=ReadOptions(keys=("camera",)))


def test_chosen_keys_are_remembered_by_the_written_dataset(minari_folder):
    options = ReadOptions(keys=("mode", "arm/quat"))
    chosen = load(folder_of(recorded(DICT)), options=options)
    save(chosen, minari_folder / "chosen-v0")
    assert_same_rows(chosen, load(minari_folder / "chosen-v0"))


def test_named_parts_keep_their_order_in_deeper_spaces(minari_folder):
    keys = ("arm/pos", "goal", "arm/vel")
    parts = tuple(column for key in keys for column in columns(key, 2))
    demos = replace(plain(observations=6), observation_columns=parts)
    save(demos, minari_folder / "deep-v0", format="minari")
    assert_same_rows(demos, load(minari_folder / "deep-v0"))
    theirs = minari.load_dataset("deep-v0")[1].observations["arm"]["vel"]
    assert_same_array(theirs[:-1], np.ascontiguousarray(demos.observations[4:, 4:]))


def test_discrete_actions_and_tuples_are_read():
    dataset = recorded(spaces.Tuple((BOX, spaces.Discrete(2))), spaces.Discrete(4))
    demos = load(folder_of(dataset))
    assert [b.key for b in blocks(demos.observation_columns)] == ["_index_0", "_index_1"]
    assert demos.actions.shape == (12, 1)
    assert demos.action_columns[0].role == "discrete"


@pytest.mark.parametrize("space", [BOX, DICT], ids=["box", "dict"])
def test_a_plain_copy_differs_by_id_and_note_only(minari_folder, space):
    folder = folder_of(recorded(space))
    save(open_demos(folder), minari_folder / "copy-v1")
    data = minari_folder / "copy-v1" / "data"
    assert hdf5_tree(folder / "data" / "main_data.hdf5") == hdf5_tree(data / "main_data.hdf5")
    before = json.loads((folder / "data" / "metadata.json").read_text())
    after = json.loads((data / "metadata.json").read_text())
    assert after.pop("elute")
    assert after.pop("dataset_id") == "copy-v1"
    del before["dataset_id"], before["dataset_size"], after["dataset_size"]
    assert after == before


@pytest.mark.parametrize("space", [BOX, DICT], ids=["box", "dict"])
def test_minari_reads_a_rewritten_dataset(minari_folder, space):
    dataset = recorded(space)

    def change(at, rows):
        return corrupt(rows.with_pairs(rows.pairs + 1, "x"), "gaussian", 1, first_row=at)

    columns = "mode=discrete" if space is DICT else ""
    source = open_demos(folder_of(dataset), columns=columns)
    save(source, minari_folder / "changed-v0", transform=change)
    changed = minari.load_dataset("changed-v0")
    expected = change(0, load(folder_of(dataset), columns=columns))
    read = list(changed.iterate_episodes())
    assert changed.total_steps == 12
    assert_same_array(np.concatenate([e.actions for e in read]), expected.actions)
    clean = np.concatenate([e.infos["clean_actions"][:-1] for e in read])
    assert_same_array(clean, expected.extras["clean_actions"])
    for old, new in zip(dataset.iterate_episodes(), read, strict=True):
        one, other = (
            e.observations if space is BOX else e.observations["goal"] for e in (old, new)
        )
        assert_same_array(other[:-1], (one[:-1] + 1).astype(one.dtype))
        assert_same_array(other[-1], one[-1])  # has no action, so it stays as recorded
        assert_same_array(old.rewards, new.rewards)
        assert_same_array(old.infos["qpos"], new.infos["qpos"])
        assert_same_array(old.infos["text"].astype("S"), new.infos["text"].astype("S"))
        if space is DICT:
            assert_same_array(old.observations["camera"], new.observations["camera"])
            assert old.observations["words"] == new.observations["words"]


def test_a_subset_keeps_what_is_known_of_its_episodes(minari_folder):
    dataset = recorded(BOX)
    save(open_demos(f"{folder_of(dataset)}#episodes=2,1"), minari_folder / "part-v0")
    part = minari.load_dataset("part-v0")
    assert (part.total_episodes, part.total_steps) == (2, 8)
    known = list(part.storage.get_episode_metadata([0, 1]))
    assert [k["id"] for k in known] == [0, 1]
    assert [k["seed"] for k in known] == [102, 101]
    assert [k["total_steps"] for k in known] == [5, 3]
    assert known[0]["options"] == {"start": {"x": 0.5}, "level": 2}
    assert known[0]["quality"] == "better"
    assert_same_array(part[0].observations, dataset[2].observations)
    assert_same_array(part[0].infos["qpos"], dataset[2].infos["qpos"])
    assert part.storage.metadata["algorithm_name"] == "by hand"


def test_a_cut_keeps_the_observation_after_its_last_action(minari_folder):
    dataset = recorded(BOX)
    save(load(folder_of(dataset))[1:3], minari_folder / "cut-v0")
    cut = minari.load_dataset("cut-v0")[0]
    assert_same_array(cut.observations, dataset[0].observations[1:4])
    assert_same_array(cut.infos["qpos"], dataset[0].infos["qpos"][1:4])
    assert cut.truncations.tolist() == [False, True]


@pytest.mark.parametrize("following", [True, False])
def test_minari_reads_what_comes_from_elsewhere(minari_folder, following):
    demos = rich(following=following)
    losses = save(demos, minari_folder / "new-v0", format="minari")
    assert any("repeated" in loss for loss in losses) != following
    dataset = minari.load_dataset("new-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (5, 20)
    keys = {"robot0_eef_quat": slice(0, 4), "object": slice(4, 7), "force": slice(7, 9)}
    for ours, theirs in zip(demos.iter_episodes(), dataset.iterate_episodes(), strict=True):
        last = ours.next_observations if following else ours.observations
        whole = np.concatenate([ours.observations, last[-1:]])
        for key, part in keys.items():
            assert_same_array(theirs.observations[key], np.ascontiguousarray(whole[:, part]))
        gripper = np.ascontiguousarray(ours.actions[:, 2:])
        assert_same_array(theirs.actions["gripper_mode"], gripper)
        assert_same_array(theirs.rewards, ours.rewards)
        assert theirs.terminations[-1] == ours.episodes.terminated[0]
        assert theirs.truncations[-1] == ours.episodes.truncated[0]
        assert_same_array(theirs.infos["states"][:-1], ours.extras["states"])
    assert dataset.observation_space["force"].shape == (2,)
    assert list(dataset.storage.get_episode_metadata([3]))[0]["seed"] == 10  # noqa: RUF015
    read = load(minari_folder / "new-v0")
    assert read.episodes.final_repeated.all() != following


def test_minari_reads_a_converted_vild_file(tmp_path, minari_folder):
    demos = load(vild_file(tmp_path / "a.h5"))
    save(demos, minari_folder / "from-vild-v0", format="minari")
    dataset = minari.load_dataset("from-vild-v0")
    assert dataset.observation_space == spaces.Box(-np.inf, np.inf, (6,), np.float64)
    assert_same_array(np.concatenate([e.actions for e in dataset]), demos.actions)
    assert len(list(dataset.sample_episodes(2))) == 2


@pytest.mark.parametrize("space", [BOX, DICT], ids=["box", "dict"])
def test_spaces_and_metadata_survive_another_format(tmp_path, minari_folder, space):
    dataset = recorded(space)
    save(open_demos(folder_of(dataset)), tmp_path / "a.npz")
    save(open_demos(tmp_path / "a.npz"), minari_folder / "back-v0", format="minari")
    back = minari.load_dataset("back-v0")
    assert back.action_space == dataset.action_space
    assert back.storage.metadata["author"] == {"ann"}
    if space is BOX:
        assert back.observation_space == dataset.observation_space
    known = list(back.storage.get_episode_metadata([1]))[0]  # noqa: RUF015
    assert known["options"] == {"start": {"x": 0.5}, "level": 1}
    assert len(list(back.iterate_episodes())) == 3
    assert_same_rows(load(folder_of(dataset)), load(minari_folder / "back-v0"))


def test_a_dataset_with_an_environment_keeps_it(minari_folder):
    env = gymnasium.make("CartPole-v1")
    dataset = recorded(env.observation_space, env.action_space, env=env)
    save(open_demos(folder_of(dataset)), minari_folder / "cart-v1")
    assert minari.load_dataset("cart-v1").env_spec.id == "CartPole-v1"


@pytest.mark.parametrize(
    ("folder", "named"), [("pick-v3", "pick-v3"), ("pick", "pick-v0"), ("a b.c", "a_b_c-v0")]
)
def test_the_id_is_one_that_minari_accepts(minari_folder, folder, named):
    save(plain(), minari_folder / folder, format="minari")
    metadata = json.loads((minari_folder / folder / "data" / "metadata.json").read_text())
    assert metadata["dataset_id"] == named


def test_a_folder_that_is_no_dataset_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(EluteError, match="left alone"):
        save(plain(), tmp_path / "mine", format="minari")
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"


def test_a_file_never_takes_the_place_of_a_dataset_nor_the_other_way_round(tmp_path):
    save(plain(), tmp_path / "a-v0", format="minari")
    with pytest.raises(EluteError, match="is a folder"):
        save(plain(), tmp_path / "a-v0", format="npz")
    assert len(load(tmp_path / "a-v0")) == 7
    save(plain(), tmp_path / "b", format="npz")
    with pytest.raises(EluteError, match="is a file"):
        save(plain(), tmp_path / "b", format="minari")
    assert len(load(tmp_path / "b")) == 7
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a-v0", "b", "minari"]


def test_files_beside_the_main_file_come_along(minari_folder):
    folder = folder_of(recorded(BOX))
    (folder / "data" / "notes.txt").write_text("mine")
    save(open_demos(folder), minari_folder / "copy-v0")
    assert (minari_folder / "copy-v0" / "data" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("data_format", ["arrow", "parquet"])
def test_another_storage_is_refused_by_name(minari_folder, data_format):
    save(plain(), minari_folder / "a-v0", format="minari")
    path = minari_folder / "a-v0" / "data" / "metadata.json"
    metadata = json.loads(path.read_text()) | {"data_format": data_format}
    path.write_text(json.dumps(metadata))
    with pytest.raises(EluteError, match=rf"a-v0: data_format is '{data_format}'"):
        open_demos(minari_folder / "a-v0")


def test_an_episode_without_steps_is_refused(minari_folder):
    save(plain(), minari_folder / "a-v0", format="minari")
    with h5py.File(minari_folder / "a-v0" / "data" / "main_data.hdf5", "r+") as file:
        for name in ("actions", "rewards", "terminations", "truncations"):
            file[f"episode_1/{name}"].resize(0, axis=0)
        file["episode_1/observations"].resize(1, axis=0)
    with pytest.raises(EluteError, match="a-v0"):
        open_demos(minari_folder / "a-v0")


def test_a_tuple_of_unlike_spaces_survives_another_format(tmp_path):
    space = gymnasium.spaces.Tuple(
        (gymnasium.spaces.Discrete(4), gymnasium.spaces.Box(-1, 1, (3,), np.float32))
    )
    rng = np.random.default_rng(0)
    buffer = EpisodeBuffer(
        observations=(np.arange(6) % 4, rng.random((6, 3)).astype("float32")),
        actions=np.arange(5) % 3,
        rewards=np.ones(5),
        terminations=np.arange(5) == 4,
        truncations=np.zeros(5, dtype=bool),
        infos={},
    )
    before = minari.create_dataset_from_buffers(
        "unlike-v0", buffer=[buffer], observation_space=space,
        action_space=gymnasium.spaces.Discrete(3),
    )  # fmt: skip
    save(open_demos(folder_of(before)), tmp_path / "x.npz", strict=True)
    save(open_demos(tmp_path / "x.npz"), tmp_path / "again-v0", format="minari", strict=True)
    after = minari.MinariDataset(tmp_path / "again-v0" / "data")
    assert after.observation_space == space
    assert after.action_space == before.action_space
    for one, other in zip(before[0].observations, after[0].observations, strict=True):
        assert_same_array(other, one)
    assert_same_array(after[0].actions, before[0].actions)
