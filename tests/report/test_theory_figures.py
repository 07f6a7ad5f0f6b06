"""Pictures of the theorems: that they are drawn, alike each time, and refused in time."""

import sys
from pathlib import Path

import numpy as np
import pytest

from elute.diffusion.schedule import Schedule
from elute.errors import EluteError
from elute.report.theory import DataFigures, check_folder, draw_data, draw_theory
from elute.theory.claims.data import Distances
from elute.theory.data import STEPS, data_bounds, forward, score_bounds
from elute.theory.wiener import GaussianModel

LINEAR = Schedule.linear()


def shown(distances=None, shift=1.0, delta=1.0):
    rng = np.random.default_rng(0)
    scores = score_bounds(lambda step: rng.standard_normal((50, 2)), 300)
    rows = rng.standard_normal((60, 2))
    return DataFigures(
        title="noisy.hdf5, target joint",
        schedule=LINEAR,
        forward=forward(rows, rows + shift, LINEAR, STEPS, rng),
        bounds=data_bounds(LINEAR, scores, delta),
        model=GaussianModel(np.eye(2), 0.3 * delta * np.eye(2)),
        distances=distances,
        marks={"auto": 100, "Theorem 4": 0},
    )


def test_figures_are_pictures_and_the_same_each_time(tmp_path):
    pytest.importorskip("matplotlib", reason="figures need elute[report]")
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        check_folder(folder)
        drawn = draw_theory(folder)
        assert sorted(folder.iterdir()) == sorted(drawn)
    for path in folders[0].iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.read_bytes() == (folders[1] / path.name).read_bytes()
        assert path.stat().st_size < 120_000


def test_figures_of_data_with_and_without_the_truth(tmp_path):
    pytest.importorskip("matplotlib", reason="figures need elute[report]")
    distances = Distances((1, 10, 100), np.ones((3, 20)), np.full(20, 2.0))
    plain, measured = (draw_data(shown(d), tmp_path) for d in (None, distances))
    assert plain == measured
    assert len(plain) == 3
    assert all(path.stat().st_size > 10_000 for path in plain)


def test_sets_that_do_not_differ_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib", reason="figures need elute[report]")
    assert len(draw_data(shown(shift=0.0, delta=0.0), tmp_path)) == 3


def test_what_cannot_be_drawn_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(EluteError, match="is a file"):
        check_folder(tmp_path / "file")
    with pytest.raises(EluteError, match="cannot be made"):
        check_folder(tmp_path / "no" / "where")
    if Path("/proc/self").is_dir():  # a folder that even root cannot write to
        with pytest.raises(EluteError, match="nothing can be written there"):
            check_folder(Path("/proc/self"))
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not installed
    with pytest.raises(EluteError, match=r"pip install 'elute\[report\]'"):
        check_folder(tmp_path / "figures")
    assert not (tmp_path / "figures").exists()
