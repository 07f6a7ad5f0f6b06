"""Steps come from recorded neighbours, and only from those."""

from dataclasses import replace

import numpy as np
import pytest

from elute.demos.files import load, save
from elute.episodes import Episodes
from elute.errors import EluteError
from elute.learners.transitions import Transitions
from elute.purify.filters import FilterPurifier
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet


def numbered(lengths, *, recorded=False, first=0, **ends):
    """The observation of row k is k; what is recorded as next is k + 0.5."""
    k = np.arange(sum(lengths), dtype=float)[:, None] + first
    return Demonstrations(
        observations=k,
        actions=-k,
        next_observations=k + 0.5 if recorded else None,
        episodes=Episodes.of(lengths, **ends),
    )


def test_the_next_row_of_the_episode_is_the_next_state():
    steps = Transitions.within(numbered([3, 1, 2]))
    np.testing.assert_array_equal(steps.rows, [0, 1, 4])
    np.testing.assert_array_equal(steps.observations[:, 0], [0, 1, 4])
    np.testing.assert_array_equal(steps.actions[:, 0], [0, -1, -4])
    np.testing.assert_array_equal(steps.next_observations[:, 0], [1, 2, 5])
    np.testing.assert_array_equal(steps.initial[:, 0], [0, 3, 4])


def test_recorded_next_states_come_first_and_keep_the_last_rows():
    steps = Transitions.within(numbered([2, 1], recorded=True))
    np.testing.assert_array_equal(steps.rows, [0, 1, 2])
    np.testing.assert_array_equal(steps.next_observations[:, 0], [0.5, 1.5, 2.5])


def test_a_next_state_that_is_only_a_copy_is_none():
    demos = numbered([2, 2], recorded=True, final_repeated=[True, False])
    np.testing.assert_array_equal(Transitions.within(demos).rows, [0, 2, 3])


def test_rows_are_those_of_both_sets_together():
    sets = DemoSet(numbered([2], recorded=True), numbered([3, 2], first=10))
    steps = Transitions.of(sets)
    np.testing.assert_array_equal(steps.rows, [0, 1, 2, 3, 5])
    np.testing.assert_array_equal(steps.observations, sets.all.observations[steps.rows])
    np.testing.assert_array_equal(steps.actions, sets.all.actions[steps.rows])
    np.testing.assert_array_equal(steps.next_observations[:, 0], [0.5, 1.5, 11, 12, 14])
    np.testing.assert_array_equal(steps.initial[:, 0], [0, 10, 13])


def test_only_the_end_of_the_task_is_terminal_and_never_the_end_of_a_slice():
    demos = numbered([3, 3], recorded=True, terminated=[True, False], truncated=[False, True])
    assert Transitions.within(demos).terminal.tolist() == [False, False, True] + [False] * 3
    assert not Transitions.within(demos.first(2)).terminal.any()


def test_a_slice_from_the_middle_begins_where_it_is_cut():
    steps = Transitions.within(numbered([5, 3])[2:7])
    np.testing.assert_array_equal(steps.initial[:, 0], [2, 5])
    np.testing.assert_array_equal(steps.next_observations[:, 0], [3, 4, 6])


@pytest.mark.parametrize("bad", ["optimal", "supplementary"])
def test_no_transitions_is_said(bad):
    sets = {"optimal": numbered([2]), "supplementary": numbered([2])} | {bad: numbered([1, 1])}
    with pytest.raises(EluteError, match="no transitions: every episode has one row"):
        Transitions.of(DemoSet(**sets))


def test_next_states_that_are_not_finite_are_refused():
    demos = numbered([2], recorded=True)
    with pytest.raises(EluteError, match="next observations are not finite"):
        Transitions.within(replace(demos, next_observations=np.array([[np.nan], [1.0]])))


def smoothed(target, lengths=(6, 6)):
    demos = numbered(list(lengths), recorded=True)
    return FilterPurifier(target=target).fit(DemoSet(demos, demos), Seeds(0))(demos)


def test_purified_states_are_refused_and_purified_actions_are_not(tmp_path):
    save(smoothed("joint"), tmp_path / "joint.npz")
    for moved in (smoothed("joint"), numbered([3]) + smoothed("joint")[2:5]):
        with pytest.raises(EluteError, match=r"states were purified.*\n.*--target action"):
            Transitions.of(DemoSet(numbered([3]), moved))
    with pytest.raises(EluteError, match="states were purified"):
        Transitions.within(load(tmp_path / "joint.npz"))
    kept = smoothed("action")
    assert not np.array_equal(kept.actions, numbered([6, 6]).actions)
    np.testing.assert_array_equal(
        Transitions.within(kept).next_observations,
        numbered([6, 6], recorded=True).next_observations,
    )


def test_reverse_step_zero_moves_nothing_and_is_no_trouble():
    demos = numbered([3])
    for step, refused in ((0, False), (5, True)):
        noted = demos.with_pairs(demos.pairs, "purify", target="joint", reverse_step=step)
        if refused:
            with pytest.raises(EluteError, match="purified"):
                Transitions.within(noted)
        else:
            assert len(Transitions.within(noted).rows) == 2
