"""A whole table in a few lines: each method over all sets of demonstrations.

    for grid in summary_grids(summaries(summary_cells(rows, "1"))):  # or headline_grids
        print(markdown(grid))

Scores are normalised (0 random actions, 1 the expert), so that tasks can be put together. Every set
counts alike: a method is told about by the seeds that all its sets have. It is compared with a
baseline on the sets and with the seeds that both have.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from elute.report.curves import LATE, late_rows
from elute.report.figures import legend_below, save_figure
from elute.report.groups import Group, Place, Row, best_fixed, grouped, tuned_fixed, with_oracles
from elute.report.numbers import range_of, with_interval
from elute.report.statistics import (
    Interval,
    bootstrap_interval,
    grand_means,
    improvement_probabilities,
    interquartile_mean,
    interquartile_means,
    probability_of_improvement,
    student,
)
from elute.report.tables import BEST, METHODS, SWEEP, Grid, cells
from elute.uncertainty import stderr

HEADLINE, ONLINE = "headline", "online"
SUMMARIES = {
    HEADLINE: "1",
    "summary": "1",
    **{f"{table}-summary": table for table in ("noise", "filters", "mixed", SWEEP, ONLINE)},
}
"""What each is of."""
BASELINES, UNPURIFIED = (("bc-all", ""), ("bc-opt", ""), ("gail", "")), ("dp-bc", "0")
"""Method and step that others are compared with; in a sweep the step that changes nothing."""
NEAR = 0.85
"""Of the way from random actions to the expert."""
MEAN = "mean: over the sets"
NEAR_EXPERT = (
    f"near expert: sets whose mean is at least {NEAR:.0%} of the way from random actions to the "
    "expert"
)
MIDDLE = (
    "interquartile mean: of all runs but the lowest and the highest quarter; in brackets: 95 %, by "
    "drawing seeds anew, which is too narrow where they are few"
)
BEATS = (
    "beats: how probable it is that one run is better than one of the other method on the same set "
    "(all: every run is; none: no run is)"
)
ABOVE = "above: sets whose mean is higher"
REMARKS = {
    "bc-opt": "bc-opt sees no other rows than optimal ones: its sets of one task are one policy, "
    "so a ± of it or beside it is too small",
    "best": f"{BEST}, so nothing is compared with it",
    "tuned": "@tuned: the fixed step that earned most with the other seeds, which is what testing "
    "in the environment finds; its seeds are not quite independent",
    **dict.fromkeys(
        METHODS[ONLINE], f"a run of a method that plays has the mean of its last {LATE} evaluations"
    ),
}
"""Of a method, or of a step."""
ROWS = {
    "bc-opt": "optimal rows",
    "bc-all": "all, alike",
    "bcnd": "all, weighed",
    "dwbc": "all, weighed",
    "isw-bc": "all, weighed",
    "demodice": "all, weighed",
    "smodice": "all, weighed",
    "dbc": "all, alike",
    "diffusion-bc": "all, alike",
    "dp-bc": "purified",
    "dp-isw-bc": "purified, weighed",
}
"""What a method of Table 1 makes of the rows it is given."""
_ORDER = list(dict.fromkeys(method for methods in METHODS.values() for method in methods))
Scores = Mapping[Place, Mapping[int, float]]
"""Of each set and seed."""


class Compared(NamedTuple):
    """A method and a baseline, on the sets of both."""

    ahead: float
    """By how much its mean is above the baseline's, on average over the sets."""
    ahead_stderr: float | None
    """Over the sets."""
    beats: float
    """How probable it is that a run of it is better than one of the baseline."""
    beats_interval: Interval | None
    above: int
    """On how many sets its mean is above the baseline's."""
    sets: int


