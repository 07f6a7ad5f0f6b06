"""Tables of the robot benchmark: how often policies succeed, with the paper's numbers beside.

    for grid in success_grids(success_cells(rows, "robosuite"), "robosuite"):
        print(markdown(grid))

A share of successes has two intervals, and they answer two questions:

    seeds       shares of training seeds, drawn anew (bootstrap): would others give the same?
    episodes    all episodes of all seeds as one sample (Wilson): were they enough?

The first is the one to compare methods by. Policies of two seeds differ by far more than chance
among episodes, and episodes that begin in the same recorded state are the same episode twice.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elute.report.groups import Group, Row, grouped
from elute.report.paper import Published, find
from elute.report.statistics import (
    Estimate,
    Interval,
    bootstrap_interval,
    grand_means,
    improvement_probabilities,
    probability_of_improvement,
    winners,
)
from elute.report.statistics import wilson as wilson_interval
from elute.report.tables import Grid

TASK = "sawyer-reach"
SETS: Mapping[str, tuple[str, ...]] = {
    "robosuite": ("supplementary",),
    "robosuite-steps": ("l1", "l2"),
}
"""What each table is about."""
SOURCES = {
    "roboturk": "ten human demonstrations",
    "operator": "ten synthetic demonstrations (the paper's numbers are of the human ones)",
}
METHODS = ("bc-all", "bcnd", "dwbc", "dp-bc")
READINGS = {"nut_centre": "nut centre", "at_end": "at end", "nut_peg": "nut to peg"}
BASELINE = "bc-all"
PAPER_TARGET = "joint"


def success_cells(rows: Sequence[Row], table: str) -> list[Group]:
    """All cells of a table that have lines, human data first."""
    found = [
        group
        for group in grouped([row for row in rows if row["task"] == TASK])
        if _source(group) in SOURCES
        and group.place.demos.partition("/")[2] in SETS[table]
        and group.method in METHODS
        and group.success
    ]
    return sorted(found, key=_order)


def _source(group: Group) -> str:
    return group.place.demos.partition("/")[0]


def _order(group: Group) -> tuple[Any, ...]:
    step = int(group.step) if group.step.isdecimal() else 1000
    method = METHODS.index(group.method)
    return list(SOURCES).index(_source(group)), group.place.demos, method, step, group.target


def share(group: Group) -> Estimate:
    """Of successes, with the interval of seeds drawn anew."""
    values = np.array(group.success)
    seeds = len(values)
    stderr = float(values.std(ddof=1) / np.sqrt(seeds)) if seeds > 1 else None
    drawn = bootstrap_interval(grand_means, [group.success])
    return Estimate(float(values.mean()), stderr, drawn, seeds)


def episodes_interval(group: Group) -> Interval:
    """Wilson's, of all episodes."""
    return wilson_interval(round(float(np.mean(group.success)) * group.episodes), group.episodes)


def beats(group: Group, other: Group) -> tuple[float, Interval | None]:
    """How probable it is that a seed of the one succeeds more often than a seed of the other."""
    ours, theirs = [group.success], [other.success]
    drawn = bootstrap_interval(improvement_probabilities, ours, theirs)
    return probability_of_improvement(ours, theirs), drawn


def in_paper(group: Group, table: str) -> Published | None:
    """What the paper prints; its steps are of both state and action."""
    if group.step and group.target != PAPER_TARGET:
        return None
    demos = f"roboturk/{group.place.demos.partition('/')[2]}"
    step = int(group.step) if group.step.isdecimal() else None
    return find(table, TASK, demos, group.method, step)


def success_json(made: Sequence[Group], table: str) -> dict[str, Any]:
    """For machines."""
    return {"cells": [_cell(group, made, table) for group in made]}


