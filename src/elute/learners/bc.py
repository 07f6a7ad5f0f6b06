"""Behaviour cloning: regress the action on the state.

    theta = argmin  mean over (s, a) of  || mu_theta((s - mean) / scale) - a ||^2

mu_theta has two hidden layers of 100 tanh units and a linear end. Mean and scale of the
observations are those of the data and belong to the policy; a column that does not vary is only
shifted. With `bounds`, targets and actions are clipped to what the simulator would execute.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from elute.episodes import Array
from elute.errors import EluteError
from elute.nets import evaluating, generator, mlp, seeded, tensor
from elute.types import Demonstrations


@dataclass(frozen=True, eq=False)
class Policy:
    """The mean action in a state."""

    network: nn.Module
    mean: Array
    scale: Array
    bounds: tuple[float, float] | None = None

    def act(self, observations: Array) -> Array:
        """Actions, (n, A), for observations, (n, S)."""
        with evaluating(self.network):
            actions: Array = self.network(self.units(observations)).numpy().astype(np.float64)
        return actions if self.bounds is None else np.clip(actions, *self.bounds)

    def units(self, observations: Array) -> Tensor:
        """Observations as the network sees them."""
        return tensor((observations - self.mean) / self.scale)


@dataclass(frozen=True, kw_only=True)
class BC:
    """How to clone; the same stream gives the same policy."""

    hidden: tuple[int, ...] = (100, 100)
    updates: int = 3000
    batch_size: int = 256
    """Pairs are drawn with replacement."""
    learning_rate: float = 1e-3
    bounds: tuple[float, float] | None = None
    """Lowest and highest action."""

    def fit(self, demos: Demonstrations, rng: np.random.Generator) -> Policy:
        """A policy that acts like the demonstrator.

        Raises:
            EluteError: a value is not finite.
        """
        observations = demos.observations.astype(np.float64)
        actions = demos.actions.astype(np.float64)
        if not (np.isfinite(observations).all() and np.isfinite(actions).all()):
            raise EluteError(
                f"{demos.provenance.source or 'demonstrations'}: holds values that are not finite",
                hint="elute demos audit FILE --fix OUT drops them",
            )
        mean, spread = observations.mean(axis=0), observations.std(axis=0)
        scale = np.where(spread > 1e-9 * np.maximum(1.0, np.abs(mean)), spread, 1.0)
        with seeded(rng):
            network = mlp([observations.shape[1], *self.hidden, actions.shape[1]])
        policy = Policy(network, mean, scale, self.bounds)
        targets = actions if self.bounds is None else np.clip(actions, *self.bounds)
        self._descend(network, policy.units(observations), tensor(targets), generator(rng))
        return policy

    def _descend(self, network: nn.Module, x: Tensor, y: Tensor, stream: torch.Generator) -> None:
        optimiser = torch.optim.Adam(network.parameters(), lr=self.learning_rate, fused=True)
        for _ in range(self.updates):
            drawn = torch.randint(0, len(x), (self.batch_size,), generator=stream)
            loss = ((network(x[drawn]) - y[drawn]) ** 2).mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
