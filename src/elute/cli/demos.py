"""`elute demos`: look at, check, convert and spoil demonstrations."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elute.cli.show import complete_path, print_json, progress, say, say_losses
from elute.demos.formats import FORMATS
from elute.errors import EluteError

if TYPE_CHECKING:
    from elute.demos.audit.alignment import Replay
    from elute.demos.audit.audit import Audit
    from elute.demos.audit.summary import Bounds
    from elute.types import DemoSource

app = typer.Typer(help="Look at, check, convert and spoil demonstrations.", no_args_is_help=True)


File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A file or dataset folder; FILE#better (filter key), FILE#top=2 (by return), "
        "FILE#episodes=5,9, minari:ID, or a name as hopper/action-noise/heavy.",
        autocompletion=complete_path,
    ),
]
Out = Annotated[
    Path, typer.Argument(metavar="OUT", help="Where to write.", autocompletion=complete_path)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse to write if the format cannot hold everything.")
]
To = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="|".join(FORMATS),
        help="Format; by default the input's, or what the ending of OUT says.",
        autocompletion=lambda: list(FORMATS),
    ),
]
Keys = Annotated[
    str,
    typer.Option("--keys", help="Observation arrays to use, comma-separated (robomimic, Minari)."),
]
Columns = Annotated[
    str,
    typer.Option(
        "--columns",
        help="Roles of columns: KEY=ROLE,KEY[3:7]=ROLE with continuous, discrete, quaternion or "
        "constant.",
    ),
]
Horizon = Annotated[
    int | None,
    typer.Option("--horizon", min=1, help="Time limit, where the format does not mark time-outs."),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Processes; by default one per core. They change no number."),
]
TaskName = Annotated[str, typer.Option("--task", help="Task the data is of, e.g. halfcheetah.")]


def cores(workers: int | None) -> int:
    """As many processes as asked for, or as there are cores to use."""
    if hasattr(os, "sched_getaffinity"):
        return workers or len(os.sched_getaffinity(0))
    return workers or os.cpu_count() or 1


def named(file: str) -> str:
    """The path of a catalogue entry; anything else as it is."""
    from elute.envs.task import TASKS

    if file.partition("/")[0] not in TASKS:
        return file
    from elute.collect.catalogue import fetch, is_named

    name, mark, selection = file.partition("#")
    return f"{fetch(name, say=say)}{mark}{selection}" if is_named(name) else file


def _open(file: str, keys: str, columns: str, horizon: int | None, task: str = "") -> "DemoSource":
    from elute.demos.files import open_demos
    from elute.demos.format import ReadOptions
    from elute.envs.task import find_task

    file = named(file)
    chosen = tuple(key.strip() for key in keys.split(",") if key.strip())
    known = find_task(task).columns if task else ""
    return open_demos(
        file,
        options=ReadOptions(chosen, horizon),
        columns=columns,
        task=task,
        task_columns=known,
    )


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

    source = _open(file, keys, columns, horizon)
    with progress("reading") as update:
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
    task: TaskName = "",
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
    from elute.cli import tables
    from elute.demos.audit.audit import audit as run

    if clip and fix is None:
        raise EluteError("--clip goes with --fix OUT", hint="nothing is changed in place")
    limits, horizon, replay = _task_facts(task, bounds, horizon)
    source = _open(file, keys, columns, horizon, task)
    good = _open(optimal, keys, columns, horizon, task) if optimal else None
    for data in filter(None, (source, good)):
        _check_task(task, data)
    with progress("auditing") as update:
        found = run(
            source, optimal=good, bounds=limits, horizon=horizon, replay=replay, progress=update
        )
    report: dict[str, Any] = found.to_json()
    repairs = _fix(source, good, found, fix, limits, clip, strict) if fix else []
    if fix:
        report["fixed"] = {"file": str(fix), "repairs": repairs}
    if as_json:
        print_json(report)
    else:
        tables.show_audit(found)
        if fix:
            say(f"wrote {fix}: " + (", ".join(repairs) or "nothing to repair, a plain copy"))
    failing = ("error", "warning") if strict else ("error",)
    left = [
        finding
        for finding in found.findings
        if finding.severity in failing and (finding.about_optimal or finding.repair not in repairs)
    ]
    raise typer.Exit(1 if left else 0)


def _task_facts(
    task: str, bounds: str, horizon: int | None
) -> tuple["Bounds | None", int | None, "Replay | None"]:
    import numpy as np

    from elute.demos.audit.alignment import SHIFTS
    from elute.demos.audit.summary import Bounds

    limits = parse_bounds(bounds) if bounds else None
    if not task:
        return limits, horizon, None
    from elute.collect.replay import can_replay, one_step_errors
    from elute.envs.task import find_task

    known = find_task(task)
    if limits is None:
        limits = Bounds(np.array(known.action_low), np.array(known.action_high))
    if not can_replay():
        say("no simulator is installed: alignment is judged from the data alone")
        return limits, horizon or known.horizon, None
    return limits, horizon or known.horizon, lambda runs: one_step_errors(known, runs, SHIFTS)


def parse_bounds(text: str) -> "Bounds":
    """`LO,HI` as bounds of every action column."""
    import numpy as np

    from elute.demos.audit.summary import Bounds

    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError as error:
        raise EluteError(f"--bounds {text}: expected LO,HI, for example -1,1") from error
    if not (np.isfinite([low, high]).all() and low < high):
        raise EluteError(f"--bounds {text}: expected two numbers, the lower first")
    return Bounds(np.array([low]), np.array([high]))


def _check_task(task: str, source: "DemoSource") -> None:
    if not task:
        return
    from elute.envs.task import check_columns, find_task

    n_observations, n_actions = len(source.observation_columns), len(source.action_columns)
    check_columns(find_task(task), n_observations, n_actions, source.provenance.source)


def _fix(
    source: "DemoSource",
    good: "DemoSource | None",
    found: "Audit",
    path: Path,
    limits: "Bounds | None",
    clip: bool,
    strict: bool,
) -> list[str]:
    """Write the repaired copy; the names of the repairs made."""
    from elute.demos.audit.audit import own_bounds
    from elute.demos.audit.repair import repaired
    from elute.demos.files import save

    limits = (limits or own_bounds(source)) if clip else None
    if clip and limits is None:
        raise EluteError("--clip needs the bounds of the actions", hint="give --task or --bounds")
    own = [finding for finding in found.findings if not finding.about_optimal]
    mended = repaired(source.rows(0, source.episodes.n_rows), own, clip=limits)
    with progress("writing") as update:
        spare = [good] if good is not None else []
        say_losses(save(mended, path, strict=strict, spare=spare, progress=update))
    for step in mended.provenance.steps[len(source.provenance.steps) :]:
        details = ", ".join(f"{k}={v}" for k, v in step.items() if k != "operation")
        say(f"{step['operation']}: {details}")
    made = [finding.repair for finding in own if finding.repair not in ("", "clip")]
    return [*made, *(["clip"] if clip else [])]


@app.command()
def convert(
    file: File,
    out: Out,
    to: To = "",
    keys: Keys = "",
    columns: Columns = "",
    horizon: Horizon = None,
    adapt: Annotated[
        str,
        typer.Option(
            metavar="TASK",
            help="Keep only the observation columns of today's task: 27 of Ant's 111 or 105.",
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

    source = _open(file, keys, columns, horizon)
    if adapt:
        source = _adapted(source, adapt, strict)
    with progress("converting") as update:
        losses = save(source, out, format=to, strict=strict, progress=update)
    say_losses(losses)
    rows = counted(source.episodes.n_rows, "row")
    say(f"wrote {out}: {rows} in {counted(len(source.episodes), 'episode')}")


def _adapted(source: "DemoSource", task: str, strict: bool) -> "DemoSource":
    from elute.collect.adapt import adapt
    from elute.envs.task import find_task

    rows = source.rows(0, source.episodes.n_rows)
    adapted = adapt(rows, find_task(task))
    width, kept = rows.observations.shape[1], adapted.observations.shape[1]
    if width > kept:
        lost = f"observation columns {kept} to {width - 1}"
        if strict:
            raise EluteError(f"{task} has no place for {lost}", hint="leave out --strict")
        say_losses([lost])
    return adapted


@app.command()
def corrupt(
    file: File,
    out: Out,
    noise: Annotated[
        str, typer.Option(metavar="gaussian|uniform|salt-pepper", help="What kind.")
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
    source = _open(file, keys, columns, None)

    def spoiled(start: int, rows: Demonstrations) -> Demonstrations:
        return spoil(rows, kind, level, seed=seed, first_row=start)

    with progress("corrupting") as update:
        losses = save(source, out, format=to, transform=spoiled, strict=strict, progress=update)
    say_losses(losses)
    say(f"wrote {out}: {kind} noise of level {level} on {source.episodes.n_rows} rows")


@app.command()
def collect(
    task: Annotated[str, typer.Argument(metavar="TASK", help="hopper, gym:Pendulum-v1, ...")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Where to write.", autocompletion=complete_path)
    ],
    policy: Annotated[
        str, typer.Option(help="expert, checkpoint@1M (or 1.5M, 3M), or a policy's file.")
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

    job.run(task, policy, noise, rows, seed, cores(workers), output, to, strict)
