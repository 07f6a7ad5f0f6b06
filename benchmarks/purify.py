"""What purification costs: against the paper's settings, against diffusers, and in memory.

    python -m benchmarks.purify              # training and descent
    python -m benchmarks.purify --memory     # 5 million rows from file to file

Same data as `benchmarks.reverse_step`, noise .6, one thread. Seconds are those of the processor, so
that other work on the machine hardly counts. Descents take turns, and the fastest turn counts;
trainings run once, one after another. Quality is the mean squared error to the clean actions.
Results go to `benchmarks/results/purify.json`, where each part replaces its own.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import h5py
import numpy as np
import torch
from torch import Tensor

from elute.demos.audit.repair import realign
from elute.demos.corrupt import corrupt
from elute.demos.files import load, save
from elute.nets import evaluating, tensor
from elute.purify.diffusion import BATCH, DiffusionPurifier, DiffusionTransform
from elute.purify.select import CANDIDATES, choose_reverse_step
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet

DATA = Path(os.environ.get("ELUTE_TEST_DATA", "../shared/data"))
RESULTS = Path(__file__).parent / "results" / "purify.json"
STEP = 150
PAPER_STEPS = (5, 10, 30, 50, 100)
ROUNDS = 5
MANY_ROWS = 4096
MEMORY_ROWS, MEMORY_COLUMNS = 5_000_000, (19, 6)
T = TypeVar("T")


def timed(function: Callable[[], T]) -> tuple[float, T]:
    """Seconds, and what came of it."""
    began = time.process_time()
    made = function()
    return time.process_time() - began, made


def main() -> None:
    """Measure, print and keep."""
    torch.set_num_threads(1)
    if "--memory" in sys.argv:
        keep("memory", memory())
        return
    expert = realign(load(DATA / "halfcheetah" / "expert.h5"), 1)
    clean = expert.select([1]).first(500)
    noisy = corrupt(clean, "gaussian", 0.6)
    demos = DemoSet(optimal=expert.select([0]).first(50), supplementary=noisy)
    fitted = DiffusionPurifier(reverse_step=STEP).fit(demos, Seeds(0))
    keep("descent", descent(fitted, noisy, clean))
    with TemporaryDirectory() as folder:
        files = Path(folder) / "optimal.npz", Path(folder) / "noisy.npz"
        save(demos.optimal, files[0])
        save(noisy, files[1])
        keep("training", training(*files, clean))


def keep(part: str, measured: dict[str, Any]) -> None:
    """Into the results, beside the other parts."""
    print(json.dumps({part: measured}, indent=2), flush=True)
    flag = " --memory" if part == "memory" else ""
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    known[part] = {"command": f"python -m benchmarks.purify{flag}", **measured}
    RESULTS.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")


def error(rows: Demonstrations, clean: Demonstrations) -> float:
    """To the clean actions."""
    return round(float(((rows.actions - clean.actions) ** 2).mean()), 4)


def training(optimal: Path, noisy: Path, clean: Demonstrations) -> dict[str, Any]:
    """From files to purified rows: the default with the step given, with auto, and `paper()`."""
    seeds = Seeds(0)

    def read() -> DemoSet:
        return DemoSet(optimal=load(optimal), supplementary=load(noisy))

    def given() -> Demonstrations:
        demos = read()
        return DiffusionPurifier(reverse_step=STEP).fit(demos, seeds)(demos.supplementary)

    def auto() -> Demonstrations:
        demos, purifier = read(), DiffusionPurifier()
        step = choose_reverse_step(purifier, demos, seeds).for_actions
        return replace(purifier, reverse_step=step).fit(demos, seeds, up_to=max(CANDIDATES))(
            demos.supplementary
        )

    def paper() -> DiffusionTransform:
        demos = read()
        fitted = DiffusionPurifier.paper(PAPER_STEPS[1]).fit(demos, seeds)
        fitted(demos.supplementary)
        return fitted

    given_seconds, by_given = timed(given)
    auto_seconds, by_auto = timed(auto)
    paper_seconds, by_paper = timed(paper)
    rows = load(noisy)
    return {
        "given": {"seconds": round(given_seconds, 1), "error": error(by_given, clean)},
        "auto": {"seconds": round(auto_seconds, 1), "error": error(by_auto, clean)},
        "paper": {
            "seconds": round(paper_seconds, 1),
            "error": {step: error(by_paper.at(step)(rows), clean) for step in PAPER_STEPS},
        },
        "paper_over_given": round(paper_seconds / given_seconds, 1),
        "paper_over_auto": round(paper_seconds / auto_seconds, 1),
    }


def descent(
    fitted: DiffusionTransform, noisy: Demonstrations, clean: Demonstrations
) -> dict[str, Any]:
    """The default descent against every step, by us, by diffusers, and matrix products alone."""
    many = noisy.take(noisy.episodes.pieces(0, len(noisy)) * 9).first(MANY_ROWS)
    every = replace(fitted, purifier=replace(fitted.purifier, descents=0, draws=1))
    ways: dict[str, Callable[[], object]] = {
        "default": lambda: fitted(many),
        "every_step": lambda: every(many),
        "diffusers": lambda: by_diffusers(fitted, many),
        "products": lambda: products(fitted, len(many)),
    }
    seconds = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            seconds[name] = min(seconds[name], timed(way)[0])
    errors = {
        "default": error(fitted(noisy), clean),
        "every_step": error(every(noisy), clean),
        "diffusers": error(by_diffusers(fitted, noisy), clean),
    }
    return {
        "rows": len(many),
        "rows_per_second": {name: round(len(many) / spent) for name, spent in seconds.items()},
        "error": errors,
        "default_over_diffusers": round(seconds["diffusers"] / seconds["default"], 1),
        "every_step_over_diffusers": round(seconds["diffusers"] / seconds["every_step"], 2),
        "default_over_every_step": round(seconds["every_step"] / seconds["default"], 1),
        "share_of_bare_products": round(seconds["products"] / seconds["every_step"], 2),
    }


def products(fitted: DiffusionTransform, rows: int) -> None:
    """The matrix products of the full chain and nothing else."""
    weights = [p for p in fitted.network.parameters() if p.ndim == 2 and p.shape[1] != 64]
    with torch.no_grad():
        for _ in range(STEP * -(-rows // BATCH)):
            x = torch.zeros(BATCH, weights[0].shape[1])
            for weight in weights:
                x = x @ weight.T


def by_diffusers(fitted: DiffusionTransform, rows: Demonstrations) -> Demonstrations:
    """Every step with the same network and the states held, driven by diffusers."""
    try:
        from diffusers import DDPMScheduler  # noqa: PLC0415 (only this part needs it)
    except ImportError as missing:
        raise SystemExit("diffusers is not installed: pip install -e '.[bench]'") from missing
    scheduler = DDPMScheduler(
        num_train_timesteps=1000,
        beta_start=1e-4,
        beta_end=0.02,
        variance_type="fixed_large",
        clip_sample=False,
    )
    scheduler.set_timesteps(1000)
    normaliser, stream = fitted.normaliser, torch.Generator().manual_seed(0)
    scaled = normaliser.apply(rows.pairs)
    is_state = torch.arange(int(normaliser.varies.sum())) < fitted.n_observations

    def diffused(x: Tensor, t: Tensor) -> Tensor:
        noisy: Tensor = scheduler.add_noise(x, torch.randn(x.shape, generator=stream), t[None])
        return noisy

    def purified(batch: Tensor) -> Tensor:
        x = diffused(batch, torch.tensor(STEP - 1))
        for t in scheduler.timesteps[-STEP:]:
            eps = fitted.network(x, t[None] + 1)
            x = scheduler.step(eps, t, x, generator=stream).prev_sample
            original = diffused(batch, t - 1) if t > 0 else batch
            x = torch.where(is_state, original, x)
        return x

    with evaluating(fitted.network):
        batches = torch.split(tensor(scaled[:, normaliser.varies]), BATCH)
        scaled[:, normaliser.varies] = torch.cat([purified(batch) for batch in batches]).numpy()
    actions = normaliser.undo(scaled, rows.pairs)[:, fitted.n_observations :]
    return replace(rows, actions=actions)


def memory() -> dict[str, Any]:
    """The largest resident memory of `elute purify` on a file of five million rows."""
    with TemporaryDirectory() as folder:
        noisy, good, cleaned = (Path(folder) / f"{n}.hdf5" for n in ("noisy", "good", "out"))
        write_rows(noisy, MEMORY_ROWS, noise=0.6)
        write_rows(good, 1000, noise=0.0)
        command = ["elute", "purify", noisy.name, "--optimal", good.name, "-o", cleaned.name]
        command += ["--reverse-step", "1"]  # the shortest descent: memory does not know of others
        began = time.perf_counter()
        with subprocess.Popen([sys.executable, "-m", *command], cwd=folder) as process:
            _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise SystemExit(f"{' '.join(command)} failed")
        return {
            "purified": " ".join(command),
            "rows": MEMORY_ROWS,
            "columns": sum(MEMORY_COLUMNS),
            "file_gib": round(noisy.stat().st_size / 2**30, 2),
            "wall_seconds": round(time.perf_counter() - began),
            "peak_gib": round(usage.ru_maxrss / 2**20, 2),
        }


def write_rows(path: Path, rows: int, *, noise: float) -> None:
    """Episodes of 1000 rows in D4RL's layout, whose actions follow from the states."""
    n_states, n_actions = MEMORY_COLUMNS
    rng = np.random.default_rng(0)
    policy = rng.standard_normal((n_states, n_actions)) / np.sqrt(n_states)
    with h5py.File(path, "w") as file:
        file.create_dataset("observations", (rows, n_states), "float32")
        file.create_dataset("actions", (rows, n_actions), "float32")
        file["rewards"] = np.zeros(rows, "float32")
        file["terminals"] = np.zeros(rows, bool)
        file["timeouts"] = np.arange(1, rows + 1) % 1000 == 0
        for start in range(0, rows, 100_000):
            n = min(100_000, rows - start)
            states = rng.standard_normal((n, n_states))
            actions = np.tanh(states @ policy) + noise * rng.standard_normal((n, n_actions))
            file["observations"][start : start + n] = states
            file["actions"][start : start + n] = actions


if __name__ == "__main__":
    main()
