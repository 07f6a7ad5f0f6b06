"""The Gaussian policy while it learns, the same for every learner.

    log pi(a|s) = log N(a; mu((s - mean) / scale), std^2)

Mean and scale of the observations are those of the data and belong to the policy; a column that
does not vary is only shifted. With bounds, targets and actions are clipped to what the simulator
would execute. The deviation does not depend on the state.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from elute.columns import Column, still
from elute.episodes import Array
from elute.errors import EluteError
from elute.nets import layers, mlp, seeded, small_end, tensor
from elute.policy import GaussianPolicy
from elute.types import Demonstrations, check_finite

LEAST_STD = 1e-3
"""Below, a Gaussian is a point for every purpose."""
Limit = float | tuple[float, ...]
ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}


@dataclass(frozen=True, kw_only=True)
class Design:
    """How an actor is built."""

    hidden: tuple[int, ...] = (100, 100)
    activation: Literal["tanh", "relu"] = "tanh"
    squashed: bool = False
    """Bend means into the bounds by a tanh, instead of clipping."""
    standardise: bool = True
    """Give observations mean 0 and deviation 1."""
    bounds: tuple[Limit, Limit] | None = None
    """Lowest and highest action, for all columns or for each."""
    initial_std: float = 1.0
    least_std: float = LEAST_STD

    def __post_init__(self) -> None:
        if self.squashed and self.bounds is None:
            raise EluteError("a squashed policy needs bounds")
        if min(self.hidden, default=1) < 1:
            raise EluteError(f"hidden layers {self.hidden}; expected at least one unit in each")


class Actor(nn.Module):
    """Means and deviations that can be trained, in the units of some demonstrations."""

    def __init__(self, design: Design, demos: Demonstrations, rng: np.random.Generator) -> None:
        super().__init__()
        check_finite(demos)
        self.design, self.task = design, demos.provenance.task
        n_observations, self.n_actions = demos.observations.shape[1], demos.actions.shape[1]
        self.mean, self.scale = np.zeros(n_observations), np.ones(n_observations)
        if design.standardise:
            self.mean, self.scale = standard_units(demos.observations, demos.observation_columns)
        sizes = [n_observations, *design.hidden, self.n_actions]
        with seeded(rng):
            self.body = mlp(sizes, ACTIVATIONS[design.activation])
        if design.squashed:
            small_end(self.body)  # tanh is steep at zero and flat elsewhere
        self.log_std = nn.Parameter(torch.full((self.n_actions,), math.log(design.initial_std)))
        low, high = design.bounds or (-np.inf, np.inf)
        self.low, self.high = np.full(self.n_actions, low), np.full(self.n_actions, high)

    def inputs(self, observations: Array) -> Tensor:
        """Observations as the network takes them."""
        return tensor((observations.astype(np.float64) - self.mean) / self.scale)

    def targets(self, actions: Array) -> Tensor:
        """Actions as they would be executed."""
        return tensor(np.clip(actions.astype(np.float64), self.low, self.high))

    def forward(self, inputs: Tensor) -> Tensor:
        """Mean actions."""
        means: Tensor = self.body(inputs)
        if self.design.squashed:
            middle, half = tensor((self.high + self.low) / 2), tensor((self.high - self.low) / 2)
            means = middle + half * torch.tanh(means)
        return means

    def log_prob(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Log density of each action entry, (n, A)."""
        # put back into its bounds first: a clamp in the graph would have no gradient out of them
        self.log_std.data.clamp_(min=math.log(self.design.least_std), max=2.0)
        z = (targets - self(inputs)) * torch.exp(-self.log_std)
        density: Tensor = -0.5 * z**2 - self.log_std - 0.5 * math.log(2 * math.pi)
        return density

    def set_std(self, std: Array) -> None:
        """Give every action a deviation."""
        with torch.no_grad():
            self.log_std.copy_(tensor(np.log(np.maximum(std, self.design.least_std))))

    def policy(self, **about: object) -> GaussianPolicy:
        """A copy that acts."""
        log_std = self.log_std.detach().numpy().astype(np.float64)
        return GaussianPolicy(
            layers=layers(self.body),
            log_std=np.clip(log_std, math.log(self.design.least_std), 2.0),
            mean=self.mean,
            scale=self.scale,
            low=self.low,
            high=self.high,
            squashed=self.design.squashed,
            activation=self.design.activation,
            about={"task": self.task} | about,
        )


def standard_units(observations: Array, columns: Sequence[Column] = ()) -> tuple[Array, Array]:
    """Mean and deviation of each column; deviation 1 where hardly anything varies."""
    rows = observations.astype(np.float64)
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    return mean, np.where(still(mean, spread, columns), 1.0, spread)
