"""Behaviour cloning: regress the action on the state.

    theta = argmin  mean over (s, a) of  || mu_theta(s) - a ||^2         loss "mse"
    theta = argmin  mean over (s, a) of  - log pi_theta(a|s)             loss "nll"

BC-opt clones D_o, BC-all clones D_o and D_s. How long matters more than anything else: a network
knows 500 rows by heart after some hundred updates, noise included, and then acts worse and worse.
So a part of the rows is held out, the update with the least loss on them is found, and a new
network learns from all rows for as long. After "mse" the deviation is that of what is left over.
Observation noise, in units of each column's deviation, and weight decay are two other ways to keep
few rows from being learnt by heart.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor

from elute.learners.actor import Actor, Design
from elute.learners.descent import Descent
from elute.learners.learner import Log, silent
from elute.nets import generator
from elute.policy import GaussianPolicy
from elute.types import Demonstrations, DemoSet

LOOK = 25
"""Updates between looks at the rows that are held out."""
PATIENCE, LEAST_PATIENCE = 4, 1000
"""It is given up when so many times as many updates, and so many more, brought nothing better."""


@dataclass(frozen=True, kw_only=True)
class BC:
    """How to clone."""

    on: Literal["all", "optimal"] = "all"
    loss: Literal["mse", "nll"] = "mse"
    updates: int = 5000
    """At most; without rows held out, so many."""
    hold_out: float = 0.2
    """Share of the rows that says when to stop; 0 to do all updates."""
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
        return cls(on=on, updates=1920, hold_out=0.0, learning_rate=3e-4, actor=actor)

    def fit(self, demos: DemoSet, rng: np.random.Generator, log: Log = silent) -> GaussianPolicy:
        """A policy that acts like the demonstrator."""
        return self.clone(demos.optimal if self.on == "optimal" else demos.all, rng, log)

    def clone(
        self, rows: Demonstrations, rng: np.random.Generator, log: Log = silent
    ) -> GaussianPolicy:
        """A policy that acts like the demonstrator of one set."""
        name = "bc" if self.on == "all" else "bc-opt"
        updates = self._enough(rows, rng.spawn(1)[0], log) if self.hold_out else self.updates
        actor = Actor(self.actor, rows, rng)
        x, y = actor.inputs(rows.observations), actor.targets(rows.actions)
        descent = Descent(updates, {"actor": actor}, lambda: actor.policy(method=name), log)
        for _ in self._descend(descent, actor, (x, y), generator(rng)):
            pass
        if self.loss == "mse":
            left = descent.policy().act(rows.observations) - y.numpy()
            actor.set_std(np.sqrt((left**2).mean(axis=0)))
        return descent.policy()

    def _enough(self, rows: Demonstrations, rng: np.random.Generator, log: Log) -> int:
        """The number of updates after which rows that are held out are predicted best."""
        held = max(1, round(self.hold_out * len(rows)))
        if held == len(rows):
            return self.updates
        actor, order = Actor(self.actor, rows, rng), torch.from_numpy(rng.permutation(len(rows)))
        x, y = actor.inputs(rows.observations)[order], actor.targets(rows.actions)[order]
        descent = Descent(self.updates, {"actor": actor}, actor.policy, log)
        best, enough = math.inf, self.updates
        for update in self._descend(descent, actor, (x[held:], y[held:]), generator(rng)):
            if (update + 1) % LOOK == 0:
                with torch.no_grad():
                    loss = float(self._loss(actor, x[:held], y[:held]))
                if loss < best:
                    best, enough = loss, update + 1
                if update > PATIENCE * enough + LEAST_PATIENCE:
                    break
        return enough

    def _descend(
        self,
        descent: Descent[GaussianPolicy],
        actor: Actor,
        data: tuple[Tensor, Tensor],
        stream: torch.Generator,
    ) -> Iterator[int]:
        """Number of each update, when it is done."""
        x, y = data
        optimiser = torch.optim.AdamW(
            actor.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay, fused=True
        )
        for drawn in descent.draws(stream, len(x), self.batch_size):
            inputs = x[drawn]
            if self.observation_noise:
                inputs = inputs + self.observation_noise * torch.randn(
                    inputs.shape, generator=stream
                )
            descent.step(optimiser, **{self.loss: self._loss(actor, inputs, y[drawn])})
            yield descent.update

    def _loss(self, actor: Actor, inputs: Tensor, targets: Tensor) -> Tensor:
        if self.loss == "nll":
            return -actor.log_prob(inputs, targets).sum(dim=1).mean()
        mse: Tensor = ((actor(inputs) - targets) ** 2).mean()
        return mse
