"""SMODICE weighs rows by the states they lead to."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from elute.learners.smodice import SMODICE, density, value_loss
from elute.rng import Seeds
from learners.point_mass import both
from learners.tabular import ACTIONS, DISCOUNT, STATES, divergence, mdp, policies

both_kinds = pytest.mark.parametrize("kind", ["kl", "chi2"])


@both_kinds
def test_no_residual_weighs_one_and_none_weighs_less_than_nothing(kind):
    np.testing.assert_array_equal(density(np.zeros(4), kind), 1.0)
    assert (density(np.array([-9.0, -1.0, 0.0, 2.0]), kind) >= 0).all()


def test_chi2_weights():
    np.testing.assert_allclose(density(np.array([-2.0, -1.0, -0.5, 2.0]), "chi2"), [0, 0, 0.5, 3])


@both_kinds
def test_the_loss_pulls_at_each_row_by_its_weight(kind):
    residuals = torch.tensor(2 * Seeds(0)("e").standard_normal(20), requires_grad=True)
    value_loss(torch.zeros(1), residuals, divergence=kind, discount=0.9).backward()
    pull = 20 * residuals.grad.numpy()
    np.testing.assert_allclose(pull, density(residuals.detach().numpy(), kind), atol=1e-12)


def test_the_conjugate_is_the_printed_one_where_rows_weigh_something():
    e = torch.tensor([-1.0, -0.3, 0.0, 2.0])
    loss = value_loss(torch.zeros(1), e, divergence="chi2", discount=0.9)
    torch.testing.assert_close(loss, (e**2 / 2 + e).mean())


@both_kinds
def test_weights_make_the_best_occupancy(kind):
    """Against a search over policies: - E[R] + D_f(rho, rho_U), of a data set seen evenly."""
    world = replace(mdp(deterministic=True), start=np.full(STATES, 1 / STATES))
    union = world.occupancy(np.full((STATES, ACTIONS), 1 / ACTIONS))
    np.testing.assert_allclose(union, 1 / (STATES * ACTIONS))
    seen = world.occupancy(policies()[0]).sum(axis=1)
    reward = np.log(seen * STATES)[:, None] + np.zeros((STATES, ACTIONS))

    def loss(initial, residuals, counts):
        torch.testing.assert_close(counts, torch.ones_like(counts))
        return value_loss(initial, residuals, divergence=kind, discount=DISCOUNT)

    def cost(d):
        far = divergence(d, union) if kind == "kl" else ((d / union - 1) ** 2 * union).sum() / 2
        return far - (d * reward).sum()

    residuals = world.minimise(loss, reward, union)[world.moves > 0]
    flow = density(residuals, kind).reshape(STATES, ACTIONS) * union
    assert np.abs(flow - union).max() > 0.02
    np.testing.assert_allclose(world.imbalance(flow), 0, atol=1e-6)
    np.testing.assert_allclose(flow, world.best(cost), atol=1e-5)


def test_both_divergences_learn_and_weights_have_mean_one():
    for kind in ("kl", "chi2"):
        policy, weights = SMODICE(updates=20, divergence=kind).weigh(both(), Seeds(0)("learn"))
        assert weights.mean() == pytest.approx(1.0)
        assert policy.about["method"] == "smodice"


def test_the_value_after_the_end_of_the_task_does_not_count(monkeypatch):
    demos, seen = both(2, 3), []
    ended = replace(demos.supplementary.episodes, terminated=np.array([True, False, False]))
    demos = type(demos)(demos.optimal, replace(demos.supplementary, episodes=ended))
    learner = SMODICE(updates=2)
    learn = type(learner.values).learn

    def spy(self, steps, rewards, discounts, *rest):
        seen.append(discounts)
        return learn(self, steps, rewards, discounts, *rest)

    monkeypatch.setattr(type(learner.values), "learn", spy)
    learner.fit(demos, Seeds(0)("learn"))
    expected = np.full(150, 0.99)
    expected[89] = 0.0
    np.testing.assert_array_equal(seen[0], expected)


def test_the_papers_settings():
    paper = SMODICE.paper()
    assert (paper.divergence, paper.values.discount) == ("chi2", 0.99)
    assert (paper.updates, paper.batch_size, paper.learning_rate) == (1_000_000, 512, 3e-4)
    assert (paper.ratio.penalty, paper.ratio.hidden) == (10.0, (256, 256))
    assert (paper.values.penalty, paper.values.weight_decay) == (0.0, 1e-4)
    replace(paper, updates=3).fit(both(), Seeds(0)("learn"))
