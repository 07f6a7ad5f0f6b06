"""D4RL files as they are published, old and new."""

from dataclasses import replace

import h5py
import numpy as np
import pytest

from builders import assert_same_array, assert_same_rows, d4rl_file, hdf5_tree
from elute.demos.corrupt import corrupt
from elute.demos.files import load, open_demos, save
from elute.errors import EluteError


def test_columns_of_one_are_read_flat(tmp_path):
    path = d4rl_file(tmp_path / "a.hdf5")
    demos = load(path)
    with h5py.File(path) as file:
        assert_same_array(demos.rewards, file["rewards"][:, 0])
        assert_same_array(demos.next_observations, file["next_observations"][:])
        assert_same_array(demos.extras["infos/qpos"], file["infos/qpos"][:])
    assert set(demos.extras) == {"infos/qpos", "infos/action_log_probs"}
    assert set(demos.origin.carried) == {"infos/frame", "metadata", "attributes of the file"}
    assert demos.provenance.metadata["d4rl"] == {"algorithm": "SAC"}


def test_flags_end_episodes_and_the_tail_is_kept(tmp_path):
    episodes = load(d4rl_file(tmp_path / "a.hdf5")).episodes
    assert episodes.lengths.tolist() == [4, 3, 5]
    assert episodes.terminated.tolist() == [True, False, False]
    assert episodes.truncated.tolist() == [False, True, False]
    assert not episodes.inferred.any()


def test_without_timeouts_ends_are_found_in_the_next_observations(tmp_path):
    episodes = load(d4rl_file(tmp_path / "a.hdf5", timeouts=False)).episodes
    assert episodes.lengths.tolist() == [4, 3, 5]
    assert episodes.terminated.tolist() == [True, False, False]
    assert episodes.truncated.tolist() == [True, True, False]
    assert episodes.inferred.all()


def test_a_plain_copy_differs_by_the_note_only(tmp_path):
    path = d4rl_file(tmp_path / "a.hdf5")
    save(open_demos(path), tmp_path / "b.hdf5")
    after = hdf5_tree(tmp_path / "b.hdf5")
    del after["elute"]
    assert after == hdf5_tree(path)


def test_a_rewrite_keeps_everything_but_the_actions(tmp_path):
    path = d4rl_file(tmp_path / "a.hdf5")
    out = tmp_path / "b.hdf5"
    save(open_demos(path), out, transform=lambda at, r: corrupt(r, "gaussian", 1, first_row=at))
    before, after = hdf5_tree(path), hdf5_tree(out)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"actions"}
    assert before["actions"][1:] == after["actions"][1:]
    assert set(after) - set(before) == {"elute", "clean_actions"}


def test_a_cut_keeps_infos_metadata_and_compression(tmp_path):
    path = d4rl_file(tmp_path / "a.hdf5")
    save(load(path)[2:6], tmp_path / "b.hdf5")
    with h5py.File(path) as before, h5py.File(tmp_path / "b.hdf5") as after:
        for name in ("infos/qpos", "infos/frame", "infos/action_log_probs", "rewards"):
            assert_same_array(before[name][2:6], after[name][:], name)
            assert after[name].compression == "gzip"
        weights = "metadata/policy/fc0/weight"
        assert_same_array(before[weights][:], after[weights][:])
        assert after["metadata/algorithm"][()] == b"SAC"
        assert after.attrs["made_by"] == "a script"
        assert after["terminals"].shape == (4, 1)
        assert after["timeouts"][:, 0].tolist() == [False, False, False, True]


def test_a_sample_of_an_old_file_keeps_its_boundaries(tmp_path):
    path = d4rl_file(tmp_path / "a.hdf5", timeouts=False)
    with h5py.File(path, "r+") as file:
        del file["next_observations"]
    sample = load(path).sample(6, np.random.default_rng(0))
    save(sample, tmp_path / "b.hdf5")
    assert_same_rows(sample, load(tmp_path / "b.hdf5"))


def test_an_old_file_stays_without_timeouts(tmp_path):
    path = d4rl_file(tmp_path / "a.hdf5", timeouts=False)
    save(open_demos(path), tmp_path / "b.hdf5")
    with h5py.File(tmp_path / "b.hdf5") as file:
        assert "timeouts" not in file


def test_the_note_remembers_that_rewards_are_fillers(tmp_path):
    demos = replace(load(d4rl_file(tmp_path / "a.hdf5")), rewards=None, origin=None)
    losses = save(demos, tmp_path / "b.hdf5", format="d4rl")
    assert any("rewards are unknown" in loss for loss in losses)
    with h5py.File(tmp_path / "b.hdf5") as file:
        assert not file["rewards"][:].any()
    assert load(tmp_path / "b.hdf5").rewards is None


def test_noise_on_whole_numbers_is_refused_not_rounded(tmp_path):
    path = d4rl_file(tmp_path / "a.hdf5")
    with h5py.File(path, "r+") as file:
        del file["actions"]
        file["actions"] = np.arange(24).reshape(12, 2)
    demos = load(path, columns="action=continuous")
    assert {c.role for c in load(path).action_columns} == {"discrete"}
    with pytest.raises(EluteError, match="stored as int64"):
        save(corrupt(demos, "gaussian", 0.1), tmp_path / "b.hdf5")
    assert not (tmp_path / "b.hdf5").exists()


@pytest.mark.parametrize("name", ["terminals", "timeouts"])
def test_flags_of_another_length_are_refused(tmp_path, name):
    path = d4rl_file(tmp_path / "a.hdf5")
    with h5py.File(path, "r+") as file:
        del file[name]
        file[name] = np.ones(5)
    with pytest.raises(EluteError, match=rf"a\.hdf5: {name} has shape \(5,\); expected 12 rows"):
        open_demos(path)
