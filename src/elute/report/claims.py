"""Claims of the paper about its own tables, counted; and with them every claim there is.

    for checked in ledger(): print(checked.claim, checked.verdict)

Numbers are those of `report/paper.py`, rules and verdicts as in `theory/claims/claim.py`.
"""

from math import erfc, sqrt

from elute.report.paper import DEMONSTRATIONS, LABELS, Published, published
from elute.theory.claims.claim import Checked, Claim, Numbers
from elute.theory.claims.ledger import CLAIMS as THEOREMS
from elute.theory.claims.theorem4 import least_inflection
from elute.theory.inflection import inflection_times

N_STEPS = 1000
LEVELS = ("L1", "L2", "L3")
SIGNIFICANT = 0.05
EPISODES = 50
"""Of the RoboSuite table."""
Cell = tuple[str, str]
"""A task and demonstrations."""
SAME = 0.02
"""By which a return may differ from that of its file, for rounding and for cut episodes."""
FILES: dict[Cell, float] = {
    ("ant", "D1-L1"): -73, ("ant", "D1-L2"): 228, ("ant", "D1-L3"): 536,
    ("halfcheetah", "D1-L1"): 568, ("halfcheetah", "D1-L2"): 1090,
    ("halfcheetah", "D1-L3"): 1853, ("halfcheetah", "Expert"): 4129,
    ("walker2d", "D1-L1"): 523, ("walker2d", "D1-L2"): 468, ("walker2d", "D1-L3"): 4362,
    ("walker2d", "Expert"): 4653,
}  # fmt: skip
"""Mean return per episode of the published noisy and expert files."""
CHECKPOINTS = {
    "ant": (-33, 1063, 1560, 1788, 2649),
    "halfcheetah": (634, 391, 2218, 3263),
    "walker2d": (524, 2706, 3250, 4154),
}
"""The same of the published files t1 to t4; of Ant's t4 also the return of its first 1000 rows."""


def offline() -> dict[Cell, dict[str, float]]:
    """The main table by cell and method; BC-opt, which is printed once for a task, left out."""
    cells: dict[Cell, dict[str, float]] = {}
    for number in published("1"):
        if number.method != "bc-opt":
            cells.setdefault((number.task, number.demos), {})[number.method] = number.mean
    return cells


def quoted_steps() -> dict[Cell, int]:
    """The reverse step that the main table names in each cell."""
    return {(n.task, n.demos): n.reverse_step for n in published("1") if n.reverse_step is not None}


def swept() -> dict[Cell, dict[int, float]]:
    """The table of reverse steps by cell and step."""
    cells: dict[Cell, dict[int, float]] = {}
    for number in published("reverse-step"):
        if number.reverse_step is not None:
            cells.setdefault((number.task, number.demos), {})[number.reverse_step] = number.mean
    return cells


def best_steps() -> dict[Cell, int]:
    """Of each cell of that table, the step with the highest return."""
    return {cell: max(returns, key=lambda step: returns[step]) for cell, returns in swept().items()}


def _of(table: str, method: str) -> dict[Cell, Published]:
    return {(n.task, n.demos): n for n in published(table) if n.method == method}


def _by_level(cells: dict[Cell, float], *kinds: str) -> list[list[float]]:
    """Rows of L1, L2, L3, for each task and kind of demonstrations."""
    tasks = dict.fromkeys(task for task, _ in cells)
    return [
        [cells[task, LABELS[f"{kind}-{level}"]] for level in LEVELS]
        for task in tasks
        for kind in kinds
    ]


def _times() -> Numbers:
    times = [step / N_STEPS for step in quoted_steps().values()]
    return {
        "published times": float(len(times)),
        "of them in {0, 1}": float(sum(t in (0, 1) for t in times)),
        "of them in [0, 1]": float(sum(0 <= t <= 1 for t in times)),
    }


def _near_optimum() -> Numbers:
    steps = quoted_steps().values()
    return {
        "least i_p with lambda >= 0": N_STEPS * least_inflection(),
        "i_p at C~ / C = 5": N_STEPS * float(inflection_times(5.0)[0]),
        "least published i_r": float(min(steps)),
        "largest published i_r": float(max(steps)),
    }


def _levels() -> Numbers:
    steps = {cell: float(step) for cell, step in quoted_steps().items()}
    groups = _by_level(steps, "D1", "D2")
    return {
        "tasks and kinds": float(len(groups)),
        "i_r falls or stays from L1 to L3": float(sum(g == sorted(g)[::-1] for g in groups)),
        "L3 below L1": float(sum(g[2] < g[0] for g in groups)),
    }


