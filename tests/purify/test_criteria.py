"""The criteria that the choice of the reverse step is compared with."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import LINEAR, QUICK, GaussianDenoiser, around, demonstrations, noisy_pointmass
from scipy.stats import chi2

from elute.demos.pointmass import pointmass
from elute.episodes import Piece
from elute.purify import criteria
from elute.purify.criteria import (
    first_alike,
    policy_errors,
    steepness,
    telling_apart,
    telling_purified,
    theorem_step,
)
from elute.rng import Seeds
from elute.theory.bounds import noise_bound
from elute.theory.inflection import inflection
from elute.types import DemoSet


def test_the_policy_criterion_reports_every_candidate(monkeypatch):
    monkeypatch.setattr(criteria, "CLONE", replace(criteria.CLONE, updates=50))
    errors = policy_errors(QUICK, noisy_pointmass(2.0), Seeds(0), candidates=(0, 200))
    assert set(errors) == {0, 200}
    assert all(value > 0 for value in errors.values())


def test_sets_are_told_apart_until_noise_covers_the_difference():
    accuracy = telling_apart(QUICK, noisy_pointmass(1.0), Seeds(0), candidates=(0, 1000))
    assert accuracy[0] > 0.65
    assert accuracy[1000] == pytest.approx(0.5, abs=0.1)


def test_equal_sets_cannot_be_told_apart():
    driven = pointmass(60)
    same = DemoSet(
        *(driven.take([Piece(row, 1) for row in range(first, len(driven), 2)]) for first in (0, 1))
    )
    accuracy = telling_apart(QUICK, same, Seeds(0), candidates=(0,))
    assert accuracy[0] < 0.62
    assert np.isfinite(accuracy[0])


def test_the_schedule_decides_how_much_noise_covers_a_difference():
    accuracy = {
        schedule: telling_apart(
            replace(QUICK, schedule=schedule), noisy_pointmass(1.0), Seeds(0), candidates=(300,)
        )[300]
        for schedule in ("linear", "cosine")
    }
    assert accuracy["linear"] < accuracy["cosine"]  # alpha_bar: .39 against .79


def test_purified_rows_become_hard_to_tell_from_good_ones():
    rng = np.random.default_rng(0)
    good, bad = rng.standard_normal((2, 300, 3))
    good[:, 2], bad[:, 2] = good[:, 0] + 0.3 * good[:, 2], bad[:, 0] + 1.5 * bad[:, 2]
    given = DemoSet(demonstrations(good), demonstrations(bad))
    joint = replace(QUICK, target="joint", descents=20)
    accuracy = telling_purified(joint, given, Seeds(0), candidates=(0, 300))
    assert accuracy[0] > 0.65
    assert first_alike(accuracy, given) == 300


def test_the_first_step_at_which_sets_are_alike():
    given = noisy_pointmass(1.0)
    few = DemoSet(given.optimal.first(50), given.supplementary.first(500))
    # 95 % of guesses at 50 and 500 rows lie below 0.5 + 1.645 sqrt((1/50 + 1/500) / 16) = 0.561
    assert first_alike({0: 0.9, 10: 0.562, 30: 0.560, 60: 0.5}, few) == 30
    assert first_alike({0: 0.9, 10: 0.8}, few) is None


def gaussian_steepness(spread, spread_s, dimension):
    """2 ||x|| / (alpha_bar s^2 + 1 - alpha_bar) with x ~ N(0, alpha_bar v^2 + 1 - alpha_bar)."""
    a = LINEAR.alpha_bar[1:]
    size = np.sqrt(a * spread_s**2 + 1 - a) * np.sqrt(chi2.ppf(0.05, dimension))
    least = np.minimum.accumulate(2 * size / (a * spread**2 + 1 - a))
    return np.concatenate([[np.inf], least]) / noise_bound(dimension, 0.05)


@pytest.mark.parametrize(("spread", "spread_s"), [(0.3, 0.3), (0.3, 0.9), (0.8, 1.2)])
def test_the_steepness_and_the_root_of_the_theorem_for_gaussian_data(spread, spread_s):
    rows = spread_s * np.random.default_rng(0).standard_normal((4000, 8))
    trained = around(GaussianDenoiser(0.0, spread), 8, reverse_step=1)
    found = steepness(trained, demonstrations(rows), Seeds(0))
    expected = gaussian_steepness(spread, spread_s, 8)
    np.testing.assert_allclose(found[1:], expected[1:], rtol=0.05)
    roots = [inflection(LINEAR, ratio) for ratio in (found, expected)]
    assert roots[0] == pytest.approx(roots[1], abs=5)
    assert 100 < roots[1] < 400


def test_noise_in_the_data_raises_the_root_of_the_theorem():
    roots = [inflection(LINEAR, gaussian_steepness(0.3, noisy, 8)) for noisy in (0.3, 0.9, 2.0)]
    assert roots == sorted(roots)
    assert roots[0] < roots[2]


def test_only_the_columns_that_are_purified_count():
    rows = demonstrations(np.random.default_rng(0).standard_normal((50, 4)))
    network = GaussianDenoiser(0.0, 0.5)
    for target, width in (("joint", 4), ("inpaint", 1)):
        trained = around(network, 4, reverse_step=1, target=target)
        assert trained.scores(rows, 10, np.random.default_rng(0)).shape == (50, width)


def test_the_theorem_names_a_step_for_a_trained_denoiser():
    quick = replace(QUICK, n_steps=50, reverse_step=50)
    root = theorem_step(quick, noisy_pointmass(1.0), Seeds(0))
    assert 0 < root <= 50
    assert root == theorem_step(quick, noisy_pointmass(1.0), Seeds(0))
