"""robomimic files as robomimic ships them."""

import json
from dataclasses import replace

import h5py
import numpy as np
import pytest

from builders import (
    ROBOMIMIC_ENV,
    assert_same_array,
    assert_same_rows,
    hdf5_tree,
    plain,
    rich,
    robomimic_file,
)
from elute.columns import blocks
from elute.demos.corrupt import corrupt
from elute.demos.files import load, open_demos, save
from elute.demos.format import ReadOptions
from elute.errors import EluteError

USUAL = ["object", "robot0_eef_pos", "robot0_eef_quat"]


def spoil(at, rows):
    return corrupt(rows, "gaussian", 0.1, first_row=at)


def test_the_usual_keys_are_put_together(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5")
    demos = load(path)
    assert [b.key for b in blocks(demos.observation_columns)] == USUAL
    roles = [c.role for c in demos.observation_columns]
    assert roles == ["continuous"] * 8 + ["quaternion"] * 4
    with h5py.File(path) as file:
        for folder, array in (("obs", demos.observations), ("next_obs", demos.next_observations)):
            stored = [np.concatenate([file[f"data/demo_{i}/{folder}/{key}"] for key in USUAL], 1)
                      for i in range(3)]  # fmt: skip
            assert_same_array(array, np.concatenate(stored))
        states = [file[f"data/demo_{i}/states"] for i in range(3)]
        assert_same_array(demos.extras["states"], np.concatenate(states))


def test_keys_can_be_chosen_and_the_others_stay_beside(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5")
    options = ReadOptions(keys=("robot0_joint_vel", "object"))
    source = open_demos(path, options=options)
    keys = [block.key for block in blocks(source.observation_columns)]
    assert keys == ["robot0_joint_vel", "object"]
    rows = source.rows(0, 2)
    assert rows.observations.shape == (2, 7)
    beside = {"obs/robot0_eef_pos", "next_obs/robot0_eef_pos", "states", "dones"}
    assert beside <= set(rows.extras)
    assert set(source.origin.carried) == {"obs/agentview_image", "next_obs/agentview_image"}


def test_chosen_keys_are_remembered_by_the_written_file(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5")
    chosen = load(path, options=ReadOptions(keys=("robot0_joint_vel", "object")))
    save(chosen, tmp_path / "b.hdf5")
    assert_same_rows(chosen, load(tmp_path / "b.hdf5"))


def test_another_choice_of_a_written_file_has_its_own_names(tmp_path):
    save(load(robomimic_file(tmp_path / "a.hdf5")), tmp_path / "b.hdf5")
    keys = ("object", "robot0_joint_vel", "robot0_eef_pos", "robot0_joint_vel")  # 12 wide as usual
    demos = load(tmp_path / "b.hdf5", options=ReadOptions(keys=keys))
    assert [b.key for b in blocks(demos.observation_columns)] == list(keys)


@pytest.mark.parametrize("key", ["agentview_image", "nothing"])
def test_a_key_that_is_no_low_dimensional_observation_is_refused(tmp_path, key):
    path = robomimic_file(tmp_path / "a.hdf5")
    with pytest.raises(EluteError, match=f"no low-dimensional observation '{key}'") as caught:
        open_demos(path, options=ReadOptions(keys=(key,)))
    assert "robot0_joint_vel" in caught.value.hint


def test_demonstrations_are_sorted_by_number(tmp_path):
    names = ["demo_10", "demo_2", "demo_1"]
    demos = load(robomimic_file(tmp_path / "a.hdf5", (4, 3, 5), names=names))
    assert [a["name"] for a in demos.episodes.attributes] == ["demo_1", "demo_2", "demo_10"]
    assert demos.episodes.lengths.tolist() == [5, 3, 4]


def test_filter_keys_select(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5")
    assert load(f"{path}#better").episodes.lengths.tolist() == [4, 5]
    assert load(f"{path}#worse").episodes.lengths.tolist() == [3]
    with pytest.raises(EluteError, match="no selection 'okay'") as caught:
        load(f"{path}#okay")
    assert "better, worse" in caught.value.hint


def test_the_last_done_says_how_it_ended_and_is_marked_as_inferred(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5")
    with h5py.File(path, "r+") as file:
        file["data/demo_1/dones"][:] = 0
    episodes = load(path).episodes
    assert episodes.terminated.tolist() == [True, False, True]
    assert episodes.truncated.tolist() == [False, True, False]
    assert episodes.inferred.all()


def test_a_plain_copy_differs_by_the_note_only(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5")
    save(open_demos(path), tmp_path / "b.hdf5")
    after = hdf5_tree(tmp_path / "b.hdf5")
    del after["elute"]
    assert after == hdf5_tree(path)


def test_a_rewrite_keeps_everything_but_the_actions(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5")
    save(open_demos(path), tmp_path / "b.hdf5", transform=spoil)
    before, after = hdf5_tree(path), hdf5_tree(tmp_path / "b.hdf5")
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {f"data/demo_{i}/actions" for i in range(3)}
    for name in changed:
        assert before[name][1:] == after[name][1:]
    added = {f"data/demo_{i}/clean_actions" for i in range(3)}
    assert set(after) - set(before) == added | {"elute"}


def test_changed_observations_are_followed_by_the_next(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5")
    save(
        open_demos(path), tmp_path / "b.hdf5", transform=lambda _, r: r.with_pairs(r.pairs + 1, "x")
    )
    with h5py.File(path) as before, h5py.File(tmp_path / "b.hdf5") as after:
        for demo in before["data"]:
            for key in USUAL:
                obs, old = after[f"data/{demo}/obs/{key}"][:], before[f"data/{demo}/obs/{key}"][:]
                following = after[f"data/{demo}/next_obs/{key}"][:]
                assert_same_array(obs, old + 1)
                assert_same_array(following[:-1], obs[1:])
                assert_same_array(following[-1], before[f"data/{demo}/next_obs/{key}"][-1])


def test_a_subset_keeps_names_and_filters_masks(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5", (4, 3, 5), names=["demo_1", "demo_2", "demo_10"])
    save(open_demos(f"{path}#better"), tmp_path / "b.hdf5")
    before, after = hdf5_tree(path), hdf5_tree(tmp_path / "b.hdf5")
    for name in (n for n in before if n.startswith(("data/demo_1/", "data/demo_10/"))):
        assert before[name] == after[name], name
    with h5py.File(tmp_path / "b.hdf5") as file:
        assert set(file["data"]) == {"demo_1", "demo_10"}
        assert file["data"].attrs["total"] == 9
        assert json.loads(file["data"].attrs["env_args"]) == ROBOMIMIC_ENV
        assert file["mask/better"][:].tolist() == [b"demo_1", b"demo_10"]
        assert file["mask/worse"].shape == (0,)
    assert load(f"{tmp_path / 'b.hdf5'}#better").episodes.lengths.tolist() == [4, 5]


def test_a_cut_keeps_images_states_model_and_storage(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5")
    save(load(path)[2:6], tmp_path / "b.hdf5")
    with h5py.File(path) as before, h5py.File(tmp_path / "b.hdf5") as after:
        assert after["data"].attrs["total"] == 4
        for demo, rows in (("demo_0", slice(2, 4)), ("demo_1", slice(0, 2))):
            old, new = before[f"data/{demo}"], after[f"data/{demo}"]
            assert new.attrs["num_samples"] == 2
            assert new.attrs["model_file"] == old.attrs["model_file"]
            for name in ("obs/agentview_image", "states", "dones", "actions", "next_obs/object"):
                assert_same_array(old[name][rows], new[name][:], name)
            assert new["obs/agentview_image"].compression == "gzip"
            assert new["actions"].chunks == (2, 3)


def test_parts_of_one_demonstration_get_names_of_their_own(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5")
    sample = load(path).sample(7, np.random.default_rng(0))
    save(sample, tmp_path / "b.hdf5")
    read = load(tmp_path / "b.hdf5")
    assert_same_rows(sample, read)
    filters = [a["filters"] for a in read.episodes.attributes]
    assert filters == [a["filters"] for a in sample.episodes.attributes]


def test_a_file_with_many_attributes_is_cut(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5")
    with h5py.File(path, "r+") as file:
        for i in range(20):
            file["data/demo_1"].attrs[f"key {i}"] = i
            file["data"].attrs[f"key {i}"] = "x" * 1000 * i
    save(load(path)[5:7], tmp_path / "b.hdf5")
    with h5py.File(tmp_path / "b.hdf5") as file:
        assert file["data/demo_1"].attrs["key 19"] == 19
        assert len(file["data"].attrs["key 19"]) == 19_000


def test_an_array_of_some_other_length_is_carried(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5", (4, 3, 5))
    with h5py.File(path, "r+") as file:
        for demo in ("demo_0", "demo_1", "demo_2"):
            file[f"data/{demo}/gains"] = np.ones(4)  # as long as the first demonstration by chance
        file["data/demo_2/late"] = np.ones(5)
    source = open_demos(path)
    assert "gains" not in source.rows(0, 12).extras
    assert {"gains", "late"} <= set(source.origin.carried)


def test_what_comes_from_elsewhere_looks_like_robomimic(tmp_path):
    demos = rich()
    save(demos, tmp_path / "a.hdf5", format="robomimic")
    with h5py.File(tmp_path / "a.hdf5") as file:
        assert file["data"].attrs["total"] == len(demos)
        assert json.loads(file["data"].attrs["env_args"])["env_name"] == "lift"
        group = file["data/demo_2"]
        assert group.attrs["num_samples"] == 7
        assert group.attrs["operator"] == "zoë 2"
        assert set(group["obs"]) == {"robot0_eef_quat", "object", "force"}
        assert set(group["next_obs"]) == set(group["obs"])
        assert group["dones"][:].tolist() == [0] * 6 + [1]


def test_nameless_observations_are_one_flat_array(tmp_path):
    save(plain(), tmp_path / "a.hdf5", format="robomimic")
    with h5py.File(tmp_path / "a.hdf5") as file:
        assert list(file["data/demo_0/obs"]) == ["flat"]
    assert load(tmp_path / "a.hdf5").observation_columns == plain().observation_columns


def test_filters_and_names_survive_other_formats(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5", names=["demo_1", "demo_2", "demo_10"])
    save(open_demos(path), tmp_path / "b.npz")
    save(open_demos(tmp_path / "b.npz"), tmp_path / "c-v0", format="minari")
    save(open_demos(tmp_path / "c-v0"), tmp_path / "d.hdf5", format="robomimic")
    with h5py.File(path) as before, h5py.File(tmp_path / "d.hdf5") as after:
        assert set(after["data"]) == set(before["data"])
        assert after["mask/better"][:].tolist() == [b"demo_1", b"demo_10"]
        assert after["data"].attrs["env_args"] == before["data"].attrs["env_args"]
        name = "data/demo_10"
        assert after[name].attrs["model_file"] == before[name].attrs["model_file"]
        assert_same_array(after[f"{name}/states"][:], before[f"{name}/states"][:])
    assert_same_rows(load(path), load(tmp_path / "d.hdf5"))


def test_raw_recordings_are_refused_with_advice(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5")
    with h5py.File(path, "r+") as file:
        for demo in file["data"]:
            del file[f"data/{demo}/obs"]
    with pytest.raises(EluteError, match=r"no observations") as caught:
        open_demos(path)
    assert "dataset_states_to_obs" in caught.value.hint


def test_types_of_arrays_survive_another_format(tmp_path):
    path = tmp_path / "a.hdf5"
    with h5py.File(path, "w") as file:
        demo = file.create_group("data/demo_0")
        demo["obs/position"] = np.linspace(0, 1, 12, dtype="float32").reshape(6, 2)
        demo["obs/angle"] = np.linspace(0, 1, 6, dtype="float64")[:, None] / 3
        demo["actions"] = np.ones((6, 1))
        demo.attrs["gains"] = np.array([1.5, 2.5])
        file["data"].attrs["offsets"] = np.array([1, 2, 3])
    save(open_demos(path), tmp_path / "b.npz")
    save(open_demos(tmp_path / "b.npz"), tmp_path / "c.hdf5", format="robomimic")
    with h5py.File(path) as one, h5py.File(tmp_path / "c.hdf5") as other:
        for key in ("position", "angle"):
            name = f"data/demo_0/obs/{key}"
            assert_same_array(other[name][:], one[name][:])
        assert other["data/demo_0"].attrs["gains"].tolist() == [1.5, 2.5]
        assert other["data"].attrs["offsets"].tolist() == [1, 2, 3]


def test_what_else_stands_in_the_file_is_said_when_it_is_lost(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5")
    with h5py.File(path, "r+") as file:
        file["notes"] = "mine"
        file.attrs["lab"] = "mine"
    said = " ".join(save(open_demos(path), tmp_path / "b.npz"))
    assert "notes" in said
    assert "attributes of the file" in said
    save(open_demos(path), tmp_path / "copy.hdf5")
    with h5py.File(tmp_path / "copy.hdf5") as file:
        assert file["notes"][()] == b"mine"
        assert file.attrs["lab"] == "mine"


def test_new_filter_keys_reach_the_copy(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5", names=["demo_1", "demo_2", "demo_10"])
    demos = load(path)
    episodes = demos.episodes.with_filter("purified", range(3)).with_filter("better", [0, 1])
    save(replace(demos, episodes=episodes), tmp_path / "b.hdf5")
    with h5py.File(tmp_path / "b.hdf5") as file:
        assert file["mask/purified"][:].tolist() == [b"demo_1", b"demo_2", b"demo_10"]
        assert sorted(file["mask/better"][:].tolist()) == [b"demo_1", b"demo_10", b"demo_2"]
        assert file["mask/worse"][:].tolist() == [b"demo_2"]
    assert len(load(f"{tmp_path / 'b.hdf5'}#better").episodes) == 3


def test_a_purified_file_says_so_to_other_readers(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5")
    save(
        open_demos(path),
        tmp_path / "b.hdf5",
        transform=lambda _, r: r.with_pairs(r.pairs, "purify", target="inpaint", seed=3),
    )
    with h5py.File(tmp_path / "b.hdf5") as file:
        said = json.loads(file["data"].attrs["purification"])
    assert said == {
        "operation": "purify", "target": "inpaint", "seed": 3, "states": "as recorded"
    }  # fmt: skip
