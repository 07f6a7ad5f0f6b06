"""One run of a grid, from demonstrations to a line of results.

    data -> reverse step -> model -> purified D_s -> policy -> returns

Each stage is kept under the digest of what it depends on, and of how numbers are rounded, so runs
share what they have in common: a model serves every reverse step of a sweep, purified
demonstrations every learner. How long a stage took is kept with it; a line says what its run would
take of a core alone, and how long it did take.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from elute.collect import catalogue
from elute.demos.files import load, save
from elute.envs.task import find_task
from elute.errors import EluteError
from elute.evaluation import SEED, Evaluation, evaluate, recorded
from elute.experiment.arithmetic import arithmetic
from elute.experiment.data import run_demos, run_task
from elute.experiment.methods import Method, with_bounds
from elute.experiment.parallel import Report
from elute.experiment.purifiers import make_purifier
from elute.experiment.spec import Data, Run, is_online
from elute.experiment.stages import digest, stage
from elute.experiment.training import Training, check_training, chosen_step
from elute.learners.adversarial import OnlineMethod
from elute.learners.imitate import imitate
from elute.policy import StoredPolicy, load_policy, save_policy
from elute.purify.artefact import load_transform, save_transform
from elute.purify.diffusion import DiffusionPurifier
from elute.purify.purifier import Purifier, Transform
from elute.purify.select import choose_reverse_step, trained_up_to
from elute.rng import Seeds
from elute.types import DemoSet

NUMBERS = 1
"""Raised whenever the code makes other numbers of the same settings."""
CHOICE = 4
"""Raised whenever another reverse step may be chosen from the same data."""
YOUNGER = {"starts": "stock", "optimal_rows": 0}
"""Settings that came after the first lines, and what was done before."""
VERSIONS = ("elute", "torch", "numpy", "mujoco", "gymnasium")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a run finds its data and keeps its stages."""

    cache: Path
    data: Data | None = None
    folder: Path | None = None
    """Of the files that `data` names."""


def source(run: Run, place: Place) -> dict[str, str]:
    """Digests of the files a run reads, without making them."""
    optimal = optimal_source(run, place)
    if place.data is None or place.folder is None:
        name = f"{run.task}/{run.demos}"
        return optimal | {name: catalogue.digest(name)}
    name = place.data.demos[run.demos]
    return optimal | {name: _file_digest(place.folder / name)}


def optimal_source(run: Run, place: Place) -> dict[str, str]:
    """Of what D_o comes from alone."""
    if place.data is None:
        name = catalogue.optimal_beside(f"{run.task}/{run.demos}")
        return {name: catalogue.digest(name)}
    if place.folder is None:
        raise EluteError("the experiment reads files", hint="say where they are: --data FOLDER")
    name = place.data.optimal
    return {name: _file_digest(place.folder / name), "realign": str(place.data.realign)}


@lru_cache(maxsize=64)
def _file_digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise EluteError(f"{path}: cannot be read: {error.strerror}") from error


def run_digest(run: Run, place: Place) -> str:
    """Of configuration and data: two runs of one digest have the same numbers."""
    return digest(_facts(run, place) | {"run": _settings(run)} | _choosing(run))


def _choosing(run: Run) -> dict[str, Any]:
    """How the step was chosen, and the network that purifies trained, if it was."""
    if not run.auto:
        return {}
    return {"choice": CHOICE} | ({"aim": "actions"} if is_online(run.method) else {})


def _settings(run: Run) -> dict[str, Any]:
    """All of a run, with every hyper-parameter, so that another default is another run."""
    made = None if run.purifier is None else _json(make_purifier(run.purifier))
    facts: dict[str, Any] = _json(replace(run, purifier=None))
    learner: dict[str, Any] | None = _json(run.learner()) if run.learns else None
    for name, default in YOUNGER.items():
        if facts[name] == default:
            del facts[name]
    return facts | {"learner": learner, "purifier": made, "auto": run.auto}


