"""The ten human demonstrations of the paper's robot section, where somebody has the files.

    demos = read_roboturk(Path("sawyer"))            # episodes in the paper's order 1..10
    optimal = demos.select(group(demos, "optimal"))

RoboTurk's operators steered a Sawyer arm over the network; the authors of VILD cut the reaching
part out and published a file for each. The files have no licence, so elute reads them and ships
none. What is checked: dimensions, one episode per file, and that the rewards follow from the
states. What is recovered: the angle of every joint (extra `joints`), although the last turns by
more than a full turn and only sine and cosine were kept, and the time between rows, which is not
the same in all files.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from elute.columns import assign_roles
from elute.demos.files import load
from elute.envs.sawyer_arm import VELOCITY, angles, count_reward, handle_distance
from elute.envs.task import check_columns, find_task
from elute.episodes import Episodes, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations

FOLDER = "ELUTE_ROBOTURK"
"""Environment variable: where the files are."""
FILE = "SawyerNutAssemblyRound_reach_TRAJ-ID{}.h5"
ORDER = (12, 223, 904, 640, 397, 681, 795, 442, 291, 580)
"""Numbers of the trajectories, in the paper's order."""
GROUPS = {
    "optimal": (681, 580),
    "l1": (223, 640, 795, 442),
    "l2": (12, 904, 397, 291),
}
"""The paper's D_o, Robo-L1 (returns below 150) and Robo-L2."""
SETS = {**GROUPS, "supplementary": GROUPS["l1"] + GROUPS["l2"]}
"""What can be had of the ten."""
JOINTS = "joints"
TASK = "sawyer-reach"


def roboturk_folder() -> Path:
    """Where the user says the files are.

    Raises:
        EluteError: nowhere.
    """
    folder = os.environ.get(FOLDER, "")
    if not folder:
        raise EluteError(
            "the human demonstrations are other people's files and not part of elute",
            hint=f"set {FOLDER} to the folder with {FILE.format(12)} and the nine others, or use "
            "sawyer-reach/operator, which is synthetic",
        )
    return Path(folder)


def paths(folder: Path) -> dict[int, Path]:
    """The ten files by trajectory.

    Raises:
        EluteError: some are missing.
    """
    found = {number: folder / FILE.format(number) for number in ORDER}
    missing = [path.name for path in found.values() if not path.is_file()]
    if missing:
        raise EluteError(
            f"{folder}: {', '.join(missing)} missing",
            hint="all ten trajectories are needed, by the names they were published with",
        )
    return found


def read_roboturk(folder: Path) -> Demonstrations:
    """All ten, checked.

    Raises:
        EluteError: a file is missing, of another task, or not what it should be.
    """
    parts = [_trajectory(number, path) for number, path in paths(folder).items()]
    first = parts[0]
    for part in parts:
        if part.rewards is None:
            raise EluteError(f"{part.provenance.source}: no rewards")
    return replace(
        first,
        observations=np.concatenate([part.observations for part in parts]),
        actions=np.concatenate([part.actions for part in parts]),
        rewards=np.concatenate([part.rewards for part in parts if part.rewards is not None]),
        extras={JOINTS: np.concatenate([part.extras[JOINTS] for part in parts])},
        episodes=Episodes.of(
            [len(part) for part in parts],
            truncated=[True] * len(parts),  # cut when the fingers touched the nut
            attributes=[_about(number, part) for number, part in zip(ORDER, parts, strict=True)],
        ),
        provenance=Provenance(source=str(folder), task=TASK).then("read", trajectories=list(ORDER)),
        origin=None,
    )


def group(demos: Demonstrations, name: str) -> list[int]:
    """Episodes of a group, as `FILE#optimal` selects them."""
    return [i for i, keys in enumerate(demos.episodes.filters) if name in keys]


def members(name: str) -> list[int]:
    """Places of a set in the paper's order, 0..9."""
    return [place for place, number in enumerate(ORDER) if number in SETS[name]]


def group_of(place: int) -> str:
    """The group of the trajectory at this place of the paper's order, 0..9."""
    return next(name for name, members in GROUPS.items() if ORDER[place] in members)


def _trajectory(number: int, path: Path) -> Demonstrations:
    demos = load(path, task=TASK)
    task, widths = find_task(TASK), (demos.observations.shape[1], demos.actions.shape[1])
    check_columns(task, *widths, str(path))
    if len(demos.episodes) != 1:
        raise EluteError(f"{path}: {len(demos.episodes)} episodes; expected one of ID {number}")
    expected = count_reward(handle_distance(demos.observations))
    if demos.rewards is not None and not np.array_equal(demos.rewards, expected):
        wrong = int((demos.rewards != expected).sum())
        raise EluteError(
            f"{path}: {wrong} rewards do not follow from the states",
            hint="are columns in another order, or rows shifted against each other?",
        )
    return replace(
        demos,
        extras={JOINTS: angles(demos.observations)},
        observation_columns=assign_roles(demos.observation_columns, task.columns),
    )


def _about(number: int, part: Demonstrations) -> Mapping[str, Any]:
    place = ORDER.index(number)
    return {
        "trajectory": number,
        "paper": place + 1,
        "filters": [group_of(place)],
        "period": period(part),
    }


def period(part: Demonstrations) -> float:
    """Seconds between most rows: joints move by their velocity times it."""
    moved = np.diff(part.extras[JOINTS], axis=0)
    speed = (part.observations[1:, VELOCITY] + part.observations[:-1, VELOCITY]) / 2
    return round(float(np.median((moved * speed).sum(axis=1) / (speed**2).sum(axis=1))), 3)
