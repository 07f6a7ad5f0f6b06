"""Tables of the robot benchmark: how often policies succeed, with the paper's numbers beside.

    for grid in success_grids(success_cells(rows, "robosuite"), "robosuite"):
        print(markdown(grid))

A share of successes has two intervals, and they answer two questions:

    seeds       shares of training seeds (Student's): would others give the same?
    episodes    all episodes of all seeds as one sample (Wilson): were they enough?

The first is the one to compare methods by. Policies of two seeds differ by far more than chance
among episodes, and episodes that begin in the same recorded state are the same episode twice.
Machines also get the bootstrap over seeds, which is a little too narrow for ten.

What methods are compared by stands at the left: a narrow terminal gets that first, then the rest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from elute.demos.audit.finding import counted
from elute.envs.task import SAWYER_REACH
from elute.report.groups import Group, Place, Row, grouped
from elute.report.numbers import between, footnote, with_interval
from elute.report.paper import Published, find, published
from elute.report.statistics import (
    Estimate,
    Interval,
    bootstrap_interval,
    estimate,
    grand_means,
    improvement_probabilities,
    probability_of_improvement,
    winners,
)
from elute.report.statistics import wilson as wilson_interval
from elute.report.tables import Grid, seeds_of

SETS: Mapping[str, tuple[str, ...]] = {
    "robosuite": ("supplementary",),
    "robosuite-steps": ("l1", "l2"),
}
"""What each table is about."""
SOURCES = {"roboturk": "human demonstrations", "operator": "synthetic demonstrations"}
NOT_HUMAN = "the paper's numbers are of the human demonstrations"
METHODS = ("bc-all", "bcnd", "dwbc", "dp-bc")
READINGS = {"nut_centre": "nut centre", "at_end": "at end", "nut_peg": "nut to peg"}
BASELINE = "bc-all"
PAPER_TARGET = "joint"


def success_cells(rows: Sequence[Row], table: str) -> list[Group]:
    """All cells of a table that have lines, human data first."""
    found = [
        group
        for group in grouped([row for row in rows if row["task"] == SAWYER_REACH])
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
    """Of successes over seeds; its interval ends where shares do."""
    ours = estimate(group.success)
    if ours.interval is None:
        return ours
    low, high = ours.interval
    return replace(ours, interval=Interval(max(0.0, low), min(1.0, high)))


def episodes_interval(group: Group) -> Interval:
    """Wilson's, of all episodes."""
    return wilson_interval(round(float(np.mean(group.success)) * group.episodes), group.episodes)


def beats(group: Group, other: Group) -> tuple[float, Interval | None]:
    """How probable it is that a seed of the one succeeds more often than a seed of the other."""
    ours, theirs = [group.success], [other.success]
    drawn = bootstrap_interval(improvement_probabilities, ours, theirs)
    return probability_of_improvement(ours, theirs), drawn


def in_paper(group: Group, table: str) -> Published | None:
    """What the paper prints; its steps are of both state and action.

    It has no step that is chosen without the test: beside `auto` stands the best that it tried.
    """
    if group.step and group.target != PAPER_TARGET:
        return None
    demos = f"roboturk/{group.place.demos.partition('/')[2]}"
    step = int(group.step) if group.step.isdecimal() else None
    found = find(table, SAWYER_REACH, demos, group.method, step)
    if found is None or group.step != "auto":
        return found
    tried = [cell for cell in published(table) if cell.reverse_step and cell.demos == demos]
    best = max(tried, key=lambda cell: cell.mean).reverse_step
    return replace(found, note=f"the paper's best fixed step ({best})")


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
        "seeds_bootstrap": bootstrap_interval(grand_means, [group.success]),
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
    """All columns, one grid for each set of demonstrations."""
    return [_grid(place, made, table) for place in _places(made)]


def _places(made: Sequence[Group]) -> list[Place]:
    return list(dict.fromkeys(group.place for group in made))


def _of(place: Place, made: Sequence[Group]) -> list[Group]:
    return [group for group in made if group.place == place]


def _grid(place: Place, made: Sequence[Group], table: str) -> Grid:
    shown, notes = _of(place, made), dict[str, str]()
    columns = (
        *("method", "success (seeds)", f"beats {BASELINE}", "paper"),
        *("all episodes", *READINGS.values()),
    )
    rows = tuple(
        (
            _name(group),
            with_interval(share(group).mean, share(group).interval),
            _better(group, made),
            _paper(group, table, notes),
            between(episodes_interval(group)),
            *_readings(group),
        )
        for group in shown
    )
    best = winners({str(i): share(group) for i, group in enumerate(shown)})
    bold = tuple(
        tuple(k == 1 and str(i) in best for k in range(len(columns))) for i in range(len(shown))
    )
    remarks = [] if _source(shown[0]) == "roboturk" else [NOT_HUMAN]
    return Grid(_title(shown), columns, rows, bold, (*remarks, *notes.values()), labels=1)


def _title(shown: Sequence[Group]) -> str:
    first = shown[0]
    each = counted(first.episodes // len(first.success), "episode")
    what = f"{SOURCES[_source(first)]} ({first.place.demos})"
    return f"{what}: success over {seeds_of(shown)} of {each}, 95 % intervals"


def _better(group: Group, made: Sequence[Group]) -> str:
    other = _baseline(group, made)
    return "-" if other is None else with_interval(*beats(group, other))


def _readings(group: Group) -> list[str]:
    found = (group.readings.get(name) for name in READINGS)
    return ["-" if seen is None else f"{np.mean(seen):.2f}" for seen in found]


def _paper(group: Group, table: str, notes: dict[str, str]) -> str:
    paper = in_paper(group, table)
    return "-" if paper is None else f"{paper.mean:.2f} {footnote(paper.note, notes)}".rstrip()


def _name(group: Group) -> str:
    if not group.step:
        return group.method
    chosen = "/".join(map(str, group.chosen))
    step = f"auto@{chosen}" if group.step == "auto" else f"@{group.step}"
    return f"{group.method} {group.target} {step}"
