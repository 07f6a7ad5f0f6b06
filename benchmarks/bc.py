"""How fast behaviour cloning updates: against the `imitation` package's, same network and batch.

    make .venv-imitation/ready
    OMP_NUM_THREADS=1 python -m benchmarks.bc

700 rows of 17 observations and 6 actions, two hidden layers of 100 tanh units, one thread. Both
sides take the negative log likelihood of a Gaussian (elute its squared error as well), in turns,
each with a fresh policy; the fastest of the turns counts. `imitation` freezes Gymnasium in the
past, so it runs in an environment and process of its own, `benchmarks/peer_bc.py`, and times itself
after its imports and a few updates.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from elute.episodes import Episodes
from elute.learners.bc import BC
from elute.types import Demonstrations

RESULTS = Path(__file__).parent / "results" / "bc.json"
PEER = Path(".venv-imitation/bin/python")
BATCHES, UPDATES, TURNS = (32, 256), 2000, 3


def demos(rows: int = 700) -> Demonstrations:
    """Any numbers of the size of HalfCheetah's."""
    rng = np.random.default_rng(0)
    observations = rng.standard_normal((rows, 17))
    actions = np.tanh(observations @ rng.standard_normal((17, 6)))
    return Demonstrations(observations, actions, Episodes.of([rows]))


def ours(loss: str, batch_size: int) -> float:
    """Updates per second of `BC`, all of its fit included."""
    learner = BC(
        loss=loss,  # type: ignore[arg-type]
        updates=UPDATES,
        hold_out=0.0,
        batch_size=batch_size,
        averaging=0.0,  # the other has none
    )
    rows = demos()
    began = time.perf_counter()
    learner.clone(rows, np.random.default_rng(0))
    return UPDATES / (time.perf_counter() - began)


def theirs(batch_size: int) -> float:
    """Updates per second of `imitation`."""
    script = Path(__file__).with_name("peer_bc.py")
    done = subprocess.run(
        [PEER, script, str(batch_size), str(UPDATES)], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def main() -> None:
    """Measure, print and keep."""
    if not PEER.exists():
        sys.exit("make .venv-imitation/ready first")
    torch.set_num_threads(1)
    ours("mse", 256)
    found = {}
    for size in BATCHES:
        speeds: dict[str, float] = {}
        for _ in range(TURNS):
            measured = {
                "elute_nll": ours("nll", size),
                "elute_mse": ours("mse", size),
                "imitation": theirs(size),
            }
            speeds = {name: max(speed, speeds.get(name, 0)) for name, speed in measured.items()}
        ratios = {
            f"{name}_over_imitation": round(speeds[name] / speeds["imitation"], 2)
            for name in ("elute_nll", "elute_mse")
        }
        found[f"batch_{size}"] = {
            "updates_per_second": {name: round(speed) for name, speed in speeds.items()},
            **ratios,
        }
    result = {"command": "OMP_NUM_THREADS=1 python -m benchmarks.bc", **found}
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
