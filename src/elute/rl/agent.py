"""What learns by reinforcement: a Gaussian policy, its value function, and their units.

    update(stretches, rewards):   advantages -> value fit -> one TRPO step -> new units

Observations are standardised by running statistics of everything seen. They are renewed after the
step, so that data is always judged in the units it was made with. The value network predicts
returns in units of their own running mean and deviation, and is rescaled whenever these move, so
that its predictions stay (van Hasselt et al. 2016). Rewards are given, so that imitation can bring
its own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from elute.envs.rollout import Stretch
from elute.envs.task import Task
from elute.episodes import Array
from elute.nets import GaussianNetwork, generator, layers, mlp, seeded, small_end, tensor
from elute.policy import GaussianPolicy
from elute.rl.gae import advantages
from elute.rl.trpo import TRPO, Batch, Step, trpo_step


@dataclass(frozen=True, kw_only=True)
class Learning:
    """Settings of the paper."""

    hidden: tuple[int, ...] = (100, 100)
    initial_std: float | None = None
    """Of every action; by default what the task says."""
    least_std: float = 0.0
    """A policy that always acts with some noise learns to bear it. Without a floor (the paper) the
    deviations go down to a tenth, and any noise in the demonstrations is a fall."""
    gamma: float = 0.995
    lam: float = 0.97
    value_rate: float = 3e-4
    value_epochs: int = 3
    value_batch: int = 128
    trpo: TRPO = field(default_factory=TRPO)


@dataclass
class Running:
    """Mean and deviation of all rows seen so far, column by column."""

    n: float
    mean: Array
    squares: Array
    """Sum of squared distances to the mean."""

    @classmethod
    def of(cls, width: int) -> "Running":
        """Of nothing yet: mean 0 and deviation 1."""
        return cls(0.0, np.zeros(width), np.zeros(width))

    def add(self, rows: Array, *, forget: float = 1.0) -> None:
        """Take rows in; `forget` below 1 lets older ones count less."""
        old, self.n = self.n * forget, self.n * forget + len(rows)
        step = rows.mean(axis=0) - self.mean
        self.mean = self.mean + step * len(rows) / self.n
        self.squares = (
            self.squares * forget
            + ((rows - rows.mean(axis=0)) ** 2).sum(axis=0)
            + step**2 * old * len(rows) / self.n
        )

    @property
    def scale(self) -> Array:
        """Standard deviation; 1 where nothing varies."""
        deviation = np.sqrt(self.squares / max(self.n, 1.0))
        varies = deviation > 1e-6 * np.maximum(1.0, np.abs(self.mean))
        return np.where(varies, deviation, 1.0)


class Agent:
    """A policy that can be improved."""

    def __init__(self, task: Task, settings: Learning, rng: np.random.Generator) -> None:
        self.settings = settings
        s, a = task.n_observations, task.n_actions
        with seeded(rng):
            self.network = GaussianNetwork(s, a, settings.hidden)
            nn.init.constant_(
                self.network.log_std, math.log(settings.initial_std or task.initial_std)
            )
            self.value = small_end(mlp([s, *settings.hidden, 1]))
        self.optimiser = torch.optim.Adam(
            self.value.parameters(), lr=settings.value_rate, fused=True
        )
        self.observed, self.returns = Running.of(s), Running.of(1)
        self.low, self.high = task.bounds
        self._middle = tensor((self.high + self.low) / 2)
        self._half = tensor((self.high - self.low) / 2)

    def policy(self, **about: object) -> GaussianPolicy:
        """A copy that acts."""
        return GaussianPolicy(
            layers=layers(self.network.body),
            log_std=self.network.log_std.detach().numpy().astype(np.float64),
            mean=self.observed.mean,
            scale=self.observed.scale,
            low=self.low,
            high=self.high,
            squashed=True,
            about=about,
        )

    def update(
        self, stretches: Sequence[Stretch], rewards: Sequence[Array], rng: np.random.Generator
    ) -> Step:
        """Learn from a batch of what `policy()` did."""
        observations = [self.units(stretch.observations) for stretch in stretches]
        gains, targets = self._estimate(stretches, observations, rewards)
        seen = torch.cat([rows[:-1] for rows in observations])
        self._fit_value(seen, targets, generator(rng))
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        actions = tensor(np.concatenate([stretch.actions for stretch in stretches]))
        batch = Batch(seen, actions, tensor(gains))
        step = trpo_step(self.network, batch, self.settings.trpo, self.squash)
        with torch.no_grad():
            self.network.log_std.clamp_(min=math.log(max(self.settings.least_std, 1e-8)))
        self.observed.add(np.concatenate([stretch.observations[:-1] for stretch in stretches]))
        return step

    def squash(self, means: Tensor) -> Tensor:
        """Means within the bounds."""
        return self._middle + self._half * torch.tanh(means)

    def units(self, observations: Array) -> Tensor:
        """As the networks see them."""
        standard = (observations - self.observed.mean) / self.observed.scale
        return tensor(standard)

    def _estimate(
        self, stretches: Sequence[Stretch], observations: Sequence[Tensor], rewards: Sequence[Array]
    ) -> tuple[Array, Array]:
        """Advantages and returns of all steps."""
        with torch.no_grad():
            raw = self.value(torch.cat(list(observations))).numpy().astype(np.float64)[:, 0]
        values = np.split(
            self.returns.mean + self.returns.scale * raw,
            np.cumsum([len(rows) for rows in observations])[:-1],
        )
        gains = []
        for stretch, of, earned in zip(stretches, values, rewards, strict=True):
            if stretch.terminated:
                of[-1] = 0.0
            gains.append(advantages(earned, of, gamma=self.settings.gamma, lam=self.settings.lam))
        targets = [gain + of[:-1] for gain, of in zip(gains, values, strict=True)]
        return np.concatenate(gains), np.concatenate(targets)

    def _fit_value(self, seen: Tensor, targets: Array, stream: torch.Generator) -> None:
        self._rescale(targets)
        wanted = tensor((targets - self.returns.mean) / self.returns.scale)[:, None]
        for _ in range(self.settings.value_epochs):
            order = torch.randperm(len(seen), generator=stream)
            for first in range(0, len(seen), self.settings.value_batch):
                rows = order[first : first + self.settings.value_batch]
                loss = ((self.value(seen[rows]) - wanted[rows]) ** 2).mean()
                self.optimiser.zero_grad(set_to_none=True)
                loss.backward()
                self.optimiser.step()

    def _rescale(self, targets: Array) -> None:
        """Renew the units of returns, keeping every prediction as it was."""
        mean, scale = self.returns.mean, self.returns.scale
        self.returns.add(targets[:, None], forget=0.9)
        last = self.value[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.weight.mul_(float(scale[0] / self.returns.scale[0]))
            last.bias.mul_(float(scale[0])).add_(float(mean[0] - self.returns.mean[0]))
            last.bias.div_(float(self.returns.scale[0]))
