"""`elute expert train`: a TRPO expert of a task, with checkpoints."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from elute.cli.show import progress, say
from elute.envs.task import find_task
from elute.rl.agent import Learning
from elute.rl.expert import CURVE, STATE, ExpertTraining, train_expert


def run(
    task: str,
    env_steps: int,
    seed: int,
    initial_std: float | None,
    least_std: float,
    workers: int,
    folder: Path,
) -> None:
    """Train, or go on training."""
    import torch

    torch.set_num_threads(1)  # sums in another order are other numbers
    if (folder / STATE).exists():
        say(f"going on with the training in {folder}")
    learning = Learning(initial_std=initial_std, least_std=least_std)
    settings = ExpertTraining(env_steps=env_steps, learning=learning)
    with progress("training") as update:

        def log(row: dict[str, float]) -> None:
            update(int(row["env_steps"]), env_steps)
            say(
                f"{row['env_steps']:>9,.0f} steps: mean return {row['score']:8.1f}, "
                f"{row['seconds'] / 60:.1f} min"
            )

        best = train_expert(find_task(task), settings, folder, seed=seed, workers=workers, log=log)
    say(f"best policy: {folder / 'best.safetensors'}, after {best.about['env_steps']:,} steps")
    if find_spec("matplotlib") is None:
        say("the learning curve is not drawn: pip install 'elute[report]'")
    else:
        draw_curve(json.loads((folder / CURVE).read_text()), folder / "curve.png")


def draw_curve(run: dict[str, Any], path: Path) -> None:
    """The mean return of the mean action over the steps."""
    from matplotlib.figure import Figure

    from elute.demos.output import output

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(
        [row["env_steps"] / 1e6 for row in run["curve"]], [row["score"] for row in run["curve"]]
    )
    axes.set_xlabel("environment steps (millions)")
    axes.set_ylabel("mean return of the mean action")
    axes.set_title(f"TRPO on {run['task']}, seed {run['seed']}")
    axes.grid(alpha=0.3)
    with output(path) as temporary:
        figure.savefig(temporary, format="png", dpi=120)
    say(f"wrote {path}")
