"""Worker processes: crews that live elsewhere and are asked by name.

    worker = Worker(Crew, plans)          # there: crews = [Crew(*plan) for plan in plans]
    worker.ask("advance", (policy, 10))
    played = worker.answers()             # there: [crew.advance(policy, 10) for crew in crews]

Asking does not wait, so that several workers are busy at once. What goes wrong in a worker is
raised here.
"""

import multiprocessing
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from elute.errors import EluteError

Plan = tuple[Any, ...]
"""What a crew is made from."""


class Worker:
    """A process with crews of its own."""

    def __init__(self, make: Callable[..., object], plans: Sequence[Plan]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, make, plans), daemon=True)
        with _deaf_to_interrupts():  # Ctrl-C is the parent's to handle; a child inherits this
            self.process.start()
        theirs.close()

    def ask(self, method: str, args: tuple[Any, ...]) -> None:
        """Let every crew do this; what they answer comes by `answers`."""
        try:
            self.pipe.send((method, args))
        except OSError:  # it has gone; what it had to say may still be in the pipe
            self.answers()
            raise

    def answers(self) -> list[Any]:
        """What the crews returned, in their order.

        Raises:
            EluteError: something went wrong in the worker, or it died.
        """
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError) as error:
            self.process.join(5)
            raise EluteError(
                f"a rollout worker died (exit code {self.process.exitcode})",
                hint="out of memory, or a crash in the simulator?",
            ) from error
        if isinstance(answer, _Failure):
            raise answer.error from RuntimeError(f"in a rollout worker:\n{answer.traceback}")
        crews: list[Any] = answer
        return crews

    def close(self) -> None:
        """End the process."""
        self.pipe.close()
        self.process.join(1)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join()


@dataclass(frozen=True)
class _Failure:
    """What went wrong in a worker."""

    error: EluteError
    traceback: str


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say how signals are handled
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(pipe: Connection, make: Callable[..., object], plans: Sequence[Plan]) -> None:
    try:
        crews = [make(*plan) for plan in plans]
        while True:
            method, args = pipe.recv()
            pipe.send([getattr(crew, method)(*args) for crew in crews])
    except (EOFError, OSError):
        return  # the parent is done
    except Exception as error:
        told = (
            error if isinstance(error, EluteError) else EluteError(f"a rollout worker: {error!r}")
        )
        with suppress(OSError):
            pipe.send(_Failure(told, traceback.format_exc()))
