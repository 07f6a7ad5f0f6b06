"""`elute demos audit`: what is wrong with demonstrations, and a repaired copy."""

from pathlib import Path
from typing import Any

import numpy as np

from elute.cli.arguments import open_file, parse_bounds
from elute.cli.show import print_json, progress, say, say_losses
from elute.cli.tables import show_audit
from elute.demos.audit.alignment import SHIFTS, Replay
from elute.demos.audit.audit import Audit, audit, own_bounds
from elute.demos.audit.finding import Finding
from elute.demos.audit.repair import clipping, repaired
from elute.demos.audit.summary import Bounds
from elute.demos.files import save
from elute.envs.task import check_columns, find_task
from elute.errors import EluteError
from elute.types import DemoSource


def run(
    file: str,
    optimal: str,
    task: str,
    bounds: str,
    fix: Path | None,
    clip: bool,
    keys: str,
    columns: str,
    horizon: int | None,
    strict: bool,
    as_json: bool,
) -> list[Finding]:
    """Audit, repair and say it; the findings that still make the answer a no."""
    if clip and fix is None:
        raise EluteError("--clip goes with --fix OUT", hint="nothing is changed in place")
    limits, horizon, replay = _task_facts(task, bounds, horizon)
    source = open_file(file, keys, columns, horizon, task)
    good = open_file(optimal, keys, columns, horizon, task) if optimal else None
    for data in filter(None, (source, good)):
        _check_task(task, data)
    with progress("auditing", "rows") as update:
        found = audit(
            source, optimal=good, bounds=limits, horizon=horizon, replay=replay, progress=update
        )
    report: dict[str, Any] = found.to_json()
    repairs = _fix(source, good, found, fix, limits, clip, strict) if fix else []
    if fix:
        report["fixed"] = {"file": str(fix), "repairs": repairs}
    if as_json:
        print_json(report)
    else:
        show_audit(found)
        if fix:
            say(f"wrote {fix}: " + (", ".join(repairs) or "nothing to repair, a plain copy"))
    failing = ("error", "warning") if strict else ("error",)
    return [
        finding
        for finding in found.findings
        if finding.severity in failing and (finding.about_optimal or finding.repair not in repairs)
    ]


def _task_facts(
    task: str, bounds: str, horizon: int | None
) -> tuple[Bounds | None, int | None, Replay | None]:
    """Bounds, time limit and simulator, as given or as the task knows them."""
    limits = parse_bounds(bounds) if bounds else None
    if not task:
        return limits, horizon, None
    from elute.collect.replay import can_replay, one_step_errors

    known = find_task(task)
    if limits is None:
        limits = Bounds(np.array(known.action_low), np.array(known.action_high))
    if not can_replay():
        say("no simulator is installed: alignment is judged from the data alone")
        return limits, horizon or known.horizon, None
    return limits, horizon or known.horizon, lambda runs: one_step_errors(known, runs, SHIFTS)


def _check_task(task: str, source: DemoSource) -> None:
    if not task:
        return
    n_observations, n_actions = len(source.observation_columns), len(source.action_columns)
    check_columns(find_task(task), n_observations, n_actions, source.provenance.source)


def _fix(
    source: DemoSource,
    good: DemoSource | None,
    found: Audit,
    path: Path,
    limits: Bounds | None,
    clip: bool,
    strict: bool,
) -> list[str]:
    """Write the repaired copy; the names of the repairs made."""
    limits = (limits or own_bounds(source)) if clip else None
    if clip and limits is None:
        raise EluteError("--clip needs the bounds of the actions", hint="give --task or --bounds")
    own = [finding for finding in found.findings if not finding.about_optimal]
    mended = repaired(source, own)
    clipped = clipping(mended, limits) if limits is not None else None
    with progress("writing", "rows") as update:
        spare = [good] if good is not None else []
        say_losses(
            save(mended, path, transform=clipped, strict=strict, spare=spare, progress=update)
        )
    first = mended.rows(0, 1)
    provenance = (clipped(0, first) if clipped else first).provenance
    for step in provenance.steps[len(source.provenance.steps) :]:
        details = ", ".join(f"{k}={v}" for k, v in step.items() if k != "operation")
        say(f"{step['operation']}: {details}")
    made = [finding.repair for finding in own if finding.repair not in ("", "clip")]
    return [*made, *(["clip"] if clip else [])]
