"""The theorems on data: with exact scores, and with the catalogue's recordings."""

from dataclasses import replace

import numpy as np
import pytest

from elute.diffusion.schedule import Schedule
from elute.errors import EluteError
from elute.theory.bounds import noise_bound, noise_term, path_score_term
from elute.theory.claims.data import Distances, distance_claims, forward_claims
from elute.theory.data import (
    STEPS,
    data_bounds,
    forward,
    inflections,
    score_bounds,
    spread_steps,
)

LINEAR = Schedule.linear()
SPREAD, DIMENSION = 0.3, 4


def gaussian_scores(rows, seed=0):
    """Exact, for rows of N(0, SPREAD^2)."""

    def scores_at(step):
        rng = np.random.default_rng([seed, step])
        a = LINEAR.alpha_bar[step]
        x = np.sqrt(a) * rows + np.sqrt(1 - a) * rng.standard_normal(rows.shape)
        return -x / (a * SPREAD**2 + 1 - a)

    return scores_at


@pytest.fixture(scope="module")
def rows():
    return SPREAD * np.random.default_rng(3).standard_normal((800, DIMENSION))


@pytest.fixture(scope="module")
def scores(rows):
    return score_bounds(gaussian_scores(rows), 1000)


def test_score_bounds_are_quantiles_of_the_norm(rows, scores):
    assert scores.dimension == DIMENSION
    for step in (1, 40, 1000):
        a = LINEAR.alpha_bar[step]
        deviation = np.sqrt(a * SPREAD**2 + 1 - a)
        low, high = np.sqrt([0.711, 9.488])  # 5 % and 95 % of chi-squared with 4 degrees
        assert scores.least[step] == pytest.approx(2 * low / deviation, rel=0.12)
        assert scores.most[step] == pytest.approx(2 * high / deviation, rel=0.06)


def test_between_the_steps_asked_for_bounds_are_drawn_by_lines(rows):
    asked = []

    def scores_at(step):
        asked.append(step)
        return np.full((10, 2), 1.0 / step)

    found = score_bounds(scores_at, 500)
    assert len(asked) <= 100
    steps = np.arange(1, 501)
    assert found.most[1:] == pytest.approx(2 * np.sqrt(2) / steps)
    least, most = found.so_far
    assert least[1:] == pytest.approx(found.least[1:])  # falls, so the least so far is the last
    assert most[1:] == pytest.approx(np.full(500, found.most[1]))


def test_without_a_step_there_is_no_score():
    with pytest.raises(EluteError, match="not known at any step"):
        score_bounds(lambda step: np.ones((3, 2)), 0)


def test_steps_are_spread_from_the_first_to_the_last():
    steps = spread_steps(1000, 28)
    assert steps[0] == 1
    assert steps[-1] == 1000
    assert len(steps) <= 28
    assert spread_steps(1, 5) == (1,)


def test_bounds_of_data(scores):
    found = data_bounds(LINEAR, scores, 1.3)
    assert found.path_upper[0] == found.upper[0] == found.printed_upper[0] == 1.3
    assert found.path_lower[0] == 1.3
    assert found.printed_lower[0] == -1.3
    i = 120
    zeta = -0.5 * np.log(LINEAR.alpha_bar[i])
    rest = noise_term(zeta, noise_bound(DIMENSION, 0.05))
    assert found.path_upper[i] == pytest.approx(
        1.3 + path_score_term(LINEAR, scores.most)[i] + rest
    )
    assert (found.path_upper[1:] <= 1.02 * found.upper[1:]).all()
    reach = found.reaching_step
    assert found.path_lower[reach] <= 0 < found.path_lower[reach - 1]
    assert data_bounds(LINEAR, scores, 1e6).reaching_step is None


def test_a_larger_delta_needs_a_larger_step_to_be_undone(scores):
    steps = [data_bounds(LINEAR, scores, delta).reaching_step for delta in (0.2, 1.0, 4.0)]
    assert steps == sorted(steps)
    assert steps[0] < steps[2]


def test_inflections_of_data(scores):
    steep = replace(scores, least=5 * scores.least)
    found = inflections(LINEAR, steep)
    assert found.printed is None
    assert 1 <= found.corrected <= 1000
    assert found.ratio == pytest.approx(
        steep.least[1 : found.corrected + 1].min() / noise_bound(DIMENSION, 0.05)
    )
    half = replace(scores, least=steep.least / 2)
    assert inflections(LINEAR, half).corrected < found.corrected
    short = score_bounds(lambda step: np.full((10, 2), 1e3), 50)
    assert inflections(LINEAR, short).corrected is None


