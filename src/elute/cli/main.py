"""`elute`: one command, the verbs of the pipeline."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from elute import __version__
from elute.cli import demos
from elute.cli.arguments import (
    Address,
    EngineName,
    File,
    Json,
    OptimalRows,
    Output,
    Policies,
    Policy,
    ReverseStep,
    Strict,
    Target,
    TaskName,
    To,
    Workers,
    cores,
)
from elute.cli.show import complete_path
from elute.errors import EluteError

app = typer.Typer(
    name="elute",
    help="Turn imperfect demonstrations into clean ones, and clean ones into policies.",
    epilog="Exit codes: 0 done; 1 the answer is no; 2 bad usage or input; 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(demos.app, name="demos")
expert = typer.Typer(help="Make experts.", no_args_is_help=True)
app.add_typer(expert, name="expert")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"elute {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the command as a whole."""


@app.command()
def tour(
    folder: Annotated[str, typer.Option("--to", help="Folder for the files it makes.")] = ".demo",
) -> None:
    """See what elute does, on data it makes itself, in a few minutes."""
    from elute.cli import tour as story

    story.run(folder)


@app.command()
def purify(
    noisy: File,
    optimal: Annotated[
        str, typer.Option(help="The good demonstrations.", autocompletion=complete_path)
    ],
    output: Output,
    optimal_rows: OptimalRows = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Purify only the first N rows.")] = None,
    method: Annotated[
        str,
        typer.Option(metavar="diffusion|wiener|gaussian|mean|median|nearest|relabel|identity"),
    ] = "diffusion",
    reverse_step: ReverseStep = "auto",
    target: Target = "",
    preset: Annotated[
        str, typer.Option(metavar="default|paper|reference", help="Settings of the method.")
    ] = "default",
    model: Annotated[Path | None, typer.Option(help="Reuse a saved model.")] = None,
    save_model: Annotated[Path | None, typer.Option(help="Save the model.")] = None,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw before and after: .png, .pdf or .svg."),
    ] = None,
    clip: Annotated[
        bool,
        typer.Option(
            "--clip",
            help="Clip purified actions to --bounds, or what file or task say, or the recorded "
            "range.",
        ),
    ] = False,
    bounds: Annotated[
        str, typer.Option(help="With --clip: bounds of the actions.", metavar="LO,HI")
    ] = "",
    engine: EngineName = "local",
    address: Address = "",
    jobs: Workers = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same result.")] = 0,
    to: To = "",
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Clean demonstrations by what a few good ones show to be normal.

    The output has the input's format, rows and columns, and a column `moved` with how far each row
    was moved.
    """
    from elute.cli import purify as job
    from elute.experiment.purifiers import PurifierOptions

    purifier = PurifierOptions(
        method=method, reverse_step=reverse_step, target=target, preset=preset, model=model,
        clip=clip, bounds=bounds,
    )  # fmt: skip
    options = job.PurifyOptions(
        optimal=optimal, optimal_rows=optimal_rows, rows=rows, purifier=purifier,
        save_model=save_model, figure=figure, engine=engine, address=address, jobs=jobs,
        seed=seed, to=to, strict=strict, as_json=as_json,
    )  # fmt: skip
    job.run(noisy, output, options)


@app.command()
def train(
    method: Annotated[
        str,
        typer.Argument(
            metavar="METHOD",
            help="bc, bc-opt, bcnd, dwbc, isw-bc, demodice, smodice, dbc, diffusion-bc, gail, "
            "2iwil, ic-gail, wgail, sail, ...",
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder: seed-0.safetensors, ... go there.")
    ],
    optimal: Annotated[
        str, typer.Option(help="The good demonstrations, D_o.", autocompletion=complete_path)
    ] = "",
    supplementary: Annotated[
        str, typer.Option(help="The others, D_s.", autocompletion=complete_path)
    ] = "",
    optimal_rows: OptimalRows = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Use only the first N of the others.")
    ] = None,
    preset: Annotated[
        str, typer.Option(metavar="default|paper|...", help="Settings of the method.")
    ] = "default",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting: updates=5000, ..."),
    ] = None,
    purify: Annotated[
        str,
        typer.Option(
            metavar="diffusion|wiener|gaussian|mean|median|nearest|relabel",
            help="Purify the others first.",
        ),
    ] = "",
    reverse_step: ReverseStep = "auto",
    target: Target = "",
    purify_preset: Annotated[
        str, typer.Option(metavar="default|paper|reference", help="Settings of the purifier.")
    ] = "default",
    task: Annotated[
        str, typer.Option(help="What the data is of; gives the bounds, and is played by gail, ...")
    ] = "",
    steps: Annotated[
        int | None, typer.Option(min=1, help="Environment steps, for methods that play.")
    ] = None,
    bounds: Annotated[
        str,
        typer.Option(help="Bounds of the actions, if neither task nor file says.", metavar="LO,HI"),
    ] = "",
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="How many policies.")] = 1,
    jobs: Workers = None,
    weights: Annotated[
        str, typer.Option(metavar="npz|parquet", help="Write the weights of rows, too.")
    ] = "",
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write losses as event files, too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Learn policies from demonstrations, purified first if you like."""
    from elute.cli import train as job
    from elute.experiment.purifiers import PurifierOptions

    purifier = PurifierOptions(
        method=purify or "diffusion", reverse_step=reverse_step, target=target,
        preset=purify_preset,
    )  # fmt: skip
    if not purify and purifier != PurifierOptions():
        raise EluteError("--reverse-step, --target and --purify-preset go with --purify")
    options = job.TrainOptions(
        method=method, optimal=optimal, supplementary=supplementary, optimal_rows=optimal_rows,
        rows=rows, preset=preset, settings=settings or [], purifier=purifier if purify else None,
        task=task, bounds=bounds, seed=seed, seeds=seeds, jobs=cores(jobs), weights=weights,
        tensorboard=tensorboard, steps=steps, as_json=as_json,
    )  # fmt: skip
    raise typer.Exit(job.run(output, options))


