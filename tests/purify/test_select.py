"""The reverse step is chosen from D_o and D_s alone."""

from dataclasses import replace

import numpy as np
import pytest

from builders import assert_same_rows, plain
from elute.demos.corrupt import corrupt
from elute.demos.pointmass import pointmass
from elute.diffusion.ddpm import Training
from elute.episodes import Piece
from elute.errors import EluteError
from elute.purify import select
from elute.purify.diffusion import DiffusionPurifier
from elute.purify.select import at_most, choose_reverse_step, policy_errors, telling_apart
from elute.rng import Seeds
from elute.types import DemoSet

QUICK = DiffusionPurifier(training=Training(updates=200, check_every=100))


def demos(level):
    driven = pointmass(30, noise=0.02)
    good, other = driven.select(range(4)), driven.select(range(4, 16))
    return DemoSet(optimal=good, supplementary=corrupt(other, "gaussian", level))


def test_noise_calls_for_a_step_and_every_candidate_is_reported():
    choice = choose_reverse_step(QUICK, demos(2.0), Seeds(0), candidates=(0, 60, 200))
    assert set(choice.errors) == {0, 60, 200}
    assert choice.reverse_step > 0
    assert choice.errors[choice.reverse_step] == min(choice.errors.values())


def test_more_noise_calls_for_a_larger_step():
    steps = [
        choose_reverse_step(QUICK, demos(level), Seeds(0)).reverse_step for level in (0.0, 2.0)
    ]
    assert steps[0] < steps[1]


def test_the_noise_is_estimated_from_the_two_sets_alone():
    found = choose_reverse_step(QUICK, demos(2.0), Seeds(0), candidates=(0, 300)).noise
    assert found == pytest.approx((2.0, 2.0), rel=0.25)


def test_the_policy_criterion_reports_every_candidate(monkeypatch):
    monkeypatch.setattr(select, "CLONE", select.BC(updates=50))
    errors = policy_errors(QUICK, demos(2.0), Seeds(0), candidates=(0, 200))
    assert set(errors) == {0, 200}
    assert all(value > 0 for value in errors.values())


def test_the_same_seed_chooses_the_same():
    one, other = (
        choose_reverse_step(QUICK, demos(1.0), Seeds(3), candidates=(0, 100)) for _ in range(2)
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
    choose_reverse_step(QUICK, demos(1.0), Seeds(0), candidates=(0, 50))
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
    given = demos(1.0)
    choose_reverse_step(QUICK, given, Seeds(0), candidates=(0, 50))
    rows = [set(map(bytes, part.pairs)) for part in fitted]
    assert rows[0].isdisjoint(rows[1])
    assert rows[0] | rows[1] == set(map(bytes, given.optimal.pairs))


def test_too_few_optimal_rows_are_refused():
    given = demos(1.0)
    with pytest.raises(EluteError, match="too few"):
        choose_reverse_step(QUICK, replace(given, optimal=given.optimal.first(3)), Seeds(0))


def test_sets_are_told_apart_until_noise_covers_the_difference():
    given = demos(1.0)
    accuracy = telling_apart(given, Seeds(0), candidates=(0, 1000))
    assert accuracy[0] > 0.65
    assert accuracy[1000] == pytest.approx(0.5, abs=0.1)


def test_equal_sets_cannot_be_told_apart():
    driven = pointmass(60)
    same = DemoSet(
        *(driven.take([Piece(row, 1) for row in range(first, len(driven), 2)]) for first in (0, 1))
    )
    assert telling_apart(same, Seeds(0), candidates=(0,))[0] < 0.62
    assert np.isfinite(telling_apart(same, Seeds(0), candidates=(0,))[0])
