"""Statistics of columns as LeRobot keeps them: of each episode, and of all of them.

    of an episode    min, max, mean, std (over n), count, and the quantiles 1 10 50 90 99 %
    of the data set  mean      sum n_e mean_e / n
                     std^2     sum n_e (std_e^2 + (mean_e - mean)^2) / n
                     quantile  sum n_e quantile_e / n: LeRobot's rule, though it is no quantile

A quantile is the smallest value that so many of the rows do not exceed; LeRobot finds the same from
a histogram, that is up to a 5000th of the column's range. Of a single row LeRobot takes its value.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from elute.episodes import Array

QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
NAMES = ("min", "max", "mean", "std", "count", *QUANTILES)


def of_episode(values: Array) -> dict[str, Array]:
    """The statistics of each column; of an array of more dimensions, along its last."""
    count = len(values)
    flat = values.reshape(-1, values.shape[-1] if values.ndim > 1 else 1).astype(np.float64)
    with np.errstate(all="ignore"):
        quantiles = np.quantile(flat, list(QUANTILES.values()), axis=0, method="inverted_cdf")
        return {
            "min": flat.min(axis=0),
            "max": flat.max(axis=0),
            "mean": flat.mean(axis=0),
            "std": flat.std(axis=0),
            "count": np.array([count]),
            **dict(zip(QUANTILES, quantiles, strict=True)),
        }


def of_all(episodes: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """The statistics of a data set from those of its episodes."""
    arrays = {name: np.stack([np.asarray(e[name]) for e in episodes]) for name in episodes[0]}
    mean = arrays["mean"]
    counts = arrays["count"].reshape(-1, *(1,) * (mean.ndim - 1))
    n = counts.sum()
    with np.errstate(all="ignore"):
        total = (counts * mean).sum(axis=0) / n
        variance = (counts * (arrays["std"] ** 2 + (mean - total) ** 2)).sum(axis=0) / n
        return {
            "min": arrays["min"].min(axis=0),
            "max": arrays["max"].max(axis=0),
            "mean": total,
            "std": np.sqrt(variance),
            "count": np.array([n]),
            **{q: (counts * arrays[q]).sum(axis=0) / n for q in arrays if q in QUANTILES},
        }


def features(table: pa.Table) -> list[str]:
    """The features that a table of episodes has statistics of."""
    named = [n.removeprefix("stats/").rpartition("/")[0] for n in table.column_names
             if n.startswith("stats/")]  # fmt: skip
    return list(dict.fromkeys(named))


def kept(table: pa.Table, feature: str) -> list[str]:
    """Which statistics a table has of a feature, or of any; all, if it has none."""
    known = [*features(table), feature]
    for name in (feature, *known):
        found = [s for s in NAMES if f"stats/{name}/{s}" in table.column_names]
        if found:
            return found
    return list(NAMES)


def replaced(table: pa.Table, feature: str, episodes: Sequence[Mapping[str, Array]]) -> pa.Table:
    """The table with other statistics of a feature, in the types that the columns have."""
    for name in kept(table, feature):
        column = f"stats/{feature}/{name}"
        values = [one[name].tolist() for one in episodes]
        if column in table.column_names:
            array = _cast(values, table[column].type)
            at = table.column_names.index(column)
            table = table.set_column(at, pa.field(column, array.type), array)
        else:
            kind = pa.list_(pa.int64() if name == "count" else pa.float64())
            table = table.append_column(pa.field(column, kind), pa.array(values, kind))
    return table


def _cast(values: list[list[Any]], kind: pa.DataType) -> pa.Array:
    """In the type that stood there, unless that was no list of numbers that could hold them."""
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    of = kind.value_type if is_list else pa.null()
    if pa.types.is_floating(of):
        item = np.dtype(of.to_pandas_dtype()).type
        return pa.array([[item(value) for value in row] for row in values], kind)
    whole = all(isinstance(value, int) for row in values for value in row)
    return pa.array(values, kind if whole and pa.types.is_int64(of) else None)


def aggregated(table: pa.Table, feature: str) -> dict[str, list[Any]] | None:
    """The statistics of a feature over all episodes, if each has them."""
    names = [s for s in NAMES if f"stats/{feature}/{s}" in table.column_names]
    if not {"min", "max", "mean", "std", "count"} <= set(names):
        return None
    rows = table.select([f"stats/{feature}/{s}" for s in names]).to_pylist()
    if any(value is None for row in rows for value in row.values()):
        return None
    try:
        total = of_all([{s: row[f"stats/{feature}/{s}"] for s in names} for row in rows])
    except (ValueError, TypeError):  # ragged: not what LeRobot wrote
        return None
    return {name: value.tolist() for name, value in total.items()}