@app.command()
def run(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE.toml", help="The experiment.", autocompletion=complete_path),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Lines go here; by default results/NAME.jsonl."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the files that the experiment names.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help='Overrule: seeds=1, tasks=["ant"], ...'),
    ] = None,
    engine: EngineName = "local",
    address: Address = "",
    jobs: Workers = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be run, and for how long.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a grid of experiments; what is done already is not done again."""
    from elute.cli import run as job

    raise typer.Exit(
        job.run(file, output, data, settings or [], engine, address, cores(jobs), dry_run, as_json)
    )


@app.command()
def report(
    table: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Print a table: 1, noise, filters, mixed, reverse-step, quality, online, "
            "robosuite, robosuite-steps, robosuite-quality. Over all sets: headline and summary "
            "(of 1), noise-summary, filters-summary, mixed-summary, reverse-step-summary, "
            "online-summary.",
        ),
    ] = "",
    figure: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Draw a figure: summary, online, reverse-step, elasticity, robosuite, "
            "robosuite-real.",
        ),
    ] = "",
    html: Annotated[Path | None, typer.Option(help="Write one page with everything in it.")] = None,
    results: Annotated[
        list[Path] | None,
        typer.Option(help="Results: files, or folders of them.", autocompletion=complete_path),
    ] = None,
    regime: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Only lines of this regime: episode, episodes, expert, paper, spread, whole.",
        ),
    ] = "",
    told: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            metavar="FILE.json",
            help="For the page: what `demos audit --json` or `purify --json` printed.",
            autocompletion=complete_path,
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where a figure goes.")
    ] = None,
    format: Annotated[str, typer.Option(metavar="text|markdown|latex")] = "text",
    as_json: Json = False,
) -> None:
    """Tables, figures and a page from lines of results, the paper's numbers beside."""
    from elute.cli import report as job

    job.run(results or [], regime, told or [], table, figure, html, output, format, as_json)


