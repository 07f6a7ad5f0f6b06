"""`elute`: one command, the verbs of the pipeline."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from elute import __version__
from elute.cli import demos
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
    """See what elute does, on data it makes itself, in a minute."""
    from elute.cli import tour as story

    story.run(folder)


@dataclass(frozen=True)
class PurifyOptions:
    """What `elute purify` was told."""

    optimal: str
    optimal_rows: int | None
    rows: int | None
    method: str
    reverse_step: str
    target: str
    preset: str
    model: Path | None
    save_model: Path | None
    figure: Path | None
    clip: bool
    bounds: str
    seed: int
    to: str
    strict: bool
    as_json: bool


@app.command()
def purify(
    noisy: demos.File,
    optimal: Annotated[
        str, typer.Option(help="The good demonstrations.", autocompletion=complete_path)
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Where to write.", autocompletion=complete_path)
    ],
    optimal_rows: Annotated[
        int | None, typer.Option(min=1, help="Use only the first N optimal rows.")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Purify only the first N rows.")] = None,
    method: Annotated[
        str,
        typer.Option(metavar="diffusion|wiener|gaussian|mean|median|nearest|relabel|identity"),
    ] = "diffusion",
    reverse_step: Annotated[
        str,
        typer.Option(
            metavar="auto|N",
            help="auto chooses the step that recovers spoilt optimal actions best.",
        ),
    ] = "auto",
    target: Annotated[
        str,
        typer.Option(
            metavar="joint|action|inpaint",
            help="Purify state and action; both, but keep the state; or the action in its state.",
        ),
    ] = "",
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
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same result.")] = 0,
    to: demos.To = "",
    strict: demos.Strict = False,
    as_json: demos.Json = False,
) -> None:
    """Clean demonstrations by what a few good ones show to be normal.

    The output has the input's format, rows and columns, and a column `moved` with how far each row
    was moved.
    """
    from elute.cli import purify as job

    options = PurifyOptions(
        optimal, optimal_rows, rows, method, reverse_step, target, preset, model, save_model,
        figure, clip, bounds, seed, to, strict, as_json,
    )  # fmt: skip
    job.run(noisy, output, options)


@app.command()
def evaluate(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="POLICY",
            help="A file, expert:TASK, checkpoint:TASK@1M, or a folder of seed-K.safetensors.",
            autocompletion=complete_path,
        ),
    ],
    task: Annotated[str, typer.Option(help="Where to play: hopper, gym:Pendulum-v1, ...")],
    episodes: Annotated[int, typer.Option(min=1)] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same episodes.")] = 0,
    workers: demos.Workers = None,
    video: Annotated[Path | None, typer.Option(help="Film the first episode, as .mp4.")] = None,
    as_json: demos.Json = False,
) -> None:
    """Play episodes with a policy's mean action and say what it earns."""
    from elute.cli import evaluate as job

    job.run(policy, task, episodes, seed, demos.cores(workers), video, as_json)


@expert.command("train")
def expert_train(
    task: Annotated[str, typer.Argument(metavar="TASK", help="hopper, gym:Pendulum-v1, ...")],
    to: Annotated[Path | None, typer.Option(help="Folder; by default experts/TASK-SEED.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="Environment steps.")] = 5_000_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    initial_std: Annotated[
        float | None,
        typer.Option(min=0.001, help="First deviation of the actions; by default the task's."),
    ] = None,
    workers: demos.Workers = None,
) -> None:
    """Train by TRPO on the task's reward; a stopped training goes on where it was.

    The folder gets checkpoints (1M.safetensors, ...), the best policy and the learning curve.
    """
    from elute.cli import expert as job

    folder = to or Path("experts") / f"{task.replace(':', '-')}-{seed}"
    job.run(task, steps, seed, initial_std, demos.cores(workers), folder)


@app.command()
def export(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="POLICY",
            help="A file, expert:TASK or checkpoint:TASK@1M.",
            autocompletion=complete_path,
        ),
    ],
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
        int | None, typer.Option(min=2, help="Use only the first N optimal rows.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=2, help="Use only the first N noisy rows.")
    ] = None,
    target: Annotated[
        str,
        typer.Option(metavar="joint|action|inpaint", help="As of purify; by default inpaint."),
    ] = "",
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same result.")] = 0,
    figure: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draw figures into this folder.")
    ] = None,
    as_json: demos.Json = False,
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
