"""Diffusion-BC (Pearce et al. 2023): learn the distribution of the action, not its mean.

    repeat:  (s, a) ~ D,  i ~ U{1..N},  eps ~ N(0, I),  a in units of its deviation
             a_i = sqrt(alpha_bar_i) a + sqrt(1 - alpha_bar_i) eps
             v   = sqrt(alpha_bar_i) eps - sqrt(1 - alpha_bar_i) a
             descend  w_i || v - v_phi(a_i, s, i) ||^2

    w_i = 1 is loss "velocity"; w_i = alpha_bar_i makes it || eps - eps_phi ||^2, loss "noise"

How it acts is said in `elute.diffusion.policy`. Where demonstrators differ, behaviour cloning
takes the mean of what they do; this takes one of them.

Deviations:
1. The schedule ends in noise, from which acting starts. The released one (50 steps, beta up to
   0.02) ends with alpha_bar = 0.60; it stays in `paper()`, and so does the loss on the noise.
2. The network predicts the velocity, in `paper()` too: the two losses are the same up to w_i.
3. A plain network with SiLU that is told the step in its first layer. The released one has
   BatchNorm, whose output for a row depends on others, and repeats its inputs in each block.
4. Observations and actions are standardised; an action is clipped before and after.
5. Evaluation takes the action from the centre of the noise instead of a sample. Extra steps at the
   end (Diffusion-X) and the densest of many samples (Diffusion-KDE) are left out.
"""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from elute.diffusion.denoiser import EMBEDDING, embed_step
from elute.diffusion.policy import DiffusionPolicy
from elute.diffusion.schedule import Schedule, ScheduleName
from elute.episodes import Array
from elute.errors import EluteError
from elute.learners.actor import Limit, standard_units
from elute.learners.descent import Descent, updates_of
from elute.learners.learner import Log, silent
from elute.nets import generator, layers, mlp, seeded, tensor
from elute.types import Demonstrations, DemoSet, check_finite

PASSES = 698
"""A few hundred rows are learnt by heart, noise and all, in twice as many. For 550 rows they are
1500 updates, which are too few for the gait in 2000."""


@dataclass(frozen=True, kw_only=True)
class DiffusionBC:
    """How to clone by diffusion."""

    on: Literal["all", "optimal"] = "all"
    loss: Literal["velocity", "noise"] = "velocity"
    steps: int = 50
    """N: as many passes of the network make an action."""
    schedule: ScheduleName = "cosine"
    hidden: tuple[int, ...] = (256, 256)
    updates: int | None = None
    """Else `PASSES` over all rows."""
    batch_size: int = 256
    """Pairs are drawn with replacement."""
    learning_rate: float = 1e-3
    """Falls to zero like a cosine."""
    weight_decay: float = 0.0
    bounds: tuple[Limit, Limit] | None = None
    """Lowest and highest action."""

    def __post_init__(self) -> None:
        if self.steps < 1 or not self.hidden:
            raise EluteError(
                f"{self.steps} steps and {len(self.hidden)} hidden layers; expected one or more"
            )

    @classmethod
    def paper(cls, *, on: Literal["all", "optimal"] = "all") -> Self:
        """Settings as released; 100 epochs of their data are taken to be 100 000 updates."""
        return cls(
            on=on,
            loss="noise",
            schedule="linear",
            hidden=(512, 512, 512),
            updates=100_000,
            batch_size=32,
            learning_rate=1e-4,
        )

    def fit(self, demos: DemoSet, rng: np.random.Generator, log: Log = silent) -> DiffusionPolicy:
        """A policy that acts like one of the demonstrators."""
        return self.clone(demos.optimal if self.on == "optimal" else demos.all, rng, log)

    def clone(
        self, rows: Demonstrations, rng: np.random.Generator, log: Log = silent
    ) -> DiffusionPolicy:
        """A policy that acts like the demonstrators of one set."""
        actor = DiffusionActor(self, rows, rng)
        x, y = actor.inputs(rows.observations), actor.targets(rows.actions)
        signal, noise = (
            tensor(actor.schedule.signal[:, None]),
            tensor(actor.schedule.noise[:, None]),
        )
        weight = signal**2 if self.loss == "noise" else torch.ones_like(signal)
        optimiser = torch.optim.AdamW(
            actor.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay, fused=True
        )
        updates = self.updates or updates_of(PASSES, len(rows), self.batch_size)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, updates)
        stream = generator(rng)
        name = "diffusion-bc" if self.on == "all" else "diffusion-bc-opt"
        descent = Descent(updates, {"actor": actor}, lambda: actor.policy(method=name), log)
        for drawn in descent.draws(stream, len(x), self.batch_size):
            actions = y[drawn]
            i = torch.randint(1, self.steps + 1, (len(drawn),), generator=stream)
            eps = torch.randn(actions.shape, generator=stream)
            velocity = signal[i] * eps - noise[i] * actions
            off = velocity - actor(signal[i] * actions + noise[i] * eps, x[drawn], i)
            descent.step(optimiser, denoising=(weight[i] * off**2).mean())
            falling.step()
        return descent.policy()


class DiffusionActor(nn.Module):
    """The velocity of a diffused action, v_phi(a_i, s, i), in units of some demonstrations."""

    def __init__(
        self, settings: DiffusionBC, rows: Demonstrations, rng: np.random.Generator
    ) -> None:
        super().__init__()
        check_finite(rows)
        self.task = rows.provenance.task
        self.low, self.high = settings.bounds or (-np.inf, np.inf)
        self.schedule = Schedule.named(settings.schedule, settings.steps)
        self.mean, self.scale = standard_units(rows.observations, rows.observation_columns)
        executed = np.clip(rows.actions.astype(np.float64), self.low, self.high)
        self.action_mean, self.action_scale = standard_units(executed)
        n_actions = len(self.action_mean)
        with seeded(rng):
            self.body = mlp([n_actions + len(self.mean), *settings.hidden, n_actions], nn.SiLU)
            self.tell = nn.Linear(EMBEDDING, settings.hidden[0], bias=False)
        self.embedded = embed_step(torch.arange(1, settings.steps + 1))

    def inputs(self, observations: Array) -> Tensor:
        """Observations as the network takes them."""
        return tensor((observations.astype(np.float64) - self.mean) / self.scale)

    def targets(self, actions: Array) -> Tensor:
        """Actions as they would be executed, in units of their deviation."""
        executed = np.clip(actions.astype(np.float64), self.low, self.high)
        return tensor((executed - self.action_mean) / self.action_scale)

    def forward(self, diffused: Tensor, inputs: Tensor, step: Tensor) -> Tensor:
        """Velocity, (n, A); steps are those of the rows, (n,)."""
        told = self.tell(self.embedded)[step - 1]
        velocity: Tensor = self.body[1:](self.body[0](torch.cat([diffused, inputs], 1)) + told)
        return velocity

    def policy(self, **about: object) -> DiffusionPolicy:
        """A copy that acts."""
        return DiffusionPolicy(
            layers=layers(self.body),
            told=self.tell(self.embedded).detach().numpy().copy(),
            beta=self.schedule.beta,
            mean=self.mean,
            scale=self.scale,
            action_mean=self.action_mean,
            action_scale=self.action_scale,
            low=np.full(len(self.action_mean), self.low),
            high=np.full(len(self.action_mean), self.high),
            about={"task": self.task} | about,
        )