@app.command()
def verify(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="A file of results.")],
    line: Annotated[int, typer.Option(min=1, help="Which line.")] = 1,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the files that the experiment named.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run one line of results again, from nothing, and compare."""
    from elute.cli import verify as job

    raise typer.Exit(job.run(results, line, data, as_json))


@app.command()
def evaluate(
    policy: Policies,
    task: Annotated[str, typer.Option(help="Where to play: hopper, gym:Pendulum-v1, ...")],
    episodes: Annotated[int, typer.Option(min=1)] = 10,
    seed: Annotated[
        int, typer.Option(min=0, help="Same seed, same episodes; recordings begin with 0.")
    ] = 1000,
    workers: Workers = None,
    video: Annotated[Path | None, typer.Option(help="Film the first episode, as .mp4.")] = None,
    starts: Annotated[
        str,
        typer.Option(
            help="Begin where the episodes of this file do, nine times of ten (sawyer-reach).",
            autocompletion=complete_path,
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Play episodes with a policy's mean action and say what it earns."""
    from elute.cli import evaluate as job

    job.run(policy, task, episodes, seed, cores(workers), video, as_json, starts)


@expert.command("train")
def expert_train(
    task: TaskName,
    to: Annotated[Path | None, typer.Option(help="Folder; by default experts/TASK-SEED.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="Environment steps.")] = 5_000_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    initial_std: Annotated[
        float | None,
        typer.Option(min=0.001, help="First deviation of the actions; by default the task's."),
    ] = None,
    least_std: Annotated[
        float,
        typer.Option(min=0.0, help="Deviation it keeps: then noise in its data is no fall."),
    ] = 0.0,
    workers: Workers = None,
) -> None:
    """Train by TRPO on the task's reward; a stopped training goes on where it was.

    The folder gets checkpoints (1M.safetensors, ...), the best policy and the learning curve.
    """
    from elute.cli import expert as job

    folder = to or Path("experts") / f"{task.replace(':', '-')}-{seed}"
    job.run(task, steps, seed, initial_std, least_std, cores(workers), folder)


@app.command()
def export(
    policy: Policy,
    onnx: Annotated[Path, typer.Option(help="Write an ONNX model here.")],
) -> None:
    """Hand a policy over: one ONNX file with units, network and bounds inside."""
    from elute.cli.show import say
    from elute.collect.shipped import find_policy
    from elute.onnx import export_onnx

    export_onnx(find_policy(policy), onnx)
    say(f"wrote {onnx}: observations in, clipped mean actions out")


@app.command()
def theory(
    optimal: Annotated[
        str,
        typer.Option(metavar="GOOD", help="Good demonstrations.", autocompletion=complete_path),
    ] = "",
    supplementary: Annotated[
        str,
        typer.Option(metavar="NOISY", help="The ones to purify.", autocompletion=complete_path),
    ] = "",
    model: Annotated[
        Path | None, typer.Option(help="A purifier saved by purify; else one is trained.")
    ] = None,
    optimal_rows: Annotated[
        int | None, typer.Option(min=4, help="Use only the first N optimal rows.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=4, help="Use only the first N noisy rows.")
    ] = None,
    target: Target = "",
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same result.")] = 0,
    figure: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draw figures into this folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the paper's claims by number; with two files, say what its theorems mean for them."""
    from elute.cli import theory as job

    job.run(
        job.TheoryOptions(
            optimal=optimal, supplementary=supplementary, model=model, optimal_rows=optimal_rows,
            rows=rows, target=target, seed=seed, figure=figure, as_json=as_json,
        )
    )  # fmt: skip


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print versions, and combinations of packages that are known not to work."""
    from elute.cli import doctor as checks

    raise typer.Exit(checks.run(as_json))


def main() -> None:
    """Run, and turn what a user can mend into a message without a traceback."""
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(threads, "1")  # small matrices: more threads only wait for each other
    try:
        app()
    except EluteError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    except SystemExit as stop:
        if stop.code == 130:  # typer has caught Ctrl-C
            sys.stderr.write("interrupted; nothing was left half-written\n")
        raise
