"""The purifier that changes nothing: what any other must beat."""

from dataclasses import dataclass

from elute.purify.purifier import Progress, put_back
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet, check_finite


@dataclass(frozen=True, kw_only=True)
class IdentityPurifier:
    """Learns nothing."""

    def fit(
        self, demos: DemoSet, seeds: Seeds, *, progress: Progress = lambda done, total: None
    ) -> "IdentityTransform":
        """Nothing to learn."""
        check_finite(demos.optimal, "D_o")
        check_finite(demos.supplementary, "D_s")
        del seeds, progress
        return IdentityTransform()


@dataclass(frozen=True)
class IdentityTransform:
    """x -> x."""

    def __call__(
        self, rows: Demonstrations, *, first_row: int = 0, seed: int = 0
    ) -> Demonstrations:
        """The rows as they are."""
        check_finite(rows, "D_s")
        del first_row, seed
        return put_back(rows, rows.pairs, target="action", operation="purify", method="identity")
