"""Demonstrations: checked at birth, never changed, cut by one rule."""

from copy import copy
from dataclasses import FrozenInstanceError, replace
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import assert_same_array, assert_same_rows, joined, plain, rich
from elute.columns import columns
from elute.episodes import Episodes, Origin, Piece, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSet, chunks


def make(n=3, **changes):
    parts = {
        "observations": np.zeros((n, 2)),
        "actions": np.zeros((n, 1)),
        "episodes": Episodes.of([n]),
        "provenance": Provenance(source="some.h5"),
    }
    return Demonstrations(**(parts | changes))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"actions": np.zeros((2, 1))}, "actions have shape"),
        ({"observations": np.zeros((4, 2))}, "observations have shape"),
        ({"rewards": np.zeros(2)}, "rewards have shape"),
        ({"extras": {"operator": np.zeros(4)}}, "operator have shape"),
        ({"extras": {"operator": np.float64(1)}}, "operator have shape"),
        ({"observations": np.zeros(3)}, r"not \(rows, columns\)"),
        ({"observations": np.zeros((3, 2, 2))}, r"not \(rows, columns\)"),
        ({"actions": np.zeros((3, 0))}, "at least one column"),
        ({"rewards": np.zeros((3, 1))}, r"not \(rows,\)"),
        ({"next_observations": np.zeros((3, 3))}, "like the observations"),
        ({"actions": np.array([["a"], ["b"], ["c"]])}, "expected numbers"),
        ({"observations": np.array([[None, None]] * 3)}, "expected numbers"),
        ({"rewards": np.array([1j, 2, 3])}, "expected numbers"),
        ({"extras": {"label": np.array([{}, {}, {}])}}, "expected numbers"),
        ({"observation_columns": columns("o", 3)}, "3 observation columns named, 2 in the data"),
        ({"action_columns": columns("a", 3)}, "3 action columns named, 1 in the data"),
    ],
)
def test_what_does_not_fit_is_refused_and_the_source_named(changes, says):
    with pytest.raises(EluteError, match=says) as caught:
        make(**changes)
    assert "some.h5" in str(caught.value)


def test_no_rows_are_refused():
    with pytest.raises(EluteError, match="no rows"):
        Demonstrations(np.zeros((0, 2)), np.zeros((0, 1)), Episodes.of([]))


@pytest.mark.parametrize("lengths", [[2, 0, 1], [3, -1]])
def test_an_episode_has_at_least_one_row(lengths):
    with pytest.raises(EluteError, match="expected at least one"):
        Episodes.of(lengths)


def test_flags_that_are_not_one_per_episode_are_refused():
    with pytest.raises(EluteError, match="terminated has not one entry"):
        Episodes.of([2, 3], terminated=[True])
    with pytest.raises(EluteError, match="attributes has not one entry"):
        Episodes.of([2, 3], attributes=[{}])


def test_nan_and_text_columns_are_allowed():
    demos = make(observations=np.full((3, 2), np.nan), extras={"label": np.array(["a", "b", "c"])})
    assert np.isnan(demos.observations).all()
    assert demos.extras["label"].tolist() == ["a", "b", "c"]


def test_columns_get_names_when_none_are_given():
    demos = make()
    assert [c.name for c in demos.observation_columns] == ["observation[0]", "observation[1]"]
    assert [c.name for c in demos.action_columns] == ["action[0]"]


def test_nothing_can_be_written_through():
    demos = rich()
    arrays = [demos.observations, demos.actions, demos.rewards, demos.next_observations]
    arrays += [*demos.extras.values(), demos[2:5].actions, demos.select([1]).observations]
    e = demos.episodes
    arrays += [e.lengths, e.terminated, e.truncated, e.inferred, e.stops, e.starts]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(TypeError):
        demos.extras["more"] = demos.actions
    with pytest.raises(FrozenInstanceError):
        demos.actions = demos.actions


def test_the_given_array_stays_writable():
    given_array = np.zeros((3, 2))
    make(observations=given_array)
    given_array[0] = 1


def test_a_slice_that_cuts_episodes_ends_them_as_truncated():
    demos = plain((4, 3, 2))
    cut = demos[2:6]
    assert cut.episodes.lengths.tolist() == [2, 2]
    assert cut.episodes.terminated.tolist() == [True, False]
    assert cut.episodes.truncated.tolist() == [False, True]
    assert_same_array(cut.observations, demos.observations[2:6])


def test_a_cut_end_is_no_longer_inferred():
    demos = replace(plain((4, 3)), episodes=Episodes.of([4, 3], [True, True], inferred=True))
    assert demos[0:6].episodes.inferred.tolist() == [True, False]


def test_slices_count_from_the_end_too():
    demos = plain()
    assert_same_array(demos[-3:].actions, demos.actions[-3:])
    assert len(demos[:]) == len(demos)


@pytest.mark.parametrize("rows", [slice(0, 4, 2), slice(3, 3), slice(5, 2), 3, (1, 2), [True]])
def test_other_indices_are_refused(rows):
    with pytest.raises(EluteError, match="asked for"):
        plain()[rows]


