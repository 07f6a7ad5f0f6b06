"""How much likelier a row is in one set than in another: the log-ratio of two densities.

    l = argmin  E_top[-log sigma(l(x))] + E_base[-log(1 - sigma(l(x)))]
                + c E (|grad r(x~)| - allowed)^2
    then  l(x) -> log p_top(x) / p_base(x)

High for the expert: `top` is D_o and `base` everything, D_o and D_s, as states or as pairs. x~ lies
on the way between rows of the two sets, and between two rows of `base`.

Two ways to read a ratio off l:

    r = -log(1 / (sigma(l) + guard) - 1 + guard)     the released code: within [-6.9, 13.8] at 1e-3
    r = min(l, log(n_base / n_top))                  here, with guard 0

The second holds because `top` is part of `base`: p_base >= (n_top / n_base) p_top everywhere, so no
true ratio is higher, and a network that has learnt the rows of `top` by heart cannot say more.

And two ways to keep it smooth. The released code wants slopes of 1 everywhere, (1, 1), as for a
Wasserstein critic; then two equal sets are told apart, for a flat ratio is punished. Here slopes
up to 1 are free, (0, 1). Both are per deviation of a column. The slope is taken by
autograd; written out layer by layer it took the same time.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from elute.episodes import Array
from elute.learners.actor import ACTIVATIONS, standard_units
from elute.learners.descent import Descent
from elute.nets import generator, mlp, seeded, small_end, tensor
from elute.policy import GaussianPolicy

Descend = Callable[[Mapping[str, nn.Module]], Descent[GaussianPolicy]]
"""Begins the descent of some networks."""


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """How to learn a log-ratio."""

    hidden: tuple[int, ...] = (100, 100)
    activation: Literal["tanh", "relu"] = "tanh"
    penalty: float = 0.1
    """On slopes that are not allowed."""
    allowed: tuple[float, float] = (0.0, 1.0)
    """Smallest and largest slope that cost nothing."""
    guard: float = 0.0
    batch_size: int = 256
    learning_rate: float = 1e-3

    def learn(self, top: Array, base: Array, rng: np.random.Generator, descend: Descend) -> Tensor:
        """The log-ratio of each row of `base`, of which `top` is a part."""
        critic = Critic(base, self.hidden, self.activation, rng)
        high, low, stream = critic.inputs(top), critic.inputs(base), generator(rng)
        optimiser = torch.optim.Adam(critic.parameters(), lr=self.learning_rate, fused=True)
        descent = descend({"ratio": critic})
        for drawn in descent.draws(stream, len(low), self.batch_size):
            x = low[drawn]
            y = high[torch.randint(0, len(high), drawn.shape, generator=stream)]
            x_logit, y_logit = critic(torch.cat([x, y])).split(len(x))
            loss = softplus(-y_logit).mean() + softplus(x_logit).mean()
            between = mixes(y, x, stream)
            slope = slopes(log_ratio(critic(between), self.guard), between).norm(dim=1)
            excess = (slope - slope.clamp(*self.allowed)).square().mean()
            descent.step(optimiser, ratio=loss, slope=self.penalty * excess)
        with torch.no_grad():
            found = log_ratio(critic(low), self.guard)
        return found if self.guard else found.clamp(max=math.log(len(low) / len(high)))


class Critic(nn.Module):
    """One number for each row, in the units of some rows."""

    def __init__(
        self, rows: Array, hidden: tuple[int, ...], activation: str, rng: np.random.Generator
    ) -> None:
        super().__init__()
        self.mean, self.scale = standard_units(rows)
        with seeded(rng):
            self.body = small_end(mlp([rows.shape[1], *hidden, 1], ACTIVATIONS[activation]))

    def inputs(self, rows: Array) -> Tensor:
        """Rows as the network takes them."""
        return tensor((rows.astype(np.float64) - self.mean) / self.scale)

    def forward(self, inputs: Tensor) -> Tensor:
        """Numbers, (n,)."""
        numbers: Tensor = self.body(inputs)
        return numbers[:, 0]


def log_ratio(expert_logit: Tensor, guard: float = 0.0) -> Tensor:
    """What a logit says about the ratio of densities; the logit itself without a guard."""
    if guard == 0.0:
        return expert_logit
    return -torch.log(1 / (torch.sigmoid(expert_logit) + guard) - 1 + guard)


def slopes(outputs: Tensor, inputs: Tensor) -> Tensor:
    """Gradient of each output by its own input, itself fit to be descended on."""
    (gradient,) = torch.autograd.grad(outputs.sum(), inputs, create_graph=True)
    return gradient


def mixes(top: Tensor, base: Tensor, stream: torch.Generator) -> Tensor:
    """Points between each row of `base` and one of `top`, and between it and another of `base`."""
    share = torch.rand((len(base), 1), generator=stream)
    other = base[torch.randperm(len(base), generator=stream)]
    between = torch.cat([share * top + (1 - share) * base, share * other + (1 - share) * base])
    return between.requires_grad_(True)
