"""One root seed, a named stream per purpose, and noise that does not depend on chunk size."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from elute.errors import EluteError

BLOCK_ROWS = 4096
"""Rows that share one generator. Noise for a row depends on its number, never on the chunk."""


@dataclass(frozen=True)
class Seeds:
    """Named, independent random streams grown from one root seed."""

    root: int = 0

    def __post_init__(self) -> None:
        if self.root < 0:
            raise EluteError(f"seed {self.root} asked for; expected 0 or more")

    def __call__(self, purpose: str, *indices: int) -> np.random.Generator:
        """The generator for a purpose, and where given for a step or a block of rows."""
        name = zlib.crc32(purpose.encode())
        key = (name, *indices)  # as a list of entropy, "step 0" and no step would be the same
        return np.random.default_rng(np.random.SeedSequence(self.root, spawn_key=key))

    def blocks(
        self, purpose: str, start: int, stop: int
    ) -> Iterator[tuple[np.random.Generator, slice, slice]]:
        """For rows `start..stop`: each block's generator, its rows to keep, and where they go.

        A caller draws `BLOCK_ROWS` rows from the generator and keeps the first slice, so that any
        way of cutting the rows gives the same numbers.
        """
        for block in range(start // BLOCK_ROWS, -(-stop // BLOCK_ROWS)):
            origin = block * BLOCK_ROWS
            first, last = max(start, origin), min(stop, origin + BLOCK_ROWS)
            keep = slice(first - origin, last - origin)
            yield self(purpose, block), keep, slice(first - start, last - start)
