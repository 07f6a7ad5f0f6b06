"""Files that do not fit into memory: rows per second and peak memory of the commands that stream.

    python -m benchmarks.scale                      # everything: 5 M rows, and 5 GiB of images
    python -m benchmarks.scale --rows 1000000 --skip images --only audit --only convert

Each command runs in a process of its own. Peak memory is the largest sum over the process and all
below it of what they hold for themselves (USS), looked at every half second, so that pages
that a file shares with the system's cache do not count; `rss_gib` is the largest resident set of
the command's own process, which counts them. Seconds are those of the clock; `cpu_seconds`, of the
processor, hardly depend on what else the machine does (those of Ray's workers are not counted).
Files are deleted afterwards; they take three times the data. Results go to
`benchmarks/results/scale.json`, where each command replaces its own.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import h5py
import numpy as np

RESULTS = Path(__file__).parent / "results" / "scale.json"
STATES, ACTIONS, EPISODE = 19, 6, 1000
IMAGE = (128, 128, 3)
CAMERAS = ("agentview_image", "robot0_eye_in_hand_image")
DEMO_ROWS = 200
LOOK = 0.5
"""Seconds between looks at the memory."""


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--images", type=float, default=5.0, help="GiB")
    parser.add_argument("--skip", action="append", default=[], choices=["rows", "images"])
    parser.add_argument(
        "--only", action="append", default=[], help="of the commands, by their names"
    )
    parser.add_argument("--folder", default=None, help="where the files go meanwhile")
    given = parser.parse_args()
    with TemporaryDirectory(dir=given.folder) as folder:
        if "rows" not in given.skip:
            many_rows(Path(folder), given.rows, given.only)
    with TemporaryDirectory(dir=given.folder) as folder:
        if "images" not in given.skip:
            many_images(Path(folder), given.images, given.only)


def keep(part: str, about: dict[str, Any], name: str, measured: dict[str, Any]) -> None:
    """Into the results, in place of what was measured for the same before."""
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    before = known.get(part, {}).get("commands", {})
    commands = {**before, name: measured}
    known[part] = {"command": "python -m benchmarks.scale", **about, "commands": commands}
    RESULTS.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")


def many_rows(folder: Path, rows: int, only: list[str]) -> None:
    """Many rows of few columns, from file to file."""
    write_rows(folder / "noisy.h5", rows)
    write_rows(folder / "good.h5", 2000)
    purify = ["purify", "noisy.h5", "--optimal", "good.h5", "--method", "wiener", "-o"]
    fix = ["--clip", "--bounds=-1,1", "--fix"]
    commands = {
        "audit": ["demos", "audit", "noisy.h5"],
        "audit --fix": ["demos", "audit", "noisy.h5", *fix, "f.h5"],
        "convert": ["demos", "convert", "noisy.h5", "noisy.npz"],
        "convert back": ["demos", "convert", "noisy.npz", "b.h5", "--to", "vild"],
        "purify --jobs 1": [*purify, "1.h5", "--jobs", "1"],
        "purify --jobs 2": [*purify, "2.h5", "--jobs", "2"],
        "purify --engine ray --jobs 2": [*purify, "r.h5", "--engine", "ray", "--jobs", "2"],
    }
    size = (folder / "noisy.h5").stat().st_size
    about = {"rows": rows, "columns": STATES + ACTIONS, "file_gib": round(size / 2**30, 2)}
    for name, command in _chosen(commands, only):
        measured = measure(name, command, folder, rows)
        for made in ("f.h5", "b.h5", "2.h5", "r.h5"):
            if (folder / made).exists() and made in ("2.h5", "r.h5"):
                measured["as_with_one_job"] = same(folder / "1.h5", folder / made)
            (folder / made).unlink(missing_ok=True)
        keep("rows", about, name, measured)


def many_images(folder: Path, gib: float, only: list[str]) -> None:
    """A robomimic file of images, which are carried along."""
    demos = round(gib * 2**30 / (len(CAMERAS) * DEMO_ROWS * int(np.prod(IMAGE))))
    write_images(folder / "noisy.hdf5", demos)
    write_images(folder / "good.hdf5", 3)
    commands = {
        "audit": ["demos", "audit", "noisy.hdf5"],
        "audit --fix": ["demos", "audit", "noisy.hdf5", "--clip", "--bounds=-1,1",
                        "--fix", "o.hdf5"],
        "convert": ["demos", "convert", f"noisy.hdf5#episodes=1-{demos - 1}", "o.hdf5"],
        "purify": ["purify", "noisy.hdf5", "--optimal", "good.hdf5", "--method", "wiener",
                   "-o", "o.hdf5"],
    }  # fmt: skip
    size = (folder / "noisy.hdf5").stat().st_size
    about = {"rows": demos * DEMO_ROWS, "file_gib": round(size / 2**30, 2)}
    for name, command in _chosen(commands, only):
        keep("images", about, name, measure(name, command, folder, demos * DEMO_ROWS))
        (folder / "o.hdf5").unlink(missing_ok=True)


def _chosen(commands: dict[str, list[str]], only: list[str]) -> list[tuple[str, list[str]]]:
    return [(name, command) for name, command in commands.items() if not only or name in only]


def measure(name: str, command: list[str], folder: Path, rows: int) -> dict[str, Any]:
    """Seconds and memory of a command."""
    began, before = time.perf_counter(), os.times()
    process = subprocess.Popen(
        [sys.executable, "-m", "elute", *command], cwd=folder, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    peak = rss = 0
    while process.poll() is None:
        peak, rss = max(peak, held(process.pid)), max(rss, resident(process.pid))
        time.sleep(LOOK)
    seconds, after = time.perf_counter() - began, os.times()
    said = process.stderr.read() if process.stderr else ""
    if process.returncode not in (0, 1):
        raise SystemExit(f"elute {' '.join(command)} failed:\n{said}")
    spent = sum(after[2:4]) - sum(before[2:4])
    measured = {
        "rows_per_second": round(rows / seconds),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(spent, 1),
        "peak_gib": round(peak / 2**30, 2),
        "rss_gib": round(rss / 2**30, 2),
    }
    print(f"{name:32} {json.dumps(measured)}", flush=True)
    return measured


def held(process: int) -> int:
    """Bytes that a process and all below it hold for themselves."""
    return sum(_memory(one, "smaps_rollup", "Private_") for one in family(process))


def resident(process: int) -> int:
    """Bytes of a process that are in memory, whoever shares them."""
    return _memory(process, "status", "VmRSS")


def _memory(process: int, file: str, field: str) -> int:
    try:
        lines = Path(f"/proc/{process}/{file}").read_text(encoding="utf-8").splitlines()
    except OSError:  # it has ended
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def family(process: int) -> list[int]:
    """A process and all below it."""
    found, left = [], [process]
    while left:
        one = left.pop()
        found.append(one)
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                left += map(int, children.read_text(encoding="utf-8").split())
            except OSError:
                continue
    return found


def same(one: Path, other: Path) -> bool:
    """Whether two files have the same bytes."""
    with one.open("rb") as a, other.open("rb") as b:
        while True:
            here, there = a.read(2**24), b.read(2**24)
            if here != there:
                return False
            if not here:
                return True


def write_rows(path: Path, rows: int) -> None:
    """Episodes of 1000 rows in VILD's layout, whose actions follow from the states."""
    rng = np.random.default_rng(0)
    policy = rng.standard_normal((STATES, ACTIONS)) / np.sqrt(STATES)
    with h5py.File(path, "w") as file:
        file.create_dataset("expert_states", (rows, STATES), "float64")
        file.create_dataset("expert_actions", (rows, ACTIONS), "float64")
        file["expert_rewards"] = np.zeros(rows)
        file["expert_masks"] = np.arange(1, rows + 1) % EPISODE != 0
        for start in range(0, rows, 100_000):
            n = min(100_000, rows - start)
            states = rng.standard_normal((n, STATES))
            actions = np.tanh(states @ policy) + 0.3 * rng.standard_normal((n, ACTIONS))
            file["expert_states"][start : start + n] = states
            file["expert_actions"][start : start + n] = actions


def write_images(path: Path, demos: int) -> None:
    """Demonstrations of 200 rows in robomimic's layout, with two cameras."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (DEMO_ROWS, *IMAGE), dtype=np.uint8)
    policy = rng.standard_normal((STATES, ACTIONS)) / np.sqrt(STATES)
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = "{}"
        for i in range(demos):
            demo = data.create_group(f"demo_{i}")
            demo.attrs["num_samples"] = DEMO_ROWS
            states = rng.standard_normal((DEMO_ROWS, STATES))
            demo["obs/robot0_eef_pos"], demo["obs/object"] = states[:, :3], states[:, 3:]
            noise = 0.3 * rng.standard_normal((DEMO_ROWS, ACTIONS))
            demo["actions"] = np.tanh(states @ policy) + noise
            demo["rewards"], demo["dones"] = np.zeros(DEMO_ROWS), np.zeros(DEMO_ROWS, "int64")
            for camera in CAMERAS:
                demo[f"obs/{camera}"] = images


if __name__ == "__main__":
    main()
