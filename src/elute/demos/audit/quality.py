"""Quality of each episode as separate numbers, never one score.

A measurement is a number, "not measurable" (too short, no rewards, a single episode) or "error"
(the episode holds values that are not finite). A failed measurement is never a zero.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from elute.demos.audit.finding import Finding, counted, listed
from elute.demos.audit.sample import spread
from elute.demos.audit.summary import Summary
from elute.episodes import Array, Episodes

MEASURES = ("length", "return", "velocity", "jerk", "idle_start", "idle_end", "end_distance")
NOT_MEASURABLE, ERROR = "not measurable", "error"
IDLE = 0.05
"""A row is idle when the state moves less than this share of a brisk step (75th percentile)."""
OUTLYING = 5.0
"""Robust standard deviations from the median that make an episode stand out."""
FEWEST_EPISODES = 5
"""With less there is no usual to stand out from."""


def episode_quality(summary: Summary, episodes: Episodes) -> list[dict[str, Any]]:
    """The measurements of each episode."""
    starts, lengths = episodes.starts, episodes.lengths
    broken = np.zeros(len(episodes), dtype=bool)
    broken[np.searchsorted(episodes.stops, summary.non_finite, side="right")] = True
    idle_start, idle_end = _idle(summary.speed, episodes)
    columns: dict[str, Array] = {
        "velocity": _mean(summary.speed, starts),
        "jerk": _mean(summary.jerk, starts),
        "idle_start": idle_start,
        "idle_end": idle_end,
        "end_distance": _end_distance(summary.last_states),
    }
    returns = np.add.reduceat(summary.rewards, starts) if summary.rewards is not None else starts
    return [
        {
            "episode": i,
            "length": int(lengths[i]),
            "return": NOT_MEASURABLE if summary.rewards is None else _measured(returns[i]),
            **{
                name: ERROR if broken[i] else _measured(values[i], unknown=NOT_MEASURABLE)
                for name, values in columns.items()
            },
        }
        for i in range(len(episodes))
    ]


def _measured(value: float, unknown: str = ERROR) -> float | str:
    return float(f"{value:.6g}") if np.isfinite(value) else unknown


def _mean(values: Array, starts: Array) -> Array:
    """Mean over each episode of the rows that have a value."""
    counted = np.isfinite(values) | np.isinf(values)
    total = np.add.reduceat(np.where(counted, values, 0).astype(np.float64), starts)
    count = np.add.reduceat(counted.astype(np.int64), starts)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _idle(speed: Array, episodes: Episodes) -> tuple[Array, Array]:
    """Share of each episode's moves before the first and after the last real one."""
    finite = speed[np.isfinite(speed)]
    brisk = np.percentile(finite, 75) if len(finite) else 0.0
    moving = (
        np.nan_to_num(speed, nan=0.0) >= IDLE * brisk if brisk > 0 else np.zeros(len(speed), bool)
    )
    rows = np.arange(len(speed))
    starts, stops = episodes.starts, episodes.stops
    first = np.minimum.reduceat(np.where(moving, rows, len(speed)), starts)
    last = np.maximum.reduceat(np.where(moving, rows, -1), starts)
    moves = np.where(episodes.lengths > 1, episodes.lengths - 1, np.nan)
    never = first >= stops
    before = np.where(never, 1.0, (first - starts - 1) / moves)
    after = np.where(never, 1.0, (stops - 1 - last) / moves)
    return np.where(np.isnan(moves), np.nan, before), np.where(np.isnan(moves), np.nan, after)


def _end_distance(last_states: Array) -> Array:
    """Distance of each end pose from the median end pose, in standard deviations per column."""
    if len(last_states) < 2:
        return np.full(len(last_states), np.nan)
    finite = np.isfinite(last_states).all(axis=1)
    usual = last_states[finite]
    if len(usual) < 2:
        return np.full(len(last_states), np.nan)
    scale = spread(usual)
    varies = scale > 0
    if not varies.any():
        return np.where(finite, 0.0, np.nan)
    with np.errstate(invalid="ignore"):
        away = (last_states - np.median(usual, axis=0))[:, varies] / scale[varies]
        distance: Array = np.sqrt((away**2).mean(axis=1))
    return distance


def quality_findings(quality: list[dict[str, Any]]) -> list[Finding]:
    """Episodes that stand out, measure by measure, and idle beginnings and ends."""
    findings = []
    for name in MEASURES:
        values = {row["episode"]: row[name] for row in quality if not isinstance(row[name], str)}
        outlying = _outlying(values) if not name.startswith("idle") else []
        if outlying:
            median = float(np.median(list(values.values())))
            shown = listed([f"{e} ({values[e]:.4g})" for e in outlying])
            findings.append(
                Finding(
                    "outlying-episodes",
                    "note",
                    f"{name} of {counted(len(outlying), 'episode')} is far from the usual "
                    f"{median:.4g}: {shown}",
                    "look at these episodes; leave them out with FILE#episodes=... if they are bad",
                    numbers={"measure": name, "median": median, "episodes": outlying},
                )
            )
    idle = [row["episode"] for row in quality if _is_idle(row)]
    if idle:
        findings.append(
            Finding(
                "idle-ends",
                "note",
                f"{len(idle)} of {len(quality)} episodes stand still for over a fifth of their "
                f"length at the start or end: episodes {listed(idle)}",
                "a learner imitates the waiting too; trim it if it is not part of the task",
                numbers={"episodes": idle},
            )
        )
    return findings


def _is_idle(row: Mapping[str, Any]) -> bool:
    return any(isinstance(row[k], float) and row[k] > 0.2 for k in ("idle_start", "idle_end"))


def _outlying(values: Mapping[int, float]) -> list[int]:
    if len(values) < FEWEST_EPISODES:
        return []
    numbers = np.array(list(values.values()), dtype=np.float64)
    away = np.abs(numbers - np.median(numbers))
    spread = max(1.4826 * float(np.median(away)), 0.01 * abs(float(np.median(numbers))))
    if spread == 0:
        return []
    return [episode for episode, far in zip(values, away > OUTLYING * spread, strict=True) if far]
