"""Lines of results, seeds put together: one group for each method on one set of demonstrations.

A line that was written twice for a seed counts once, the later one. Runs of other settings (preset,
target, hyper-parameters, number of episodes) are other groups; what tells them apart anywhere in a
regime then stands in all their names.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from elute.report.paper import DEMONSTRATIONS, LABELS, Published, find
from elute.report.statistics import Estimate, estimate

Row = Mapping[str, Any]
TABLES = ("1", "noise", "mixed", "filters", "quality")
"""Of the paper, where a cell is looked for."""
_DEMOS = {name: k for k, name in enumerate(dict.fromkeys(LABELS.values()))}
_OF_PURIFIERS = ("purifier preset", "target")


class Place(NamedTuple):
    """What groups must share to be compared."""

    regime: str
    task: str
    demos: str


@dataclass(frozen=True)
class Group:
    """The seeds of one cell."""

    place: Place
    method: str
    step: str
    """Reverse step: a number, `auto`, `best` or `tuned` (of the numbers), or nothing."""
    variant: str
    """What tells it from another group of the same method and step, where there is one."""
    purified: bool
    seeds: tuple[int, ...]
    scores: tuple[float, ...]
    """Mean return of each seed."""
    ours: Estimate
    normalised: tuple[float, ...]
    """Of each seed: 0 random actions, 1 the expert."""
    success: tuple[float, ...]
    steps: tuple[int, ...]
    """The reverse step of each seed, where there is one."""
    paper: Published | None
    target: str = ""
    """What was purified, where anything was."""
    episodes: int = 0
    """Of all seeds."""
    readings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Success of each seed in other senses, where there are any."""
    learner: tuple[str, ...] = ()
    """Settings of the learner and its evaluation, which have nothing to do with a purifier."""
    lines: tuple[Row, ...] = field(default=(), repr=False)
    """Of each seed."""

    @property
    def chosen(self) -> tuple[int, ...]:
        """Reverse steps that were used, each once."""
        return tuple(sorted(set(self.steps)))

    @property
    def name(self) -> str:
        """For people: the method, and its step and settings where they matter."""
        step = f" @{self.step}" if self.step not in ("", "auto") else ""
        return f"{self.method}{step}{f' ({self.variant})' if self.variant else ''}"


Oracle = Callable[[Sequence[Group]], list[Group]]
"""Makes of fixed reverse steps what is known only when all have been tried."""


def grouped(rows: Sequence[Row]) -> list[Group]:
    """All groups, by place; within one, purified after unpurified, else as they came."""
    found: dict[tuple[Any, ...], dict[int, Row]] = {}
    for row in rows:
        if is_scored(row):
            found.setdefault(_key(row), {})[row["seed"]] = row
    lines = [[seeds[seed] for seed in sorted(seeds)] for seeds in found.values()]
    return sorted(_told_apart([_group(seeds) for seeds in lines]), key=_order)


def with_oracles(groups: Sequence[Group], *oracles: Oracle) -> list[Group]:
    """What these make of fixed steps, in their place; a step that was tried alone stays."""
    made = [found for oracle in oracles for found in oracle(groups)]
    swept = {_sweep(found) for found in made}
    kept = [g for g in groups if not (g.step.isdecimal() and _sweep(g) in swept)]
    return sorted([*kept, *made], key=_order)


def best_fixed(groups: Sequence[Group]) -> list[Group]:
    """What the best of several fixed reverse steps earned: known only when all have been tried.

    Its mean is too high: with few seeds it owes much to luck.
    """
    tops = (max(steps, key=lambda group: group.ours.mean) for steps in _sweeps(groups))
    return [replace(top, step="best", paper=printed(top.place, top.method, "")) for top in tops]


def tuned_fixed(groups: Sequence[Group]) -> list[Group]:
    """What a fixed reverse step earns that was found by testing: for each seed, with the others."""
    sweeps = [steps for steps in _sweeps(groups) if len(steps[0].seeds) > 1]
    return [
        _tuned([_best_without(steps, k) for k in range(len(steps[0].seeds))]) for steps in sweeps
    ]


def _sweeps(groups: Sequence[Group]) -> list[list[Group]]:
    """Of each place and method the steps that were tried with the same seeds, if several.

    Step 0 purifies nothing and is not among them; nor is one with fewer seeds than others.
    """
    swept: dict[tuple[Place, str, str, str], list[Group]] = {}
    for group in groups:
        if group.step.isdecimal() and group.step != "0":
            swept.setdefault(_sweep(group), []).append(group)
    most = {key: max((g.seeds for g in steps), key=len) for key, steps in swept.items()}
    whole = ([g for g in steps if g.seeds == most[key]] for key, steps in swept.items())
    return [steps for steps in whole if len(steps) > 1]


def _sweep(group: Group) -> tuple[Place, str, str, str]:
    """What steps of one sweep share."""
    return group.place, group.method, group.target, group.variant


def _best_without(steps: Sequence[Group], k: int) -> Group:
    return max(steps, key=lambda group: sum(group.scores) - group.scores[k])


