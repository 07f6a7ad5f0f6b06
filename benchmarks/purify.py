"""What purification costs: against the paper's settings, and against taking every step.

    python -m benchmarks.purify

Same data as `benchmarks.reverse_step`, noise .6, one thread, everything in one run. Results go to
`benchmarks/results/purify.json`. Quality is the mean squared error to the clean actions.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from elute.demos.audit.repair import realign
from elute.demos.corrupt import corrupt
from elute.demos.files import load
from elute.purify.diffusion import BATCH, DiffusionPurifier, DiffusionTransform
from elute.purify.select import choose_reverse_step
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet

DATA = Path(os.environ.get("ELUTE_TEST_DATA", "../shared/data"))
RESULTS = Path(__file__).parent / "results" / "purify.json"
STEP = 150
PAPER_STEPS = (5, 10, 30, 50, 100)
ROUNDS = 3
T = TypeVar("T")


def timed(function: Callable[[], T]) -> tuple[float, T]:
    """Seconds, and what came of it."""
    began = time.perf_counter()
    made = function()
    return time.perf_counter() - began, made


def main() -> None:
    """Measure, print and keep."""
    torch.set_num_threads(1)
    expert = realign(load(DATA / "halfcheetah" / "expert.h5"), 1)
    clean = expert.select([1]).first(500)
    noisy = corrupt(clean, "gaussian", 0.6)
    demos = DemoSet(optimal=expert.select([0]).first(50), supplementary=noisy)
    result: dict[str, Any] = {"command": "python -m benchmarks.purify"}
    result["training"] = training(demos, clean)
    print(json.dumps(result["training"], indent=2), flush=True)
    fitted = DiffusionPurifier(reverse_step=STEP).fit(demos, Seeds(0))
    result["descent"] = descent(fitted, noisy, clean)
    print(json.dumps(result["descent"], indent=2), flush=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def error(rows: Demonstrations, clean: Demonstrations) -> float:
    """To the clean actions."""
    return round(float(((rows.actions - clean.actions) ** 2).mean()), 4)


def training(demos: DemoSet, clean: Demonstrations) -> dict[str, Any]:
    """From data to purified data: the default with the step given, with auto, and `paper()`."""
    noisy, seeds = demos.supplementary, Seeds(0)

    def given() -> Demonstrations:
        return DiffusionPurifier(reverse_step=STEP).fit(demos, seeds)(noisy)

    def auto() -> Demonstrations:
        purifier = DiffusionPurifier()
        step = choose_reverse_step(purifier, demos, seeds).reverse_step
        return replace(purifier, reverse_step=step).fit(demos, seeds)(noisy)

    given_seconds, by_given = timed(given)
    auto_seconds, by_auto = timed(auto)
    paper_seconds, paper = timed(lambda: DiffusionPurifier.paper(PAPER_STEPS[1]).fit(demos, seeds))
    return {
        "given": {"seconds": round(given_seconds, 1), "error": error(by_given, clean)},
        "auto": {"seconds": round(auto_seconds, 1), "error": error(by_auto, clean)},
        "paper": {
            "seconds": round(paper_seconds, 1),
            "error": {step: error(paper.at(step)(noisy), clean) for step in PAPER_STEPS},
        },
        "paper_over_given": round(paper_seconds / given_seconds, 1),
        "paper_over_auto": round(paper_seconds / auto_seconds, 1),
    }


def descent(
    fitted: DiffusionTransform, noisy: Demonstrations, clean: Demonstrations
) -> dict[str, Any]:
    """The default descent against every step, and every step against its matrix products alone."""
    many = noisy.take(noisy.episodes.pieces(0, len(noisy)) * 16)
    every = replace(fitted, purifier=replace(fitted.purifier, descents=0, draws=1))
    default_seconds = min(timed(lambda: fitted(many))[0] for _ in range(ROUNDS))
    every_seconds = min(timed(lambda: every(many))[0] for _ in range(ROUNDS))
    bare = min(timed(lambda: products(fitted, len(many)))[0] for _ in range(ROUNDS))
    return {
        "rows": len(many),
        "default": {
            "rows_per_second": round(len(many) / default_seconds),
            "error": error(fitted(noisy), clean),
        },
        "every_step": {
            "rows_per_second": round(len(many) / every_seconds),
            "error": error(every(noisy), clean),
        },
        "default_over_every_step": round(every_seconds / default_seconds, 1),
        "share_of_bare_products": round(bare / every_seconds, 2),
    }


def products(fitted: DiffusionTransform, rows: int) -> None:
    """The matrix products of the full chain and nothing else."""
    weights = [p for p in fitted.network.parameters() if p.ndim == 2 and p.shape[1] != 64]
    with torch.no_grad():
        for _ in range(STEP * -(-rows // BATCH)):
            x = torch.zeros(BATCH, weights[0].shape[1])
            for weight in weights:
                x = x @ weight.T


if __name__ == "__main__":
    main()
