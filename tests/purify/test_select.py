"""The reverse step is chosen from D_o and D_s alone."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import QUICK, noisy_pointmass

from builders import assert_same_rows, plain
from elute.columns import Column
from elute.demos.corrupt import corrupt
from elute.demos.pointmass import pointmass
from elute.diffusion.ddpm import Training
from elute.episodes import Episodes, Piece
from elute.errors import EluteError
from elute.learners.actor import Design
from elute.learners.bc import BC
from elute.purify import select
from elute.purify.diffusion import DiffusionPurifier
from elute.purify.select import CAREFUL_CLONE, Straying, at_most, choose_reverse_step, straying
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet


def test_noise_calls_for_a_step_and_every_candidate_is_reported():
    choice = choose_reverse_step(QUICK, noisy_pointmass(2.0), Seeds(0), candidates=(0, 60, 200))
    assert set(choice.errors) == {0, 60, 200}
    assert set(choice.policy_errors) == {0, 60, 200}
    assert choice.for_actions > 0
    assert choice.errors[choice.for_actions] == min(choice.errors.values())
    assert choice.policy_errors[choice.for_policy] == min(choice.policy_errors.values())


def test_more_noise_calls_for_a_larger_step_and_actions_for_more_than_policies():
    calm, wild = (
        choose_reverse_step(QUICK, noisy_pointmass(level), Seeds(0)) for level in (0.0, 2.0)
    )
    assert calm.for_actions < wild.for_actions
    assert wild.for_policy < wild.for_actions  # cloning averages noise by itself


def test_the_expected_error_is_that_of_a_policy_cloned_from_purified_rows():
    driven = pointmass(30, noise=0.02)
    good, right = driven.select(range(4)), driven.select(range(4, 16))
    given = DemoSet(good, corrupt(right, "gaussian", 2.0))
    candidates = (0, 30, 100, 300)
    expected = choose_reverse_step(QUICK, given, Seeds(0), candidates=candidates).policy_errors
    fitted = replace(QUICK, reverse_step=300).fit(given, Seeds(0))
    for step in candidates:
        purified = fitted.at(step)(given.supplementary)
        policy = select.BC(updates=1000).fit(DemoSet(good, purified), Seeds(0)("clone"))
        missed = (policy.act(right.observations) - right.actions) / select.action_units(given)[1]
        assert expected[step] == pytest.approx(np.mean(missed**2), rel=0.5)


def test_the_noise_is_estimated_from_the_two_sets_alone():
    found = choose_reverse_step(QUICK, noisy_pointmass(2.0), Seeds(0), candidates=(0, 300)).strays
    assert found == pytest.approx((2.0, 2.0), rel=0.25)


@pytest.fixture(autouse=True)
def quick_clones(monkeypatch):
    monkeypatch.setattr(select, "CAREFUL_CLONE", replace(select.CAREFUL_CLONE, updates=300))


def along_a_line(n, *, upto, noise):
    """States between 0 and there, and the sine that an expert steers by."""
    rng = Seeds(n)("line")
    states = rng.uniform(0, upto, (n, 1))
    actions = np.sin(3 * states) + noise * rng.standard_normal((n, 1))
    return Demonstrations(states, actions, Episodes.of([n]))


@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_d_s_tells_how_far_it_strays(noise):
    given = DemoSet(along_a_line(100, upto=1, noise=0), along_a_line(400, upto=3, noise=noise))
    found = straying(given, Seeds(0))
    assert noise**2 < found.noise[0] < noise**2 + 0.03  # what a clone of 200 rows gets wrong
    assert found.habit[0] < 0.03


def test_a_demonstrator_who_steers_otherwise_has_a_habit():
    good, other = along_a_line(100, upto=1, noise=0), along_a_line(400, upto=3, noise=0)
    turned = replace(other, actions=-other.actions)  # nothing scatters
    found = straying(DemoSet(good, turned), Seeds(0))
    assert found.noise[0] < 0.03
    assert found.habit[0] == pytest.approx(np.mean((2 * good.actions) ** 2), rel=0.1)


def test_data_that_was_sorted_strays_no_farther():
    given = DemoSet(along_a_line(100, upto=1, noise=0), along_a_line(400, upto=3, noise=0.1))
    order = np.argsort(given.supplementary.observations[:, 0])
    swept = given.supplementary.take([Piece(int(row), 1) for row in order])
    found = straying(DemoSet(given.optimal, swept), Seeds(0))
    assert 0.01 < found.noise[0] < 0.04


def in_units(demos, unit, offset):
    return replace(demos, actions=demos.actions * unit + offset)


def test_the_unit_of_an_action_and_where_it_begins_do_not_matter():
    unit, offset = np.array([1e-3, 1.0]), np.array([0.0, 50.0])  # metres, degrees
    given = noisy_pointmass(1.0)
    scaled = DemoSet(*(in_units(d, unit, offset) for d in (given.optimal, given.supplementary)))
    found, same = straying(scaled, Seeds(0)), straying(given, Seeds(0))
    assert found.noise / unit**2 == pytest.approx(same.noise, rel=0.05)
    assert found.habit / unit**2 == pytest.approx(same.habit, rel=0.05)
    one, other = (
        choose_reverse_step(QUICK, both, Seeds(0), candidates=(0, 60)) for both in (given, scaled)
    )
    assert list(other.errors.values()) == pytest.approx(list(one.errors.values()), rel=0.05)
    assert list(other.policy_errors.values()) == pytest.approx(
        list(one.policy_errors.values()), rel=0.05
    )


def test_a_gap_is_noise_then_habit_then_ignorance():
    found = Straying(np.array([1.0, 4.0]), np.array([0.5, 1.0]), np.ones(2))
    parts = found.split(np.array([2.0, 3.0]))
    assert [part.tolist() for part in parts] == [[1.0, 3.0], [0.5, 0.0], [0.5, 0.0]]


def test_more_rows_average_more_noise():
    good = along_a_line(100, upto=1, noise=0)
    few, many = (
        straying(DemoSet(good, along_a_line(n, upto=1, noise=0.5)), Seeds(0)).averaged[0]
        for n in (100, 3000)
    )
    assert many > 3 * few


def test_bias_and_variance_of_copies_are_told_apart():
    rng, right = np.random.default_rng(0), np.zeros((50, 2))
    copies = np.array([0.3, 0.0]) + np.array([0.2, 0.5]) * rng.standard_normal((400, 50, 2))
    bias, variance = select._missed(copies.reshape(-1, 2), right)
    assert bias == pytest.approx([0.09, 0.0], abs=2e-3)
    assert variance == pytest.approx([0.04, 0.25], rel=0.02)


def test_states_that_no_optimal_row_tells_about_are_no_straying(monkeypatch):
    given = DemoSet(along_a_line(100, upto=1, noise=0), along_a_line(400, upto=3, noise=0.1))
    cautious = choose_reverse_step(QUICK, given, Seeds(0))
    assert cautious.for_actions <= 30
    assert cautious.strays[0] < 0.2
    monkeypatch.setattr(select, "straying", lambda demos, seeds: Straying.unknown(1))
    bold = choose_reverse_step(QUICK, given, Seeds(0))
    assert bold.strays[0] > 0.5
    assert bold.for_actions >= 150  # which would replace good actions by guesses


def test_the_error_that_is_expected_is_that_of_purified_actions():
    """In states that D_o knows nothing about, too: there the guess takes over."""
    given = DemoSet(along_a_line(100, upto=1, noise=0), along_a_line(400, upto=3, noise=0.1))
    expected = choose_reverse_step(QUICK, given, Seeds(0), candidates=(0, 300)).errors
    purified = replace(QUICK, reverse_step=300).fit(given, Seeds(0))(given.supplementary)
    right = np.sin(3 * given.supplementary.observations)
    missed = (purified.actions - right) / select.action_units(given)[1]
    assert expected[300] == pytest.approx(np.mean(missed**2), rel=0.5)
    assert expected[0] < 0.1 * expected[300]


def test_a_value_that_is_no_number_is_told_with_its_source():
    given = noisy_pointmass(1.0)
    actions = given.supplementary.actions.copy()
    actions[3, 0] = np.nan
    broken = DemoSet(given.optimal, replace(given.supplementary, actions=actions))
    with pytest.raises(EluteError, match=r"pointmass.*not finite"):
        choose_reverse_step(QUICK, broken, Seeds(0))


def test_too_few_rows_to_clone_bound_nothing():
    given = noisy_pointmass(1.0)
    few = DemoSet(given.optimal, given.supplementary.first(3))
    assert np.isinf(straying(few, Seeds(0)).noise).all()


def test_the_same_seed_chooses_the_same():
    one, other = (
        choose_reverse_step(QUICK, noisy_pointmass(1.0), Seeds(3), candidates=(0, 100))
        for _ in range(2)
    )
    assert one == other


def test_no_more_rows_than_promised_are_looked_at(monkeypatch):
    monkeypatch.setattr(select, "MOST_ROWS", 50)
    seen = []
    fit = DiffusionPurifier.fit

    def watched(self, demos, *args, **options):
        seen.append(len(demos.supplementary))
        return fit(self, demos, *args, **options)

    monkeypatch.setattr(DiffusionPurifier, "fit", watched)
    choose_reverse_step(QUICK, noisy_pointmass(1.0), Seeds(0), candidates=(0, 50))
    assert seen == [50, 50]


class Counting:
    """Demonstrations as a source that remembers how many rows it was asked for at once."""

    def __init__(self, demos):
        self.demos, self.asked = demos, []

    def __getattr__(self, name):
        return getattr(self.demos, name)

    def rows(self, start, stop):
        self.asked.append(stop - start)
        return self.demos.rows(start, stop)


def test_a_sample_of_a_large_file_is_drawn_chunk_by_chunk():
    whole = plain((30_000,) * 5)
    source = Counting(whole)
    sample = at_most(source, 500, Seeds(3))
    assert max(source.asked) < 65_536
    assert_same_rows(sample, whole.sample(500, Seeds(3)("rows")))
    assert sample.provenance == whole.provenance
    assert_same_rows(at_most(source, len(whole), Seeds(3)), whole)


def test_held_out_rows_are_not_trained_on(monkeypatch):
    fitted = []
    fit = DiffusionPurifier.fit

    def watched(self, demos, *args, **options):
        fitted.append(demos.optimal)
        return fit(self, demos, *args, **options)

    monkeypatch.setattr(DiffusionPurifier, "fit", watched)
    given = noisy_pointmass(1.0)
    choose_reverse_step(QUICK, given, Seeds(0), candidates=(0, 50))
    rows = [set(map(bytes, part.pairs)) for part in fitted]
    assert rows[0].isdisjoint(rows[1])
    assert rows[0] | rows[1] == set(map(bytes, given.optimal.pairs))


def test_too_few_optimal_rows_are_refused():
    given = noisy_pointmass(1.0)
    with pytest.raises(EluteError, match="too few"):
        choose_reverse_step(QUICK, DemoSet(given.optimal.first(3), given.supplementary), Seeds(0))


@pytest.mark.parametrize("target", ["joint", "inpaint"])
def test_actions_that_never_change_need_no_step(target):
    given = noisy_pointmass(0.5)
    still = DemoSet(
        *(replace(rows, actions=np.zeros_like(rows.actions))
          for rows in (given.optimal, given.supplementary))
    )  # fmt: skip
    brief = Training(updates=60, check_every=20)
    quick = replace(QUICK, target=target, reverse_step=60, training=brief)
    choice = choose_reverse_step(quick, still, Seeds(0), candidates=(0, 60))
    assert choice.for_actions == 0
    assert set(choice.errors.values()) == {0.0}
    trained = quick.fit(still, Seeds(0)).trained
    assert np.isfinite([value for _, value in trained.held_out]).all()
    assert trained.updates == 60


def test_a_gripper_is_neither_spoilt_nor_judged():
    driven = pointmass(12, noise=0.02)
    gripper = (np.arange(len(driven)) % 20 < 10).astype(float)[:, None]
    columns = (*driven.action_columns, Column("gripper", 0, "discrete"))
    held = replace(driven, actions=np.hstack([driven.actions, gripper]), action_columns=columns)
    good, bad = held.select(range(4)), held.select(range(4, 12))
    noise = np.random.default_rng(0).normal(size=(len(bad), 1))
    bad = replace(bad, actions=bad.actions + noise * [[1.0, 1.0, 0.0]])
    quick = DiffusionPurifier(training=Training(updates=100))
    choice = choose_reverse_step(quick, DemoSet(good, bad), Seeds(0), candidates=(0, 50))
    assert choice.strays[2] == 0.0
    assert min(choice.strays[:2]) > 0.1


def test_another_clone_is_another_choice():
    """Chosen steps depend on all of it, and are kept by `CHOICE`: raise that if this fails."""
    expected = BC(
        on="all",
        loss="mse",
        updates=800,
        hold_out=0.2,
        batch_size=256,
        learning_rate=3e-3,
        weight_decay=0.0,
        observation_noise=0.0,
        averaging=0.0,
        actor=Design(hidden=(100, 100), activation="tanh"),
    )
    assert expected == CAREFUL_CLONE
