"""The schedule has the constants of the paper's setting (methods 21; 0-based t is step t + 1)."""

from itertools import pairwise

import numpy as np
import pytest
from oracles import Recording, around, demonstrations

from elute.demos.pointmass import pointmass
from elute.diffusion.ddpm import Training
from elute.diffusion.schedule import Schedule, Step, Time
from elute.errors import EluteError
from elute.purify.diffusion import DiffusionPurifier
from elute.rng import Seeds
from elute.types import DemoSet

LINEAR = Schedule.linear()
ALPHA_BAR = {
    0: 0.9999000,
    1: 0.9997801,
    3: 0.9994806,
    5: 0.9991015,
    10: 0.9978066,
    30: 0.9877104,
    50: 0.9699515,
    100: 0.8951416,
    300: 0.3940111,
    500: 0.0777967,
}
NOISE = {1: 0.015, 3: 0.023, 5: 0.030, 10: 0.047, 30: 0.111, 50: 0.173, 100: 0.324, 300: 0.779}
REMOVED = {1: 0.018, 3: 0.033, 5: 0.046, 10: 0.078, 30: 0.204, 50: 0.331, 100: 0.650}


@pytest.mark.parametrize(("t", "expected"), ALPHA_BAR.items())
def test_alpha_bar(t, expected):
    assert LINEAR.alpha_bar[t + 1] == pytest.approx(expected, abs=5e-8)


def test_the_ends():
    assert LINEAR.n_steps == 1000
    assert LINEAR.alpha_bar[0] == 1.0
    assert LINEAR.noise[0] == 0.0
    assert LINEAR.beta[1] == 1e-4
    assert LINEAR.beta[1000] == 0.02
    assert LINEAR.alpha_bar[1000] == pytest.approx(4.04e-5, abs=5e-8)
    assert 1 - LINEAR.alpha_bar[1] == pytest.approx(LINEAR.beta[1], rel=1e-10)


def test_signal_and_noise_share_a_unit_variance():
    np.testing.assert_allclose(LINEAR.signal**2 + LINEAR.noise**2, 1.0, rtol=1e-12)
    assert LINEAR.alpha_bar.dtype == np.float64


@pytest.mark.parametrize(("t", "expected"), NOISE.items())
def test_what_the_noise_amounts_to(t, expected):
    assert LINEAR.noise[t + 1] == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize(("t", "expected"), REMOVED.items())
def test_what_a_whole_descent_can_remove(t, expected):
    total = sum(d.remove for d in LINEAR.ancestral(Step(t + 1)))
    assert total == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("t", [0.0, 0.1, 0.5, 1.0])
def test_zeta(t):
    assert LINEAR.zeta(Time(t)) == pytest.approx(0.05 * t + 4.975 * t**2)


def test_alpha_bar_follows_zeta():
    assert LINEAR.zeta(Time(1.0)) == pytest.approx(5.025)
    for step in range(1, 302):
        expected = np.exp(-2 * LINEAR.zeta(LINEAR.time(Step(step))))
        assert LINEAR.alpha_bar[step] == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("step", [0, 1, 137, 1000])
def test_steps_and_times_go_back_and_forth(step):
    assert LINEAR.step(LINEAR.time(Step(step))) == step


def test_cosine():
    cosine = Schedule.cosine()
    shape = np.cos((0.5 + 0.008) / 1.008 * np.pi / 2) ** 2 / np.cos(0.008 / 1.008 * np.pi / 2) ** 2
    assert cosine.alpha_bar[500] == pytest.approx(shape, rel=1e-9)
    assert cosine.beta.max() == 0.999
    assert (np.diff(cosine.alpha_bar) < 0).all()


@pytest.mark.parametrize("t", [0.1, 0.3, 0.5, 0.8])
def test_zeta_of_the_cosine_schedule(t):
    cosine = Schedule.cosine()
    angles = (np.array([t, 0.0]) + 0.008) / 1.008 * np.pi / 2
    expected = np.log(np.cos(angles[1]) / np.cos(angles[0]))  # -1/2 ln alpha_bar
    assert cosine.zeta(Time(t)) == pytest.approx(expected, rel=1e-2)
    assert cosine.alpha_bar[cosine.step(Time(t))] == pytest.approx(np.exp(-2 * expected), rel=1e-6)