def _facts(run: Run, place: Place) -> dict[str, Any]:
    """What every stage of a run depends on."""
    rows = {"seed": run.seed} if run.regime == "spread" else {}
    if run.optimal_rows:
        rows |= {"optimal_rows": run.optimal_rows}
    return {"numbers": NUMBERS, "source": source(run, place), "regime": run.regime, **rows}


def run_cell(run: Run, place: Place, report: Report) -> dict[str, Any]:
    """A line of results.

    Raises:
        EluteError: the method cannot run on these demonstrations.
    """
    began = perf_counter()
    target, step, curve, timings = None, None, None, Timings()
    if run.learns:
        cell = _Cell(run, place, report)
        policy, step, timings, curve = cell.policy()
        target = getattr(cell.purifier, "target", None)
        evaluating = process_time()
        report("evaluating", 0, 1)
        score = evaluate(policy, run_task(run), episodes=run.episodes, seed=SEED + run.seed)
        timings = timings | {"evaluate": process_time() - evaluating}
    else:
        score = recorded(
            find_task(run.task), run_demos(run, place.data, place.folder).supplementary
        )
    return {
        "digest": run_digest(run, place),
        "method": run.method,
        "task": run.task,
        "demos": run.demos,
        "regime": run.regime,
        "target": target,
        "reverse_step": step,
        "auto": run.auto,
        "seed": run.seed,
        "run": run.to_json(),
        "data": None if place.data is None else _json(place.data),
        "metrics": metrics(score),
        **({} if curve is None else {"curve": curve}),
        "timings": {name: round(seconds, 2) for name, seconds in timings.items()},
        "spent": round(perf_counter() - began, 2),
        "versions": {name: version(name) for name in VERSIONS} | {"arithmetic": arithmetic()},
    }


def metrics(score: Evaluation) -> dict[str, Any]:
    """What a policy earned; success in other senses where there are any."""
    readings = {name: float(np.mean(seen)) for name, seen in score.readings.items()}
    return {
        "mean": score.mean,
        "stderr": score.stderr,
        "normalised": score.normalised,
        "success": score.success,
        "returns": list(score.returns),
        "successes": [None if won is None else int(won) for won in score.successes],
        "lengths": list(score.lengths),
        **({"readings": readings} if readings else {}),
    }


Timings = dict[str, float]
"""Seconds of a core for each stage, as if nothing had been kept."""


