"""How fast TRPO learns: against sb3-contrib's, same network, same batch, on two cores.

    OMP_NUM_THREADS=1 python -m benchmarks.trpo      # measures what is missing, then prints

First a few updates of every configuration in turns, to find the fastest of either side. Then whole
runs of 300 000 steps on HalfCheetah with these, seed by seed and side by side: wall seconds from
nothing to the trained policy, starting workers included, and the mean return of its mean action
over 5 episodes. sb3-contrib has VecNormalize for observations and rewards, since elute standardises
observations and returns. Its KL is the mean over the entries of an action, where the KL of a
Gaussian is their sum, so the same number allows it larger steps. It runs with the number as it is
and, as `sb3_contrib_same_region`, with KL and damping divided by the entries, which is our trust
region. Results go to `benchmarks/results/trpo.json` as they come, so a stopped run goes on. Wall
time, so nothing else may run.
"""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from elute.envs.rollout import Rollouts
from elute.envs.task import find_task
from elute.noise import ActionNoise
from elute.rl.agent import Agent, Learning
from elute.rl.expert import CURVE, ExpertTraining, train_expert
from elute.rng import Seeds
from elute.uncertainty import stderr

try:
    from sb3_contrib import TRPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize
except ImportError as missing:
    raise SystemExit("sb3-contrib is not installed: pip install -e '.[bench]'") from missing

RESULTS = Path(__file__).parent / "results" / "trpo.json"
TASK, LEARNING, LANES = find_task("halfcheetah"), Learning(), 20
BATCH, STEPS, EPISODES = 5000, 300_000, 5
SEEDS = range(3)
KINDS = {"DummyVecEnv": DummyVecEnv, "SubprocVecEnv": SubprocVecEnv}
CONFIGURATIONS = [
    *(("DummyVecEnv", n, threads) for n in (1, 5, 10, 20, 50) for threads in (1, 2)),
    *(("SubprocVecEnv", n, threads) for n in (2, 4, 10, 20) for threads in (1, 2)),
]
"""Of sb3-contrib: environments, how many, and threads of torch."""
WORKERS, THREADS = 2, (1, 2)
TURNS = 3
Way = Callable[[], object]
Known = dict[str, Any]


def main() -> None:
    """Measure what is missing, print and keep."""
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    known["command"] = "OMP_NUM_THREADS=1 python -m benchmarks.trpo"
    if "updates" not in known:
        keep(known, "updates", updates())
    chosen = known["updates"]["fastest"]
    for seed in SEEDS:
        for name, run in SIDES.items():
            runs = known.get(name, [])
            if seed not in [done["seed"] for done in runs]:
                keep(known, name, [*runs, run(seed, chosen)])
    keep(known, "summary", summary(known))


def keep(known: Known, part: str, measured: object) -> None:
    """Into the results."""
    known[part] = measured
    print(json.dumps({part: measured}), flush=True)
    RESULTS.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")


def summary(known: Known) -> dict[str, Any]:
    """Both sides over all seeds."""
    sides: dict[str, dict[str, Any]] = {}
    for name in SIDES:
        returns = tuple(float(run["return"]) for run in known[name])
        speed = float(np.median([run["steps_per_second"] for run in known[name]]))
        error = stderr(returns)
        sides[name] = {
            "steps_per_second": round(speed),
            "return": round(float(np.mean(returns))),
            "stderr": None if error is None else round(error),
        }
    speeds = {name: side["steps_per_second"] for name, side in sides.items()}
    ours = speeds.pop("elute")
    return {**sides, "elute_over_faster_sb3_contrib": round(ours / max(speeds.values()), 2)}


def updates() -> dict[str, Any]:
    """Steps per second of a batch and what is learned from it, in every configuration."""
    with ExitStack() as stack:
        ways = {f"elute, {threads} threads": elute_way(stack, threads) for threads in THREADS}
        ways |= {
            f"{kind}, {n}, {threads} threads": sb3_way(stack, kind, n, threads)
            for kind, n, threads in CONFIGURATIONS
        }
        seconds = dict.fromkeys(ways, float("inf"))
        for way in ways.values():
            way()
        for _ in range(TURNS):
            for name, way in ways.items():
                began = time.perf_counter()
                way()
                seconds[name] = min(seconds[name], time.perf_counter() - began)
    speeds = {name: round(BATCH / spent) for name, spent in seconds.items()}
    ours = max(THREADS, key=lambda threads: speeds[f"elute, {threads} threads"])
    theirs = max(CONFIGURATIONS, key=lambda c: speeds[f"{c[0]}, {c[1]}, {c[2]} threads"])
    return {"steps_per_second": speeds, "fastest": {"elute": ours, "sb3_contrib": list(theirs)}}


