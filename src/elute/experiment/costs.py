"""What a grid will cost: seconds of its stages, from lines that were measured.

A run costs what runs like it took on average: the same method in the same task, else the same
method, else what it took where this was written. Stages that runs share are counted once.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from elute.experiment.spec import Run, is_online, split_method
from elute.learners.adversarial import OnlineMethod

GUESS = {"choose": 17.0, "fit": 8.0, "purify": 0.2, "train": 5.0, "evaluate": 2.0}
"""Seconds on one core of a machine of 2026, where nothing was measured."""
TRAIN = {
    "bc-opt": 15.0,
    "bcnd": 12.0,
    "dwbc": 9.0,
    "isw-bc": 14.0,
    "demodice": 42.0,
    "smodice": 31.0,
    "dbc": 20.0,
}
"""Of learners that take longer than most."""
STEPS_PER_SECOND = 5000.0
"""Of methods that play, where nothing like it was measured."""
SHARED = ("choose", "fit", "purify")
"""Stages that do not depend on the learner."""


def estimate(runs: Sequence[Run], rows: Sequence[Mapping[str, Any]]) -> float:
    """Seconds on one core, with everything that can be shared done once."""
    known, total, paid = _Known(rows), 0.0, set()
    for run in runs:
        for stage, seconds in known.seconds(run).items():
            key = (stage, *_shared(run, stage))
            if key not in paid:
                paid.add(key)
                total += seconds
    return total


def _shared(run: Run, stage: str) -> tuple[object, ...]:
    """What runs have in common that share a stage; else all of the run."""
    optimal = stage == "train" and getattr(run.learner(), "on", "") == "optimal"
    if optimal:  # the same beside any D_s
        learner = str(run.learner())
        return run.task, run.regime, run.optimal_rows, run.seed, run.method, learner
    if stage not in SHARED:
        return (json.dumps(run.to_json(), sort_keys=True),)
    assert run.purifier is not None
    purifier = run.purifier if stage == "purify" else replace(run.purifier, reverse_step="auto")
    where = run.task, run.demos, run.regime, run.optimal_rows, run.seed
    return (*where, run.max_step, purifier)


class _Known:
    """Mean seconds of each stage, by method and task, and by method."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        measured: dict[tuple[str, ...], list[float]] = {}
        for row in rows:
            for stage, seconds in row.get("timings", {}).items():
                for key in ((row["method"], row["task"], stage), (row["method"], stage), (stage,)):
                    measured.setdefault(key, []).append(float(seconds))
        self.mean = {key: fmean(values) for key, values in measured.items()}

    def seconds(self, run: Run) -> dict[str, float]:
        stages = ["train", "evaluate"] if run.learns else []
        if run.purifier is not None:
            stages += ["fit", "purify", *(["choose"] if run.auto else [])]
        return {stage: self._one(run, stage) for stage in stages}

    def _one(self, run: Run, stage: str) -> float:
        plays = stage == "train" and is_online(run.method)
        keys = (run.method, run.task, stage), (run.method, stage), (stage,)
        for key in keys[:2] if stage == "train" else keys:  # learners differ, other stages do not
            if key in self.mean:
                return self.mean[key]
        if plays:
            return _playing(run)
        learner = split_method(run.method)[1]
        return TRAIN.get(learner, GUESS[stage]) if stage == "train" else GUESS[stage]


def _playing(run: Run) -> float:
    learner = run.learner()
    assert isinstance(learner, OnlineMethod)
    return learner.loop.env_steps / STEPS_PER_SECOND
