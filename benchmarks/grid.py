"""What a grid saves by sharing: against its runs one by one, with nothing kept.

    OMP_NUM_THREADS=1 python -m benchmarks.grid

Hopper, two noisy sets, one seed: the diffusion purifier with four learners, a sweep of reverse
steps, and BC-opt. The grid: two processes, from an empty cache. One by one: each run in its turn in
one process, from an empty cache each. The catalogue is made before; both must give the same lines.
Results go to `benchmarks/results/grid.json`. Wall time, so nothing else may run.
"""

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch

from elute.collect.catalogue import fetch
from elute.experiment.cell import Place, run_cell
from elute.experiment.engine import local, run_grid
from elute.experiment.spec import Experiment, Run, runs

RESULTS = Path(__file__).parent / "results" / "grid.json"
QUICK = {"updates": 500, "hold_out": 0.0}
LEARNERS = ("bc", "bcnd", "self-weighted-bc", "dwbc")
GRID = Experiment(
    name="benchmark",
    tasks=("hopper",),
    demos=("action-noise/heavy", "action-noise/light"),
    methods=("bc-opt", *(f"dp-{learner}" for learner in LEARNERS)),
    regimes=("paper",),
    seeds=1,
    episodes=3,
    settings={"bc-opt": QUICK, "dp-bc": QUICK},
)
SWEEP = replace(
    GRID, methods=("dp-bc",), settings={"dp-bc": QUICK}, reverse_steps=(10, 30, 60, 100)
)


def together(wanted: list[Run], folder: Path) -> tuple[float, dict[str, list[float]]]:
    """Seconds of the grid, and the returns of each run."""
    place = Place(cache=folder / "cache")
    began = time.perf_counter()
    done = list(run_grid(wanted, place, folder / "lines.jsonl", engine=local(2)))
    seconds = time.perf_counter() - began
    return seconds, {d.run.name: d.row["metrics"]["returns"] for d in done if d.row}


def apart(wanted: list[Run]) -> tuple[float, dict[str, list[float]]]:
    """Seconds of the runs one by one, and the returns of each."""
    began, found = time.perf_counter(), {}
    for run in wanted:
        with tempfile.TemporaryDirectory() as folder:
            row = run_cell(run, Place(cache=Path(folder)), lambda what, done, total: None)
        found[run.name] = row["metrics"]["returns"]
    return time.perf_counter() - began, found


def main() -> None:
    """Measure, print and keep."""
    torch.set_num_threads(1)
    for name in ("expert", *GRID.demos):
        fetch(f"hopper/{name}")
    wanted = [*runs(GRID), *runs(SWEEP)]
    with tempfile.TemporaryDirectory() as folder:
        shared, lines = together(wanted, Path(folder))
    alone, others = apart(wanted)
    result = {
        "command": "OMP_NUM_THREADS=1 python -m benchmarks.grid",
        "runs": len(wanted),
        "grid_seconds": round(shared, 1),
        "one_by_one_seconds": round(alone, 1),
        "grid_over_one_by_one": round(alone / shared, 2),
        "same_lines": lines == others,
    }
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
