"""Spoil recorded actions on purpose, keeping the clean ones, so that a cure can be measured.

    a' = a + level * N(0, 1)                        gaussian
    a' = a + level * sqrt(3) * U(-1, 1)             uniform: the same standard deviation
    a' = -1 or +1 with probability level, else a    salt-and-pepper, of each entry

States stay as recorded. (Noise inside the rollout, which changes the states too, is collection.)
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from elute.episodes import Array
from elute.errors import EluteError
from elute.rng import BLOCK_ROWS, Seeds
from elute.types import Demonstrations

Noise = Literal["gaussian", "uniform", "salt-pepper"]
NOISES: tuple[Noise, ...] = get_args(Noise)
CLEAN = "clean_actions"


def gaussian(actions: Array, level: float, rng: np.random.Generator) -> Array:
    """Normal noise of standard deviation `level`."""
    noisy: Array = actions + level * rng.standard_normal(actions.shape)
    return noisy


def uniform(actions: Array, level: float, rng: np.random.Generator) -> Array:
    """Uniform noise of standard deviation `level`, so half as wide as sqrt(3) times it."""
    noisy: Array = actions + level * np.sqrt(3.0) * rng.uniform(-1.0, 1.0, actions.shape)
    return noisy


def salt_pepper(actions: Array, level: float, rng: np.random.Generator) -> Array:
    """Each entry is replaced with probability `level` by -1 or 1, equally likely."""
    hit = rng.random(actions.shape) < level
    noisy: Array = np.where(hit, rng.choice([-1.0, 1.0], actions.shape), actions)
    return noisy


_NOISES: dict[Noise, Callable[[Array, float, np.random.Generator], Array]] = {
    "gaussian": gaussian,
    "uniform": uniform,
    "salt-pepper": salt_pepper,
}


def corrupt(
    demos: Demonstrations, noise: Noise, level: float, *, seed: int = 0, first_row: int = 0
) -> Demonstrations:
    """The same demonstrations with noisy actions; `extras["clean_actions"]` keeps the clean ones.

    Args:
        demos: what to spoil. Clean actions that it already carries are kept as they are.
        noise: one of `NOISES`.
        level: standard deviation, or probability for salt-and-pepper.
        seed: same seed, same noise, however the rows are cut into chunks.
        first_row: number of the first row in the whole file, when this is a chunk of it.
    """
    check_noise(noise, level)
    discrete = [i for i, column in enumerate(demos.action_columns) if column.role == "discrete"]
    noisy = demos.actions.astype(np.float64)
    stop = first_row + len(demos)
    for rng, keep, rows in Seeds(seed).blocks(f"corrupt/{noise}", first_row, stop):
        block = np.zeros((BLOCK_ROWS, noisy.shape[1]))
        block[keep] = noisy[rows]
        noisy[rows] = _NOISES[noise](block, level, rng)[keep]
    noisy[:, discrete] = demos.actions[:, discrete]  # a gripper is open or shut, never noisy
    clean = demos.extras.get(CLEAN, demos.actions)
    return replace(
        demos.with_extra(CLEAN, clean),
        actions=noisy.astype(np.result_type(demos.actions.dtype, np.float32)),
        provenance=demos.provenance.then("corrupt", noise=noise, level=level, seed=seed),
    )


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
