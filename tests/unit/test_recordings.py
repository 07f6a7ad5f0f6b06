"""Raw recordings of robosuite and of RoboTurk: states and models are the only ground truth."""

import h5py
import numpy as np
import pytest

from builders import (
    assert_same_array,
    assert_same_rows,
    fingerprint,
    hdf5_tree,
    plain,
    robomimic_file,
    robosuite_file,
    roboturk_folder,
)
from elute.columns import blocks
from elute.demos.corrupt import corrupt
from elute.demos.files import load, open_demos, save
from elute.demos.formats import FORMATS
from elute.errors import EluteError

BOMB = (
    '<?xml version="1.0"?><!DOCTYPE m [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "'
    + "&a;" * 9 + '"><!ENTITY c "' + "&b;" * 9 + '">]><mujoco>&c;</mujoco>'
)  # fmt: skip


def spoil(at, rows):
    return corrupt(rows, "gaussian", 0.1, first_row=at)


def move(at, rows):
    return rows.with_pairs(rows.pairs + 1, "purify", target="joint")


@pytest.fixture(params=["robosuite", "roboturk"])
def path(request, tmp_path):
    """A recording of each kind."""
    make = {"robosuite": robosuite_file, "roboturk": roboturk_folder}[request.param]
    return make(tmp_path / ("in.hdf5" if request.param == "robosuite" else "in"))


def main(path):
    return path / "demo.hdf5" if path.is_dir() else path


def out_of(path):
    return path.with_name("out" + path.suffix)


def test_states_stand_in_for_observations(path):
    demos = load(path)
    assert [block.key for block in blocks(demos.observation_columns)] == ["states"]
    with h5py.File(main(path)) as file:
        states = np.concatenate([file[f"data/demo_{i}/states"][:] for i in (1, 2, 10)])
    assert_same_array(demos.observations, states)
    assert [a["name"] for a in demos.episodes.attributes] == ["demo_1", "demo_2", "demo_10"]
    assert demos.episodes.terminated.all()
    assert demos.episodes.inferred.all()
    assert demos.rewards is None


def test_models_are_text_as_they_stand_there(path):
    models = [a["model_file"] for a in load(path).episodes.attributes]
    assert models == [f'<mujoco model="{i}">zoë\r\n</mujoco>' for i in (1, 2, 10)]


def test_the_arm_and_the_gripper_stay_apart(tmp_path):
    path = roboturk_folder(tmp_path / "in")
    demos = load(path)
    found = [(block.key, block.size, block.roles[0]) for block in blocks(demos.action_columns)]
    assert found == [("joint_velocities", 7, "continuous"), ("gripper_actuations", 1, "discrete")]
    save(open_demos(path), tmp_path / "out", transform=spoil)
    with h5py.File(path / "demo.hdf5") as old, h5py.File(tmp_path / "out" / "demo.hdf5") as new:
        for demo in old["data"]:
            before, after = old[f"data/{demo}"], new[f"data/{demo}"]
            assert after["joint_velocities"].shape == before["joint_velocities"].shape
            assert not np.array_equal(after["joint_velocities"], before["joint_velocities"])
    assert_same_rows(spoil(0, demos), load(tmp_path / "out"))


def test_the_file_inside_a_folder_names_it_too(tmp_path):
    path = roboturk_folder(tmp_path / "in")
    assert_same_rows(load(path), load(path / "demo.hdf5"))


def test_a_plain_copy_differs_by_the_note_only(path):
    save(open_demos(path), out_of(path))
    after = hdf5_tree(main(out_of(path)))
    del after["elute"]
    assert after == hdf5_tree(main(path))
    beside = {n: h for n, h in fingerprint(path).items() if n not in ("demo.hdf5", ".")}
    assert beside.items() <= fingerprint(out_of(path)).items()


def test_purified_actions_leave_everything_else(path):
    save(open_demos(path), out_of(path), transform=spoil)
    before, after = hdf5_tree(main(path)), hdf5_tree(main(out_of(path)))
    changed = {name.split("/")[-1] for name in before if before[name] != after[name]}
    assert changed <= {"actions", "joint_velocities", "gripper_actuations"}


def test_purified_observations_leave_the_states(path):
    save(open_demos(path), out_of(path), transform=move)
    old, new = load(path), load(out_of(path))
    assert_same_array(new.extras["states"], old.observations)
    assert_same_array(new.observations, old.observations + 1)
    assert new.observation_columns == old.observation_columns
    with h5py.File(main(out_of(path))) as file:
        said = file["data"].attrs["purification"]
    assert '"states": "as recorded"' in said


def test_derived_actions_are_said_to_be_stale(tmp_path):
    path = roboturk_folder(tmp_path / "in")
    losses = save(open_demos(path), tmp_path / "out", transform=spoil)
    assert losses == ["right_dpos: still that of the recorded actions"]


def test_a_selection_takes_its_models_along(tmp_path):
    path = roboturk_folder(tmp_path / "in")
    save(open_demos(f"{path}#episodes=1"), tmp_path / "out")
    assert [p.name for p in (tmp_path / "out" / "models").iterdir()] == ["model_2.xml"]
    assert_same_rows(load(path).select([1]), load(tmp_path / "out"))


