"""Theorem 4 as corrected has the constants of methods 17.5 and 21, and is the bend of lambda."""

import numpy as np
import pytest

from elute.diffusion.schedule import Schedule, Time
from elute.errors import EluteError
from elute.theory.bounds import noise_bound
from elute.theory.inflection import bend, inflection

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
