"""Spoil recorded actions on purpose, keeping the clean ones, so that a cure can be measured.

States stay as recorded. (Noise inside the rollout, which changes the states too, is collection.)
"""

from dataclasses import replace

import numpy as np

from elute.noise import MAKERS, Noise, check_noise
from elute.rng import BLOCK_ROWS, Seeds
from elute.types import Demonstrations

CLEAN = "clean_actions"


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
        noisy[rows] = MAKERS[noise](block, level, rng)[keep]
    noisy[:, discrete] = demos.actions[:, discrete]  # a gripper is open or shut, never noisy
    clean = demos.extras.get(CLEAN, demos.actions)
    return replace(
        demos.with_extra(CLEAN, clean),
        actions=noisy.astype(np.result_type(demos.actions.dtype, np.float32)),
        provenance=demos.provenance.then("corrupt", noise=noise, level=level, seed=seed),
    )
