"""Small torch pieces that several methods share."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from elute.episodes import Array


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Dropout off, batch statistics frozen, no gradients; the mode before comes back."""
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        network.train(was_training)


@contextmanager
def training(network: nn.Module) -> Iterator[None]:
    """Dropout on, batch statistics gathered; the mode before comes back."""
    was_training = network.training
    network.train()
    try:
        yield
    finally:
        network.train(was_training)


def generator(rng: np.random.Generator) -> torch.Generator:
    """A torch stream grown from a numpy one."""
    return torch.Generator().manual_seed(int(rng.integers(2**63)))


@contextmanager
def seeded(rng: np.random.Generator) -> Iterator[None]:
    """Layers made inside start from this stream; torch's own is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**63)))
        yield


def tensor(array: Array) -> Tensor:
    """A float32 copy."""
    return torch.tensor(np.asarray(array), dtype=torch.float32)


def mlp(sizes: list[int], activation: type[nn.Module] = nn.Tanh) -> nn.Sequential:
    """Linear layers with an activation between them."""
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), activation()]
    return nn.Sequential(*layers[:-1])


class GaussianNetwork(nn.Module):
    """Mean action of a state in the policy's units, and a standard deviation for each action."""

    def __init__(self, n_observations: int, n_actions: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.body = small_end(mlp([n_observations, *hidden, n_actions]))
        self.log_std = nn.Parameter(torch.zeros(n_actions))

    def forward(self, units: Tensor) -> Tensor:
        """Means before they are squashed or clipped."""
        means: Tensor = self.body(units)
        return means


def small_end(network: nn.Sequential) -> nn.Sequential:
    """The last layer starts small, so that a new network's outputs are close to zero."""
    last = network[-1]
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        last.weight.mul_(0.1)
        last.bias.zero_()
    return network


def layers(network: nn.Sequential) -> tuple[tuple[Array, Array], ...]:
    """Weights, (in, out), and biases as numpy copies."""
    return tuple(
        (layer.weight.detach().numpy().T.copy(), layer.bias.detach().numpy().copy())
        for layer in network
        if isinstance(layer, nn.Linear)
    )
