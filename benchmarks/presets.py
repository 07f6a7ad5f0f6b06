"""The presets at every target and step, on data whose clean actions are known.

    python -m benchmarks.presets

Same data as `benchmarks.reverse_step`, noise .6. Each preset is trained once, up to the largest
step, and then used at every target and step: training does not depend on the target. Results go to
`benchmarks/results/presets.json`; numbers are mean squared errors to the clean actions.
"""

import json
import time
from dataclasses import replace
from typing import Any

import torch

from benchmarks.purify import error
from benchmarks.reverse_step import RESULTS, TARGETS, known_clean
from elute.purify.diffusion import DiffusionPurifier, DiffusionTransform
from elute.rng import Seeds
from elute.types import Demonstrations

STEPS = (5, 10, 30, 60, 100, 150, 200, 300)
PRESETS = {
    "default": DiffusionPurifier(reverse_step=max(STEPS)),
    "paper": DiffusionPurifier.paper(max(STEPS)),
    "reference": DiffusionPurifier.reference(max(STEPS)),
}


def main() -> None:
    """Train each preset, measure, print and keep."""
    torch.set_num_threads(1)
    demos, clean = known_clean(0.6)
    noisy = demos.supplementary
    result: dict[str, Any] = {"command": "python -m benchmarks.presets"}
    result["noisy"] = error(noisy, clean)
    for name, purifier in PRESETS.items():
        began = time.perf_counter()
        trained = purifier.fit(demos, Seeds(0))
        seconds = round(time.perf_counter() - began, 1)
        extra = purifier.reverse_step - max(STEPS)  # reference() takes one step more than it says
        result[name] = {"training_seconds": seconds, **errors(trained, noisy, clean, extra)}
        print(name, json.dumps(result[name]), flush=True)
    path = RESULTS.with_name("presets.json")
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def errors(
    trained: DiffusionTransform, noisy: Demonstrations, clean: Demonstrations, extra: int
) -> dict[str, dict[int, float]]:
    """To the clean actions, by target and step."""
    by_target: dict[str, dict[int, float]] = {}
    for target in TARGETS:
        aimed = replace(trained, purifier=replace(trained.purifier, target=target))
        by_target[target] = {s: error(aimed.at(s + extra)(noisy), clean) for s in STEPS}
    return by_target


if __name__ == "__main__":
    main()
