"""Checks of two files against each other: the optimal demonstrations D_o and the others D_s."""

import numpy as np
from scipy.spatial import cKDTree

from elute.columns import Column
from elute.demos.audit.finding import Finding, listed
from elute.demos.audit.sample import Sample, spread
from elute.demos.audit.summary import Summary
from elute.episodes import Array

SCALE_RATIO = 8.0
"""Spreads that differ by more than this factor are hardly the same unit."""
COVERAGE_ROWS = 2_000
FAR = 4.0
"""How many times as far from D_o as its rows are from each other. Above it, what is cloned from
purified rows hardly ever comes near the expert (docs/results.md)."""
ENOUGH_ROWS = 500
"""Of D_o, to say so: fewer lie so far apart that everything looks near."""
NEIGHBOURHOOD = 10
"""Rows before and after that do not count as a neighbour: they are nearly the same moment."""
FEW_ROWS = 50
_UNITS = {180 / np.pi: "degrees against radians", 1000.0: "millimetres against metres",
          100.0: "centimetres against metres"}  # fmt: skip


def compare_findings(
    optimal: tuple[Sample, Summary],
    other: tuple[Sample, Summary],
    columns: tuple[Column, ...],
) -> list[Finding]:
    """What is wrong between D_o and D_s."""
    sample, summary = other
    return [
        *_shared_rows(optimal[1], summary),
        *_scales(optimal[0].observations, sample.observations, columns),
        *_amount(optimal[1], columns),
        *_coverage(optimal[0], sample),
    ]


def _shared_rows(optimal: Summary, other: Summary) -> list[Finding]:
    shared = int(np.isin(other.hashes, optimal.hashes).sum())
    if not shared:
        return []
    return [
        Finding(
            "shared-rows",
            "warning",
            f"{shared} of {len(other.hashes)} rows stand in the optimal demonstrations too",
            "an evaluation on them is no test; leave them out of one of the two",
            numbers={"rows": shared},
        )
    ]


def _scales(optimal: Array, other: Array, columns: tuple[Column, ...]) -> list[Finding]:
    if len(optimal) < 2 or len(other) < 2:
        return []
    spread_o, spread_s = spread(optimal), spread(other)
    offset = np.abs(optimal.mean(axis=0) - other.mean(axis=0))
    both = (spread_o > 0) & (spread_s > 0)
    ratio = np.divide(spread_s, spread_o, out=np.ones_like(spread_s), where=both)
    apart = both & (offset > SCALE_RATIO * np.maximum(spread_o, spread_s))
    odd = np.flatnonzero(apart | (both & ((ratio > SCALE_RATIO) | (ratio < 1 / SCALE_RATIO))))
    if len(odd) == 0:
        return []
    enough = len(optimal) >= FEW_ROWS  # a few rows spread little: no guess then
    names = [
        f"{columns[i].name} (x{ratio[i]:.3g}{_unit(ratio[i]) if enough else ''})"
        for i in odd.tolist()
    ]
    return [
        Finding(
            "scale-mismatch",
            "warning",
            f"the spread or place of {len(odd)} observation columns differs between the files: "
            f"{listed(names)}",
            "check units and the order of columns; few optimal rows also spread little",
            numbers={"columns": [columns[i].name for i in odd.tolist()],
                     "ratios": [float(f"{ratio[i]:.4g}") for i in odd.tolist()]},
        )
    ]  # fmt: skip


def _unit(ratio: float) -> str:
    for factor, meaning in _UNITS.items():
        if 0.8 < ratio / factor < 1.25 or 0.8 < ratio * factor < 1.25:
            return f", perhaps {meaning}"
    return ""


def _amount(optimal: Summary, columns: tuple[Column, ...]) -> list[Finding]:
    rows, wanted = len(optimal.hashes), max(FEW_ROWS, 2 * len(columns))
    if rows >= wanted:
        return []
    return [
        Finding(
            "few-optimal",
            "warning",
            f"{rows} optimal rows for {len(columns)} columns: too few to say what is normal",
            f"record more; {wanted} rows is the least that has been seen to work, where they show "
            "what the others do",
            numbers={"rows": rows, "wanted": wanted},
        )
    ]


def _coverage(optimal: Sample, other: Sample) -> list[Finding]:
    ratio = distance_ratio(optimal.observations, other.observations)
    if ratio is None or ratio <= FAR:
        return []
    return [
        Finding(
            "low-coverage",
            "warning",
            f"the states lie {ratio:.1f} times as far from the optimal demonstrations as those lie "
            "from each other",
            "there a purifier can only guess: weigh the purified rows (elute train isw-bc --purify "
            "diffusion), or add optimal demonstrations from such states",
            numbers={"distance_ratio": ratio},
        )
    ]


def distance_ratio(good: Array, rest: Array) -> float | None:
    """How far states typically lie from good ones, in units of how far those lie from each other.

    None where that cannot be said: too few good ones, or all of them the same.
    """
    if len(good) < ENOUGH_ROWS or len(rest) == 0:
        return None
    scale = spread(np.concatenate([good, rest]))
    varies = scale > 0
    good, rest = good[:, varies] / scale[varies], rest[:, varies] / scale[varies]
    near = _own_distances(good) if varies.any() else np.zeros(1)
    if not near.any():
        return None
    rows = np.linspace(0, len(rest) - 1, min(len(rest), COVERAGE_ROWS)).astype(int)
    distances, _ = cKDTree(good).query(rest[rows])
    return float(np.median(distances) / np.median(near[near > 0]))


def _own_distances(rows: Array) -> Array:
    """Distance of each row to the nearest one that is not almost the same moment."""
    subset = np.linspace(0, len(rows) - 1, min(len(rows), COVERAGE_ROWS)).astype(int)
    tree = cKDTree(rows)
    distances, neighbours = tree.query(rows[subset], k=2 * NEIGHBOURHOOD + 2)
    apart = np.abs(neighbours - subset[:, None]) > NEIGHBOURHOOD
    nearest: Array = np.where(apart, distances, np.inf).min(axis=1)
    return nearest
