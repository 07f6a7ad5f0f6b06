"""Settings of behaviour cloning, one changed at a time from `rate 1e-3`, on all four tasks.

    OMP_NUM_THREADS=1 python -m benchmarks.bc_settings [--seeds 3] [--part 0/2]

Sets: of the published HalfCheetah files the first 50 expert rows (`real/opt`), these with the first
500 rows of the heaviest noise (`real/all`), and the same purified (`real/dp`); of each task one
episode of the shipped expert (`TASK/opt`). Each policy plays 10 episodes; scores are normalised, 0
for random actions and 1 for the expert. A line per (set, settings, seed) goes to
`benchmarks/results/bc_settings.jsonl` as it is measured, so a stopped run goes on; `--part i/n`
measures every n-th line only.
"""

import argparse
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.returns import cell_demos
from elute.collect.catalogue import fetch
from elute.demos.files import load
from elute.envs.task import find_task
from elute.evaluation import SEED, evaluate
from elute.learners.actor import Design
from elute.learners.bc import BC
from elute.purify.diffusion import DiffusionPurifier
from elute.purify.select import CANDIDATES, choose_reverse_step
from elute.rng import Seeds
from elute.types import Demonstrations

RESULTS = Path(__file__).parent / "results" / "bc_settings.jsonl"
PLAIN = Design(bounds=(-1.0, 1.0))
BASE = BC(actor=PLAIN, learning_rate=1e-3, averaging=0.0)
FIXED = replace(BASE, hold_out=0.0)
SETTINGS = {
    "rate 3e-3": replace(BASE, learning_rate=3e-3),
    "rate 1e-3": BASE,
    "300 updates": replace(FIXED, updates=300),
    "3000 updates": replace(FIXED, updates=3000),
    "raw observations": replace(BASE, actor=replace(PLAIN, standardise=False)),
    "unclipped": replace(BASE, actor=replace(PLAIN, bounds=None)),
    "squashed": replace(BASE, actor=replace(PLAIN, squashed=True)),
    "256x256 relu": replace(BASE, actor=replace(PLAIN, hidden=(256, 256), activation="relu")),
    "rate 3e-4": replace(BASE, learning_rate=3e-4),
    "batch 64": replace(BASE, batch_size=64),
    "decay 1": replace(BASE, weight_decay=1.0),
    "noise .03": replace(BASE, observation_noise=0.03),
    "noise .1": replace(BASE, observation_noise=0.1),
    "nll": replace(BASE, loss="nll"),
    "paper": BC.paper(),
}
SETS = (
    *("real/opt", "real/all", "real/dp"),
    *(f"{task}/opt" for task in ("halfcheetah", "hopper", "walker2d", "ant")),
)
EPISODES = 10


@cache
def rows(name: str, seed: int) -> Demonstrations:
    """What is cloned."""
    where, kind = name.split("/")
    if where != "real":
        expert = load(fetch(f"{where}/expert"))
        return expert.select([seed % len(expert.episodes)])
    demos = cell_demos("action-noise/heavy")
    if kind == "opt":
        return demos.optimal
    if kind == "all":
        return demos.all
    seeds = Seeds(seed)
    step = choose_reverse_step(DiffusionPurifier(), demos, seeds).for_policy
    fitted = replace(DiffusionPurifier(), reverse_step=step).fit(
        demos, seeds, up_to=max(CANDIDATES)
    )
    return demos.optimal + fitted(demos.supplementary, seed=seed)


def measure(name: str, setting: str, seed: int) -> dict[str, Any]:
    """The score of one policy."""
    where = name.split("/", maxsplit=1)[0]
    task = find_task("halfcheetah" if where == "real" else where)
    policy = SETTINGS[setting].clone(rows(name, seed), Seeds(seed)("bc"))
    played = evaluate(policy, task, episodes=EPISODES, seed=SEED + seed)
    return {
        "set": name,
        "settings": setting,
        "seed": seed,
        "return": round(played.mean, 1),
        "normalised": round(played.normalised or 0.0, 4),
    }


def table(lines: list[dict[str, Any]]) -> str:
    """Markdown: settings down, sets across, the mean over sets last."""
    out = ["| settings | " + " | ".join(SETS) + " | mean |", "|---" * (len(SETS) + 2) + "|"]
    for setting in SETTINGS:
        scores = [
            [x["normalised"] for x in lines if (x["set"], x["settings"]) == (s, setting)]
            for s in SETS
        ]
        means = [np.mean(found) if found else np.nan for found in scores]
        cells = " | ".join(f"{mean:.2f}" for mean in means)
        out.append(f"| {setting} | {cells} | {np.mean(means):.3f} |")
    return "\n".join(out)


def main() -> None:
    """Measure what is missing, then print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--part", default="0/1", help="which lines: i/n")
    given = parser.parse_args()
    part, parts = map(int, given.part.split("/"))
    torch.set_num_threads(1)
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    known = [json.loads(line) for line in lines]
    done = {(x["set"], x["settings"], x["seed"]) for x in known}
    wanted = [(s, seed) for seed in range(given.seeds) for s in SETS][part::parts]
    for name, seed in wanted:
        for setting in SETTINGS:
            if (name, setting, seed) not in done:
                known.append(measure(name, setting, seed))
                with RESULTS.open("a") as file:
                    file.write(json.dumps(known[-1]) + "\n")
    print(table(known))


if __name__ == "__main__":
    main()
