"""What the chosen reverse step is worth in returns, on the six published HalfCheetah cells.

    python -m benchmarks.returns --seeds 10          # measures what is missing, then prints

Each cell: D_o = first 50 rows of the realigned expert, D_s = first 500 rows of the file; purify at
every candidate step, clone D_o + purified D_s, play 10 episodes. A line per (cell, seed) goes to
`benchmarks/results/returns.jsonl` as it is measured, so a stopped run goes on. Regret of a cell:

    (best fixed step's mean return - mean return at the steps "auto" chose) / best

with an interval by resampling seeds; the best step is chosen anew in each resample.
"""

import argparse
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elute.demos.audit.repair import realign
from elute.demos.files import load
from elute.envs.task import find_task
from elute.evaluation import SEED, evaluate
from elute.experiment.cell import CHOICE
from elute.learners.actor import Design
from elute.learners.bc import BC
from elute.purify.diffusion import DiffusionPurifier
from elute.purify.select import CANDIDATES, choose_reverse_step
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet

DATA = Path(os.environ.get("ELUTE_TEST_DATA", "../shared/data")) / "halfcheetah"
RESULTS = Path(__file__).parent / "results" / "returns.jsonl"
SUMMARY = RESULTS.with_suffix(".json")
CELLS = {
    "action-noise/heavy": "d1-l1_action-noise-0.60.h5",
    "action-noise/medium": "d1-l2_action-noise-0.40.h5",
    "action-noise/light": "d1-l3_action-noise-0.25.h5",
    "checkpoint/early": "checkpoint-t2.h5",
    "checkpoint/middle": "checkpoint-t3.h5",
    "checkpoint/late": "checkpoint-t4.h5",
}
TASK = find_task("halfcheetah")
EPISODES = 10


def cell_demos(cell: str) -> DemoSet:
    """D_o and D_s of a cell."""
    expert = realign(load(DATA / "expert.h5"), 1)
    noisy = load(DATA / CELLS[cell]).first(500)
    return DemoSet(optimal=expert.first(50), supplementary=noisy)


def returns(demos: Demonstrations, seeds: Seeds) -> float:
    """Mean return of a policy cloned from these."""
    bc = BC(  # as the lines were made
        updates=3000, hold_out=0.0, averaging=0.0, actor=Design(bounds=(-1.0, 1.0))
    )
    policy = bc.clone(demos, seeds("bc"))
    return evaluate(policy, TASK, episodes=EPISODES, seed=SEED + seeds.root).mean


def measure(cell: str, seed: int) -> dict[str, Any]:
    """The chosen step, and the return at every candidate."""
    demos, seeds = cell_demos(cell), Seeds(seed)
    choice = choose_reverse_step(DiffusionPurifier(), demos, seeds)
    fitted = replace(DiffusionPurifier(), reverse_step=max(CANDIDATES)).fit(demos, seeds)
    plain = demos.optimal, demos.supplementary
    found = {
        step: returns(plain[0] + fitted.at(step)(plain[1], seed=seed), seeds) for step in CANDIDATES
    }
    return {
        "choice": CHOICE,
        "cell": cell,
        "seed": seed,
        "chosen": choice.for_policy,
        "auto": found[choice.for_policy],
        "returns": {str(step): value for step, value in found.items()},
        "errors": {str(step): value for step, value in choice.policy_errors.items()},
    }


def regret(rows: list[dict[str, Any]]) -> tuple[float, int]:
    """Share of the best fixed step's return that the choice gives away, and that step."""
    fixed = {s: float(np.mean([row["returns"][str(s)] for row in rows])) for s in CANDIDATES}
    best = max(fixed, key=lambda step: fixed[step])
    auto = float(np.mean([row["auto"] for row in rows]))
    return (fixed[best] - auto) / abs(fixed[best]), best


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A cell in numbers."""
    rng = np.random.default_rng(0)
    drawn = [
        regret([rows[i] for i in rng.integers(len(rows), size=len(rows))])[0] for _ in range(2000)
    ]
    worth, best = regret(rows)
    auto = [row["auto"] for row in rows]
    return {
        "seeds": len(rows),
        "none": round(float(np.mean([row["returns"]["0"] for row in rows])), 1),
        "auto": round(float(np.mean(auto)), 1),
        "auto_stderr": round(float(np.std(auto, ddof=1) / np.sqrt(len(auto))), 1),
        "chosen": sorted(row["chosen"] for row in rows),
        "best_fixed": best,
        "best_fixed_return": round(float(np.mean([row["returns"][str(best)] for row in rows])), 1),
        "regret": round(worth, 3),
        "regret_interval": [round(float(q), 3) for q in np.quantile(drawn, [0.025, 0.975])],
        "fixed": {
            str(s): round(float(np.mean([row["returns"][str(s)] for row in rows])), 1)
            for s in CANDIDATES
        },
    }


def main() -> None:
    """Measure what is missing, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args().seeds
    torch.set_num_threads(1)
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    rows = [json.loads(line) for line in lines]
    rows = [row for row in rows if row.get("choice") == CHOICE]
    done = {(row["cell"], row["seed"]) for row in rows}
    for seed in range(seeds):
        for cell in CELLS:
            if (cell, seed) not in done:
                rows.append(measure(cell, seed))
                with RESULTS.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
                print(cell, seed, rows[-1]["chosen"], round(rows[-1]["auto"]), flush=True)
    cells = {cell: [row for row in rows if row["cell"] == cell] for cell in CELLS}
    summary = {cell: summarise(found) for cell, found in cells.items() if len(found) > 1}
    result = {"command": f"python -m benchmarks.returns --seeds {seeds}", "cells": summary}
    SUMMARY.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
