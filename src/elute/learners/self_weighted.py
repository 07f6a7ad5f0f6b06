"""Self-weighted BC: rows that the policy finds unlikely just now count less.

    w(s, a) = exp(-|| mu_theta(s) - a ||^2 / 2)                     a Gaussian of deviation 1
    theta   = argmin  mean over D_o and D_s of  sg[w(s, a)] || mu_theta(s) - a ||^2

This is what the released DP-IL code runs under the name BCND. It is not that method
(`bcnd.py`): there are no rounds and no old policy, and the deviation never shrinks, so weights
differ by a few times at most. Rows far from the policy get no gradient at all, which makes the
result depend on where it starts. Weights are relative to the density's peak: the factor
(2 pi)^(-A/2) of the released code is one that Adam does not see. `reference()` has its other
settings, but draws rows at random, where the released code never shuffles.
"""

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
from torch import Tensor

from elute.episodes import Array
from elute.learners.actor import Actor, Design
from elute.learners.descent import Descent
from elute.learners.learner import Log, silent
from elute.nets import generator
from elute.policy import GaussianPolicy
from elute.types import DemoSet


@dataclass(frozen=True, kw_only=True)
class SelfWeightedBC:
    """How to clone with the policy's own density as weight."""

    updates: int = 300
    """Few: an action learnt by heart looks likely."""
    batch_size: int = 256
    """Pairs are drawn with replacement."""
    learning_rate: float = 1e-3
    actor: Design = field(default_factory=Design)

    @classmethod
    def reference(cls) -> Self:
        """As the released code of DP-IL: raw units, a tanh mean."""
        actor = Design(standardise=False, squashed=True, bounds=(-1.0, 1.0))
        return cls(updates=1920, learning_rate=3e-4, actor=actor)

    def fit(self, demos: DemoSet, rng: np.random.Generator, log: Log = silent) -> GaussianPolicy:
        """A policy that acts like most of the rows."""
        return self.weigh(demos, rng, log)[0]

    def weigh(
        self, demos: DemoSet, rng: np.random.Generator, log: Log = silent
    ) -> tuple[GaussianPolicy, Array]:
        """The policy, and each row's density under it relative to the peak: at most one."""
        rows = demos.all
        actor = Actor(self.actor, rows, rng)
        x, y = actor.inputs(rows.observations), actor.targets(rows.actions)
        optimiser = torch.optim.Adam(actor.parameters(), lr=self.learning_rate, fused=True)
        descent = Descent(
            self.updates, {"actor": actor}, lambda: actor.policy(method="self-weighted-bc"), log
        )
        for drawn in descent.draws(generator(rng), len(x), self.batch_size):
            error = actor(x[drawn]) - y[drawn]
            descent.step(optimiser, mse=(relative_density(error)[:, None] * error**2).mean())
        with torch.no_grad():
            left = actor(x) - y
        weights = relative_density(left).numpy().astype(np.float64)
        actor.set_std(weighted_std(left.numpy(), weights))
        return descent.policy(), weights


def relative_density(errors: Tensor) -> Tensor:
    """Of each row's errors under deviation 1, the peak being one; no gradient."""
    return torch.exp(-0.5 * (errors.detach() ** 2).sum(dim=1))


def weighted_std(errors: Array, weights: Array) -> Array:
    """Deviation of each column from zero; that of all rows alike where no row counts."""
    total = float(weights.sum())
    shares = weights / total if total > math.ulp(0.0) else np.full(len(weights), 1 / len(weights))
    std: Array = np.sqrt(shares @ errors.astype(np.float64) ** 2)
    return std