def _agreement() -> Numbers:
    cells, steps, best, sweep = offline(), quoted_steps(), best_steps(), swept()
    same = [sweep[cell].get(steps[cell]) == by_method["dp-bc"] for cell, by_method in cells.items()]
    return {
        "cells": float(len(cells)),
        "in both tables alike": float(sum(same)),
        "name the best step of the other table": float(sum(best[c] == steps[c] for c in cells)),
    }


def _best() -> Numbers:
    cells = offline().values()
    return {
        "cells": float(len(cells)),
        "DP-BC best": float(sum(cell["dp-bc"] == max(cell.values()) for cell in cells)),
        "DP-BC above BC-all": float(sum(cell["dp-bc"] > cell["bc-all"] for cell in cells)),
    }


def _copied_dwbc() -> Numbers:
    cells = {cell: by["dwbc"] for cell, by in offline().items() if cell[0] == "hopper"}
    one, other = _by_level(cells, "D1", "D2")
    same = sum(a == b for a, b in zip(one, other, strict=True))
    return {"levels": float(len(one)), "equal on D1 and D2": float(same)}


def _copied_noise() -> Numbers:
    cells = _of("noise", "bc-all")
    uniform, grains = (
        [cells["ant", LABELS[f"{kind}-{level}"]] for level in LEVELS] for kind in ("Uni", "S&P")
    )
    pairs = zip(uniform, grains, strict=True)
    same = sum((a.mean, a.spread) == (b.mean, b.spread) for a, b in pairs)
    return {"entries": float(len(uniform)), "equal in mean and spread": float(same)}


def _noise_levels() -> Numbers:
    means = {cell: number.mean for cell, number in _of("noise", "bc-all").items()}
    blocks = _by_level(means, "Uni", "S&P")
    return {
        "blocks": float(len(blocks)),
        "BC falls from L1 to L3": float(sum(row == sorted(row)[::-1] for row in blocks)),
    }


def _filters() -> Numbers:
    cells: dict[Cell, dict[str, float]] = {}
    for number in published("filters"):
        if number.method in ("gaussian-bc", "mean-bc", "median-bc"):
            cells.setdefault((number.task, number.demos), {})[number.method] = number.mean
    best = sum(cell["mean-bc"] == max(cell.values()) for cell in cells.values())
    return {"levels": float(len(cells)), "mean filter best": float(best)}


def _quality() -> Numbers:
    means = {cell: number.mean for cell, number in _of("quality", DEMONSTRATIONS).items()}
    groups = _by_level(means, "D1", "D2")
    return {
        "tasks and kinds": float(len(groups)),
        "return grows from L1 to L3": float(sum(g == sorted(g) for g in groups)),
    }


def _bold() -> Numbers:
    cell = offline()["halfcheetah", LABELS["D2-L2"]]
    return {"DP-BC, in bold": cell["dp-bc"], "BC-all": cell["bc-all"]}


def _files() -> Numbers:
    means = {cell: number.mean for cell, number in _of("quality", DEMONSTRATIONS).items()}
    off = {cell: _apart(means[cell[0], LABELS[cell[1]]], had) for cell, had in FILES.items()}
    return {
        "numbers that have a file": float(len(off)),
        f"within {100 * SAME:g} % of it": float(sum(apart <= SAME for apart in off.values())),
        "Ant D1-L3, printed over file": means["ant", LABELS["D1-L3"]] / FILES["ant", "D1-L3"],
        "HalfCheetah expert": means["halfcheetah", LABELS["Expert"]]
        / FILES["halfcheetah", "Expert"],
        "Walker2d expert": means["walker2d", LABELS["Expert"]] / FILES["walker2d", "Expert"],
    }


def _checkpoints() -> Numbers:
    means = {cell: number.mean for cell, number in _of("quality", DEMONSTRATIONS).items()}
    return {
        f"{task} {label}, nearest file off by": min(
            _apart(means[task, LABELS[label]], had) for had in CHECKPOINTS[task]
        )
        for task in CHECKPOINTS
        for label in ("D2-L1", "D2-L2", "D2-L3")
    }


def _apart(printed: float, had: float) -> float:
    return abs(printed - had) / abs(had)


def _hopper() -> Numbers:
    steps = [step for (task, _), step in best_steps().items() if task == "hopper"]
    return {"sets": float(len(steps)), "best step 5": float(steps.count(5))}


def _small_steps() -> Numbers:
    steps = best_steps().values()
    return {
        "cells": float(len(steps)),
        "best step 5 to 10": float(sum(5 <= step <= 10 for step in steps)),
    }


def _robosuite() -> Numbers:
    by_method = {n.method: n.mean for n in published("robosuite") if n.reverse_step is None}
    ours, other = by_method["dp-bc"], by_method["dwbc"]
    pooled = (ours + other) / 2
    error = sqrt(2 * pooled * (1 - pooled) / EPISODES)
    return {
        "DP-BC - DWBC": ours - other,
        "standard error": error,
        "p, two-sided": erfc(abs(ours - other) / error / sqrt(2)),
    }


