"""Tables and curves, rebuilt from lines of results, with the paper's numbers beside.

    cells(rows, "1") -> one `Cell` for each regime, task, demonstrations and method

Nothing here is typed by hand: what has no line has no number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from elute.report.paper import Published, find
from elute.report.statistics import Estimate, estimate, winners

Row = Mapping[str, Any]
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
    "reverse-step": (
        *(f"action-noise/{level}" for level in ("heavy", "medium", "light")),
        *(f"checkpoint/{age}" for age in ("early", "middle", "late")),
    ),
}
METHODS: Mapping[str, tuple[str, ...]] = {
    "1": (
        *("bc-opt", "bc-all", "bcnd", "dwbc", "isw-bc", "demodice", "smodice"),
        *("dbc", "diffusion-bc", "dp-bc"),
    ),
    "noise": ("bc-all", "bcnd", "dwbc", "demodice", "dp-bc"),
    "filters": ("bc-all", "gaussian-bc", "mean-bc", "median-bc", "dp-bc"),
    "mixed": ("bc-opt", "bc-all", "bcnd", "dwbc", "demodice", "dp-bc"),
    "reverse-step": ("dp-bc",),
}
"""What each table holds, in its order."""


@dataclass(frozen=True)
class Cell:
    """One number of a table: ours, and the paper's if it has one."""

    regime: str
    task: str
    demos: str
    method: str
    step: str
    """Reverse step: a number, `auto`, or nothing."""
    ours: Estimate
    normalised: float | None
    chosen: tuple[int, ...]
    """Reverse steps that were used."""
    paper: Published | None
    wins: bool = False
    """None of the others of its row is clearly better."""

    @property
    def column(self) -> str:
        """Method, and reverse step where it is given."""
        return f"{self.method}@{self.step}" if self.step.isdecimal() else self.method


def cells(rows: Sequence[Row], table: str) -> list[Cell]:
    """All cells of a table that have lines."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row["demos"] in DEMOS[table] and row["method"] in METHODS[table]:
            step = _step(row)
            if (table == "reverse-step") == (step not in ("", "auto")):
                key = (_regime(row), row["task"], row["demos"], row["method"], step)
                groups.setdefault(key, []).append(row)
    made = [_cell(key, group, table) for key, group in groups.items()]
    return sorted(_with_winners(made), key=lambda cell: _order(cell, table))


def _step(row: Row) -> str:
    if row["reverse_step"] is None or row["method"].split("-")[0] != "dp":
        return ""
    return "auto" if row["auto"] else str(row["reverse_step"])


def _regime(row: Row) -> str:
    return f"real {row['regime']}" if row["data"] else str(row["regime"])


def _cell(key: tuple[str, ...], group: Sequence[Row], table: str) -> Cell:
    regime, task, demos, method, step = key
    latest = {row["seed"]: row for row in group}  # a later line of a seed stands for it
    found = [row["metrics"] for row in latest.values()]
    normal = [m["normalised"] for m in found if m["normalised"] is not None]
    published = find(table, task, demos, method, int(step) if step.isdecimal() else None)
    return Cell(
        regime,
        task,
        demos,
        method,
        step,
        ours=estimate([m["mean"] for m in found]),
        normalised=sum(normal) / len(normal) if normal else None,
        chosen=tuple(sorted({int(row["reverse_step"]) for row in latest.values()}) if step else ()),
        paper=published,
    )


def _with_winners(made: Sequence[Cell]) -> list[Cell]:
    """With one seed nothing can be said of who wins."""
    lines: dict[tuple[str, ...], dict[str, Cell]] = {}
    for cell in made:
        line = lines.setdefault((cell.regime, cell.task, cell.demos), {})
        line[cell.column] = cell
    marked = []
    for line in lines.values():
        sure = all(cell.ours.interval is not None for cell in line.values()) and len(line) > 1
        best = winners({name: cell.ours for name, cell in line.items()}) if sure else ()
        marked += [replace(cell, wins=name in best) for name, cell in line.items()]
    return marked


def _order(cell: Cell, table: str) -> tuple[Any, ...]:
    step = int(cell.step) if cell.step.isdecimal() else -1
    return (
        cell.regime,
        cell.task,
        DEMOS[table].index(cell.demos),
        METHODS[table].index(cell.method),
        step,
    )


def as_json(made: Sequence[Cell]) -> dict[str, Any]:
    """For machines."""
    return {
        "cells": [
            {
                "task": cell.task,
                "demos": cell.demos,
                "method": cell.method,
                "regime": cell.regime,
                "reverse_step": cell.step or None,
                "mean": cell.ours.mean,
                "stderr": cell.ours.stderr,
                "seeds": cell.ours.seeds,
                "paper": None if cell.paper is None else cell.paper.mean,
            }
            for cell in made
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


def grids(made: Sequence[Cell]) -> list[Grid]:
    """One for each regime."""
    return [
        _grid(regime, [cell for cell in made if cell.regime == regime])
        for regime in dict.fromkeys(cell.regime for cell in made)
    ]


def _grid(regime: str, made: Sequence[Cell]) -> Grid:
    columns = tuple(dict.fromkeys(cell.column for cell in made))
    lines = dict.fromkeys((cell.task, cell.demos) for cell in made)
    notes: dict[str, str] = {}
    rows, bold = [], []
    for task, demos in lines:
        line = {cell.column: cell for cell in made if (cell.task, cell.demos) == (task, demos)}
        rows.append((task, demos, *(_text(line.get(name), notes) for name in columns)))
        wins = tuple(name in line and line[name].wins for name in columns)
        bold.append((False, False, *wins))
    seeds = sorted({cell.ours.seeds for cell in made})
    told = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    title = f"{regime}: mean return ± standard error over {told} seeds [paper]"
    return Grid(title, ("task", "demos", *columns), tuple(rows), tuple(bold), tuple(notes.values()))


def _text(cell: Cell | None, notes: dict[str, str]) -> str:
    if cell is None:
        return "-"
    spread = "" if cell.ours.stderr is None else f" ± {cell.ours.stderr:.0f}"
    chosen = f" @{'/'.join(map(str, cell.chosen))}" if cell.step == "auto" else ""
    if cell.paper is None:
        return f"{cell.ours.mean:.0f}{spread}{chosen}"
    mark = ""
    if cell.paper.note:
        if cell.paper.note not in notes:
            notes[cell.paper.note] = f"({len(notes) + 1}) {cell.paper.note}"
        mark = notes[cell.paper.note].split(")")[0] + ")"
    return f"{cell.ours.mean:.0f}{spread}{chosen} [{cell.paper.mean:.0f}{mark}]"


def markdown(grid: Grid) -> str:
    """A table of GitHub's kind, winners in bold."""
    lines = [f"**{grid.title}**", "", _piped(grid.columns), _piped(["---"] * len(grid.columns))]
    for row, bold in zip(grid.rows, grid.bold, strict=True):
        lines.append(
            _piped([f"**{text}**" if b else text for text, b in zip(row, bold, strict=True)])
        )
    return "\n".join([*lines, *(f"\n{note}" for note in grid.notes)])


def _piped(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def latex(grid: Grid) -> str:
    """A tabular, winners in bold."""
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
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *(f"% {n}" for n in grid.notes)])


def _tex(text: str) -> str:
    for plain, escaped in (("_", r"\_"), ("&", r"\&"), ("%", r"\%"), ("±", r"$\pm$")):
        text = text.replace(plain, escaped)
    return text
