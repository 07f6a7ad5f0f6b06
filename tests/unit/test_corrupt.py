"""Noise has the distribution it is said to have, and the clean actions stay."""

from dataclasses import replace

import numpy as np
import pytest

from elute.columns import columns
from elute.demos.corrupt import CLEAN, corrupt
from elute.episodes import Episodes
from elute.errors import EluteError
from elute.noise import NOISES
from elute.types import Demonstrations

ROWS = 50_000


def still(dtype="float64"):
    return Demonstrations(
        observations=np.zeros((ROWS, 1)),
        actions=np.full((ROWS, 2), 0.25, dtype=dtype),
        episodes=Episodes.of([ROWS]),
    )


@pytest.mark.parametrize("noise", ["gaussian", "uniform"])
def test_the_level_is_the_standard_deviation(noise):
    error = corrupt(still(), noise, 0.6).actions - 0.25
    assert error.std() == pytest.approx(0.6, rel=0.02)
    assert error.mean() == pytest.approx(0, abs=0.01)


def test_uniform_noise_fills_its_width():
    error = corrupt(still(), "uniform", 0.6).actions - 0.25
    edge = 0.6 * np.sqrt(3)
    assert np.abs(error).max() == pytest.approx(edge, rel=1e-3)
    inner = np.abs(error) < edge / 2
    assert inner.mean() == pytest.approx(0.5, abs=0.01)


def test_gaussian_noise_has_gaussian_tails():
    error = corrupt(still(), "gaussian", 1.0).actions - 0.25
    assert (np.abs(error) > 1.96).mean() == pytest.approx(0.05, abs=0.005)


def test_salt_and_pepper_replaces_entries_with_its_probability():
    actions = corrupt(still(), "salt-pepper", 0.3).actions
    assert set(np.unique(actions)) == {-1.0, 0.25, 1.0}
    assert (actions == 1).mean() == pytest.approx(0.15, abs=0.005)
    assert (actions == -1).mean() == pytest.approx(0.15, abs=0.005)


@pytest.mark.parametrize("noise", NOISES)
def test_level_zero_changes_nothing(noise):
    np.testing.assert_array_equal(corrupt(still(), noise, 0.0).actions, still().actions)


def test_columns_and_kinds_of_noise_are_independent():
    error = corrupt(still(), "gaussian", 1.0).actions - 0.25
    assert abs(np.corrcoef(error.T)[0, 1]) < 0.02
    other = corrupt(still(), "gaussian", 1.0, seed=1).actions - 0.25
    assert abs(np.corrcoef(error[:, 0], other[:, 0])[0, 1]) < 0.02


def test_the_clean_actions_survive_a_second_corruption():
    twice = corrupt(corrupt(still(), "gaussian", 0.5), "uniform", 0.5)
    np.testing.assert_array_equal(twice.extras[CLEAN], still().actions)
    assert [s["noise"] for s in twice.provenance.steps] == ["gaussian", "uniform"]


def test_types_are_kept_and_states_are_not_touched():
    demos = still("float32")
    noisy = corrupt(demos, "gaussian", 0.5)
    assert noisy.actions.dtype == "float32"
    np.testing.assert_array_equal(noisy.observations, demos.observations)


def test_discrete_columns_are_left_alone():
    named = (*columns("arm", 1), *columns("gripper", 1, discrete=True))
    noisy = corrupt(replace(still(), action_columns=named), "gaussian", 0.5)
    assert (noisy.actions[:, 1] == 0.25).all()
    assert (noisy.actions[:, 0] != 0.25).all()


@pytest.mark.parametrize(
    ("noise", "level"),
    [("pink", 0.1), ("gaussian", -0.1), ("uniform", np.inf), ("salt-pepper", 1.1)],
)
def test_impossible_noise_is_refused(noise, level):
    with pytest.raises(EluteError):
        corrupt(still(), noise, level)
