"""Algorithm 2 does what its equations say, with denoisers that are known exactly (methods 2)."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import (
    LINEAR,
    GaussianDenoiser,
    Recording,
    around,
    chain_variance,
    demonstrations,
    wiener_factor,
)

from elute.diffusion.denoiser import StepDenoiser
from elute.purify.empirical import EmpiricalPurifier
from elute.rng import Seeds
from elute.types import DemoSet

# kappa and variance at t = 5, 10, 30, 50, 100; the step is t + 1
CONSTANTS = {
    1.0: (
        (0.999102, 0.997807, 0.987710, 0.969951, 0.895142),
        (0.001696, 0.004282, 0.024328, 0.059094, 0.198622),
    ),
    0.3: (
        (0.990107, 0.976157, 0.878542, 0.743928, 0.434485),
        (0.001673, 0.004145, 0.020483, 0.040230, 0.073304),
    ),
    0.05: (
        (0.735451, 0.532113, 0.167308, 0.074673, 0.020896),
        (0.001083, 0.001761, 0.002455, 0.002521, 0.002537),
    ),
}
STEPS = (6, 11, 31, 51, 101)
MEAN = 0.4


@pytest.mark.parametrize("spread", CONSTANTS)
def test_the_constants_of_the_gaussian_chain(spread):
    factors, variances = CONSTANTS[spread]
    assert [wiener_factor(spread, i) for i in STEPS] == pytest.approx(factors, abs=6e-7)
    assert [chain_variance(spread, i) for i in STEPS] == pytest.approx(variances, abs=6e-7)


@pytest.mark.parametrize("spread", CONSTANTS)
@pytest.mark.parametrize(("step", "rows"), [(6, 24_576), (101, 24_576), (1000, 8192)])
def test_the_gaussian_oracle(spread, step, rows):
    """Mean within 3 standard errors, variance within 2 %."""
    width = 4 if rows > 8192 else 6
    start = np.array([1.5])
    transform = around(GaussianDenoiser(MEAN, spread), width, reverse_step=step)
    given = demonstrations(np.full((rows, width), start))
    purified = transform(given, seed=3).pairs
    variance = chain_variance(spread, step)
    expected = MEAN + wiener_factor(spread, step) * (1.5 - MEAN)
    error = 3 * np.sqrt(variance / purified.size) + 2e-6  # and float32
    assert purified.mean() == pytest.approx(expected, abs=error)
    assert purified.var() == pytest.approx(variance, rel=0.02)


def _descended(descents, eta, step=101):
    settings = {"reverse_step": step, "descents": descents, "eta": eta, "draws": 4}
    purified = around(GaussianDenoiser(MEAN, 0.3), 4, **settings)(
        demonstrations(np.full((4096, 4), 1.5))
    )
    return (purified.pairs.mean() - MEAN) / (1.5 - MEAN)


@pytest.mark.parametrize("descents", [1, 2, 10, 101])
def test_long_steps_with_their_noise_keep_the_mean_of_the_chain(descents):
    assert _descended(descents, eta=1.0) == pytest.approx(wiener_factor(0.3, 101), abs=0.005)


def test_steps_without_noise_leave_the_root_of_what_the_chain_leaves():
    """DDIM transports quantiles: its mean over draws is not that of Algorithm 2."""
    expected = np.sqrt(wiener_factor(0.3, 101))
    assert _descended(101, eta=0.0) == pytest.approx(expected, abs=0.005)


def test_draws_average_the_noise_away():
    one, many = (
        around(GaussianDenoiser(MEAN, 0.3), 4, reverse_step=101, draws=draws) for draws in (1, 8)
    )
    given = demonstrations(np.full((4096, 4), 1.5))
    assert many(given).pairs.var() == pytest.approx(one(given).pairs.var() / 8, rel=0.05)


def test_from_the_top_nothing_is_left_of_the_start():
    rng = Seeds(0)("start")
    given = demonstrations(3 * rng.standard_normal((8192, 6)))
    purified = around(GaussianDenoiser(MEAN, 0.5), 6, reverse_step=1000)(given).pairs
    correlation = np.corrcoef(given.pairs.ravel(), purified.ravel())[0, 1]
    assert abs(correlation) < 0.02
    assert purified.mean() == pytest.approx(MEAN, abs=0.02)
    assert purified.std() == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("step", [1, 6, 101])
def test_a_point_mass_draws_everything_onto_itself(step):
    given = demonstrations(Seeds(0)("start").standard_normal((64, 4)))
    purified = around(GaussianDenoiser(MEAN, 0.0), 4, reverse_step=step)(given).pairs
    np.testing.assert_allclose(purified, MEAN, atol=1e-5)


def test_step_zero_is_the_identity():
    given = demonstrations(Seeds(0)("start").standard_normal((64, 4)))
    purified = around(GaussianDenoiser(MEAN, 0.3), 4, reverse_step=0)(given)
    assert np.array_equal(purified.pairs, given.pairs)


@pytest.mark.parametrize("descents", [0, 10])
def test_the_displacement_grows_with_the_step(descents):
    given = demonstrations(Seeds(0)("start").standard_normal((2000, 4)))
    moved = [
        np.linalg.norm(
            around(GaussianDenoiser(MEAN, 0.3), 4, reverse_step=i, descents=descents)(given).pairs
            - given.pairs,
            axis=1,
        ).mean()
        for i in (0, 1, 5, 10, 30, 100, 300)
    ]
    assert moved[0] == 0
    assert (np.diff(moved) > 0).all()


@pytest.mark.parametrize("step", [1, 101, 600])
def test_the_forward_marginal(step):
    network = Recording()
    around(network, 8, reverse_step=step, descents=1)(demonstrations(np.full((4096, 8), 1.5)))
    seen = torch.cat([x for _, x in network.seen])
    spread = LINEAR.noise[step]
    assert {i for i, _ in network.seen} == {step}
    assert float(seen.mean()) == pytest.approx(LINEAR.signal[step] * 1.5, abs=4 * spread / 181)
    assert float(seen.var()) == pytest.approx(1 - LINEAR.alpha_bar[step], rel=0.03)


def test_exactly_the_reverse_step_is_descended_and_no_more():
    network = Recording()
    around(network, 4, reverse_step=7)(demonstrations(np.zeros((10, 4))))
    assert [i for i, _ in network.seen] == [7, 6, 5, 4, 3, 2, 1]


def test_inpainting_holds_the_diffused_state_all_the_way_down():
    network = Recording()
    given = demonstrations(np.full((4096, 6), 2.0))
    transform = around(network, 6, reverse_step=301, descents=3, target="inpaint")
    transform(given)
    for step in (301, 201, 100):
        states = torch.cat([x[:, :5] for i, x in network.seen if i == step])
        assert float(states.mean()) == pytest.approx(2 * LINEAR.signal[step], abs=0.02)
        assert float(states.std()) == pytest.approx(LINEAR.noise[step], rel=0.02)


def test_inpainting_conditions_the_action_on_the_state():
    """Rows of D_o on two points: the state decides which one, whatever the action says."""
    optimal = np.array([[-1.0, -1.0], [1.0, 1.0]]).repeat(5, axis=0)
    rng = Seeds(0)("noise")
    noisy = optimal.repeat(50, axis=0)
    noisy[:, 1] = rng.standard_normal(len(noisy))
    demos = DemoSet(demonstrations(optimal), demonstrations(noisy))
    purifier = EmpiricalPurifier(reverse_step=100, target="inpaint", standardise=False)
    purified = purifier.fit(demos, Seeds(0))(demos.supplementary)
    assert (np.abs(purified.actions - noisy[:, :1]) < 0.1).mean() > 0.99
    assert np.array_equal(purified.observations, noisy[:, :1])


@pytest.mark.parametrize("step", [5, 100])
def test_the_empirical_score_maps_every_row_onto_a_row_of_the_optimal_set(step):
    rng = Seeds(0)("points")
    optimal, noisy = rng.uniform(-1, 1, (40, 2)), rng.uniform(-1, 1, (500, 2))
    demos = DemoSet(demonstrations(optimal), demonstrations(noisy))
    purifier = EmpiricalPurifier(reverse_step=step, standardise=False)
    purified = purifier.fit(demos, Seeds(0))(demos.supplementary).pairs
    apart = [np.linalg.norm(x[:, None] - optimal, axis=2).min(axis=1) for x in (noisy, purified)]
    assert apart[0].mean() > 0.05
    assert apart[1].mean() < 0.001


# Rows around the border of two noise blocks (4096), in as many chunks as you like.
FIRST, ROWS = 3500, 1300
UNEVEN = demonstrations(Seeds(1)("rows").standard_normal((ROWS, 5)))


def _network():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return StepDenoiser(5, width=64, depth=2)


TRANSFORM = around(_network(), 5, reverse_step=40, descents=3, eta=0.5, draws=2)
WHOLE = TRANSFORM(UNEVEN, first_row=FIRST, seed=4).pairs


@settings(max_examples=8)
@given(st.sets(st.integers(1, ROWS - 1), max_size=4))
def test_the_result_does_not_depend_on_how_rows_are_cut(cuts):
    edges = [0, *sorted(cuts), ROWS]
    parts = [TRANSFORM(UNEVEN[a:b], first_row=FIRST + a, seed=4).pairs for a, b in pairwise(edges)]
    assert np.array_equal(np.concatenate(parts), WHOLE)


def test_noise_belongs_to_the_row_number_and_the_seed():
    assert not np.array_equal(TRANSFORM(UNEVEN, first_row=0, seed=4).pairs, WHOLE)
    assert not np.array_equal(TRANSFORM(UNEVEN, first_row=FIRST, seed=5).pairs, WHOLE)
