"""Theorem 2 and Proposition 3: constants, derivatives by sympy and by differences, simulation."""

import numpy as np
import pytest
import sympy as sp

from elute.diffusion.schedule import Schedule
from elute.theory.bounds import (
    exceedance,
    lambda_curvature,
    lambda_slope,
    least_failure_prob,
    lower_bound,
    noise_bound,
    noise_term,
    path_score_term,
    premise_bracket,
    required_ratio,
    reverse_variance,
    score_term,
    upper_bound,
)
from elute.theory.zeta import REAL, SIMPLIFIED, LinearBeta

LINEAR = Schedule.linear()


@pytest.mark.parametrize(
    ("dimension", "bound", "least"),
    [(14, 8.29, 0.348), (23, 9.90, 0.113), (51, 13.40, 0.0034), (119, 18.88, 6.9e-7)],
)
def test_printed_constants(dimension, bound, least):
    assert noise_bound(dimension, 0.05, form="printed") == pytest.approx(bound, abs=0.005)
    assert least_failure_prob(dimension) == pytest.approx(least, rel=0.01)


def test_bounds_take_arrays():
    dimensions, sigmas = np.array([[14], [23]]), np.array([1e-4, 0.05, 0.2])
    for form in ("printed", "corrected"):
        bound = noise_bound(dimensions, sigmas, form=form)
        assert bound.shape == (2, 3)
        assert bound[1, 1] == noise_bound(23, 0.05, form=form)


@pytest.mark.parametrize("form", ["printed", "corrected"])
@pytest.mark.parametrize("dimension", [6, 14, 23])
def test_the_noise_stays_below_c_as_often_as_theorem_2_says(form, dimension):
    rng = np.random.default_rng(0)
    norms = np.sqrt(2 * rng.chisquare(dimension, 200_000))
    for failure_prob in (0.05, 0.01):
        bound = noise_bound(dimension, failure_prob, form=form)
        outside = float((norms > bound).mean())
        assert outside <= failure_prob
        exact = float(exceedance(dimension, bound))
        assert outside == pytest.approx(exact, abs=4 * np.sqrt(exact / len(norms)) + 1e-5)


def test_the_printed_c_fails_in_few_dimensions_and_the_corrected_never():
    low = np.arange(1, 7)
    assert (exceedance(low, noise_bound(low, 1e-4, form="printed")) > 1e-4).all()
    d, sigma = np.meshgrid(np.arange(1, 300), np.geomspace(1e-8, 0.5, 30))
    assert (exceedance(d, noise_bound(d, sigma)) <= sigma).all()


def test_symbolic_derivatives_of_lambda():
    t, first, growth, least, noise, delta = sp.symbols("t b g C1 C2 delta", positive=True)
    zeta = first * t / 2 + growth * t**2 / 4
    bound = zeta * least - delta - sp.sqrt(sp.exp(2 * zeta) - 1) * noise
    numbers = {first: 0.1, growth: 19.9, least: 3, noise: 1, delta: 2}
    slope = sp.lambdify(t, sp.diff(bound, t).subs(numbers))
    bend = sp.lambdify(t, sp.diff(bound, t, 2).subs(numbers))
    times = np.array([0.02, 0.1, 0.3, 0.5, 0.9])
    arguments = {"score": 3.0, "noise": 1.0}
    assert lambda_slope(times, REAL, **arguments) == pytest.approx(slope(times), rel=1e-10)
    assert lambda_curvature(times, REAL, **arguments) == pytest.approx(bend(times), rel=1e-9)


def test_symbolic_form_of_the_curvature_for_any_zeta():
    t, least, noise = sp.symbols("t C1 C2", positive=True)
    zeta = sp.Function("zeta")(t)
    y = sp.exp(2 * zeta)
    bound = zeta * least - sp.sqrt(y - 1) * noise
    up, bend = zeta.diff(t), zeta.diff(t, 2)
    ours = bend * least - noise * y * (y - 1) ** sp.Rational(-3, 2) * (
        bend * (y - 1) + up**2 * (y - 2)
    )
    assert sp.simplify(bound.diff(t, 2) - ours) == 0
    assert sp.simplify(bound.diff(t) - up * (least - noise * y / sp.sqrt(y - 1))) == 0


def test_the_printed_derivatives_are_those_of_nothing():
    printed = lambda_slope([0.1, 0.3, 0.5], REAL, score=3.0, noise=1.0, form="printed")
    assert printed == pytest.approx([0.063, 6.65, 13.6], abs=0.005, rel=0.001)
    true = lambda_slope([0.1, 0.3, 0.5], REAL, score=3.0, noise=1.0)
    assert true == pytest.approx([-0.292, 2.90, -3.55], abs=0.005)
    bends = [
        float(lambda_curvature(0.5, REAL, score=3.0, noise=1.0, form=form))
        for form in ("printed", "corrected")
    ]
    assert bends == pytest.approx([113, -92.6], abs=0.2)


@pytest.mark.parametrize("beta", [REAL, SIMPLIFIED, LinearBeta(1.0, 3.0)])
def test_derivatives_by_differences(beta):
    t, h = np.linspace(0.1, 0.9, 9), 1e-4

    def bound(t):
        return lower_bound(beta.zeta(t), score=4.0, delta=0.3, noise=1.5, form="printed")

    slope = (bound(t + h) - bound(t - h)) / (2 * h)
    bend = (bound(t + h) - 2 * bound(t) + bound(t - h)) / h**2
    assert lambda_slope(t, beta, score=4.0, noise=1.5) == pytest.approx(slope, rel=1e-4, abs=1e-4)
    assert lambda_curvature(t, beta, score=4.0, noise=1.5) == pytest.approx(
        bend, rel=1e-3, abs=0.01
    )


