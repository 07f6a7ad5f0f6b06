"""`elute train`: policies from demonstrations, one for each seed."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from rich.table import Table

from elute.cli.arguments import open_first, parse_bounds
from elute.cli.show import out, print_json, progress, say
from elute.demos.audit.summary import Bounds
from elute.demos.output import check_output
from elute.envs.task import find_task
from elute.errors import EluteError
from elute.experiment.methods import METHODS, Method, find_method, with_bounds
from elute.experiment.parallel import Report, parallel
from elute.experiment.purifiers import PurifierOptions, check_purifier, make_purifier
from elute.experiment.settings import parse, with_settings
from elute.experiment.spec import split_method
from elute.experiment.training import Training, check_training, train
from elute.experiment.weights import check_weights_format, write_weights
from elute.learners.adversarial import OnlineMethod
from elute.learners.learner import Weighing
from elute.policy import save_policy
from elute.purify.clip import stated_bounds
from elute.rl.run import STATE
from elute.types import Demonstrations, DemoSet

STAGES = {
    "choosing the step": (0.0, 0.6),
    "fitting the purifier": (0.6, 0.9),
}
"""About where in a run each stage lies; learning alone is all of it, or the rest."""


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
    steps: int | None
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
        auto=options.purifier is not None
        and (options.purifier.reverse_step, options.purifier.preset) == ("auto", "default"),
        task=find_task(options.task) if options.task else None,
    )
    check_training(training, demos)
    seeds = list(range(options.seed, options.seed + options.seeds))
    _prepare(folder, seeds)
    job = partial(
        _train_one,
        training,
        demos,
        folder,
        weights=options.weights,
        board=options.tensorboard,
        told=_told(options),
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


def _learner(options: TrainOptions) -> Method:
    _check_not_of_experiments(options.method)
    learner = find_method(options.method, options.preset)
    learner = with_settings(learner, parse(options.settings))
    if options.steps is not None:
        if not isinstance(learner, OnlineMethod):
            raise EluteError(f"--steps: {options.method} does not play", hint="--set updates=N")
        learner = with_settings(learner, {"loop.env_steps": options.steps})
    if options.weights:
        check_weights_format(options.weights)
        if not isinstance(learner, Weighing):
            raise EluteError(f"--weights: {options.method} weighs no rows")
    if options.tensorboard and find_spec("tensorboard") is None:
        raise EluteError("--tensorboard needs tensorboard", hint="pip install 'elute[tensorboard]'")
    return learner


def _check_not_of_experiments(method: str) -> None:
    """Experiments write the purifier before the learner; here it has an option."""
    purifier, learner = split_method(method)
    if method not in METHODS and purifier and learner in METHODS:
        raise EluteError(
            f"{method!r} is a method of experiments", hint=f"{learner} --purify {purifier}"
        )


def _demos(options: TrainOptions) -> DemoSet:
    if not options.optimal and not options.supplementary:
        raise EluteError("nothing to learn from", hint="give --optimal, --supplementary or both")
    return DemoSet(
        _rows(options.optimal, options.optimal_rows), _rows(options.supplementary, options.rows)
    )


def _rows(spec: str, first: int | None) -> Demonstrations | None:
    """Of a file; none where none was given."""
    if not spec:
        return None
    source = open_first(spec, first)
    return source.rows(0, source.episodes.n_rows)


def _bounded(learner: Method, demos: DemoSet, options: TrainOptions) -> Method:
    """The learner with the bounds of options, task or file."""
    if isinstance(learner, OnlineMethod):
        if options.bounds:
            raise EluteError(f"--bounds: {options.method} has those of its task")
        return learner
    bounds = _bounds(demos, options)
    if bounds is None:
        say("no bounds are known, so actions are not clipped; --task or --bounds gives them")
        return learner
    width = demos.all.actions.shape[1]
    return with_bounds(learner, *(np.broadcast_to(b, width) for b in (bounds.low, bounds.high)))


def _bounds(demos: DemoSet, options: TrainOptions) -> Bounds | None:
    if options.task:
        task, rows = find_task(options.task), demos.all
        has = rows.observations.shape[1], rows.actions.shape[1]
        wants = task.n_observations, task.n_actions
        if has != wants:
            raise EluteError(
                f"{has[0]} observation and {has[1]} action columns; {task.name} has "
                f"{wants[0]} and {wants[1]}",
                hint="elute demos convert --adapt TASK fits older data",
            )
    if options.bounds:
        return parse_bounds(options.bounds)
    if options.task:
        return Bounds(*find_task(options.task).bounds)
    stated = stated_bounds(demos)
    return None if stated is None else stated[0]


def _prepare(folder: Path, seeds: list[int]) -> None:
    """Make the folder; say which policies in it are of other seeds."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EluteError(f"{folder}: cannot be made a folder: {error.strerror}") from error
    check_output(folder / "seed-0.safetensors")
    others = {file.name for file in folder.glob("seed-*.safetensors")}
    others -= {_file(folder, seed).name for seed in seeds}
    if others:
        say(f"warning: {folder} holds {', '.join(sorted(others))} from before")


def _file(folder: Path, seed: int) -> Path:
    return folder / f"seed-{seed}.safetensors"


