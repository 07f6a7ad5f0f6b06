"""`elute train`: policies from demonstrations, one for each seed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from elute.cli.arguments import named, parse_bounds
from elute.cli.purifier import PurifierOptions, check_purifier, make_purifier
from elute.cli.show import out, print_json, progress, say
from elute.demos.files import open_demos
from elute.demos.output import check_output
from elute.envs.task import find_task
from elute.errors import EluteError
from elute.experiment.methods import find_method
from elute.experiment.parallel import Report, parallel
from elute.experiment.settings import parse, with_settings
from elute.experiment.training import Training, train
from elute.experiment.weights import check_weights_format, write_weights
from elute.learners.actor import Design
from elute.learners.learner import Learner
from elute.policy import save_policy
from elute.purify.clip import action_bounds
from elute.types import Demonstrations, DemoSet


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """What `elute train` was told, word for word."""

    method: str
    optimal: str
    supplementary: str
    optimal_rows: int | None
    rows: int | None
    preset: str
    settings: list[str]
    purifier: PurifierOptions | None
    task: str
    bounds: str
    seed: int
    seeds: int
    jobs: int
    weights: str
    tensorboard: bool
    as_json: bool


def run(folder: Path, options: TrainOptions) -> int:
    """Train and say what came of it; 1 if a run diverged."""
    learner = _learner(options)
    if options.purifier is not None:
        check_purifier(options.purifier)
    demos = _demos(options)
    learner = _bounded(learner, demos, options)
    training = Training(
        learner=learner,
        purifier=None if options.purifier is None else make_purifier(options.purifier),
        auto=options.purifier is not None and options.purifier.reverse_step == "auto",
    )
    seeds = list(range(options.seed, options.seed + options.seeds))
    _prepare(folder, seeds)
    job = partial(
        _train_one, training, demos, folder, weights=options.weights, board=options.tensorboard
    )
    rows = []
    with _progress(len(seeds)) as told:
        for _, row in parallel(job, seeds, jobs=options.jobs, progress=told):
            rows.append(row)
            if row["diverged"]:
                say(f"seed {row['seed']}: {row['diverged']}; the last good weights are kept")
    rows.sort(key=lambda row: int(row["seed"]))
    report = _report(options, demos, rows)
    if options.as_json:
        print_json(report)
    else:
        _show(report)
    done = [row for row in rows if not row["diverged"]]
    if done:
        task = options.task or str(done[0]["task"] or "TASK")
        say(f"wrote {len(done)} to {folder}; elute evaluate {folder} --task {task} scores them")
    return 0 if len(done) == len(rows) else 1


def _learner(options: TrainOptions) -> Learner:
    learner = find_method(options.method, options.preset)
    learner = with_settings(learner, parse(options.settings))
    if options.weights:
        check_weights_format(options.weights)
        if not hasattr(learner, "weigh"):
            raise EluteError(f"--weights: {options.method} weighs no rows")
    if options.tensorboard and find_spec("tensorboard") is None:
        raise EluteError("--tensorboard needs tensorboard", hint="pip install 'elute[tensorboard]'")
    return learner


def _demos(options: TrainOptions) -> DemoSet:
    if not options.optimal and not options.supplementary:
        raise EluteError("nothing to learn from", hint="give --optimal, --supplementary or both")
    return DemoSet(
        _first(options.optimal, options.optimal_rows), _first(options.supplementary, options.rows)
    )


def _first(spec: str, rows: int | None) -> Demonstrations | None:
    """A file, or only its first rows; none where none was given."""
    if not spec:
        return None
    source = open_demos(named(spec))
    n = source.episodes.n_rows
    return source.rows(0, n if rows is None else min(rows, n))


def _bounded(learner: Learner, demos: DemoSet, options: TrainOptions) -> Learner:
    """The learner with an actor that keeps to the bounds of task, options or file."""
    design = getattr(learner, "actor", None)
    if not isinstance(design, Design) or design.bounds is not None:
        return learner
    width = demos.all.actions.shape[1]
    if options.bounds:
        low, high = (np.broadcast_to(side, width) for side in _given(options.bounds))
    elif options.task:
        task = find_task(options.task)
        low, high = np.asarray(task.action_low), np.asarray(task.action_high)
        _check_task(options.task, demos, task.n_observations, task.n_actions)
    else:
        stated, said_by = action_bounds(demos)
        if "recorded" in said_by:
            return learner
        low, high = np.broadcast_to(stated.low, width), np.broadcast_to(stated.high, width)
    sides = tuple(low.tolist()), tuple(high.tolist())
    return replace(learner, actor=replace(design, bounds=sides))  # type: ignore[type-var]
