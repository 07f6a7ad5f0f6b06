"""Noise over continuous time, t = i / N.

    beta(t) = first + growth t
    zeta(t) = (1/2) int_0^t beta(s) ds = first t / 2 + growth t^2 / 4              (Theorem 2)
    zeta'(t) = beta(t) / 2,   zeta''(t) = growth / 2,   alpha_bar = exp(-2 zeta)

The paper trains with N = 1000 and beta_i from 1e-4 to .02, which is beta(t) = .1 + 19.9 t (`REAL`).
The proof of Theorem 4 calculates with zeta = k t^2 / 4 (`SIMPLIFIED`). It does not say what k is;
20 = N beta_N is taken here, and no verdict depends on it.

Deviation from the paper: the proof of Proposition 3 prints zeta' = beta.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from elute.diffusion.schedule import Floats
from elute.errors import EluteError

Form = Literal["printed", "corrected"]
"""A formula as the paper prints it, or as it should be."""
FORMS: tuple[Form, ...] = get_args(Form)


def is_printed(form: Form) -> bool:
    """Whether the formula is wanted as printed.

    Raises:
        EluteError: it is neither "printed" nor "corrected".
    """
    if form not in FORMS:
        raise EluteError(f"form={form!r} asked for; expected printed or corrected")
    return form == "printed"


def floats(values: ArrayLike) -> Floats:
    """Anything like an array, as numbers."""
    return np.asarray(values, dtype=np.float64)


@dataclass(frozen=True)
class LinearBeta:
    """beta(t) = first + growth t."""

    first: float
    growth: float

    def beta(self, t: ArrayLike) -> Floats:
        """Noise per time."""
        return self.first + self.growth * floats(t)

    def zeta(self, t: ArrayLike) -> Floats:
        """(1/2) int_0^t beta(s) ds."""
        t = floats(t)
        return 0.5 * self.first * t + 0.25 * self.growth * t**2

    def slope(self, t: ArrayLike, *, form: Form = "corrected") -> Floats:
        """zeta'(t) = beta(t) / 2; printed (proof of Proposition 3): beta(t)."""
        return self.beta(t) if is_printed(form) else 0.5 * self.beta(t)

    @property
    def curvature(self) -> float:
        """zeta''(t) = growth / 2, the same at every t."""
        return 0.5 * self.growth

    def time(self, zeta: ArrayLike) -> Floats:
        """The t >= 0 at which zeta(t) has this value."""
        a, b = 0.25 * self.growth, 0.5 * self.first
        return (np.sqrt(b**2 + 4 * a * floats(zeta)) - b) / (2 * a)


REAL = LinearBeta(0.1, 19.9)
SIMPLIFIED = LinearBeta(0.0, 20.0)
