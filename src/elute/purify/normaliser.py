"""Units in which every column counts alike.

    x -> (x - mean) / deviation                  of the columns that vary
    q -> q if <q, pole> >= 0 else -q             of quaternions, before

Columns that hardly vary pass through untouched: in units of their own spread, the last digit of a
sensor would weigh as much as a joint. q and -q are one rotation; a mean of both is none. So signs
are chosen about a pole, the direction that most of the data lies along, and given back afterwards.
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

    @classmethod
    def fit(cls, rows: Array, columns: Sequence[Column] = ()) -> Self:
        """Mean and standard deviation of each column, and the poles of quaternions.

        Raises:
            EluteError: no column varies.
        """
        values = rows.astype(np.float64)
        poles = {start: pole(values[:, start:stop]) for start, stop in quaternions(columns)}
        values = values * _signs(values, poles) if poles else values
        mean, scale = values.mean(axis=0), values.std(axis=0)
        varies = ~still(mean, scale, columns)
        if not varies.any():
            raise EluteError("no column varies, so there is nothing to purify")
        return cls(mean, np.where(varies, scale, 1.0), varies, poles)

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
        """Back into the units of the data, with the signs that quaternions had before."""
        raw: Array = scaled * self.scale + self.mean
        return raw * _signs(before, self.poles) if self.poles else raw

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
            "poles": {str(start): pole.tolist() for start, pole in self.poles.items()},
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """The same again."""
        mean, scale = (np.array(stored[name], dtype=np.float64) for name in ("mean", "scale"))
        poles = {int(start): np.array(pole) for start, pole in stored.get("poles", {}).items()}
        return cls(mean, scale, np.array(stored["varies"], dtype=bool), poles)


def pole(turns: Array) -> Array:
    """The unit quaternion nearest to all of these, (n, 4), whatever their signs.

    The eigenvector of sum q q^T with the largest eigenvalue, its largest entry positive.
    """
    _, vectors = np.linalg.eigh(turns.T @ turns)
    found: Array = vectors[:, -1]
    upright: Array = found * np.sign(found[np.argmax(np.abs(found))])
    return upright


def _signs(rows: Array, poles: Mapping[int, Array]) -> Array:
    """-1 for quaternions on the far side of their pole, 1 everywhere else."""
    signs = np.ones(rows.shape)
    for start, towards in poles.items():
        far = rows[:, start : start + 4] @ towards < 0
        signs[far, start : start + 4] = -1.0
    return signs
