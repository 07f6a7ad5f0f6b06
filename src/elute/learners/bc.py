"""Behaviour cloning: regress the action on the state.

    theta = argmin  mean over (s, a) of  || mu_theta(s) - a ||^2         loss "mse"
    theta = argmin  mean over (s, a) of  - log pi_theta(a|s)             loss "nll"

BC-opt clones D_o, BC-all clones D_o and D_s. After "mse" the policy's deviation is that of what is
left over. Observation noise, in units of each column's deviation, and weight decay are two ways to
keep few rows from being learnt by heart.
"""

from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np
import torch

from elute.learners.actor import Actor, Design
from elute.learners.descent import Descent
from elute.learners.learner import Log, silent
from elute.nets import generator
from elute.policy import GaussianPolicy
from elute.types import Demonstrations, DemoSet


@dataclass(frozen=True, kw_only=True)
class BC:
    """How to clone."""

    on: Literal["all", "optimal"] = "all"
    loss: Literal["mse", "nll"] = "mse"
    updates: int = 3000
    batch_size: int = 256
    """Pairs are drawn with replacement."""
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    observation_noise: float = 0.0
    actor: Design = field(default_factory=Design)

    @classmethod
    def paper(cls, *, on: Literal["all", "optimal"] = "all") -> Self:
        """As the paper's code clones, but with rows drawn at random: raw units, a tanh mean."""
        actor = Design(standardise=False, squashed=True, bounds=(-1.0, 1.0))
        return cls(on=on, updates=1920, learning_rate=3e-4, actor=actor)

    def fit(self, demos: DemoSet, rng: np.random.Generator, log: Log = silent) -> GaussianPolicy:
        """A policy that acts like the demonstrator."""
        return self.clone(demos.optimal if self.on == "optimal" else demos.all, rng, log)

    def clone(
        self, rows: Demonstrations, rng: np.random.Generator, log: Log = silent
    ) -> GaussianPolicy:
        """A policy that acts like the demonstrator of one set."""
        actor = Actor(self.actor, rows, rng)
        x, y = actor.inputs(rows.observations), actor.targets(rows.actions)
        optimiser = torch.optim.AdamW(
            actor.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay, fused=True
        )
        stream, name = generator(rng), "bc" if self.on == "all" else "bc-opt"
        descent = Descent(self.updates, {"actor": actor}, lambda: actor.policy(method=name), log)
        for drawn in descent.draws(stream, len(x), self.batch_size):
            inputs = x[drawn]
            if self.observation_noise:
                inputs = inputs + self.observation_noise * torch.randn(
                    inputs.shape, generator=stream
                )
            if self.loss == "nll":
                descent.step(optimiser, nll=-actor.log_prob(inputs, y[drawn]).sum(dim=1).mean())
            else:
                descent.step(optimiser, mse=((actor(inputs) - y[drawn]) ** 2).mean())
        if self.loss == "mse":
            left = descent.policy().act(rows.observations) - y.numpy()
            actor.set_std(np.sqrt((left**2).mean(axis=0)))
        return descent.policy()
