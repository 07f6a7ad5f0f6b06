"""A bounded look at a file of any size: blocks of consecutive rows, spread evenly."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from elute.episodes import Array
from elute.types import Demonstrations, DemoSource

SAMPLE_ROWS = 20_000
BLOCK_ROWS = 500


@dataclass(frozen=True)
class Sample:
    """Some rows of a source, in runs that lie within one episode each."""

    runs: tuple[Demonstrations, ...]

    @cached_property
    def observations(self) -> Array:
        """Observations of the finite rows of all runs, as float64."""
        return self._finite(np.concatenate([run.observations for run in self.runs]))

    @cached_property
    def pairs(self) -> Array:
        """The finite rows of all runs, as float64."""
        return self._finite(np.concatenate([run.pairs for run in self.runs]))

    @staticmethod
    def _finite(rows: Array) -> Array:
        values = rows.astype(np.float64)
        return values[np.isfinite(values).all(axis=1)]

    @cached_property
    def action_steps(self) -> Array:
        """Absolute changes of the action from row to row."""
        with np.errstate(invalid="ignore"):  # from one infinity to the next
            steps = [np.abs(np.diff(run.actions.astype(np.float64), axis=0)) for run in self.runs]
        return self._finite(np.concatenate(steps))


def spread(rows: Array) -> Array:
    """Standard deviation of each column; exactly 0 where it only varies by rounding."""
    if len(rows) == 0:
        return np.zeros(rows.shape[1])
    largest = np.abs(rows).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)  # scaled first, so that huge values do not overflow
    deviation: Array = (rows / unit).std(axis=0) * unit
    return np.where(deviation > 1e-9 * np.maximum(1.0, largest), deviation, 0.0)


def take_sample(source: DemoSource) -> Sample:
    """All rows of a small source; of a large one, even blocks from beginning to end."""
    starts, stops = source.episodes.starts, source.episodes.stops
    if source.episodes.n_rows <= SAMPLE_ROWS:
        rows = source.rows(0, source.episodes.n_rows)
        return Sample(tuple(rows.iter_episodes()))
    blocks = np.linspace(0, source.episodes.n_rows - 1, SAMPLE_ROWS // BLOCK_ROWS, endpoint=False)
    runs = []
    for row in blocks.astype(int).tolist():
        episode = source.episodes.of_row(row)
        first = max(int(starts[episode]), min(row, int(stops[episode]) - BLOCK_ROWS))
        runs.append(source.rows(first, min(first + BLOCK_ROWS, int(stops[episode]))))
    return Sample(tuple(runs))
