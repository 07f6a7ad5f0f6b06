"""Algorithm 2: diffuse each pair up to the reverse step in one jump, then denoise it back.

    x <- sqrt(alpha_bar_ir) x_s + sqrt(1 - alpha_bar_ir) eps                              (Eq. 6)
    for i = i_r .. 1:
        x <- (x - beta_i / sqrt(1 - alpha_bar_i) eps_phi(x, i)) / sqrt(alpha_i)
        if i > 1:  x <- x + sqrt(beta_i) z                                                (Eq. 7)

Deviations of the default from the paper (`DiffusionPurifier.paper()` has none of them):
1. `target="inpaint"`: states and transitions stay true, only the action is purified.
2. The descent takes five long steps and is averaged over four draws: the mean of what the action
   may have been, for a fraction of the work.
3. Pairs are standardised with the statistics of D_o and D_s.
4. Training: see `diffusion/ddpm.py`.

The result for a row depends on its number and the seed alone: noise is keyed by (seed, draw, step,
block of 4096 rows), and the network sees fixed batches, padded, aligned to those blocks.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from elute.columns import Column
from elute.diffusion.ddpm import Criterion, Lesson, Trained, Training, train
from elute.diffusion.denoiser import Architecture, at_step, make_denoiser
from elute.diffusion.schedule import Descent, Schedule, ScheduleName
from elute.episodes import Array
from elute.errors import EluteError
from elute.nets import evaluating, generator, seeded, tensor
from elute.purify.normaliser import Normaliser
from elute.purify.purifier import (
    Progress,
    Target,
    check_widths,
    purifiable,
    put_back,
)
from elute.rng import BLOCK_ROWS, Seeds
from elute.types import Demonstrations, DemoSet, check_finite

NoiseAt = Callable[[int], Tensor]
"""The noise of each row at a step."""
BATCH = 512
"""Rows that go through the network at once; divides a block."""


@dataclass(frozen=True, kw_only=True)
class DiffusionPurifier:
    """The paper's method, by default as well as we know how."""

    reverse_step: int = 150
    """i_r, 0..N; 0 changes nothing."""
    target: Target = "inpaint"
    n_steps: int = 1000
    """N."""
    schedule: ScheduleName = "linear"
    """How noise grows with the step; the same step of another schedule is another amount."""
    architecture: Architecture = "step"
    training: Training = field(default_factory=Training)
    only_used_steps: bool = True
    """Train on the steps up to i_r alone: purification never visits the others."""
    standardise: bool = True
    descents: int = 5
    """Steps on the way down; 0 takes every step, with the paper's noise."""
    eta: float = 1.0
    """Noise on the way down with `descents`: 0 none, 1 that of the posterior of each long step."""
    draws: int = 4
    """Purifications that are averaged."""
    batch_statistics: bool = False
    """Leave dropout and BatchNorm in training mode, as the released code does: one batch only."""

    def __post_init__(self) -> None:
        self.noise_schedule.check(self.reverse_step)
        if self.draws < 1 or self.descents < 0 or not 0.0 <= self.eta <= 1.0:
            raise EluteError(
                f"draws={self.draws}, descents={self.descents}, eta={self.eta} asked for; "
                "expected at least 1, at least 0, and 0 to 1"
            )

    @property
    def noise_schedule(self) -> Schedule:
        """The noise of each step."""
        return Schedule.named(self.schedule, self.n_steps)

    @classmethod
    def paper(cls, reverse_step: int = 10) -> Self:
        """As printed, with the reverse step of Eq. 7 corrected."""
        return cls(
            reverse_step=reverse_step,
            target="joint",
            architecture="paper",
            training=Training(
                updates=10_000, batch_size=0, learning_rate=1e-4, average=0.0, held_out=0.0
            ),
            only_used_steps=False,
            standardise=False,
            descents=0,
            draws=1,
        )

    @classmethod
    def reference(cls, reverse_step: int = 10) -> Self:
        """The released code: blind to the step, shared BatchNorm, training mode, one step more."""
        if reverse_step >= cls.n_steps:
            raise EluteError(
                f"reverse step {reverse_step} asked for; the released code takes one step more "
                f"than it says, so that {cls.n_steps - 1} is its last"
            )
        paper = cls.paper(reverse_step + 1)
        training = replace(paper.training, updates=1000)
        return replace(paper, architecture="reference", training=training, batch_statistics=True)

    def fit(
        self,
        demos: DemoSet,
        seeds: Seeds,
        *,
        up_to: int = 0,
        progress: Progress = lambda done, total: None,
        checkpoint: Path | None = None,
    ) -> "DiffusionTransform":
        """Algorithm 1 on D_o, in units of D_o and D_s; for steps up to one that is higher, too."""
        check_finite(demos.optimal, "D_o")
        check_finite(demos.supplementary, "D_s")
        if len(demos.optimal) < 2:
            raise EluteError("D_o has one row; expected at least two", hint="fifty are few already")
        schedule = self.noise_schedule
        optimal = demos.optimal.pairs.astype(np.float64)
        both = np.concatenate([optimal, demos.supplementary.pairs])
        columns = (*demos.optimal.observation_columns, *demos.optimal.action_columns)
        normaliser = Normaliser.fit(both, columns) if self.standardise else Normaliser.none(both)
        used = normaliser.varies
        with seeded(seeds("denoiser")):
            network = make_denoiser(self.architecture, int(used.sum()))
        used_steps = max(self.reverse_step, schedule.check(up_to))
        max_step = used_steps if self.only_used_steps else self.n_steps
        trained = Trained({})
        if max_step > 0:
            pairs = tensor(normaliser.apply(optimal)[:, used])
            criterion = _recovery(schedule, max_step, normaliser, demos.optimal)
            lesson = Lesson(network, pairs, schedule, self.training, max_step, criterion)
            trained = train(lesson, seeds("training"), checkpoint=checkpoint, progress=progress)
            network.load_state_dict(trained.weights)
        return DiffusionTransform(
            self,
            network,
            normaliser,
            columns,
            demos.optimal.observations.shape[1],
            max_step=max_step,
            trained=trained,
        )


