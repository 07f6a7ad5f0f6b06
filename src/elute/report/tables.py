"""Tables and curves, rebuilt from lines of results, with the paper's numbers beside.

    for grid in grids(cells(rows, "1"), "1"):
        print(markdown(grid))

Nothing here is typed by hand: what has no line has no number.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from elute.report.groups import Group, Oracle, Row, best_fixed, grouped, with_oracles
from elute.report.numbers import footnote, range_of, steps_of
from elute.report.paper import DEMONSTRATIONS
from elute.report.statistics import winners

_LEVELS = ("heavy", "medium", "light")
_NOISY = tuple(f"action-noise/{level}" for level in _LEVELS)
_TABLE_1 = (*_NOISY, *(f"checkpoint/{age}" for age in ("early", "middle", "late")))
DEMOS: Mapping[str, tuple[str, ...]] = {
    "1": _TABLE_1,
    "noise": tuple(
        f"{kind}/{level}" for kind in ("uniform-noise", "salt-pepper") for level in _LEVELS
    ),
    "filters": _NOISY,
    "mixed": ("action-noise/mixed",),
    "quality": (*_TABLE_1, "expert"),
    "reverse-step": _TABLE_1,
}
_FILTERED = ("gaussian-bc", "mean-bc", "median-bc")
METHODS: Mapping[str, tuple[str, ...]] = {
    "1": (
        *("bc-opt", "bc-all", "bcnd", "dwbc", "isw-bc", "demodice", "smodice"),
        *("dbc", "diffusion-bc", "dp-bc", "dp-isw-bc"),
    ),
    "noise": ("bc-all", "bcnd", "dwbc", "isw-bc", "demodice", "dp-bc", "dp-isw-bc"),
    "filters": ("bc-all", *_FILTERED, "dp-bc"),
    "mixed": ("bc-opt", "bc-all", "bcnd", "dwbc", "demodice", "dp-bc"),
    "reverse-step": ("dp-bc",),
    "quality": (DEMONSTRATIONS,),
    "online": ("gail", "2iwil", "ic-gail", "wgail", "sail", "dp-gail"),
}
"""What each table holds, in its order."""
SWEEP = "reverse-step"
_ABOUT: Mapping[str, Callable[[Group], bool]] = {
    "filters": lambda group: group.method in _FILTERED,
    SWEEP: lambda group: group.step.isdecimal(),
}
"""What a table is about that shares its sets and its other methods with Table 1."""
BEST = (
    "@best: of the fixed reverse steps that were tried the one that earned most, which nobody "
    "knows beforehand; with few seeds it owes much to luck, and `auto` may take one that was not "
    "tried"
)
BOLD = (
    "bold: the highest mean, and all whose 95 % intervals overlap its interval, as that of an "
    "unsure mean does easily"
)
PAPER = "[...]: the paper's, of 50 optimal and 500 other rows"


def cells(rows: Sequence[Row], table: str, *oracles: Oracle) -> list[Group]:
    """All cells of a table that have lines.

    A set that has nothing of what the table is about is left out. Of fixed reverse steps a sweep
    has all. Other tables have what these make of them; by default the best.
    """
    found = [
        group
        for group in grouped(rows)
        if group.place.demos in DEMOS[table] and group.method in METHODS[table]
    ]
    if table in _ABOUT:
        places = {group.place for group in found if _ABOUT[table](group)}
        found = [group for group in found if group.place in places]
    if table == SWEEP:
        return [group for group in found if group.step]
    return with_oracles(found, *(oracles or (best_fixed,)))


def as_json(made: Sequence[Group]) -> dict[str, Any]:
    """For machines."""
    return {
        "cells": [
            {
                "task": group.place.task,
                "demos": group.place.demos,
                "method": group.method,
                "regime": group.place.regime,
                "reverse_step": group.step or None,
                "chosen": list(group.chosen),
                "variant": group.variant,
                "mean": group.ours.mean,
                "stderr": group.ours.stderr,
                "seeds": group.ours.seeds,
                "episodes": group.episodes,
                "paper": None if group.paper is None else group.paper.mean,
            }
            for group in made
        ]
    }


@dataclass(frozen=True)
class Grid:
    """Cells laid out: a row for each task and set, a column for each method."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bold: tuple[tuple[bool, ...], ...]
    notes: tuple[str, ...]
    labels: int = 2
    """Columns at the left that say which row it is."""


def grids(made: Sequence[Group], table: str) -> list[Grid]:
    """One for each regime; of a sweep one for each task, too."""
    parts: dict[str, list[Group]] = {}
    for group in made:
        parts.setdefault(group.place.regime, []).append(group)
    wide = [_grid(regime, part, table) for regime, part in parts.items()]
    return [part for grid in wide for part in by_task(grid)] if table == SWEEP else wide


def width(grid: Grid) -> int:
    """Of a table whose cells are not broken."""
    return sum(_widths(grid))


def _widths(grid: Grid) -> list[int]:
    return [max(map(len, column)) + 1 for column in zip(grid.columns, *grid.rows, strict=True)]


def in_parts(grid: Grid, most: int) -> list[Grid]:
    """The same, broken between columns so that each part is no wider, where that can be."""
    widths, labels = _widths(grid), list(range(grid.labels))
    parts = [labels.copy()]
    for column in range(grid.labels, len(widths)):
        wide = sum(widths[j] for j in [*parts[-1], column]) > most
        if wide and len(parts[-1]) > grid.labels:
            parts.append(labels.copy())
        parts[-1].append(column)
    made = [
        replace(
            grid,
            title="" if number else grid.title,
            columns=tuple(grid.columns[j] for j in part),
            rows=tuple(tuple(row[j] for j in part) for row in grid.rows),
            bold=tuple(tuple(bold[j] for j in part) for bold in grid.bold),
            notes=(),
        )
        for number, part in enumerate(parts)
    ]
    made[-1] = replace(made[-1], notes=grid.notes)
    return made


