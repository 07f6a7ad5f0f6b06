"""Facts and findings as tables for the terminal."""

from collections.abc import Callable
from typing import Any

import numpy as np
from rich.table import Table

from elute.cli.show import out
from elute.columns import Block, Column, blocks
from elute.demos.audit.audit import Audit
from elute.demos.audit.finding import counted
from elute.demos.audit.quality import MEASURES
from elute.episodes import Array, Episodes
from elute.types import DemoSource, chunks

MOST_EPISODES = 20
_STYLE = {"error": "bold red", "warning": "yellow", "note": "dim"}


def facts(source: DemoSource, update: Callable[[int, int], None]) -> dict[str, Any]:
    """What is in a source, after one pass over it."""
    episodes, provenance = source.episodes, source.provenance
    first = source.rows(0, 1)
    low, high, bad, returns = _pass(source, update)
    n_observations = first.observations.shape[1]
    filters = {str(key) for a in episodes.attributes for key in a.get("filters", ())}
    return {
        "file": provenance.source,
        "format": provenance.format,
        "task": provenance.task,
        "rows": episodes.n_rows,
        "episodes": {
            "count": len(episodes),
            "shortest": int(episodes.lengths.min()),
            "median": float(np.median(episodes.lengths)),
            "longest": int(episodes.lengths.max()),
            "terminated": int(episodes.terminated.sum()),
            "truncated": int(episodes.truncated.sum()),
            "ends_inferred": bool(episodes.inferred.any()),
        },
        "returns": None if returns is None else _spread(returns),
        "each_episode": _each(episodes, returns),
        "non_finite_rows": bad,
        "observations": _arrays(source.observation_columns, first.observations.dtype, low, high),
        "actions": _arrays(
            source.action_columns, first.actions.dtype, low[n_observations:], high[n_observations:]
        ),
        "next_observations": first.next_observations is not None,
        "extras": {name: _shape(array) for name, array in first.extras.items()},
        "carried": list(source.origin.carried) if source.origin is not None else [],
        "filter_keys": sorted(filters),
        "steps": [dict(step) for step in provenance.steps],
    }


def _pass(
    source: DemoSource, update: Callable[[int, int], None]
) -> tuple[Array, Array, int, Array | None]:
    low, high, bad = np.array(np.inf), np.array(-np.inf), 0
    totals = np.zeros(len(source.episodes))
    known = True
    for start, rows in chunks(source):
        pairs = rows.pairs.astype(np.float64, copy=False)
        finite = np.asarray(np.isfinite(pairs).all(axis=1))
        bad += int((~finite).sum())
        low = np.minimum(low, pairs.min(axis=0, initial=np.inf, where=finite[:, None]))
        high = np.maximum(high, pairs.max(axis=0, initial=-np.inf, where=finite[:, None]))
        partial = rows.returns()
        known = partial is not None
        if partial is not None:
            first = source.episodes.of_row(start)
            totals[first : first + len(partial)] += partial
        update(start + len(rows), source.episodes.n_rows)
    return low, high, bad, totals if known else None


def _each(episodes: Episodes, returns: Array | None) -> list[dict[str, float | None]]:
    """Length and return of each, where there are few."""
    if len(episodes) > MOST_EPISODES:
        return []
    paid = [None] * len(episodes) if returns is None else [_number(value) for value in returns]
    lengths = episodes.lengths.tolist()
    return [{"rows": n, "return": r} for n, r in zip(lengths, paid, strict=True)]


def _spread(values: Array) -> dict[str, float | None]:
    named = {"lowest": values.min(), "mean": values.mean(), "highest": values.max()}
    return {name: _number(value) for name, value in named.items()}


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None


def _shape(array: Array) -> str:
    return f"{array.dtype}{list(array.shape[1:]) or ''}"


def _arrays(
    columns: tuple[Column, ...], dtype: np.dtype, low: Array, high: Array
) -> dict[str, Any]:
    return {
        "columns": len(columns),
        "type": str(dtype),
        "arrays": [
            {
                "name": block.key,
                "columns": block.size,
                "roles": _roles(block, low, high),
                "lowest": _number(low[block.start : block.stop].min()),
                "highest": _number(high[block.start : block.stop].max()),
            }
            for block in blocks(columns)
        ],
    }


