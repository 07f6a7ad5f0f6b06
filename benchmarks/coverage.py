"""Does the audit foretell what purification is worth? Distance of the states against the returns.

    python -m benchmarks.coverage

For every set of Table 1 and of the types of noise, in the regime `episode`: the audit's distance
ratio (no environment, no training) beside the normalised returns of committed lines. Spearman's
correlation is over all sets and within each task; the figure goes to docs/.
"""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from elute.cli.report import read_rows
from elute.demos.audit.compare import FAR, distance_ratio
from elute.experiment.data import run_demos
from elute.experiment.spec import Run
from elute.report.groups import Row, grouped
from elute.report.summary import NEAR

ROOT = Path(__file__).parents[1]
METHODS = ("bc-all", "dp-bc", "isw-bc", "dp-isw-bc")
BANDS = (0.0, 2.5, 4.0, 5.5, 8.0, float("inf"))


def main() -> None:
    """Measure, write and draw."""
    rows = read_rows([ROOT / "results" / f"{name}.jsonl" for name in ("table1", "noise")])
    rows = [
        row
        for row in rows
        if row["regime"] == "episode"
        and row["method"] in METHODS
        and (row["auto"] or row["reverse_step"] is None)  # fixed steps are the oracle's
    ]
    sets = {(r["task"], r["demos"]): measured(r) for r in rows if r["method"] == "bc-all"}
    for group in grouped(rows):
        where = sets.get((group.place.task, group.place.demos))
        if where is not None:
            assert group.method not in where, f"two groups of {group.name}"
            where[group.method] = float(np.mean(group.normalised))
    found = sorted(sets.values(), key=lambda where: where["distance_ratio"])
    for where in found:
        where["gain"] = where["dp-bc"] - where["bc-all"]
    told = {name: correlations(found, name) for name in (*METHODS, "gain")}
    bands = [band(found, *ends) for ends in itertools.pairwise(BANDS)]
    facts = {"threshold": FAR, "spearman": told, "bands": bands, "sets": found}
    path = ROOT / "benchmarks" / "results" / "coverage.json"
    path.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({k: v for k, v in facts.items() if k != "sets"}, indent=1))
    draw(found, ROOT / "docs" / "coverage.png")


def measured(row: Row) -> dict[str, Any]:
    """Of one set: how far its states lie from those of the optimal episode."""
    both = run_demos(Run.from_json(row["run"]), None, None)
    ratio = distance_ratio(both.optimal.observations, both.supplementary.observations)
    return {"task": row["task"], "demos": row["demos"], "distance_ratio": ratio}


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
