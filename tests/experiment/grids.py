"""A grid that runs in seconds: little data of Hopper's widths, few updates, one episode."""

import json

import numpy as np

from elute.demos.files import save
from elute.episodes import Episodes
from elute.rng import Seeds
from elute.types import Demonstrations

TOML = """
name = "small"
tasks = ["hopper"]
demos = ["action-noise/heavy", "action-noise/light"]
methods = ["bc-opt", "bc-all", "gaussian-bc"]
regimes = ["paper"]
seeds = 2
episodes = 1

[settings]
bc-opt = { updates = 20, hold_out = 0.0 }
bc-all = { updates = 20, hold_out = 0.0 }
gaussian-bc = { updates = 20, hold_out = 0.0 }

[data]
optimal = "good.npz"
demos = { "action-noise/heavy" = "heavy.npz", "action-noise/light" = "light.npz" }
"""
N_RUNS = 12


def write_grid(folder):
    """The file of the experiment, its data beside it."""
    for name, noise in (("good", 0.0), ("heavy", 0.6), ("light", 0.2)):
        rng = Seeds(3)(name)
        observations = rng.standard_normal((120, 11))
        actions = np.tanh(observations[:, :3]) + noise * rng.standard_normal((120, 3))
        demos = Demonstrations(observations, actions, Episodes.of([60, 60]))
        save(demos, folder / f"{name}.npz")
    (folder / "small.toml").write_text(TOML)
    return folder / "small.toml"


def lines(path):
    """Rows by digest, without what a clock says."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        assert row.pop("spent") >= 0
        assert row.pop("timings")
    return {row["digest"]: row for row in rows}
