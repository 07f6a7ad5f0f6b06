"""Curves over the reverse step or over steps of an environment, rebuilt from lines of results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elute.demos.output import output
from elute.report.paper import published
from elute.report.statistics import estimate

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Curve:
    """Means over seeds, and their standard errors."""

    task: str
    demos: str
    method: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    stderr: tuple[float | None, ...]


def reverse_step_curves(rows: Sequence[Row]) -> list[Curve]:
    """The return at each reverse step that was given, for each task and set."""
    found: dict[tuple[str, str, str], dict[int, dict[int, float]]] = {}
    for row in rows:
        if row["method"].startswith("dp-") and not row["auto"] and row["reverse_step"] is not None:
            key = (row["task"], row["demos"], row["method"])
            seeds = found.setdefault(key, {}).setdefault(int(row["reverse_step"]), {})
            seeds[row["seed"]] = float(row["metrics"]["mean"])
    curves = []
    for (task, demos, method), steps in sorted(found.items()):
        if len(steps) > 1:
            at = {step: estimate(list(seeds.values())) for step, seeds in sorted(steps.items())}
            curves.append(
                Curve(
                    task,
                    demos,
                    method,
                    tuple(map(float, at)),
                    tuple(e.mean for e in at.values()),
                    tuple(e.stderr for e in at.values()),
                )
            )
    return curves


def as_json(curves: Sequence[Curve]) -> dict[str, Any]:
    """For machines."""
    return {
        "curves": [
            {
                "task": c.task,
                "demos": c.demos,
                "method": c.method,
                "x": list(c.x),
                "mean": list(c.mean),
                "stderr": list(c.stderr),
            }
            for c in curves
        ]
    }


def draw_reverse_step(curves: Sequence[Curve], path: Path) -> None:
    """Ours as lines with standard errors, the paper's as hollow points."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    tasks = sorted({curve.task for curve in curves})
    figure = Figure(figsize=(5 * len(tasks), 4), layout="constrained")
    axes = figure.subplots(1, len(tasks), squeeze=False)[0]
    for axis, task in zip(axes, tasks, strict=True):
        for i, curve in enumerate(c for c in curves if c.task == task):
            colour = f"C{i}"
            spread = np.array([e or 0.0 for e in curve.stderr])
            mean = np.array(curve.mean)
            axis.plot(curve.x, mean, marker="o", color=colour, label=curve.demos)
            axis.fill_between(curve.x, mean - spread, mean + spread, color=colour, alpha=0.2)
            theirs = [
                p
                for p in published("reverse-step")
                if (p.task, p.demos) == (task, curve.demos) and p.reverse_step is not None
            ]
            axis.plot(
                [p.reverse_step or 0 for p in theirs],
                [p.mean for p in theirs],
                marker="o",
                markerfacecolor="none",
                linestyle=":",
                color=colour,
                alpha=0.6,
            )
        axis.set_xscale("symlog", linthresh=10)
        axis.set_title(task)
        axis.set_xlabel("reverse step (dotted: the paper)")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    axes[0].set_ylabel("mean return")
    with output(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lstrip(".") or "png", dpi=120)
