"""Curves over the reverse step or over steps of an environment, rebuilt from lines of results."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from elute.demos.output import output
from elute.envs.task import TASKS
from elute.report.groups import Group, Place, Row, grouped, place
from elute.report.paper import published
from elute.report.statistics import estimate


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


def reverse_step_curves(rows: Sequence[Row]) -> list[Curve]:
    """The return at each reverse step that was given, for each regime, task and set."""
    found: dict[tuple[Place, str], list[Group]] = {}
    for group in grouped(rows):
        if group.step.isdecimal():
            key = group.place, f"{group.method} {group.variant}".rstrip()
            found.setdefault(key, []).append(group)
    return [
        Curve(
            **place._asdict(),
            method=method,
            x=tuple(float(group.step) for group in steps),
            mean=tuple(group.ours.mean for group in steps),
            stderr=tuple(group.ours.stderr for group in steps),
        )
        for (place, method), steps in found.items()
        if len(steps) > 1
    ]


def online_curves(rows: Sequence[Row]) -> list[Curve]:
    """The return over steps of the environment, of methods that play; a curve for each variant.

    A standard error is over seeds. Where some seeds played longer than others, the curve ends with
    the shortest.
    """
    found: dict[tuple[str, ...], dict[int, Row]] = {}
    for row in rows:
        if row.get("curve"):
            regime, task, demos = place(row)
            key = (regime, task, demos, row["method"], *_variant(row))
            found.setdefault(key, {})[row["seed"]] = row["curve"]
    common = {key[:4] for key in found if sum(other[:4] == key[:4] for other in found) > 1}
    curves = []
    for key, seeds in sorted(found.items()):
        regime, task, demos, method, *more = key
        told = ", ".join(filter(None, more)) or "default"
        name = f"{method} ({told})" if key[:4] in common else method
        steps = min((tuple(curve["steps"]) for curve in seeds.values()), key=len)
        ends = [dict(zip(c["steps"], c["mean"], strict=True)) for c in seeds.values()]
        at = {
            step: estimate([e[step] for e in ends])
            for step in steps
            if all(step in e for e in ends)
        }
        curves.append(
            Curve(
                regime,
                task,
                demos,
                name,
                tuple(map(float, at)),
                tuple(e.mean for e in at.values()),
                tuple(e.stderr for e in at.values()),
            )
        )
    return curves


def _variant(row: Row) -> tuple[str, ...]:
    """What tells runs of one method apart, beside the seed and how long they played."""
    run = row["run"]
    settings = {k: v for k, v in run["settings"].items() if k != "loop.env_steps"}
    purifier = run["purifier"] or {}
    step = str(purifier.get("reverse_step", ""))
    return (
        "" if run["preset"] == "default" else f"preset {run['preset']}",
        f"step {step}" if step.isdecimal() else "",
        ", ".join(f"{k}={v}" for k, v in sorted(settings.items())),
    )


def as_json(curves: Sequence[Curve]) -> dict[str, Any]:
    """For machines."""
    return {"curves": [asdict(curve) for curve in curves]}


def draw_reverse_step(curves: Sequence[Curve], path: Path) -> None:
    """Ours as lines with standard errors, the paper's as hollow points; a row for each regime."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    regimes, tasks = (list(dict.fromkeys(map(attrgetter(n), curves))) for n in ("regime", "task"))
    demos = list(dict.fromkeys(curve.demos for curve in curves))
    figure = Figure(figsize=(4 * len(tasks), 3.5 * len(regimes) + 0.5), layout="constrained")
    axes = figure.subplots(len(regimes), len(tasks), squeeze=False)
    shown: dict[str, Any] = {}
    for (i, regime), (j, task) in product(enumerate(regimes), enumerate(tasks)):
        mine = [c for c in curves if (c.regime, c.task) == (regime, task)]
        shown |= _draw(axes[i, j], mine, demos)
        axes[i, j].set_title(f"{task}, {regime}")
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=6)
    for axis in axes[:, 0]:
        axis.set_ylabel("mean return")
    for axis in axes[-1]:
        axis.set_xlabel("reverse step (dotted: the paper)")
    with output(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lstrip(".") or "png", dpi=120)


def _draw(axis: Any, curves: Sequence[Curve], demos: list[str]) -> dict[str, Any]:  # noqa: ANN401
    """The curves of one task and regime; returns a line for each set."""
    lines = {}
    for curve in curves:
        colour = f"C{demos.index(curve.demos)}"
        spread = np.array([e or 0.0 for e in curve.stderr])
        mean = np.array(curve.mean)
        (lines[curve.demos],) = axis.plot(curve.x, mean, marker="o", color=colour)
        axis.fill_between(curve.x, mean - spread, mean + spread, color=colour, alpha=0.2)
        theirs = [
            (p.reverse_step, p.mean)
            for p in published("reverse-step")
            if (p.task, p.demos) == (curve.task, curve.demos) and p.reverse_step is not None
        ]
        style = {"marker": "o", "markerfacecolor": "none", "linestyle": ":", "alpha": 0.6}
        axis.plot(*zip(*theirs, strict=True) if theirs else ([], []), color=colour, **style)
    axis.set_xscale("symlog", linthresh=10)
    axis.grid(alpha=0.3)
    return lines


def draw_online(curves: Sequence[Curve], path: Path) -> None:
    """A panel for each task and set: a line for each method, the expert's return dashed."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    panels = sorted({(curve.task, curve.demos, curve.regime) for curve in curves})
    methods = list(dict.fromkeys(curve.method for curve in curves))
    figure = Figure(figsize=(5 * len(panels), 4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=True):
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
        axis.set_title(", ".join(panel))
        axis.set_xlabel("environment steps (millions)")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    axes[0].set_ylabel("mean return of the mean action")
    with output(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lstrip(".") or "png", dpi=120)
