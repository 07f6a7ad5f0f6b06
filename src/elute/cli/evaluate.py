"""`elute evaluate`: what a policy earns in its task."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from elute.cli.show import out, print_json, progress, say
from elute.collect.shipped import find_policy
from elute.envs.task import Task, find_task, starting_from, without_backend
from elute.errors import EluteError
from elute.evaluation import Evaluation, evaluate
from elute.policy import StoredPolicy
from elute.uncertainty import wilson

VERSIONS = ("elute", "mujoco", "gymnasium", "numpy")


def run(
    spec: str,
    task: str,
    episodes: int,
    seed: int,
    workers: int,
    video: Path | None,
    as_json: bool,
    starts: str = "",
) -> None:
    """Evaluate one policy, or one per seed in a folder."""
    where = _starting(find_task(task), starts)
    if video is not None:
        from elute.collect.video import check_video

        check_video(video)
    policies = _policies(spec, task)
    learnt = {str(policy.about.get("task") or task) for policy in policies.values()}
    for other in sorted(learnt):
        if without_backend(other) != without_backend(task):
            say(f"warning: a policy of {other} is evaluated in {task}")
    scores = {
        name: evaluate(policy, where, episodes=episodes, seed=seed, workers=workers)
        for name, policy in policies.items()
    }
    report = _report(spec, where, seed, scores) | ({"starts": starts} if starts else {})
    if as_json:
        print_json(report)
    else:
        _show(report)
    if video is not None:
        from elute.collect.video import film

        with progress("filming") as update:
            frames = film(next(iter(policies.values())), where, video, seed=seed, progress=update)
        say(f"wrote {video}: {frames} frames")


def _starting(task: Task, starts: str) -> Task:
    """With episodes that begin where those of a file do, if one is given."""
    if not starts:
        return task
    from elute.cli.arguments import named
    from elute.demos.files import load

    demos = load(named(starts))
    return starting_from(task, demos.observations[demos.episodes.starts])


def _policies(spec: str, task: str) -> dict[str, StoredPolicy]:
    """By seed for a folder; one without a name otherwise."""
    if not Path(spec).is_dir():
        return {"": find_policy(spec, task)}
    files = sorted(Path(spec).glob("seed-*.safetensors"), key=lambda f: (len(f.name), f.name))
    if not files:
        raise EluteError(
            f"{spec}: no policies",
            hint="expected seed-0.safetensors, ...; name a file to take another",
        )
    return {file.stem.removeprefix("seed-"): find_policy(str(file), task) for file in files}


def _report(spec: str, task: Task, seed: int, scores: dict[str, Evaluation]) -> dict[str, Any]:
    about = {
        "policy": spec,
        "task": task.name,
        "environment": task.gym_id,
        "actions": "mean, clipped to the bounds",
        "seed": seed,
        "versions": {package: _version(package) for package in VERSIONS},
    }
    if "" in scores:
        return _summary(scores[""]) | {"episodes": _episodes(scores[""])} | about
    means = tuple(score.mean for score in scores.values())
    pooled = Evaluation(  # the share of all episodes of all seeds
        task,
        means,
        (),
        tuple(success for score in scores.values() for success in score.successes),
        {
            name: tuple(seen for score in scores.values() for seen in score.readings[name])
            for name in next(iter(scores.values())).readings
        },
    )
    return {
        **_summary(pooled),
        "seeds": [
            {"seed": name, **_summary(score), "episodes": _episodes(score)}
            for name, score in scores.items()
        ],
    } | about


def _summary(score: Evaluation) -> dict[str, Any]:
    return {
        "mean": score.mean,
        "stderr": score.stderr,
        "normalised": score.normalised,
        "success": score.success,
        "success_interval": score.success_interval,
        "readings": {
            name: {
                "success": float(np.mean(seen)),
                "success_interval": wilson(sum(seen), len(seen)),
            }
            for name, seen in score.readings.items()
        },
    }


def _episodes(score: Evaluation) -> list[dict[str, Any]]:
    told = zip(score.returns, score.lengths, score.successes, strict=True)
    return [{"return": r, "length": n, "success": s} for r, n, s in told]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except ImportError:
        return None


def _show(report: dict[str, Any]) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2))
    per_seed = "seeds" in report
    name = "seed" if per_seed else "episode"
    for i, row in enumerate(report["seeds"] if per_seed else report["episodes"]):
        told = f"{row['mean']:.1f}" if per_seed else f"{row['return']:.1f} in {row['length']} steps"
        table.add_row(f"{name} {row['seed'] if per_seed else i}", told)
    spread = "" if report["stderr"] is None else f" ± {report['stderr']:.1f} (standard error)"
    table.add_row("mean return", f"{report['mean']:.1f}{spread}")
    if report["normalised"] is not None:
        table.add_row("normalised", f"{report['normalised']:.2f} (random 0, expert 1)")
    if report["success"] is not None:
        table.add_row("success", _share(report) + " of episodes")
    for name, reading in report["readings"].items():
        table.add_row(f"  {name.replace('_', ' ')}", _share(reading))
    out.print(table, markup=False)


def _share(report: dict[str, Any]) -> str:
    low, high = report["success_interval"]
    return f"{report['success']:.2f} (95 %: {low:.2f} to {high:.2f})"
