"""Filters along time: the properties of methods 6."""

from dataclasses import replace

import numpy as np
import pytest

from elute.columns import columns
from elute.demos.pointmass import pointmass
from elute.episodes import Episodes
from elute.errors import EluteError
from elute.purify.filters import FilterPurifier
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet

FILTERS = {
    "gaussian": FilterPurifier(kind="gaussian"),
    "narrow": FilterPurifier(kind="gaussian", sigma=0.6),
    "mean": FilterPurifier(kind="mean"),
    "wide mean": FilterPurifier(kind="mean", window=7),
    "median": FilterPurifier(kind="median"),
    "wide median": FilterPurifier(kind="median", window=5),
}
LINEAR = [name for name in FILTERS if "median" not in name]
every = pytest.mark.parametrize("name", FILTERS)
linear = pytest.mark.parametrize("name", LINEAR)


def series(values, lengths=None):
    values = np.asarray(values, dtype=float).reshape(len(values), -1)
    return Demonstrations(
        observations=np.zeros((len(values), 1)),
        actions=values,
        episodes=Episodes.of(lengths or [len(values)]),
    )


def filtered(purifier, demos):
    return purifier.fit(DemoSet(demos, demos), Seeds(0))(demos)


def smoothed(name, values):
    return filtered(FILTERS[name], series(values)).actions


@every
def test_a_constant_stays(name):
    np.testing.assert_allclose(smoothed(name, np.full(40, 0.3)), 0.3, rtol=1e-15)


@every
def test_a_ramp_stays_away_from_the_ends(name):
    ramp = np.arange(40.0)
    np.testing.assert_allclose(smoothed(name, ramp)[5:-5, 0], ramp[5:-5], rtol=1e-12)


@linear
def test_an_impulse_becomes_the_kernel(name):
    impulse = np.zeros(41)
    impulse[20] = 1.0
    answer = smoothed(name, impulse)[:, 0]
    half = len(FILTERS[name].kernel) // 2
    np.testing.assert_allclose(answer[20 - half : 21 + half], FILTERS[name].kernel, atol=1e-15)
    np.testing.assert_allclose(answer, answer[::-1], atol=1e-15)
    assert answer.sum() == pytest.approx(1.0)


def test_the_gaussian_kernel_is_the_one_of_the_paper_made_symmetric():
    kernel = FilterPurifier(kind="gaussian", sigma=1.5).kernel
    assert len(kernel) == 11
    assert kernel[5] / kernel[4] == pytest.approx(np.exp(1 / (2 * 1.5**2)))


@linear
def test_white_noise_loses_the_variance_it_should(name):
    noise = Seeds(0)("noise").standard_normal((50_000, 2))
    expected = (FILTERS[name].kernel ** 2).sum()
    assert smoothed(name, noise).var() == pytest.approx(expected, rel=0.03)


def test_the_mean_of_k_leaves_one_kth():
    assert (FILTERS["wide mean"].kernel ** 2).sum() == pytest.approx(1 / 7)


@pytest.mark.parametrize("name", ["median", "wide median"])
def test_the_median_removes_an_outlier_exactly(name):
    spoiled = np.full(20, 0.25)
    spoiled[7] = 99.0
    assert np.array_equal(smoothed(name, spoiled)[:, 0], np.full(20, 0.25))


def test_the_median_runs_along_time_and_not_across_columns():
    ramp = np.arange(20.0)
    values = np.stack([ramp, ramp + 100, ramp - 100], axis=1)
    np.testing.assert_allclose(smoothed("median", values)[1:-1], values[1:-1])


@every
def test_episodes_do_not_see_each_other(name):
    rng = Seeds(1)("two")
    one, other = rng.standard_normal((30, 2)), 50 + rng.standard_normal((17, 2))
    together = filtered(FILTERS[name], series(np.concatenate([one, other]), [30, 17])).actions
    apart = np.concatenate([smoothed(name, one), smoothed(name, other)])
    assert np.array_equal(together, apart)


@every
@pytest.mark.parametrize("length", [1, 2, 3])
def test_short_episodes_are_mirrored_as_often_as_it_takes(name, length):
    answer = smoothed(name, np.arange(1.0, length + 1))
    assert answer.shape == (length, 1)
    assert (answer >= 1 - 1e-12).all()
    assert (answer <= length + 1e-12).all()


def test_the_ends_are_mirrored_about_the_first_row():
    assert smoothed("mean", [1.0, 4.0, 7.0, 7.0])[0, 0] == pytest.approx((4 + 1 + 4) / 3)


def test_states_are_smoothed_too_unless_only_the_action_is_asked_for():
    demos = pointmass(2)
    joint = filtered(FilterPurifier(kind="mean"), demos)
    action = filtered(FilterPurifier(kind="mean", target="action"), demos)
    assert not np.array_equal(joint.observations, demos.observations)
    assert np.array_equal(action.observations, demos.observations)
    assert np.array_equal(action.actions, joint.actions)


def test_a_quaternion_that_changes_its_sign_is_no_noise():
    angle = np.linspace(0, 1, 30)
    turn = np.stack([np.cos(angle), np.sin(angle), 0 * angle, 0 * angle], axis=1)
    turn[11:20] *= -1
    demos = replace(series(turn), action_columns=columns("eef_quat", 4))
    answer = filtered(FilterPurifier(kind="mean"), demos).actions
    np.testing.assert_allclose(answer[1:-1], turn[1:-1], atol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [{"kind": "mode"}, {"window": 4}, {"window": 0}, {"sigma": 0.0}, {"sigma": np.nan}],
)
def test_what_is_no_filter_is_refused(settings):
    with pytest.raises(EluteError):
        FilterPurifier(**settings)