def _cell(group: Group, made: Sequence[Group], table: str) -> dict[str, Any]:
    ours, other, paper = share(group), _baseline(group, made), in_paper(group, table)
    better = None if other is None else beats(group, other)
    return {
        "task": group.place.task,
        "demos": group.place.demos,
        "method": group.method,
        "target": group.target or None,
        "reverse_step": group.step or None,
        "chosen": list(group.chosen),
        "success": ours.mean,
        "stderr": ours.stderr,
        "seeds_interval": ours.interval,
        "episodes_interval": episodes_interval(group),
        "seeds": ours.seeds,
        "episodes": group.episodes,
        f"beats_{BASELINE}": None if better is None else better[0],
        f"beats_{BASELINE}_interval": None if better is None else better[1],
        "readings": {name: float(np.mean(seen)) for name, seen in group.readings.items()},
        "paper": None if paper is None else paper.mean,
    }


def _baseline(group: Group, made: Sequence[Group]) -> Group | None:
    if group.method == BASELINE:
        return None
    return next((g for g in made if (g.place, g.method) == (group.place, BASELINE)), None)


def success_grids(made: Sequence[Group], table: str) -> list[Grid]:
    """One for each source of demonstrations."""
    return [
        _grid(source, [group for group in made if _source(group) == source], made, table)
        for source in SOURCES
        if any(_source(group) == source for group in made)
    ]


def _grid(source: str, shown: Sequence[Group], made: Sequence[Group], table: str) -> Grid:
    notes: dict[str, str] = {}
    best = _best(shown)
    rows = [_row(group, made, table, notes) for group in shown]
    bold = [tuple(k == 2 and group in best for k in range(len(COLUMNS))) for group in shown]
    seeds = sorted({len(group.success) for group in shown})
    each = shown[0].episodes // len(shown[0].success)
    told = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    title = f"{SOURCES[source]}: success over {told} seeds of {each} episodes, 95 % intervals"
    return Grid(title, COLUMNS, tuple(rows), tuple(bold), tuple(notes.values()))


COLUMNS = (
    *("demos", "method", "success", "seeds", "episodes", f"beats {BASELINE}"),
    *READINGS.values(),
    "paper",
)


def _row(group: Group, made: Sequence[Group], table: str, notes: dict[str, str]) -> tuple[str, ...]:
    ours, other, paper = share(group), _baseline(group, made), in_paper(group, table)
    told = "-" if other is None else _beaten(*beats(group, other))
    readings = (group.readings.get(name) for name in READINGS)
    return (
        group.place.demos,
        _name(group),
        f"{ours.mean:.2f}",
        _between(ours.interval),
        _between(episodes_interval(group)),
        told,
        *("-" if seen is None else f"{np.mean(seen):.2f}" for seen in readings),
        "-" if paper is None else _printed(paper, notes),
    )


def _name(group: Group) -> str:
    if not group.step:
        return group.method
    step = "/".join(map(str, group.chosen)) if group.step == "auto" else group.step
    return f"{group.method} {group.target} @{step}{' (auto)' if group.step == 'auto' else ''}"


def _between(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.low:.2f} to {interval.high:.2f}"


def _beaten(probability: float, interval: Interval | None) -> str:
    return f"{probability:.2f}" + ("" if interval is None else f" ({_between(interval)})")


def _printed(paper: Published, notes: dict[str, str]) -> str:
    if not paper.note:
        return f"{paper.mean:.2f}"
    mark = notes.setdefault(paper.note, f"({len(notes) + 1}) {paper.note}").split(")")[0]
    return f"{paper.mean:.2f} {mark})"


def _best(shown: Sequence[Group]) -> list[Group]:
    """On each set, all that tie with the best; nobody where some have a single seed."""
    best = []
    for place in dict.fromkeys(group.place for group in shown):
        line = {str(k): group for k, group in enumerate(shown) if group.place == place}
        estimates = {k: share(group) for k, group in line.items()}
        if len(line) > 1 and all(e.interval is not None for e in estimates.values()):
            best += [line[k] for k in winners(estimates)]
    return best
