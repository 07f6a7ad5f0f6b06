"""Units: columns that hardly vary are left alone, quaternions are turned to one side and back."""

from dataclasses import replace

import numpy as np
import pytest

from elute.collect.operator import SHIPPED
from elute.columns import Column, columns, still
from elute.demos.audit.summary import Bounds
from elute.demos.files import load
from elute.episodes import Episodes
from elute.errors import EluteError
from elute.purify.clip import ClippedTransform, action_bounds
from elute.purify.diffusion import DiffusionPurifier, Training
from elute.purify.normaliser import Normaliser, pole
from elute.purify.wiener import WienerPurifier
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet

TURN = (*columns("place", 2), *columns("hand_quat", 4), *columns("push", 1))
RNG = np.random.default_rng


def turns(n, seed=0, spread=0.3):
    """Rotations about one axis, near half a turn, so that w is near 0 and has either sign."""
    half = np.pi / 2 + spread * RNG(seed).standard_normal(n)
    axis = np.array([0.6, 0.0, 0.8])
    return np.column_stack([np.sin(half)[:, None] * axis, np.cos(half)])


def upright(q):
    """As many programs store them: w >= 0."""
    return np.where(q[:, 3:] < 0, -q, q)


def arm(n, seed, stored):
    """A push that depends smoothly on the rotation."""
    q = turns(n, seed)
    rng = RNG(seed + 100)
    place = rng.standard_normal((n, 2))
    push = (q @ [0.5, 0.0, 0.2, 1.0])[:, None] + 0.05 * rng.standard_normal((n, 1))
    return Demonstrations(
        observations=np.hstack([place, stored(q)]),
        actions=push,
        episodes=Episodes.of([n]),
        observation_columns=TURN[:6],
        action_columns=TURN[6:],
    )


@pytest.mark.parametrize(
    ("mean", "spread", "role", "stands"),
    [
        (0.83, 4e-6, "continuous", True),  # the height of a nut on a table
        (0.4675, 1.4e-3, "continuous", False),  # its place on the table
        (0.0, 1e-5, "continuous", False),  # small, but nothing to compare with
        (0.0, 1e-5, "quaternion", True),  # a tilt of a thousandth of a degree
        (0.0, 1e-3, "quaternion", False),
        (0.0, 0.0, "continuous", True),
        (0.0115, 1e-3, "constant", True),  # fingers that nobody commands
        (1e6, 1.0, "continuous", True),
    ],
)
def test_what_hardly_varies(mean, spread, role, stands):
    found = still(np.array([mean]), np.array([spread]), [Column("x", 0, role)])
    assert found.tolist() == [stands]


def test_columns_that_hardly_vary_are_not_scaled_up():
    rows = RNG(0).standard_normal((500, 2)) * [1.0, 1e-6] + [0.0, 0.83]
    fitted = Normaliser.fit(rows)
    assert fitted.varies.tolist() == [True, False]
    np.testing.assert_allclose(fitted.apply(rows)[:, 1], rows[:, 1] - fitted.mean[1])
    np.testing.assert_allclose(fitted.undo(fitted.apply(rows), rows), rows, atol=1e-12)


def test_if_nothing_varies_that_is_said():
    with pytest.raises(EluteError, match="no column varies"):
        Normaliser.fit(np.full((10, 2), 0.83) + 1e-7 * RNG(0).standard_normal((10, 2)))


def test_the_pole_does_not_see_signs():
    q = turns(300)
    signs = RNG(1).choice([-1.0, 1.0], (300, 1))
    np.testing.assert_allclose(pole(q), pole(signs * q), atol=1e-9)
    nearest = q.mean(axis=0) / np.linalg.norm(q.mean(axis=0))
    assert abs(pole(q) @ nearest) > 0.999


def test_quaternions_come_to_one_side_and_get_their_signs_back():
    rows = np.hstack([RNG(0).standard_normal((300, 2)), turns(300), np.zeros((300, 1))])
    signs = RNG(1).choice([-1.0, 1.0], (300, 1))
    turned = rows.copy()
    turned[:, 2:6] *= signs
    fitted, same = Normaliser.fit(rows, TURN), Normaliser.fit(turned, TURN)
    np.testing.assert_allclose(fitted.apply(rows), same.apply(turned), atol=1e-9)
    np.testing.assert_allclose(same.undo(same.apply(turned), turned), turned, atol=1e-12)


def test_without_quaternions_nothing_is_turned():
    rows = np.hstack([RNG(0).standard_normal((300, 2)), turns(300)])
    fitted = Normaliser.fit(rows, columns("observation", 6))
    assert not fitted.poles
    still_there = fitted.scale[fitted.varies]
    np.testing.assert_array_equal(still_there, rows.std(axis=0)[fitted.varies])


