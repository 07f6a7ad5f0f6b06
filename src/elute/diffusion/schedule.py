"""The noise schedule of a diffusion model, as float64 numpy; no torch.

Steps are counted as the paper does: i = 1..N, and i = 0 is the data itself (alpha_bar_0 = 1).

    alpha_i = 1 - beta_i,   alpha_bar_i = prod_{j<=i} alpha_j
    diffuse:    x_i = sqrt(alpha_bar_i) x + sqrt(1 - alpha_bar_i) eps                     (Eq. 6)
    step down:  x_{i-1} = (x_i - beta_i / sqrt(1 - alpha_bar_i) eps_hat) / sqrt(alpha_i)
                          + sqrt(beta_i) z,   no z at the last step                     (Eq. 7)

The continuous time t = i / N has beta(t), drawn through N beta_i in straight lines, and
zeta(t) = (1/2) int_0^t beta(s) ds, so that alpha_bar is about exp(-2 zeta). (The paper prints the
predicted noise of Eq. 7 in a denominator.)
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple, NewType, Self

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError

Step = NewType("Step", int)
"""Discrete, 0..N."""
Time = NewType("Time", float)
"""Continuous, 0..1."""

Floats = NDArray[np.float64]
ScheduleName = Literal["linear", "cosine"]


class Descent(NamedTuple):
    """One step down: x <- keep * x - remove * eps_hat + add * z."""

    step: int
    to: int
    keep: float
    remove: float
    add: float


@dataclass(frozen=True, eq=False)
class Schedule:
    """How much noise each step adds. Arrays are indexed by the step; entry 0 is "no noise"."""

    beta: Floats
    """beta_0 = 0, then beta_1 .. beta_N."""

    @classmethod
    def linear(cls, n_steps: int = 1000, first: float = 1e-4, last: float = 0.02) -> Self:
        """The paper's: beta from 1e-4 to 0.02 in equal steps."""
        return cls(np.concatenate([[0.0], np.linspace(first, last, n_steps)]))

    @classmethod
    def cosine(cls, n_steps: int = 1000, offset: float = 0.008) -> Self:
        """alpha_bar falls like a squared cosine (Nichol and Dhariwal 2021); beta at most 0.999."""
        t = np.arange(n_steps + 1) / n_steps
        alpha_bar = np.cos((t + offset) / (1 + offset) * np.pi / 2) ** 2
        beta = np.clip(1 - alpha_bar[1:] / alpha_bar[:-1], 0.0, 0.999)
        return cls(np.concatenate([[0.0], beta]))

    @classmethod
    def named(cls, name: ScheduleName, n_steps: int = 1000) -> Self:
        """The schedule of this name."""
        return cls.cosine(n_steps) if name == "cosine" else cls.linear(n_steps)

    def __post_init__(self) -> None:
        beta = np.array(self.beta, dtype=np.float64)
        if beta.ndim != 1 or len(beta) < 2 or beta[0] != 0 or not ((beta >= 0) & (beta < 1)).all():
            raise EluteError("a schedule is beta_0 = 0 followed by numbers from 0 to 1")
        beta.flags.writeable = False
        object.__setattr__(self, "beta", beta)

    @property
    def n_steps(self) -> int:
        """N."""
        return len(self.beta) - 1

    @cached_property
    def alpha(self) -> Floats:
        """1 - beta."""
        return 1.0 - self.beta

    @cached_property
    def alpha_bar(self) -> Floats:
        """Share of the signal's variance that is left at each step."""
        return np.asarray(np.cumprod(self.alpha), dtype=np.float64)

    @cached_property
    def signal(self) -> Floats:
        """sqrt(alpha_bar): what the data is multiplied by."""
        return np.sqrt(self.alpha_bar)

    @cached_property
    def noise(self) -> Floats:
        """sqrt(1 - alpha_bar): the standard deviation of the noise."""
        return np.sqrt(1.0 - self.alpha_bar)

    def ancestral(self, start: Step) -> list["Descent"]:
        """Every step from `start` down to 0, as Eq. 7 has it."""
        return [
            Descent(
                step=i,
                to=i - 1,
                keep=1.0 / np.sqrt(self.alpha[i]),
                remove=self.beta[i] / (self.noise[i] * np.sqrt(self.alpha[i])),
                add=np.sqrt(self.beta[i]) if i > 1 else 0.0,
            )
            for i in range(start, 0, -1)
        ]

    def strided(self, start: Step, n: int, eta: float = 1.0) -> list["Descent"]:
        """At most `n` longer steps down to 0 (DDIM, Song et al. 2021); eta = 0 adds no noise."""
        stops = np.unique(np.linspace(0, start, min(n, start) + 1).round().astype(int))[::-1]
        descents = []
        for i, j in pairwise(stops.tolist()):
            ratio = self.alpha_bar[i] / self.alpha_bar[j]
            add = eta * np.sqrt((1 - self.alpha_bar[j]) / (1 - self.alpha_bar[i]) * (1 - ratio))
            keep = self.signal[j] / self.signal[i]
            direction = np.sqrt(max(0.0, 1 - self.alpha_bar[j] - add**2))
            descents.append(Descent(i, j, keep, keep * self.noise[i] - direction, add))
        return descents

    def check(self, step: int) -> Step:
        """The same step, if there is one.

        Raises:
            EluteError: it is not among 0..N.
        """
        if not 0 <= step <= self.n_steps:
            raise EluteError(f"reverse step {step} asked for; expected 0 to {self.n_steps}")
        return Step(step)

    def time(self, step: Step) -> Time:
        """T = i / N."""
        return Time(step / self.n_steps)

    def step(self, time: Time) -> Step:
        """The nearest step to a time."""
        return self.check(round(time * self.n_steps))

    @cached_property
    def _knots(self) -> tuple[Floats, Floats, Floats]:
        """Times, beta(t) there (beta_1 stands at t = 0, beta_N at 1), and its integral so far."""
        times = np.linspace(0.0, 1.0, self.n_steps)
        beta = self.n_steps * self.beta[1:]
        strips = 0.5 * (beta[1:] + beta[:-1]) * np.diff(times)
        return times, beta, np.concatenate([[0.0], np.cumsum(strips)])

    def beta_at(self, time: Time) -> float:
        """beta(t): straight lines between N beta_i."""
        times, beta, _ = self._knots
        return float(np.interp(time, times, beta))

    def zeta(self, time: Time) -> float:
        """(1/2) int_0^t beta(s) ds."""
        times, beta, integral = self._knots
        before = max(0, int(np.searchsorted(times, time, side="right")) - 1)
        rest = 0.5 * (beta[before] + self.beta_at(time)) * (time - times[before])
        return float(0.5 * (integral[before] + rest))
