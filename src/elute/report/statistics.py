"""Statistics over seeds that survive review: few runs, several cells, honest intervals.

    cell = estimate([3526.0, 3899.0, 3702.0])          # one cell, three seeds
    print(cell.mean, cell.stderr, cell.interval)

    ours, theirs = [[1.0, 2.0], [5.0, 7.0]], [[0.5, 1.5], [6.0, 6.0]]     # two cells, two seeds
    interquartile_mean(ours), bootstrap_interval(interquartile_means, ours)
    probability_of_improvement(ours, theirs)
    bootstrap_interval(improvement_probabilities, ours, theirs)

Scores come as strata: for each cell (task and demonstrations) the scores of its seeds, as many as
there are. Cells are only comparable once normalised.

    stderr                  s / sqrt(n),   s^2 = sum (x - mean)^2 / (n - 1)
    interval of one cell    mean +- t_{n-1} stderr
    interquartile mean      mean of all scores without the floor(n / 4) least and greatest
    stratified bootstrap    draw n_k of the n_k scores of each cell k with replacement, B times; the
                            quantiles (1 -+ confidence) / 2 of the B statistics
    P(X > Y)                mean over cells of  mean_ij [x_i > y_j] + [x_i = y_j] / 2
    Wilson                  the p with  |k / n - p| <= z sqrt(p (1 - p) / n)

The interquartile mean, its bootstrap and P(X > Y) are those of Agarwal et al. (2021), "Deep
reinforcement learning at the edge of the statistical precipice", and agree with rliable. A single
cell has Student's interval instead: of five normal scores the percentile bootstrap that says 95 %
holds the mean in 83 % of all cases. Over many cells of few seeds the bootstrap is too narrow, too:
over 24 with three seeds each it holds the truth in 85 to 90 % of all cases.

Nothing can be said of the spread of a single seed: standard errors and intervals are then None.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from elute import uncertainty
from elute.errors import EluteError
from elute.rng import Seeds

Floats = NDArray[np.float64]
Strata = Sequence[Sequence[float]]
"""For each cell the scores of its seeds."""
Statistic = Callable[..., Floats]
"""Of one or more samples: lists of arrays, one for each cell, whose last axis is the seeds."""
CONFIDENCE = 0.95
RESAMPLES = 10_000
FEWEST_SEEDS = 5
"""To call one method better than another: Student's interval of two reaches 13 errors far."""
TRIMMED = 0.25
"""Left out at either end for the interquartile mean."""


class Interval(NamedTuple):
    """From low to high, both ends included."""

    low: float
    high: float

    def overlaps(self, other: "Interval") -> bool:
        """Whether they share a point."""
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True)
class Estimate:
    """What the seeds of one cell say."""

    mean: float
    stderr: float | None
    interval: Interval | None
    seeds: int


