"""TRPO and GAE against closed forms."""

import numpy as np
import pytest
import torch

from elute.nets import GaussianNetwork, seeded
from elute.rl.gae import advantages
from elute.rl.trpo import (
    TRPO,
    Batch,
    conjugate_gradient,
    fisher_product,
    flatten,
    log_prob,
    mean_kl,
    put,
    split,
    trpo_step,
)

RNG = np.random.default_rng(0)


def squash(means):
    return torch.tanh(means)


def network(seed=0):
    with seeded(np.random.default_rng(seed)):
        made = GaussianNetwork(5, 3, (8, 6))
        for weight in made.body.parameters():
            torch.nn.init.normal_(weight, std=0.5)
        torch.nn.init.normal_(made.log_std, std=0.3)
    return made


def batch(n=200):
    with seeded(np.random.default_rng(1)):
        return Batch(torch.randn(n, 5), torch.randn(n, 3), torch.randn(n))


def test_with_lambda_one_and_no_values_it_is_the_discounted_return():
    rewards = RNG.normal(size=30)
    expected = [sum(0.9**k * r for k, r in enumerate(rewards[t:])) for t in range(30)]
    found = advantages(rewards, np.zeros(31), gamma=0.9, lam=1.0)
    np.testing.assert_allclose(found, expected)


def test_with_lambda_zero_it_is_the_one_step_error():
    rewards, values = RNG.normal(size=30), RNG.normal(size=31)
    expected = rewards + 0.9 * values[1:] - values[:-1]
    np.testing.assert_allclose(advantages(rewards, values, gamma=0.9, lam=0.0), expected)


def test_in_between_it_is_the_recursion():
    rewards, values = RNG.normal(size=30), RNG.normal(size=31)
    expected, following = np.zeros(30), 0.0
    for t in reversed(range(30)):
        following = rewards[t] + 0.99 * values[t + 1] - values[t] + 0.99 * 0.95 * following
        expected[t] = following
    np.testing.assert_allclose(advantages(rewards, values, gamma=0.99, lam=0.95), expected)


def test_the_true_value_function_leaves_no_advantage():
    """A constant reward forever has value r / (1 - gamma): a time limit must not change that."""
    values = np.full(51, 2.0 / (1 - 0.9))
    np.testing.assert_allclose(
        advantages(np.full(50, 2.0), values, gamma=0.9, lam=0.97), 0.0, atol=1e-9
    )


def test_conjugate_gradient_solves():
    factor = RNG.normal(size=(20, 20))
    matrix = torch.tensor(factor @ factor.T + np.eye(20))
    b = torch.tensor(RNG.normal(size=20))
    x = conjugate_gradient(lambda v: matrix @ v, b, iterations=60, tolerance=1e-20)
    np.testing.assert_allclose(x, np.linalg.solve(matrix, b), atol=1e-6)


def test_the_fisher_product_is_the_hessian_of_the_mean_kl():
    policy, observations = network().double(), batch().observations.double()
    means, log_std = squash(policy(observations)).detach(), policy.log_std.detach()
    kl = mean_kl(squash(policy(observations)), policy.log_std, means, log_std)
    gradient = flatten(torch.autograd.grad(kl, list(policy.parameters()), create_graph=True))
    v = torch.tensor(RNG.normal(size=len(gradient)))
    hessian = flatten(torch.autograd.grad(gradient @ v, list(policy.parameters())))
    np.testing.assert_allclose(fisher_product(policy, observations, squash)(v), hessian, atol=1e-9)


def test_log_probability_and_kl_are_those_of_torch():
    policy, given = network(), batch()
    means = squash(policy(given.observations)).detach()
    log_std = policy.log_std.detach()
    normal = torch.distributions.Normal(means, torch.exp(log_std))
    expected = normal.log_prob(given.actions).sum(dim=1)
    constant = 1.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(
        log_prob(given.actions, means, log_std) - constant, expected, atol=1e-4
    )
    other = torch.distributions.Normal(means + 0.3, torch.exp(log_std + 0.2))
    kl = torch.distributions.kl_divergence(normal, other).sum(dim=1).mean()
    np.testing.assert_allclose(mean_kl(means + 0.3, log_std + 0.2, means, log_std), kl, rtol=1e-5)


def test_a_step_improves_within_the_trust_region():
    policy, given = network(), batch()
    before = flatten(policy.parameters()).clone()
    means, log_std = squash(policy(given.observations)).detach(), policy.log_std.detach().clone()
    step = trpo_step(policy, given, TRPO(), squash)
    assert step.accepted
    assert step.improvement > 0
    after = mean_kl(squash(policy(given.observations)), policy.log_std, means, log_std)
    assert float(after.detach()) == pytest.approx(step.kl, rel=1e-4)
    assert 0.001 < step.kl <= 0.01
    assert not torch.equal(flatten(policy.parameters()), before)


def test_a_step_that_cannot_keep_its_promise_leaves_the_policy_as_it_was():
    policy, given = network(), batch()
    before = flatten(policy.parameters()).clone()
    step = trpo_step(policy, given, TRPO(accept=1e9), squash)
    assert not step.accepted
    assert torch.equal(flatten(policy.parameters()), before)


def test_no_advantage_is_no_step():
    policy, given = network(), batch()
    step = trpo_step(policy, given._replace(advantages=torch.zeros(200)), TRPO(), squash)
    assert not step.accepted


def test_the_long_vector_and_the_parameters_are_the_same_numbers():
    policy = network()
    long = flatten(policy.parameters())
    put(policy, 2 * long)
    np.testing.assert_allclose(flatten(policy.parameters()).detach(), 2 * long.detach())
    assert [p.shape for p in split(policy, long)] == [p.shape for p in policy.parameters()]