def _recovery(
    schedule: Schedule, start: int, normaliser: Normaliser, optimal: Demonstrations
) -> Criterion:
    """How well the network recovers an action of which only the state is known.

    The action is replaced by its mean, diffused, and denoised with the state held; the mean squared
    error to the true action says how well the network has understood what to do where. If no action
    varies, the diffused state is denoised instead.
    """
    is_state = np.arange(len(normaliser.varies)) < optimal.observations.shape[1]
    shown = torch.from_numpy(is_state[normaliser.varies])
    held = torch.zeros_like(shown) if shown.all() else shown
    descents = schedule.strided(schedule.check(start), 10, 0.0)
    signal, sigma = schedule.signal, schedule.noise

    def criterion(network: nn.Module, rows: Tensor) -> float:
        x_0 = rows.repeat(-(-256 // len(rows)), 1)
        eps = torch.from_numpy(np.random.default_rng(0).standard_normal(x_0.shape, np.float32))
        x = float(sigma[start]) * eps
        x[:, shown] += float(signal[start]) * x_0[:, shown]
        for down in descents:
            x = down.keep * x - down.remove * at_step(network, down.step)(x)
            x[:, held] = (
                float(signal[down.to]) * x_0[:, held] + float(sigma[down.to]) * eps[:, held]
            )
        return float(((x - x_0)[:, ~held] ** 2).mean())

    return criterion


@dataclass(frozen=True, eq=False)
class DiffusionTransform:
    """A trained purifier."""

    purifier: DiffusionPurifier
    network: nn.Module
    normaliser: Normaliser
    columns: tuple[Column, ...]
    n_observations: int
    max_step: int
    """The largest step that the network knows."""
    trained: Trained = field(default_factory=lambda: Trained({}))

    def at(self, reverse_step: int) -> Self:
        """The same network, another reverse step.

        Raises:
            EluteError: the network was not trained as far up.
        """
        if reverse_step > self.max_step:
            raise EluteError(
                f"reverse step {reverse_step} asked for; the model was trained up to "
                f"{self.max_step}",
                hint="fit it with the largest step that you want to try",
            )
        return replace(self, purifier=replace(self.purifier, reverse_step=reverse_step))

    def __call__(
        self, rows: Demonstrations, *, first_row: int = 0, seed: int = 0
    ) -> Demonstrations:
        """Algorithm 2 on every row."""
        self._check(rows, first_row)
        settings = self.purifier
        pairs = rows.pairs.astype(np.float64)
        if settings.reverse_step > 0:
            used = self.normaliser.varies
            scaled = self.normaliser.apply(pairs)
            scaled[:, used] = self._purify(scaled[:, used], first_row, seed)
            pairs[:, used] = self.normaliser.undo(scaled, pairs)[:, used]
        return put_back(
            rows,
            pairs,
            target=settings.target,
            operation="purify",
            method="diffusion",
            reverse_step=settings.reverse_step,
            seed=seed,
        )

    def _check(self, rows: Demonstrations, first_row: int) -> None:
        check_widths(rows, self.n_observations, len(self.columns))
        check_finite(rows, "D_s")
        if self.purifier.standardise:
            self.normaliser.check(rows, first_row)

    def _descents(self) -> list[Descent]:
        settings, schedule = self.purifier, self.purifier.noise_schedule
        start = schedule.check(settings.reverse_step)
        if settings.descents == 0:
            return schedule.ancestral(start)
        return schedule.strided(start, settings.descents, settings.eta)

    def _purify(self, scaled: Array, first_row: int, seed: int) -> Array:
        """Row blocks one after another; the mean over the draws."""
        if self.purifier.batch_statistics:
            return self._one_batch(scaled, seed)
        purified = np.empty_like(scaled)
        stop = first_row + len(scaled)
        with evaluating(self.network):
            for block in range(first_row // BLOCK_ROWS, -(-stop // BLOCK_ROWS)):
                origin = block * BLOCK_ROWS
                first, last = max(first_row, origin), min(stop, origin + BLOCK_ROWS)
                rows = slice(first - first_row, last - first_row)
                purified[rows] = self._block(scaled[rows], first - origin, block, seed)
        return purified

    def _block(self, scaled: Array, offset: int, block: int, seed: int) -> Array:
        """Rows of one block, which begin `offset` rows into it, padded to whole batches."""
        low = offset // BATCH * BATCH
        high = -(-(offset + len(scaled)) // BATCH) * BATCH
        padded = np.zeros((high - low, scaled.shape[1]))
        inside = slice(offset - low, offset - low + len(scaled))
        padded[inside] = scaled
        total = np.zeros_like(padded)
        for draw in range(self.purifier.draws):

            def noise(step: int, draw: int = draw) -> Tensor:
                stream = generator(Seeds(seed)("purify", draw, step, block))
                return torch.randn(BLOCK_ROWS, scaled.shape[1], generator=stream)[low:high]

            total += self._descend(tensor(padded), noise)
        mean: Array = total[inside] / self.purifier.draws
        return mean

    def _one_batch(self, scaled: Array, seed: int) -> Array:
        """The released code's way: every row shapes the batch statistics of every other."""
        if len(scaled) < 2:
            raise EluteError("batch statistics need at least two rows; there is one")

        def noise(step: int) -> Tensor:
            return tensor(Seeds(seed)("purify", 0, step).standard_normal(scaled.shape))

        busy = replace(self, network=deepcopy(self.network).train())  # BatchNorm counts batches
        with torch.no_grad(), seeded(Seeds(seed)("dropout")):
            return busy._descend(tensor(scaled), noise, batch=len(scaled))

    def _descend(self, x_s: Tensor, noise: NoiseAt, batch: int = BATCH) -> Array:
        schedule = self.purifier.noise_schedule
        signal, sigma = schedule.signal.tolist(), schedule.noise.tolist()
        start = self.purifier.reverse_step
        held = torch.from_numpy(self._held())
        x = signal[start] * x_s + sigma[start] * noise(start)
        for down in self._descents():
            denoise = at_step(self.network, down.step)
            eps = torch.cat([denoise(part) for part in torch.split(x, batch)])
            x = down.keep * x - down.remove * eps
            original = x_s
            if down.to > 0:
                z = noise(down.to)
                x += down.add * z
                original = signal[down.to] * x_s + sigma[down.to] * z
            x = torch.where(held, original, x)
        purified: Array = x.numpy().astype(np.float64)
        return purified

    def scores(self, rows: Demonstrations, step: int, rng: np.random.Generator) -> Array:
        """Gradient of log rho_i at the rows diffused to a step, of the columns it purifies."""
        schedule, used = self.purifier.noise_schedule, self.normaliser.varies
        x = self.normaliser.apply(rows.pairs.astype(np.float64))[:, used]
        x = schedule.signal[step] * x + schedule.noise[step] * rng.standard_normal(x.shape)
        with evaluating(self.network):
            eps = self.network(tensor(x), torch.tensor([step])).numpy().astype(np.float64)
        scores: Array = -eps[:, ~self._held()] / schedule.noise[step]
        return scores

    def _held(self) -> Array:
        """Columns that stay at their diffused original: switches, and states when inpainting."""
        held = ~purifiable(self.columns)
        if self.purifier.target == "inpaint":
            held[: self.n_observations] = True
        return held[self.normaliser.varies]