@pytest.mark.parametrize("through", [n for n in FORMATS if n not in ("robosuite", "roboturk")])
def test_states_and_models_survive_another_format(path, through, tmp_path):
    suffix = {"npz": ".npz", "minari": "-v0", "imitation": ""}.get(through, ".h5")
    save(open_demos(path), tmp_path / f"mid{suffix}", format=through)
    kind = open_demos(path).provenance.format
    save(open_demos(tmp_path / f"mid{suffix}"), out_of(path), format=kind)
    skip = ("elute", "", "data")  # the root lists names in the order they were made
    before, after = hdf5_tree(main(path)), hdf5_tree(main(out_of(path)))
    assert {n: i for n, i in before.items() if n not in skip}.keys() == after.keys() - set(skip)
    for name, item in before.items():
        if name not in skip and item[0] == "group":
            assert item[1].items() <= after[name][1].items(), name
        elif name not in skip:
            assert item[:3] == after[name][:3], name
    assert before["data"][1].items() <= after["data"][1].items()
    models = [[a["model_file"] for a in load(p).episodes.attributes] for p in (path, out_of(path))]
    assert models[0] == models[1]


def test_one_kind_becomes_the_other_and_back(tmp_path):
    path = roboturk_folder(tmp_path / "in")
    assert save(open_demos(path), tmp_path / "mid.hdf5", format="robosuite") == []
    with h5py.File(tmp_path / "mid.hdf5") as file:
        assert file["data/demo_1"].attrs["model_file"].startswith("<mujoco")
        assert file["data/demo_1/actions"].shape == (4, 8)
    assert save(open_demos(tmp_path / "mid.hdf5"), tmp_path / "out", format="roboturk") == []
    assert_same_rows(load(path), load(tmp_path / "out"))
    for name in ("model_1.xml", "model_2.xml", "model_10.xml"):
        old, new = ((tmp_path / f / "models" / name).read_bytes() for f in ("in", "out"))
        assert old == new


def test_what_no_simulator_can_play_is_said(tmp_path):
    losses = save(plain(), tmp_path / "a.hdf5", format="robosuite")
    assert [loss.split(" are")[0].split(" is")[0] for loss in losses] == [
        "simulator states",
        "the simulator's model",
    ]
    with pytest.raises(EluteError, match="cannot hold everything"):
        save(plain(), tmp_path / "b.hdf5", format="robosuite", strict=True)


def test_a_robomimic_file_keeps_its_states(tmp_path):
    path = robomimic_file(tmp_path / "a.hdf5")
    losses = save(open_demos(path), tmp_path / "b.hdf5", format="robosuite")
    assert not [loss for loss in losses if "unknown" in loss]
    with h5py.File(path) as old, h5py.File(tmp_path / "b.hdf5") as new:
        for demo in old["data"]:
            assert_same_array(old[f"data/{demo}/states"][:], new[f"data/{demo}/states"][:])
            assert (
                new[f"data/{demo}"].attrs["model_file"] == old[f"data/{demo}"].attrs["model_file"]
            )


def refused(path, *says):
    with pytest.raises(EluteError) as caught:
        load(path)
    for part in (path.name, *says):
        assert part in str(caught.value)


def test_missing_states(path):
    with h5py.File(main(path), "r+") as file:
        del file["data/demo_2/states"]
    refused(path, "states is missing")


def test_states_of_another_length(path):
    with h5py.File(main(path), "r+") as file:
        del file["data/demo_2/states"]
        file["data/demo_2/states"] = np.ones((9, 5))
    refused(path, "demo_2/states", "expected 3 rows")


def test_a_missing_model(path):
    with h5py.File(main(path), "r+") as file:
        del file["data/demo_2"].attrs["model_file"]
    refused(path, "demo_2", "model")


NAMES = ["../secret.xml", "/etc/passwd", "..", ".", "", "a\\b.xml", "C:x.xml", "models/model_1.xml"]


@pytest.mark.parametrize("name", NAMES)
def test_a_model_outside_the_folder(tmp_path, name):
    path = roboturk_folder(tmp_path / "in")
    (tmp_path / "in" / "secret.xml").write_text("<mujoco/>")
    with h5py.File(path / "demo.hdf5", "r+") as file:
        file["data/demo_1"].attrs["model_file"] = name
    refused(path, "expected a name without folders")


@pytest.mark.parametrize("which", ["file", "folder"])
def test_a_link_out_of_the_folder(tmp_path, which):
    path = roboturk_folder(tmp_path / "in")
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "model_1.xml").write_text("secret")
    if which == "file":
        (path / "models" / "model_1.xml").unlink()
        (path / "models" / "model_1.xml").symlink_to(tmp_path / "far" / "model_1.xml")
    else:
        (path / "models").rename(tmp_path / "moved")
        (path / "models").symlink_to(tmp_path / "moved")
    refused(path, "leads out of the dataset")


def test_a_model_that_is_not_there(tmp_path):
    path = roboturk_folder(tmp_path / "in")
    (path / "models" / "model_2.xml").unlink()
    refused(path, "model_2.xml", "missing")


def test_an_xml_bomb_is_only_text(path):
    with h5py.File(main(path), "r+") as file:
        if path.is_dir():
            (path / "models" / "model_1.xml").write_text(BOMB)
        else:
            file["data/demo_1"].attrs["model_file"] = BOMB
    assert load(path).episodes.attributes[0]["model_file"] == BOMB


@pytest.mark.parametrize("content", [b"\xff\xfe<mujoco/>", b"x" * 100])
def test_a_model_that_is_no_text_or_too_much(tmp_path, content, monkeypatch):
    monkeypatch.setattr("elute.demos.roboturk.LARGEST_MODEL", 99)
    path = roboturk_folder(tmp_path / "in")
    (path / "models" / "model_1.xml").write_bytes(content)
    refused(path, "model_1.xml")


def test_an_output_folder_with_other_things_is_left_alone(tmp_path):
    path = roboturk_folder(tmp_path / "in")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "demo.hdf5").touch()
    with pytest.raises(EluteError, match="left alone"):
        save(open_demos(path), tmp_path / "mine")
