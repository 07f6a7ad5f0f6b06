"""The same work on several things, over processes.

    for i, result in parallel(train_one, seeds, jobs=2, progress=show):
        ...

Results come as they are done. What is done must not depend on who does it: every process has one
thread, and brings its own seeds. An exception in one stops all.
"""

import ctypes
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from queue import Empty
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")
Report = Callable[[str, int, int], None]
"""What is being done, how much of it is, of how much."""
Progress = Callable[[int, str, int, int], None]
"""Of which thing; and as in a report."""
POLL = 0.2
"""Seconds between looks at what is reported."""

_reports: Any = None
"""Of this worker process: a queue to its master."""


def parallel(
    work: Callable[[T, Report], R],
    things: Sequence[T],
    *,
    jobs: int,
    progress: Progress = lambda i, what, done, total: None,
) -> Iterator[tuple[int, R]]:
    """Number and result of each thing, in the order they are done."""
    if min(jobs, len(things)) <= 1:
        for i, thing in enumerate(things):
            yield i, work(thing, _told(progress, i))
        return
    context = multiprocessing.get_context("spawn")
    reports = context.Queue()
    pool = ProcessPoolExecutor(
        min(jobs, len(things)), context, initializer=_begin, initargs=(reports,)
    )
    waiting = {pool.submit(_do, work, thing, i): i for i, thing in enumerate(things)}
    try:
        yield from _collect(waiting, reports, progress)
    finally:
        _end(pool)


def _told(progress: Progress, i: int) -> Report:
    return lambda what, done, total: progress(i, what, done, total)


def _collect(
    waiting: dict[Future[R], int],
    reports: Any,  # noqa: ANN401 (a queue of a context)
    progress: Progress,
) -> Iterator[tuple[int, R]]:
    while waiting:
        done, _ = wait(waiting, timeout=POLL, return_when=FIRST_COMPLETED)
        while True:
            try:
                progress(*reports.get_nowait())
            except Empty:
                break
        for future in done:
            yield waiting.pop(future), future.result()


def _end(pool: ProcessPoolExecutor) -> None:
    """Nothing half-done is waited for."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()


def _begin(reports: Any) -> None:  # noqa: ANN401
    global _reports  # noqa: PLW0603 (a process has one)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the master decides
    _end_with_master()
    _reports = reports
    import torch  # noqa: PLC0415 (only where work is done)

    torch.set_num_threads(1)


def _end_with_master() -> None:
    """A master that is killed takes its workers with it, where the system can do that (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _do(work: Callable[[T, Report], R], thing: T, i: int) -> R:
    return work(thing, lambda what, done, total: _reports.put((i, what, done, total)))
