"""What purification did to single columns, as small plain data that can be kept beside a result.

changes = column_changes(before, after, optimal)
json.dumps([asdict(change) for change in changes])          # a few kilobytes
TypeAdapter(tuple[ColumnChange, ...]).validate_python(...)  # and back
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from elute.episodes import Array
from elute.errors import EluteError
from elute.report.before_after import (
    BINS,
    OPTIMAL_RANGE,
    SERIES,
    SERIES_ROWS,
    moved_columns,
)
from elute.types import Demonstrations

DIGITS = 4
"""Kept of each number: more cannot be seen in a chart."""


@dataclass(frozen=True)
class ColumnChange:
    """One column, before and after, and where the optimal demonstrations have it."""

    name: str
    moved: float
    """Mean move of a row, in standard deviations of the column."""
    before: tuple[float | None, ...]
    """The first rows, in order; what is not finite is None."""
    after: tuple[float | None, ...]
    stops: tuple[int, ...]
    """Rows after which an episode ends, among those."""
    optimal_range: tuple[float, float]
    """Between which 90 % of the optimal rows lie."""
    edges: tuple[float, float]
    """The range of the histograms."""
    histograms: Mapping[str, tuple[float, ...]]
    """Share of the rows in each bin: `before`, `after` and `optimal`."""


def column_changes(
    before: Demonstrations, after: Demonstrations, optimal: Demonstrations, most: int = SERIES
) -> tuple[ColumnChange, ...]:
    """The columns that moved most, in their own standard deviations, the first of them first.

    Raises:
        EluteError: the two are not the same rows, or D_o has other columns.
    """
    if not before.pairs.shape == after.pairs.shape:
        raise EluteError(f"{len(before)} rows before and {len(after)} after: not the same rows")
    if before.pairs.shape[1] != optimal.pairs.shape[1]:
        raise EluteError("the optimal demonstrations have other columns")
    scale = _scale(np.concatenate([before.pairs, optimal.pairs]))
    names = (*before.observation_columns, *before.action_columns)
    return tuple(
        _change(names[column].name, column, moved, (before, after, optimal))
        for column, moved in moved_columns(before.pairs, after.pairs, scale, most)
    )


def _scale(pairs: Array) -> Array:
    """Standard deviation of each column; 1 where it never changes."""
    scale: Array = np.nanstd(np.where(np.isfinite(pairs), pairs, np.nan), axis=0)
    return np.where(scale > 0, scale, 1.0)


def _change(
    name: str, column: int, moved: float, demos: tuple[Demonstrations, ...]
) -> ColumnChange:
    values = [rows.pairs[:, column].astype(np.float64) for rows in demos]
    finite = [v[np.isfinite(v)] for v in values]
    low, high = (float(side(np.concatenate(finite))) for side in (np.min, np.max))
    stops = [
        int(stop) for stop in demos[0].episodes.stops if stop < min(len(demos[0]), SERIES_ROWS)
    ]
    kinds = ("before", "after", "optimal")
    return ColumnChange(
        name=name,
        moved=_short(moved),
        before=_series(values[0]),
        after=_series(values[1]),
        stops=tuple(stops),
        optimal_range=tuple(_short(q) for q in np.quantile(finite[2], OPTIMAL_RANGE)),  # type: ignore[arg-type]
        edges=(_short(low), _short(high)),
        histograms={kind: _shares(v, low, high) for kind, v in zip(kinds, finite, strict=True)},
    )


def _series(values: Array) -> tuple[float | None, ...]:
    return tuple(_short(v) if np.isfinite(v) else None for v in values[:SERIES_ROWS])


def _shares(values: Array, low: float, high: float) -> tuple[float, ...]:
    counts, _ = np.histogram(values, bins=BINS, range=(low, high))
    return tuple(_short(share) for share in counts / max(1, len(values)))


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
