"""Weights of rows as a file that other trainers read: `index` and `weight`.

Rows are numbered through D_o and then D_s, as the learner saw them.
"""

from pathlib import Path

import numpy as np

from elute.demos.output import output
from elute.episodes import Array
from elute.errors import EluteError

FORMATS = ("npz", "parquet")


def check_weights_format(format: str) -> None:
    """Refuse what cannot be written, before any work is done.

    Raises:
        EluteError: another format, or parquet without pyarrow.
    """
    if format not in FORMATS:
        raise EluteError(f"weights as {format!r}", hint=f"there are {' and '.join(FORMATS)}")
    if format == "parquet":
        try:
            import pyarrow.parquet  # noqa: F401, PLC0415 (an extra)
        except ImportError as error:
            raise EluteError(
                "parquet needs pyarrow", hint="pip install 'elute[lerobot]', or take npz"
            ) from error


def write_weights(weights: Array, path: Path) -> None:
    """Write them as the ending of the path says."""
    index = np.arange(len(weights))
    with output(path) as temporary:
        if path.suffix == ".parquet":
            import pyarrow  # noqa: PLC0415 (an extra)
            from pyarrow import parquet  # noqa: PLC0415

            table = pyarrow.table({"index": index, "weight": weights})
            parquet.write_table(table, temporary)
        else:
            with temporary.open("wb") as file:
                np.savez_compressed(file, index=index, weight=weights)