@dataclass(frozen=True)
class Summary:
    """One method over all sets of one regime."""

    regime: str
    method: str
    """As it is called, with its step and settings where they matter."""
    kind: tuple[str, str]
    """Method and step alone."""
    sets: int
    tasks: int
    seeds: tuple[int, int]
    """Fewest and most."""
    mean: float
    """Of normalised scores, over the sets."""
    mean_interval: Interval | None
    """Over seeds."""
    middle: float
    """Interquartile mean."""
    interval: Interval | None
    near: int
    """Sets on which it comes near the expert."""
    compared: Mapping[str, Compared] = field(default_factory=dict)
    """With each baseline but itself."""


def summary_cells(rows: Sequence[Row], table: str) -> list[Group]:
    """All that a summary of the table is of."""
    if table == ONLINE:
        return with_oracles(grouped(late_rows(rows)), best_fixed, tuned_fixed)
    return cells(rows, table, best_fixed, tuned_fixed)


def summaries(made: Sequence[Group]) -> list[Summary]:
    """Of every regime and method that has normalised scores."""
    made = scored(made)
    swept = any(_kind(group) == UNPURIFIED for group in made)
    baselines = (UNPURIFIED,) if swept else BASELINES
    return [
        _summary(regime, name, baselines, [g for g in made if g.place.regime == regime])
        for regime in dict.fromkeys(group.place.regime for group in made)
        for name in _names(g for g in made if g.place.regime == regime)
    ]


def scored(made: Sequence[Group]) -> list[Group]:
    """Those whose every seed has a normalised score."""
    return [group for group in made if len(group.normalised) == len(group.seeds)]


def _kind(group: Group) -> tuple[str, str]:
    return group.method, group.step


def _names(groups: Iterable[Group]) -> list[str]:
    """In the order of the tables."""
    last = len(_ORDER)
    known = sorted(groups, key=lambda g: _ORDER.index(g.method) if g.method in _ORDER else last)
    return list(dict.fromkeys(group.name for group in known))


def _summary(
    regime: str, name: str, baselines: Sequence[tuple[str, str]], groups: Sequence[Group]
) -> Summary:
    mine, first = _scores(groups, name), next(g for g in groups if g.name == name)
    hindsight = first.step == "best"
    strata = _strata(mine, _common(mine))
    sizes = [len(seeds) for seeds in strata]
    return Summary(
        regime=regime,
        method=name,
        kind=_kind(first),
        sets=len(mine),
        tasks=len({place.task for place in mine}),
        seeds=(min(sizes), max(sizes)),
        mean=float(np.mean([np.mean(seeds) for seeds in strata])),
        mean_interval=None if hindsight else bootstrap_interval(grand_means, strata),
        middle=interquartile_mean(strata),
        interval=None if hindsight else bootstrap_interval(interquartile_means, strata),
        near=sum(bool(np.mean(seeds) >= NEAR) for seeds in strata),
        compared={
            _called(baseline): found
            for baseline in baselines
            if not hindsight
            and _kind(first) != baseline
            and (found := _compared(mine, _scores(groups, _beside(first, baseline, groups))))
        },
    )


def _called(baseline: tuple[str, str]) -> str:
    method, step = baseline
    return f"{method} @{step}" if step else method


def _beside(group: Group, baseline: tuple[str, str], groups: Sequence[Group]) -> str:
    """The name of the baseline; if there are several, of the same settings, or none."""
    others = [other for other in groups if _kind(other) == baseline]
    for same in (
        [other for other in others if other.variant == group.variant],
        [other for other in others if other.learner == group.learner],
        others,
    ):
        names = {other.name for other in same}
        if len(names) == 1:
            return names.pop()
    return ""


def _scores(groups: Sequence[Group], name: str) -> dict[Place, dict[int, float]]:
    return {
        group.place: dict(zip(group.seeds, group.normalised, strict=True))
        for group in groups
        if group.name == name
    }


def _compared(mine: Scores, base: Scores) -> Compared | None:
    both = [place for place in mine if place in base]
    if not both:
        return None
    ours, theirs = ({place: scores[place] for place in both} for scores in (mine, base))
    common = _common(ours) & _common(theirs)
    a, b = _strata(ours, common), _strata(theirs, common)
    ahead = [float(np.mean(x) - np.mean(y)) for x, y in zip(a, b, strict=True)]
    return Compared(
        ahead=float(np.mean(ahead)),
        ahead_stderr=stderr(ahead),
        beats=probability_of_improvement(a, b),
        beats_interval=bootstrap_interval(improvement_probabilities, a, b),
        above=sum(by > 0 for by in ahead),
        sets=len(both),
    )


