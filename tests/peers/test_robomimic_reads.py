"""robomimic's own loader reads what elute writes. Run with `make test-peers`."""

import sys
import types
from dataclasses import replace

import numpy as np
import pytest

from elute.demos.corrupt import corrupt
from elute.demos.files import load, save
from elute.demos.pointmass import pointmass

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def loader():
    """robomimic's dataset class; torchvision, of which it needs only the name, is stood in for."""
    pytest.importorskip("robomimic", reason="robomimic is not installed: make test-peers")
    for name in ("torchvision", "torchvision.transforms", "torchvision.transforms.functional",
                 "torchvision.models", "torchvision.ops"):  # fmt: skip
        sys.modules.setdefault(name, types.ModuleType(name))
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, sys.modules[name])
    from robomimic.utils import obs_utils  # noqa: PLC0415 (needs the stand-in)
    from robomimic.utils.dataset import SequenceDataset  # noqa: PLC0415

    keys = ["position", "velocity", "goal"]
    obs_utils.initialize_obs_utils_with_obs_specs({"obs": {"low_dim": keys}})

    def read(path, filter_key=None):
        return SequenceDataset(
            str(path),
            obs_keys=keys,
            dataset_keys=("actions", "rewards", "dones"),
            load_next_obs=True,
            hdf5_cache_mode=None,
            filter_by_attribute=filter_key,
        )

    return read


def rows(dataset):
    """Everything the loader yields, as elute would hold it."""
    items = [dataset[i] for i in range(len(dataset))]
    observations = np.concatenate(
        [np.concatenate([item["obs"][k] for k in ("position", "velocity", "goal")], axis=1)
         for item in items]
    )  # fmt: skip
    return observations, np.concatenate([item["actions"] for item in items])


def test_a_fresh_file(loader, tmp_path):
    demos = pointmass(12)
    save(demos, tmp_path / "fresh.hdf5", format="robomimic")
    observations, actions = rows(loader(tmp_path / "fresh.hdf5"))
    np.testing.assert_array_equal(observations, demos.observations)
    np.testing.assert_array_equal(actions, demos.actions)


def test_a_patched_copy(loader, tmp_path):
    save(pointmass(12), tmp_path / "fresh.hdf5", format="robomimic")
    noisy = corrupt(load(tmp_path / "fresh.hdf5"), "gaussian", 0.3)
    save(noisy, tmp_path / "noisy.hdf5")
    _, actions = rows(loader(tmp_path / "noisy.hdf5"))
    np.testing.assert_array_equal(actions, noisy.actions)


def test_a_selection(loader, tmp_path):
    save(pointmass(12), tmp_path / "fresh.hdf5", format="robomimic")
    some = load(f"{tmp_path / 'fresh.hdf5'}#episodes=2,5,11")
    save(some, tmp_path / "some.hdf5")
    _, actions = rows(loader(tmp_path / "some.hdf5"))
    np.testing.assert_array_equal(actions, some.actions)


def test_filter_keys_of_a_copy(loader, tmp_path):
    save(pointmass(12), tmp_path / "fresh.hdf5", format="robomimic")
    demos = load(tmp_path / "fresh.hdf5")
    labelled = demos.episodes.with_filter("purified", range(12)).with_filter("optimal", [2, 11])
    save(replace(demos, episodes=labelled), tmp_path / "labelled.hdf5")
    for key, chosen in (("purified", range(12)), ("optimal", [2, 11])):
        _, actions = rows(loader(tmp_path / "labelled.hdf5", key))
        np.testing.assert_array_equal(actions, demos.select(chosen).actions)