class _Cell:
    """The stages of a run. Each returns what it made and the timings of all that led to it."""

    def __init__(self, run: Run, place: Place, report: Report) -> None:
        self.run, self.place, self.report = run, place, report
        self.demos = run_demos(run, place.data, place.folder)
        self.seeds = Seeds(run.seed)
        self.purifier = None if run.purifier is None else make_purifier(run.purifier)
        self.facts = _facts(run, place) | {"seed": run.seed, "arithmetic": arithmetic()}
        task = find_task(run.task)
        training = Training(learner=run.learner(), purifier=self.purifier, task=task)
        check_training(training, self.demos)

    def policy(self) -> tuple[StoredPolicy, int | None, Timings, dict[str, Any] | None]:
        """What was learnt, at which reverse step, and the returns along the way if it played."""
        demos, step, timings = self.purified()
        task, run = find_task(self.run.task), self.run
        learner = with_bounds(run.learner(), *task.bounds)
        alone = replace(run, episodes=0, starts="stock")  # what learning depends on
        facts = self.facts | {"run": _settings(alone), "step": step} | _choosing(run)
        if getattr(learner, "on", "") == "optimal":  # the same beside any D_s
            optimal = optimal_source(run, self.place)
            facts |= {"source": optimal, "run": _settings(replace(alone, demos=""))}
        with stage(self.place.cache, "policy", facts) as kept:
            path = kept.path("policy.safetensors")
            if not kept.done:
                folder = kept.path("training")
                policy, seconds, curve = self._learnt(learner, demos, folder)
                save_policy(policy, path)
                kept.finish(timings=timings | {"train": seconds}, curve=curve)
                shutil.rmtree(folder, ignore_errors=True)
            about = kept.about
            return load_policy(path), step, dict(about["timings"]), about.get("curve")

    def _learnt(
        self, learner: Method, demos: DemoSet, folder: Path
    ) -> tuple[StoredPolicy, float, dict[str, Any] | None]:
        """The policy, seconds, and a curve; one that plays goes on from where it was killed."""
        began = process_time()

        def log(row: Mapping[str, float]) -> None:
            self.report("learning", int(row["update"]) + 1, int(row["updates"]))

        if isinstance(learner, OnlineMethod):
            task, seed = find_task(self.run.task), self.run.seed
            done = imitate(learner, demos, task, seed, folder=folder, log=log)
            return done.policy, done.seconds, done.curve
        policy = learner.fit(demos, self.seeds("learn"), log)
        return policy, process_time() - began, None

    def purified(self) -> tuple[DemoSet, int | None, Timings]:
        """D_o and purified D_s, and the reverse step."""
        if self.purifier is None:
            return self.demos, None, {}
        purifier, timings = self.purifier, Timings()
        if isinstance(purifier, DiffusionPurifier) and self.run.auto:
            step, timings = self.choice(purifier)
            purifier = replace(purifier, reverse_step=step)
        facts = self.facts | {"purifier": _json(purifier), "max_step": self.run.max_step}
        facts |= _choosing(self.run)
        with stage(self.place.cache, "purified", facts) as kept:
            path = kept.path("demos.npz")
            if not kept.done:
                fitted, more = self.fitted(purifier)
                began = process_time()
                save(fitted(self.demos.supplementary, seed=self.run.seed), path)
                more |= {"purify": process_time() - began}
                kept.finish(timings=timings | more)
            demos = DemoSet(self.demos.optimal, load(path))
            return demos, getattr(purifier, "reverse_step", None), dict(kept.about["timings"])

    def choice(self, purifier: DiffusionPurifier) -> tuple[int, Timings]:
        """The reverse step whose purified rows should teach best."""
        facts = self.facts | {"purifier": _json(purifier)} | _choosing(self.run)
        with stage(self.place.cache, "choice", facts) as kept:
            if not kept.done:
                began = process_time()
                choice = choose_reverse_step(
                    purifier,
                    self.demos,
                    self.seeds,
                    progress=lambda done, total: self.report("choosing the step", done, total),
                )
                kept.finish(
                    step=chosen_step(choice, self.run.learner()),
                    timings={"choose": process_time() - began},
                )
            return int(kept.about["step"]), dict(kept.about["timings"])

    def fitted(self, purifier: Purifier) -> tuple[Transform, Timings]:
        """A fitted purifier; a diffusion model is kept, for other reverse steps."""
        if not isinstance(purifier, DiffusionPurifier):
            began = process_time()
            return purifier.fit(self.demos, self.seeds), {"fit": process_time() - began}
        step = purifier.reverse_step
        up_to = trained_up_to(step) if self.run.auto else self.run.max_step
        highest = replace(purifier, reverse_step=max(step, up_to))
        with stage(self.place.cache, "model", self.facts | {"purifier": _json(highest)}) as kept:
            path = kept.path("model.safetensors")
            if not kept.done:
                began = process_time()
                fitted = highest.fit(
                    self.demos,
                    self.seeds,
                    progress=lambda done, total: self.report("training", done, total),
                    checkpoint=kept.path("training"),
                )
                save_transform(fitted, path)
                kept.path("training").unlink(missing_ok=True)
                kept.finish(timings={"fit": process_time() - began})
            return load_transform(path).at(purifier.reverse_step), dict(kept.about["timings"])


def _json(settings: Any) -> Any:  # noqa: ANN401 (any frozen dataclass)
    return json.loads(json.dumps(asdict(settings), default=str))
