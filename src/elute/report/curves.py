"""Curves over the reverse step or over steps of an environment, rebuilt from lines of results."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from elute.envs.task import TASKS
from elute.report.figures import legend_below, save_figure
from elute.report.groups import Group, Place, Row, best_fixed, grouped, is_scored, with_oracles
from elute.report.numbers import steps_of, with_error
from elute.report.paper import published
from elute.report.statistics import Estimate, estimate
from elute.report.tables import BEST, SWEEP, Grid, cells

LATE = 10
"""Evaluations: one alone may fall into a dip."""


@dataclass(frozen=True)
class Curve:
    """Means over seeds, and their standard errors."""

    regime: str
    task: str
    demos: str
    method: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    stderr: tuple[float | None, ...]
    auto: tuple[float, float] | None = None
    """Over reverse steps: the mean of those that were chosen, and of what they earned."""


def reverse_step_curves(rows: Sequence[Row]) -> list[Curve]:
    """The return at each reverse step that was given, for each regime, task and set of Table 1."""
    found: dict[tuple[Place, str], list[Group]] = {}
    chosen: dict[tuple[Place, str], tuple[float, float]] = {}
    for group in cells(rows, SWEEP):
        key = group.place, f"{group.method} {group.variant}".rstrip()
        if group.step.isdecimal():
            found.setdefault(key, []).append(group)
        else:
            chosen[key] = float(np.mean(group.steps)), group.ours.mean
    return [
        Curve(
            **place._asdict(),
            method=method,
            x=tuple(float(group.step) for group in steps),
            mean=tuple(group.ours.mean for group in steps),
            stderr=tuple(group.ours.stderr for group in steps),
            auto=chosen.get((place, method)),
        )
        for (place, method), steps in found.items()
        if len(steps) > 1
    ]


def online_curves(rows: Sequence[Row]) -> list[Curve]:
    """The return over steps of the environment, of methods that play; a curve for each variant.

    A standard error is over seeds. A curve has the steps at which all its seeds were evaluated.
    """
    curves = []
    for group in _played(rows):
        kept = [line["curve"] for line in group.lines]
        found = [dict(zip(one["steps"], one["mean"], strict=True)) for one in kept]
        steps = [step for step in min(found, key=len) if all(step in seed for seed in found)]
        at = [estimate([seed[step] for seed in found]) for step in steps]
        means, errors = tuple(one.mean for one in at), tuple(one.stderr for one in at)
        x = tuple(map(float, steps))
        curves.append(Curve(*group.place, group.name, x, means, errors))
    return curves


@dataclass(frozen=True)
class Outcome:
    """What a method that plays came to, over seeds."""

    task: str
    demos: str
    method: str
    step: str
    """Reverse step: a number, `auto`, `best` of the numbers, or nothing."""
    chosen: tuple[int, ...]
    """Reverse steps that were used, each once."""
    late: Estimate
    """The mean of the last evaluations."""
    peak: float
    """The best evaluation of each seed, on average."""
    last: Estimate
    """The policy that is left, in other episodes."""


def late_rows(rows: Sequence[Row]) -> list[Row]:
    """Runs of methods that play, as if their last evaluations were all they are judged by."""
    return [{**row, "metrics": _late(row)} for row in rows if row.get("curve") and is_scored(row)]


def _late(row: Row) -> dict[str, float | None]:
    """What the last evaluations come to, and what the policy that is left earns in others."""
    mean = float(np.mean(row["curve"]["mean"][-LATE:]))
    return {"mean": mean, "normalised": _normalised(row, mean), "last": row["metrics"]["mean"]}


def _normalised(row: Row, score: float) -> float | None:
    task = TASKS.get(row["task"])
    return None if task is None else task.normalised(score)


def online_outcomes(rows: Sequence[Row]) -> list[Outcome]:
    """Of every method that plays."""
    return [
        Outcome(
            *(group.place.task, group.place.demos, group.name, group.step, group.chosen),
            late=group.ours,
            peak=float(np.mean([max(line["curve"]["mean"]) for line in group.lines])),
            last=estimate([line["metrics"]["last"] for line in group.lines]),
        )
        for group in _played(rows)
    ]


def online_grids(made: Sequence[Outcome]) -> list[Grid]:
    """One, if there is anything to tell."""
    rows = tuple(
        (
            *(one.task, one.demos, one.method),
            *(steps_of(one.chosen) or "-", str(one.late.seeds)),
            *(with_error(one.late), f"{one.peak:.0f}", with_error(one.last)),
        )
        for one in made
    )
    columns = ("task", "demos", "method", "step", "seeds", f"last {LATE}", "peak", "at the end")
    note = (
        f"last {LATE}: mean of the last {LATE} evaluations; peak: the best evaluation of each "
        "seed, chosen by its own return; at the end: of the policy that is left, in other episodes"
    )
    title = "methods that play: mean return ± standard error over seeds"
    notes = (note, BEST) if any(one.step == "best" for one in made) else (note,)
    bold = ((False,) * len(columns),) * len(rows)
    return [Grid(title, columns, rows, bold, notes, labels=3)] if rows else []


def _played(rows: Sequence[Row]) -> list[Group]:
    """Methods that play; of fixed reverse steps the one whose last evaluations are best."""
    return with_oracles(grouped(late_rows(rows)), best_fixed)


def as_json(curves: Sequence[Curve]) -> dict[str, Any]:
    """For machines."""
    return {"curves": [asdict(curve) for curve in curves]}


def draw_reverse_step(curves: Sequence[Curve], path: Path) -> None:
    """Ours as lines with standard errors, the chosen step as a star, the paper's as hollow points.

    A row for each regime.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    regimes, tasks = (list(dict.fromkeys(map(attrgetter(n), curves))) for n in ("regime", "task"))
    demos = list(dict.fromkeys(curve.demos for curve in curves))
    figure = Figure(figsize=(4 * len(tasks), 3.5 * len(regimes) + 0.5), layout="constrained")
    axes = figure.subplots(len(regimes), len(tasks), squeeze=False)
    shown: dict[str, Any] = {}
    for (i, regime), (j, task) in product(enumerate(regimes), enumerate(tasks)):
        mine = [c for c in curves if (c.regime, c.task) == (regime, task)]
        axes[i, j].set_visible(bool(mine))
        shown |= _draw(axes[i, j], mine, demos)
        axes[i, j].set_title(f"{task}, {regime}")
        axes[i, j].set_xlabel("reverse step")
    told = "star: auto, at the mean of the steps it chose; dotted: the paper; shade: standard error"
    figure.legend(shown.values(), shown.keys(), title=told, loc="outside lower center", ncols=6)
    for axis in axes[:, 0]:
        axis.set_ylabel("mean return")
    save_figure(figure, path)


