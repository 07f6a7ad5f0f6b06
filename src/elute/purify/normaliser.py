"""Units in which every column counts alike; constant columns pass through untouched."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from elute.episodes import Array
from elute.errors import EluteError
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
    """x -> (x - mean) / scale for the columns that vary."""

    mean: Array
    scale: Array
    """1 where a column does not vary or is not to be scaled."""
    varies: Array

    @classmethod
    def fit(cls, rows: Array) -> Self:
        """Mean and standard deviation of each column.

        Raises:
            EluteError: no column varies.
        """
        values = rows.astype(np.float64)
        mean, scale = values.mean(axis=0), values.std(axis=0)
        varies = scale > 1e-9 * np.maximum(1.0, np.abs(mean))
        if not varies.any():
            raise EluteError("no column varies, so there is nothing to purify")
        return cls(mean, np.where(varies, scale, 1.0), varies)

    @classmethod
    def none(cls, rows: Array) -> Self:
        """Raw units, as the released code has them."""
        width = rows.shape[1]
        return cls(np.zeros(width), np.ones(width), np.ones(width, dtype=bool))

    def apply(self, rows: Array) -> Array:
        """Into units of standard deviations."""
        scaled: Array = (rows - self.mean) / self.scale
        return scaled

    def undo(self, rows: Array) -> Array:
        """Back into the units of the data."""
        raw: Array = rows * self.scale + self.mean
        return raw

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
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """The same again."""
        mean, scale = (np.array(stored[name], dtype=np.float64) for name in ("mean", "scale"))
        return cls(mean, scale, np.array(stored["varies"], dtype=bool))
