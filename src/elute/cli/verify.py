"""`elute verify`: one line of results, run again from nothing, and compared."""

import tempfile
from pathlib import Path
from typing import Any

from elute import results
from elute.cli.show import out, print_json, progress, say
from elute.envs.task import find_task
from elute.errors import EluteError
from elute.experiment.cell import Place, run_cell, run_digest
from elute.experiment.spec import Data, Run, check_named

OTHERWISE = (
    "numpy or torch round otherwise here, as on another processor: episodes drift apart, and only "
    "means over many can be compared (docs/guides/experiments.md, On another machine)"
)
UNKNOWN = (
    "the line does not say how its machine rounded; on another processor episodes drift apart "
    "(docs/guides/experiments.md, On another machine)"
)


def run(path: Path, line: int, folder: Path | None, as_json: bool) -> int:
    """Compare; 1 if a number differs."""
    if not path.exists():
        raise EluteError(f"{path}: no such file")
    row = _line(path, results.read(path), line)
    if row["metrics"].get("mean") is None or not row["metrics"].get("returns"):
        raise EluteError(f"{path}: line {line} has no returns to compare with")
    if row["data"] is not None and folder is None:
        raise EluteError("the line is of files", hint="say where they are: --data FOLDER")
    one = _run(row["run"], f"{path}: line {line}", catalogued=row["data"] is None)
    say(f"running {one.name} again")
    with tempfile.TemporaryDirectory() as cache, progress("running") as update:
        place = Place(
            cache=Path(cache),
            data=None if row["data"] is None else Data(**row["data"]),
            folder=folder,
        )
        if run_digest(one, place) != row["digest"]:
            say("warning: data, defaults or version of the numbers are not those of the line")
        again = run_cell(one, place, lambda what, done, total: update(done, total))
    return _compare(row, again, as_json)


def _line(path: Path, read: results.Read, number: int) -> dict[str, Any]:
    if number in read.torn:
        raise EluteError(f"{path}: line {number} is torn or holds no run")
    if number not in read.numbers:
        last = max([*read.numbers, *read.torn], default=0)
        raise EluteError(f"{path}: line {number} asked for; there are {last}")
    return read.rows[read.numbers.index(number)]


def _run(facts: dict[str, Any], where: str, *, catalogued: bool) -> Run:
    """What was run, if this version knows how."""
    try:
        run = Run.from_json(facts)
    except TypeError as error:
        raise EluteError(f"{where}: not a run as they are today: {error}") from error
    find_task(run.task)
    if catalogued:
        check_named(f"{run.task}/{run.demos}", run.starts)
    return run


def _compare(row: dict[str, Any], again: dict[str, Any], as_json: bool) -> int:
    old, new = row["metrics"]["returns"], again["metrics"]["returns"]
    same = old == new
    largest = max((abs(a - b) for a, b in zip(old, new, strict=False)), default=0.0)
    other = {
        name: [row["versions"].get(name), now]
        for name, now in again["versions"].items()
        if row["versions"].get(name) != now
    }
    means = {"was": row["metrics"]["mean"], "is": again["metrics"]["mean"]}
    if as_json:
        print_json({"same": same, "largest_difference": largest, "versions": other, **means})
        return 0 if same else 1
    told = "the same, bit for bit" if same else f"they differ by up to {largest:.6g}"
    out.print(f"returns of {len(new)} episodes: {told}", markup=False)
    if not same:
        out.print(f"mean was {means['was']:.6g}, is {means['is']:.6g}", markup=False)
        for name, (was, now) in other.items():
            out.print(f"{name} was {was or 'not written down'}, is {now}", markup=False)
    if not same and "arithmetic" in other:
        say(OTHERWISE if other["arithmetic"][0] else UNKNOWN)
    return 0 if same else 1
