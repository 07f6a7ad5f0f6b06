"""Noise on actions.

    a' = a + level * N(0, 1)                          gaussian
    a' = a + level * sqrt(3) * U(-1, 1)               uniform: the same standard deviation
    a' = lowest or highest with probability level     salt-and-pepper, of each entry; without
                                                      bounds -1 or 1

`demos.corrupt` spoils recorded actions with it; inside a rollout it changes the states visited too.
There, all of an episode's noise is drawn before the episode starts, from a stream of its own: it
depends on seed and episode alone, and costs the loop no call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from elute.episodes import Array
from elute.errors import EluteError

Noise = Literal["gaussian", "uniform", "salt-pepper"]
NOISES: tuple[Noise, ...] = get_args(Noise)
Kind = Literal["none", "sample", "gaussian", "uniform", "salt-pepper"]


def gaussian(actions: Array, level: float, rng: np.random.Generator) -> Array:
    """Normal noise of standard deviation `level`."""
    noisy: Array = actions + level * rng.standard_normal(actions.shape)
    return noisy


def uniform(actions: Array, level: float, rng: np.random.Generator) -> Array:
    """Uniform noise of standard deviation `level`: up to sqrt(3) times that either way."""
    noisy: Array = actions + level * np.sqrt(3.0) * rng.uniform(-1.0, 1.0, actions.shape)
    return noisy


def salt_pepper(actions: Array, level: float, rng: np.random.Generator) -> Array:
    """Each entry is replaced with probability `level` by -1 or 1, equally likely."""
    hit = rng.random(actions.shape) < level
    noisy: Array = np.where(hit, rng.choice([-1.0, 1.0], actions.shape), actions)
    return noisy


MAKERS: dict[Noise, Callable[[Array, float, np.random.Generator], Array]] = {
    "gaussian": gaussian,
    "uniform": uniform,
    "salt-pepper": salt_pepper,
}


def check_noise(noise: str, level: float) -> Noise:
    """The noise of this name; refuses what does not exist.

    Raises:
        EluteError: unknown kind, or a level that is no standard deviation or probability.
    """
    known = next((name for name in NOISES if name == noise), None)
    if known is None:
        raise EluteError(f"{noise!r} is no noise", hint="there are " + ", ".join(NOISES))
    if not (np.isfinite(level) and level >= 0) or (noise == "salt-pepper" and level > 1):
        expected = "a probability" if noise == "salt-pepper" else "a number of at least 0"
        raise EluteError(f"{noise} noise of level {level} asked for; expected {expected}")
    return known


@dataclass(frozen=True)
class ActionNoise:
    """What a rollout does to the mean action: none, the policy's own spread, or a noise."""

    kind: Kind = "none"
    level: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("none", "sample"):
            check_noise(self.kind, self.level)

    def __str__(self) -> str:
        return self.kind if self.kind in ("none", "sample") else f"{self.kind}:{self.level:g}"

    @classmethod
    def parse(cls, text: str) -> "ActionNoise":
        """`gaussian:0.6`, `sample`, `none`.

        Raises:
            EluteError: no such noise, or no such level.
        """
        if text in ("none", "sample"):
            return cls("none" if text == "none" else "sample")
        kind, _, level = text.partition(":")
        try:
            number = float(level)
        except ValueError as error:
            raise EluteError(
                f"noise {text!r}; expected KIND:LEVEL",
                hint="gaussian:0.6, uniform:0.4, salt-pepper:0.25, sample or none",
            ) from error
        return cls(check_noise(kind, number), number)

    def draw(self, shape: tuple[int, int], rng: np.random.Generator) -> Array:
        """An episode's noise: to be added; for salt-and-pepper -1, 1, or 0 for no grain."""
        still = np.zeros(shape)
        if self.kind == "none":
            return still
        if self.kind == "sample":
            return gaussian(still, 1.0, rng)  # of the policy's spread, which may change meanwhile
        return MAKERS[self.kind](still, self.level, rng)

    def apply(self, means: Array, drawn: Array, std: Array, bounds: tuple[Array, Array]) -> Array:
        """The actions asked for; `std` is the spread that the policy has now."""
        if self.kind == "sample":
            drawn = std * drawn
        if self.kind != "salt-pepper":
            noisy: Array = means + drawn
            return noisy
        low, high = bounds
        mixed: Array = np.where(drawn == 0, means, np.where(drawn > 0, high, low))
        return mixed
