"""Filters along time, within each episode: the oldest way to remove noise.

    mean:      x_t <- (1/k) sum_{|j| <= h} x_{t+j},                   k = 2h + 1
    gaussian:  x_t <- sum_{|j| <= h} w_j x_{t+j},                     h = ceil(3 sigma)
               w_j ~ exp(-j^2 / (2 sigma^2)), summing to 1
    median:    x_t <- median of x_{t-h} .. x_{t+h}

Each column by itself. Beyond its ends an episode is mirrored about its first and last row. q and -q
are one rotation, so quaternions are filtered with signs that do not jump, and get theirs back.

A filter looks at neighbours: rows that are purified in chunks come out as they do in one piece
only if the chunks end with episodes. The released code filters across episodes, with an even
(lopsided) Gaussian kernel, and its median runs over features instead of time.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import ndimage

from elute.episodes import Array
from elute.errors import EluteError
from elute.purify.purifier import Progress, put_back, quaternions
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet, check_finite

Filter = Literal["gaussian", "mean", "median"]


@dataclass(frozen=True, kw_only=True)
class FilterPurifier:
    """Smooth along time; learns nothing."""

    kind: Filter = "gaussian"
    window: int = 3
    """k, of mean and median: odd."""
    sigma: float = 1.5
    """Of the Gaussian, in rows."""
    target: Literal["joint", "action"] = "joint"

    def __post_init__(self) -> None:
        if self.kind not in ("gaussian", "mean", "median"):
            raise EluteError(f"{self.kind!r} is no filter", hint="gaussian, mean or median")
        if self.window < 1 or self.window % 2 == 0:
            raise EluteError(f"a window of {self.window} rows asked for; expected an odd number")
        if not (math.isfinite(self.sigma) and self.sigma > 0):
            raise EluteError(f"sigma {self.sigma} asked for; expected a number above 0")

    @property
    def kernel(self) -> Array:
        """w_{-h} .. w_h, which sum to 1."""
        if self.kind != "gaussian":
            return np.full(self.window, 1.0 / self.window)
        half = math.ceil(3 * self.sigma)
        weights = np.exp(-(np.arange(-half, half + 1) ** 2) / (2 * self.sigma**2))
        return np.asarray(weights / weights.sum())

    def smooth(self, series: Array) -> Array:
        """One episode, (rows, columns)."""
        smoothed: Array
        if self.kind == "median":
            smoothed = ndimage.median_filter(series, size=(self.window, 1), mode="mirror")
        else:
            smoothed = ndimage.correlate1d(series, self.kernel, axis=0, mode="mirror")
        return smoothed

    def fit(
        self, demos: DemoSet, seeds: Seeds, *, progress: Progress = lambda done, total: None
    ) -> "FilterTransform":
        """Nothing to learn."""
        check_finite(demos.optimal, "D_o")
        check_finite(demos.supplementary, "D_s")
        del seeds, progress
        return FilterTransform(self)


@dataclass(frozen=True)
class FilterTransform:
    """The filter at work."""

    purifier: FilterPurifier

    def __call__(
        self, rows: Demonstrations, *, first_row: int = 0, seed: int = 0
    ) -> Demonstrations:
        """Episode by episode."""
        check_finite(rows, "D_s")
        del first_row, seed
        pairs = rows.pairs.astype(np.float64)
        turns = quaternions((*rows.observation_columns, *rows.action_columns))
        for start, stop in zip(rows.episodes.starts, rows.episodes.stops, strict=True):
            signs = _signs(pairs[start:stop], turns)
            pairs[start:stop] = signs * self.purifier.smooth(signs * pairs[start:stop])
        return put_back(
            rows,
            pairs,
            target=self.purifier.target,
            operation="purify",
            method=self.purifier.kind,
        )


def _signs(series: Array, turns: list[tuple[int, int]]) -> Array:
    """1 everywhere but where a quaternion has jumped to the other sign of nearly the same."""
    signs = np.ones_like(series)
    for first, last in turns:
        q = series[:, first:last]
        along = (q[1:] * q[:-1]).sum(axis=1, keepdims=True)
        signs[1:, first:last] = np.cumprod(np.where(along < 0, -1.0, 1.0), axis=0)
    return signs
