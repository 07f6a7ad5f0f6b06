"""Behaviour cloning: regress the action on the state.

    theta = argmin  mean over (s, a) of  || mu_theta(s) - a ||^2         loss "mse"
    theta = argmin  mean over (s, a) of  - log pi_theta(a|s)             loss "nll"

BC-opt clones D_o, BC-all clones D_o and D_s. How long matters more than anything else: a network
knows 500 rows by heart after some hundred updates, noise included, and then acts worse and worse.
So a part of the rows is held out (of few rows one part after the other), the update with the least
loss on them is found, and a new network learns from all rows for as long. After "mse" the deviation
is that of what is left over. Observation noise, in units of each column's deviation, and weight
decay are two other ways to keep few rows from being learnt by heart.

By default the policy is a moving average of the weights (average.py), and so is what the held-out
rows judge.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor

from elute.errors import EluteError
from elute.learners.actor import Actor, Design
from elute.learners.average import Average, check_share
from elute.learners.descent import Descent
from elute.learners.learner import Log, silent
from elute.nets import generator
from elute.policy import GaussianPolicy
from elute.types import Demonstrations, DemoSet

LOOK = 25
"""Updates between looks at the rows that are held out."""
JUDGES = 100
"""Rows that shall be held out at least, one fold after the other, if there are so many."""
PATIENCE, LEAST_PATIENCE = 4, 1000
"""It is given up when so many times as many updates, and so many more, brought nothing better."""


@dataclass(frozen=True, kw_only=True)
class BC:
    """How to clone."""

    on: Literal["all", "optimal"] = "all"
    loss: Literal["mse", "nll"] = "mse"
    updates: int = 10_000
    """At most; without rows held out, so many."""
    hold_out: float = 0.2
    """Share of the rows that says when to stop; 0 to do all updates."""
    batch_size: int = 256
    """Pairs are drawn with replacement."""
    learning_rate: float = 3e-3
    weight_decay: float = 0.0
    observation_noise: float = 0.0
    averaging: float = 0.99
    """Share of the old in a moving average of the weights; 0 to take the last ones."""
    actor: Design = field(default_factory=Design)

    def __post_init__(self) -> None:
        if not 0 <= self.hold_out < 1:
            raise EluteError(f"hold_out {self.hold_out}; expected 0 or more, less than 1")
        check_share(self.averaging)

    @classmethod
    def paper(cls, *, on: Literal["all", "optimal"] = "all") -> Self:
        """As the paper's code clones, but with rows drawn at random: raw units, a tanh mean."""
        actor = Design(standardise=False, squashed=True, bounds=(-1.0, 1.0))
        return cls(
            on=on, updates=1920, hold_out=0.0, learning_rate=3e-4, averaging=0.0, actor=actor
        )

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
        average = Average(actor, self.averaging)
        for _ in self.descend(descent, actor, (x, y), generator(rng)):
            average.update()
        learnt = average.network
        if self.loss == "mse":
            left = learnt.policy(method=name).act(rows.observations) - y.numpy()
            learnt.set_std(np.sqrt((left**2).mean(axis=0)))
        return learnt.policy(method=name)

    def _enough(self, rows: Demonstrations, rng: np.random.Generator, log: Log) -> int:
        """The number of updates after which rows that are held out are predicted best."""
        parts = self._held_out(len(rows), rng)
        folds = [_Fold(self, rows, held, rng, k, log) for k, held in enumerate(parts)]
        best, enough = math.inf, self.updates
        for update, *_ in zip(*(fold.updates for fold in folds), strict=True):
            for fold in folds:
                fold.average.update()
            if (update + 1) % LOOK == 0:
                loss = float(np.mean([fold.loss() for fold in folds]))
                if loss < best:
                    best, enough = loss, update + 1
                if update > PATIENCE * enough + LEAST_PATIENCE:
                    break
        return enough

    def _held_out(self, n_rows: int, rng: np.random.Generator) -> list[Tensor]:
        """Row numbers of the folds: as many as it takes to judge by enough rows."""
        size = min(max(1, round(self.hold_out * n_rows)), n_rows - 1)
        folds = min(-(-JUDGES // max(size, 1)), n_rows // max(size, 1))
        order = torch.from_numpy(rng.permutation(n_rows))
        return [order[size * k : size * (k + 1)] for k in range(folds)] if size else []

    def descend(
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
            descent.step(optimiser, **{self.loss: self.loss_of(actor, inputs, y[drawn])})
            yield descent.update

    def loss_of(self, actor: Actor, inputs: Tensor, targets: Tensor) -> Tensor:
        """What is descended on."""
        if self.loss == "nll":
            return -actor.log_prob(inputs, targets).sum(dim=1).mean()
        mse: Tensor = ((actor(inputs) - targets) ** 2).mean()
        return mse


class _Fold:
    """A network that learns from all rows but those held out."""

    def __init__(
        self,
        bc: BC,
        rows: Demonstrations,
        held: Tensor,
        rng: np.random.Generator,
        number: int,
        log: Log,
    ) -> None:
        self.bc, self.actor = bc, Actor(bc.actor, rows, rng)
        self.average = Average(self.actor, bc.averaging)
        x, y = self.actor.inputs(rows.observations), self.actor.targets(rows.actions)
        rest = torch.ones(len(x), dtype=torch.bool)
        rest[held] = False
        self.held = x[held], y[held]
        networks = {f"fold-{number}": self.actor}
        descent = Descent(bc.updates, networks, lambda: self.actor.policy(method="bc"), log)
        self.updates = bc.descend(descent, self.actor, (x[rest], y[rest]), generator(rng))

    def loss(self) -> float:
        """On the rows that are held out."""
        with torch.no_grad():
            return float(self.bc.loss_of(self.average.network, *self.held))
