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
