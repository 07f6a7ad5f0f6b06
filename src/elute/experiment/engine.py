"""Runs of a grid, over processes or over a Ray cluster; the same lines on both.

    for done in run_grid(runs, place, results, engine=local(jobs=2)):
        print(done.run.name, done.row or done.error)

What is in the results is not run again. A run is claimed before it is begun, so two processes on
one grid share it; a claim ends with its process, however that ends.
"""

import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

from elute import results
from elute.errors import EluteError
from elute.experiment.cell import Place, run_cell, run_digest
from elute.experiment.cluster import connected, ray_library
from elute.experiment.parallel import Progress, Report, parallel
from elute.experiment.spec import Run
from elute.experiment.stages import claim

TRIES = 3
"""Of a run whose process is killed."""
KILLED = "its process was killed; fewer --jobs need less memory"
WAIT = 2.0
"""Seconds between looks for what another process has claimed."""


@dataclass(frozen=True)
class Done:
    """A run that ended."""

    run: Run
    row: dict[str, Any] | None
    """Its line; none if it failed, or another process is at it."""
    error: str = ""


Engine = Callable[[Sequence[Run], Place, Path, Progress], Iterator[Done]]
"""Tries each run once."""


def local(jobs: int) -> Engine:
    """Over processes of this machine."""

    def engine(runs: Sequence[Run], place: Place, path: Path, progress: Progress) -> Iterator[Done]:
        yield from outliving(partial(_claimed, place=place, path=path), runs, jobs, progress)

    return engine


def outliving(
    work: Callable[[Run, Report], Done], runs: Sequence[Run], jobs: int, progress: Progress
) -> Iterator[Done]:
    """Each run, though a process may be killed (by a system short of memory, say).

    Which run it was at is not known: those that are left are begun anew. When that does not help,
    the first ones are given up, for they are begun first.
    """
    left, tries = dict(enumerate(runs)), TRIES
    while left:
        numbers = list(left)
        told = partial(_renumbered, progress, numbers)
        try:
            for i, done in parallel(work, list(left.values()), jobs=jobs, progress=told):
                del left[numbers[i]]
                tries = TRIES
                yield done
        except BrokenExecutor:
            tries -= 1
            if not tries or len(left) == 1:  # one alone would be run in this very process
                tries = TRIES
                for number in list(left)[:jobs]:
                    yield Done(left.pop(number), None, KILLED)


def _renumbered(
    progress: Progress, numbers: Sequence[int], i: int, what: str, done: int, total: int
) -> None:
    progress(numbers[i], what, done, total)


def _claimed(run: Run, report: Report, *, place: Place, path: Path) -> Done:
    """A run, unless somebody else has it; its line is on the disk before the claim ends."""
    name = run_digest(run, place)
    with claim(place.cache, name) as mine:
        if not mine:
            return Done(run, None)
        known = [row for row in results.read(path).rows if row.get("digest") == name]
        if known:
            return Done(run, known[0])
        done = _tried(run, place, report)
        if done.row is not None:
            results.append(path, done.row)
        return done


def _tried(run: Run, place: Place, report: Report) -> Done:
    try:
        return Done(run, run_cell(run, place, report))
    except EluteError as error:
        return Done(run, None, str(error))
    except Exception as error:  # one bad run must not end a night's grid
        where = traceback.extract_tb(error.__traceback__)[-1]
        at = f"{Path(where.filename).name}, line {where.lineno}"
        return Done(run, None, f"{type(error).__name__}: {error} ({at})")


def ray(jobs: int, address: str = "") -> Engine:
    """Over a Ray cluster: one that runs at this address, or a local one made for it.

    Raises:
        EluteError: Ray is not installed, or there is no cluster at the address.
    """
    library = ray_library()

    def engine(runs: Sequence[Run], place: Place, path: Path, progress: Progress) -> Iterator[Done]:
        del progress  # Ray's own page shows it
        with ExitStack() as claims:
            mine = []
            for run in runs:
                if claims.enter_context(claim(place.cache, run_digest(run, place))):
                    mine.append(run)
                else:
                    yield Done(run, None)
            if mine:
                with connected(library, jobs, address):
                    yield from _on_ray(library, mine, place, path)

    return engine


def _on_ray(
    library: Any,  # noqa: ANN401
    runs: Sequence[Run],
    place: Place,
    path: Path,
) -> Iterator[Done]:
    """Runs as tasks. The driver has claimed them and writes, for workers may be elsewhere."""
    remote = library.remote(num_cpus=1, max_retries=TRIES)(_alone)
    known = {row["digest"]: row for row in results.read(path).rows}
    waiting: dict[Any, Run] = {}
    for run in runs:
        name = run_digest(run, place)
        if name in known:  # another process ended it before the claim
            yield Done(run, known[name])
        else:
            waiting[remote.remote(run, place)] = run
    while waiting:
        ready, _ = library.wait(list(waiting), num_returns=1)
        for task in ready:
            done = _fetched(library, task, waiting.pop(task))
            if done.row is not None:
                results.append(path, done.row)
            yield done


def _fetched(library: Any, task: Any, run: Run) -> Done:  # noqa: ANN401
    try:
        done: Done = library.get(task)
    except library.exceptions.RayError as error:
        return Done(run, None, f"Ray gave up: {str(error).splitlines()[0]}")
    return done


def _alone(run: Run, place: Place) -> Done:
    """In a worker of Ray, with one thread as anywhere."""
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    return _tried(run, place, lambda what, done, total: None)


def run_grid(
    runs: Sequence[Run],
    place: Place,
    path: Path,
    *,
    engine: Engine,
    progress: Progress = lambda i, what, done, total: None,
) -> Iterator[Done]:
    """Each run that is not in the results yet, as it ends; waits for those that others are at."""
    known = {row.get("digest") for row in results.read(path).rows}
    left = [run for run in runs if run_digest(run, place) not in known]
    while left:
        again = []
        for done in engine(left, place, path, progress):
            if done.row is None and not done.error:
                again.append(done.run)
            else:
                yield done
        left = again
        if left:
            sleep(WAIT)
