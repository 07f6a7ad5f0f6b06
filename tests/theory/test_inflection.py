"""Theorem 4 as corrected has the constants of methods 17.5 and 21, and is the bend of lambda."""

import numpy as np
import pytest

from elute.diffusion.schedule import Schedule, Time
from elute.errors import EluteError
from elute.theory.bounds import lambda_curvature, lambda_slope, noise_bound
from elute.theory.inflection import (
    bend,
    inflection,
    inflection_ratio,
    inflection_times,
    printed_curvature_ratio,
    printed_slope_ratio,
)
from elute.theory.zeta import REAL, SIMPLIFIED

LINEAR = Schedule.linear()
FINE = Schedule.linear(n_steps=20_000, first=1e-4 / 20, last=0.02 / 20)
"""The same beta(t) in smaller steps."""


@pytest.mark.parametrize(
    ("ratio", "time"), [(2.0, 0.259), (2.485, 0.289), (3.0, 0.315), (5.0, 0.384)]
)
def test_the_roots_for_the_papers_schedule(ratio, time):
    step = inflection(LINEAR, np.full(1001, ratio))
    assert step / 1000 == pytest.approx(time, abs=1.5e-3)


@pytest.mark.parametrize(("zeta", "value"), [(0.34657, 2.0), (0.79681, 5.4359)])
def test_g_where_beta_grows_in_proportion_to_time(zeta, value):
    steep = Schedule(np.arange(20_001) * 20.0 / 20_000**2)  # beta(t) = 20 t
    step = round(np.sqrt(zeta / 5) * 20_000)
    assert bend(steep)[step] == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize("time", [0.1, 0.2, 0.3, 0.5])
def test_lambda_bends_where_g_says(time):
    def curvature(ratio, h=1e-3):
        def bound(t):
            zeta = FINE.zeta(Time(t))
            return zeta * ratio - np.sqrt(np.expm1(2 * zeta))

        return (bound(time + h) - 2 * bound(time) + bound(time - h)) / h**2

    g = float(bend(FINE)[round(time * 20_000)])
    scale = abs(curvature(g + 1.0) - curvature(g - 1.0))
    assert abs(curvature(g)) < 1e-3 * scale
    assert curvature(g + 0.05) > 0 > curvature(g - 0.05)


@pytest.mark.parametrize("schedule", [LINEAR, Schedule.cosine()], ids=["linear", "cosine"])
def test_g_grows_so_that_there_is_one_root(schedule):
    g = bend(schedule)[:900]
    assert (np.diff(g[1:]) > 0).all()
    assert g[0] == -np.inf


def test_a_ratio_that_is_never_reached_gives_the_last_step():
    assert inflection(LINEAR, np.full(1001, 1e9)) == 1000


@pytest.mark.parametrize("dimension", [1, 6, 23, 119])
@pytest.mark.parametrize("failure_prob", [0.05, 0.2])
def test_the_norm_of_noise_stays_below_its_bound(dimension, failure_prob):
    eps = np.random.default_rng(0).standard_normal((20_000, dimension))
    bound = noise_bound(dimension, failure_prob)
    outside = float((np.sqrt(2) * np.linalg.norm(eps, axis=1) > bound).mean())
    assert outside < failure_prob


@pytest.mark.parametrize(
    ("dimension", "papers"), [(14, 8.29), (23, 9.90), (51, 13.40), (119, 18.88)]
)
def test_the_bound_is_a_little_tighter_than_the_papers(dimension, papers):
    assert 0.95 * papers < noise_bound(dimension, 0.05) < papers


@pytest.mark.parametrize("failure_prob", [0.0, 1.0, -0.1])
def test_what_is_no_probability_is_refused(failure_prob):
    with pytest.raises(EluteError, match="expected 0 to 1"):
        noise_bound(6, failure_prob)


@pytest.mark.parametrize(
    ("ratio", "time"), [(2.0, 0.259), (2.485, 0.289), (3.0, 0.315), (5.0, 0.384)]
)
def test_every_root_is_found_and_there_is_one(ratio, time):
    roots = inflection_times(ratio)
    assert roots == pytest.approx([time], abs=6e-4)
    assert inflection_ratio(roots[0]) == pytest.approx(ratio)
    assert len(inflection_times(ratio, form="printed")) == 0


def test_the_printed_equation_has_two_solutions_or_none():
    assert len(inflection_times(0.3, SIMPLIFIED, form="printed")) == 2
    assert len(inflection_times(0.32, SIMPLIFIED, form="printed")) == 0
    zeta = np.linspace(0.01, 2, 20_001)
    side = inflection_ratio(SIMPLIFIED.time(zeta), SIMPLIFIED, form="printed")
    assert side.max() == pytest.approx(0.3190, abs=1e-4)
    assert zeta[side.argmax()] == pytest.approx(0.5178, abs=1e-3)


def test_what_the_printed_derivatives_would_give_is_something_else():
    t = np.linspace(0.05, 0.5, 10)
    slopes = printed_slope_ratio(t, SIMPLIFIED)
    assert (slopes < 0).all()
    h = 1e-6
    for time, ratio in zip(t, slopes, strict=True):
        up, down = (
            lambda_slope(time + s, SIMPLIFIED, score=ratio, noise=1.0, form="printed")
            for s in (h, -h)
        )
        assert (up - down) / (2 * h) == pytest.approx(0.0, abs=1e-3)
    bends = lambda_curvature(
        t, SIMPLIFIED, score=printed_curvature_ratio(t, SIMPLIFIED), noise=1.0, form="printed"
    )
    assert bends == pytest.approx(np.zeros(10), abs=1e-9)
    printed = inflection_ratio(t, SIMPLIFIED, form="printed")
    assert np.abs(printed - slopes).min() > 0.1


def test_the_roots_are_where_lambda_bends():
    for ratio in (1.0, 3.0):
        (root,) = inflection_times(ratio)
        before, after = lambda_curvature([root - 0.01, root + 0.01], REAL, score=ratio, noise=1.0)
        assert before > 0 > after


def test_the_sides_of_schedules_and_of_times_agree():
    steps = np.arange(50, 1000, 50)
    for form in ("printed", "corrected"):
        sides = bend(FINE, form=form)[20 * steps]
        assert sides == pytest.approx(inflection_ratio(steps / 1000, form=form), rel=2e-3)