def _common(scores: Scores) -> set[int]:
    return set.intersection(*(set(seeds) for seeds in scores.values()))


def _strata(scores: Scores, common: set[int]) -> list[list[float]]:
    """Of each set the scores of these seeds, or all it has where none is common."""
    return [
        [score for seed, score in seeds.items() if seed in common or not common]
        for seeds in scores.values()
    ]


def summary_json(made: Sequence[Summary]) -> dict[str, Any]:
    """For machines."""
    return {
        "methods": [
            {
                "regime": one.regime,
                "method": one.method,
                "sets": one.sets,
                "seeds": list(one.seeds),
                "mean": one.mean,
                "mean_interval": one.mean_interval,
                "interquartile_mean": one.middle,
                "interval": one.interval,
                "near_expert": one.near,
                "compared": {name: found._asdict() for name, found in one.compared.items()},
            }
            for one in made
        ]
    }


def summary_grids(made: Sequence[Summary]) -> list[Grid]:
    """One for each regime."""
    return [_grid(regime, of_one) for regime, of_one in _regimes(made)]


def headline(made: Sequence[Summary]) -> list[Summary]:
    """Of each regime the highest mean first, without what nobody can have."""
    regimes = list(dict.fromkeys(one.regime for one in made))
    known = (one for one in made if one.kind[1] != "best")
    return sorted(known, key=lambda one: (regimes.index(one.regime), -one.mean))


def headline_grids(made: Sequence[Summary]) -> list[Grid]:
    """What to expect, in few columns: one for each regime."""
    return [_headline(regime, of_one) for regime, of_one in _regimes(made)]


def _regimes(made: Sequence[Summary]) -> list[tuple[str, list[Summary]]]:
    regimes = dict.fromkeys(one.regime for one in made)
    return [(regime, [one for one in made if one.regime == regime]) for regime in regimes]


def _headline(regime: str, made: Sequence[Summary]) -> Grid:
    baselines = _baselines(made)
    columns = (
        *("method", "learns from", "mean", "near expert"),
        *(f"ahead of {name}" for name in baselines),
    )
    rows = tuple(
        (
            one.method,
            ROWS.get(one.kind[0], "") + (" (tested)" if one.kind[1] == "tuned" else ""),
            f"{one.mean:.2f}",
            f"{one.near} of {one.sets}",
            *(_texts(one.compared.get(name))[0] for name in baselines),
        )
        for one in made
    )
    seeds = range_of([count for one in made for count in one.seeds])
    told = [MEAN, NEAR_EXPERT, *([_ahead(made)] if baselines else [])]
    return _laid_out(
        f"regime {_title(regime)}, seeds: {seeds}", columns, rows, told, made, labels=2
    )


def _baselines(made: Sequence[Summary]) -> list[str]:
    return list(dict.fromkeys(name for one in made for name in one.compared))


def _ahead(made: Sequence[Summary]) -> str:
    several = [found.sets for one in made for found in one.compared.values() if found.sets > 1]
    told = "ahead of: mean difference ± its standard error over the sets"
    if not several:
        return told
    return f"{told}, which is no interval: {student(min(several)):.1f} times as much is"


def _laid_out(
    title: str,
    columns: tuple[str, ...],
    rows: tuple[tuple[str, ...], ...],
    told: Sequence[str],
    made: Sequence[Summary],
    labels: int,
) -> Grid:
    """With what is told of columns and of methods below."""
    keys = (key for one in made for key in one.kind if key != "bc-opt" or one.sets > one.tasks)
    remarks = dict.fromkeys(REMARKS[key] for key in keys if key in REMARKS)
    bold = ((False,) * len(columns),) * len(rows)
    return Grid(title, columns, rows, bold, ("; ".join(told), *remarks), labels)