def test_units_survive_storing():
    rows = np.hstack([RNG(0).standard_normal((50, 2)), upright(turns(50)), np.ones((50, 1))])
    fitted = Normaliser.fit(rows, TURN)
    again = Normaliser.from_json(fitted.to_json())
    np.testing.assert_array_equal(again.apply(rows), fitted.apply(rows))
    moved = fitted.apply(rows) + RNG(1).standard_normal(rows.shape)
    np.testing.assert_array_equal(again.undo(moved, rows), fitted.undo(moved, rows))
    old = {name: value for name, value in fitted.to_json().items() if name != "poles"}
    assert not Normaliser.from_json(old).poles  # as a file of an earlier version has it


@pytest.mark.parametrize(
    "purifier",
    [
        WienerPurifier(reverse_step=200, target="joint"),
        DiffusionPurifier(
            reverse_step=60, target="joint", training=Training(updates=40, batch_size=64)
        ),
    ],
    ids=["wiener", "diffusion"],
)
def test_how_signs_are_stored_changes_nothing_but_signs(purifier):
    plain, stored = (
        purifier.fit(DemoSet(arm(200, 0, how), arm(200, 1, how)), Seeds(0))(arm(200, 1, how))
        for how in (lambda q: q, upright)
    )
    np.testing.assert_allclose(plain.actions, stored.actions, atol=1e-6)
    np.testing.assert_allclose(
        np.abs(plain.observations[:, 2:6]), np.abs(stored.observations[:, 2:6]), atol=1e-6
    )
    before, after = turns(200, 1), plain.observations[:, 2:6]
    assert ((before * after).sum(axis=1) > 0).all()
    crossed = before[:, 3] * after[:, 3] < 0
    assert crossed.any()
    assert (stored.observations[:, 5] >= 0).all()  # also where w has crossed 0


def test_another_file_keeps_the_signs_it_has():
    """A model of upright quaternions, and rows that are not."""
    rows = np.hstack([RNG(0).standard_normal((300, 2)), upright(turns(300)), np.ones((300, 1))])
    fitted, other = Normaliser.fit(rows, TURN), rows.copy()
    other[:, 2:6] *= -1
    np.testing.assert_allclose(fitted.undo(fitted.apply(other), other), other, atol=1e-12)


def test_jumping_signs_do_not_cost_what_they_would():
    """The push follows from the rotation; with signs as stored no linear filter can see it."""
    good, noisy = arm(400, 0, upright), arm(400, 1, upright)
    spoilt = replace(noisy, actions=noisy.actions + 0.5 * RNG(5).standard_normal((400, 1)))
    purifier = WienerPurifier(reverse_step=300, target="inpaint")
    blind = [replace(d, observation_columns=columns("observation", 6)) for d in (good, spoilt)]

    def error(rows):
        cleaned = purifier.fit(DemoSet(*rows), Seeds(0))(rows[1])
        return ((cleaned.actions - noisy.actions) ** 2).mean()

    assert error((good, spoilt)) < 0.7 * error(blind)


def test_robot_data_goes_through_the_same_rules():
    demos = load(SHIPPED)
    sets = DemoSet(demos.select([5, 9]), demos.select([1, 3, 6, 7]))
    wild = replace(sets.supplementary, actions=3 * sets.supplementary.actions)
    purifier = WienerPurifier(reverse_step=20, target="joint")
    transform = purifier.fit(DemoSet(sets.optimal, wild), Seeds(0))
    varies = transform.normaliser.varies
    assert not varies[[21, 22, 32, 33, 34]].any()  # fingers, height and tilt of the nut
    assert varies[[30, 31, 35, 36]].all()
    bounds, said_by = action_bounds(sets)
    assert said_by == "sawyer-reach"
    clean = ClippedTransform(transform, Bounds(bounds.low, bounds.high))(wild)
    untouched = [21, 22, 32]
    np.testing.assert_array_equal(clean.observations[:, untouched], wild.observations[:, untouched])
    tilt = np.abs(clean.observations - wild.observations)[:, 33:35]
    assert tilt.max() < 1e-4  # only as far as the length of the quaternion has it
    for start in (26, 33, 40):
        q, before = (d.observations[:, start : start + 4] for d in (clean, wild))
        np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1.0, atol=1e-6)
        never_negative = (before >= 0).all(axis=0) & (before.mean(axis=0) > 0.1)
        assert (q[:, never_negative] >= 0).all()
    assert np.abs(wild.actions).max() > 1.0
    assert np.abs(clean.actions).max() <= 1.0
