"""The value network of the DICE methods: which rows lie on ways that an expert would go.

    A(s, a, s') = r + g nu(s') - nu(s)
    nu = argmin  L(nu(s0), A) + c E |grad nu(s)|^2

L is convex in nu and its derivative by A is the weight of a row: at the minimum the weighted rows
flow, as much into each state as out of it. Small batches would be biased (a log of a mean), so all
rows are taken at once while they fit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from elute.episodes import Array
from elute.learners.ratio import Critic, Descend, slopes
from elute.learners.transitions import Transitions
from elute.nets import generator, tensor

ValueLoss = Callable[[Tensor, Tensor], Tensor]
"""Of values at first states, and advantages."""


@dataclass(frozen=True, kw_only=True)
class Values:
    """How to learn nu."""

    hidden: tuple[int, ...] = (100, 100)
    activation: Literal["tanh", "relu"] = "tanh"
    discount: float = 0.99
    penalty: float = 10.0
    """On slopes of nu, per deviation of a column.

    A few episodes that were cut are no closed flow: each must carry what starts in it, good
    or bad, and at its last state it has nowhere to go. A free nu bends the weights until they do. A
    flat nu is exact at alpha 0 with exact ratios, so little is lost by asking for it.
    """
    weight_decay: float = 0.0
    batch_size: int = 1024
    learning_rate: float = 1e-3

    def learn(
        self,
        steps: Transitions,
        rewards: Tensor,
        discounts: Array,
        loss: ValueLoss,
        rng: np.random.Generator,
        descend: Descend,
    ) -> Array:
        """A of each step, with the nu that minimises the loss."""
        nu = Critic(steps.observations, self.hidden, self.activation, rng)
        states = (steps.initial, steps.observations, steps.next_observations)
        first, now, after = map(nu.inputs, states)
        g, stream, descent = tensor(discounts), generator(rng), descend({"nu": nu})
        optimiser = torch.optim.Adam(
            nu.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay, fused=True
        )
        for _ in descent:
            rows = _draw(len(now), self.batch_size, stream)
            x0 = first[_draw(len(first), self.batch_size, stream)]
            x = now[rows].requires_grad_(self.penalty > 0)
            value = nu(x)  # apart: its slope would be looked for in the other rows, too
            initial, following = nu(torch.cat([x0, after[rows]])).split([len(x0), len(x)])
            losses = {"value": loss(initial, rewards[rows] + g[rows] * following - value)}
            if self.penalty:
                losses["slope"] = self.penalty * slopes(value, x).square().sum(dim=1).mean()
            descent.step(optimiser, **losses)
        with torch.no_grad():
            advantages: Array = (rewards + g * nu(after) - nu(now)).numpy().astype(np.float64)
        return advantages


def _draw(n_rows: int, size: int, stream: torch.Generator) -> Tensor:
    """All rows, if there are few."""
    if n_rows <= size:
        return torch.arange(n_rows)
    return torch.randint(0, n_rows, (size,), generator=stream)


def tempered(advantages: Array, temperature: float = 1.0) -> Array:
    """exp(A / temperature), of mean 1; nothing overflows, and a constant in A does not matter."""
    weights = np.exp((advantages - advantages.max()) / temperature)
    return mean_one(weights)


def mean_one(weights: Array) -> Array:
    """Scaled to mean 1, unless all are zero."""
    scaled: Array = weights / (weights.mean() or 1.0)
    return scaled


def on_rows(weights: Array, steps: Transitions, n_rows: int) -> Array:
    """Weights of the demonstrations' rows: zero for those that no state was seen to follow."""
    spread = np.zeros(n_rows)
    spread[steps.rows] = weights
    return spread
