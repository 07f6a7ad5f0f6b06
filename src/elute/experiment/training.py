"""Any purifier with any learner, for one seed.

    D_s' = purifier(D_s),   policy = learner(D_o, D_s')

Baselines learn from D_o and D_s, purified ones from D_o and D_s'. Every learner is used alike; one
that plays the task while it learns is given the task, and a folder to go on from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from elute.envs.task import Task
from elute.episodes import Array
from elute.errors import EluteError
from elute.experiment.methods import Method
from elute.experiment.parallel import Report
from elute.learners.adversarial import OnlineMethod
from elute.learners.confidence import Confidence
from elute.learners.descent import DivergenceError
from elute.learners.imitate import check_demos, imitate
from elute.learners.learner import Log, Policy, Weighing, needs_transitions, silent
from elute.learners.transitions import Transitions
from elute.purify.diffusion import DiffusionPurifier
from elute.purify.purifier import Purifier, Transform
from elute.purify.select import Choice, choose_reverse_step, trained_up_to
from elute.rng import Seeds
from elute.types import DemoSet


@dataclass(frozen=True, kw_only=True)
class Training:
    """What is done with demonstrations to get a policy."""

    learner: Method
    purifier: Purifier | None = None
    auto: bool = False
    """Choose the purifier's reverse step."""
    task: Task | None = None
    """To play, for a learner that does."""


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What came of it."""

    policy: Policy
    weights: Array | None
    """Of the rows of D_o and D_s, by a learner that weighs them."""
    reverse_step: int | None
    """That the purifier used."""
    seconds: float
    diverged: str = ""
    """Why it stopped early, with the last good policy."""
    curve: dict[str, Any] | None = None
    """Returns along the way, of a learner that plays."""


def train(
    training: Training,
    demos: DemoSet,
    seed: int,
    *,
    folder: Path | None = None,
    report: Report = lambda what, done, total: None,
    log: Log = silent,
) -> Trained:
    """Purify if asked to, then learn; a learner that plays goes on with what is in the folder."""
    began, seeds = perf_counter(), Seeds(seed)
    check_training(training, demos)
    step = None
    if training.purifier is not None:
        transform = fit_purifier(training, demos, seeds, report)
        demos = DemoSet(demos.optimal, transform(demos.supplementary, seed=seed))
        step = getattr(getattr(transform, "purifier", None), "reverse_step", None)

    def told(row: Mapping[str, float]) -> None:
        report("learning", int(row["update"]) + 1, int(row["updates"]))
        log(row)

    learnt = _learn(training, demos, seeds, folder, told)
    return replace(learnt, reverse_step=step, seconds=perf_counter() - began)


def check_training(training: Training, demos: DemoSet) -> None:
    """Refuse what could only fail after purification.

    Raises:
        EluteError: a set that the purifier needs is missing, or the learner needs transitions and
            there are none, or none would be left, or it plays and cannot.
    """
    if isinstance(training.learner, OnlineMethod):
        _check_online(training.learner, demos, training.task)
    if training.purifier is not None and len(demos.given) < 2:
        raise EluteError("purification needs both sets", hint="give --optimal and --supplementary")
    if needs_transitions(training.learner):
        Transitions.of(demos)
        if getattr(training.purifier, "target", "") == "joint":
            raise EluteError(
                "this learner needs transitions, and purified states are none",
                hint="purify with --target inpaint or action",
            )


def _check_online(method: OnlineMethod, demos: DemoSet, task: Task | None) -> None:
    if task is None:
        raise EluteError(
            f"{method.name} plays the task while it learns, and no task is given",
            hint="--task hopper, or any environment: --task gym:ID",
        )
    check_demos(demos, task)
    confidence = getattr(method, "confidence", None)
    if isinstance(confidence, Confidence):
        confidence.known(demos, task, Seeds(0)("check"))


def chosen_step(choice: Choice, learner: Method) -> int:
    """The step that should serve the learner best.

    Cloning averages over rows. A critic looks at each by itself, and wants clean ones.
    """
    return choice.for_actions if isinstance(learner, OnlineMethod) else choice.for_policy


def fit_purifier(training: Training, demos: DemoSet, seeds: Seeds, report: Report) -> Transform:
    """The fitted purifier, at the step that should serve the learner best if it is to be chosen."""
    purifier = training.purifier
    assert purifier is not None

    def choosing(done: int, total: int) -> None:
        report("choosing the step", done, total)

    def fitting(done: int, total: int) -> None:
        report("fitting the purifier", done, total)

    if not isinstance(purifier, DiffusionPurifier):
        return purifier.fit(demos, seeds, progress=fitting)
    if training.auto:
        choice = choose_reverse_step(purifier, demos, seeds, progress=choosing)
        purifier = replace(purifier, reverse_step=chosen_step(choice, training.learner))
    up_to = trained_up_to(purifier.reverse_step)
    return purifier.fit(demos, seeds, up_to=up_to, progress=fitting)


def _learn(
    training: Training, demos: DemoSet, seeds: Seeds, folder: Path | None, log: Log
) -> Trained:
    learner, weights, curve, diverged = training.learner, None, None, ""
    try:
        if isinstance(learner, OnlineMethod):
            assert training.task is not None  # checked
            done = imitate(learner, demos, training.task, seeds.root, folder=folder, log=log)
            policy, curve = done.policy, done.curve
        elif isinstance(learner, Weighing):
            policy, weights = learner.weigh(demos, seeds("learn"), log)
        else:
            policy = learner.fit(demos, seeds("learn"), log)
    except DivergenceError as stopped:
        policy, diverged = stopped.policy, stopped.message
    return Trained(
        policy=policy,
        weights=weights,
        reverse_step=None,
        seconds=0.0,
        diverged=diverged,
        curve=curve,
    )
