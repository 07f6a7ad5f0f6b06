"""`elute demos`: look at, check, convert and spoil demonstrations."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elute.cli.arguments import (
    Columns,
    File,
    Fps,
    Horizon,
    Json,
    Keys,
    Out,
    Output,
    Strict,
    TaskName,
    To,
    Workers,
    open_file,
)
from elute.cli.show import complete_path, print_json, progress, say, say_losses
from elute.errors import EluteError

if TYPE_CHECKING:
    from elute.demos.files import Transform
    from elute.types import DemoSource

app = typer.Typer(help="Look at, check, convert and spoil demonstrations.", no_args_is_help=True)


@app.command()
def info(
    file: File,
    keys: Keys = "",
    columns: Columns = "",
    horizon: Horizon = None,
    as_json: Json = False,
) -> None:
    """Say what is in a file: rows, episodes, columns, where it comes from."""
    from elute.cli import tables

    source = open_file(file, keys, columns, horizon)
    with progress("reading", "rows") as update:
        facts = tables.facts(source, update)
    if as_json:
        print_json(facts)
    else:
        tables.show_facts(facts)


@app.command()
def audit(
    file: File,
    optimal: Annotated[
        str,
        typer.Option(
            help="Good demonstrations it will be used with: audited too, and compared.",
            autocompletion=complete_path,
        ),
    ] = "",
    task: Annotated[
        str, typer.Option("--task", help="Task the data is of, e.g. halfcheetah.")
    ] = "",
    bounds: Annotated[
        str, typer.Option(help="Bounds of the actions, LO,HI.", metavar="LO,HI")
    ] = "",
    fix: Annotated[
        Path | None,
        typer.Option(metavar="OUT", help="Write a repaired copy.", autocompletion=complete_path),
    ] = None,
    clip: Annotated[bool, typer.Option("--clip", help="With --fix: clip actions too.")] = False,
    keys: Keys = "",
    columns: Columns = "",
    horizon: Horizon = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Warnings count as errors; --fix refuses to lose anything."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Look for what is wrong with demonstrations before anything is trained on them.

    Exits with 1 if there is an error that --fix did not repair.
    """
    from elute.cli import audit as job

    left = job.run(file, optimal, task, bounds, fix, clip, keys, columns, horizon, strict, as_json)
    raise typer.Exit(1 if left else 0)


@app.command()
def convert(
    file: File,
    out: Out,
    to: To = "",
    keys: Keys = "",
    columns: Columns = "",
    horizon: Horizon = None,
    fps: Fps = None,
    adapt: Annotated[
        str,
        typer.Option(
            metavar="TASK",
            help="Have the observations of today's task: 27 of Ant's 111 or 105; those of "
            "sawyer-reach from a RoboTurk recording's states.",
        ),
    ] = "",
    strict: Strict = False,
) -> None:
    """Write demonstrations in another format; what it cannot hold is said.

    Without --to the format follows from OUT's ending, or is the input's own: then everything else
    in the file (images, attributes, filter keys) is kept as it is.
    """
    from elute.demos.audit.finding import counted
    from elute.demos.files import save

    source, transform = open_file(file, keys, columns, horizon, fps=fps), None
    if adapt:
        source, transform = _adapted(source, adapt, strict)
    with progress("converting", "rows") as update:
        losses = save(source, out, format=to, transform=transform, strict=strict, progress=update)
    say_losses(losses)
    rows = counted(source.episodes.n_rows, "row")
    say(f"wrote {out}: {rows} in {counted(len(source.episodes), 'episode')}")


def _adapted(
    source: "DemoSource", task: str, strict: bool
) -> "tuple[DemoSource, Transform | None]":
    """The demonstrations, and what cuts each chunk of them to the columns of a task."""
    from elute.collect.adapt import adapt
    from elute.collect.extract import is_raw
    from elute.envs.task import find_task

    known, n = find_task(task), source.episodes.n_rows
    if is_raw(source):  # observations are computed, episode by episode
        return adapt(source.rows(0, n), known), None
    width = len(source.observation_columns)
    kept = len(adapt(source.rows(0, 1), known).observation_columns)
    if width == kept:
        return source, None
    lost = f"observation columns {kept} to {width - 1}"
    if strict:
        raise EluteError(f"{task} has no place for {lost}", hint="leave out --strict")
    say_losses([lost])
    return source, lambda start, rows: adapt(rows, known)


@app.command()
def corrupt(
    file: File,
    out: Out,
    noise: Annotated[
        str,
        typer.Option(
            metavar="gaussian|uniform|salt-pepper",
            help="What kind; grains of salt-pepper are -1 and 1.",
        ),
    ] = "gaussian",
    level: Annotated[
        float, typer.Option(help="Standard deviation; probability for salt-pepper.")
    ] = 0.4,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same noise.")] = 0,
    to: To = "",
    keys: Keys = "",
    columns: Columns = "",
    strict: Strict = False,
) -> None:
    """Add noise to recorded actions, keeping the clean ones in the column `clean_actions`."""
    from elute.demos.corrupt import corrupt as spoil
    from elute.demos.files import save
    from elute.noise import check_noise
    from elute.types import Demonstrations

    kind = check_noise(noise, level)
    source = open_file(file, keys, columns, None)

    def spoiled(start: int, rows: Demonstrations) -> Demonstrations:
        return spoil(rows, kind, level, seed=seed, first_row=start)

    with progress("corrupting", "rows") as update:
        losses = save(source, out, format=to, transform=spoiled, strict=strict, progress=update)
    say_losses(losses)
    say(f"wrote {out}: {kind} noise of level {level} on {source.episodes.n_rows} rows")


@app.command()
def collect(
    task: TaskName,
    output: Output,
    policy: Annotated[
        str,
        typer.Option(
            help="expert, checkpoint@1M (or 1.5M, 3M), a policy's file, or operator:SKILL."
        ),
    ] = "expert",
    noise: Annotated[
        str,
        typer.Option(
            metavar="KIND:LEVEL",
            help="On every action: gaussian:0.6, uniform:0.4, salt-pepper:0.25, sample (the "
            "policy's own spread) or none. By default sample for a checkpoint, none otherwise.",
        ),
    ] = "",
    rows: Annotated[
        int, typer.Option(min=1, help="Whole episodes until there are as many rows.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same file.")] = 0,
    workers: Workers = None,
    to: To = "",
    strict: Strict = False,
) -> None:
    """Record demonstrations: a policy plays, with noise on its actions if you like.

    Besides the actions as they were asked for, the file has `executed_actions` (clipped, what the
    simulator was given) and `clean_actions` (the policy's mean action).
    """
    from elute.cli import collect as job

    job.run(task, policy, noise, rows, seed, workers, output, to, strict)
