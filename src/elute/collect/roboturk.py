"""The ten human demonstrations of the paper's robot section, where somebody has the files.

    demos = read_roboturk(Path("sawyer"))            # episodes in the paper's order 1..10
    optimal = demos.select(members("optimal"))

RoboTurk's operators steered a Sawyer arm over the network; the authors of VILD cut the reaching
part out and published a file for each. The files have no licence, so elute reads them and ships
none. What is checked: dimensions, one whole episode per file of the length and return that the
paper prints, finite values, and that rewards, hand and joints fit each other. What is recovered:
the angle of every joint (extra `joints`), although the last turns by more than a full turn and only
sine and cosine were kept, and the time between rows, which is not the same in all files.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from elute.columns import assign_roles
from elute.demos.files import load
from elute.envs.sawyer_arm import (
    COS,
    GRIP_AT,
    SIN,
    VELOCITY,
    angles,
    count_reward,
    handle_distance,
    pose,
)
from elute.envs.task import SAWYER_REACH, check_columns, find_task
from elute.episodes import Episodes, Provenance
from elute.errors import EluteError
from elute.types import Demonstrations

FOLDER = "ELUTE_ROBOTURK"
"""Environment variable: where the files are."""
FILE = "SawyerNutAssemblyRound_reach_TRAJ-ID{}.h5"
JOINTS = "joints"
OFF = 1e-4
"""How far the hand may be from where the joints have it (m); in the published files 4e-8."""


class Trajectory(NamedTuple):
    """One of the ten, as the paper has it."""

    number: int
    length: int
    earned: int
    group: str
    """D_o, Robo-L1 (returns below 150) or Robo-L2."""


TEN = (
    Trajectory(12, 500, 276, "l2"),
    Trajectory(223, 502, 120, "l1"),
    Trajectory(904, 502, 203, "l2"),
    Trajectory(640, 505, 102, "l1"),
    Trajectory(397, 506, 253, "l2"),
    Trajectory(681, 507, 312, "optimal"),
    Trajectory(795, 507, 103, "l1"),
    Trajectory(442, 509, 81, "l1"),
    Trajectory(291, 511, 180, "l2"),
    Trajectory(580, 511, 318, "optimal"),
)
"""In the paper's order."""
SETS = {"optimal": ("optimal",), "l1": ("l1",), "l2": ("l2",), "supplementary": ("l1", "l2")}
"""What can be had of the ten, and the groups in it."""


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
            f"{SAWYER_REACH}/operator, which is synthetic",
        )
    return Path(folder)


def paths(folder: Path) -> dict[int, Path]:
    """The ten files by trajectory.

    Raises:
        EluteError: some are missing.
    """
    found = {one.number: folder / FILE.format(one.number) for one in TEN}
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
    found = paths(folder)
    parts = [_trajectory(one, found[one.number]) for one in TEN]
    first = parts[0]
    return replace(
        first,
        observations=np.concatenate([part.observations for part in parts]),
        actions=np.concatenate([part.actions for part in parts]),
        rewards=np.concatenate([part.rewards for part in parts if part.rewards is not None]),
        extras={JOINTS: np.concatenate([part.extras[JOINTS] for part in parts])},
        episodes=Episodes.of(
            [len(part) for part in parts],
            truncated=[True] * len(parts),  # cut when the fingers touched the nut
            attributes=[_about(place, part) for place, part in enumerate(parts)],
        ),
        provenance=Provenance(source=str(folder), task=SAWYER_REACH).then(
            "read", trajectories=[one.number for one in TEN]
        ),
        origin=None,
    )


def members(name: str) -> list[int]:
    """Places of a set in the paper's order, 0..9."""
    return [place for place, one in enumerate(TEN) if one.group in SETS[name]]


def _trajectory(known: Trajectory, path: Path) -> Demonstrations:
    demos = load(path, task=SAWYER_REACH)
    task, widths = find_task(SAWYER_REACH), (demos.observations.shape[1], demos.actions.shape[1])
    check_columns(task, *widths, str(path))
    _check_episode(demos, known, path)
    _check_values(demos, path)
    _check_identity(demos, known, path)
    return replace(
        demos,
        extras={JOINTS: angles(demos.observations)},
        observation_columns=assign_roles(demos.observation_columns, task.columns),
    )


def _check_episode(demos: Demonstrations, known: Trajectory, path: Path) -> None:
    """One, to its end."""
    episodes = demos.episodes
    if len(episodes) != 1:
        raise EluteError(f"{path}: {len(episodes)} episodes; expected one of ID {known.number}")
    if not (episodes.terminated[0] or episodes.truncated[0]):
        raise EluteError(f"{path}: the episode has no end", hint="is the last mask 0?")


def _check_values(demos: Demonstrations, path: Path) -> None:
    """Columns that fit each other."""
    states = demos.observations
    for name, values in (("states", states), ("actions", demos.actions)):
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
            raise EluteError(f"{path}: {name} that are not finite, first in row {row}")
    expected = count_reward(handle_distance(states))
    if demos.rewards is None:
        raise EluteError(f"{path}: no rewards")
    if not np.array_equal(demos.rewards, expected):
        wrong = int((demos.rewards != expected).sum())
        raise EluteError(
            f"{path}: {wrong} rewards do not follow from the states",
            hint="are columns in another order, or rows shifted against each other?",
        )
    off = np.linalg.norm(pose(states[:, SIN], states[:, COS]).grip - states[:, GRIP_AT], axis=1)
    if off.max() > OFF:
        raise EluteError(
            f"{path}: in row {off.argmax()} the hand is {off.max():.2g} m from where the joint "
            "angles have it",
            hint="are columns in another order? first come seven sines, then seven cosines",
        )


def _check_identity(demos: Demonstrations, known: Trajectory, path: Path) -> None:
    """The trajectory that the name says, and all of it."""
    assert demos.rewards is not None
    has = len(demos), int(demos.rewards.sum())
    if has != (known.length, known.earned):
        raise EluteError(
            f"{path}: a return of {has[1]} in {has[0]} rows; ID {known.number} has {known.earned} "
            f"in {known.length}",
            hint="was it cut, or is it another trajectory under this name?",
        )


def _about(place: int, part: Demonstrations) -> Mapping[str, Any]:
    return {
        "trajectory": TEN[place].number,
        "paper": place + 1,
        "filters": [TEN[place].group],
        "period": period(part),
    }


def period(part: Demonstrations) -> float:
    """Seconds between most rows: joints move by their velocity times it.

    Raises:
        EluteError: the velocities are zero throughout.
    """
    moved = np.diff(part.extras[JOINTS], axis=0)
    speed = (part.observations[1:, VELOCITY] + part.observations[:-1, VELOCITY]) / 2
    squared = (speed**2).sum(axis=1)
    moving = squared > 0
    if not moving.any():
        raise EluteError(f"{part.provenance.source}: the joint velocities are all 0")
    return round(float(np.median((moved * speed).sum(axis=1)[moving] / squared[moving])), 3)
