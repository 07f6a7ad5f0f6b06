"""Tables and curves, rebuilt from lines of results, with the paper's numbers beside.

    for grid in grids(cells(rows, "1"), "1"):
        print(markdown(grid))

Nothing here is typed by hand: what has no line has no number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elute.report.groups import Group, Row, grouped
from elute.report.paper import DEMONSTRATIONS
from elute.report.statistics import sure_winners

DEMOS: Mapping[str, tuple[str, ...]] = {
    "1": (
        *(f"action-noise/{level}" for level in ("heavy", "medium", "light")),
        *(f"checkpoint/{age}" for age in ("early", "middle", "late")),
    ),
    "noise": tuple(
        f"{kind}/{level}"
        for kind in ("uniform-noise", "salt-pepper")
        for level in ("heavy", "medium", "light")
    ),
    "filters": tuple(f"action-noise/{level}" for level in ("heavy", "medium", "light")),
    "mixed": ("action-noise/mixed",),
    "quality": (
        *(f"action-noise/{level}" for level in ("heavy", "medium", "light")),
        *(f"checkpoint/{age}" for age in ("early", "middle", "late")),
        "expert",
    ),
    "reverse-step": (
        *(f"action-noise/{level}" for level in ("heavy", "medium", "light")),
        *(f"checkpoint/{age}" for age in ("early", "middle", "late")),
    ),
}
METHODS: Mapping[str, tuple[str, ...]] = {
    "1": (
        *("bc-opt", "bc-all", "bcnd", "dwbc", "isw-bc", "demodice", "smodice"),
        *("dbc", "diffusion-bc", "dp-bc", "dp-isw-bc"),
    ),
    "noise": ("bc-all", "bcnd", "dwbc", "demodice", "dp-bc"),
    "filters": ("bc-all", "gaussian-bc", "mean-bc", "median-bc", "dp-bc"),
    "mixed": ("bc-opt", "bc-all", "bcnd", "dwbc", "demodice", "dp-bc"),
    "reverse-step": ("dp-bc",),
    "quality": (DEMONSTRATIONS,),
}
"""What each table holds, in its order."""


def cells(rows: Sequence[Row], table: str) -> list[Group]:
    """All cells of a table that have lines; a sweep has steps that were given, others have not."""
    swept = table == "reverse-step"
    return [
        group
        for group in grouped(rows)
        if group.place.demos in DEMOS[table]
        and group.method in METHODS[table]
        and (group.step.isdecimal() == swept or (swept and group.step == "auto"))
    ]


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


def grids(made: Sequence[Group], table: str) -> list[Grid]:
    """One for each regime."""
    return [
        _grid(regime, [group for group in made if group.place.regime == regime], table)
        for regime in dict.fromkeys(group.place.regime for group in made)
    ]


def _grid(regime: str, made: Sequence[Group], table: str) -> Grid:
    columns = tuple(g.name for g in sorted(made, key=lambda g: _column(g, table)))
    columns = tuple(dict.fromkeys(columns))
    notes: dict[str, str] = {}
    rows, bold = [], []
    for place in dict.fromkeys(group.place for group in made):
        line = {group.name: group for group in made if group.place == place}
        rows.append((place.task, place.demos, *(_text(line.get(n), notes) for n in columns)))
        best = sure_winners({name: group.ours for name, group in line.items()})
        bold.append((False, False, *(name in best for name in columns)))
    seeds = sorted({group.ours.seeds for group in made})
    told = f"{seeds[0]} seed{'s' if seeds[0] > 1 else ''}"
    told = told if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    title = f"{regime}: mean return ± standard error over {told} [paper]"
    return Grid(title, ("task", "demos", *columns), tuple(rows), tuple(bold), tuple(notes.values()))


def _column(group: Group, table: str) -> tuple[int, int]:
    step = int(group.step) if group.step.isdecimal() else -1
    return METHODS[table].index(group.method), step


def _text(group: Group | None, notes: dict[str, str]) -> str:
    if group is None:
        return "-"
    spread = "" if group.ours.stderr is None else f" ± {group.ours.stderr:.0f}"
    chosen = f" @{'/'.join(map(str, group.chosen))}" if group.step == "auto" else ""
    if group.paper is None:
        return f"{group.ours.mean:.0f}{spread}{chosen}"
    mark = ""
    if group.paper.note:
        text = group.paper.note
        mark = notes.setdefault(text, f"({len(notes) + 1}) {text}").split(")")[0] + ")"
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
    """A tabular, winners in bold, notes below."""
    notes = [rf"\par{{\footnotesize {_tex(note)}}}" for note in grid.notes]
    lines = [
        f"% {grid.title}",
        rf"\begin{{tabular}}{{ll{'r' * (len(grid.columns) - 2)}}}",
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
    return text.replace("±", r"$\pm$")
