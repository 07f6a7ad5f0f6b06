"""The exact minimiser of the training loss on D_o = {x_j}: an oracle, and a warning.

    m(x, i) = sum_j w_j x_j,   w_j ~ exp(-|| x - sqrt(alpha_bar_i) x_j ||^2 / (2 (1 - alpha_bar_i)))
    eps(x, i) = (x - sqrt(alpha_bar_i) m(x, i)) / sqrt(1 - alpha_bar_i)

It maps every pair onto a row of D_o, whatever the reverse step: a network that learns D_o by heart
purifies like this.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from elute.diffusion.schedule import Schedule
from elute.episodes import Array
from elute.purify.diffusion import DiffusionPurifier, DiffusionTransform
from elute.purify.normaliser import Normaliser
from elute.purify.purifier import Progress, Target
from elute.rng import Seeds
from elute.types import DemoSet, check_finite


class EmpiricalDenoiser(nn.Module):
    """eps(x, i) of a finite set of points; in float64 inside."""

    points: Tensor
    signal: Tensor
    noise: Tensor

    def __init__(self, points: Array, schedule: Schedule) -> None:
        super().__init__()
        self.register_buffer("points", torch.tensor(points, dtype=torch.float64))
        self.register_buffer("signal", torch.tensor(schedule.signal))
        self.register_buffer("noise", torch.tensor(schedule.noise))

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        """The noise, exactly."""
        signal, noise = self.signal[step, None], self.noise[step, None]
        rows = x.to(torch.float64)
        apart = torch.cdist(rows / signal, self.points, compute_mode="donot_use_mm_for_euclid_dist")
        weights = torch.softmax(-((apart * signal / noise) ** 2) / 2, dim=1)
        eps: Tensor = (rows - signal * (weights @ self.points)) / noise
        return eps.to(x.dtype)


@dataclass(frozen=True, kw_only=True)
class EmpiricalPurifier:
    """Algorithm 2 with the exact denoiser of D_o."""

    reverse_step: int = 200
    """i_r, 0..N; 0 changes nothing."""
    target: Target = "joint"
    n_steps: int = 1000
    standardise: bool = True
    descents: int = 0
    draws: int = 1

    def fit(
        self, demos: DemoSet, seeds: Seeds, *, progress: Progress = lambda done, total: None
    ) -> DiffusionTransform:
        """Remember D_o, in units of D_o and D_s."""
        check_finite(demos.optimal, "D_o")
        check_finite(demos.supplementary, "D_s")
        del seeds, progress
        settings = DiffusionPurifier(
            reverse_step=self.reverse_step,
            target=self.target,
            n_steps=self.n_steps,
            standardise=self.standardise,
            descents=self.descents,
            draws=self.draws,
        )
        optimal = demos.optimal.pairs.astype(np.float64)
        both = np.concatenate([optimal, demos.supplementary.pairs])
        columns = (*demos.optimal.observation_columns, *demos.optimal.action_columns)
        normaliser = Normaliser.fit(both, columns) if self.standardise else Normaliser.none(both)
        points = normaliser.apply(optimal)[:, normaliser.varies]
        return DiffusionTransform(
            settings,
            EmpiricalDenoiser(points, Schedule.linear(self.n_steps)),
            normaliser,
            columns,
            demos.optimal.observations.shape[1],
            max_step=self.n_steps,
        )
