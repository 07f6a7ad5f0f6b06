"""DBC (Chen et al. 2024): behaviour cloning, and a diffusion model that says what pairs look like.

    x_i     = sqrt(alpha_bar_i) (s, a) + sqrt(1 - alpha_bar_i) eps
    L(s, a) = || eps - eps_phi(x_i, i) ||^2,   i ~ U{1..N},  eps ~ N(0, I)

    first:  phi   = argmin  mean of  L(s, a)
    then:   theta = argmin  mean of  || mu_theta(s) - a ||^2
                                     + weight * max(0, L(s, mu_theta(s)) - L(s, a))

Both L of a pair take the same i and eps. phi stays as it is while mu learns; the gradient comes
through what eps_phi reads. Pairs are in units of their deviations; || ||^2 is a mean over columns.

Deviations:
1. The hinge is applied to each pair, as printed; the released code applies it to the mean of a
   batch, where a pair that looks better than the demonstrated one pays for one that looks worse.
2. The model is the `StepDenoiser` of `elute.diffusion`; the released one has one hidden layer fewer
   than its settings say. Nothing is clamped to ten deviations and no gradient is clipped.
3. By default the policy is an average of its weights (average.py).
4. The rest is as released: betas that rise like a logistic function, steps drawn in pairs of i and
   N + 1 - i, Adam for both networks. Settings are ours; `paper()` has the released ones.
"""

from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from elute.diffusion.denoiser import StepDenoiser
from elute.diffusion.schedule import Schedule
from elute.learners.actor import Actor, Design, standard_units
from elute.learners.average import Average, check_share
from elute.learners.descent import Descent, updates_of
from elute.learners.learner import Log, silent
from elute.nets import generator, seeded, tensor
from elute.policy import GaussianPolicy
from elute.types import Demonstrations, DemoSet

PASSES = 3000 * 256 / 550
"""As 3000 updates are for 550 rows, where a third and three times as many earn less. For the 2000
of a whole episode 3000 are too few."""


@dataclass(frozen=True, kw_only=True)
class DBC:
    """How to clone with a model of the pairs."""

    on: Literal["all", "optimal"] = "all"
    weight: float = 20.0
    """Of the diffusion model's opinion; 0 is behaviour cloning."""
    updates: int | None = None
    """Else `PASSES` over all rows."""
    batch_size: int = 256
    """Pairs are drawn with replacement."""
    learning_rate: float = 1e-3
    model_updates: int = 3000
    model_rate: float = 1e-3
    width: int = 128
    depth: int = 3
    """Hidden layers of the model."""
    steps: int = 1000
    """N."""
    averaging: float = 0.99
    """Share of the old in a moving average of the actor's weights; 0 to take the last ones."""
    actor: Design = field(default_factory=Design)

    def __post_init__(self) -> None:
        check_share(self.averaging)

    @classmethod
    def paper(cls, *, on: Literal["all", "optimal"] = "all") -> Self:
        """As released for HalfCheetah, with updates for epochs of some thousand rows."""
        return cls(
            on=on,
            weight=0.2,
            updates=50_000,
            batch_size=128,
            learning_rate=1e-4,
            model_updates=100_000,
            model_rate=1e-4,
            width=1024,
            averaging=0.0,
            actor=Design(hidden=(256, 256, 256), activation="relu"),
        )

    def fit(self, demos: DemoSet, rng: np.random.Generator, log: Log = silent) -> GaussianPolicy:
        """A policy whose pairs look like those of the demonstrator."""
        return self.clone(demos.optimal if self.on == "optimal" else demos.all, rng, log)

    def clone(
        self, rows: Demonstrations, rng: np.random.Generator, log: Log = silent
    ) -> GaussianPolicy:
        """A policy of one set."""
        actor, stream = Actor(self.actor, rows, rng), generator(rng)
        x, y = actor.inputs(rows.observations), actor.targets(rows.actions)
        model, noises = PairModel(self, x, y, rng), generator(rng)

        name = "dbc" if self.on == "all" else "dbc-opt"

        def policy() -> GaussianPolicy:
            return actor.policy(method=name)

        self._model(model, x, y, noises, Descent(self.model_updates, {"model": model}, policy, log))
        model.requires_grad_(False)
        optimiser = torch.optim.Adam(actor.parameters(), lr=self.learning_rate, fused=True)
        average = Average(actor, self.averaging)
        updates = self.updates or updates_of(PASSES, len(rows), self.batch_size)
        descent = Descent(updates, {"actor": actor}, policy, log)
        for drawn in descent.draws(stream, len(x), self.batch_size):
            states, actions, means = x[drawn], y[drawn], actor(x[drawn])
            worse = model.worse(states, means, actions, *model.draw(noises, self.batch_size))
            descent.step(
                optimiser,
                mse=((means - actions) ** 2).mean(),
                diffusion=self.weight * torch.relu(worse).mean(),  # unlike clamp, flat at zero
            )
            average.update()
        learnt = average.network
        left = learnt.policy().act(rows.observations) - y.numpy()
        learnt.set_std(np.sqrt((left**2).mean(axis=0)))
        return learnt.policy(method=name)

    def _model(
        self,
        model: "PairModel",
        x: Tensor,
        y: Tensor,
        stream: torch.Generator,
        descent: Descent[GaussianPolicy],
    ) -> None:
        """The first phase."""
        optimiser = torch.optim.Adam(model.parameters(), lr=self.model_rate, fused=True)
        for drawn in descent.draws(stream, len(x), self.batch_size):
            losses = model.losses(x[drawn], y[drawn], *model.draw(stream, self.batch_size))
            descent.step(optimiser, denoising=losses.mean())


