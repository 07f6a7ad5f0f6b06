"""`elute report`: tables, figures and the page, rebuilt from lines of results."""

import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rich.table import Table

from elute import results
from elute.cli.arguments import open_first
from elute.cli.show import out, print_json, say
from elute.demos.output import check_output
from elute.errors import EluteError
from elute.report import curves as curves_module
from elute.report import success, summary, tables
from elute.report.changes import ColumnChange, column_changes
from elute.report.figures import check_figure
from elute.report.groups import is_scored
from elute.report.html import Curve, Report, write_html
from elute.report.paper import REMARKS
from elute.report.purification import Purification
from elute.report.robot import draw_robot, quality_grid, shipped_scene
from elute.report.theory import draw_elasticity
from elute.types import Demonstrations

FORMATS = {"markdown": tables.markdown, "latex": tables.latex}
MOST_ROWS = 10_000
"""Of which the page shows how they changed."""
QUALITY, ELASTICITY = "robosuite-quality", "elasticity"
ROBOTS = {"robosuite": "operator", "robosuite-real": "roboturk"}
"""Figures of the ten demonstrations, and whose they are."""
TITLES = {
    "operator": "Ten demonstrations of the scripted operator (synthetic)",
    "roboturk": "Ten human demonstrations (RoboTurk)",
}
FIGURES: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any], str]] = {
    "reverse-step": (
        curves_module.reverse_step_curves,
        curves_module.draw_reverse_step,
        curves_module.as_json,
        "two fixed reverse steps or more of a set of demonstrations",
    ),
    summary.ONLINE: (
        curves_module.online_curves,
        curves_module.draw_online,
        curves_module.as_json,
        "runs of methods that play",
    ),
    "summary": (
        lambda rows: summary.scored(summary.summary_cells(rows, "1")),
        summary.draw_summary,
        lambda made: summary.summary_json(summary.summaries(made)),
        "runs with scores of a table's sets",
    ),
}
"""Of lines: what is found in them, how it is drawn, what machines are told, and what is needed."""


def run(
    places: list[Path],
    regime: str,
    told: list[Path],
    table: str,
    figure: str,
    html: Path | None,
    output: Path | None,
    format: str,
    as_json: bool,
) -> None:
    """Print a table, draw a figure, or write the page."""
    if sum(map(bool, (table, figure, html))) != 1:
        raise EluteError("expected one of --table, --figure and --html")
    _check_flags(places, regime, told, table, figure, html, output, format, as_json)
    if table:
        _known(table, [*tables.METHODS, *summary.SUMMARIES, *success.SETS, QUALITY], "table")
        _known(format, ["text", *FORMATS], "format")
    if figure:
        _known(figure, [*FIGURES, *ROBOTS, ELASTICITY], "figure")
    if table == QUALITY:
        _quality(format, as_json)
        return
    if figure in ROBOTS or figure == ELASTICITY:
        _drawn(figure, output)
        return
    rows = _of_regime(read_rows(places or [Path("results")]), regime)
    if table:
        _table(rows, table, format, as_json)
    elif html is not None:
        check_output(html)
        if not rows and not told:
            raise EluteError("no lines to tell about", hint="elute run FILE.toml makes them")
        audits, purifications = _told(told)
        page = Report(
            rows=rows,
            audits=audits,
            purifications=purifications,
            curves=_curves(rows),
            command=f"elute report --html {html.name}",
        )
        write_html(html, page)
        say(f"wrote {html}")
    else:
        _figure(rows, figure, output, as_json)


def _check_flags(
    places: list[Path],
    regime: str,
    told: list[Path],
    table: str,
    figure: str,
    html: Path | None,
    output: Path | None,
    format: str,
    as_json: bool,
) -> None:
    """A flag that would change nothing is a mistake."""
    if told and html is None:
        raise EluteError("--with is for the page", hint="give --html FILE too")
    if output is not None and not figure:
        raise EluteError("-o is for figures", hint="--html names its page itself" if html else "")
    if as_json and not table and figure not in FIGURES:
        raise EluteError("--json is for tables and for figures of lines")
    if format != "text" and (as_json or not table):
        raise EluteError(
            "--format is for tables that are printed",
            hint="leave --format or --json out" if as_json else "",
        )
    if (regime or places) and (table == QUALITY or figure in ROBOTS or figure == ELASTICITY):
        flag = "--regime" if regime else "--results"
        raise EluteError(f"{flag} is for lines of results, which this does not read")