def by_task(grid: Grid) -> list[Grid]:
    """The same turned round: for each task a row for each method and a column for each set."""
    parts = []
    for task in dict.fromkeys(row[0] for row in grid.rows):
        mine = [i for i, row in enumerate(grid.rows) if row[0] == task]
        heads = (grid.rows[i][1].replace("-", " ").replace("/", " ") for i in mine)  # these wrap
        methods = [
            j for j in range(2, len(grid.columns)) if any(grid.rows[i][j] != "-" for i in mine)
        ]
        parts.append(
            Grid(
                title=f"{task}, {grid.title}",
                columns=("method", *heads),
                rows=tuple((grid.columns[j], *(grid.rows[i][j] for i in mine)) for j in methods),
                bold=tuple((False, *(grid.bold[i][j] for i in mine)) for j in methods),
                notes=(),
                labels=1,
            )
        )
    parts[-1] = replace(parts[-1], notes=grid.notes)
    return parts


def _grid(regime: str, made: Sequence[Group], table: str) -> Grid:
    columns = tuple(g.name for g in sorted(made, key=lambda g: _column(g, table)))
    columns = tuple(dict.fromkeys(columns))
    notes: dict[str, str] = {}
    rows, bold = [], []
    for place in dict.fromkeys(group.place for group in made):
        line = {group.name: group for group in made if group.place == place}
        rows.append((place.task, place.demos, *(_text(line.get(n), notes) for n in columns)))
        fair = {name: group.ours for name, group in line.items() if group.step != "best"}
        best = winners(fair)
        bold.append((False, False, *(name in best for name in columns)))
    told = [BEST] if any(group.step == "best" for group in made) else []
    told += [BOLD] if any(map(any, bold)) else []
    told += _beside(made)
    return Grid(
        title=f"{regime}: {_told(made)}",
        columns=("task", "demos", *columns),
        rows=tuple(rows),
        bold=tuple(bold),
        notes=(*notes.values(), *told),
    )


def _beside(made: Sequence[Group]) -> list[str]:
    """What the paper's numbers are of, where any stand beside what was learnt."""
    printed = [group for group in made if group.paper is not None]
    if not printed or all(group.method == DEMONSTRATIONS for group in printed):
        return []
    ours = any("real files" not in group.place.regime for group in printed)
    return [f"{PAPER}{', of other recordings and experts' if ours else ''}"]


def _told(made: Sequence[Group]) -> str:
    """What numbers of a table are."""
    if all(group.method == DEMONSTRATIONS for group in made):
        counts = {group.episodes for group in made}
        return f"mean return ± standard error over {range_of(counts)} recorded episodes [paper]"
    return f"mean return ± standard error over {seeds_of(made)} [paper]"


def seeds_of(made: Sequence[Group]) -> str:
    """`3 seeds`, `1 to 3 seeds`."""
    counts = {len(group.seeds) for group in made}
    return f"{range_of(counts)} seed{'' if counts == {1} else 's'}"


def _column(group: Group, table: str) -> tuple[int, int]:
    step = int(group.step) if group.step.isdecimal() else {"best": 1}.get(group.step, -1)
    return METHODS[table].index(group.method), step


def _text(group: Group | None, notes: dict[str, str]) -> str:
    if group is None:
        return "-"
    spread = "" if group.ours.stderr is None else f" ± {group.ours.stderr:.0f}"
    chosen = f" @{steps_of(group.chosen)}" if group.step in ("auto", "best") else ""
    if group.paper is None:
        return f"{group.ours.mean:.0f}{spread}{chosen}"
    mark = footnote(group.paper.note, notes)
    return f"{group.ours.mean:.0f}{spread}{chosen} [{group.paper.mean:.0f}{mark}]"


def markdown(grid: Grid) -> str:
    """A table of GitHub's kind, winners in bold."""
    lines = [f"**{grid.title}**", "", _piped(grid.columns), _piped(["---"] * len(grid.columns))]
    for row, bold in zip(grid.rows, grid.bold, strict=True):
        lines.append(
            _piped([f"**{text}**" if b else text for text, b in zip(row, bold, strict=True)])
        )
    return "\n".join([*lines, *(f"\n{note}" for note in grid.notes), ""])


def _piped(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def latex(grid: Grid) -> str:
    """A tabular of the package booktabs, its title above, winners in bold, notes below."""
    notes = [rf"\par{{\footnotesize {_tex(note)}}}" for note in grid.notes]
    lines = [
        r"% needs \usepackage{booktabs}",
        rf"\par{{\small {_tex(grid.title)}}}\par",
        rf"\begin{{tabular}}{{{'l' * grid.labels}{'r' * (len(grid.columns) - grid.labels)}}}",
        r"\toprule",
        " & ".join(map(_tex, grid.columns)) + r" \\",
        r"\midrule",
    ]
    for row, bold in zip(grid.rows, grid.bold, strict=True):
        texts = [
            rf"\textbf{{{_tex(text)}}}" if b else _tex(text)
            for text, b in zip(row, bold, strict=True)
        ]
        lines.append(" & ".join(texts) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *notes, ""])


def _tex(text: str) -> str:
    for sign in "&%#_{}":
        text = text.replace(sign, f"\\{sign}")
    return re.sub(r"(?<!\w)-(?=\d)", "$-$", text).replace("±", r"$\pm$")
