"""Does the audit foretell what purification is worth? Distance of the states against the returns.

    python -m benchmarks.coverage

For every set of Table 1 and of the types of noise, in the regime `episode`: the audit's distance
ratio (no environment, no training) beside the normalised returns of committed lines. Spearman's
correlation is over all sets and within each task; the figure goes to docs/. Distances are kept, and
`benchmarks.tables` puts today's returns beside them.
"""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from elute.cli.report import read_rows
from elute.collect.catalogue import rounding
from elute.demos.audit.compare import FAR, distance_ratio
from elute.experiment.data import run_demos
from elute.experiment.spec import Run
from elute.report.groups import Row, grouped
from elute.report.summary import NEAR

ROOT = Path(__file__).parents[1]
DISTANCES = ROOT / "benchmarks" / "results" / "coverage.json"
METHODS = ("bc-all", "dp-bc", "isw-bc", "dp-isw-bc")
BANDS = (0.0, 2.5, 4.0, 5.5, 8.0, float("inf"))


def main() -> None:
    """Measure the distances, print what they have to do with returns, and draw."""
    rows = [row for row in lines() if row["method"] == "bc-all"]
    sets = {(row["task"], row["demos"]): measured(row) for row in rows}
    facts = {"rounding": rounding(), "sets": [*sets.values()]}
    DISTANCES.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    found = joined()
    told = {name: correlations(found, name) for name in (*METHODS, "gain")}
    print(json.dumps({"threshold": FAR, "spearman": told, "bands": bands(found)}, indent=1))
    draw(found, ROOT / "docs" / "coverage.png")


def lines() -> list[dict[str, Any]]:
    """Committed ones of these methods and sets."""
    rows = read_rows([ROOT / "results" / f"{name}.jsonl" for name in ("table1", "noise")])
    return [
        row
        for row in rows
        if row["regime"] == "episode"
        and row["method"] in METHODS
        and (row["auto"] or row["reverse_step"] is None)  # fixed steps are the oracle's
    ]


def joined() -> list[dict[str, Any]]:
    """The sets from near to far, with what the methods earn there by the committed lines."""
    sets = {(s["task"], s["demos"]): s for s in json.loads(DISTANCES.read_text())["sets"]}
    for group in grouped(lines()):
        where = sets[group.place.task, group.place.demos]
        assert group.method not in where, f"two groups of {group.name}"
        where[group.method] = float(np.mean(group.normalised))
    for where in sets.values():
        where["gain"] = where["dp-bc"] - where["bc-all"]
    return sorted(sets.values(), key=lambda where: where["distance_ratio"])


def measured(row: Row) -> dict[str, Any]:
    """Of one set: how far its states lie from those of the optimal episode."""
    both = run_demos(Run.from_json(row["run"]), None, None)
    ratio = distance_ratio(both.optimal.observations, both.supplementary.observations)
    return {"task": row["task"], "demos": row["demos"], "distance_ratio": ratio}


def bands(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What there is at each distance."""
    return [band(found, *ends) for ends in itertools.pairwise(BANDS)]


def band(found: list[dict[str, Any]], low: float, high: float) -> dict[str, Any]:
    """Means of the sets at such distances, and how many are near the expert."""
    part = [s for s in found if low < s["distance_ratio"] <= high]
    return {
        "over": low,
        "sets": len(part),
        **{m: round(float(np.mean([s[m] for s in part])), 2) for m in ("bc-all", "dp-bc", "gain")},
        "better": sum(s["gain"] > 0 for s in part),
        "near": {m: sum(s[m] >= NEAR for s in part) for m in ("bc-all", "dp-bc")},
        "weighed": {
            m: {
                "above dp-bc": sum(s[m] > s["dp-bc"] for s in part),
                "near": sum(s[m] >= NEAR for s in part),
            }
            for m in ("isw-bc", "dp-isw-bc")
        },
    }


def correlations(found: list[dict[str, Any]], method: str) -> dict[str, float]:
    """Spearman's, over all sets and within each task."""
    have = [s for s in found if method in s]
    parts = {"all": have} | {
        task: [s for s in have if s["task"] == task] for task in sorted({s["task"] for s in have})
    }
    return {
        name: round(
            float(spearmanr([s["distance_ratio"] for s in part], [s[method] for s in part])[0]), 2
        )
        for name, part in parts.items()
    }


def draw(found: list[dict[str, Any]], path: Path) -> None:
    """A panel for each method, sets as dots coloured by task, the threshold dashed."""
    figure = Figure(figsize=(3.4 * len(METHODS), 3.4), layout="constrained")
    axes = figure.subplots(1, len(METHODS), sharey=True)
    for axis, method in zip(axes, METHODS, strict=True):
        for i, task in enumerate(sorted({s["task"] for s in found})):
            mine = [s for s in found if s["task"] == task and method in s]
            x, y = [s["distance_ratio"] for s in mine], [s[method] for s in mine]
            axis.plot(x, y, "o", color=f"C{i}", alpha=0.7, label=task)
        axis.axvline(FAR, color="grey", linestyle="--")
        axis.set_xscale("log")
        axis.set_xticks([2, 4, 8, 16], ["2", "4", "8", "16"])
        axis.minorticks_off()
        axis.set_title(method)
        axis.set_xlabel("distance of the states")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("0 random actions, 1 expert")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