def _tuned(found: Sequence[Group]) -> Group:
    """Of each seed, what the step earned that was found for it."""
    scores = tuple(group.scores[k] for k, group in enumerate(found))
    return replace(
        found[0],
        step="tuned",
        scores=scores,
        ours=estimate(scores),
        normalised=_of_each(found, [group.normalised for group in found]),
        success=_of_each(found, [group.success for group in found]),
        steps=tuple(int(group.step) for group in found),
        paper=None,
        readings={},
        lines=tuple(group.lines[k] for k, group in enumerate(found)),
    )


def _of_each(found: Sequence[Group], values: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Of the k-th group the k-th value, if all groups have one for every seed."""
    whole = all(len(of) == len(group.seeds) for group, of in zip(found, values, strict=True))
    return tuple(of[k] for k, of in enumerate(values)) if whole else ()


def is_scored(row: Row) -> bool:
    """Whether a run ended with a number; one that diverged has none."""
    mean = row["metrics"].get("mean")
    return isinstance(mean, int | float) and math.isfinite(mean)


def is_purified(row: Row) -> bool:
    """Whether the demonstrations were purified first."""
    return row["run"]["purifier"] is not None


def place(row: Row) -> Place:
    """Regime, task and demonstrations; real recordings and other sizes are regimes of their own."""
    regime, n = str(row["regime"]), row["run"].get("optimal_rows", 0)
    regime += f", {n} optimal rows" if n else ""
    if row["data"]:
        by = row["data"].get("realign", 0)
        regime += f", real files realigned by {by}" if by else ", real files as they are"
    return Place(regime, row["task"], row["demos"])


def step(row: Row) -> str:
    """Of a diffusion purifier: `auto`, or the step that was asked for."""
    if row.get("reverse_step") is None or not str(row["method"]).startswith("dp-"):
        return ""
    return "auto" if row.get("auto") else str(row["reverse_step"])


def _settings(row: Row) -> dict[str, str]:
    run = row["run"]
    told = {
        "preset": run["preset"],
        "purifier preset": (run["purifier"] or {}).get("preset"),
        "target": row.get("target"),
        "settings": run["settings"],
        "starts": run.get("starts", "stock"),
        "episodes": run.get("episodes"),
    }
    return {name: json.dumps(told[name], sort_keys=True, default=str) for name in told}


def _key(row: Row) -> tuple[Any, ...]:
    return (*place(row), row["method"], step(row), *_settings(row).values())


def _group(seeds: Sequence[Row]) -> Group:
    first = seeds[0]
    scores = tuple(float(row["metrics"]["mean"]) for row in seeds)
    where = place(first)
    return Group(
        place=where,
        method=str(first["method"]),
        step=step(first),
        variant="",
        purified=is_purified(first),
        seeds=tuple(row["seed"] for row in seeds),
        scores=scores,
        ours=_ours(seeds, scores),
        normalised=_metric(seeds, "normalised"),
        success=_metric(seeds, "success"),
        steps=tuple(int(row["reverse_step"]) for row in seeds if step(row)),
        paper=printed(where, str(first["method"]), step(first)),
        target=str(first.get("target") or ""),
        episodes=sum(len(row["metrics"].get("returns", ())) for row in seeds),
        readings={
            name: tuple(float(row["metrics"]["readings"][name]) for row in seeds)
            for name in first["metrics"].get("readings", {})
        },
        learner=tuple(
            value for name, value in _settings(first).items() if name not in _OF_PURIFIERS
        ),
        lines=tuple(seeds),
    )


def _ours(seeds: Sequence[Row], scores: Sequence[float]) -> Estimate:
    """Over the seeds; recorded episodes have none, and their spread is from one to the next."""
    if len(seeds) == 1 and seeds[0]["method"] == DEMONSTRATIONS:
        return replace(estimate(scores), stderr=seeds[0]["metrics"].get("stderr"))
    return estimate(scores)


def _metric(seeds: Iterable[Row], name: str) -> tuple[float, ...]:
    values = [row["metrics"].get(name) for row in seeds]
    return tuple(float(value) for value in values if value is not None)


def printed(where: Place, method: str, step: str) -> Published | None:
    """What the paper prints for this cell, if it does."""
    if step.isdecimal():
        return find("reverse-step", where.task, where.demos, method, int(step))
    cells = (find(table, where.task, where.demos, method) for table in TABLES)
    return next(filter(None, cells), None)


def _told_apart(made: Sequence[Group]) -> list[Group]:
    """Groups of one method and regime get the settings in which any of them differ as a name."""
    settings = [_settings(group.lines[0]) for group in made]
    alike: dict[tuple[Any, ...], list[int]] = {}
    for k, group in enumerate(made):
        alike.setdefault((group.place.regime, group.method), []).append(k)
    named = list(made)
    for same in alike.values():
        differ = [name for name in settings[same[0]] if len({settings[k][name] for k in same}) > 1]
        for k in same:
            words = (f"{name} {_plain(settings[k][name])}" for name in differ)
            named[k] = replace(named[k], variant=", ".join(words))
    return named


def _plain(value: str) -> str:
    return "default" if value == "{}" else value.strip('"').replace("null", "none")


def _order(group: Group) -> tuple[Any, ...]:
    regime, task, demos = group.place
    number = int(group.step) if group.step.isdecimal() else -1
    parts = re.split(r"(\d+)", regime)  # 50 rows stand before 200
    regimes = [int(part) if part.isdecimal() else part for part in parts]
    return regimes, task, _DEMOS.get(demos, len(_DEMOS)), demos, group.purified, number
