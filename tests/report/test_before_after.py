"""The picture of before and after: what it shows, and what is refused before any work."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from elute.demos.corrupt import corrupt
from elute.demos.pointmass import pointmass
from elute.errors import EluteError
from elute.report import figures
from elute.report.before_after import BeforeAfter, draw_before_after, most_moved
from elute.report.figures import check_figure

CLEAN = pointmass(3)
NOISY = corrupt(CLEAN, "gaussian", 0.6)


def shown(before=NOISY, after=CLEAN):
    moved = np.linspace(0, 1, len(before))
    return BeforeAfter(
        title="noisy.hdf5",
        before=before,
        after=after,
        optimal=pointmass(1, seed=1),
        scale=before.pairs.std(axis=0),
        moved=moved,
        distances=(moved, moved / 2),
    )


def moved_by(amounts):
    pairs = CLEAN.pairs.copy()
    for column, amount in amounts.items():
        pairs[:, column] += amount
    return CLEAN.with_pairs(pairs, "push")


def test_columns_are_those_that_moved_most_in_their_own_units():
    scale = np.ones(CLEAN.pairs.shape[1])
    scale[3] = 100.0
    pushed = moved_by({0: 1.0, 1: 2.0, 3: 50.0, 4: 0.1, 5: 0.2, 6: 0.3})
    assert most_moved(replace(shown(CLEAN, pushed), scale=scale)) == [1, 0, 3, 6]
    assert most_moved(shown(CLEAN, CLEAN)) == []


@pytest.mark.parametrize(
    ("suffix", "begins"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".SVG", b"<?xml")]
)
def test_a_figure_is_what_its_ending_says_and_the_same_each_time(tmp_path, suffix, begins):
    pytest.importorskip("matplotlib", reason="figures need elute[report]")
    paths = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]
    for path in paths:
        draw_before_after(shown(), path)
    drawn = [path.read_bytes() for path in paths]
    assert drawn[0].startswith(begins)
    assert drawn[0] == drawn[1]
    assert sorted(tmp_path.iterdir()) == paths


def test_a_figure_says_what_it_shows(tmp_path):
    mpl = pytest.importorskip("matplotlib", reason="figures need elute[report]")

    with mpl.rc_context({"svg.fonttype": "none"}):  # text stays text
        draw_before_after(shown(), tmp_path / "f.svg")
    text = (tmp_path / "f.svg").read_text()
    for expected in ("noisy.hdf5", "force[0]", "force[1]", "before", "after", "median 0.5",
                     "before, mean 0.5", "after, mean 0.25"):  # fmt: skip
        assert expected in text


def test_nothing_moved_is_said(tmp_path):
    mpl = pytest.importorskip("matplotlib", reason="figures need elute[report]")

    still = replace(shown(CLEAN, CLEAN), moved=np.zeros(len(CLEAN)))
    with mpl.rc_context({"svg.fonttype": "none"}):
        draw_before_after(still, tmp_path / "f.svg")
    assert "no column was moved" in (tmp_path / "f.svg").read_text()


def test_what_cannot_be_drawn_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "find_spec", lambda name: object())
    check_figure(tmp_path / "f.png")
    with pytest.raises(EluteError, match=r"figures end in \.png, \.pdf, \.svg"):
        check_figure(tmp_path / "f.jpg")
    with pytest.raises(EluteError, match="does not exist"):
        check_figure(tmp_path / "no" / "f.png")
    with pytest.raises(EluteError, match="is the input"):
        check_figure(tmp_path / "f.png", [tmp_path / "f.png"])


def test_a_missing_matplotlib_is_said_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not installed
    with pytest.raises(EluteError, match=r"pip install 'elute\[report\]'"):
        check_figure(tmp_path / "f.png")
