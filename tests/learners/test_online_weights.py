"""Weights of WGAIL and SAIL. Numbers of tests are sections of the method notes."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm

from elute.errors import EluteError
from elute.learners.sail import SAIL, bounded_reward, threshold_weights
from elute.learners.wgail import WGAIL, agreed_weights
from elute.types import DemoSet
from learners.online import LOOP, METHODS, agent, judge, look, scene
from learners.point_mass import both


def test_10_even_beliefs_give_even_weights():
    weights = agreed_weights(torch.zeros(9), torch.full((9,), -3.0), beta=1.0)
    torch.testing.assert_close(weights, torch.ones(9))


def test_10_weights_grow_with_the_logit_and_with_the_density():
    rising, level = torch.linspace(-2, 2, 9), torch.zeros(9)
    assert (agreed_weights(rising, level, 1.0).diff() > 0).all()
    assert (agreed_weights(level, rising, 1.0).diff() > 0).all()


def test_10_they_are_the_printed_formula_with_its_mean_divided_out():
    rng = np.random.default_rng(0)
    logits, log_pi = rng.normal(size=20), rng.normal(size=20)
    agent_high = 1 / (1 + np.exp(logits))
    for beta in (1.0, 9.0):
        printed = ((1 / agent_high - 1) * np.exp(log_pi)) ** (1 / (beta + 1))
        found = agreed_weights(torch.tensor(logits), torch.tensor(log_pi), beta)
        np.testing.assert_allclose(found, printed / printed.mean(), rtol=1e-5)


def test_10_beta_without_bound_gives_1():
    given = torch.linspace(-9, 9, 7), torch.linspace(5, -30, 7)
    torch.testing.assert_close(agreed_weights(*given, beta=1e12), torch.ones(7))


def test_10_densities_beyond_what_a_float_holds_still_have_ratios():
    log_pi = torch.tensor([-900.0, -902.0, -904.0])
    weights = agreed_weights(torch.zeros(3), log_pi, beta=1.0)
    torch.testing.assert_close(weights / weights[0], torch.exp(torch.tensor([0.0, -1.0, -2.0])))
    assert weights.mean().item() == pytest.approx(1.0, abs=1e-6)


def test_10_rows_that_the_policy_would_play_weigh_more():
    demos = both().optimal
    on = agent().policy().act(demos.observations)
    off = np.clip(on + np.where(on > 0, -1.0, 1.0), -1, 1)
    halves = np.where(np.arange(len(on))[:, None] % 2 == 0, on, off)
    of = judge(METHODS["wgail"], DemoSet(replace(demos, actions=halves)))
    weights = of.weigh(look(of, env_steps=10_000)).expert
    assert weights[::2].mean() > 2 * weights[1::2].mean()
    assert torch.equal(of.weigh(look(of, env_steps=9_999)).expert, torch.ones(len(halves)))


def test_the_density_is_that_of_the_policy_at_the_executed_action():
    of = judge(METHODS["wgail"])
    rows, policy = both().all, agent().policy()
    means = policy.act(rows.observations)
    wanted = norm.logpdf(rows.actions.clip(-1, 1), means, policy.std).sum(axis=1)
    np.testing.assert_allclose(look(of).log_pi, wanted, atol=1e-4)


REWARDS = torch.tensor([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0])


def test_11_at_first_half_of_the_demonstrations_count():
    weights = threshold_weights(REWARDS, 0.0, soft=False)
    assert torch.equal(weights, torch.tensor([0.0] * 4 + [2.0] * 4))


def test_11_in_the_end_all_do():
    assert torch.equal(threshold_weights(REWARDS, 1.0, soft=False), torch.ones(8))


def test_11_soft_weights_are_the_printed_formula_with_its_mean_divided_out():
    found = threshold_weights(REWARDS, 0.5, soft=True)
    threshold = 2.25 - 0.125 * (2.25 - 0.5)
    printed = 1 / (1 + np.exp(threshold - REWARDS.numpy()))
    assert ((printed > 0) & (printed < 1)).all()
    np.testing.assert_allclose(found, printed / printed.mean(), rtol=1e-5)


@pytest.mark.parametrize("soft", [True, False])
def test_11_equal_rewards_weigh_alike(soft):
    weights = threshold_weights(torch.full((6,), 2.0), 0.3, soft=soft)
    torch.testing.assert_close(weights, torch.ones(6))


def test_11_the_reward_lies_between_0_and_5():
    paid = bounded_reward(torch.linspace(-30, 10, 41))
    assert (paid > 0).all()
    assert (paid < 5).all()
    assert bounded_reward(torch.zeros(1)).item() == 2.5


def test_11_the_schedule_begins_after_the_warm_up_and_ends_with_the_steps():
    of = judge(SAIL(soft=False, loop=LOOP))
    n = len(of.demos)

    def counted(env_steps):
        return int((of.weigh(look(of, env_steps)).expert > 0).sum())

    warm = LOOP.env_steps // 10
    assert counted(warm - 1) == n
    assert counted(warm) == math.ceil(n / 2)
    assert counted(warm) < counted(LOOP.env_steps * 9 // 10) < counted(LOOP.env_steps) == n


@pytest.mark.parametrize(
    "bad",
    [lambda: WGAIL(beta=-1.0), lambda: WGAIL(warm_up=-1), lambda: SAIL(warm_up=1.0)],
)
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(EluteError, match="expected"):
        bad()


def test_gail_weighs_nothing():
    seen, _ = scene()
    weights = METHODS["gail"].begin(seen)(look(None))
    assert torch.equal(weights.expert, torch.ones(len(seen.inputs)))
    assert (weights.agent, weights.policy) == (None, 1.0)
