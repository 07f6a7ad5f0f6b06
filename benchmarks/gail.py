"""How fast GAIL trains: against the `imitation` package's with sb3-contrib's TRPO.

    make .venv-imitation/ready
    OMP_NUM_THREADS=1 python -m benchmarks.gail

HalfCheetah, batches of 5000 steps, networks of two layers of 100 tanh units, five updates of the
critic with 256 demonstrations for each update of the policy; one process and one thread on either
side. Rounds of both sides in turns, after one round to warm up; the fastest of the turns counts.
Steps per second of the processor are what is compared, since they do not depend on what else a
machine does; steps per second of the clock stand beside them.

Not alike: our critic sees all 5000 rows of the policy in each update and has a gradient penalty,
theirs 256 and none. They have MuJoCo 2.3 and HalfCheetah-v4, which `imitation` asks for, we MuJoCo
3 and HalfCheetah-v5: the same robot and the same five frames a step. They run with 10, 20 and 50
environments, of which the fastest counts; we with 20.
"""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from elute.envs.rollout import Rollouts
from elute.envs.task import find_task
from elute.episodes import Episodes
from elute.learners.adversarial import Adversarial, Inputs, Judge, Scene
from elute.learners.gail import GAIL
from elute.noise import ActionNoise
from elute.rl.agent import Agent
from elute.rl.run import Run
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet

RESULTS = Path(__file__).parent / "results" / "gail.json"
PEER = Path(".venv-imitation/bin/python")
ENVIRONMENTS, ROUNDS, TURNS = (10, 20, 50), 3, 3
TASK = find_task("halfcheetah")
Speed = tuple[float, float]
"""Steps by seconds of the clock and of the processor."""


def demos() -> DemoSet:
    """Any numbers; what they are makes no difference to the speed."""
    rng = np.random.default_rng(0)
    observations, actions = rng.standard_normal((5000, 17)), rng.uniform(-1, 1, (5000, 6))
    return DemoSet(optimal=Demonstrations(observations, actions, Episodes.of([5000])))


def ours(folder: Path) -> Speed:
    """Rounds of the loop, as `imitate` drives it."""
    method = GAIL(loop=replace(Adversarial.paper(), check_every=5000))
    given, seeds = demos(), Seeds(0)
    inputs, rows = Inputs(given, TASK), given.all
    scene = Scene(
        demos=given,
        task=TASK,
        inputs=inputs(rows.observations, rows.actions),
        rng=seeds("method"),
        log=lambda row: None,
        policy=Agent(TASK, method.loop.learning, seeds("agent")).policy,
    )
    judge = Judge(method, scene, inputs, seeds)
    run = Run(TASK, method.loop, folder, seed=0, rewards=judge, identity={}, about={})
    with Rollouts(TASK, seeds, noise=ActionNoise("sample"), lanes=method.loop.lanes) as rollouts:
        run.block(rollouts)
        wall, spent = time.perf_counter(), time.process_time()
        for _ in range(ROUNDS):
            run.block(rollouts)
        done = time.perf_counter() - wall, time.process_time() - spent
    return 5000 * ROUNDS / done[0], 5000 * ROUNDS / done[1]


def theirs(environments: int) -> Speed:
    """Rounds of `imitation`."""
    script = Path(__file__).with_name("peer_gail.py")
    done = subprocess.run(
        [PEER, script, str(environments), str(ROUNDS)], capture_output=True, text=True, check=True
    )
    wall, processor = map(float, done.stdout.split()[-2:])
    return wall, processor


def main() -> None:
    """Measure, print and keep."""
    if not PEER.exists():
        sys.exit("make .venv-imitation/ready first")
    torch.set_num_threads(1)
    speeds: dict[str, Speed] = {}
    for _ in range(TURNS):
        with TemporaryDirectory() as folder:
            measured = {"elute": ours(Path(folder))}
        measured |= {f"imitation, {n} environments": theirs(n) for n in ENVIRONMENTS}
        for name, found in measured.items():
            before = speeds.get(name, (0.0, 0.0))
            speeds[name] = max(found[0], before[0]), max(found[1], before[1])
    peer = max(found[1] for name, found in speeds.items() if name != "elute")
    result = {
        "command": "OMP_NUM_THREADS=1 python -m benchmarks.gail",
        "steps_per_processor_second": {name: round(s[1]) for name, s in speeds.items()},
        "steps_per_second": {name: round(s[0]) for name, s in speeds.items()},
        "elute_over_fastest_imitation": round(speeds["elute"][1] / peer, 2),
    }
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