def _title(regime: str) -> str:
    expert = "elute's expert" if "real files" in regime else "expert"  # theirs cannot be asked
    return f"{regime}: normalised scores (0 random actions, 1 {expert})"


def _grid(regime: str, made: Sequence[Summary]) -> Grid:
    baselines = _baselines(made)
    columns = (
        *("method", "sets", "seeds", "mean", "interquartile mean", "near expert"),
        *(f"{how} {name}" for name in baselines for how in ("ahead of", "beats", "above")),
    )
    rows = tuple(_row(one, baselines) for one in made)
    told = [
        MEAN,
        MIDDLE,
        NEAR_EXPERT,
        *([_ahead(made), BEATS, ABOVE] if baselines else []),
    ]
    return _laid_out(f"{_title(regime)} over all sets", columns, rows, told, made, labels=1)


def _row(one: Summary, baselines: Sequence[str]) -> tuple[str, ...]:
    texts = [_texts(one.compared.get(name)) for name in baselines]
    return (
        one.method,
        str(one.sets),
        range_of(one.seeds),
        f"{one.mean:.2f}",
        with_interval(one.middle, one.interval),
        f"{one.near} of {one.sets}",
        *(text for of_one in texts for text in of_one),
    )


def _texts(found: Compared | None) -> tuple[str, str, str]:
    if found is None:
        return "-", "-", "-"
    error = "" if found.ahead_stderr is None else f" ± {found.ahead_stderr:.2f}"
    return (
        f"{found.ahead:+z.2f}{error}",
        _certain(found.beats) or with_interval(found.beats, found.beats_interval),
        f"{found.above} of {found.sets}",
    )


def _certain(beats: float) -> str:
    """Where no run of one method is level with, or across, one of the other."""
    return {1.0: "1.00 (all)", 0.0: "0.00 (none)"}.get(beats, "")


def draw_summary(made: Sequence[Group], path: Path) -> None:
    """A panel for each regime: sets as dots, coloured by task, and what all come to."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    whole = headline(summaries(made))
    regimes = list(dict.fromkeys(one.regime for one in whole))
    tasks = list(dict.fromkeys(group.place.task for group in made))
    rows = max(len([one for one in whole if one.regime == regime]) for regime in regimes)
    figure = Figure(figsize=(max(7, 5 * len(regimes)), 1.5 + 0.4 * rows), layout="constrained")
    axes = figure.subplots(1, len(regimes), squeeze=False)[0]
    for axis, regime in zip(axes, regimes, strict=True):
        _draw(
            axis,
            [one for one in whole if one.regime == regime],
            [group for group in made if group.place.regime == regime],
            tasks,
        )
        axis.set_title(regime)
        axis.set_xlabel("normalised score: 0 random actions, 1 expert")
    legend_below(figure, axes)
    save_figure(figure, path)


def _draw(axis: Any, whole: Sequence[Summary], groups: Sequence[Group], tasks: list[str]) -> None:  # noqa: ANN401
    """One regime; the methods from top to bottom."""
    names = [one.method for one in whole]
    for i, task in enumerate(tasks):
        mine = [g for g in groups if g.place.task == task and g.name in names]
        if not mine:
            continue
        x = [float(np.mean(group.normalised)) for group in mine]
        y = [names.index(group.name) + 0.12 * (i - (len(tasks) - 1) / 2) for group in mine]
        axis.plot(x, y, ".", color=f"C{i}", alpha=0.6, label=task)
    for row, one in enumerate(whole):
        bar = [row - 0.35, row + 0.35]
        axis.plot([one.mean] * 2, bar, color="black", linewidth=2, label="mean over the sets")
        if one.mean_interval is not None:
            ends = one.mean_interval
            axis.plot(
                ends, [row, row], color="black", linewidth=1, label="95 % interval over seeds"
            )
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.axvline(1.0, color="grey", linestyle="--", label="the expert")
    axis.grid(alpha=0.3)
