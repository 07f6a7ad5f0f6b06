"""`elute run`: a grid of experiments, planned, run and taken up again."""

from collections import Counter
from pathlib import Path
from typing import Any

from rich.table import Table

from elute import results
from elute.cli.show import out, print_json, progress, say
from elute.collect import catalogue
from elute.errors import EluteError
from elute.experiment.cell import Place, run_digest
from elute.experiment.costs import estimate
from elute.experiment.engine import Engine, local, ray, run_grid
from elute.experiment.settings import parse
from elute.experiment.spec import Run, load_experiment, runs

PLAN = ("regime", "task", "method")


def run(
    file: Path,
    output: Path | None,
    data: Path | None,
    overrides: list[str],
    engine: str,
    address: str,
    jobs: int,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Run what is missing; 1 if a run failed."""
    experiment = load_experiment(file, parse(overrides))
    if data is not None and experiment.data is None:
        raise EluteError(
            f"--data {data}: {file} names no files",
            hint="[data] does; see docs/guides/experiments.md",
        )
    path = output or Path("results") / f"{experiment.name}.jsonl"
    place = Place(cache=catalogue.cache() / "stages", data=experiment.data, folder=data)
    over = _engine(engine, address, jobs)
    known = results.read(path)
    if known.torn:
        say(f"{path}: {known.warning}; kept, and counting for nothing")
    wanted = runs(experiment)
    done = {row.get("digest") for row in known.rows}
    left = [one for one in wanted if run_digest(one, place) not in done]
    cost = estimate(left, _measured(path))
    if dry_run:
        _plan(path, wanted, left, cost, jobs, as_json)
        return 0
    say(f"{len(wanted)} runs, {len(wanted) - len(left)} done, about {_time(cost / jobs)} to go")
    results.check_writable(path)
    failed = _work(left, place, path, over)
    for name, error in failed:
        say(f"failed: {name}: {error}")
    say(f"{path}: {len(wanted) - len(failed)} of {len(wanted)} runs are there")
    if as_json:
        print_json({"results": str(path), "runs": len(wanted), "failed": [n for n, _ in failed]})
    return 1 if failed else 0


def _measured(path: Path) -> list[dict[str, Any]]:
    """Lines of all grids beside this one, which took what they took."""
    return [row for file in sorted(path.parent.glob("*.jsonl")) for row in results.read(file).rows]


def _engine(name: str, address: str, jobs: int) -> Engine:
    if name == "local" and not address:
        return local(jobs)
    if name == "ray":
        return ray(jobs, address)
    raise EluteError(f"--engine {name}", hint="local, or ray with or without --address")


def _work(left: list[Run], place: Place, path: Path, engine: Engine) -> list[tuple[str, str]]:
    failed, ended = [], 0
    with progress("running") as update:
        for done in run_grid(left, place, path, engine=engine):
            ended += 1
            update(ended, len(left))
            if done.row is None:
                failed.append((done.run.name, done.error))
            else:
                say(f"{ended}/{len(left)} {done.run.name}: {done.row['metrics']['mean']:.1f}")
    return failed


def _plan(
    path: Path, wanted: list[Run], left: list[Run], cost: float, jobs: int, as_json: bool
) -> None:
    counted: dict[str, Any] = {by: dict(Counter(getattr(one, by) for one in wanted)) for by in PLAN}
    plan = {
        "results": str(path),
        "runs": len(wanted),
        "done": len(wanted) - len(left),
        "core_seconds": round(cost),
        "seconds": round(cost / jobs),
        **counted,
    }
    if as_json:
        print_json(plan)
        return
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_row("results", plan["results"])
    table.add_row("runs", f"{plan['runs']}, {plan['done']} of them done")
    for by in PLAN:
        told = ", ".join(f"{name} ({n})" for name, n in counted[by].items())
        table.add_row(by, told)
    table.add_row("to go", f"{_time(cost)} of one core, {_time(cost / jobs)} with {jobs} jobs")
    out.print(table, markup=False)


def _time(seconds: float) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    if not seconds:
        return "nothing"
    return f"{hours} h {minutes} min" if hours else f"{max(1, minutes)} min"
