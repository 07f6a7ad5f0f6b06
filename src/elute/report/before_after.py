"""One picture of what purification did: columns over time, how far rows moved, how near D_o."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from elute.episodes import Array
from elute.report.figures import save_figure
from elute.types import Demonstrations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SERIES_ROWS = 100
SERIES = 4
BINS = 30
OPTIMAL_RANGE = (0.05, 0.95)
BEFORE, AFTER, OPTIMAL = "#d55e00", "#0072b2", "#009e73"
"""Told apart by the colour-blind too."""


@dataclass(frozen=True, eq=False)
class BeforeAfter:
    """What is drawn."""

    title: str
    before: Demonstrations
    """The first rows of the file; `SERIES_ROWS` of them are shown."""
    after: Demonstrations
    optimal: Demonstrations
    scale: Array
    """Standard deviation of each column, so that columns can be compared."""
    moved: Array
    """How far each row of a sample moved, in standard deviations per column."""
    distances: tuple[Array, Array]
    """Of each row of the sample to the nearest optimal pair, before and after, likewise."""


def draw_before_after(shown: BeforeAfter, path: Path) -> None:
    """Write the figure; a failure leaves nothing behind."""
    import matplotlib as mpl  # noqa: PLC0415 (an extra; only figures need it)
    from matplotlib.figure import Figure  # noqa: PLC0415

    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
             "svg.hashsalt": "elute"}  # fmt: skip
    with mpl.rc_context(style):
        chosen = most_moved(shown)
        figure = Figure(figsize=(11, 1.2 + 1.45 * max(3, len(chosen))), layout="constrained")
        figure.suptitle(shown.title, x=0.01, ha="left", fontweight="bold")
        left, right = figure.subfigures(1, 2, width_ratios=(2.1, 1))
        if chosen:
            axes = left.subplots(len(chosen), 1, sharex=True, squeeze=False)[:, 0]
            for axis, column in zip(axes, chosen, strict=True):
                _series(axis, shown, column)
            axes[-1].set_xlabel("row")
            axes[0].legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
        else:
            left.text(0.5, 0.5, "no column was moved", ha="center", va="center")
        top, bottom = right.subplots(2, 1)
        _moved(top, shown.moved)
        _distances(bottom, shown.distances)
        save_figure(figure, path)


def most_moved(shown: BeforeAfter) -> list[int]:
    """The columns that moved most, in their own standard deviations."""
    before, after = shown.before.pairs, shown.after.pairs
    return [column for column, _ in moved_columns(before, after, shown.scale, SERIES)]


def moved_columns(before: Array, after: Array, scale: Array, most: int) -> list[tuple[int, float]]:
    """Columns that moved, and how far in the mean in units of their scale; the most moved first."""
    moved = np.abs(after - before).mean(axis=0) / scale
    order = np.argsort(-moved, kind="stable")[:most]
    return [(column, float(moved[column])) for column in order.tolist() if moved[column] > 0]


def _series(axis: "Axes", shown: BeforeAfter, column: int) -> None:
    names = (*shown.before.observation_columns, *shown.before.action_columns)
    before, after = (demos.pairs[:SERIES_ROWS, column] for demos in (shown.before, shown.after))
    low, high = np.quantile(shown.optimal.pairs[:, column], OPTIMAL_RANGE)
    axis.axhspan(low, high, color=OPTIMAL, alpha=0.13, lw=0, label="optimal, 5 % to 95 %")
    for stop in shown.before.episodes.stops[:-1]:
        if stop < len(before):
            axis.axvline(stop - 0.5, color="0.6", lw=0.8, ls=":")
    axis.plot(before, color=BEFORE, lw=0.9, alpha=0.75, label="before")
    axis.plot(after, color=AFTER, lw=1.5, label="after")
    axis.set_ylabel(names[column].name)
    axis.margins(x=0.01)


def _moved(axis: "Axes", moved: Array) -> None:
    middle = float(np.median(moved))
    axis.hist(moved, bins=BINS, color=AFTER, alpha=0.8)
    axis.axvline(middle, color="0.2", lw=1, ls="--", label=f"median {middle:.3g}")
    _described(axis, "how far rows moved")


def _distances(axis: "Axes", distances: tuple[Array, Array]) -> None:
    edges = np.histogram_bin_edges(np.concatenate(distances), bins=BINS)
    for name, colour, values in zip(("before", "after"), (BEFORE, AFTER), distances, strict=True):
        label = f"{name}, mean {values.mean():.3g}"
        axis.hist(values, bins=edges, color=colour, alpha=0.2)
        axis.hist(values, bins=edges, color=colour, lw=1.4, histtype="step", label=label)
    _described(axis, "distance to the nearest optimal pair")


def _described(axis: "Axes", title: str) -> None:
    axis.margins(y=0.25)  # room for the legend
    axis.set_title(title, loc="left", fontsize=9)
    axis.set_xlabel("standard deviations per column")
    axis.set_ylabel("rows")
    axis.legend(frameon=False, loc="upper right")
