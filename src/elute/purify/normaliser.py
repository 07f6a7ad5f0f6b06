"""Units in which every column counts alike.

    x -> (x - mean) / deviation                  of the columns that vary
    q -> q if <q, pole> >= 0 else -q             of quaternions, before

Columns that hardly vary pass through untouched: in units of their own spread, the last digit of a
sensor would weigh as much as a joint. q and -q are one rotation; a mean of both is none. So signs
are chosen about a pole, the direction that most of the data lies along, and given back afterwards.
Data that keeps to one half of all quaternions (w >= 0, say) gets back what lies in that half: a
policy that is learnt from it must not see rotations written as they never are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from elute.columns import Column, still
from elute.episodes import Array
from elute.errors import EluteError
from elute.purify.purifier import quaternions
from elute.types import Demonstrations

SPAN = 30.0
"""Standard deviations from the mean beyond which data is hardly of the same units."""
SPREAD = 10.0
"""Times the standard deviation beyond which neither is data that spreads so wide."""
NORMAL_SPAN = 2.563
"""From the first to the last decile of a normal distribution, in standard deviations."""
FEW_ROWS = 30
"""Fewer may all be outliers, and are not judged."""


@dataclass(frozen=True, eq=False)
class Normaliser:
    """Units, as they were fitted."""

    mean: Array
    scale: Array
    """1 where a column does not vary or is not to be scaled."""
    varies: Array
    poles: Mapping[int, Array] = field(default_factory=dict)
    """Of each quaternion, by its first column."""
    halves: Mapping[int, Array] = field(default_factory=dict)
    """The direction of the half that a quaternion keeps to, if it does."""

    @classmethod
    def fit(cls, rows: Array, columns: Sequence[Column] = ()) -> Self:
        """Mean and standard deviation of each column, and the poles of quaternions.

        Raises:
            EluteError: no column varies.
        """
        values = rows.astype(np.float64)
        turns = {start: values[:, start:stop] for start, stop in quaternions(columns)}
        poles = {start: pole(q) for start, q in turns.items()}
        halves = {start: kept for start, q in turns.items() if (kept := half(q)).any()}
        values = values * _signs(values, poles) if poles else values
        mean, scale = values.mean(axis=0), values.std(axis=0)
        varies = ~still(mean, scale, columns)
        if not varies.any():
            raise EluteError("no column varies, so there is nothing to purify")
        return cls(mean, np.where(varies, scale, 1.0), varies, poles, halves)

    @classmethod
    def none(cls, rows: Array) -> Self:
        """Raw units, as the released code has them."""
        width = rows.shape[1]
        return cls(np.zeros(width), np.ones(width), np.ones(width, dtype=bool))

    def apply(self, rows: Array) -> Array:
        """Into units of standard deviations."""
        turned = rows * _signs(rows, self.poles) if self.poles else rows
        scaled: Array = (turned - self.mean) / self.scale
        return scaled

    def undo(self, scaled: Array, before: Array) -> Array:
        """Back into the units of the data, and of its quaternions' signs."""
        raw: Array = scaled * self.scale + self.mean
        if not self.poles:
            return raw
        signs = _signs(before, self.poles)
        for start, towards in self.halves.items():
            q, was = (rows[:, start : start + 4] for rows in (raw, before))
            kept = np.where(q @ towards < 0, -1.0, 1.0)[:, None]
            there = (was @ towards > 0)[:, None]
            signs[:, start : start + 4] = np.where(there, kept, signs[:, start : start + 4])
        return raw * signs

    def check(self, rows: Demonstrations, first_row: int = 0) -> None:
        """Refuse data of other units.

        The rows that a file begins with speak for all of it: a few rows, or a later chunk in which
        something went wrong, may well lie far out.

        Raises:
            EluteError: a column lies absurdly far from where it was when this was fitted.
        """
        if first_row > 0 or len(rows) < FEW_ROWS:
            return
        scaled = self.apply(rows.pairs.astype(np.float64))
        low, middle, high = np.quantile(scaled, [0.1, 0.5, 0.9], axis=0)
        away, spread = np.abs(middle), (high - low) / NORMAL_SPAN
        worst = int(np.argmax(np.where(self.varies, np.maximum(away / SPAN, spread / SPREAD), 0.0)))
        if away[worst] > SPAN or spread[worst] > SPREAD:
            raise EluteError(
                f"{rows.provenance.source}: column {worst} lies {away[worst]:.0f} standard "
                f"deviations from the data that this model was fitted on, and spreads "
                f"{spread[worst]:.3g} times as wide",
                hint="is it in other units, or are columns in another order?",
            )

    def to_json(self) -> dict[str, Any]:
        """As stored beside the weights."""
        return {
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "varies": self.varies.tolist(),
            "poles": _stored(self.poles),
            "halves": _stored(self.halves),
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """The same again."""
        mean, scale = (np.array(stored[name], dtype=np.float64) for name in ("mean", "scale"))
        varies = np.array(stored["varies"], dtype=bool)
        return cls(mean, scale, varies, _read(stored.get("poles")), _read(stored.get("halves")))


def pole(turns: Array) -> Array:
    """The unit quaternion nearest to all of these, (n, 4), whatever their signs.

    The eigenvector of sum q q^T with the largest eigenvalue, its largest entry positive.
    """
    _, vectors = np.linalg.eigh(turns.T @ turns)
    found: Array = vectors[:, -1]
    upright: Array = found * np.sign(found[np.argmax(np.abs(found))])
    return upright


def half(turns: Array) -> Array:
    """The mean of those entries, of (n, 4), that are never negative; zeros if all are somewhere."""
    mean: Array = np.where((turns >= 0).all(axis=0), turns.mean(axis=0), 0.0)
    return mean


def _stored(directions: Mapping[int, Array]) -> dict[str, list[float]]:
    return {str(start): towards.tolist() for start, towards in directions.items()}


def _read(stored: Mapping[str, list[float]] | None) -> dict[int, Array]:
    return {int(start): np.array(towards) for start, towards in (stored or {}).items()}


def _signs(rows: Array, poles: Mapping[int, Array]) -> Array:
    """-1 for quaternions on the far side of their pole, 1 everywhere else."""
    signs = np.ones(rows.shape)
    for start, towards in poles.items():
        far = rows[:, start : start + 4] @ towards < 0
        signs[far, start : start + 4] = -1.0
    return signs
