"""Where D_o covers much or little of D_s: the step that is chosen against the best one.

    OMP_NUM_THREADS=1 python -m benchmarks.choice

D_o is the first 50 rows of an expert's episode (`paper`), which has hardly begun to walk then, or
all of it (`episode`). The expert is at hand, so the error of a policy cloned from purified rows is
known in every state of D_s: "best" is the step of the least, "by actions" the one at which purified
actions are expected to err least, "held out" that of `purify/criteria.py`. What a step earns is the
mean return of the committed lines of the sweep, interpolated between the steps that were run. A
line of `benchmarks/results/choice.jsonl` is written as it is measured; what is there is not done
again. The types of noise, by whose returns nothing was picked, are measured with
`--group noise`.
"""

import argparse
import json
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elute.cli.report import read_rows
from elute.collect.shipped import shipped_path
from elute.envs.task import find_task
from elute.experiment.cell import CHOICE
from elute.experiment.data import run_demos
from elute.experiment.spec import Regime, Run
from elute.learners.actor import Design
from elute.learners.bc import BC
from elute.policy import load_policy
from elute.purify import criteria, select
from elute.purify.diffusion import DiffusionPurifier
from elute.report.groups import Place, grouped
from elute.report.tables import DEMOS
from elute.rng import Seeds
from elute.types import DemoSet
from elute.uncertainty import stderr

RESULTS = Path(__file__).parent / "results" / "choice.jsonl"
LINES = Path(__file__).parents[1] / "results"
TASKS = ("ant", "halfcheetah", "walker2d", "hopper")
GROUPS = {"table1": DEMOS["1"], "noise": DEMOS["noise"]}
SWEEPS = {"table1": "reverse-step", "noise": "noise"}
"""Files of lines at fixed steps."""
WAYS = ("chosen", "by_actions", "held_out", "best")
REGIMES: dict[str, tuple[Regime, ...]] = {"table1": ("paper", "episode"), "noise": ("episode",)}
PURIFIER, CLONE = DiffusionPurifier(), BC()


def main() -> None:
    """Measure what is missing, and print all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--group", choices=GROUPS, default="table1")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows, demos, regimes = measured(), GROUPS[given.group], REGIMES[given.group]
    for key in product(regimes, demos, TASKS):
        if key not in rows:
            rows[key] = measure(*key)
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[key]) + "\n")
        print(told(rows[key]), flush=True)
    for regime in regimes:
        print(regime)
        for way, earns in earned(rows, regime, given.group).items():
            print(f"  {way}: {earns.told()}")


def measured() -> dict[tuple[str, str, str], dict[str, Any]]:
    """Today's choice, by regime, demonstrations and task, as far as it was measured."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return {
        (row["regime"], row["demos"], row["task"]): row
        for row in map(json.loads, lines)
        if (row["choice"], row["averaging"]) == (CHOICE, CLONE.averaging)
    }


def measure(regime: Regime, demos: str, task: str) -> dict[str, Any]:
    """The error at each candidate, and which of them are chosen."""
    run = Run(
        task=task,
        demos=demos,
        method="dp-bc",
        regime=regime,
        seed=0,
        episodes=0,
        preset="default",
        purifier=None,
        settings={},
    )
    both, seeds = run_demos(run, None, None), Seeds(0)
    choice = select.choose_reverse_step(PURIFIER, both, seeds)
    held_out = criteria.policy_errors(PURIFIER, both, seeds)
    rows = both.supplementary
    expert = load_policy(shipped_path(task))
    fitted = replace(PURIFIER, reverse_step=max(select.CANDIDATES)).fit(both, seeds)
    low, high = find_task(task).bounds
    design = Design(bounds=(tuple(low.tolist()), tuple(high.tolist())))
    clone = replace(CLONE, actor=design)
    clean, errors, of_actions = expert.act(rows.observations), {}, {}
    for step in select.CANDIDATES:
        purified = fitted.at(step)(rows, seed=0)
        of_actions[step] = float(np.mean((purified.actions - clean) ** 2))
        policy = clone.fit(DemoSet(both.optimal, purified), seeds("learn"))
        errors[step] = float(np.mean((policy.act(rows.observations) - clean) ** 2))
    return {
        "choice": CHOICE,
        "averaging": CLONE.averaging,
        "regime": regime,
        "demos": demos,
        "task": task,
        "best": min(errors, key=lambda step: errors[step]),
        "chosen": choice.for_policy,
        "by_actions": choice.for_actions,
        "held_out": min(held_out, key=lambda step: held_out[step]),
        "errors": {str(step): round(error, 4) for step, error in errors.items()},
        "action_errors": {str(step): round(error, 4) for step, error in of_actions.items()},
    }


def told(row: dict[str, Any]) -> str:
    """A row of a table."""
    steps = {name: row[name] for name in ("best", "chosen", "by_actions")}
    cells = [f"{step}, {row['errors'][str(step)]:.3f}" for step in steps.values()]
    return " | ".join(
        [row["regime"], row["task"], row["demos"], f"{row['errors']['0']:.3f}", *cells]
    )


@dataclass(frozen=True)
class Earns:
    """A mean over sets, and how far it is ahead of the chosen step's, with the standard error."""

    mean: float
    ahead: float
    stderr: float | None

    def told(self, beside: bool = True) -> str:
        """In words, with or without what it is ahead by."""
        spread = "" if self.stderr is None else f" ± {self.stderr:.2f}"
        return f"{self.mean:.2f}{f', {self.ahead:+.2f}{spread}' if beside else ''}"


def earned(
    rows: dict[tuple[str, str, str], dict[str, Any]], regime: str, group: str
) -> dict[str, Earns]:
    """The mean normalised return over the sets, for each way to choose, and beside `auto`."""
    returns: dict[str, list[float]] = defaultdict(list)
    for demos, task in product(GROUPS[group], TASKS):
        row, place = rows[regime, demos, task], swept(SWEEPS[group])[Place(regime, task, demos)]
        means = {step: place[str(step)] for step in sorted(map(int, set(place) - {"auto"}))}
        returns["none"].append(means[0])
        for way in WAYS:
            returns[way].append(float(np.interp(row[way], list(means), list(means.values()))))
        returns["of the sweep"].append(max(means[step] for step in means if step))
    return {way: beside(scores, returns["chosen"]) for way, scores in returns.items()}


@cache
def swept(*files: str) -> dict[Place, dict[str, float]]:
    """The mean score at each step and at the chosen one; plain cloning is step 0."""
    found: dict[Place, dict[str, float]] = defaultdict(dict)
    for group in grouped(read_rows([LINES / f"{file}.jsonl" for file in files])):
        if group.method in ("bc-all", "dp-bc"):
            step, score = group.step or "0", float(np.mean(group.normalised))
            assert found[group.place].setdefault(step, score) == score, (
                f"{group.name}: two numbers for one cell"
            )
    return found


def beside(scores: list[float], others: list[float]) -> Earns:
    """A mean over sets, and by how much it differs, with the standard error over sets."""
    ahead = np.subtract(scores, others)
    return Earns(float(np.mean(scores)), float(ahead.mean()), stderr(ahead.tolist()))


if __name__ == "__main__":
    main()
