"""Behaviour cloning: regress the action on the state.

    theta = argmin  mean over (s, a) of  || mu_theta((s - mean) / scale) - a ||^2

mu_theta has two hidden layers of 100 tanh units and a linear end. Mean and scale of the
observations are those of the data and belong to the policy; a column that does not vary is only
shifted. With `bounds`, targets and actions are clipped to what the simulator would execute. The
policy's standard deviation is that of what is left over.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from elute.errors import EluteError
from elute.nets import generator, layers, mlp, seeded, tensor
from elute.policy import GaussianPolicy
from elute.types import Demonstrations

LEAST_STD = 1e-3
"""Below, a Gaussian is a point for every purpose."""


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

    def fit(self, demos: Demonstrations, rng: np.random.Generator) -> GaussianPolicy:
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
        low, high = (-np.inf, np.inf) if self.bounds is None else self.bounds
        targets = np.clip(actions, low, high)
        self._descend(
            network, tensor((observations - mean) / scale), tensor(targets), generator(rng)
        )
        n_actions = actions.shape[1]
        policy = GaussianPolicy(
            layers=layers(network),
            log_std=np.zeros(n_actions),
            mean=mean,
            scale=scale,
            low=np.full(n_actions, low),
            high=np.full(n_actions, high),
            about={"method": "bc", "task": demos.provenance.task},
        )
        left = np.sqrt(((policy.act(observations) - targets) ** 2).mean(axis=0))
        return replace(policy, log_std=np.log(np.maximum(left, LEAST_STD)))

    def _descend(self, network: nn.Module, x: Tensor, y: Tensor, stream: torch.Generator) -> None:
        optimiser = torch.optim.Adam(network.parameters(), lr=self.learning_rate, fused=True)
        for _ in range(self.updates):
            drawn = torch.randint(0, len(x), (self.batch_size,), generator=stream)
            loss = ((network(x[drawn]) - y[drawn]) ** 2).mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
