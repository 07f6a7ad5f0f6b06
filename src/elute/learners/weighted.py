"""Cloning rows that count more or less.

    theta = argmin  E_U[ w  || mu_theta(s) - a ||^2 ]        loss "mse"
    theta = argmin  E_U[ w  (- log pi_theta(a|s)) ]          loss "nll"

Rows are drawn as often as they weigh. The gradient is on average that of weighing rows drawn
evenly, with less spread: where few rows hold all the weight, a batch is not filled with others.
The scale of w does not matter.
"""

from typing import Literal

import numpy as np
import torch

from elute.episodes import Array
from elute.learners.actor import Actor
from elute.learners.descent import Descent, DivergenceError
from elute.nets import generator
from elute.policy import GaussianPolicy
from elute.types import Demonstrations

Loss = Literal["mse", "nll"]


def clone_weighted(
    actor: Actor,
    rows: Demonstrations,
    weights: Array,
    descent: Descent[GaussianPolicy],
    *,
    loss: Loss,
    batch_size: int,
    learning_rate: float,
    rng: np.random.Generator,
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
    optimiser = torch.optim.Adam(actor.parameters(), lr=learning_rate, fused=True)
    for _ in descent:
        chance = torch.rand(batch_size, generator=stream, dtype=torch.float64)
        drawn = torch.searchsorted(share, chance, right=True).clamp(max=len(x) - 1)
        if loss == "nll":
            descent.step(optimiser, nll=-actor.log_prob(x[drawn], y[drawn]).sum(dim=1).mean())
        else:
            descent.step(optimiser, mse=((actor(x[drawn]) - y[drawn]) ** 2).mean())
    if loss == "mse":
        left = descent.policy().act(rows.observations) - y.numpy()
        actor.set_std(np.sqrt(np.average(left**2, axis=0, weights=weights)))
    return descent.policy()
