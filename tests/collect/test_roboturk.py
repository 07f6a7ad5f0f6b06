"""The ten human demonstrations: read, checked, put in order, and refused when they are spoilt."""

import os
import shutil

import h5py
import numpy as np
import pytest

from commands import elute
from elute.collect import catalogue
from elute.collect.replay import one_step_errors
from elute.collect.roboturk import (
    FILE,
    FOLDER,
    SETS,
    members,
    read_roboturk,
    roboturk_folder,
)
from elute.demos.files import load, open_demos
from elute.envs.task import find_task
from elute.errors import EluteError

ORDER = [12, 223, 904, 640, 397, 681, 795, 442, 291, 580]
LENGTHS = [500, 502, 502, 505, 506, 507, 507, 509, 511, 511]
RETURNS = [276, 120, 203, 102, 253, 312, 103, 81, 180, 318]
"""As the paper has them."""


@pytest.fixture(scope="module")
def folder(data_folder):
    return data_folder / "sawyer-reach"


@pytest.fixture(scope="module")
def ten(folder):
    return read_roboturk(folder)


@pytest.fixture
def spoilt(folder, tmp_path):
    """A copy of the ten in which one can be changed."""
    for number in ORDER:
        shutil.copy(folder / FILE.format(number), tmp_path)

    def change(number, name, values):
        with h5py.File(tmp_path / FILE.format(number), "r+") as file:
            old = file[name][:]
            del file[name]
            file[name] = values(old)
        return tmp_path

    return change


def test_lengths_and_returns_are_the_papers(ten):
    assert ten.episodes.lengths.tolist() == LENGTHS
    assert ten.returns().tolist() == RETURNS
    assert [about["paper"] for about in ten.episodes.attributes] == list(range(1, 11))
    assert [about["trajectory"] for about in ten.episodes.attributes] == ORDER


def test_groups_are_the_papers(ten):
    assert [e + 1 for e in members("optimal")] == [6, 10]
    assert [e + 1 for e in members("l1")] == [2, 4, 7, 8]
    assert [e + 1 for e in members("l2")] == [1, 3, 5, 9]
    assert members("supplementary") == sorted(members("l1") + members("l2"))
    returns = ten.returns()
    assert returns[members("optimal")].min() > 300
    assert returns[members("l1")].max() < 150
    for name, groups in SETS.items():
        inside = [bool({*groups} & {*keys}) for keys in ten.episodes.filters]
        assert np.flatnonzero(inside).tolist() == members(name)


def test_joints_are_whole_angles(ten):
    joints = ten.extras["joints"]
    np.testing.assert_allclose(np.sin(joints), ten.observations[:, :7], atol=1e-9)
    np.testing.assert_allclose(np.cos(joints), ten.observations[:, 7:14], atol=1e-9)
    starts = ten.episodes.starts
    assert [e + 1 for e in np.flatnonzero(joints[starts, 6] > np.pi)] == [9, 10]


def test_three_were_recorded_more_slowly(ten):
    periods = [about["period"] for about in ten.episodes.attributes]
    assert [number for number, p in zip(ORDER, periods, strict=True) if p == 0.012] == [
        904, 640, 681,
    ]  # fmt: skip
    assert set(periods) == {0.01, 0.012}


def test_quaternions_and_the_unused_fingers_are_marked(ten):
    roles = [column.role for column in ten.observation_columns]
    assert {i for i, role in enumerate(roles) if role == "quaternion"} == {
        *range(26, 30), *range(33, 37), *range(40, 44),
    }  # fmt: skip
    assert roles[21:23] == ["constant", "constant"]


def test_actions_and_states_are_aligned(ten):
    """One step of the simulator from a recorded state, with actions of neighbouring rows."""
    errors = one_step_errors(find_task("sawyer-reach"), [ten.select([0])], range(-1, 2))
    assert errors[0] < 0.02
    assert errors[0] < 0.5 * min(errors[-1], errors[1])


