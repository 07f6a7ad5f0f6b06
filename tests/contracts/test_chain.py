"""VILD -> npz -> Minari -> robomimic -> VILD gives the same datasets, bit for bit."""

import numpy as np
import pytest

from builders import assert_same_datasets, place, vild_file
from elute.demos.files import open_demos, save

CHAIN = ("npz", "minari", "robomimic", "vild")


def sent_around(path, folder):
    for step, name in enumerate(CHAIN):
        (folder / str(step)).mkdir(parents=True)
        target = place(folder / str(step), name)
        save(open_demos(path), target, format=name)
        path = target
    return path


@pytest.mark.parametrize("last_mask", [0, 1])
def test_a_synthetic_file_comes_back(tmp_path, last_mask):
    extra = {"operator": np.arange(12, dtype="uint8"), "deep/labels": np.ones((12, 2))}
    path = vild_file(tmp_path / "in.h5", last_mask=last_mask, **extra)
    assert_same_datasets(path, sent_around(path, tmp_path))


def test_the_real_files_come_back(tmp_path, data_folder):
    paths = sorted(data_folder.glob("*/*.h5"))
    assert paths, "no VILD files in the data folder"
    for i, path in enumerate(paths):
        assert_same_datasets(path, sent_around(path, tmp_path / str(i)))