def test_purification_diffuses_as_the_schedule_says():
    network = Recording()
    transform = around(network, 2, reverse_step=400, schedule="cosine")
    transform(demonstrations(np.zeros((4000, 2))))
    first = np.concatenate([x.numpy() for step, x in network.seen if step == 400])
    assert first.var() == pytest.approx(1 - Schedule.cosine().alpha_bar[400], rel=0.05)


def test_the_checkpoint_of_another_schedule_is_refused(tmp_path):
    demos = DemoSet(pointmass(1), pointmass(1, seed=1))
    brief = {"reverse_step": 50, "training": Training(updates=40, check_every=20)}

    def interrupt(done, total):
        if done == 40:
            raise KeyboardInterrupt

    for schedule in ("linear", "cosine"):
        purifier = DiffusionPurifier(schedule=schedule, **brief)
        with pytest.raises(KeyboardInterrupt if schedule == "linear" else EluteError):
            purifier.fit(demos, Seeds(0), progress=interrupt, checkpoint=tmp_path / "c")


@pytest.mark.parametrize("schedule", [LINEAR, Schedule.cosine()], ids=["linear", "cosine"])
def test_a_stride_of_one_with_all_its_noise_is_the_ancestral_step_in_the_mean(schedule):
    every, strided = schedule.ancestral(Step(300)), schedule.strided(Step(300), 300, eta=1.0)
    assert [(d.step, d.to) for d in every] == [(d.step, d.to) for d in strided]
    for name in ("keep", "remove"):
        mine, theirs = (np.array([getattr(d, name) for d in ds]) for ds in (every, strided))
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)
    add = np.array([(d.add, s.add) for d, s in zip(every, strided, strict=True)])
    assert (add[:, 1] <= add[:, 0] + 1e-12).all()  # beta against the smaller posterior variance
    assert tuple(add[-1]) == (0.0, 0.0)


def test_the_last_step_adds_no_noise_and_none_does_without_eta():
    assert LINEAR.ancestral(Step(5))[-1].add == 0.0
    assert all(d.add == 0.0 for d in LINEAR.strided(Step(200), 10, eta=0.0))


@pytest.mark.parametrize(
    ("start", "n", "steps"), [(200, 10, 10), (3, 10, 3), (1, 10, 1), (0, 5, 0)]
)
def test_strides_reach_from_the_start_to_the_data(start, n, steps):
    descents = LINEAR.strided(Step(start), n)
    assert len(descents) == steps
    assert len(LINEAR.ancestral(Step(start))) == start
    if steps:
        assert (descents[0].step, descents[-1].to) == (start, 0)
        assert all(a.to == b.step for a, b in pairwise(descents))


def test_a_perfect_guess_of_the_noise_is_undone_by_one_stride():
    (down,) = LINEAR.strided(Step(250), 1, eta=0.0)
    x, eps = 0.7, -1.3
    noisy = LINEAR.signal[250] * x + LINEAR.noise[250] * eps
    assert down.keep * noisy - down.remove * eps == pytest.approx(x)


@pytest.mark.parametrize("step", [-1, 1001])
def test_a_step_outside_is_refused(step):
    with pytest.raises(EluteError, match="expected 0 to 1000"):
        LINEAR.check(step)


@pytest.mark.parametrize("beta", [[0.0], [0.1, 0.2], [0.0, 1.0], [0.0, np.nan]])
def test_what_is_no_schedule_is_refused(beta):
    with pytest.raises(EluteError, match="schedule"):
        Schedule(np.array(beta))


def test_the_callers_array_stays_the_callers():
    beta = np.array([0.0, 0.1])
    schedule = Schedule(beta)
    beta[1] = 0.5
    assert schedule.beta[1] == 0.1
    assert not schedule.beta.flags.writeable
