"""DWBC: the discriminator's optimum, its gradients, and the weights that follow from it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from elute.errors import EluteError
from elute.learners.actor import Actor, Design
from elute.learners.dwbc import (
    DWBC,
    MOST,
    Discriminator,
    cross_entropy,
    optimal_weights,
    pu_loss,
    unlabeled_weights,
)
from elute.rng import Seeds
from elute.types import DemoSet
from learners.point_mass import both, demonstrations

SMALL = DWBC(
    batch_size=128, discriminator_rate=1e-3, discriminator_width=32, actor=Design(hidden=(32, 32))
)
OPTIMAL_BINS = torch.tensor([0] * 5 + [1] * 3 + [2] * 2)
"""p_o = [.5, .3, .2, 0]."""
UNLABELED_BINS = torch.tensor([0] * 5 + [1] * 4 + [2] * 5 + [3] * 6)
"""p_s = half of it, and half of [0, .1, .3, .6]."""


def optimum(loss, start=0.0):
    """d of a table of logits after descent on a loss."""
    logits = torch.full((4,), start, requires_grad=True)
    optimiser = torch.optim.Adam([logits], lr=0.1)
    for _ in range(800):
        optimiser.zero_grad()
        loss(logits[OPTIMAL_BINS], logits[UNLABELED_BINS]).backward()
        optimiser.step()
    return torch.sigmoid(logits.detach()).numpy()


def test_1_equal_sets_are_told_apart_by_nothing():
    for loss, d in ((lambda g, m: pu_loss(g, m, 0.3), 0.3), (cross_entropy, 0.5)):
        for off, sign in ((-0.1, -1), (0.0, 0), (0.1, 1)):
            logits = torch.logit(torch.tensor([d + off])).requires_grad_()
            loss(logits, logits).backward()
            assert np.sign(round(logits.grad.item(), 6)) == sign


def test_1_equal_sets_weigh_the_same_row_by_row():
    good = demonstrations(3)
    learner = replace(SMALL, eta=0.7, alpha=10.0, updates=1000)
    _, weights = learner.weigh(DemoSet(good, good), Seeds(0)("learn"))
    optimal, others = weights[: len(good)] / 2, weights[len(good) :] / 2
    np.testing.assert_allclose(optimal, 9 - 0.7 / 0.21, rtol=0.1)
    np.testing.assert_allclose(others, 0.7 / 0.3, rtol=0.25)


@pytest.mark.parametrize("start", [0.0, -6.0, 6.0])
def test_2_the_optimum_is_the_posterior(start):
    found = optimum(lambda good, mixed: pu_loss(good, mixed, 0.5, most=1.0), start)
    np.testing.assert_allclose(found, [1, 0.75, 0.4, 0], atol=0.01)


@pytest.mark.parametrize("start", [0.0, -6.0, 6.0])
def test_2_the_bound_only_caps_it(start):
    found = optimum(lambda good, mixed: pu_loss(good, mixed, 0.5), start)
    np.testing.assert_allclose(found, [0.9, 0.75, 0.4, 0], atol=0.01)


def test_3_hidden_optimal_rows_weigh_more_than_noisy_ones():
    hidden, noisy = demonstrations(6, seed=5), demonstrations(6, noise=0.8, seed=6)
    demos = DemoSet(demonstrations(3), hidden + noisy)
    _, weights = SMALL.weigh(demos, Seeds(0)("learn"))
    others = weights[len(demos.optimal) :]
    assert others[: len(hidden)].mean() > 2 * others[len(hidden) :].mean()


def test_4_rows_below_the_threshold_weigh_nothing():
    d = torch.tensor([0.1, 0.3, 0.4999, 0.5, 0.9])
    np.testing.assert_allclose(unlabeled_weights(d).numpy(), [0, 0, 0, 1, 9], rtol=1e-5)


def test_rows_are_weighed_by_the_policy_that_is_returned(monkeypatch):
    """The average, not the last weights: the discriminator is asked about its log density."""
    seen, forward = [], Discriminator.forward

    def spied(self, inputs, actions, log_pi):
        seen.append(log_pi)
        return forward(self, inputs, actions, log_pi)

    monkeypatch.setattr(Discriminator, "forward", spied)
    demos = both()
    policy, _ = replace(SMALL, updates=50).weigh(demos, Seeds(0)("learn"))
    off = (demos.all.actions - policy.act(demos.all.observations)) / policy.std
    expected = -0.5 * off**2 - policy.log_std - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(seen[-1].numpy(), expected, rtol=1e-4, atol=1e-4)


def test_official_weights_of_optimal_rows():
    d = torch.tensor([0.5, 0.1, 0.9])
    found = optimal_weights(d, alpha=7.5, eta=0.5).numpy()
    np.testing.assert_allclose(found, [4.5, 0.9444, 0.9444], atol=1e-4)


def test_printed_weights_are_one_more_and_clone_every_row():
    d = torch.tensor([0.1, 0.5, 0.9])
    np.testing.assert_allclose(
        optimal_weights(d, 7.5, 0.5, "printed"), optimal_weights(d, 7.5, 0.5) + 1, rtol=1e-6
    )
    np.testing.assert_allclose(unlabeled_weights(d, "printed"), [10 / 9, 2, 10], rtol=1e-5)


def test_the_loss_is_the_positive_unlabeled_risk():
    rng = torch.Generator().manual_seed(0)
    good, mixed = (2 * torch.rand(50, generator=rng) for _ in range(2))
    d_o, d_s = torch.sigmoid(good), torch.sigmoid(mixed)
    risk = (-torch.log(d_o) + torch.log(1 - d_o)).mean() - torch.log(1 - d_s).mean() / 0.4
    assert pu_loss(good, mixed, 0.4).item() == pytest.approx(risk.item(), rel=1e-5)


def test_rows_it_is_wrong_about_keep_their_gradient():
    good, mixed = (torch.tensor([value], requires_grad=True) for value in (-5.0, 5.0))
    clipped = [torch.sigmoid(logits).clamp(0.1, 0.9) for logits in (good, mixed)]
    (-torch.log(clipped[0]) - torch.log(1 - clipped[1])).sum().backward()
    assert (good.grad.item(), mixed.grad.item()) == (0, 0)  # had d been clipped before the loss
    pu_loss(good, mixed, 0.5).backward()
    assert good.grad.item() == -1  # up
    assert mixed.grad.item() > 1.9  # down


def test_the_loss_has_a_lower_bound():
    sure = pu_loss(torch.tensor([1e6]), torch.tensor([-1e6]), 0.5)
    assert sure.item() == pytest.approx(-np.log(MOST / (1 - MOST)), rel=1e-5)


def test_the_discriminators_loss_does_not_move_the_actor():
    demos = both().all
    actor = Actor(Design(), demos, Seeds(0)("actor"))
    judge = Discriminator(2, 1, 16, Seeds(0)("judge"))
    x, y = actor.inputs(demos.observations), actor.targets(demos.actions)
    judge(x, y, actor.log_prob(x, y).detach()).sum().backward()
    assert all(parameter.grad is None for parameter in actor.parameters())
    assert all(parameter.grad is not None for parameter in judge.parameters())


def test_the_discriminator_learns_only_now_and_then():
    demos, rows = both(), []
    seldom = replace(SMALL, updates=201, discriminator_every=200)
    seldom.fit(demos, Seeds(0)("learn"), rows.append)
    assert [row["update"] for row in rows if "discriminator" in row] == [0, 200]


def test_d_o_is_the_positive_set():
    good = demonstrations(6)
    wrong = replace(demonstrations(6, seed=5), actions=-demonstrations(6, seed=5).actions)

    def agreement(demos):
        found = SMALL.fit(demos, Seeds(0)("learn")).act(good.observations)
        return float(np.corrcoef(found[:, 0], good.actions[:, 0])[0, 1])

    assert agreement(DemoSet(good, wrong)) > 0.9
    assert agreement(DemoSet(wrong, good)) < -0.9


def test_settings_that_unlearn_are_refused():
    with pytest.raises(EluteError, match="alpha 6") as refused:
        DWBC(alpha=6.0)
    assert "6.56" in refused.value.hint
    DWBC(alpha=6.0, form="printed")
    with pytest.raises(EluteError, match="eta"):
        DWBC(eta=0.0)


def test_presets_differ_in_their_weights_only():
    assert replace(DWBC.paper(), form="official") == DWBC.official()
    assert DWBC.official().discriminator_every == 100
