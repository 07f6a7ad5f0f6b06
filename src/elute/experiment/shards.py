"""Shards of a file, over processes or over a Ray cluster; the same numbers on both.

    for rows in local(jobs=2)(work, work.shards.missing(bounds)):
        ...                                       # so many more are finished

Processes of this machine read their shards and write them. Workers of Ray may be anywhere: this
process reads a shard, an actor that was given the purifier once purifies it, and this process
writes what comes back. An actor that dies is started anew and given its shard again.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from elute.episodes import Array
from elute.errors import EluteError
from elute.experiment.cluster import connected, ray_library
from elute.experiment.parallel import Report, parallel
from elute.purify.shards import Purification, Shards, differences
from elute.types import Demonstrations, DemoSource

Span = tuple[int, int]
"""First row of a shard, and the row after its last."""
AHEAD = 2
"""Shards that an actor has at once: one to work on, one to go on with."""
RESTARTS = 5
"""Of an actor that dies, before it is given up."""


@dataclass(frozen=True)
class Work:
    """A file that is purified."""

    source: DemoSource
    purification: Purification
    shards: Shards


Engine = Callable[[Work, Sequence[Span]], Iterator[int]]
"""Finishes these shards; yields the rows of each when it is on the disk."""


def local(jobs: int) -> Engine:
    """Over processes of this machine."""

    def engine(work: Work, missing: Sequence[Span]) -> Iterator[int]:
        try:
            for i, _ in parallel(partial(_finish, work=work), missing, jobs=jobs):
                start, stop = missing[i]
                yield stop - start
        except BrokenExecutor as error:
            raise EluteError(
                "a process that purified was killed",
                hint="the same command goes on where it was; fewer --jobs need less memory",
            ) from error

    return engine


def _finish(span: Span, report: Report, *, work: Work) -> None:
    del report  # one shard is not long
    start, stop = span
    rows = work.source.rows(start, stop)
    work.shards.put(start, differences(rows, work.purification(start, rows)))


def ray(jobs: int | None, address: str = "", *, cores: int = 1) -> Engine:
    """Over a Ray cluster, with so many actors; at most one for each of its processors.

    Raises:
        EluteError: Ray is not installed, or there is no cluster at the address.
    """
    library = ray_library()

    def engine(work: Work, missing: Sequence[Span]) -> Iterator[int]:
        with connected(library, jobs or cores, address):
            there = int(library.cluster_resources().get("CPU", 1))
            actors = min(jobs or there, there)  # one more would never start, nor end its shards
            yield from _on_ray(library, work, missing, actors)

    return engine


class Worker:
    """An actor: has the purifier, is given rows."""

    def __init__(self, purification: Purification) -> None:
        import torch  # noqa: PLC0415 (in a process of its own)

        torch.set_num_threads(1)
        self.purification = purification

    def purify(self, start: int, rows: Demonstrations) -> dict[str, Array]:
        """What changes in a shard."""
        return differences(rows, self.purification(start, rows))


def _on_ray(
    library: Any,  # noqa: ANN401 (an extra)
    work: Work,
    missing: Sequence[Span],
    actors: int,
) -> Iterator[int]:
    lasting = library.remote(num_cpus=1, max_restarts=RESTARTS, max_task_retries=RESTARTS)(Worker)
    purification = library.put(work.purification)
    crew = [lasting.remote(purification) for _ in range(min(actors, len(missing)))]
    free, left = crew * AHEAD, list(missing)
    waiting: dict[Any, tuple[Span, Any]] = {}
    while left or waiting:
        while left and free:
            span, actor = left.pop(0), free.pop(0)
            rows = work.source.rows(*span)
            waiting[actor.purify.remote(span[0], rows)] = span, actor
        ready, _ = library.wait(list(waiting), num_returns=1)
        for task in ready:
            (start, stop), actor = waiting.pop(task)
            work.shards.put(start, _fetched(library, task))
            free.append(actor)
            yield stop - start


def _fetched(library: Any, task: Any) -> dict[str, Array]:  # noqa: ANN401
    try:
        arrays: dict[str, Array] = library.get(task)
    except library.exceptions.RayTaskError as error:
        raise error.cause from error
    except library.exceptions.RayError as error:
        raise EluteError(
            f"Ray gave up: {str(error).splitlines()[0]}",
            hint="finished shards are kept; the same command goes on with them",
        ) from error
    return arrays