def _roles(block: Block, low: Array, high: Array) -> list[str]:
    """Roles of an array's columns; one that never changes is constant, whatever it is called."""
    still = low[block.start : block.stop] >= high[block.start : block.stop]
    seen = zip(block.roles, still.tolist(), strict=True)
    return sorted({"constant" if same else role for role, same in seen})


def show_facts(facts: dict[str, Any]) -> None:
    """Facts about a file, on the terminal."""
    episodes, returns = facts["episodes"], facts["returns"]
    out.print(f"{facts['file']}  ({facts['format']})", markup=False)
    guessed = ", inferred" if episodes["ends_inferred"] else ""
    lines = [
        ("rows", f"{facts['rows']} in {counted(episodes['count'], 'episode')} "
                 f"of {_range(episodes)}"),
        ("ends", f"{episodes['terminated']} terminated, {episodes['truncated']} truncated"
                 f"{guessed}"),
        ("returns", "no rewards" if returns is None else
                    f"{returns['lowest']} to {returns['highest']}, mean {returns['mean']}"),
        ("each", _listed(facts["each_episode"])),
        ("task", facts["task"]),
        ("not finite", f"{facts['non_finite_rows']} rows" if facts["non_finite_rows"] else ""),
        ("next observations", "yes" if facts["next_observations"] else ""),
        ("filter keys", ", ".join(facts["filter_keys"])),
        ("also held", ", ".join(f"{k} {v}" for k, v in facts["extras"].items())),
        ("only in the file", ", ".join(facts["carried"])),
        ("done to it", ", then ".join(_step(step) for step in facts["steps"])),
    ]  # fmt: skip
    table = Table(show_header=False, box=None, padding=(0, 2))
    for name, value in lines:
        if value:
            table.add_row(name, value)
    out.print(table, markup=False)
    columns = Table(
        "vector", "array", "columns", "type", "roles", "lowest", "highest", box=None, padding=(0, 1)
    )
    for kind in ("observations", "actions"):
        for array in facts[kind]["arrays"]:
            columns.add_row(
                kind, array["name"], str(array["columns"]), facts[kind]["type"],
                ", ".join(array["roles"]), _shown(array["lowest"]), _shown(array["highest"]),
            )  # fmt: skip
    out.print(columns)


def _listed(each: list[dict[str, float | None]]) -> str:
    """Returns of the episodes, and their lengths if these differ."""
    if len(each) < 2 or each[0]["return"] is None:
        return ""
    same = len({row["rows"] for row in each}) == 1
    return ", ".join(f"{row['return']:g}" + ("" if same else f" in {row['rows']}") for row in each)


def _range(lengths: dict[str, Any]) -> str:
    if lengths["shortest"] == lengths["longest"]:
        return str(lengths["longest"])
    return f"{lengths['shortest']} to {lengths['longest']}, median {lengths['median']:g}"


def _step(step: dict[str, Any]) -> str:
    details = ", ".join(f"{k}={v}" for k, v in step.items() if k not in ("operation", "episodes"))
    return f"{step['operation']} ({details})" if details else str(step["operation"])


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float | int) else str(value or "-")


def show_audit(found: Audit) -> None:
    """Findings and the quality of episodes, on the terminal."""
    size = f"{counted(found.rows, 'row')} in {counted(len(found.episodes), 'episode')}"
    out.print(f"{found.file}: {size}", markup=False)
    files = {finding.file for finding in found.findings}
    for finding in found.findings:
        where = f" [{finding.file}]" if len(files) > 1 else ""
        out.print(f"\n{finding.severity}: {finding.code}", style=_STYLE[finding.severity], end="")
        out.print(where, markup=False)
        out.print(f"  {finding.message}", markup=False)
        out.print(f"  -> {finding.advice}", markup=False)
    if not found.findings:
        out.print("nothing found")
    table = Table(
        "episode", *(name.replace("_", " ") for name in MEASURES), box=None, padding=(0, 1)
    )
    for row in found.episodes[:MOST_EPISODES]:
        table.add_row(str(row["episode"]), *(_shown(row[name]) for name in MEASURES))
    out.print()
    out.print(table)
    if len(found.episodes) > MOST_EPISODES:
        out.print(f"... and {len(found.episodes) - MOST_EPISODES} more; --json lists all")
