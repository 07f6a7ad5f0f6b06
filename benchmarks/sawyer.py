"""Control steps per second of `sawyer-reach` against robosuite's own `step()`, in one run.

    make bench-robosuite        (python -m benchmarks.sawyer, in robosuite's environment)

Both are driven by the same random actions, one after the other in turns, in one thread; time is
that of the process, so that others on the machine do not count. robosuite is stepped as it comes:
NutAssemblyRound with a Sawyer, its default controller, no cameras, at 100 Hz. Then its model under
our servo (`sawyer-reach@robosuite`), and 50 whole episodes of a policy network, as an evaluation
has them. Results go to `benchmarks/results/sawyer.json`.
"""

import json
import platform
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from elute.envs.make import make
from elute.envs.task import find_task
from elute.episodes import Array
from elute.evaluation import evaluate
from elute.policy import GaussianPolicy

RESULTS = Path(__file__).parent / "results" / "sawyer.json"
STEPS, ROUNDS, EPISODES = 500, 5, 50
NAMES = ("sawyer-reach", "sawyer-reach@robosuite", "robosuite step()")


def main() -> None:
    """Measure, print and keep."""
    players = {
        NAMES[0]: ours(NAMES[0]),
        NAMES[1]: ours(NAMES[1]),
        NAMES[2]: theirs(),
    }
    for play in players.values():
        play(50)  # what is compiled at first use
    rates: dict[str, list[float]] = {name: [] for name in players}
    for _ in range(ROUNDS):
        for name, play in players.items():
            rates[name].append(STEPS / play(STEPS))
    middle = {name: median(values) for name, values in rates.items()}
    result = {
        "command": "python -m benchmarks.sawyer",
        "steps_per_cpu_second": {name: round(value) for name, value in middle.items()},
        "times_robosuite": round(middle[NAMES[0]] / middle[NAMES[2]], 1),
        "cpu_seconds_of_50_episodes": round(episodes(), 1),
        "versions": {
            package: version(package) for package in ("mujoco", "robosuite", "numpy", "gymnasium")
        },
        "machine": f"{platform.machine()}, Python {platform.python_version()}, one thread",
    }
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


def ours(name: str) -> Callable[[int], float]:
    """Seconds that steps of a task of elute take, after a reset that is not counted."""
    environment = make(find_task(name))
    actions = drawn(7)

    def play(steps: int) -> float:
        environment.reset(seed=0)
        began = process_time()
        for t in range(steps):
            environment.step(actions[t])
        return process_time() - began

    return play


def theirs() -> Callable[[int], float]:
    """The same of robosuite as it comes."""
    environment: Any = import_module("robosuite").make(
        "NutAssemblyRound",
        robots="Sawyer",
        has_renderer=False,
        has_offscreen_renderer=False,
        use_camera_obs=False,
        control_freq=100,
        horizon=10**9,
        hard_reset=False,
    )
    actions = drawn(environment.action_dim)

    def play(steps: int) -> float:
        environment.reset()
        began = process_time()
        for t in range(steps):
            environment.step(actions[t])
        return process_time() - began

    return play


def drawn(width: int) -> Array:
    """Actions that wander gently."""
    return 0.3 * np.random.default_rng(0).standard_normal((STEPS, width))


def episodes() -> float:
    """CPU seconds of an evaluation, by a network of the usual size."""
    rng = np.random.default_rng(0)
    sizes = (44, 100, 100, 7)
    layers = tuple(
        ((rng.standard_normal((i, o)) / np.sqrt(i)).astype("f4"), np.zeros(o, "f4"))
        for i, o in pairwise(sizes)
    )
    policy = GaussianPolicy(
        layers=layers,
        log_std=np.zeros(7),
        mean=np.zeros(44),
        scale=np.ones(44),
        low=np.full(7, -1.0),
        high=np.ones(7),
    )
    began = process_time()
    evaluate(policy, find_task(NAMES[0]), episodes=EPISODES)
    return process_time() - began


if __name__ == "__main__":
    main()