def _told(paths: list[Path]) -> tuple[list[dict[str, Any]], list[Purification]]:
    """What audits and purifications printed."""
    audits, purifications = [], []
    for path in paths:
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise EluteError(f"{path}: cannot be read as JSON: {error}") from error
        if isinstance(facts, dict) and "findings" in facts:
            audits.append(facts)
        elif isinstance(facts, dict) and {"input", "output", "moved"} <= set(facts):
            purifications.append(
                Purification(name=facts["input"], facts=facts, columns=_changes(facts))
            )
        else:
            raise EluteError(
                f"{path}: neither of an audit nor of a purification",
                hint="save what elute demos audit --json or elute purify --json prints",
            )
    return audits, purifications


def _changes(facts: dict[str, Any]) -> tuple[ColumnChange, ...]:
    """Row by row, if the files are still there."""
    try:
        optimal, before, after = (
            open_first(facts[name], rows).rows(0, rows)
            for name, rows in (
                ("optimal", facts["optimal_rows"]),
                ("input", min(facts["rows"], MOST_ROWS)),
                ("output", min(facts["rows"], MOST_ROWS)),
            )
        )
        return column_changes(before, after, optimal)
    except EluteError as error:
        say(f"what changed row by row is left out: {error.message}")
        return ()


def _curves(rows: list[dict[str, Any]]) -> list[Curve]:
    """Of methods that play, a chart for each task."""
    return [
        Curve(
            name=f"{curve.method} on {curve.demos}",
            x=curve.x,
            y=curve.mean,
            x_name="environment steps",
            y_name=f"mean return, {curve.task}",
        )
        for curve in curves_module.online_curves(rows)
    ]


def read_rows(places: list[Path]) -> list[dict[str, Any]]:
    """Lines of all results files in these places; of lines of one run the last counts."""
    files = [
        f
        for place in places
        for f in (sorted(place.glob("*.jsonl")) if place.is_dir() else [place])
    ]
    if not files:
        raise EluteError(
            f"no results in {', '.join(map(str, places))}", hint="elute run FILE.toml makes them"
        )
    found: dict[str, dict[str, Any]] = {}
    others: set[str] = set()
    for file in files:
        if not file.exists():
            hint = "elute run FILE.toml makes results; --results names them where they are"
            raise EluteError(f"{file}: no such file", hint=hint)
        read = results.read(file)
        if read.torn:
            say(f"{file}: {read.warning}; left out")
        for row in read.rows:
            if found.get(row["digest"], row)["metrics"] != row["metrics"]:
                others.add(row["digest"])
            found[row["digest"]] = row
    if others:
        say(
            f"{len(others)} of {len(found)} runs have lines of different numbers, as when "
            "another processor made them: the last of each counts"
        )
    lost = sum(not is_scored(row) for row in found.values())
    if lost:
        say(f"{lost} of {len(found)} runs diverged: no table counts them")
    return list(found.values())


def _of_regime(rows: list[dict[str, Any]], regime: str) -> list[dict[str, Any]]:
    """All lines, or those of one regime."""
    if regime:
        _known(regime, sorted({str(row["regime"]) for row in rows}), "line of the regime")
    return [row for row in rows if regime in ("", row["regime"])]


def _known(name: str, names: list[str], what: str) -> None:
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
        raise EluteError(f"no {what} {name!r}", hint=hint)


def _table(rows: list[dict[str, Any]], name: str, format: str, as_json: bool) -> None:
    facts, grids = _made(rows, name, format)
    if not grids:
        raise EluteError(
            f"no lines for table {name}", hint="elute run experiments/NAME.toml makes them"
        )
    if as_json:
        print_json(facts)
        return
    remark = REMARKS.get(name)
    if remark:
        grids[-1] = replace(grids[-1], notes=(*grids[-1].notes, f"The paper: {remark}"))
    _print(grids, format)


