"""A whole table in a few lines: each method over all sets of demonstrations.

    for grid in summary_grids(summaries(cells(rows, "1"))):
        print(markdown(grid))

Scores are normalised (0 random actions, 1 the expert), so that tasks can be put together. A method
is compared with the baseline on the sets that both were run on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elute.demos.output import output
from elute.report.groups import Group
from elute.report.numbers import with_interval
from elute.report.statistics import (
    Interval,
    bootstrap_interval,
    improvement_probabilities,
    interquartile_mean,
    interquartile_means,
    probability_of_improvement,
)
from elute.report.tables import BEST, SWEEP, Grid

SUMMARIES = {
    "summary": "1",
    **{f"{table}-summary": table for table in ("noise", "filters", "mixed", SWEEP)},
}
"""What each is of."""
BASELINE, UNPURIFIED = "bc-all", "dp-bc @0"
"""What methods are compared with; in a sweep the step that changes nothing."""
NEAR = 0.85
"""Of the way from random actions to the expert."""


@dataclass(frozen=True)
class Summary:
    """One method over all sets of one regime."""

    regime: str
    method: str
    sets: int
    seeds: tuple[int, int]
    """Fewest and most."""
    baseline: str
    middle: float
    """Interquartile mean of normalised scores."""
    interval: Interval | None
    beats: float | None
    """How probable it is that a run of it is better than one of the baseline."""
    beats_interval: Interval | None
    above: tuple[int, int] | None
    """On how many sets its mean is above the baseline's, and of how many."""
    near: int
    """Sets on which it comes near the expert."""


def summaries(made: Sequence[Group]) -> list[Summary]:
    """Of every regime and method that has normalised scores."""
    scored = [group for group in made if group.normalised]
    swept = any(group.name == UNPURIFIED for group in scored)
    baseline = UNPURIFIED if swept else BASELINE
    return [
        _summary(regime, name, baseline, [g for g in scored if g.place.regime == regime])
        for regime in dict.fromkeys(group.place.regime for group in scored)
        for name in dict.fromkeys(g.name for g in scored if g.place.regime == regime)
    ]


def _summary(regime: str, name: str, baseline: str, groups: Sequence[Group]) -> Summary:
    mine = {group.place: group.normalised for group in groups if group.name == name}
    base = {group.place: group.normalised for group in groups if group.name == baseline}
    both = [place for place in mine if place in base and name != baseline]
    ours, theirs = [mine[place] for place in both], [base[place] for place in both]
    scores = list(mine.values())
    sizes = [len(seeds) for seeds in scores]
    better = [bool(np.mean(a) > np.mean(b)) for a, b in zip(ours, theirs, strict=True)]
    return Summary(
        regime=regime,
        method=name,
        sets=len(mine),
        seeds=(min(sizes), max(sizes)),
        baseline=baseline,
        middle=interquartile_mean(scores),
        interval=bootstrap_interval(interquartile_means, scores),
        beats=probability_of_improvement(ours, theirs) if both else None,
        beats_interval=(
            bootstrap_interval(improvement_probabilities, ours, theirs) if both else None
        ),
        above=(sum(better), len(both)) if both else None,
        near=sum(bool(np.mean(seeds) >= NEAR) for seeds in scores),
    )


def summary_json(made: Sequence[Summary]) -> dict[str, Any]:
    """For machines."""
    return {
        "methods": [
            {
                "regime": one.regime,
                "method": one.method,
                "sets": one.sets,
                "seeds": list(one.seeds),
                "interquartile_mean": one.middle,
                "interval": one.interval,
                "baseline": one.baseline,
                "beats_baseline": one.beats,
                "beats_baseline_interval": one.beats_interval,
                "above_baseline": one.above,
                "near_expert": one.near,
            }
            for one in made
        ]
    }


def summary_grids(made: Sequence[Summary]) -> list[Grid]:
    """One for each regime."""
    return [
        _grid(regime, [one for one in made if one.regime == regime])
        for regime in dict.fromkeys(one.regime for one in made)
    ]


def _grid(regime: str, made: Sequence[Summary]) -> Grid:
    rows = tuple(_row(one) for one in made)
    baseline = made[0].baseline
    columns = (
        *("method", "sets", "seeds", "interquartile mean"),
        *(f"beats {baseline}", "above", "near expert"),
    )
    notes = [
        f"above: sets whose mean is above that of {baseline}; near expert: sets with at least "
        f"{NEAR:.0%} of the way from random actions to the expert"
    ]
    if any(one.method.endswith("@best") for one in made):
        notes.append(BEST)
    title = f"{regime}: normalised scores (0 random actions, 1 expert) over all sets"
    return Grid(title, columns, rows, ((False,) * len(columns),) * len(rows), tuple(notes))


def draw_summary(made: Sequence[Group], path: Path) -> None:
    """A panel for each regime: sets as dots, coloured by task, and the interquartile mean."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    whole = summaries(made)
    regimes = list(dict.fromkeys(one.regime for one in whole))
    rows = max(len([one for one in whole if one.regime == regime]) for regime in regimes)
    figure = Figure(figsize=(5 * len(regimes), 1 + 0.4 * rows), layout="constrained")
    axes = figure.subplots(1, len(regimes), squeeze=False)[0]
    for axis, regime in zip(axes, regimes, strict=True):
        _draw(
            axis,
            [one for one in whole if one.regime == regime],
            [group for group in made if group.place.regime == regime and group.normalised],
        )
        axis.set_title(regime)
        axis.set_xlabel("0 random actions, 1 expert")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    with output(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lstrip(".") or "png", dpi=120)


def _draw(axis: Any, whole: Sequence[Summary], groups: Sequence[Group]) -> None:  # noqa: ANN401
    """One regime; the methods from top to bottom."""
    names = [one.method for one in whole]
    for i, task in enumerate(dict.fromkeys(group.place.task for group in groups)):
        mine = [group for group in groups if group.place.task == task]
        x = [float(np.mean(group.normalised)) for group in mine]
        y = [names.index(group.name) + 0.12 * (i - 1.5) for group in mine]
        axis.plot(x, y, ".", color=f"C{i}", alpha=0.6, label=task)
    for row, one in enumerate(whole):
        axis.plot([one.middle] * 2, [row - 0.35, row + 0.35], color="black", linewidth=2)
        if one.interval is not None:
            axis.plot(one.interval, [row, row], color="black", linewidth=1)
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.axvline(1.0, color="grey", linestyle="--")
    axis.grid(alpha=0.3)


def _row(one: Summary) -> tuple[str, ...]:
    low, high = one.seeds
    beats = "-" if one.beats is None else with_interval(one.beats, one.beats_interval)
    above = "-" if one.above is None else f"{one.above[0]} of {one.above[1]}"
    return (
        one.method,
        str(one.sets),
        str(low) if low == high else f"{low} to {high}",
        with_interval(one.middle, one.interval),
        beats,
        above,
        f"{one.near} of {one.sets}",
    )
