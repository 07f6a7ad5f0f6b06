"""How the command line talks: data to stdout, talk to stderr, progress only on a terminal."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

PATIENCE = 2.0
"""Seconds of work before a progress bar appears."""
SILENCE = 60.0
"""Seconds between two lines about it where there is no terminal."""

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
def progress(
    label: str, unit: str = "", *, before: int = 0
) -> Iterator[Callable[[int, int], None]]:
    """A callback for (done, in all) that shows a bar once it takes long.

    Where nobody watches, a line is said every minute instead. With a unit the pace is shown, too;
    what was done `before` does not count for it.
    """
    bar = Progress(
        TextColumn(label), BarColumn(), TextColumn("{task.percentage:.0f} %"),
        TextColumn("{task.fields[pace]}"), console=err, transient=True,
    )  # fmt: skip
    began = said = time.monotonic()
    task = bar.add_task(label, total=None, pace="")

    def update(done: int, total: int) -> None:
        nonlocal said
        now = time.monotonic()
        told = pace(done - before, total - done, now - began, unit)
        if err.is_terminal and now - began > PATIENCE:
            bar.start()
        elif now - said > SILENCE:
            said = now
            say(f"{label}: {done:,} of {total:,} {unit}".rstrip() + f", {told}")
        bar.update(task, completed=done, total=total, pace=told)

    try:
        yield update
    finally:
        if bar.live.is_started:
            bar.stop()


def pace(done: int, left: int, seconds: float, unit: str) -> str:
    """How fast work went, and how long the rest of it will take."""
    if done <= 0 or seconds <= 0:
        return ""
    rate = done / seconds
    minutes, rest = divmod(round(left / rate), 60)
    hours, minutes = divmod(minutes, 60)
    speed = f"{rate:,.0f} {unit}/s, " if unit else ""
    return f"{speed}{hours}:{minutes:02}:{rest:02} to go"


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
