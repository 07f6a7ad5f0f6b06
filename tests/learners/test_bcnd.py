"""BCND climbs to what most of the data agree on; its ensemble is one network."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm

from elute.episodes import Episodes
from elute.errors import EluteError
from elute.learners.actor import Actor, Design
from elute.learners.bc import BC
from elute.learners.bcnd import BCND, density_weights, ensemble, log_density, merged, split
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet
from learners.point_mass import both

CONSTANT = Design(hidden=())
SOLVER = BCND(actor=CONSTANT, updates=300, batch_size=1000, learning_rate=1e-2)
QUANTILES = (np.arange(2000) + 0.5) / 2000
VARIANCES = [0.64, 0.32, 0.2133, 0.16, 0.128]
MIXTURE_MEANS = [0.35, 0.2320, 0.1160, 0.0239, 0.0078]


def one_state(actions):
    """Nothing but actions: a policy without hidden layers is one Gaussian."""
    actions = np.asarray(actions)[:, None]
    rows = Demonstrations(
        observations=np.zeros((len(actions), 1)),
        actions=actions,
        episodes=Episodes.of([len(actions)]),
    )
    return DemoSet(supplementary=rows)


def mixture(share_of_ones):
    """N(0, .1^2) and N(1, .1^2), by their quantiles."""
    ones = round(2000 * share_of_ones)
    halves = [norm.ppf((np.arange(n) + 0.5) / n, m, 0.1) for n, m in ((2000 - ones, 0), (ones, 1))]
    return np.concatenate(halves)


def exact_rounds(actions, rounds):
    """Mean and variance by weighted maximum likelihood in closed form, round by round."""
    weights, found = np.ones(len(actions)), []
    for _ in range(rounds):
        mean = np.average(actions, weights=weights)
        variance = np.average((actions - mean) ** 2, weights=weights)
        found.append((mean, variance))
        weights = density_weights(norm.logpdf(actions, mean, np.sqrt(variance)))
    return np.array(found).T


def test_1_round_one_is_cloning_by_likelihood():
    settings = {"updates": 40, "learning_rate": 3e-3}
    bcnd, weights = BCND(rounds=1, **settings).weigh(both(), Seeds(0)("learn"))
    bc = BC(loss="nll", hold_out=0.0, **settings).fit(both(), Seeds(0)("learn"))
    np.testing.assert_array_equal(weights, 1.0)
    for mine, theirs in zip(bcnd.layers, bc.layers, strict=True):
        np.testing.assert_array_equal(mine[0], theirs[0])
        np.testing.assert_array_equal(mine[1], theirs[1])
    np.testing.assert_allclose(bcnd.std, bc.std, rtol=1e-12)


def test_2_a_gaussians_variance_falls_as_one_over_the_round():
    actions = norm.ppf((np.arange(200_000) + 0.5) / 200_000, 0.3, 0.8)
    means, variances = exact_rounds(actions, 5)
    np.testing.assert_allclose(variances, VARIANCES, atol=1e-4)
    np.testing.assert_allclose(means, 0.3, atol=1e-12)


@pytest.mark.parametrize("rounds", [1, 5])
def test_2_so_it_does_when_learnt_by_descent(rounds):
    demos = one_state(norm.ppf(QUANTILES, 0.3, 0.8))
    policy = replace(SOLVER, rounds=rounds).fit(demos, Seeds(0)("learn"))
    assert policy.std[0] ** 2 == pytest.approx(VARIANCES[rounds - 1], rel=0.05)
    assert policy.act(np.zeros((1, 1)))[0, 0] == pytest.approx(0.3, abs=0.03)


def products(share_of_ones, rounds):
    """Means of the mixture times the last round's Gaussian, by products of Gaussians."""
    centres, spread = np.array([0.0, 1.0]), 0.01
    shares = np.array([1 - share_of_ones, share_of_ones])
    mean = shares @ centres
    variance = spread + shares @ (centres - mean) ** 2
    means = [mean]
    for _ in range(rounds - 1):
        mass = shares * norm.pdf(centres, mean, np.sqrt(spread + variance))
        mass /= mass.sum()
        tops = (centres * variance + mean * spread) / (spread + variance)
        within = spread * variance / (spread + variance)
        mean = mass @ tops
        variance = within + mass @ (tops - mean) ** 2
        means.append(mean)
    return means


def test_3_the_majority_of_a_mixture_wins():
    means, _ = exact_rounds(mixture(0.35), 5)
    np.testing.assert_allclose(products(0.35, 5), MIXTURE_MEANS, atol=1e-4)
    np.testing.assert_allclose(means, MIXTURE_MEANS, atol=1e-3)
    assert exact_rounds(mixture(0.65), 8)[0][-1] == pytest.approx(1.0, abs=0.005)


@pytest.mark.parametrize(("share_of_ones", "winner"), [(0.35, 0.0), (0.65, 1.0)])
def test_3_so_it_does_when_learnt_by_descent(share_of_ones, winner):
    actions = mixture(share_of_ones)
    policy, weights = SOLVER.weigh(one_state(actions), Seeds(0)("learn"))
    assert policy.act(np.zeros((1, 1)))[0, 0] == pytest.approx(winner, abs=0.05)
    near = np.abs(actions - winner) < 0.5
    assert weights[near].mean() > 100 * weights[~near].mean()


def test_4_constant_densities_weigh_every_row_one():
    np.testing.assert_array_equal(density_weights(np.full(7, -12.5)), 1.0)


