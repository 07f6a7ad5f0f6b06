"""Cloning rows that count more or less.

    theta = argmin  E_U[ w  || mu_theta(s) - a ||^2 ]        loss "mse"
    theta = argmin  E_U[ w  (- log pi_theta(a|s)) ]          loss "nll"

Rows are drawn as often as they weigh. The gradient is on average that of weighing rows drawn
evenly, with less spread: where few rows hold all the weight, a batch is not filled with others.
The scale of w does not matter.
"""

from typing import Literal, Protocol

import numpy as np
import torch

from elute.episodes import Array
from elute.learners.actor import Actor
from elute.learners.average import Average
from elute.learners.descent import Descent, DivergenceError
from elute.nets import generator
from elute.policy import GaussianPolicy
from elute.types import Demonstrations

Loss = Literal["mse", "nll"]


class Cloning(Protocol):
    """What a learner's settings say about cloning."""

    @property
    def loss(self) -> Loss:
        """Which of the two."""

    @property
    def batch_size(self) -> int:
        """Rows of an update."""

    @property
    def learning_rate(self) -> float:
        """Of Adam."""

    @property
    def averaging(self) -> float:
        """Share of the old in the moving average."""


def clone_weighted(
    settings: Cloning,
    actor: Actor,
    rows: Demonstrations,
    weights: Array,
    descent: Descent[GaussianPolicy],
    rng: np.random.Generator,
    **about: object,
) -> GaussianPolicy:
    """The policy of the rows that weigh something.

    Raises:
        DivergenceError: the weights are no numbers, or a loss is none.
    """
    if not (np.isfinite(weights).all() and weights.sum() > 0):
        raise DivergenceError("the weights of rows are not finite, or all zero", descent.policy())
    stream = generator(rng)
    x, y = actor.inputs(rows.observations), actor.targets(rows.actions)
    share = torch.tensor(np.cumsum(weights) / np.sum(weights))
    optimiser = torch.optim.Adam(actor.parameters(), lr=settings.learning_rate, fused=True)
    average = Average(actor, settings.averaging)
    for _ in descent:
        chance = torch.rand(settings.batch_size, generator=stream, dtype=torch.float64)
        drawn = torch.searchsorted(share, chance, right=True).clamp(max=len(x) - 1)
        if settings.loss == "nll":
            descent.step(optimiser, nll=-actor.log_prob(x[drawn], y[drawn]).sum(dim=1).mean())
        else:
            descent.step(optimiser, mse=((actor(x[drawn]) - y[drawn]) ** 2).mean())
        average.update()
    learnt = average.network
    if settings.loss == "mse":
        left = learnt.policy().act(rows.observations) - y.numpy()
        learnt.set_std(np.sqrt(np.average(left**2, axis=0, weights=weights)))
    return learnt.policy(**about)
