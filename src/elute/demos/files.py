"""Files of demonstrations: which format a path is, reading, selecting, writing.

demos = load("lift.hdf5#better")
save(demos, "lift.npz")
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from elute.columns import assign_roles, check_roles
from elute.demos.arrays import root_names
from elute.demos.format import ReadOptions
from elute.demos.formats import FORMATS, format_module
from elute.demos.output import output
from elute.demos.uninterrupted import uninterrupted
from elute.demos.view import taken
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource, chunks

Transform = Callable[[int, Demonstrations], Demonstrations]
"""(number of the first row, rows) -> as many rows."""
Progress = Callable[[int, int], None]
"""(rows done, rows in all)"""


def _silent(done: int, total: int) -> None:
    """No progress is shown."""


def open_demos(
    spec: str | Path,
    *,
    options: ReadOptions | None = None,
    columns: str = "",
    task: str = "",
    task_columns: str = "",
) -> DemoSource:
    """Open a file, rows unread: `FILE`, `FILE#better`, `FILE#top=2`, `FILE#episodes=5,9`.

    Args:
        spec: a path, or `minari:ID` for a dataset in Minari's own folder.
        options: what the file does not say about itself.
        columns: roles of columns, `KEY=ROLE,KEY[3:7]=ROLE`.
        task: name of the task, for provenance.
        task_columns: roles that the task knows; they yield to `columns`.

    Raises:
        EluteError: there is no such file, no format fits, or the selection is empty.
    """
    path, selection = split_spec(spec)
    options = options or ReadOptions()
    source = _read(path, options)
    if options.fps is not None:
        source = _timed(source, options.fps)
    if columns or task:
        check_roles(columns, (*source.observation_columns, *source.action_columns))
        source = _described(source, f"{task_columns},{columns}", task)
    return _select(source, selection) if selection else source


def _read(path: Path, options: ReadOptions) -> DemoSource:
    module = format_module(detect(path))
    try:
        return module.read(path, options)
    except EluteError as error:
        if str(path) in error.message:
            raise
        raise EluteError(f"{path}: {error.message}", hint=error.hint) from error


def load(
    spec: str | Path,
    *,
    options: ReadOptions | None = None,
    columns: str = "",
    task: str = "",
) -> Demonstrations:
    """Read demonstrations into memory; arguments as for `open_demos`."""
    source = open_demos(spec, options=options, columns=columns, task=task)
    return source.rows(0, source.episodes.n_rows)


def save(
    source: DemoSource,
    path: str | Path,
    *,
    format: str = "",
    transform: Transform | None = None,
    strict: bool = False,
    spare: Sequence[DemoSource] = (),
    progress: Progress = _silent,
) -> list[str]:
    """Write demonstrations; in the format they came in, everything else in the file is kept.

    Args:
        source: an open file or demonstrations in memory.
        path: where to; never one of the inputs.
        format: name of the format; by default what the path's ending or the source says.
        transform: applied to each chunk on the way.
        strict: refuse if the format cannot hold everything.
        spare: other files in use, which must not be overwritten either.
        progress: called after each chunk.

    Returns:
        What the format cannot hold, one sentence each.
    """
    path = Path(path)
    name = format or guess_format(path, source.provenance.format)
    total = source.episodes.n_rows
    inputs = [given for data in (source, *spare) for given in _inputs(data)]
    with output(path, inputs=inputs) as temporary, ExitStack() as stack:
        first = source.rows(0, 1)
        sample = transform(0, first) if transform else first
        described = _Described(source, sample, name)
        if first.origin is not None and sample.origin is None:
            described.origin = None  # what the transform made no longer fits the file
        with uninterrupted():
            writer = format_module(name).write(temporary, described, sample)
            stack.callback(writer.close)
        if strict:
            _refuse(path, name, writer.losses)
        in_file = writer.copied and _is_in_file(source)
        for start, rows, changed in _transformed(source, transform):
            with uninterrupted():
                writer.put(start, changed, unchanged=rows if in_file else None)
            progress(start + len(rows), total)
        with uninterrupted():
            writer.finish()
    return writer.losses


def check_losses(
    source: DemoSource, path: Path, *, format: str = "", transform: Transform | None = None
) -> None:
    """Refuse now what `save` with `strict` would refuse, by writing one row elsewhere.

    Raises:
        EluteError: the format cannot hold everything.
    """
    name = format or guess_format(path, source.provenance.format)
    first = taken(source, source.episodes.pieces(0, 1))
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        _refuse(path, name, save(first, Path(folder) / path.name, format=name, transform=transform))


def _refuse(path: Path, name: str, losses: Sequence[str]) -> None:
    if losses:
        raise EluteError(
            f"{path}: {name} cannot hold everything: " + "; ".join(losses),
            hint="leave out --strict to write it all the same",
        )


def _is_in_file(source: DemoSource) -> bool:
    """Whether a copy of the file has the rows as the source has them."""
    if isinstance(source, Demonstrations) or source.origin is None:
        return False
    # A copy moves arrays by their names alone, whatever they are used as.
    return not any(piece.shift for piece in source.origin.pieces)


def _inputs(source: DemoSource) -> list[Path]:
    """All files that the rows were read from."""
    if source.origin is not None:
        return [source.origin.path, Path(source.provenance.source)]
    joined = [s["source"] for s in source.provenance.steps if s["operation"] == "concatenate"]
    return [Path(text) for text in (source.provenance.source, *joined) if text]


def _transformed(
    source: DemoSource, transform: Transform | None
) -> Iterator[tuple[int, Demonstrations, Demonstrations]]:
    """(first row, rows, the same transformed) of each chunk.

    Where a chunk had to cut an episode, its last next observation is the first observation of the
    next chunk as that one was transformed.
    """
    if transform is None:
        yield from ((start, rows, rows) for start, rows in chunks(source))
        return
    starts = set(source.episodes.starts.tolist())
    waiting: tuple[int, Demonstrations, Demonstrations] | None = None
    for start, rows in chunks(source):
        changed = transform(start, rows)
        if waiting is not None:
            before = waiting[2]
            moved = not np.array_equal(changed.observations[0], rows.observations[0])
            if start not in starts and moved and before.next_observations is not None:
                following = before.next_observations.copy()
                following[-1] = changed.observations[0]
                before = replace(before, next_observations=following)
            yield waiting[0], waiting[1], before
        waiting = start, rows, changed
    if waiting is not None:
        yield waiting


class _Described:
    """A source whose rows will look like a sample: its columns and its provenance."""

    def __init__(self, source: DemoSource, sample: Demonstrations, format_name: str) -> None:
        self.episodes, self.origin, self.rows = source.episodes, source.origin, source.rows
        self.observation_columns = sample.observation_columns
        self.action_columns = sample.action_columns
        self.provenance = sample.provenance
        before = source.provenance
        if before.format not in ("", format_name):
            self.provenance = self.provenance.then(
                "convert", source=before.source, before=before.format, after=format_name
            )


def split_spec(spec: str | Path) -> tuple[Path, str]:
    """The path and the selection of `FILE#selection`, `minari:ID#selection`."""
    text = os.fspath(spec)
    path, _, selection = (text, "", "") if os.path.exists(text) else text.partition("#")
    if path.startswith("minari:"):
        root = os.environ.get("MINARI_DATASETS_PATH", "~/.minari/datasets")
        return Path(os.path.expanduser(root)) / path.removeprefix("minari:"), selection
    return Path(os.path.expanduser(path)), selection


def detect(path: Path) -> str:
    """The name of the format of a file or folder.

    Raises:
        EluteError: nothing is there, it cannot be read, or no format fits.
    """
    try:
        exists = path.exists()
    except OSError as error:
        raise EluteError(f"{path}: {error.strerror}") from error
    if not exists:
        raise EluteError(f"{path}: no such file or folder", hint=_near(path))
    if not os.access(path, os.R_OK):
        raise EluteError(f"{path}: not readable", hint="check its permissions")
    if not path.is_file() and not path.is_dir():  # reading a pipe would wait for ever
        raise EluteError(f"{path}: neither a file nor a folder")
    for name in FORMATS:
        if format_module(name).detect(path):
            return name
    known = "\n".join(f"  {name}: {about}" for name, about in FORMATS.items())
    raise EluteError(f"{path}: {_nature(path)}", hint=f"elute reads\n{known}")


def _nature(path: Path) -> str:
    """What a path that fits no format is."""
    if path.is_dir():
        return (
            "a folder, but no Minari dataset (data/metadata.json is missing or unreadable), no "
            "LeRobot data set (meta/info.json), nor one of another format"
        )
    if path.stat().st_size == 0:
        return "an empty file"
    with path.open("rb") as file:
        is_hdf5 = file.read(8) == b"\x89HDF\r\n\x1a\n"
    if not is_hdf5:
        return "neither HDF5 nor npz"
    names = root_names(path)
    if not names:
        return "an HDF5 file that is empty, truncated or damaged"
    return f"an HDF5 file of unknown layout; it holds {', '.join(names[:12])}"


def _near(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"the folder {folder} does not exist"
    names = os.listdir(folder) if os.access(folder, os.R_OK) else []
    near = get_close_matches(path.name, names, n=1, cutoff=0.75)
    return f"did you mean {folder / near[0]}?" if near else "check the path"


def guess_format(path: Path, source_format: str) -> str:
    """The format for an output path: by its ending, and the source's own where that fits."""
    fitting = [name for name in FORMATS if path.suffix in format_module(name).SUFFIXES]
    if source_format in fitting:
        return source_format
    if len(fitting) != 1:
        raise EluteError(
            f"{path}: which format?", hint="say --to " + "|".join(fitting or list(FORMATS))
        )
    return fitting[0]


