"""Which reverse step is best, and which criterion finds it without an environment?

    python -m benchmarks.reverse_step

HalfCheetah, realigned expert: D_o is the first 50 rows of the first episode, D_s the first 500 rows
of the second with Gaussian noise on the actions, so that the clean actions are known. Needs the
published files (`ELUTE_TEST_DATA`). Results go to `benchmarks/results/reverse_step.json`.
"""

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from elute.demos.audit.repair import realign
from elute.demos.corrupt import corrupt
from elute.demos.files import load
from elute.purify.controls import NearestPurifier, RelabelPurifier
from elute.purify.criteria import (
    first_alike,
    policy_errors,
    telling_apart,
    telling_purified,
    theorem_step,
)
from elute.purify.diffusion import DiffusionPurifier
from elute.purify.purifier import Target
from elute.purify.select import CANDIDATES, choose_reverse_step
from elute.purify.wiener import WienerPurifier
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet

DATA = Path(os.environ.get("ELUTE_TEST_DATA", "../shared/data"))
RESULTS = Path(__file__).parent / "results" / "reverse_step.json"
LEVELS = (0.25, 0.6)
TARGETS: tuple[Target, ...] = ("inpaint", "joint", "action")
SEEDS = (0, 1)


def main() -> None:
    """Measure every level and seed."""
    torch.set_num_threads(1)
    cells = []
    for level in LEVELS:
        demos, clean = known_clean(level)
        for seed in SEEDS:
            cells.append({"level": level, "seed": seed, **measure(demos, clean, Seeds(seed))})
            print(json.dumps(cells[-1]), flush=True)
    result = {"command": "python -m benchmarks.reverse_step", "cells": cells}
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def known_clean(level: float) -> tuple[DemoSet, Demonstrations]:
    """D_o and a spoilt D_s, and D_s before it was spoilt."""
    expert = realign(load(DATA / "halfcheetah" / "expert.h5"), 1)
    clean = expert.select([1]).first(500)
    noisy = corrupt(clean, "gaussian", level)
    return DemoSet(optimal=expert.select([0]).first(50), supplementary=noisy), clean


def measure(demos: DemoSet, clean: Demonstrations, seeds: Seeds) -> dict[str, Any]:
    """Error to the clean actions at each step, and what each criterion says."""
    noisy = demos.supplementary

    def error(rows: Demonstrations) -> float:
        return round(float(((rows.actions - clean.actions) ** 2).mean()), 4)

    began = time.perf_counter()
    purifier = DiffusionPurifier()
    choice = choose_reverse_step(purifier, demos, seeds)
    seconds = time.perf_counter() - began
    by_target = {}
    for target in TARGETS:
        trained = replace(purifier, target=target, reverse_step=max(CANDIDATES)).fit(demos, seeds)
        by_target[target] = {step: error(trained.at(step)(noisy)) for step in CANDIDATES}
    policy = policy_errors(purifier, demos, seeds)
    joint = replace(purifier, target="joint")
    apart = {
        "diffused": telling_apart(purifier, demos, seeds),
        "purified": telling_purified(purifier, demos, seeds),
        "purified_joint": telling_purified(joint, demos, seeds),
    }
    chosen = {
        "recovery": choice.for_actions,
        "policy": min(policy, key=lambda step: policy[step]),
        **{f"telling_{name}": first_alike(found, demos) for name, found in apart.items()},
        "theorem": theorem_step(purifier, demos, seeds),
        "theorem_joint": theorem_step(joint, demos, seeds),
    }
    cleaned = {
        name: None if step is None else error(_purified(purifier, step, demos, seeds))
        for name, step in chosen.items()
    }
    return {
        "noisy": error(noisy),
        "nearest": error(NearestPurifier().fit(demos, seeds)(noisy)),
        "relabel": error(RelabelPurifier().fit(demos, seeds)(noisy)),
        "wiener_joint": {
            step: error(WienerPurifier(reverse_step=step, target="joint").fit(demos, seeds)(noisy))
            for step in CANDIDATES
        },
        "error": by_target,
        "recovery": {step: round(value, 4) for step, value in choice.errors.items()},
        "estimated_noise": [round(value, 3) for value in choice.strays],
        "policy": {step: round(value, 4) for step, value in policy.items()},
        **{
            f"telling_{name}": {step: round(value, 2) for step, value in found.items()}
            for name, found in apart.items()
        },
        "chosen": chosen,
        "error_at_chosen": cleaned,
        "choosing_seconds": round(seconds, 1),
    }


def _purified(
    purifier: DiffusionPurifier, step: int, demos: DemoSet, seeds: Seeds
) -> Demonstrations:
    return replace(purifier, reverse_step=step).fit(demos, seeds)(demos.supplementary)


if __name__ == "__main__":
    main()