CLAIMS = (
    Claim(
        claim="the process runs over t in {0, 1}",
        where="Theorem 1",
        printed="{0, 1}",
        measure=_times,
        holds=lambda n: n["of them in {0, 1}"] == n["published times"],
        corrected=lambda n: n["of them in [0, 1]"] == n["published times"],
    ),
    Claim(
        claim="the best reverse step is around the inflection",
        where="Theorem 4, Table 1",
        printed="i_r = 1 to 100",
        measure=_near_optimum,
        holds=lambda n: n["least i_p with lambda >= 0"] <= n["largest published i_r"],
    ),
    Claim(
        claim="the published best step falls from L1 to L3",
        where="section 5.1, Table 1",
        printed="generally observed",
        measure=_levels,
        holds=lambda n: 2 * n["i_r falls or stays from L1 to L3"] > n["tasks and kinds"],
    ),
    Claim(
        claim="the main table quotes the table of reverse steps",
        where="Table 1, appendix table of i_r",
        printed="24 cells",
        measure=_agreement,
        holds=lambda n: n["in both tables alike"] == n["cells"],
    ),
    Claim(
        claim="DP-BC improves on the other methods in every cell",
        where="section 5.1, Table 1",
        printed="consistently, across all",
        measure=_best,
        holds=lambda n: n["DP-BC best"] == n["cells"],
    ),
    Claim(
        claim="DWBC on Hopper was measured on D1 and on D2",
        where="Table 1",
        printed="761, 826, 1140 twice",
        measure=_copied_dwbc,
        holds=lambda n: n["equal on D1 and D2"] == 0,
    ),
    Claim(
        claim="BC on Ant was measured on uniform and on salt-and-pepper noise",
        where="table of other noises",
        printed="209±138, 396±42, 704±97 twice",
        measure=_copied_noise,
        holds=lambda n: n["equal in mean and spread"] == 0,
    ),
    Claim(
        claim="other noises: L1 to L3 are delta = .25, .4, .6",
        where="section 5.2, Different Types of Noises",
        printed="noise grows from L1 to L3",
        measure=_noise_levels,
        holds=lambda n: n["BC falls from L1 to L3"] == n["blocks"],
    ),
    Claim(
        claim="the mean filter is the best of the filters",
        where="section 5.2, Compared with Other Purified Methods",
        printed="best",
        measure=_filters,
        holds=lambda n: n["mean filter best"] == n["levels"],
    ),
    Claim(
        claim="demonstrations get better from L1 to L3",
        where="section 5.1, table of data quality",
        printed="progressively less perturbation",
        measure=_quality,
        holds=lambda n: n["return grows from L1 to L3"] == n["tasks and kinds"],
    ),
    Claim(
        claim="HalfCheetah D2-L2: the number in bold is the best of its row",
        where="Table 1",
        printed="DP-BC in bold",
        measure=_bold,
        holds=lambda n: n["DP-BC, in bold"] >= n["BC-all"],
    ),
    Claim(
        claim="the noisy and the expert files have the return that is printed for them",
        where="table of data quality, published files",
        printed="Ant D1-L3 3514; experts 4624, 4963",
        measure=_files,
        holds=lambda n: n["within 2 % of it"] == n["numbers that have a file"],
    ),
    Claim(
        claim="each checkpoint of the table is one of the published files",
        where="table of data quality, published files",
        printed="HalfCheetah D2-L1 1491, Walker2d D2-L1 1699",
        measure=_checkpoints,
        holds=lambda n: all(off <= SAME for off in n.values()),
    ),
    Claim(
        claim="the best step of Hopper is 5 for all sets",
        where="appendix, Impact of reverse point",
        printed="5",
        measure=_hopper,
        holds=lambda n: n["best step 5"] == n["sets"],
    ),
    Claim(
        claim="a step of 5 to 10 is best in 19 of 24 cells",
        where="appendix, Impact of reverse point",
        printed="19",
        measure=_small_steps,
        holds=lambda n: n["best step 5 to 10"] == 19,
    ),
    Claim(
        claim="DP-BC succeeds more often than DWBC on RoboSuite",
        where="section 5.3",
        printed=".86 against .82 in 50 episodes",
        measure=_robosuite,
        holds=lambda n: n["p, two-sided"] < SIGNIFICANT and n["DP-BC - DWBC"] > 0,
        vacuous=lambda n: n["p, two-sided"] >= SIGNIFICANT,
    ),
)

EVERY_CLAIM: tuple[Claim, ...] = (*THEOREMS, *CLAIMS)


def ledger() -> list[Checked]:
    """Every claim, measured and judged."""
    return [claim.check() for claim in EVERY_CLAIM]