def test_a_missing_file_is_named(spoilt):
    folder = spoilt(12, "expert_rewards", lambda r: r)
    (folder / FILE.format(442)).unlink()
    with pytest.raises(EluteError, match=r"TRAJ-ID442\.h5 missing"):
        read_roboturk(folder)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("expert_rewards", lambda r: 1 - r, "rewards do not follow from the states"),
        ("expert_states", lambda s: s[:, :43], "43 observation and 7 action columns"),
        ("expert_states", lambda s: np.roll(s, 3, axis=1), "rewards do not follow"),
        ("expert_actions", lambda a: a[:, :6], "44 observation and 6 action columns"),
        ("expert_masks", lambda m: np.where(np.arange(len(m)) == 99, 0, m), "2 episodes"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_refused(spoilt, name, values, message):
    with pytest.raises(EluteError, match=message):
        read_roboturk(spoilt(397, name, values))


def at(row, columns, value):
    """One entry, or several, replaced."""

    def changed(values):
        values = values.copy()
        values[row, columns] = value
        return values

    return changed


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("expert_states", at(7, 3, np.nan), "states that are not finite, first in row 7"),
        ("expert_states", at(8, 15, np.inf), "states that are not finite, first in row 8"),
        ("expert_actions", at(9, 0, np.nan), "actions that are not finite, first in row 9"),
        ("expert_states", lambda s: s[:, [*range(7, 14), *range(7), *range(14, 44)]], "the hand"),
        ("expert_states", at(slice(None), slice(14), 0.0), "from where the joint angles have it"),
        ("expert_states", at(slice(None), slice(14, 21), 0.0), "joint velocities are all 0"),
        ("expert_masks", np.ones_like, "the episode has no end"),
    ],
    ids=["nan", "inf", "action", "swapped", "no-angles", "no-velocities", "no-end"],
)
def test_a_file_with_spoilt_values_is_refused(spoilt, name, values, message):
    with pytest.raises(EluteError, match=message):
        read_roboturk(spoilt(12, name, values))


def test_another_trajectory_under_the_name_is_refused(spoilt, folder):
    there = spoilt(12, "expert_rewards", lambda r: r)
    shutil.copy(folder / FILE.format(442), there / FILE.format(12))
    with pytest.raises(EluteError, match="a return of 81 in 509 rows; ID 12 has 276 in 500"):
        read_roboturk(there)


@pytest.mark.parametrize("rows", [1, 2, 499])
def test_a_file_that_was_cut_is_refused(spoilt, rows):
    for name in ("states", "actions", "rewards"):
        spoilt(12, f"expert_{name}", lambda values: values[:rows])
    there = spoilt(12, "expert_masks", lambda masks: masks[-rows:])
    with pytest.raises(EluteError, match=f"in {rows} rows; ID 12 has 276 in 500"):
        read_roboturk(there)


def test_without_the_files_the_synthetic_ones_are_named(monkeypatch):
    monkeypatch.delenv(FOLDER, raising=False)
    with pytest.raises(EluteError, match="not part of elute") as caught:
        roboturk_folder()
    assert FOLDER in caught.value.hint
    assert "sawyer-reach/operator" in caught.value.hint


def test_the_catalogue_has_them_where_the_files_are(folder, ten, tmp_path, monkeypatch):
    monkeypatch.setenv("ELUTE_CACHE", str(tmp_path))
    monkeypatch.setenv(FOLDER, str(folder))
    optimal = load(catalogue.fetch("sawyer-reach/roboturk/optimal"))
    assert optimal.returns().tolist() == [312, 318]
    np.testing.assert_array_equal(optimal.observations, ten.select([5, 9]).observations)
    assert optimal.observation_columns == ten.observation_columns
    everything = catalogue.fetch("sawyer-reach/roboturk")
    assert len(open_demos(f"{everything}#l1").episodes) == 4
    assert open_demos(everything).provenance.task == "sawyer-reach"


def test_info_prints_lengths_and_returns(folder, tmp_path):
    env = os.environ | {FOLDER: str(folder), "ELUTE_CACHE": str(tmp_path)}
    done = elute("demos", "info", "sawyer-reach/roboturk", env=env)
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    for length, earned in zip(LENGTHS, RETURNS, strict=True):
        assert f"{earned} in {length}" in told
    assert "5060 in 10 episodes of 500 to 511" in told