def test_thresholds_of_lambda():
    zeta = np.linspace(1e-3, 5, 500_001)
    y = np.exp(2 * zeta)
    turning = y / np.sqrt(y - 1)
    assert turning.min() == pytest.approx(2.0, abs=1e-8)
    assert zeta[turning.argmin()] == pytest.approx(0.34657, abs=1e-4)
    assert required_ratio(zeta).min() == pytest.approx(2.48527, abs=1e-5)
    assert zeta[required_ratio(zeta).argmin()] == pytest.approx(0.79681, abs=1e-4)
    assert premise_bracket(0.79681) == pytest.approx(0.0, abs=1e-4)
    assert (premise_bracket(zeta, form="printed") > 0).all()


def test_the_bracket_is_lambdas_slope_where_lambda_is_zero():
    for form in ("printed", "corrected"):
        for t in (0.2, 0.5):
            zeta, delta, noise = float(REAL.zeta(t)), 0.7, 1.3
            root = np.sqrt(np.expm1(2 * zeta))
            score = (delta + root * noise) / zeta  # lambda = 0
            slope = lambda_slope(t, REAL, score=score, noise=noise, form=form)
            bracket = premise_bracket(zeta, delta=delta, noise=noise, form=form)
            assert slope == pytest.approx(float(REAL.slope(t)) / zeta / root * bracket)


def test_a_constant_score_is_carried_as_the_corrected_term_says():
    for t, printed, corrected in ((0.3, 0.93, 1.18), (0.5, 2.54, 5.11), (0.7, 4.95, 21.7)):
        zeta = REAL.zeta(t)
        assert score_term(zeta, 2.0, form="printed") == pytest.approx(printed, abs=0.006)
        assert score_term(zeta, 2.0) == pytest.approx(corrected, abs=0.02)
        moved, n = 0.0, 20_000
        for beta in REAL.beta(np.linspace(t, 0, n)) * t / n:
            moved += 0.5 * beta * moved + beta
        assert score_term(zeta, 2.0) == pytest.approx(moved, rel=2e-3)


def test_a_bound_for_each_step_tends_to_the_constant_one():
    path = path_score_term(LINEAR, np.full(1001, 2.0))
    zeta = -0.5 * np.log(LINEAR.alpha_bar)
    assert path[[100, 300, 500]] == pytest.approx(score_term(zeta, 2.0)[[100, 300, 500]], rel=0.02)


def chain(x_s, step, score, rng):
    """Eq. 6 and Eq. 7 with any score; the largest 2 ||score|| on the way of each row."""
    x = LINEAR.signal[step] * x_s + LINEAR.noise[step] * rng.standard_normal(x_s.shape)
    most = np.zeros((step + 1, len(x)))
    for i in range(step, 0, -1):
        s = score(x, i)
        most[i] = 2 * np.linalg.norm(s, axis=1)
        x = (x + LINEAR.beta[i] * s) / np.sqrt(LINEAR.alpha[i])
        x += np.sqrt(LINEAR.beta[i]) * rng.standard_normal(x.shape) * (i > 1)
    return x, most


@pytest.mark.parametrize("step", [30, 200, 400])
def test_theorem_2_corrected_holds_with_its_probability(step):
    rng, d, n, sigma = np.random.default_rng(0), 6, 2000, 0.05
    x_o = 0.7 * rng.standard_normal((n, d))
    delta = 0.5 * rng.standard_normal((n, d))

    def score(x, i):
        return -x / (LINEAR.alpha_bar[i] * 0.49 + 1 - LINEAR.alpha_bar[i])

    x_hat, most = chain(x_o + delta, step, score, rng)
    distance, size = (np.linalg.norm(v, axis=1) for v in (x_hat - x_o, delta))
    zeta = -0.5 * np.log(LINEAR.alpha_bar[step])
    noise = noise_bound(d, sigma)
    path = np.array([path_score_term(LINEAR, row)[-1] for row in most.T])
    rest = noise_term(zeta, noise)
    within = (distance <= size + path + rest) & (distance >= size - path - rest)
    assert within.mean() >= 1 - sigma
    constant = {"score": most.max(axis=0), "delta": size, "noise": noise}
    assert (distance <= 1.02 * upper_bound(zeta, **constant)).mean() >= 1 - sigma
    assert (distance >= lower_bound(zeta, **constant) - 0.02 * path).mean() >= 1 - sigma


def test_the_printed_upper_bound_is_broken_by_a_steady_score():
    rng, d, step = np.random.default_rng(1), 6, 500
    pull = np.full(d, 40.0 / np.sqrt(d))
    x_hat, _ = chain(np.zeros((500, d)), step, lambda x, i: np.broadcast_to(pull, x.shape), rng)
    zeta = -0.5 * np.log(LINEAR.alpha_bar[step])
    numbers = {"score": 80.0, "delta": 0.0, "noise": noise_bound(d, 0.05)}
    distance = np.linalg.norm(x_hat, axis=1)
    assert (distance > upper_bound(zeta, **numbers, form="printed")).all()
    assert (distance <= 1.02 * upper_bound(zeta, **numbers)).all()


def test_variance_of_the_way_back():
    rng, step = np.random.default_rng(2), 300
    x, _ = chain(np.zeros((20_000, 1)), step, lambda x, i: np.zeros_like(x), rng)
    zeta = -0.5 * np.log(LINEAR.alpha_bar[step])
    assert x.var() == pytest.approx(2 * float(reverse_variance(zeta)), rel=0.03)
    assert reverse_variance(zeta, form="printed") == -reverse_variance(zeta)