def _draw(axis: Any, curves: Sequence[Curve], demos: list[str]) -> dict[str, Any]:  # noqa: ANN401
    """The curves of one task and regime; returns a line for each set."""
    lines = {}
    for curve in curves:
        colour = f"C{demos.index(curve.demos)}"
        spread = np.array([e or 0.0 for e in curve.stderr])
        mean = np.array(curve.mean)
        (lines[curve.demos],) = axis.plot(curve.x, mean, marker="o", color=colour)
        axis.fill_between(curve.x, mean - spread, mean + spread, color=colour, alpha=0.2)
        if curve.auto is not None:
            axis.plot(*curve.auto, marker="*", markersize=12, color=colour, markeredgecolor="black")
        theirs = [
            (p.reverse_step, p.mean)
            for p in published("reverse-step")
            if (p.task, p.demos) == (curve.task, curve.demos) and p.reverse_step is not None
        ]
        style = {"marker": "o", "markerfacecolor": "none", "linestyle": ":", "alpha": 0.6}
        axis.plot(*zip(*theirs, strict=True) if theirs else ([], []), color=colour, **style)
    axis.set_xscale("symlog", linthresh=10)
    tried = sorted({int(step) for curve in curves for step in curve.x})
    axis.set_xticks(tried, tried, fontsize="x-small")
    axis.grid(alpha=0.3)
    return lines


def draw_online(curves: Sequence[Curve], path: Path) -> None:
    """A panel for each task and set: a line for each method, the expert's return dashed."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    panels = sorted({(curve.task, curve.demos, curve.regime) for curve in curves})
    methods = list(dict.fromkeys(curve.method for curve in curves))
    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    figure = Figure(figsize=(5.5 * columns, 3.5 * lines + 0.5), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, panel in zip(axes.flat, panels, strict=False):
        for curve in curves:
            if (curve.task, curve.demos, curve.regime) == panel:
                colour = f"C{methods.index(curve.method)}"
                x, mean = np.array(curve.x) / 1e6, np.array(curve.mean)
                spread = np.array([e or 0.0 for e in curve.stderr])
                axis.plot(x, mean, marker=".", color=colour, label=curve.method)
                axis.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.2)
        task = TASKS.get(panel[0])
        if task is not None and task.expert_score is not None:
            axis.axhline(task.expert_score, color="grey", linestyle="--", label="the expert")
        axis.set_title(", ".join(dict.fromkeys(panel)))
        axis.set_xlabel("environment steps (millions)")
        axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel("return of the mean action ± standard error")
    legend_below(figure, axes.flat)
    save_figure(figure, path)