def test_weights_are_relative_and_do_not_underflow():
    steps = np.array([0.0, -1.0, -2.0])
    expected = np.exp(steps) / np.exp(steps).mean()
    for level in (0.0, -1e5, 1e5):
        np.testing.assert_allclose(density_weights(steps + level), expected, rtol=1e-9)


def test_tempering_is_a_power_of_the_density():
    demos = both()
    settings = BCND(rounds=2, updates=20)
    (_, plain), (_, half) = (
        replace(settings, temper=t).weigh(demos, Seeds(0)("learn")) for t in (1.0, 0.5)
    )
    np.testing.assert_allclose(half, np.sqrt(plain) / np.sqrt(plain).mean(), rtol=1e-9)


def test_the_deviation_stays_above_its_floor():
    demos = one_state(np.full(50, 0.2))
    policy = replace(SOLVER, rounds=1, least_std=0.3).fit(demos, Seeds(0)("learn"))
    assert policy.std[0] == pytest.approx(0.3)


def test_a_deviation_at_its_floor_can_grow_again():
    actor = Actor(replace(CONSTANT, least_std=0.3), both().all, Seeds(0)("actor"))
    actor.log_std.data.fill_(-5.0)
    far = actor.log_prob(torch.zeros(4, 2), torch.full((4, 1), 3.0))
    (-far.mean()).backward()
    assert actor.log_std.exp().item() == pytest.approx(0.3)
    assert actor.log_std.grad.item() < 0


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("hidden", [(), (7,), (8, 5)])
def test_members_merge_exactly_into_one_policy(activation, hidden):
    demos, design = both().all, Design(hidden=hidden, activation=activation)
    members = [Actor(design, demos, Seeds(s)("actor")).policy() for s in range(3)]
    means = np.mean([member.act(demos.observations) for member in members], axis=0)
    one = merged(members)
    np.testing.assert_allclose(one.act(demos.observations), means, atol=1e-6)
    assert [bias.shape for _, bias in one.layers] == [(3 * width,) for width in hidden] + [(1,)]


def test_an_ensemble_has_the_deviation_and_density_of_its_mixture():
    demos = one_state([0.0, 2.0])
    members = [Actor(CONSTANT, demos.all, Seeds(s)("actor")) for s in range(2)]
    for member, mean in zip(members, (0.0, 2.0), strict=True):
        member.body[-1].bias.data.fill_(mean)
        member.set_std(np.array([0.5]))
    x, y = torch.zeros(2, 1), torch.tensor([[0.0], [1.0]])
    policy = ensemble(members, x)
    np.testing.assert_allclose(policy.std, np.sqrt(0.25 + 1.0), rtol=1e-6)
    density = [0.5 * (norm.pdf(a, 0, 0.5) + norm.pdf(a, 2, 0.5)) for a in (0.0, 1.0)]
    np.testing.assert_allclose(np.exp(log_density(members, x, y)), density, rtol=1e-5)


def test_parts_are_disjoint_and_cover_all_rows():
    parts = split(11, 3, Seeds(0)("split"))
    assert sorted(len(part) for part in parts) == [3, 4, 4]
    assert sorted(torch.cat(parts).tolist()) == list(range(11))


def test_each_member_learns_its_own_part_only():
    actions = np.zeros(20)
    parts = split(20, 2, Seeds(0)("learn").spawn(1)[0])
    actions[parts[1]] = 4.0
    policy = replace(SOLVER, rounds=1, members=2, batch_size=50, updates=1000).fit(
        one_state(actions), Seeds(0)("learn")
    )
    assert policy.std[0] == pytest.approx(2.0, rel=0.02)  # two points, two apart from their middle
    assert policy.act(np.zeros((1, 1)))[0, 0] == pytest.approx(2.0, abs=0.05)


def test_an_ensemble_brings_the_mixture_to_its_majority():
    policy = replace(SOLVER, members=2, batch_size=500).fit(
        one_state(mixture(0.35)), Seeds(0)("learn")
    )
    assert policy.act(np.zeros((1, 1)))[0, 0] == pytest.approx(0.0, abs=0.05)


def test_rounds_are_told_in_the_log():
    rows = []
    BCND(rounds=3, updates=5).fit(both(), Seeds(0)("learn"), rows.append)
    told = [name.split("/")[0] for row in rows for name in row if "/" in name]
    assert sorted(set(told)) == ["round-1", "round-2", "round-3"]


def test_what_cannot_be_is_refused():
    squashed = Design(squashed=True, bounds=(-1.0, 1.0))
    with pytest.raises(EluteError, match="squashed"):
        BCND(members=2, actor=squashed)
    with pytest.raises(EluteError, match="0 rounds"):
        BCND(rounds=0)
    with pytest.raises(EluteError, match="3 rows cannot be split"):
        BCND(members=5).fit(one_state([0.0, 1.0, 2.0]), Seeds(0)("learn"))


def test_presets_are_the_papers():
    assert (BCND.paper().rounds, BCND.paper().members) == (5, 5)
    assert BCND.no_ensemble().members == 1


def test_rows_weigh_by_the_average_of_the_round_before(monkeypatch):
    rounds = []

    def kept(self, *given):
        learnt = one_round(self, *given)
        rounds.append((given[0], learnt, given[2]))
        return learnt

    one_round = BCND._round
    monkeypatch.setattr(BCND, "_round", kept)
    _, weights = BCND(rounds=2, updates=20).weigh(both(), Seeds(0)("learn"))
    members, learnt, (x, y, _) = rounds[0]
    np.testing.assert_array_equal(weights, density_weights(log_density(learnt, x, y)))
    assert not np.allclose(weights, density_weights(log_density(members, x, y)))
