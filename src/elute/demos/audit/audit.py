"""Audit demonstrations: what is wrong with them, before anything is trained on them."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from elute.demos.audit import checks
from elute.demos.audit.alignment import Replay, alignment_findings
from elute.demos.audit.compare import compare_findings
from elute.demos.audit.finding import Finding
from elute.demos.audit.quality import episode_quality, quality_findings
from elute.demos.audit.sample import Sample, take_sample
from elute.demos.audit.summary import Bounds, Summary, summarise
from elute.errors import EluteError
from elute.types import DemoSource

_ORDER = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True)
class Audit:
    """The findings about a file, most severe first, and the quality of its episodes."""

    file: str
    rows: int
    findings: tuple[Finding, ...]
    episodes: tuple[dict[str, Any], ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Findings that make training on the data wrong."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    def to_json(self) -> dict[str, Any]:
        """As the command line prints it."""
        return {
            "file": self.file,
            "rows": self.rows,
            "findings": [finding.to_json() for finding in self.findings],
            "episodes": list(self.episodes),
        }


def audit(
    source: DemoSource,
    *,
    optimal: DemoSource | None = None,
    bounds: Bounds | None = None,
    horizon: int | None = None,
    replay: Replay | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Audit:
    """Look for everything that is known to go wrong.

    Args:
        source: an open file or demonstrations in memory; read once, a chunk at a time.
        optimal: the good demonstrations it will be used with; audited too, and compared.
        bounds: of the actions; by default what the file itself says.
        horizon: time limit of the task.
        replay: simulates one step per row for each shift, to confirm the alignment.
        progress: called after each chunk.
    """
    findings, sample, summary = _one_file(source, bounds, horizon, replay, progress)
    quality = episode_quality(summary, source.episodes)
    findings += quality_findings(quality)
    if optimal is not None:
        _check_columns(optimal, source)
        good, good_sample, good_summary = _one_file(
            optimal, bounds, horizon, replay, lambda done, total: None
        )
        columns = (*source.observation_columns, *source.action_columns)
        findings += compare_findings((good_sample, good_summary), (sample, summary), columns)
        findings += [
            replace(finding, file=_label(optimal), about_optimal=True)
            for finding in good
            if finding.severity != "note"
        ]
    findings = [f if f.about_optimal else replace(f, file=_label(source)) for f in findings]
    return Audit(
        file=_label(source),
        rows=source.episodes.n_rows,
        findings=tuple(sorted(findings, key=lambda finding: _ORDER[finding.severity])),
        episodes=tuple(quality),
    )


def _one_file(
    source: DemoSource,
    bounds: Bounds | None,
    horizon: int | None,
    replay: Replay | None,
    progress: Callable[[int, int], None],
) -> tuple[list[Finding], Sample, Summary]:
    n_actions = len(source.action_columns)
    bounds = own_bounds(source) if bounds is None else _fitting(bounds, n_actions)
    sample = take_sample(source)
    summary = summarise(source, sample, bounds, progress)
    columns = (*source.observation_columns, *source.action_columns)
    rows = source.episodes.n_rows
    findings = [
        *alignment_findings(sample, replay),
        *checks.state_findings(source.observation_columns),
        *checks.value_findings(summary, columns, rows),
        *checks.duplicate_findings(summary, source.episodes),
        *checks.column_findings(summary, columns, sample),
        *checks.action_findings(summary, bounds, source.action_columns, rows),
        *checks.step_findings(summary),
        *checks.end_findings(source.episodes, horizon),
    ]
    return findings, sample, summary


def _label(source: DemoSource) -> str:
    """The file and what was selected from it."""
    last = source.provenance.steps[-1] if source.provenance.steps else {}
    selected = f"#{last['selection']}" if last.get("operation") == "select" else ""
    return source.provenance.source + selected


def _check_columns(optimal: DemoSource, other: DemoSource) -> None:
    for kind in ("observation_columns", "action_columns"):
        good, rest = len(getattr(optimal, kind)), len(getattr(other, kind))
        if good != rest:
            what = kind.removesuffix("_columns")
            raise EluteError(
                f"{optimal.provenance.source} has {good} {what} columns, "
                f"{other.provenance.source} has {rest}",
                hint="both files must come from the same task and observation keys",
            )


def _fitting(bounds: Bounds, n_actions: int) -> Bounds:
    """Bounds of every action column; one pair stands for all."""
    if len(bounds.low) not in (1, n_actions):
        raise EluteError(f"bounds for {len(bounds.low)} action columns; there are {n_actions}")
    low, high = (np.broadcast_to(side, n_actions) for side in (bounds.low, bounds.high))
    return Bounds(low, high)


def own_bounds(source: DemoSource) -> Bounds | None:
    """The action bounds that the file itself states (Minari's action space), if any."""
    text = source.provenance.metadata.get("minari", {}).get("action_space")
    try:
        space = json.loads(text) if isinstance(text, str) else {}
        low, high = (np.array(space[side], dtype=np.float64) for side in ("low", "high"))
    except (ValueError, KeyError, TypeError):
        return None
    expected = (len(source.action_columns),)
    usable = low.shape == high.shape == expected and np.isfinite([low, high]).all()
    return Bounds(low, high) if usable else None
