"""VILD files as the authors write them."""

import h5py
import numpy as np
import pytest

from builders import assert_same_array, hdf5_tree, vild_file
from elute.demos.corrupt import corrupt
from elute.demos.files import load, open_demos, save
from elute.demos.format import ReadOptions
from elute.errors import EluteError


def test_arrays_are_read_as_stored(tmp_path):
    path = vild_file(tmp_path / "a.h5")
    demos = load(path)
    with h5py.File(path) as file:
        assert_same_array(demos.observations, file["expert_states"][:])
        assert_same_array(demos.actions, file["expert_actions"][:])
        assert_same_array(demos.rewards, file["expert_rewards"][:])
    assert demos.next_observations is None
    assert demos.provenance.metadata["vild"]["source_path"] == "/home/someone/expert.h5"


def test_ends_are_inferred_from_the_horizon(tmp_path):
    path = vild_file(tmp_path / "a.h5", (4, 3, 4))
    demos = load(path, options=ReadOptions(horizon=4))
    assert demos.episodes.lengths.tolist() == [4, 3, 4]
    assert demos.episodes.truncated.tolist() == [True, False, True]
    assert demos.episodes.terminated.tolist() == [False, True, False]
    assert demos.episodes.inferred.all()
    assert not load(path).episodes.truncated.any()  # the published tasks last 1000 steps


def test_rows_after_the_last_mark_are_an_unfinished_episode(tmp_path):
    demos = load(vild_file(tmp_path / "a.h5", (4, 3), last_mask=1))
    assert demos.episodes.lengths.tolist() == [4, 3]
    assert demos.episodes.terminated.tolist() == [True, False]
    assert demos.episodes.truncated.tolist() == [False, False]


def test_a_file_without_rewards_has_none(tmp_path):
    path = vild_file(tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        del file["expert_rewards"]
    assert load(path).rewards is None
    save(open_demos(path), tmp_path / "b.h5")
    assert load(tmp_path / "b.h5").rewards is None


def test_other_root_arrays_are_extras_or_carried(tmp_path):
    path = vild_file(
        tmp_path / "a.h5", operator=np.arange(12), image=np.zeros((12, 2, 2, 3)), scale=np.ones(3)
    )
    source = open_demos(path)
    assert set(source.rows(0, 1).extras) == {"operator"}
    assert set(source.origin.carried) == {"image", "scale"}


@pytest.mark.parametrize("cut", [slice(None), slice(2, 9)])
def test_a_rewrite_changes_only_what_changed(tmp_path, cut):
    path = vild_file(
        tmp_path / "a.h5", operator=np.arange(12), image=np.ones((12, 2, 2, 3)), scale=np.ones(13)
    )
    save(corrupt(load(path)[cut], "gaussian", 1.0), tmp_path / "b.h5")
    with h5py.File(path) as before, h5py.File(tmp_path / "b.h5") as after:
        assert set(after) - set(before) == {"clean_actions", "elute"}
        for name in ("expert_states", "expert_rewards", "operator", "image"):
            assert_same_array(before[name][cut], after[name][:], name)
        assert_same_array(before["scale"][:], after["scale"][:])  # not one row per step
        assert_same_array(before["expert_actions"][cut], after["clean_actions"][:])
        assert before["expert_source_path"][()] == after["expert_source_path"][()]
        masks = before["expert_masks"][cut]
        masks[-1] = 0
        assert_same_array(masks, after["expert_masks"][:])


def test_a_plain_copy_differs_by_the_note_only(tmp_path):
    path = vild_file(tmp_path / "a.h5", operator=np.arange(12))
    save(open_demos(path), tmp_path / "b.h5")
    after = hdf5_tree(tmp_path / "b.h5")
    del after["elute"]
    assert after == hdf5_tree(path)


def test_what_only_the_file_holds_is_reported_when_left_behind(tmp_path):
    path = vild_file(tmp_path / "a.h5", image=np.ones((12, 2, 2, 3)), scale=np.ones(5))
    losses = save(open_demos(path), tmp_path / "b.npz")
    assert {loss.split(":")[0] for loss in losses} == {"image", "scale"}


def test_a_changed_input_is_not_copied_and_that_is_said(tmp_path):
    path = vild_file(tmp_path / "a.h5", image=np.ones((12, 2, 2, 3)))
    demos = load(path)
    vild_file(path, (4, 9))
    losses = save(demos, tmp_path / "b.h5")
    assert any("has changed since it was read" in loss for loss in losses)
    assert_same_array(load(tmp_path / "b.h5").observations, demos.observations)


def test_masks_of_another_length_are_refused(tmp_path):
    path = vild_file(tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        del file["expert_masks"]
        file["expert_masks"] = np.ones(5)
    with pytest.raises(EluteError, match=r"a\.h5: expert_masks has shape \(5,\); expected 12"):
        open_demos(path)
