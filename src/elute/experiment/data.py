"""The demonstrations of a run: which rows of which files."""

from functools import lru_cache
from pathlib import Path

from elute.collect.catalogue import ROWS, fetch
from elute.demos.audit.repair import realign
from elute.demos.files import load
from elute.errors import EluteError
from elute.experiment.spec import Data, Run
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet

FEW, MANY = 50, 500
"""Optimal and other rows of the paper."""
EPISODE_ROWS = 1000
"""Other rows beside one optimal episode."""


def run_demos(run: Run, data: Data | None, folder: Path | None) -> DemoSet:
    """D_o and D_s of a run."""
    optimal, others = _files(run, data, folder)
    if run.regime == "expert":
        return DemoSet(optimal.first(ROWS))
    if run.regime == "episode":
        return DemoSet(optimal.select([0]), others.first(EPISODE_ROWS))
    if run.regime == "spread":
        few = min(FEW, len(optimal))
        return DemoSet(optimal.sample(few, Seeds(run.seed)("spread")), others.first(MANY))
    return DemoSet(optimal.first(FEW), others.first(MANY))


def _files(
    run: Run, data: Data | None, folder: Path | None
) -> tuple[Demonstrations, Demonstrations]:
    if data is None:
        return _load(fetch(f"{run.task}/expert")), _load(fetch(f"{run.task}/{run.demos}"))
    if folder is None:
        raise EluteError("the experiment reads files", hint="say where they are: --data FOLDER")
    return _load(folder / data.optimal, data.realign), _load(folder / data.demos[run.demos])


@lru_cache(maxsize=8)
def _load(path: Path, shift: int = 0) -> Demonstrations:
    demos = load(path)
    return realign(demos, shift) if shift else demos
