"""How the command line talks: data to stdout, talk to stderr, progress only on a terminal."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

PATIENCE = 2.0
"""Seconds of work before a progress bar appears."""

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """A line of talk."""
    err.print(text, markup=False)


def print_json(value: Any) -> None:  # noqa: ANN401 (whatever JSON holds)
    """Data, as JSON on stdout."""
    typer.echo(json.dumps(value, indent=2, allow_nan=False))


def say_losses(losses: list[str]) -> None:
    """What a format could not hold."""
    for loss in losses:
        say(f"not kept: {loss}")


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A callback for (rows done, rows in all) that shows a bar once it takes long."""
    bar = Progress(
        TextColumn(label), BarColumn(), TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(), console=err, transient=True,
    )  # fmt: skip
    began, task = time.monotonic(), bar.add_task(label, total=None)

    def update(done: int, total: int) -> None:
        if err.is_terminal and time.monotonic() - began > PATIENCE:
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield update
    finally:
        if bar.live.is_started:
            bar.stop()


def complete_path(incomplete: str) -> list[str]:
    """Paths that begin like this, for the shell."""
    path = Path(incomplete)
    folder = path if incomplete.endswith("/") else path.parent
    prefix = "" if incomplete.endswith("/") else path.name
    try:
        found = sorted(item for item in folder.iterdir() if item.name.startswith(prefix))
    except OSError:
        return []
    return [f"{item}/" if item.is_dir() else str(item) for item in found]
