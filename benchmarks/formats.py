"""Reading and auditing a million rows, against a bare h5py read of the same arrays.

    python -m benchmarks.formats

Ratios are measured side by side in one run, the median of five rounds, and kept in
`benchmarks/results/formats.json`.
"""

import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elute.demos.audit.audit import audit
from elute.demos.files import load, open_demos, save
from elute.episodes import Episodes
from elute.types import Demonstrations

ROWS, OBSERVATIONS, ACTIONS, EPISODE = 1_000_000, 19, 6, 1000
ROUNDS = 5
RESULTS = Path(__file__).parent / "results" / "formats.json"
ARRAYS = {
    "vild": ("expert_states", "expert_actions", "expert_rewards"),
    "d4rl": ("observations", "actions", "rewards"),
    "robomimic": ("obs/flat", "actions", "rewards"),
    "minari": ("observations", "actions", "rewards"),
}


def make() -> Demonstrations:
    """A million rows of a noisy linear system, in episodes of a thousand."""
    rng = np.random.default_rng(0)
    states = rng.standard_normal((ROWS, OBSERVATIONS)).cumsum(axis=0) % 7.0
    episodes = Episodes.of([EPISODE] * (ROWS // EPISODE), truncated=[True] * (ROWS // EPISODE))
    return Demonstrations(
        observations=states,
        actions=rng.standard_normal((ROWS, ACTIONS)),
        rewards=rng.standard_normal(ROWS),
        episodes=episodes,
    )


def bare_read(path: Path, name: str) -> None:
    """The same arrays by h5py alone, joined as any user of a grouped file would."""
    file_path = path / "data" / "main_data.hdf5" if path.is_dir() else path
    with h5py.File(file_path, "r") as file:
        groups = [file]
        if name == "robomimic":
            groups = [file["data"][f"demo_{i}"] for i in range(len(file["data"]))]
        if name == "minari":
            groups = [file[f"episode_{i}"] for i in range(len(file))]
        for array in ARRAYS[name]:
            parts = [group[array][:] for group in groups]
            if len(parts) > 1:
                np.concatenate(parts)


def seconds(function: Callable[[], object]) -> float:
    """How long one call takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def measure(path: Path, name: str) -> dict[str, float]:
    """Read, audit and bare read, in turn, the median of the rounds."""
    bare_read(path, name)  # the file is in the page cache for everybody
    took: dict[str, list[float]] = {"bare": [], "read": [], "audit": []}
    for _ in range(ROUNDS):
        took["bare"].append(seconds(lambda: bare_read(path, name)))
        took["read"].append(seconds(lambda: load(path)))
        took["audit"].append(seconds(lambda: audit(open_demos(path))))
    median = {what: statistics.median(times) for what, times in took.items()}
    return {
        "bare_seconds": round(median["bare"], 4),
        "read_over_bare": round(median["read"] / median["bare"], 2),
        "audit_over_bare": round(median["audit"] / median["bare"], 1),
    }


def help_cost() -> dict[str, Any]:
    """What `elute --help` takes and imports."""
    code = (
        "import sys, elute.cli.main; print([m for m in ('torch', 'gymnasium') if m in sys.modules])"
    )
    imported = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    command = [sys.executable, "-m", "elute", "--help"]
    times = [seconds(lambda: subprocess.run(command, capture_output=True, check=True))
             for _ in range(ROUNDS)]  # fmt: skip
    return {"seconds": round(statistics.median(times), 3), "heavy": imported.stdout.strip()}


def main() -> None:
    """Measure everything and keep the result."""
    demos = make()
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ARRAYS:
            path = Path(folder) / ("bench-v0" if name == "minari" else f"{name}.hdf5")
            save(demos, path, format=name)
            measured[name] = measure(path, name)
            print(name, measured[name], flush=True)
    result = {
        "command": "python -m benchmarks.formats",
        "rows": ROWS,
        "columns": OBSERVATIONS + ACTIONS,
        "rounds": ROUNDS,
        "formats": measured,
        "help": help_cost(),
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "h5py": h5py.__version__,
        },
    }
    print("help", result["help"])
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