def chain(rows, step, rng):
    x = LINEAR.signal[step] * rows + LINEAR.noise[step] * rng.standard_normal(rows.shape)
    for i in range(step, 0, -1):
        a = LINEAR.alpha_bar[i]
        x = (x - LINEAR.beta[i] * x / (a * SPREAD**2 + 1 - a)) / np.sqrt(LINEAR.alpha[i])
        x += np.sqrt(LINEAR.beta[i]) * rng.standard_normal(x.shape) * (i > 1)
    return x


def test_claims_about_distances(rows):
    rng = np.random.default_rng(0)
    delta = 0.6 * rng.standard_normal(rows.shape)
    scores = score_bounds(gaussian_scores(rows + delta), 1000)
    steps = (1, 10, 60, 150, 300)
    purified = np.array(
        [np.linalg.norm(chain(rows + delta, step, rng) - rows, axis=1) for step in steps]
    )
    found = Distances(steps, purified, np.linalg.norm(delta, axis=1))
    claims = distance_claims(found, scores, LINEAR, inflections(LINEAR, scores).corrected)
    above, below, left, around = (claim.check() for claim in claims)
    assert above.verdict == "holds"
    assert above.computed["a bound for each step"] >= 0.95
    assert below.verdict == "vacuous"
    assert left.verdict == "holds"
    assert left.computed["largest share of rows with a bound above 0"] > 0.9
    undone = replace(found, purified=0.1 * found.purified)
    assert distance_claims(undone, scores, LINEAR, 60)[2].check().verdict == "fails"
    none = replace(found, delta=0.0 * found.delta)
    assert distance_claims(none, scores, LINEAR, 60)[2].check().verdict == "vacuous"
    mean = data_bounds(LINEAR, scores, found.delta.mean()).path_lower[list(steps)]
    assert (purified.mean(axis=1) >= mean).all()
    assert around.computed["best step"] == found.best_step > 1
    far = replace(found, purified=purified + 1e3)
    assert distance_claims(far, scores, LINEAR, 60)[0].check().verdict == "fails"
    assert far.best_step == 0
    assert distance_claims(found, scores, LINEAR, None)[3].check().verdict == "fails"


def test_claims_about_the_forward_process():
    rng = np.random.default_rng(0)
    good, noisy = rng.standard_normal((300, 2)), 0.5 + 1.4 * rng.standard_normal((300, 2))
    steps = tuple(sorted({*spread_steps(1000, 40), *STEPS}))
    found = forward(good, noisy, LINEAR, steps, rng)
    assert [claim.check().verdict for claim in forward_claims(found, LINEAR)] == ["holds", "holds"]
    assert (np.diff(found.gaussian) < 0).all()
    rising = replace(found, sample=replace(found.sample, kl=found.sample.kl[::-1]))
    assert [claim.check().verdict for claim in forward_claims(rising, LINEAR)] == ["fails", "fails"]
    for factor in (0.7, 1.4):  # slower than the theorem says, and faster
        other = replace(found, sample=replace(found.sample, fisher=factor * found.sample.fisher))
        assert forward_claims(other, LINEAR)[1].check().verdict == "fails"


def test_sets_of_one_distribution_are_alike_and_shifted_ones_are_not():
    rng = np.random.default_rng(1)
    good, same = (rng.standard_normal((400, 2)) for _ in range(2))
    early = forward(good, same, LINEAR, STEPS, rng)
    late = forward(good, same + 3.0, LINEAR, STEPS, rng)
    assert early.alike_step is not None
    assert late.alike_step is None or late.alike_step > early.alike_step
    assert early.alike_after == next((s for s in STEPS[::-1] if s < early.alike_step), 0)
    assert late.alike_after >= early.alike_step


@pytest.mark.mujoco
def test_theorem_1_on_collected_data():
    pytest.importorskip("mujoco", reason="the catalogue is recorded in the simulator")
    from elute.collect.catalogue import fetch  # noqa: PLC0415
    from elute.demos.files import load  # noqa: PLC0415

    good = load(fetch("halfcheetah/expert")).first(300).pairs
    steps = spread_steps(1000, 40)
    for level in ("light", "heavy"):
        noisy = load(fetch(f"halfcheetah/action-noise/{level}")).first(300).pairs
        both = np.concatenate([good, noisy])
        scaled = [(rows - both.mean(axis=0)) / both.std(axis=0) for rows in (good, noisy)]
        found = forward(*scaled, LINEAR, steps, np.random.default_rng(0))
        assert [claim.check().verdict for claim in forward_claims(found, LINEAR)] == ["holds"] * 2
        assert (np.diff(found.gaussian) < 0).all()
        assert found.floor.kl[0] < found.halves.kl[0]
