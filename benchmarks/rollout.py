"""How fast a policy is rolled out: against Gymnasium's vector environments and the bare simulator.

    OMP_NUM_THREADS=1 python -m benchmarks.rollout

Two cores, wall time, so nothing else may run. All draw actions from the same policy: the shipped
expert where there is one, else random weights. Gymnasium's environments are tried in several
numbers, of which the fastest counts, and keep nothing of what they see; elute's two workers hand
back all of it. `replayed` steps bare environments with the very actions of elute's episodes, one
environment in each of two processes. Ways take turns, and the fastest turn of each counts. Results
go to `benchmarks/results/rollout.json`, a task at a time.
"""

import json
import multiprocessing
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

from elute.collect.shipped import shipped_path
from elute.envs.make import make
from elute.envs.rollout import LANES, Rollouts, Stretch
from elute.envs.task import Task, find_task
from elute.episodes import Array
from elute.errors import EluteError
from elute.noise import ActionNoise
from elute.policy import GaussianPolicy, StoredPolicy, load_policy
from elute.rng import Seeds

RESULTS = Path(__file__).parent / "results" / "rollout.json"
TASKS = ("halfcheetah", "hopper", "walker2d", "ant")
SYNC, ASYNC = (1, 5, 10, 20), (2, 4, 10, 20)
"""Numbers of environments Gymnasium is given."""
STEPS, ROUNDS = 10_000, 4
WORKERS = 2
Recorded = list[tuple[int, Array]]
"""Where each episode starts, and what was done in it."""


def main() -> None:
    """Measure, print and keep."""
    results: dict[str, Any] = {"command": "OMP_NUM_THREADS=1 python -m benchmarks.rollout"}
    for name in TASKS:
        results[name] = compared(find_task(name))
        print(json.dumps({name: results[name]}, indent=2), flush=True)
        RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def compared(task: Task) -> dict[str, Any]:
    """Steps per second of every way."""
    policy, source = a_policy(task)
    with ExitStack() as stack:
        rollouts = stack.enter_context(
            Rollouts(task, Seeds(0), noise=ActionNoise("sample"), workers=WORKERS)
        )
        replays = stack.enter_context(replaying(task, played(rollouts, policy)))
        ways: dict[str, Callable[[], object]] = {
            "elute": lambda: played(rollouts, policy),
            "replayed": lambda: replayed(replays),
        }
        for kind, numbers in ((SyncVectorEnv, SYNC), (AsyncVectorEnv, ASYNC)):
            for n in numbers:
                vector = vectorised(task, kind, n)
                stack.callback(vector.close)
                ways[f"{kind.__name__}, {n}"] = driver(vector, policy)
        speeds = {name: round(speed) for name, speed in fastest(ways).items()}
    peer = max((name for name in speeds if "Vector" in name), key=speeds.__getitem__)
    return {
        "policy": source,
        "steps_per_second": speeds,
        "fastest_peer": peer,
        "over_fastest_peer": round(speeds["elute"] / speeds[peer], 2),
        "share_of_replayed": round(speeds["elute"] / speeds["replayed"], 2),
    }


def fastest(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Steps per second of the fastest turn of each."""
    seconds = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            seconds[name] = min(seconds[name], time.perf_counter() - began)
    return {name: STEPS / spent for name, spent in seconds.items()}


def a_policy(task: Task) -> tuple[StoredPolicy, str]:
    """The expert if it is shipped, or random weights; and which it is."""
    try:
        return load_policy(shipped_path(task.name)), "expert"
    except EluteError:
        rng, s, a = np.random.default_rng(0), task.n_observations, task.n_actions
        layers = tuple(
            (rng.normal(0, before**-0.5, (before, after)).astype(np.float32),
             np.zeros(after, np.float32))
            for before, after in ((s, 100), (100, 100), (100, a))
        )  # fmt: skip
        units, bounds = (np.zeros(s), np.ones(s)), task.bounds
        return GaussianPolicy(layers, np.zeros(a), *units, *bounds, squashed=True), "random weights"


def played(rollouts: Rollouts, policy: StoredPolicy) -> list[Stretch]:
    """The first steps of the first episodes."""
    rollouts.restart(0)
    return rollouts.advance(policy, STEPS // LANES)


def vectorised(task: Task, kind: Callable[..., VectorEnv], n: int) -> VectorEnv:
    """As Gymnasium advises: whole environments with their time limit."""

    def made() -> gymnasium.Env[Array, Array]:
        return gymnasium.make(task.gym_id, **task.options)

    vector = kind([made] * n)
    vector.reset(seed=0)
    return vector


def driver(vector: VectorEnv, policy: StoredPolicy) -> Callable[[], object]:
    """The loop around a vector environment."""
    rng = np.random.default_rng(0)

    def drive() -> None:
        observations, _ = vector.reset()
        for _ in range(STEPS // vector.num_envs):
            actions = np.clip(policy.act(observations, rng), policy.low, policy.high)
            observations, *_ = vector.step(actions)

    return drive


@contextmanager
def replaying(task: Task, stretches: Sequence[Stretch]) -> Any:  # noqa: ANN401 (a generator)
    """Pipes to processes that wait with their share of the episodes."""
    context, pipes, seeds = multiprocessing.get_context("spawn"), [], Seeds(0)
    recorded = [
        (int(seeds("start", s.episode).integers(2**31)), task.clip(s.actions)) for s in stretches
    ]
    for share in halves(recorded):
        ours, theirs = context.Pipe()
        context.Process(target=_replay, args=(theirs, task, share), daemon=True).start()
        pipes.append(ours)
    yield pipes
    for pipe in pipes:
        pipe.close()


def halves(recorded: Recorded) -> list[Recorded]:
    """Shares of about as many steps for each process."""
    shares: list[Recorded] = [[] for _ in range(WORKERS)]
    for episode in sorted(recorded, key=lambda e: -len(e[1])):
        min(shares, key=lambda share: sum(len(actions) for _, actions in share)).append(episode)
    return shares


def replayed(pipes: Sequence[Connection]) -> None:
    """All shares, at the same time."""
    for pipe in pipes:
        pipe.send("go")
    for pipe in pipes:
        pipe.recv()


def _replay(pipe: Connection, task: Task, share: Recorded) -> None:
    environment = make(task)
    try:
        while pipe.recv():
            for start, actions in share:
                environment.reset(seed=start)
                for action in actions:
                    environment.step(action)
            pipe.send("done")
    except EOFError:
        return  # the parent is done


if __name__ == "__main__":
    main()
