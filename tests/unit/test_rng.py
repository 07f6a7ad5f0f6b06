"""Seeds: one root, a stream per purpose, and noise that no cut changes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elute.errors import EluteError
from elute.rng import BLOCK_ROWS, Seeds


def drawn(seeds, cuts, purpose="noise"):
    """Three numbers for every row, drawn between the cuts."""
    total = np.full((cuts[-1] - cuts[0], 3), np.nan)
    for start, stop in pairwise(cuts):
        part = total[start - cuts[0] : stop - cuts[0]]
        for rng, keep, rows in seeds.blocks(purpose, start, stop):
            part[rows] = rng.standard_normal((BLOCK_ROWS, 3))[keep]
    return total


@given(st.lists(st.integers(0, 3 * BLOCK_ROWS), min_size=2, max_size=6, unique=True))
def test_the_noise_of_a_row_does_not_depend_on_the_cuts(cuts):
    cuts = sorted(cuts)
    whole = drawn(Seeds(4), [0, 3 * BLOCK_ROWS])
    assert np.array_equal(drawn(Seeds(4), cuts), whole[cuts[0] : cuts[-1]])


def test_blocks_differ_from_each_other():
    whole = drawn(Seeds(0), [0, 2 * BLOCK_ROWS])
    assert not np.array_equal(whole[:BLOCK_ROWS], whole[BLOCK_ROWS:])


def test_purpose_root_and_index_each_make_another_stream():
    streams = [
        Seeds(0)("a"), Seeds(1)("a"), Seeds(0)("b"), Seeds(0)("a", 0), Seeds(0)("a", 1),
        Seeds(0)("a", 0, 1),
    ]  # fmt: skip
    assert len({rng.random() for rng in streams}) == len(streams)


def test_the_same_purpose_gives_the_same_stream():
    assert Seeds(5)("a", 2).random() == Seeds(5)("a", 2).random()


def test_streams_do_not_change_between_versions():
    assert Seeds(0)("corrupt/gaussian", 0).integers(0, 2**31) == 930819116


def test_a_negative_seed_is_refused():
    with pytest.raises(EluteError, match="seed -1"):
        Seeds(-1)