def test_first_takes_the_first_rows_or_all():
    demos = plain((4, 3))
    assert_same_array(demos.first(5).actions, demos.actions[:5])
    assert demos.first(5).episodes.truncated.tolist() == [False, True]
    assert_same_rows(demos.first(100), demos)
    with pytest.raises(EluteError, match="at least one"):
        demos.first(0)


def test_a_sample_depends_on_the_generator_only():
    demos = plain((30, 30))
    one, same, other = (demos.sample(20, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert_same_rows(one, same)
    assert one.observations.tobytes() != other.observations.tobytes()


def test_a_sample_keeps_order_and_neighbours_together():
    numbers = np.arange(60.0)
    demos = replace(plain((30, 30)), rewards=numbers)
    sample = demos.sample(40, np.random.default_rng(0))
    assert (np.diff(sample.rewards) > 0).all()
    for episode in sample.iter_episodes():
        assert (np.diff(episode.rewards) == 1).all()
        assert episode.rewards[0] // 30 == episode.rewards[-1] // 30
    inner = sample.episodes.stops[:-1]
    together = np.diff(sample.rewards)[inner - 1] == 1
    crosses = sample.rewards[inner - 1] == 29
    assert (together <= crosses).all()


def test_a_sample_of_all_rows_is_the_whole():
    demos = rich()
    assert_same_rows(demos.sample(len(demos), np.random.default_rng(0)), demos)
    for n in (0, len(demos) + 1):
        with pytest.raises(EluteError, match="sample of"):
            demos.sample(n, np.random.default_rng(0))


def test_select_gives_whole_episodes_in_the_order_given():
    demos = rich()
    chosen = demos.select([2, 0])
    assert chosen.episodes.lengths.tolist() == [7, 5]
    assert chosen.episodes.terminated.tolist() == [True, True]
    assert chosen.episodes.truncated.tolist() == [True, False]
    assert [a["seed"] for a in chosen.episodes.attributes] == [9, 7]
    assert_same_array(chosen.actions, np.concatenate([demos.actions[8:15], demos.actions[:5]]))
    for wrong in ([5], [-1], []):
        with pytest.raises(EluteError):
            demos.select(wrong)


def test_iterating_gives_every_episode_alone():
    demos = rich()
    episodes = list(demos.iter_episodes())
    assert [len(e) for e in episodes] == demos.episodes.lengths.tolist()
    assert_same_array(np.concatenate([e.actions for e in episodes]), demos.actions)


@pytest.mark.parametrize("shift", [1, 2, -1, -2])
def test_take_with_a_shift_moves_actions_and_leaves_states(shift):
    demos = replace(
        rich(lengths=(6, 7)), episodes=Episodes.of([6, 7], [True, False], [False, True])
    )
    size, skip = abs(shift), max(0, -shift)
    moved = demos.take([Piece(skip, 6 - size, shift), Piece(6 + skip, 7 - size, shift)])
    state = np.r_[skip : skip + 6 - size, 6 + skip : 6 + skip + 7 - size]
    assert_same_array(moved.observations, demos.observations[state])
    assert_same_array(moved.next_observations, demos.next_observations[state])
    assert_same_array(moved.extras["states"], demos.extras["states"][state])
    assert_same_array(moved.extras["operator"], demos.extras["operator"][state])
    assert_same_array(moved.actions, demos.actions[state + shift])
    assert_same_array(moved.rewards, demos.rewards[state + shift])
    assert_same_array(moved.extras["clean_actions"], demos.extras["clean_actions"][state + shift])
    ended = shift > 0  # the last action is still the last
    assert moved.episodes.terminated.tolist() == [ended, False]
    assert moved.episodes.truncated.tolist() == [not ended, True]


@pytest.mark.parametrize(
    "piece", [Piece(2, 3), Piece(-1, 2), Piece(0, 0), Piece(6, 2), Piece(9, 1), Piece(0, 4, 1),
              Piece(0, 4, -1), Piece(4, 2, -1)]
)  # fmt: skip
def test_pieces_stay_inside_one_episode(piece):
    with pytest.raises(EluteError, match="not inside one episode"):
        plain((4, 3)).take([piece])


def test_a_cut_remembers_where_in_the_file_it_is_from(tmp_path):
    origin = Origin(tmp_path, "npz", (0, 0), (Piece(0, 4), Piece(4, 3)))
    cut = replace(plain((4, 3)), origin=origin)[2:6].take([Piece(1, 1), Piece(2, 1, 1)])
    assert cut.origin.pieces == (Piece(3, 1), Piece(4, 1, 1))
    assert cut[1:2].origin.pieces == (Piece(4, 1, 1),)


def test_a_sum_keeps_what_both_have_and_says_what_it_drops():
    one = rich()
    other = replace(
        rich(seed=1),
        rewards=None,
        extras={
            "clean_actions": one.actions,
            "operator": np.array(["ann"] * len(one)),
            "states": np.zeros((len(one), 9)),
            "new": np.zeros(len(one)),
        },
        provenance=Provenance(source="b.h5").then("corrupt"),
    )
    both = one + other
    assert len(both) == 40
    assert set(both.extras) == {"clean_actions"}
    assert both.rewards is None
    assert both.next_observations is not None
    assert both.origin is None
    step = both.provenance.steps[-1]
    assert step["operation"] == "concatenate"
    assert step["source"] == "b.h5"
    assert step["steps"] == [{"operation": "corrupt"}]
    assert step["dropped"] == ["new", "operator", "states", "success", "rewards"]


def test_a_sum_has_both_in_order():
    one, other = rich(), rich(seed=1)
    both = one + other
    assert_same_rows(both[: len(one)], one)
    assert_same_rows(both[len(one) :], other)
    assert both.episodes.attributes == one.episodes.attributes + other.episodes.attributes


def test_sets_of_other_sizes_cannot_be_joined():
    wide, narrow = plain(observations=5), plain(observations=3)
    for join in (lambda: wide + narrow, lambda: DemoSet(optimal=wide, supplementary=narrow)):
        with pytest.raises(EluteError, match="3 columns of observations"):
            join()
    with pytest.raises(EluteError, match="columns of actions"):
        DemoSet(optimal=plain(actions=1), supplementary=plain(actions=2))


def test_a_demo_set_puts_the_optimal_first():
    demos = DemoSet(optimal=plain(seed=1), supplementary=plain(seed=2))
    assert_same_array(demos.all[:7].actions, plain(seed=1).actions)
    assert_same_array(demos.all[7:].actions, plain(seed=2).actions)


def test_pairs_are_states_beside_actions():
    demos = rich()
    assert demos.pairs.shape == (20, 12)
    assert_same_array(demos.pairs[:, :9], demos.observations)
    assert_same_array(demos.pairs[:, 9:].astype("float32"), demos.actions)


def test_with_pairs_casts_back_and_next_observations_follow():
    demos = rich()
    changed = demos.with_pairs(demos.pairs + 1, "shift everything", by=1)
    assert changed.actions.dtype == "float32"
    assert_same_array(changed.observations, demos.observations + 1)
    last = demos.episodes.stops - 1
    inner = np.setdiff1d(np.arange(len(demos)), last)
    assert_same_array(changed.next_observations[inner], changed.observations[inner + 1])
    assert_same_array(changed.next_observations[last], demos.next_observations[last])
    assert changed.provenance.steps[-1] == {"operation": "shift everything", "by": 1}
    assert_same_array(demos.observations, rich().observations)
    with pytest.raises(EluteError, match="pairs have shape"):
        demos.with_pairs(demos.pairs[:, 1:], "wrong")


def test_with_extra_leaves_the_first_alone():
    demos = plain()
    assert "x" in demos.with_extra("x", np.zeros(7)).extras
    assert "x" not in demos.extras


def test_returns_are_sums_of_rewards_per_episode():
    demos = replace(plain((4, 3)), rewards=np.arange(7, dtype="float32"))
    assert demos.returns().tolist() == [6.0, 15.0]
    assert plain().returns() is None


def test_what_is_printed_names_the_source():
    assert repr(make()) == (
        "Demonstrations(3 rows in 1 episodes, 2 observation and 1 action columns, from some.h5)"
    )


LENGTHS = st.lists(st.integers(1, 12), min_size=1, max_size=8)


@given(LENGTHS, st.integers(1, 20))
def test_chunks_are_the_whole_and_end_with_episodes(lengths, size):
    demos = plain(lengths)
    parts = list(chunks(demos, size))
    stops = {0, *demos.episodes.stops.tolist()}
    for key, array in joined(rows for _, rows in parts).items():
        assert_same_array(array, getattr(demos, key))
    at = 0
    for start, rows in parts:
        assert start == at
        assert 1 <= len(rows) <= size
        at += len(rows)
        if at not in stops:  # cut: only because the rest of this episode alone is too long
            assert len(rows) == size
            assert not stops & set(range(start + 1, at))
    assert at == len(demos)


@given(LENGTHS, st.data())
def test_every_slice_has_its_rows_and_ends_as_it_should(lengths, data):
    demos = plain(lengths)
    start = data.draw(st.integers(0, len(demos) - 1))
    stop = data.draw(st.integers(start + 1, len(demos)))
    cut = demos[start:stop]
    assert_same_array(cut.observations, demos.observations[start:stop])
    ends = (start + cut.episodes.stops).tolist()
    whole = [end in demos.episodes.stops for end in ends]
    assert cut.episodes.terminated.tolist() == whole
    assert cut.episodes.truncated.tolist() == [not w for w in whole]


def test_demonstrations_reach_another_process_whole():
    demos = make().with_extra("clean_actions", np.ones((3, 1)))
    with get_context("spawn").Pool(1) as pool:
        back = pool.apply(copy, (demos,))
    np.testing.assert_array_equal(back.pairs, demos.pairs)
    np.testing.assert_array_equal(back.extras["clean_actions"], 1.0)
    assert back.provenance == demos.provenance
    with pytest.raises(ValueError, match="read-only"):
        back.actions[0] = 1
