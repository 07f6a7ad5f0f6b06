"""What a format module provides. The table of formats is in `formats.py`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from elute.types import Demonstrations, DemoSource


@dataclass(frozen=True)
class ReadOptions:
    """What a user may say about a file that the file does not say itself."""

    keys: tuple[str, ...] = ()
    """Observation arrays to concatenate, for formats that keep several."""
    horizon: int | None = None
    """Time limit of the task, for formats that do not tell an end from a time-out."""
    fps: float | None = None
    """Steps per second, for formats that do not say; LeRobot asks for it."""


class Writer(Protocol):
    """A new file that takes rows in order."""

    losses: list[str]
    """What the format cannot hold, one sentence each; known before any row is written."""
    copied: bool
    """Whether the new file began as a copy of the source's, so that its arrays stand there."""

    def put(
        self, start: int, rows: Demonstrations, unchanged: Demonstrations | None = None
    ) -> None:
        """Write rows from `start` on; `unchanged` are the same rows as the source has them."""

    def finish(self) -> None:
        """Everything is written."""

    def close(self) -> None:
        """Let go of all files, also when writing was given up."""


class Format(Protocol):
    """One module per format."""

    @property
    def SUFFIXES(self) -> tuple[str, ...]:  # noqa: N802
        """Endings of file names; the empty one is a folder."""

    def detect(self, path: Path) -> bool:
        """Whether the path looks like this format. Never raises."""

    def read(self, path: Path, options: ReadOptions) -> DemoSource:
        """Open a file; rows are read when they are asked for."""

    def write(self, path: Path, source: DemoSource, sample: Demonstrations) -> Writer:
        """Start a new file for the rows of `source`, of the kind that `sample` shows."""