class PairModel(nn.Module):
    """How well pairs can be told from noise: the worse, the less they look like demonstrations."""

    def __init__(
        self, settings: DBC, inputs: Tensor, targets: Tensor, rng: np.random.Generator
    ) -> None:
        super().__init__()
        pairs = torch.cat([inputs, targets], dim=1)
        self.mean, self.scale = map(tensor, standard_units(pairs.numpy()))
        schedule = sigmoid_schedule(settings.steps)
        self.signal, self.noise = tensor(schedule.signal), tensor(schedule.noise)
        with seeded(rng):
            self.denoiser = StepDenoiser(pairs.shape[1], settings.width, settings.depth)

    def draw(self, stream: torch.Generator, n: int) -> tuple[Tensor, Tensor]:
        """Steps, (n,), in pairs of i and N + 1 - i, and noise, (n, S + A)."""
        most = len(self.signal) - 1
        half = torch.randint(1, most + 1, (n // 2 + n % 2,), generator=stream)
        step = torch.cat([half, most + 1 - half])[:n]
        return step, torch.randn((n, len(self.mean)), generator=stream)

    def losses(self, inputs: Tensor, actions: Tensor, step: Tensor, eps: Tensor) -> Tensor:
        """L of each pair, (n,)."""
        pairs = (torch.cat([inputs, actions], dim=1) - self.mean) / self.scale
        diffused = self.signal[step, None] * pairs + self.noise[step, None] * eps
        losses: Tensor = ((eps - self.denoiser(diffused, step)) ** 2).mean(dim=1)
        return losses

    def worse(
        self, inputs: Tensor, means: Tensor, actions: Tensor, step: Tensor, eps: Tensor
    ) -> Tensor:
        """By how much the policy's pairs have the greater L, (n,)."""
        with torch.no_grad():
            demonstrated = self.losses(inputs, actions, step, eps)
        return self.losses(inputs, means, step, eps) - demonstrated


def sigmoid_schedule(n_steps: int) -> Schedule:
    """Beta rises from 1e-4 to 0.02 like a logistic function from -6 to 6."""
    rise = 1.0 / (1.0 + np.exp(-np.linspace(-6.0, 6.0, n_steps)))
    return Schedule(np.concatenate([[0.0], 1e-4 + (0.02 - 1e-4) * rise]))
