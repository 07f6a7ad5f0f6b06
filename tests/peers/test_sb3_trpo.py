"""sb3-contrib's TRPO finds our gradient and our natural direction. Run with `make test-peers`.

Theirs averages the KL over the actions' entries as well as over states, where the KL of a Gaussian
is their sum. So with A entries their Fisher matrix is F / A, and with a damping of ours / A their
system is ours / A and its solution A times ours.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from elute.nets import GaussianNetwork, seeded
from elute.rl.trpo import TRPO, Batch, conjugate_gradient, fisher_product, flatten, log_prob

pytestmark = pytest.mark.peers

N_OBSERVATIONS, N_ACTIONS, HIDDEN, ROWS = 5, 3, (16, 12), 400
SETTINGS = TRPO(cg_iterations=200)
"""Enough for both solvers to arrive: theirs starts from a random point, ours from zero."""


def identity(means):
    """Theirs has no bounds on the mean."""
    return means


@pytest.fixture
def ours():
    with seeded(np.random.default_rng(0)):
        made = GaussianNetwork(N_OBSERVATIONS, N_ACTIONS, HIDDEN)
        for weight in made.body.parameters():
            torch.nn.init.normal_(weight, std=0.4)
        torch.nn.init.normal_(made.log_std, std=0.3)
    return made.double()


@pytest.fixture
def batch():
    with seeded(np.random.default_rng(1)):
        sizes = (ROWS, N_OBSERVATIONS), (ROWS, N_ACTIONS), (ROWS,)
        observations, actions, gains = (torch.randn(size, dtype=torch.float64) for size in sizes)
    return Batch(observations, actions, (gains - gains.mean()) / (gains.std() + 1e-8))


@pytest.fixture
def theirs(ours):
    """Their algorithm with our weights."""
    contrib = pytest.importorskip("sb3_contrib", reason="not installed: make test-peers")
    gymnasium = pytest.importorskip("gymnasium")

    class Still(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (N_OBSERVATIONS,), np.float64)
        action_space = gymnasium.spaces.Box(-1.0, 1.0, (N_ACTIONS,), np.float32)

    hidden = {"pi": list(HIDDEN), "vf": list(HIDDEN)}
    model = contrib.TRPO(
        "MlpPolicy", Still(), n_steps=128, batch_size=128, cg_damping=SETTINGS.damping / N_ACTIONS,
        policy_kwargs={"net_arch": hidden}, device="cpu",
    )  # fmt: skip
    model.policy.double()
    pairs = zip(
        [*ours.body.parameters(), ours.log_std],
        [*model.policy.mlp_extractor.policy_net.parameters(),
         *model.policy.action_net.parameters(), model.policy.log_std],
        strict=True,
    )  # fmt: skip
    with torch.no_grad():
        for own, other in pairs:
            other.copy_(own)
    return model


def by_us(network, batch):
    """Surrogate gradient, damped curvature along it, and natural direction."""
    old = log_prob(batch.actions, identity(network(batch.observations)), network.log_std).detach()
    now = log_prob(batch.actions, identity(network(batch.observations)), network.log_std)
    surrogate = (torch.exp(now - old) * batch.advantages).mean()
    gradient = flatten(torch.autograd.grad(surrogate, list(network.parameters())))
    fisher = fisher_product(network, batch.observations, identity)

    def damped(v):
        return fisher(v) + SETTINGS.damping * v

    natural = conjugate_gradient(damped, gradient, SETTINGS.cg_iterations, tolerance=1e-24)
    names = [name for name, _ in network.named_parameters()]
    found = SimpleNamespace(gradient=gradient, curved=damped(gradient), natural=natural)
    return parts(found, names, [p.numel() for p in network.parameters()])


def by_them(model, batch):
    """The same, from the methods their `train` calls."""
    from sb3_contrib.common.utils import conjugate_gradient_solver  # noqa: PLC0415 (a peer)
    from stable_baselines3.common.distributions import (  # noqa: PLC0415
        DiagGaussianDistribution,
        kl_divergence,
    )

    policy = model.policy

    def distribution():  # `get_distribution` would make float32 of the observations
        means = policy.action_net(policy.mlp_extractor.forward_actor(batch.observations))
        return DiagGaussianDistribution(N_ACTIONS).proba_distribution(means, policy.log_std)

    with torch.no_grad():
        old = distribution()
        old_log_prob = old.log_prob(batch.actions)
    now = distribution()
    ratio = torch.exp(now.log_prob(batch.actions) - old_log_prob)
    kl = kl_divergence(now, old).mean()
    params, gradient, kl_gradient, _ = model._compute_actor_grad(
        kl, (batch.advantages * ratio).mean()
    )

    def damped(v):
        return model.hessian_vector_product(params, kl_gradient, v)

    natural = conjugate_gradient_solver(
        damped, gradient, max_iter=SETTINGS.cg_iterations, residual_tol=1e-24
    )
    of = {id(p): name for name, p in policy.named_parameters()}
    found = SimpleNamespace(gradient=gradient, curved=damped(gradient), natural=natural)
    return parts(found, [of[id(p)] for p in params], [p.numel() for p in params])


def parts(found, names, sizes):
    """Deviations apart from weights, which both sides hold in the order of the layers."""
    split = {what: torch.split(v.detach(), sizes) for what, v in vars(found).items()}
    return {
        what: {
            "log_std": vectors[names.index("log_std")],
            "weights": torch.cat(
                [v for v, n in zip(vectors, names, strict=True) if n != "log_std"]
            ),
        }
        for what, vectors in split.items()
    }


@pytest.mark.parametrize(
    ("what", "factor"), [("gradient", 1.0), ("curved", 1 / N_ACTIONS), ("natural", N_ACTIONS)]
)
def test_they_agree(ours, theirs, batch, what, factor):
    mine, other = by_us(ours, batch)[what], by_them(theirs, batch)[what]
    for part in ("weights", "log_std"):
        assert mine[part].abs().max() > 1e-3, "a comparison of zeros"
        np.testing.assert_allclose(factor * mine[part], other[part], rtol=1e-7, atol=1e-9)
