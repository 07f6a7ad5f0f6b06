"""DemoDICE weighs rows by what the expert would visit: exact where everything is known."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from elute.learners.demodice import DemoDICE, value_loss
from elute.learners.descent import Descent
from elute.learners.dice import Values, on_rows, tempered
from elute.learners.ratio import Ratio
from elute.learners.transitions import Transitions
from elute.rng import Seeds
from elute.types import DemoSet
from learners.point_mass import HORIZON, both, demonstrations
from learners.tabular import DISCOUNT, divergence, mdp, policies


def exact(world, alpha):
    """rho_E, rho_U, and w * rho_U of the nu that minimises the loss."""
    expert, other = map(world.occupancy, policies())
    union = 0.4 * expert + 0.6 * other
    heat = 1 + alpha

    def loss(initial, residuals, counts):
        shifted = residuals + heat * counts.log()
        return value_loss(initial, shifted, alpha=alpha, discount=DISCOUNT)

    advantages = world.minimise(loss, np.log(expert / union), union)
    share = union[:, :, None] * world.moves
    flow = share * np.exp(advantages / heat)
    return expert, union, (flow / flow.sum()).sum(axis=2)


@pytest.mark.parametrize("deterministic", [True, False])
def test_2_exact_ratios_and_alpha_0_give_the_experts_occupancy(deterministic):
    world = mdp(deterministic=deterministic)
    expert, union, flow = exact(world, alpha=0.0)
    assert np.abs(expert - union).max() > 0.05  # or there would be nothing to find
    np.testing.assert_allclose(flow, expert, atol=1e-6)
    np.testing.assert_allclose(world.imbalance(flow), 0, atol=1e-6)


def test_alpha_gives_the_occupancy_that_is_best_for_both():
    world, alpha = mdp(deterministic=True), 0.7
    expert, union, flow = exact(world, alpha)
    best = world.best(lambda d: divergence(d, expert) + alpha * divergence(d, union))
    assert np.abs(best - expert).max() > 0.01
    np.testing.assert_allclose(world.imbalance(flow), 0, atol=1e-6)
    np.testing.assert_allclose(flow, best, atol=1e-5)


def test_the_network_that_learns_nu_finds_it_too():
    """Every (s, a) of a chain of three states, as often as it is visited; nu is a table."""
    states, actions = np.array([0, 0, 0, 1, 1, 2, 2]), np.array([0, 0, 1, 0, 1, 0, 1])
    after = np.array([1, 1, 2, 2, 0, 0, 1])
    steps = Transitions(
        rows=np.arange(7),
        observations=np.eye(3)[states],
        actions=actions[:, None],
        next_observations=np.eye(3)[after],
        terminal=np.zeros(7, dtype=bool),
        initial=np.eye(3)[[0, 0, 1, 2]],
    )
    rewards = torch.tensor([0.4, 0.4, -1.0, 0.8, -0.5, 0.1, -0.3])
    settings = Values(hidden=(), penalty=0.0, discount=DISCOUNT, learning_rate=0.05)
    advantages = settings.learn(
        steps,
        rewards,
        np.full(7, DISCOUNT),
        lambda initial, a: value_loss(initial, a, alpha=0.0, discount=DISCOUNT),
        Seeds(0)("nu"),
        lambda networks: Descent(500, networks, lambda: None),
    )
    flow = tempered(advantages) / 7
    leaving, entering = (np.bincount(s, flow, minlength=3) for s in (states, after))
    start = np.array([0.5, 0.25, 0.25])
    np.testing.assert_allclose(leaving, (1 - DISCOUNT) * start + DISCOUNT * entering, atol=1e-3)


def test_1_constant_advantages_weigh_one():
    np.testing.assert_allclose(tempered(np.full(5, -3.7), 1.5), 1.0)


def test_1_equal_sets_have_no_reward():
    """So that nothing but the flow is left to weigh by."""
    demos = demonstrations(8, noise=0.3)
    flat = Values(penalty=1e4, batch_size=64)
    quick = DemoDICE(updates=200, ratio=Ratio(batch_size=64), values=flat)
    _, weights = quick.weigh(DemoSet(demos, demos), Seeds(0)("learn"))
    assert weights.mean() == pytest.approx(1.0)
    assert weights.std() < 0.1


def test_3_a_constant_in_the_advantages_changes_no_weight():
    advantages = Seeds(0)("a").standard_normal(50)
    weights, moved = (tempered(advantages + c, 1.5) for c in (0.0, 1e3))
    np.testing.assert_allclose(moved, weights, rtol=1e-10)


def test_4_a_constant_in_nu_does_not_change_its_loss():
    draw = Seeds(0)("nu").standard_normal
    nu0, nu, following, r = map(torch.tensor, (draw(5), draw(9), draw(9), draw(9)))

    def loss(c):
        a = r + DISCOUNT * (following + c) - (nu + c)
        return value_loss(nu0 + c, a, alpha=0.3, discount=DISCOUNT).item()

    assert loss(123.0) == pytest.approx(loss(0.0), abs=1e-10)


def test_the_loss_pulls_at_each_row_by_its_weight():
    advantages = torch.tensor(Seeds(0)("a").standard_normal(20), requires_grad=True)
    value_loss(torch.zeros(1), advantages, alpha=0.5, discount=0.9).backward()
    np.testing.assert_allclose(
        20 * advantages.grad.numpy(), tempered(advantages.detach().numpy(), 1.5)
    )


def test_huge_advantages_do_not_overflow():
    weights = tempered(np.array([0.0, 5e4]))
    np.testing.assert_allclose(weights, [0.0, 2.0])


def test_few_optimal_rows_among_many_keep_their_weight():
    """Less than one row of a hundred is optimal, and still most of what counts."""
    demos = both(1, 120)
    few = DemoSet(demos.optimal.first(10), demos.supplementary)
    _, weights = DemoDICE(updates=300).weigh(few, Seeds(0)("learn"))
    assert weights[:10].mean() > 3 * weights[10:].mean()


def test_rows_that_nothing_follows_weigh_nothing():
    demos = both(2, 3)
    blind = DemoSet(*(replace(d, next_observations=None) for d in (demos.optimal, demos.all[60:])))
    _, weights = DemoDICE(updates=5).weigh(blind, Seeds(0)("learn"))
    lost = np.arange(len(weights)) % HORIZON == HORIZON - 1
    np.testing.assert_array_equal(weights == 0, lost)
    steps = Transitions.of(blind)
    np.testing.assert_array_equal(on_rows(np.ones(len(steps.rows)), steps, len(lost)), ~lost)


def test_the_papers_settings():
    paper = DemoDICE.paper()
    assert (paper.alpha, paper.values.discount) == (0.0, 0.99)
    assert (paper.updates, paper.batch_size, paper.learning_rate) == (2_000_000, 512, 3e-4)
    assert (paper.ratio.penalty, paper.ratio.guard, paper.ratio.allowed) == (0.1, 1e-3, (1.0, 1.0))
    assert paper.values.penalty == 1e-4
    replace(paper, updates=3).fit(both(), Seeds(0)("learn"))
