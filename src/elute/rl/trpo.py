"""Trust region policy optimisation (Schulman et al. 2015), one step.

    g   = gradient of  L(theta) = mean of  pi_theta(a|s) / pi_old(a|s)  A   (+ c H)
    x   = (F + damping I)^-1 g            by conjugate gradients
    try   theta + x sqrt(2 max_kl / x^T (F + damping I) x),  then half of that, and so on,
    until L improves by a tenth of what g promises and the mean KL stays within max_kl

F v is exact: for a Gaussian whose deviations do not depend on the state the Hessian of the mean KL
is  J^T diag(1 / std^2) J v / n  for the mean network and 2 v for the log deviations. J^T u is
linear in u, so J v is its derivative: the graph is built once and walked back for each v.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from elute.nets import GaussianNetwork

Means = Callable[[Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class TRPO:
    """Sizes of the step; defaults are the paper's."""

    max_kl: float = 0.01
    damping: float = 0.1
    entropy: float = 0.0
    """c: weight of the entropy."""
    cg_iterations: int = 10
    backtracks: int = 10
    accept: float = 0.1
    """Share of the promised improvement that is enough."""


class Step(NamedTuple):
    """What a step did."""

    kl: float
    improvement: float
    log_std: float
    """Sum over the actions."""
    accepted: bool


class Batch(NamedTuple):
    """What a step learns from; observations in the network's units, advantages normalised."""

    observations: Tensor
    actions: Tensor
    advantages: Tensor


def log_prob(actions: Tensor, means: Tensor, log_std: Tensor) -> Tensor:
    """Log density up to a constant."""
    z = (actions - means) * torch.exp(-log_std)
    return -0.5 * (z**2).sum(dim=1) - log_std.sum()


def mean_kl(means: Tensor, log_std: Tensor, old_means: Tensor, old_log_std: Tensor) -> Tensor:
    """Mean over states of KL(old || new)."""
    variance, old_variance = torch.exp(2 * log_std), torch.exp(2 * old_log_std)
    distance = (old_variance + (old_means - means) ** 2) / (2 * variance)
    return (log_std - old_log_std + distance - 0.5).sum(dim=1).mean()


def conjugate_gradient(
    product: Callable[[Tensor], Tensor], b: Tensor, iterations: int, tolerance: float = 1e-10
) -> Tensor:
    """X with product(x) = b, for a symmetric positive definite product."""
    x, residual = torch.zeros_like(b), b.clone()
    direction, size = residual.clone(), residual @ residual
    for _ in range(iterations):
        if size < tolerance:
            break
        turned = product(direction)
        length = size / (direction @ turned)
        x = x + length * direction
        residual = residual - length * turned
        new_size = residual @ residual
        direction = residual + (new_size / size) * direction
        size = new_size
    return x


def fisher_product(
    network: GaussianNetwork, observations: Tensor, squash: Means
) -> Callable[[Tensor], Tensor]:
    """V -> F v, over all parameters in the order of `network.parameters()`."""
    names = [name for name, _ in network.named_parameters()]
    weights = [p for name, p in network.named_parameters() if name != "log_std"]
    precision = torch.exp(-2 * network.log_std.detach()) / len(observations)
    means = squash(network(observations))
    pull = torch.zeros_like(means, requires_grad=True)
    pulled = torch.autograd.grad(means, weights, pull, create_graph=True)  # J^T pull

    def product(v: Tensor) -> Tensor:
        parts = dict(zip(names, split(network, v), strict=True))
        deviation = 2 * parts.pop("log_std")
        moved = torch.autograd.grad(pulled, pull, list(parts.values()), retain_graph=True)[0]
        back = torch.autograd.grad(means, weights, moved * precision, retain_graph=True)
        turned = dict(zip(parts, back, strict=True)) | {"log_std": deviation}
        return flatten(turned[name] for name in names)

    return product


def trpo_step(network: GaussianNetwork, batch: Batch, settings: TRPO, squash: Means) -> Step:
    """Move the policy by one natural-gradient step within the trust region; in place."""
    with torch.no_grad():
        old_means, old_log_std = squash(network(batch.observations)), network.log_std.clone()
        old_log_prob = log_prob(batch.actions, old_means, old_log_std)

    def surrogate() -> tuple[Tensor, Tensor]:
        means = squash(network(batch.observations))
        ratio = torch.exp(log_prob(batch.actions, means, network.log_std) - old_log_prob)
        gain = (ratio * batch.advantages).mean() + settings.entropy * network.log_std.sum()
        return gain, mean_kl(means, network.log_std, old_means, old_log_std)

    before, _ = surrogate()
    gradient = flatten(torch.autograd.grad(before, list(network.parameters())))
    fisher = fisher_product(network, batch.observations, squash)

    def damped(v: Tensor) -> Tensor:
        return fisher(v) + settings.damping * v

    natural = conjugate_gradient(damped, gradient, settings.cg_iterations)
    curvature = natural @ damped(natural)
    if not (torch.isfinite(curvature) and curvature > 0):
        return Step(0.0, 0.0, float(old_log_std.sum()), accepted=False)
    full = natural * torch.sqrt(2 * settings.max_kl / curvature)
    return _search(network, surrogate, full, float(gradient @ full), settings)


@torch.no_grad()
def _search(
    network: GaussianNetwork,
    surrogate: Callable[[], tuple[Tensor, Tensor]],
    full: Tensor,
    promised: float,
    settings: TRPO,
) -> Step:
    """The longest of the halved steps that keeps its promise and the trust region; or none."""
    start = flatten(network.parameters()).clone()
    before = float(surrogate()[0])
    for halvings in range(settings.backtracks):
        share = 0.5**halvings
        put(network, start + share * full)
        gain, kl = (float(value) for value in surrogate())
        if kl <= settings.max_kl and gain - before > settings.accept * share * promised:
            return Step(kl, gain - before, float(network.log_std.sum()), accepted=True)
    put(network, start)
    return Step(0.0, 0.0, float(network.log_std.sum()), accepted=False)


def flatten(tensors: Iterable[Tensor]) -> Tensor:
    """One long vector."""
    return torch.cat([t.reshape(-1) for t in tensors])


def split(network: nn.Module, v: Tensor) -> list[Tensor]:
    """A long vector as tensors shaped like the parameters."""
    parameters = list(network.parameters())
    parts = torch.split(v, [p.numel() for p in parameters])
    return [part.view_as(p) for part, p in zip(parts, parameters, strict=True)]


def put(network: nn.Module, v: Tensor) -> None:
    """Overwrite the parameters."""
    with torch.no_grad():
        for parameter, part in zip(network.parameters(), split(network, v), strict=True):
            parameter.copy_(part)