def estimate(scores: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Mean of one cell over its seeds, with Student's interval.

    Raises:
        EluteError: no scores, one that is not finite, or a confidence that is no probability.
    """
    _check_confidence(confidence)
    values = _cell(scores)
    mean, error = float(values.mean()), uncertainty.stderr(values.tolist())
    if error is None:
        return Estimate(mean, None, None, len(values))
    half = student(len(values), confidence) * error
    return Estimate(mean, error, Interval(mean - half, mean + half), len(values))


def student(n: int, confidence: float = CONFIDENCE) -> float:
    """How many standard errors the interval of a mean of `n` values reaches either way."""
    return float(stats.t.ppf((1 + confidence) / 2, n - 1))


def interquartile_mean(strata: Strata) -> float:
    """Mean of the middle half of all scores: less noisy than the median, deaf to outliers.

    Raises:
        EluteError: no scores, or one that is not finite.
    """
    return float(interquartile_means(_cells(strata)))


def interquartile_means(cells: Sequence[Floats]) -> Floats:
    """The statistic for `bootstrap_interval`."""
    together = np.concatenate(list(cells), axis=-1)
    return np.asarray(stats.trim_mean(together, TRIMMED, axis=-1))


def grand_means(cells: Sequence[Floats]) -> Floats:
    """Mean over cells of each cell's mean, for `bootstrap_interval`."""
    means: Floats = np.mean([cell.mean(axis=-1) for cell in cells], axis=0)
    return means


def probability_of_improvement(ours: Strata, theirs: Strata) -> float:
    """How probable it is that a run of ours beats one of theirs, in the mean over cells.

    Raises:
        EluteError: other numbers of cells, no scores, or one that is not finite.
    """
    _check_same_cells((ours, theirs))
    return float(improvement_probabilities(_cells(ours), _cells(theirs)))


def improvement_probabilities(ours: Sequence[Floats], theirs: Sequence[Floats]) -> Floats:
    """The statistic of two samples for `bootstrap_interval`."""
    wins = [
        np.sign(x[..., :, None] - y[..., None, :]).mean(axis=(-2, -1))
        for x, y in zip(ours, theirs, strict=True)
    ]
    probabilities: Floats = (1 + np.mean(wins, axis=0)) / 2
    return probabilities


def bootstrap_interval(
    statistic: Statistic,
    *samples: Strata,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """Percentile interval of a statistic, seeds drawn anew within each cell.

    Several samples (two methods) are drawn each by itself, for a statistic of as many arguments.
    Cells of the same scores are the same runs, as of a policy that never saw what tells these cells
    apart, and are drawn as one.
    None where some cell has a single seed, which drawn again and again says nothing of its spread;
    and where all draws agree, as when every run of ours beats every one of theirs.

    Raises:
        EluteError: no scores, one that is not finite, samples of other cells, no resamples, or a
            confidence that is no probability.
    """
    _check_confidence(confidence)
    _check_same_cells(samples)
    if resamples < 1:
        raise EluteError(f"{resamples} resamples asked for; expected at least 1")
    given = [_cells(sample) for sample in samples]
    if any(len(cell) < 2 for cells in given for cell in cells):
        return None
    rng = Seeds(seed)("bootstrap")
    drawn = [_drawn(cells, resamples, rng) for cells in given]
    ends = (1 - confidence) / 2, (1 + confidence) / 2
    low, high = np.quantile(statistic(*drawn), ends)
    return Interval(float(low), float(high)) if low < high else None


def _drawn(cells: Sequence[Floats], resamples: int, rng: np.random.Generator) -> list[Floats]:
    drawn: dict[bytes, Floats] = {}
    for cell in cells:
        if cell.tobytes() not in drawn:
            rows = rng.integers(len(cell), size=(resamples, len(cell)))
            drawn[cell.tobytes()] = cell[rows]
    return [drawn[cell.tobytes()] for cell in cells]


def winners(estimates: Mapping[str, Estimate]) -> tuple[str, ...]:
    """The best by its mean, then all that tie with it because their intervals overlap, best first.

    Nobody wins alone, or where some have too few seeds to lose.
    """
    if len(estimates) < 2 or any(one.seeds < FEWEST_SEEDS for one in estimates.values()):
        return ()
    order = sorted(estimates, key=lambda name: -estimates[name].mean)
    best = estimates[order[0]].interval
    return tuple(name for name in order if _tie(best, estimates[name].interval))


def _tie(one: Interval | None, other: Interval | None) -> bool:
    return one is None or other is None or one.overlaps(other)


def wilson(successes: int, trials: int, confidence: float = CONFIDENCE) -> Interval:
    """Interval of a success rate; unlike the normal one it never leaves 0 to 1.

    Raises:
        EluteError: no trials, more successes than trials, or a confidence that is no probability.
    """
    _check_confidence(confidence)
    return Interval(*uncertainty.wilson(successes, trials, confidence))


def _cells(strata: Strata) -> list[Floats]:
    if not len(strata):
        raise EluteError("no cells to take statistics of")
    return [_cell(scores) for scores in strata]


def _cell(scores: Sequence[float]) -> Floats:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise EluteError(f"scores of shape {values.shape} given; expected one for each seed")
    if not np.isfinite(values).all():
        raise EluteError(
            "a score is not a finite number", hint="a run that diverged has no score; leave it out"
        )
    return values


def _check_same_cells(samples: Sequence[Strata]) -> None:
    sizes = [len(sample) for sample in samples]
    if len(set(sizes)) != 1:
        raise EluteError(f"samples of {sizes} cells given; expected as many cells in each")


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise EluteError(f"confidence {confidence} asked for; expected between 0 and 1")
