"""robosuite records, elute rewrites, robosuite plays the result. Run with `make test-robosuite`."""

import gc
import json
import warnings

import h5py
import numpy as np
import pytest

from builders import assert_same_array, hdf5_tree
from elute.demos.corrupt import corrupt
from elute.demos.files import load, open_demos, save

pytestmark = pytest.mark.peers

INFO = {"env_name": "Lift", "robots": "Sawyer"}


@pytest.fixture(scope="module")
def environment():
    with warnings.catch_warnings(action="ignore"):
        robosuite = pytest.importorskip("robosuite", reason="make test-robosuite installs it")
        made = robosuite.make(
            **INFO,
            has_renderer=False,
            has_offscreen_renderer=False,
            ignore_done=True,
            use_camera_obs=False,
            control_freq=20,
        )
        made._check_success = lambda: True  # its collector throws failures away
        yield made
        made.close()


@pytest.fixture(scope="module")
def recording(environment, tmp_path_factory):
    """A `demo.hdf5` of robosuite's own collecting script."""
    from robosuite.scripts.collect_human_demonstrations import (  # noqa: PLC0415
        gather_demonstrations_as_hdf5,
    )
    from robosuite.wrappers import DataCollectionWrapper  # noqa: PLC0415

    folder, rng = tmp_path_factory.mktemp("robosuite"), np.random.default_rng(0)
    collector = DataCollectionWrapper(environment, str(folder / "raw"))
    for steps in (12, 9):
        collector.reset()
        for _ in range(steps):
            collector.step(rng.uniform(-1, 1, environment.action_dim))
    collector._flush()
    gather_demonstrations_as_hdf5(str(folder / "raw"), str(folder), json.dumps(INFO))
    gc.collect()  # the script leaves its file open
    return folder / "demo.hdf5"


def played(environment, path, demo):
    """The states of a demonstration, after robosuite has been in each of them."""
    with h5py.File(path) as file:
        states = file[f"data/{demo}/states"][:]
        model = file[f"data/{demo}"].attrs["model_file"]
    environment.reset()
    environment.reset_from_xml_string(environment.edit_model_xml(model))
    environment.sim.reset()
    found = []
    for state in states:
        environment.sim.set_state_from_flattened(state)
        environment.sim.forward()
        found.append(environment.sim.get_state().flatten())
    return states, np.array(found)


def test_what_robosuite_recorded_is_read(recording):
    demos = load(recording)
    assert sorted(demos.episodes.lengths.tolist()) == [9, 12]
    with h5py.File(recording) as file:
        groups = [file["data/demo_1"], file["data/demo_2"]]
        assert_same_array(demos.observations, np.concatenate([g["states"][:] for g in groups]))
        assert_same_array(demos.actions, np.concatenate([g["actions"][:] for g in groups]))


def test_a_rewritten_file_plays(environment, recording, tmp_path):
    out = tmp_path / "demo.hdf5"
    save(
        open_demos(recording), out, transform=lambda at, r: corrupt(r, "gaussian", 1, first_row=at)
    )
    before, after = hdf5_tree(recording), hdf5_tree(out)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"data/demo_1/actions", "data/demo_2/actions"}
    for demo in ("demo_1", "demo_2"):
        states, found = played(environment, out, demo)
        np.testing.assert_array_equal(found, states)


@pytest.mark.parametrize("through", ["npz", "imitation", "roboturk"])
def test_a_file_that_went_through_another_format_plays(environment, recording, tmp_path, through):
    middle = tmp_path / ("mid.npz" if through == "npz" else "mid")
    if through == "imitation":
        pytest.importorskip("pyarrow")
    save(open_demos(recording), middle, format=through)
    save(open_demos(middle), tmp_path / "demo.hdf5", format="robosuite")
    states, found = played(environment, tmp_path / "demo.hdf5", "demo_1")
    np.testing.assert_array_equal(found, states)
    with h5py.File(recording) as one, h5py.File(tmp_path / "demo.hdf5") as other:
        assert dict(one["data"].attrs) == dict(other["data"].attrs)
