"""`elute`: one command, the verbs of the pipeline."""

import os
import sys
from typing import Annotated

import typer

from elute import __version__
from elute.cli import demos
from elute.errors import EluteError

app = typer.Typer(
    name="elute",
    help="Turn imperfect demonstrations into clean ones, and clean ones into policies.",
    epilog="Exit codes: 0 done; 1 the answer is no; 2 bad usage or input; 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(demos.app, name="demos")


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
