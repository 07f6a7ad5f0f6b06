"""Online imitation, driven: from demonstrations and a task to a policy and its curve.

    done = imitate(GAIL(), DemoSet(optimal=good), find_task("hopper"), seed=0)
    done.policy, done.curve

The policy that is returned is the last one. The best of a curve would be chosen by the very return
it is judged by.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from elute.envs.task import Task
from elute.errors import EluteError
from elute.learners.adversarial import Inputs, Judge, OnlineMethod, Scene
from elute.learners.descent import DivergenceError
from elute.learners.learner import Log, Policy, silent
from elute.rl.agent import Agent
from elute.rl.run import NotFiniteError, Run, run_rollouts
from elute.rng import Seeds
from elute.types import DemoSet, check_finite


@dataclass(frozen=True, kw_only=True)
class Imitated:
    """What came of it: the last policy, and its returns along the way."""

    policy: Policy
    steps: tuple[int, ...]
    """Of the environment, at each evaluation."""
    mean: tuple[float, ...]
    """Return of the mean action."""
    stderr: tuple[float | None, ...]
    """Over the episodes of an evaluation; none of a single one."""
    seconds: float
    """Of learning, also before it was taken up again; without evaluations."""

    @property
    def curve(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {"steps": list(self.steps), "mean": list(self.mean), "stderr": list(self.stderr)}


def imitate(
    method: OnlineMethod,
    demos: DemoSet,
    task: Task,
    seed: int,
    *,
    folder: Path | None = None,
    workers: int = 1,
    log: Log = silent,
) -> Imitated:
    """Learn, or go on learning in a folder, until all steps are made; the last policy.

    Raises:
        EluteError: demonstrations of another task, or the folder holds another run.
        DivergenceError: critic or policy are not finite; it carries the last good policy.
    """
    check_demos(demos, task)
    if folder is None:
        with TemporaryDirectory() as temporary:
            return imitate(
                method, demos, task, seed, folder=Path(temporary), workers=workers, log=log
            )
    seeds, inputs, rows = Seeds(seed), Inputs(demos, task), demos.all

    def fresh() -> Policy:
        return Agent(task, method.loop.learning, seeds("agent")).policy(method=method.name)

    scene = Scene(
        demos=demos,
        task=task,
        inputs=inputs(rows.observations, rows.actions),
        rng=seeds("method"),
        log=log,
        policy=fresh,
    )
    run = Run(
        task,
        method.loop,
        folder,
        seed=seed,
        rewards=Judge(method, scene, inputs, seeds),
        identity=_identity(method, demos, task, seed),
        about={"method": method.name},
    )
    _drive(run, seed, workers, log)
    return Imitated(
        policy=run.policy(),
        steps=tuple(int(row["env_steps"]) for row in run.curve),
        mean=tuple(row["score"] for row in run.curve),
        stderr=tuple(row.get("stderr") for row in run.curve),
        seconds=run.seconds,
    )


def _drive(run: Run, seed: int, workers: int, log: Log) -> None:
    good, at, total = run.policy(), run.env_steps, run.loop.env_steps

    def tick(run: Run) -> None:
        log({"update": run.env_steps - 1, "updates": total})

    try:
        with run_rollouts(run.task, run.loop, seed, workers) as (training, checking):
            while not run.done:
                run.block(training, tick)
                run.check(checking)
                run.put_down()
                good, at = run.policy(), run.env_steps
                log({"update": run.env_steps - 1, "updates": total, **run.curve[-1]})
    except NotFiniteError as error:
        raise DivergenceError(
            f"{error.message} after {run.env_steps:,} of {total:,} steps; the last good policy is "
            f"that of {at:,} steps",
            good,
        ) from error


def _identity(method: OnlineMethod, demos: DemoSet, task: Task, seed: int) -> dict[str, object]:
    """All that a run depends on; one of another identity is not gone on with."""
    rows = hashlib.sha256()
    for given in demos.given:
        rows.update(np.ascontiguousarray(given.pairs).tobytes())
        ends = given.episodes.lengths, given.episodes.terminated
        for extra in (*ends, given.rewards, given.extras.get("confidence")):
            rows.update(b"-" if extra is None else np.ascontiguousarray(extra).tobytes())
    settings = json.loads(json.dumps(asdict(method)))  # type: ignore[call-overload]
    return {
        "task": task.name,
        "seed": seed,
        "method": method.name,
        "settings": settings,
        "demos": rows.hexdigest(),
    }


def check_demos(demos: DemoSet, task: Task) -> None:
    """Refuse demonstrations that the critic could not put beside what is played.

    Raises:
        EluteError: of other dimensions than the task, or not finite; or the task has no bounds.
    """
    rows = demos.all
    check_finite(rows)
    has = rows.observations.shape[1], rows.actions.shape[1]
    wants = task.n_observations, task.n_actions
    if has != wants:
        raise EluteError(
            f"{has[0]} observation and {has[1]} action columns; {task.name} has {wants[0]} and "
            f"{wants[1]}",
            hint="elute demos convert --adapt TASK fits older data",
        )
    if not np.isfinite(task.bounds).all():
        raise EluteError(
            f"{task.name}: its actions have no bounds, which a policy that plays keeps to",
            hint="wrap the environment, as by gymnasium.wrappers.RescaleAction",
        )
