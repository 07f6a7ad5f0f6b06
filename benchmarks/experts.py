"""Scores of the shipped experts, their checkpoints and random actions, and the learning curves.

    python -m benchmarks.experts [--runs FOLDER]

20 episodes each, seed 0, mean action. With the folder in which the experts were trained
(`elute expert train` made TASK-SEED in it) the curves of all seeds are drawn too, into
`docs/reference/experts.png`. Results go to `benchmarks/results/experts.json`.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elute.collect.shipped import CHECKPOINTS, EXPERTS, shipped_path
from elute.envs.rollout import Rollouts
from elute.envs.task import TASKS, Task
from elute.episodes import Array
from elute.evaluation import evaluate
from elute.noise import ActionNoise
from elute.policy import load_policy
from elute.rng import Seeds
from elute.uncertainty import stderr

RESULTS = Path(__file__).parent / "results" / "experts.json"
FIGURE = Path(__file__).parent.parent / "docs" / "reference" / "experts.png"
EPISODES = 20
RANDOM_EPISODES = 100
PAPER = {"ant": 4349, "halfcheetah": 4624, "walker2d": 4963, "hopper": 3594}


@dataclass(frozen=True)
class Still:
    """Does nothing; uniform noise of half-width 1 makes it act at random."""

    n_actions: int

    @property
    def std(self) -> Array:
        """None."""
        return np.zeros(self.n_actions)

    def act(self, observations: Array) -> Array:
        """The middle of the bounds."""
        return np.zeros((len(observations), self.n_actions))


def random_score(task: Task) -> tuple[float, float | None]:
    """Mean return of uniform actions, and its standard error."""
    noise = ActionNoise("uniform", 1 / np.sqrt(3.0))
    with Rollouts(task, Seeds(0), noise=noise) as rollouts:
        played = rollouts.episodes(Still(task.n_actions), RANDOM_EPISODES)
    scores = tuple(stretch.score for stretch in played)
    return float(np.mean(scores)), stderr(scores)


def scores(task: Task) -> dict[str, Any]:
    """Of one task."""
    mean, error = random_score(task)
    found: dict[str, Any] = {"paper_expert_v2": PAPER[task.name], "random": [mean, error]}
    for which in ("best", *CHECKPOINTS):
        policy = load_policy(shipped_path(task.name, which))
        score = evaluate(policy, task, episodes=EPISODES, seed=0)
        found[which] = [score.mean, score.stderr] + [
            policy.about[key] for key in ("seed", "env_steps")
        ]
        print(task.name, which, found[which], flush=True)
    found["share_of_paper"] = round(found["best"][0] / PAPER[task.name], 3)
    return found


def read_curves(runs: Path) -> list[dict[str, Any]]:
    """Every run's curve."""
    return [json.loads(file.read_text()) for file in sorted(runs.glob("*/curve.json"))]


def draw(curves: list[dict[str, Any]]) -> None:
    """A panel for each task."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    for axes, task in zip(figure.subplots(2, 2).flat, EXPERTS, strict=True):
        for run in (run for run in curves if run["task"] == task):
            steps = [row["env_steps"] / 1e6 for row in run["curve"]]
            std = run["settings"]["learning"].get("initial_std", 1.0)
            label = f"seed {run['seed']}" + ("" if std == 1.0 else f", first deviation {std}")
            least = run["settings"]["learning"].get("least_std", 0.0)
            label += f", never below {least}" if least else ""
            axes.plot(steps, [row["score"] for row in run["curve"]], label=label, linewidth=1)
        axes.axhline(PAPER[task], color="grey", linestyle=":", linewidth=1)
        axes.set_title(f"{task} (dotted: the paper's expert, -v2)", fontsize=9)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, loc="lower right")
    figure.supxlabel("environment steps (millions)", fontsize=9)
    figure.supylabel("mean return of the mean action, 5 episodes", fontsize=9)
    figure.savefig(FIGURE, dpi=90)


def main() -> None:
    """Measure, draw, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=Path)
    runs = parser.parse_args().runs
    old = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    result: dict[str, Any] = {
        "command": "python -m benchmarks.experts",
        "tasks": {name: scores(TASKS[name]) for name in EXPERTS},
        "minutes": old.get("minutes", {}),
    }
    if runs is not None:
        curves = read_curves(runs)
        draw(curves)
        for run in curves:
            least = run["settings"]["learning"].get("least_std", 0.0)
            name = f"{run['task']}-{run['seed']}" + (f"-{least}" if least else "")
            result["minutes"][name] = round(run["curve"][-1]["seconds"] / 60, 1)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