def _described(source: DemoSource, columns: str, task: str) -> DemoSource:
    changes = {
        "observation_columns": assign_roles(source.observation_columns, columns),
        "action_columns": assign_roles(source.action_columns, columns),
        "provenance": replace(source.provenance, task=task or source.provenance.task),
    }
    return replace(source, **changes)  # type: ignore[type-var] # both sources are dataclasses


def _timed(source: DemoSource, fps: float) -> DemoSource:
    if not 0 < fps < 1e6:
        raise EluteError(f"{fps} steps per second; expected a positive number")
    before = source.provenance
    provenance = replace(before, metadata={**before.metadata, "rate": {"fps": fps}})
    return replace(source, provenance=provenance)  # type: ignore[type-var]


def _select(source: DemoSource, selection: str) -> DemoSource:
    chosen = _chosen(source, selection)
    if not chosen:
        raise EluteError(f"{source.provenance.source}#{selection}: no episode is left")
    picked: DemoSource = source.select(chosen)  # type: ignore[attr-defined] # both have it
    provenance = picked.provenance.then("select", selection=selection, episodes=chosen)
    return replace(picked, provenance=provenance)  # type: ignore[type-var]


def _chosen(source: DemoSource, selection: str) -> list[int]:
    kind, given, value = selection.partition("=")
    n = len(source.episodes)
    if kind == "episodes" and given:
        return _numbers(value, n, selection)
    if kind == "top" and given:
        if not value.isdecimal() or not 1 <= int(value) <= n:
            raise EluteError(f"#{selection}: expected a number of episodes from 1 to {n}")
        best = np.argsort(-returns(source), kind="stable")[: int(value)]
        return sorted(best.tolist())
    named = source.episodes.filters
    known = sorted({key for keys in named for key in keys})
    if selection not in known:
        hint = "filter keys here: " + (", ".join(known) or "none")
        raise EluteError(
            f"{source.provenance.source}: no selection {selection!r}",
            hint=f"{hint}; or #top=N, #episodes=5,9, #episodes=0-4",
        )
    return [i for i, keys in enumerate(named) if selection in keys]


def _numbers(text: str, n: int, selection: str) -> list[int]:
    chosen: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            raise EluteError(f"#{selection}: cannot read {part!r}", hint="write 5,9 or 0-4")
        if last and int(last) < int(first):
            raise EluteError(f"#{selection}: {part} runs backwards", hint="write 0-4")
        if max(int(first), int(last or first)) >= n:
            raise EluteError(f"#{selection}: episode {part} asked for; there are 0..{n - 1}")
        chosen += range(int(first), int(last or first) + 1)
    return list(dict.fromkeys(chosen))


def returns(source: DemoSource) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The return of each episode.

    Raises:
        EluteError: rewards are unknown.
    """
    totals = np.zeros(len(source.episodes))
    for start, rows in chunks(source):
        partial = rows.returns()
        if partial is None:
            raise EluteError(f"{source.provenance.source}: no rewards, so no returns")
        first = source.episodes.of_row(start)
        totals[first : first + len(partial)] += partial
    return totals