def _train_one(
    training: Training,
    demos: DemoSet,
    folder: Path,
    seed: int,
    report: Report,
    *,
    weights: str,
    board: bool,
    told: Mapping[str, Any],
) -> dict[str, Any]:
    """One seed, from demonstrations to files."""
    last: dict[str, float] = {}
    played, events = (folder / part / f"seed-{seed}" for part in ("training", "tensorboard"))
    resumed = isinstance(training.learner, OnlineMethod) and (played / STATE).exists()
    pace = _Pace(seed, report)
    with _board(events if board else None, keep=resumed) as write:

        def log(row: Mapping[str, float]) -> None:
            last.update(row)
            write(row)
            if "score" in row:
                pace.tell(row)

        trained = train(training, demos, seed, folder=played, report=report, log=log)
    about = dict(trained.policy.about) | {"seed": seed, **told}
    if trained.reverse_step is not None:
        about["reverse_step"] = trained.reverse_step
    path = folder / f"diverged-{seed}.safetensors" if trained.diverged else _file(folder, seed)
    save_policy(replace(trained.policy, about=about), path)
    written = {path}
    if weights and trained.weights is not None:
        written.add(folder / f"weights-{seed}.{weights}")
        write_weights(trained.weights, folder / f"weights-{seed}.{weights}")
    _remove_older(folder, seed, written)
    if not board and not resumed:
        shutil.rmtree(events, ignore_errors=True)
    return {
        "seed": seed,
        "policy": str(path),
        "task": about.get("task"),
        "reverse_step": about.get("reverse_step"),
        "seconds": round(trained.seconds, 2),
        "losses": {k: v for k, v in last.items() if k not in ("update", "updates")},
        "diverged": trained.diverged,
        **({} if trained.curve is None else {"curve": trained.curve}),
    }


def _remove_older(folder: Path, seed: int, written: set[Path]) -> None:
    """Nothing of an earlier training may pass for this one's, once there is something new."""
    for old in set(folder.glob(f"*-{seed}.*")) - written:
        if old.name.split("-")[0] in ("seed", "diverged", "weights"):
            old.unlink(missing_ok=True)


class _Pace:
    """Says how a method that plays is doing, after each evaluation."""

    def __init__(self, seed: int, report: Report) -> None:
        self.seed, self.report, self.began, self.first = seed, report, monotonic(), 0

    def tell(self, row: Mapping[str, float]) -> None:
        """A line of the curve, the pace and what is left."""
        done, total = int(row["env_steps"]), int(row["updates"])
        seconds = monotonic() - self.began
        pace = (done - self.first) / max(seconds, 1e-9)
        if not self.first:  # what an earlier run had done is not this one's pace
            pace, self.first, self.began = done / max(row["seconds"], 0.1), done, monotonic()
        left = (total - done) / pace / 60
        self.report(
            f"seed {self.seed}: {done:>9,} steps: mean return {row['score']:8.1f}, "
            f"{pace:,.0f} steps/s, {left:.1f} min to go",
            done,
            total,
        )


@contextmanager
def _board(folder: Path | None, *, keep: bool) -> Iterator[Callable[[Mapping[str, float]], None]]:
    """Writes losses as TensorBoard event files, if asked to; earlier ones are kept or replaced.

    Nothing is touched before the first losses: a run may be refused until then.
    """
    if folder is None:
        yield lambda row: None
        return
    from torch.utils.tensorboard import SummaryWriter

    with ExitStack() as stack:
        writers: list[SummaryWriter] = []

        def write(row: Mapping[str, float]) -> None:
            if not writers:
                if not keep:
                    shutil.rmtree(folder, ignore_errors=True)
                writers.append(stack.enter_context(SummaryWriter(folder)))
            for name, value in row.items():
                if name not in ("update", "updates"):
                    writers[0].add_scalar(name, value, int(row["update"]))

        yield write


@contextmanager
def _progress(n_seeds: int) -> Iterator[Callable[[int, str, int, int], None]]:
    """A bar over all seeds."""
    shares = [0.0] * n_seeds
    with progress("training") as update:

        def told(i: int, what: str, done: int, total: int) -> None:
            if what.startswith("seed "):
                say(what)
            before, after = STAGES.get(what, (0.0, 1.0))
            shares[i] = max(shares[i], before + (after - before) * done / max(total, 1))
            update(round(100 * sum(shares)), 100 * n_seeds)

        yield told


def _told(options: TrainOptions) -> dict[str, Any]:
    """What was asked for, for the policy and the report."""
    purifier = options.purifier
    return {
        "preset": options.preset,
        "settings": parse(options.settings),
        "purifier": None if purifier is None else purifier.to_json(),
    }


def _report(options: TrainOptions, demos: DemoSet, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "method": options.method,
        **_told(options),
        "sources": [given.provenance.source for given in demos.given],
        "rows": [len(given) for given in demos.given],
        "seeds": rows,
    }


def _show(report: dict[str, Any]) -> None:
    table = Table("seed", "policy", "seconds", "reverse step", "last losses", box=None)
    for row in report["seeds"]:
        losses = ", ".join(f"{name} {value:.4g}" for name, value in row["losses"].items())
        step = "-" if row["reverse_step"] is None else str(row["reverse_step"])
        table.add_row(str(row["seed"]), row["policy"], f"{row['seconds']:.1f}", step, losses)
    out.print(table)
