"""What the theorems say about a data set of one's own.

Rows are in the units of the purifier. The gradient of log rho comes from outside (a trained
denoiser, or any other), as `ScoresAt`: at the rows of D_s diffused to a step, the columns that are
purified. From it

    C~ (i)   least   2 ||grad log rho_j||, j <= i,  but for a share sigma of the rows
    C_gd (i) largest 2 ||grad log rho_j||, j <= i,  likewise

and the bounds of Theorem 2 with zeta_i = -(1/2) ln alpha_bar_i: as printed, corrected, and with a
bound of the score for each step instead of the largest of all (`path_*`), which is far tighter,
because the score is largest at the first step, where it counts least.

The score is taken where D_s is diffused *to*, and each step goes by its own quantile. The theorem
speaks of the rows on their way *back*, all steps at once: these bounds are a proxy for its own.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elute.diffusion.schedule import Floats, Schedule
from elute.errors import EluteError
from elute.theory.bounds import (
    lower_bound,
    noise_bound,
    noise_term,
    path_score_term,
    score_term,
    upper_bound,
)
from elute.theory.divergence import Divergence, Gaussian, gaussian_kl, sample_divergence
from elute.theory.inflection import bend

ScoresAt = Callable[[int], Floats]
"""Gradient of log rho_i at rows diffused to step i."""
FAILURE_PROB = 0.05
STEPS = (1, 3, 5, 10, 30, 60, 100, 150, 200, 300, 500, 1000)
"""Of which is reported."""
ALIKE = 2.0
"""Standard errors within which two divergences are one."""
SCORE_STEPS = 100
"""At which the score is asked for."""
MIXTURE_ROWS = 1000
"""Of each set that make up a mixture; more would only take longer."""


@dataclass(frozen=True, eq=False)
class ScoreBounds:
    """2 ||grad log rho|| at each step from 0 to the last one known; 0 stands for no step."""

    least: Floats
    most: Floats
    dimension: int

    @property
    def so_far(self) -> tuple[Floats, Floats]:
        """C~ and C_gd at each step: over all steps up to there."""
        least = np.concatenate([[np.inf], self.least[1:]])
        return np.minimum.accumulate(least), np.maximum.accumulate(self.most)


def spread_steps(last_step: int, n: int) -> tuple[int, ...]:
    """At most so many steps from 1 to the last, denser where the score changes faster."""
    return tuple(np.unique(np.geomspace(1, last_step, n).round().astype(int)).tolist())


def score_bounds(
    scores_at: ScoresAt, last_step: int, *, failure_prob: float = FAILURE_PROB
) -> ScoreBounds:
    """From scores at steps up to the last; between them by a straight line over log i.

    Raises:
        EluteError: there is no step to ask at.
    """
    if last_step < 1:
        raise EluteError(
            "the score is not known at any step", hint="fit a model for a step above 0"
        )
    steps = spread_steps(last_step, SCORE_STEPS)
    scores = [scores_at(step) for step in steps]
    norms = [2 * np.linalg.norm(rows, axis=1) for rows in scores]
    found = np.quantile(norms, [failure_prob, 1 - failure_prob], axis=1)
    between = np.log(np.arange(1, last_step + 1))
    least, most = (np.exp(np.interp(between, np.log(steps), np.log(each))) for each in found)
    return ScoreBounds(
        np.concatenate([[0.0], least]), np.concatenate([[0.0], most]), scores[0].shape[1]
    )


@dataclass(frozen=True, eq=False)
class DataBounds:
    """Of ||x_o - x_hat||, at each step from 0 on."""

    printed_lower: Floats
    printed_upper: Floats
    upper: Floats
    path_lower: Floats
    path_upper: Floats

    @property
    def reaching_step(self) -> int | None:
        """The first step at which delta could be undone at all; none among those known."""
        return _first(self.path_lower <= 0)


def data_bounds(
    schedule: Schedule, scores: ScoreBounds, delta: float, *, failure_prob: float = FAILURE_PROB
) -> DataBounds:
    """Theorem 2 for these scores and this ||delta||, be it of one row or the mean of many.

    The bound from below is as true of means as of rows, which it would not be of the root mean
    square of ||delta||.
    """
    zeta = -0.5 * np.log(schedule.alpha_bar[: len(scores.most)])
    noise = noise_bound(scores.dimension, failure_prob)
    printed = noise_bound(scores.dimension, failure_prob, form="printed")
    least, most = scores.so_far
    least[0] = 0.0  # there is no step yet, and zeta = 0
    path = path_score_term(schedule, scores.most)
    rest = noise_term(zeta, noise)
    return DataBounds(
        printed_lower=lower_bound(zeta, score=least, delta=delta, noise=printed, form="printed"),
        printed_upper=upper_bound(zeta, score=most, delta=delta, noise=printed, form="printed"),
        upper=score_term(zeta, most) + delta + rest,
        path_lower=delta - path - rest,
        path_upper=delta + path + rest,
    )


@dataclass(frozen=True)
class Inflections:
    """Steps at which Theorem 4 has lambda bend, for these scores; none if nowhere."""

    printed: int | None
    corrected: int | None
    ratio: float
    """C~ / C at the corrected one, or at the last step. C~ belongs to the step (the least so far),
    so that no single ratio says whether lambda is positive: `DataBounds.printed_lower` does."""


def inflections(
    schedule: Schedule, scores: ScoreBounds, *, failure_prob: float = FAILURE_PROB
) -> Inflections:
    """The first steps at which either form of the equation is met, C~ being that of the step."""
    least = scores.so_far[0]
    ratio = least / noise_bound(scores.dimension, failure_prob)
    printed = least / noise_bound(scores.dimension, failure_prob, form="printed")
    met = _first(bend(schedule, form="printed")[: len(least)] >= printed)
    corrected = _first(bend(schedule)[: len(least)] >= ratio)
    return Inflections(met, corrected, float(ratio[-1 if corrected is None else corrected]))


def _first(met: NDArray[np.bool_]) -> int | None:
    return int(np.argmax(met)) if met.any() else None


@dataclass(frozen=True, eq=False)
class Forward:
    """Theorem 1 on data: divergences of diffused D_o and D_s at each of `steps`."""

    steps: tuple[int, ...]
    gaussian: Floats
    """KL, if both sets were Gaussian."""
    sample: Divergence
    """Of the sets themselves."""
    halves: Divergence
    """Of half of D_o from as many rows of D_s."""
    floor: Divergence
    """Of half of D_o from its other half: what two samples of one distribution differ by."""

    @property
    def alike_step(self) -> int | None:
        """The first of `steps` at which D_s differs from D_o no more than D_o from itself."""
        return None if self._alike is None else self.steps[self._alike]

    @property
    def alike_after(self) -> int:
        """The last of `steps` before that, where they still differ; 0 if there is none."""
        alike = len(self.steps) if self._alike is None else self._alike
        return self.steps[alike - 1] if alike else 0

    @property
    def _alike(self) -> int | None:
        error = np.hypot(self.halves.kl_error, self.floor.kl_error)
        return _first(self.halves.kl <= self.floor.kl + ALIKE * error)


def forward(
    optimal: Floats,
    supplementary: Floats,
    schedule: Schedule,
    steps: tuple[int, ...],
    rng: np.random.Generator,
) -> Forward:
    """Diffuse both sets and compare them at each step >= 1."""
    good, noisy = (_some(rows, MIXTURE_ROWS, rng) for rows in (optimal, supplementary))
    zeta = -0.5 * np.log(schedule.alpha_bar[list(steps)])
    p, q = Gaussian.fit(optimal), Gaussian.fit(supplementary)
    half = len(good) // 2
    shuffled = good[rng.permutation(len(good))]
    one, other = shuffled[:half], shuffled[half : 2 * half]
    seed = int(rng.integers(2**31))

    def compared(these: Floats, those: Floats) -> Divergence:
        return sample_divergence(these, those, zeta, np.random.default_rng(seed))

    return Forward(
        steps=steps,
        gaussian=np.array([gaussian_kl(p.diffused(z), q.diffused(z)) for z in zeta]),
        sample=compared(good, noisy),
        halves=compared(one, _some(noisy, half, rng)),
        floor=compared(one, other),
    )


def _some(rows: Floats, n: int, rng: np.random.Generator) -> Floats:
    if len(rows) <= n:
        return rows
    return rows[np.sort(rng.choice(len(rows), n, replace=False))]
