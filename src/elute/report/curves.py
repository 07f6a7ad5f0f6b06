"""Curves over the reverse step or over steps of an environment, rebuilt from lines of results."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from elute.demos.output import output
from elute.report.groups import Group, Place, Row, grouped
from elute.report.paper import published


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


def as_json(curves: Sequence[Curve]) -> dict[str, Any]:
    """For machines."""
    return {"curves": [asdict(curve) for curve in curves]}


def draw_reverse_step(curves: Sequence[Curve], path: Path) -> None:
    """Ours as lines with standard errors, the paper's as hollow points; a row for each regime."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    regimes, tasks = (list(dict.fromkeys(map(attrgetter(n), curves))) for n in ("regime", "task"))
    figure = Figure(figsize=(5 * len(tasks), 4 * len(regimes)), layout="constrained")
    axes = figure.subplots(len(regimes), len(tasks), squeeze=False)
    for (i, regime), (j, task) in product(enumerate(regimes), enumerate(tasks)):
        _draw(axes[i, j], [c for c in curves if (c.regime, c.task) == (regime, task)])
        axes[i, j].set_title(f"{task}, {regime}")
    for axis in axes[:, 0]:
        axis.set_ylabel("mean return")
    for axis in axes[-1]:
        axis.set_xlabel("reverse step (dotted: the paper)")
    with output(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lstrip(".") or "png", dpi=120)


def _draw(axis: Any, curves: Sequence[Curve]) -> None:  # noqa: ANN401 (matplotlib is an extra)
    """The curves of one task and regime."""
    for i, curve in enumerate(curves):
        colour = f"C{i}"
        spread = np.array([e or 0.0 for e in curve.stderr])
        mean = np.array(curve.mean)
        axis.plot(curve.x, mean, marker="o", color=colour, label=curve.demos)
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
    if curves:
        axis.legend(fontsize=8)