def _made(
    rows: list[dict[str, Any]], name: str, format: str
) -> tuple[dict[str, Any], list[tables.Grid]]:
    """A table for machines, and laid out."""
    if name in success.SETS:
        rates = success.success_cells(rows, name)
        return success.success_json(rates, name), success.success_grids(rates, name)
    if name in summary.SUMMARIES:
        whole = summary.summaries(summary.summary_cells(rows, summary.SUMMARIES[name]))
        if name == summary.HEADLINE:
            whole = summary.headline(whole)
            return summary.summary_json(whole), summary.headline_grids(whole)
        return summary.summary_json(whole), summary.summary_grids(whole)
    if name == summary.ONLINE:
        outcomes = curves_module.online_outcomes(rows)
        told = {"outcomes": [asdict(one) for one in outcomes]}
        return told, curves_module.online_grids(outcomes)
    cells = tables.cells(rows, name)
    grids = tables.grids(cells, name)
    if (
        format == "text"
        and name != tables.SWEEP
        and max(map(tables.width, grids), default=0) > out.width
    ):
        grids = [part for grid in grids for part in tables.by_task(grid)]
    return tables.as_json(cells), grids


def _quality(format: str, as_json: bool) -> None:
    """The ten demonstrations themselves, human where their files are."""
    grid = quality_grid({name: _ten(name) for name in ("operator", *_human())})
    if as_json:
        print_json({"rows": [dict(zip(grid.columns, row, strict=True)) for row in grid.rows]})
    else:
        _print([grid], format)


def _human() -> list[str]:
    from elute.collect.roboturk import FOLDER

    return ["roboturk"] if os.environ.get(FOLDER) else []


def _ten(name: str) -> Demonstrations:
    from elute.collect.catalogue import fetch
    from elute.demos.files import load

    return load(fetch(f"sawyer-reach/{name}"))


def _drawn(figure: str, path: Path | None) -> None:
    """A figure that needs no lines: theory, or the robot's scene and its ten demonstrations."""
    path = path or Path(f"{figure}.png")
    check_figure(path)
    if figure == ELASTICITY:
        draw_elasticity(path)
    else:
        name = ROBOTS[figure]
        draw_robot(shipped_scene(), _ten(name), path, title=TITLES[name])
    say(f"wrote {path}")


def _print(grids: list[tables.Grid], format: str) -> None:
    if format == "text":
        grids = [part for grid in grids for part in tables.in_parts(grid, out.width)]
    for number, grid in enumerate(grids):
        if format == "text":
            out.print(end="\n" if number else "")
            _show(grid)
        else:
            out.print(FORMATS[format](grid), markup=False, soft_wrap=True)


def _show(grid: tables.Grid) -> None:
    shown = Table(
        *grid.columns,
        title=_plain(grid.title) or None,
        title_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
    )
    for number, column in enumerate(shown.columns):  # numbers are broken, never cut off
        column.no_wrap, column.overflow = number < grid.labels, "fold"
    for row, bold in zip(grid.rows, grid.bold, strict=True):
        shown.add_row(
            *(
                f"[bold]{_plain(t)}[/bold]" if b else _plain(t)
                for t, b in zip(row, bold, strict=True)
            )
        )
    out.print(shown)
    for note in grid.notes:
        out.print(note, markup=False, soft_wrap=False)  # between words


def _plain(text: str) -> str:
    return text.replace("[", r"\[")


def _figure(rows: list[dict[str, Any]], name: str, path: Path | None, as_json: bool) -> None:
    find, draw, told, needed = FIGURES[name]
    found = find(rows)
    if not found:
        raise EluteError(
            f"no lines for figure {name}" + (", or not enough" if rows else ""),
            hint=f"it needs {needed}; elute run makes them",
        )
    if as_json:
        print_json(told(found))
        return
    path = path or Path(f"{name}.png")
    check_figure(path)
    draw(found, path)
    say(f"wrote {path}")
