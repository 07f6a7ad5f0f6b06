"""Views of files against the same pieces taken in memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import assert_same_rows, hdf5_tree, place, plain, rich
from elute.demos.audit.repair import clipping, drop_non_finite, realign
from elute.demos.audit.summary import Bounds
from elute.demos.files import load, open_demos, save
from elute.demos.formats import FORMATS
from elute.demos.view import taken
from elute.episodes import Piece
from elute.types import chunks

LENGTHS = (9, 4, 12, 1, 7)


class Unread:
    """Demonstrations that can only be read like a file; counts what was."""

    def __init__(self, demos):
        self.demos, self.read = demos, []
        for name in ("episodes", "observation_columns", "action_columns", "provenance", "origin"):
            setattr(self, name, getattr(demos, name))

    def rows(self, start, stop):
        self.read.append(stop - start)
        return self.demos.rows(start, stop)


@st.composite
def pieces(draw):
    """Pieces of episodes in any order, some with their actions from other rows."""
    starts = np.cumsum((0, *LENGTHS))
    made = []
    for _ in range(draw(st.integers(1, 8))):
        episode = draw(st.integers(0, len(LENGTHS) - 1))
        shift = draw(st.integers(-2, 2))
        room = LENGTHS[episode] - abs(shift)
        if room >= 1:
            first = draw(st.integers(0, room - 1))
            length = draw(st.integers(1, room - first))
            made.append(Piece(int(starts[episode]) + max(0, -shift) + first, length, shift))
    return made or [Piece(0, 9)]


@given(chosen=pieces(), data=st.data())
def test_a_view_reads_as_what_was_taken(chosen, data):
    demos = rich(lengths=LENGTHS)
    view, expected = taken(Unread(demos), chosen), demos.take(chosen)
    assert view.episodes.lengths.tolist() == expected.episodes.lengths.tolist()
    start = data.draw(st.integers(0, len(expected) - 1))
    stop = data.draw(st.integers(start + 1, len(expected)))
    assert_same_rows(view.rows(start, stop), expected.rows(start, stop))
    again = [Piece(0, int(expected.episodes.lengths[0]))]
    assert_same_rows(taken(view, again).rows(0, again[0].length), expected.take(again))


def test_what_lies_between_two_pieces_is_not_read():
    far = Unread(plain((1000,)))
    view = taken(far, [Piece(0, 10), Piece(12, 10), Piece(900, 10)])
    assert len(view.rows(0, 30)) == 30
    assert far.read == [22, 10]


@pytest.mark.parametrize("name", list(FORMATS))
@pytest.mark.parametrize("shift", [1, -2])
def test_a_repaired_file_is_written_from_a_view_as_from_memory(tmp_path, name, shift):
    """Rows move, are dropped and clipped; nothing else in the file changes."""
    demos = rich()
    (tmp_path / "given").mkdir()
    source = place(tmp_path / "given", name)
    save(demos, source, format=name)
    written = []
    for folder, read in (("memory", load), ("view", open_demos)):
        (tmp_path / folder).mkdir()
        mended = drop_non_finite(realign(read(source), shift))
        path = place(tmp_path / folder, name)
        clip = clipping(mended, Bounds(np.array([-0.5]), np.array([0.5])))
        save(mended, path, transform=clip)
        written.append(path)
    one, other = map(load, written)
    assert_same_rows(one, other)
    assert np.abs(one.actions).max() <= 0.5
    assert [s["operation"] for s in other.provenance.steps[-3:]] == [
        "realign", "drop-non-finite", "clip"
    ]  # fmt: skip
    assert one.provenance.steps == other.provenance.steps
    if written[0].suffix in (".h5", ".hdf5"):
        assert hdf5_tree(written[0]) == hdf5_tree(written[1])


def test_an_observation_that_is_called_an_action_stays_with_the_state(tmp_path):
    """A copy of the file would move it, for it goes by names."""
    demos = rich(lengths=(8, 6))
    given = tmp_path / "given.hdf5"
    columns = [c.__class__("previous_actions", c.index, c.role) for c in demos.observation_columns]
    named = demos.__class__(
        demos.observations, demos.actions, demos.episodes, observation_columns=tuple(columns)
    )
    save(named, given, format="robomimic")
    out = tmp_path / "out.hdf5"
    save(realign(open_demos(given), 1), out)
    assert_same_rows(load(out), realign(load(given), 1))


def test_a_view_is_worked_through_in_chunks():
    demos = plain((40,) * 10)
    far = Unread(demos)
    view = taken(far, far.episodes.pieces(0, 333))
    read = [rows for _, rows in chunks(view, 100)]
    assert max(far.read) <= 100
    np.testing.assert_array_equal(
        np.concatenate([rows.actions for rows in read]), demos.actions[:333]
    )
