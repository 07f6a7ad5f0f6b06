"""The demonstrations of a run: which rows of which files."""

from functools import lru_cache
from pathlib import Path

from elute.collect.catalogue import ROWS, TENS, fetch, optimal_beside, ten_of
from elute.demos.audit.repair import realign
from elute.demos.files import load
from elute.envs.task import Task, find_task, starting_from
from elute.errors import EluteError
from elute.experiment.spec import Data, Run
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet

FEW, MANY = 50, 500
"""Optimal and other rows of the paper."""
EPISODE_ROWS = 1000
"""Other rows beside one optimal episode."""


def run_demos(run: Run, data: Data | None, folder: Path | None) -> DemoSet:
    """D_o and D_s of a run.

    Raises:
        EluteError: there are fewer rows or optimal episodes than it asks for.
    """
    optimal, others = _files(run, data, folder)
    optimal = _optimal(run, optimal)
    if run.regime == "whole":
        return DemoSet(optimal, others)
    if run.regime == "expert":
        return DemoSet(optimal)
    if run.regime == "episodes":
        return DemoSet(optimal, others.rows(run.seed * EPISODE_ROWS, (run.seed + 1) * EPISODE_ROWS))
    return DemoSet(optimal, others.first(EPISODE_ROWS if run.regime == "episode" else MANY))


def _optimal(run: Run, optimal: Demonstrations) -> Demonstrations:
    if run.regime in ("episode", "episodes"):
        optimal = optimal.select([run.seed if run.regime == "episodes" else 0])
    if run.optimal_rows > len(optimal):
        raise EluteError(f"{run.optimal_rows} optimal rows asked for; there are {len(optimal)}")
    usual = {"paper": FEW, "spread": FEW, "expert": ROWS}.get(run.regime, len(optimal))
    n = run.optimal_rows or min(usual, len(optimal))
    if run.regime == "spread":
        return optimal.sample(n, Seeds(run.seed)("spread"))
    return optimal if n == len(optimal) else optimal.first(n)


def run_task(run: Run) -> Task:
    """Where a run is evaluated: from the stock states, or from where its ten were begun.

    Raises:
        EluteError: the task cannot begin in given states, or there are no ten.
    """
    task, name = find_task(run.task), f"{run.task}/{run.demos}"
    if run.starts == "stock":
        return task
    if name not in TENS:
        raise EluteError(
            f"{name} is no set of the robot's ten demonstrations",
            hint='starts = "demonstrations" is for sawyer-reach',
        )
    ten = _load(fetch(ten_of(name)))
    return starting_from(task, ten.observations[ten.episodes.starts])


def _files(
    run: Run, data: Data | None, folder: Path | None
) -> tuple[Demonstrations, Demonstrations]:
    if data is None:
        name = f"{run.task}/{run.demos}"
        return _load(fetch(optimal_beside(name))), _load(fetch(name))
    if folder is None:
        raise EluteError("the experiment reads files", hint="say where they are: --data FOLDER")
    return _load(folder / data.optimal, data.realign), _load(folder / data.demos[run.demos])


@lru_cache(maxsize=8)
def _load(path: Path, shift: int = 0) -> Demonstrations:
    demos = load(path)
    return realign(demos, shift) if shift else demos