def elute_way(stack: ExitStack, threads: int) -> Way:
    """One update of elute's."""
    agent = Agent(TASK, LEARNING, Seeds(0)("agent"))
    rollouts = stack.enter_context(
        Rollouts(TASK, Seeds(0), noise=ActionNoise("sample"), lanes=LANES, workers=WORKERS)
    )

    def update() -> None:
        torch.set_num_threads(threads)
        played = rollouts.advance(agent.policy(), BATCH // LANES)
        agent.update(played, [s.rewards for s in played], np.random.default_rng(0))

    return update


def sb3_way(stack: ExitStack, kind: str, n: int, threads: int) -> Way:
    """One update of theirs."""
    model = sb3_model(kind, n, seed=0)
    stack.callback(model.get_env().close)

    def update() -> None:
        torch.set_num_threads(threads)
        model.learn(BATCH, reset_num_timesteps=False)

    return update


def sb3_model(kind: str, n: int, seed: int, entries: int = 1) -> Any:  # noqa: ANN401 (untyped where absent)
    """Their TRPO with our settings; of the KL, the share of one of so many entries."""
    trpo = LEARNING.trpo
    environments = make_vec_env(TASK.gym_id, n, seed=seed, vec_env_cls=KINDS[kind])
    hidden = list(LEARNING.hidden)
    return TRPO(
        "MlpPolicy",
        VecNormalize(environments, gamma=LEARNING.gamma),
        n_steps=BATCH // n,
        batch_size=125,  # they ask for a divisor of the batch; elute takes 128
        learning_rate=LEARNING.value_rate,
        n_critic_updates=LEARNING.value_epochs,
        gamma=LEARNING.gamma,
        gae_lambda=LEARNING.lam,
        target_kl=trpo.max_kl / entries,
        cg_damping=trpo.damping / entries,
        cg_max_steps=trpo.cg_iterations,
        policy_kwargs={
            "net_arch": {"pi": hidden, "vf": hidden},
            "log_std_init": float(np.log(TASK.initial_std)),
        },
        seed=seed,
        device="cpu",
    )


def by_elute(seed: int, chosen: Known) -> dict[str, Any]:
    """A whole run."""
    torch.set_num_threads(chosen["elute"])
    settings = ExpertTraining(
        env_steps=STEPS, batch=BATCH, lanes=LANES, check_every=STEPS, check_episodes=EPISODES
    )
    with TemporaryDirectory() as folder:
        began = time.perf_counter()
        train_expert(TASK, settings, Path(folder), seed=seed, workers=WORKERS)
        seconds = time.perf_counter() - began
        curve = json.loads((Path(folder) / CURVE).read_text(encoding="utf-8"))["curve"]
    return row(seed, seconds, curve[-1]["score"])


def by_sb3(seed: int, chosen: Known, entries: int = 1) -> dict[str, Any]:
    """A whole run; the evaluation is not counted."""
    kind, n, threads = chosen["sb3_contrib"]
    torch.set_num_threads(threads)
    began = time.perf_counter()
    model = sb3_model(kind, n, seed, entries)
    model.learn(STEPS)
    seconds = time.perf_counter() - began
    training = model.get_env()
    checking = VecNormalize(make_vec_env(TASK.gym_id, EPISODES, seed=10_000 + seed))
    checking.training, checking.norm_reward = False, False
    checking.obs_rms = training.obs_rms
    training.close()
    score, _ = evaluate_policy(model, checking, n_eval_episodes=EPISODES, deterministic=True)
    checking.close()
    return row(seed, seconds, float(score))


def row(seed: int, seconds: float, score: float) -> dict[str, Any]:
    """A run in the results."""
    return {
        "seed": seed,
        "seconds": round(seconds, 1),
        "steps_per_second": round(STEPS / seconds),
        "return": round(score, 1),
    }


SIDES: dict[str, Callable[[int, Known], dict[str, Any]]] = {
    "elute": by_elute,
    "sb3_contrib": by_sb3,
    "sb3_contrib_same_region": partial(by_sb3, entries=TASK.n_actions),
}

if __name__ == "__main__":
    main()
