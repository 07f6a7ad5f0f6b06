"""What every purifier promises: one suite over all of them."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch

from builders import assert_same_array
from elute.columns import columns
from elute.diffusion.ddpm import Training
from elute.episodes import Episodes, Provenance
from elute.errors import EluteError
from elute.learners.bc import BC
from elute.purify.artefact import load_transform, save_transform
from elute.purify.controls import NearestPurifier, RelabelPurifier
from elute.purify.diffusion import DiffusionPurifier
from elute.purify.empirical import EmpiricalPurifier
from elute.purify.filters import FilterPurifier
from elute.purify.identity import IdentityPurifier
from elute.purify.purifier import quaternions
from elute.purify.wiener import WienerPurifier
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet

BRIEF = Training(updates=5, batch_size=32)


def diffusion(purifier):
    return replace(purifier, training=replace(purifier.training, updates=3))


PURIFIERS = {
    "diffusion": DiffusionPurifier(reverse_step=30, descents=3, draws=2, training=BRIEF),
    "diffusion joint": DiffusionPurifier(
        reverse_step=30, descents=3, draws=2, training=BRIEF, target="joint"
    ),
    "diffusion action": DiffusionPurifier(
        reverse_step=30, descents=3, draws=1, eta=1.0, training=BRIEF, target="action"
    ),
    "diffusion cosine": DiffusionPurifier(
        reverse_step=30, descents=3, draws=1, training=BRIEF, schedule="cosine"
    ),
    "paper": diffusion(DiffusionPurifier.paper(3)),
    "reference": diffusion(DiffusionPurifier.reference(3)),
    "empirical": EmpiricalPurifier(reverse_step=30),
    "wiener": WienerPurifier(reverse_step=100, target="inpaint"),
    "wiener joint": WienerPurifier(reverse_step=100, target="joint"),
    "gaussian": FilterPurifier(kind="gaussian"),
    "mean": FilterPurifier(kind="mean", target="action"),
    "median": FilterPurifier(kind="median"),
    "nearest": NearestPurifier(),
    "relabel": RelabelPurifier(bc=BC(updates=5)),
    "identity": IdentityPurifier(),
}
STATES_TOO = {
    "diffusion joint",
    "paper",
    "reference",
    "empirical",
    "wiener joint",
    "gaussian",
    "median",
}
STORED = {
    "diffusion",
    "diffusion joint",
    "diffusion action",
    "diffusion cosine",
    "paper",
    "reference",
}
RANDOM = STORED | {"empirical"}
FILTERS = {"gaussian", "mean", "median"}

every = pytest.mark.parametrize("name", PURIFIERS)

OBSERVATIONS = (
    *columns("position", 3),
    *columns("eef_quat", 4),
    *columns("is_grasped", 1),
    *columns("table", 1),
)
DISCRETE = 7
CONSTANT = 8
ACTIONS = (*columns("force", 2), *columns("gripper", 1, discrete=True))


def arm(lengths, seed):
    """An arm: positions, a rotation, a switch, a constant; forces and a gripper."""
    rng, n = Seeds(seed)("arm"), sum(lengths)
    turn = rng.standard_normal((n, 4)) * 0.2 + [1, 0, 0, 0]
    switch = rng.integers(0, 2, (n, 1))
    position = np.cumsum(rng.standard_normal((n, 3)), axis=0)
    unit = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    observations = np.hstack([position, unit, switch, np.full((n, 1), 0.1)])
    forces = np.tanh(position[:, :2]) + 0.3 * rng.standard_normal((n, 2))
    return Demonstrations(
        observations=observations.astype(np.float32),
        actions=np.hstack([forces, 1.0 - switch]),
        rewards=rng.standard_normal(n),
        next_observations=(observations + 0.5).astype(np.float32),  # no copy of the next row
        extras={"operator": np.array(["zoë"] * n), "images": rng.integers(0, 255, (n, 2, 2))},
        episodes=Episodes.of(lengths, terminated=[True] * len(lengths)),
        observation_columns=OBSERVATIONS,
        action_columns=ACTIONS,
        provenance=Provenance(source="arm"),
    )


DEMOS = DemoSet(arm([25, 15], seed=0), arm([30, 1, 2, 27], seed=1))
NOISY = DEMOS.supplementary


@cache
def fitted(name, seed=0):
    return PURIFIERS[name].fit(DEMOS, Seeds(seed))


@cache
def purified(name):
    return fitted(name)(NOISY)


@every
def test_rows_episodes_and_types_stay(name):
    result = purified(name)
    assert len(result) == len(NOISY)
    assert_same_array(result.episodes.lengths, NOISY.episodes.lengths)
    assert_same_array(result.episodes.terminated, NOISY.episodes.terminated)
    assert result.observations.dtype == np.float32
    assert result.actions.dtype == np.float64
    assert result.observation_columns == OBSERVATIONS
    assert result.action_columns == ACTIONS
    assert np.isfinite(result.pairs).all()


@every
def test_order_stays(name):
    """Each row is nearer to what it was than to a row of another place, on average."""
    near = np.abs(purified(name).observations - NOISY.observations).mean()
    far = np.abs(purified(name).observations - NOISY.observations[::-1]).mean()
    assert near < far


@every
def test_what_is_not_purified_is_untouched(name):
    result = purified(name)
    assert_same_array(result.rewards, NOISY.rewards)
    for extra, values in NOISY.extras.items():
        assert_same_array(result.extras[extra], values)
    if name not in STATES_TOO:
        assert_same_array(result.observations, NOISY.observations)
        assert_same_array(result.next_observations, NOISY.next_observations)


@every
def test_what_is_purified_changes(name):
    result = purified(name)
    moved = not np.array_equal(result.actions[:, :2], NOISY.actions[:, :2])
    assert moved is (name != "identity")
    states = not np.array_equal(result.observations, NOISY.observations)
    assert states is (name in STATES_TOO)


@every
def test_switches_never_change_and_constants_pass_through(name):
    result = purified(name)
    assert_same_array(result.actions[:, 2], NOISY.actions[:, 2])
    assert_same_array(result.observations[:, DISCRETE], NOISY.observations[:, DISCRETE])
    if name not in ("paper", "reference", "gaussian"):  # raw units; a sum of weights is nearly 1
        assert_same_array(result.observations[:, CONSTANT], NOISY.observations[:, CONSTANT])


@every
def test_quaternions_stay_rotations(name):
    lengths = np.linalg.norm(purified(name).observations[:, 3:7], axis=1)
    np.testing.assert_allclose(lengths, 1.0, atol=1e-6)


@every
def test_the_input_is_left_alone(name):
    mine = arm([30, 1, 2, 27], seed=1)
    before = [a.copy() for a in (mine.observations, mine.actions, mine.next_observations)]
    fitted(name)(mine)
    for old, now in zip(
        before, (mine.observations, mine.actions, mine.next_observations), strict=True
    ):
        assert_same_array(old, now)


@every
def test_provenance_tells(name):
    (step,) = purified(name).provenance.steps
    assert step["operation"] == "purify"
    assert step["method"]
    assert purified(name).provenance.source == "arm"


@every
def test_the_same_seed_gives_the_same_and_another_seed_another(name):
    again = PURIFIERS[name].fit(DEMOS, Seeds(0))(NOISY)
    assert_same_array(again.pairs, purified(name).pairs)
    other = fitted(name)(NOISY, seed=1).pairs
    assert np.array_equal(other, purified(name).pairs) is (name not in RANDOM)


@every
def test_torchs_own_stream_and_the_networks_mode_are_left_alone(name):
    before = torch.random.get_rng_state()
    transform = PURIFIERS[name].fit(DEMOS, Seeds(0))
    network = getattr(transform, "network", torch.nn.Identity())
    for mode in (True, False):
        network.train(mode)
        assert_same_array(transform(NOISY).pairs, purified(name).pairs)
        assert network.training is mode
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("name", [name for name in PURIFIERS if name != "reference"])
@pytest.mark.parametrize("first_row", [0, 4090])
def test_chunks_come_out_like_the_whole(name, first_row):
    """Filters: if chunks end with episodes. The reference: never, its rows shape each other."""
    inside = [] if name in FILTERS else [7, 50]
    edges = sorted([0, 30, 31, 33, 60, *inside])
    whole = fitted(name)(NOISY, first_row=first_row, seed=2).pairs
    parts = [fitted(name)(NOISY[a:b], first_row=first_row + a, seed=2) for a, b in pairwise(edges)]
    assert_same_array(np.concatenate([part.pairs for part in parts]), whole)


@pytest.mark.parametrize("name", ["diffusion joint", "wiener joint", "empirical"])
def test_a_column_that_was_constant_in_the_fit_passes_through_bit_for_bit(name):
    def placed(demos, value):
        observations = demos.observations.astype(np.float64)
        observations[:, CONSTANT] = value
        return replace(demos, observations=observations, next_observations=None)

    transform = PURIFIERS[name].fit(
        DemoSet(placed(DEMOS.optimal, 1e6), placed(NOISY, 1e6)), Seeds(0)
    )
    result = transform(placed(NOISY, 1 / 3))
    assert (result.observations[:, CONSTANT] == 1 / 3).all()


@pytest.mark.parametrize("purifier", [DiffusionPurifier, WienerPurifier, EmpiricalPurifier])
def test_at_step_zero_not_even_a_sloppy_quaternion_changes(purifier):
    observations = NOISY.observations.copy()
    observations[:, 3:7] *= np.float32(1.001)
    sloppy = replace(NOISY, observations=observations)
    transform = purifier(reverse_step=0, target="joint").fit(DEMOS, Seeds(0))
    assert_same_array(transform(sloppy).pairs, sloppy.pairs)


def spoiled(demos, value, *, action):
    array = (demos.actions if action else demos.observations).copy()
    array[3, 1] = value
    return replace(demos, **{"actions" if action else "observations": array})


@every
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("action", [True, False])
def test_values_that_are_not_finite_are_refused(name, value, action):
    with pytest.raises(EluteError, match="not finite"):
        fitted(name)(spoiled(NOISY, value, action=action))
    bad = (
        DemoSet(spoiled(DEMOS.optimal, value, action=action), NOISY),
        DemoSet(DEMOS.optimal, spoiled(NOISY, value, action=action)),
    )
    for demos in bad:
        with pytest.raises(EluteError, match="not finite"):
            PURIFIERS[name].fit(demos, Seeds(0))


@pytest.mark.parametrize("name", sorted(set(PURIFIERS) - FILTERS - {"identity"}))
def test_data_of_another_task_is_refused(name):
    narrow = replace(
        NOISY,
        observations=NOISY.observations[:, :5],
        next_observations=None,
        observation_columns=OBSERVATIONS[:5],
    )
    with pytest.raises(EluteError, match="was fitted on 9 and 3"):
        fitted(name)(narrow)


@pytest.mark.parametrize("name", ["diffusion", "wiener"])
@pytest.mark.parametrize(("factor", "shift"), [(1000, 1e5), (57.3, 0.0), (1.0, 1e4)])
def test_data_in_other_units_is_refused(name, factor, shift):
    centred = NOISY.observations - np.median(NOISY.observations, axis=0)
    other = replace(NOISY, observations=centred * factor + shift)
    with pytest.raises(EluteError, match="units"):
        fitted(name)(other)


@pytest.mark.parametrize("name", ["diffusion", "wiener"])
def test_a_few_rows_or_a_late_chunk_may_lie_far_out(name):
    far = replace(NOISY, observations=NOISY.observations * 1000 + 1e5)
    for rows, first_row in ((far[:1], 0), (far[:29], 0), (far, len(NOISY))):
        assert len(fitted(name)(rows, first_row=first_row)) == len(rows)


@pytest.mark.parametrize("name", ["paper", "reference"])
def test_raw_units_may_be_anything(name):
    far = DemoSet(*(replace(d, actions=d.actions + 500) for d in (DEMOS.optimal, NOISY)))
    result = PURIFIERS[name].fit(far, Seeds(0))(far.supplementary)
    assert np.isfinite(result.pairs).all()


@every
def test_whole_numbers_stay_whole_numbers(name):
    whole = DemoSet(*(replace(d, actions=d.actions.astype(np.int64)) for d in (DEMOS.all, NOISY)))
    result = PURIFIERS[name].fit(whole, Seeds(0))(whole.supplementary)
    assert_same_array(result.actions, whole.supplementary.actions)


@pytest.mark.parametrize("name", sorted(STORED))
def test_saved_and_loaded_it_purifies_the_same(name, tmp_path):
    path = tmp_path / "model.safetensors"
    save_transform(fitted(name), path)
    before = torch.random.get_rng_state()
    loaded = load_transform(path)
    assert torch.equal(before, torch.random.get_rng_state())
    assert loaded.purifier == PURIFIERS[name]
    assert loaded.columns == fitted(name).columns
    assert loaded.trained.curve == fitted(name).trained.curve
    assert loaded.max_step == fitted(name).max_step
    assert_same_array(loaded(NOISY).pairs, purified(name).pairs)


def test_where_quaternions_stand():
    pose = tuple(replace(c, role="quaternion") for c in columns("pose", 15)[3:11])
    all_columns = (*columns("pose", 15)[:3], *pose, *columns("pose", 15)[11:], *OBSERVATIONS)
    assert quaternions(all_columns) == [(3, 7), (7, 11), (18, 22)]
    assert quaternions(OBSERVATIONS[:6]) == []  # three quarters of one
