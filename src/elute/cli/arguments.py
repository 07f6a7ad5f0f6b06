"""What several commands take: the types of their arguments, and what the words given stand for.

Nothing heavy is imported here, because every help is built from this.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elute.cli.show import complete_path, say
from elute.demos.formats import FORMATS
from elute.errors import EluteError

if TYPE_CHECKING:
    from elute.demos.audit.summary import Bounds
    from elute.types import DemoSource

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
Output = Annotated[
    Path, typer.Option("-o", "--output", help="Where to write.", autocompletion=complete_path)
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
    typer.Option(
        "--keys", help="Observation arrays to use, comma-separated (robomimic, Minari, LeRobot)."
    ),
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
Fps = Annotated[
    float | None,
    typer.Option("--fps", help="Steps per second, where the format does not say (for LeRobot)."),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Processes; by default one per core. They change no number."),
]
EngineName = Annotated[str, typer.Option("--engine", metavar="local|ray")]
Address = Annotated[
    str, typer.Option(help="Of a Ray cluster that runs; by default one is made here.")
]
OptimalRows = Annotated[int | None, typer.Option(min=1, help="Use only the first N optimal rows.")]
TaskName = Annotated[str, typer.Argument(metavar="TASK", help="hopper, gym:Pendulum-v1, ...")]
ReverseStep = Annotated[
    str,
    typer.Option(
        metavar="auto|N",
        help="auto chooses the step with the least expected error, without an environment.",
    ),
]
Target = Annotated[
    str,
    typer.Option(
        metavar="joint|action|inpaint",
        help="Purify state and action; both, but keep the state; or the action, given the state.",
    ),
]


def _policy(meaning: str) -> Any:  # noqa: ANN401 (as typer has it)
    return typer.Argument(metavar="POLICY", help=meaning, autocompletion=complete_path)


Policy = Annotated[str, _policy("A file, expert:TASK or checkpoint:TASK@1M.")]
Policies = Annotated[
    str,
    _policy("A file, expert:TASK, checkpoint:TASK@1M, or a folder of seed-K.safetensors."),
]


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


def open_file(
    file: str,
    keys: str,
    columns: str,
    horizon: int | None,
    task: str = "",
    fps: float | None = None,
) -> "DemoSource":
    """What `FILE --keys --columns --horizon --task --fps` stands for, rows unread."""
    from elute.demos.files import open_demos
    from elute.demos.format import ReadOptions
    from elute.envs.task import find_task

    file = named(file)
    chosen = tuple(key.strip() for key in keys.split(",") if key.strip())
    known = find_task(task).columns if task else ""
    return open_demos(
        file,
        options=ReadOptions(chosen, horizon, fps),
        columns=columns,
        task=task,
        task_columns=known,
    )


def open_first(file: str, rows: int | None) -> "DemoSource":
    """A file, or only its first rows, which alone are read."""
    from elute.demos.files import open_demos
    from elute.demos.view import taken

    source = open_demos(named(file))
    if rows is None or rows >= source.episodes.n_rows:
        return source
    return taken(source, source.episodes.pieces(0, rows))


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
