"""Are actions beside the states they were taken in? Found without a simulator.

For each shift k the change of state s_{t+1} - s_t is regressed on s_t, random tanh features of
s_t, and a_{t+k} (ridge, cross-validated over contiguous folds). What counts is how much of the
change that s_t leaves unexplained is explained by the action: R^2 per column, averaged.

The action that caused a change explains it; a later action explains a part of it, because the
policy saw the outcome, and of a deterministic policy even more of it (a_{t+1} = pi(s_{t+1}) gives
s_{t+1} away). An earlier action explains next to nothing, for s_t shows what it did. So the action
that acts is the earliest that explains anything to speak of, and a shift is only reported when it
is clearly better than *every* other one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from elute.demos.audit.finding import Finding
from elute.demos.audit.sample import Sample, spread
from elute.episodes import Array
from elute.types import Demonstrations

SHIFTS = range(-3, 4)
MOST_ROWS = 10_000
FEWEST_ROWS = 60
"""With less, nothing can be said."""
FEATURES = 150
FOLDS = 5
RIDGE = 1e-4
LEAST_EXPLAINED = 0.1
"""A shift that explains less than this says nothing."""
ACTS = 0.18
"""Share of what the best shift explains that tells an action that acts from one that has acted. Of
aligned deterministic experts it was .21 to .60, of shifted ones .14 and less."""
CLEARLY = 1.4
"""How much more than every other shift the best one must explain."""

Replay = Callable[[Sequence[Demonstrations]], Mapping[int, float]]
"""Runs of rows -> median error of one simulated step, for each shift."""


@dataclass(frozen=True)
class Alignment:
    """How well each shift explains the data."""

    verdict: Literal["aligned", "misaligned", "unclear", "not measurable"]
    shift: int
    """The best shift; meaningful for "aligned" (0) and "misaligned"."""
    explained: Mapping[int, float]
    """Share of the unexplained change of state that the action at each shift explains."""
    replayed: Mapping[int, float]
    """Median error of one simulated step at each shift, where a simulator was at hand."""
    decided_by_replay: bool


def measure_alignment(runs: Sequence[Demonstrations], replay: Replay | None = None) -> Alignment:
    """Find the shift of these runs of consecutive rows; a simulator has the last word."""
    explained = explained_by_shift(runs)
    verdict, shift = _judge(explained)
    replayed = dict(replay(runs)) if replay is not None else {}
    ranked = sorted(replayed, key=lambda k: replayed[k])
    decided = len(ranked) > 1 and 2 * replayed[ranked[0]] < replayed[ranked[1]]
    if decided:
        verdict, shift = ("misaligned" if ranked[0] else "aligned"), ranked[0]
    return Alignment(verdict, shift, explained, replayed, decided)


def _judge(
    explained: Mapping[int, float],
) -> tuple[Literal["aligned", "misaligned", "unclear", "not measurable"], int]:
    if not explained:
        return "not measurable", 0
    ranked = sorted(explained, key=lambda k: -explained[k])
    best = ranked[0]
    if explained[best] < LEAST_EXPLAINED:
        return "not measurable", 0
    if best == 0 or CLEARLY * explained[0] > explained[best]:
        return "aligned", 0  # nothing speaks clearly against it
    acting = next((k for k in range(best) if explained[k] > ACTS * explained[best]), best)
    if acting == 0:
        return "aligned", 0  # the later action knows the outcome
    others = max(explained[k] for k in ranked if k not in (best, acting))
    if explained[best] > CLEARLY * others:
        return "misaligned", acting
    return "unclear", best


def explained_by_shift(runs: Sequence[Demonstrations]) -> dict[int, float]:
    """For each shift, the share of the unexplained change of state that the action explains."""
    states, changes, actions = _windows(runs)
    if len(states) < FEWEST_ROWS or states.shape[1] == 0 or changes.shape[1] == 0:
        return {}
    base = _features(states)
    blocks = [_standardised(actions[k]) for k in SHIFTS]
    design = np.concatenate([base, *blocks], axis=1)
    widths = np.cumsum([base.shape[1], *(block.shape[1] for block in blocks)])
    without = np.arange(widths[0])
    unexplained = _residual(design[:, without], changes)
    shares = {}
    for i, k in enumerate(SHIFTS):
        columns = np.concatenate([without, np.arange(widths[i], widths[i + 1])])
        left = _residual(design[:, columns], changes)
        shares[k] = float(np.clip(1 - left / unexplained, 0, 1).mean())
    return shares


def _windows(runs: Sequence[Demonstrations]) -> tuple[Array, Array, dict[int, Array]]:
    """States, their standardised changes, and the action at each shift, for the same rows."""
    reach = max(SHIFTS)
    budget = MOST_ROWS
    states, following = [], []
    actions: dict[int, list[Array]] = {k: [] for k in SHIFTS}
    for run in runs:
        rows = np.arange(reach, len(run) - 1 - reach)[:budget]
        if len(rows) == 0:
            continue
        budget -= len(rows)
        states.append(run.observations[rows])
        following.append(run.observations[rows + 1])
        for k in SHIFTS:
            actions[k].append(run.actions[rows + k])
    if not states:
        return np.empty((0, 0)), np.empty((0, 0)), {}
    here = np.concatenate(states).astype(np.float64)
    there = np.concatenate(following).astype(np.float64)
    at = {k: np.concatenate(parts).astype(np.float64) for k, parts in actions.items()}
    whole = np.concatenate([here, there, *at.values()], axis=1)
    finite = np.isfinite(whole).all(axis=1)
    changes = _standardised(there[finite] - here[finite])
    return _standardised(here[finite]), changes, {k: part[finite] for k, part in at.items()}


def _standardised(columns: Array) -> Array:
    """Zero mean, unit variance; columns that do not vary are left out."""
    scale = spread(columns)
    varies = scale > 0
    if not varies.any():
        return columns[:, varies]
    kept: Array = (columns[:, varies] - columns[:, varies].mean(axis=0)) / scale[varies]
    return kept


def _features(states: Array) -> Array:
    """1, s, and random tanh features of s: enough to bend with smooth dynamics."""
    rng = np.random.default_rng(0)
    n = min(FEATURES, len(states) // 2)
    weights = rng.normal(size=(states.shape[1], n)) * 2.0 / np.sqrt(states.shape[1])
    bent = np.tanh(states @ weights + rng.uniform(-1, 1, n))
    return np.concatenate([np.ones((len(states), 1)), states, bent], axis=1)


def _residual(design: Array, targets: Array) -> Array:
    """Mean squared error per column of a ridge regression, over contiguous held-out folds."""
    n = len(design)
    fold = np.arange(n) * FOLDS // n
    parts = [(design[fold == f], targets[fold == f]) for f in range(FOLDS)]
    grams = [x.T @ x for x, _ in parts]
    moments = [x.T @ y for x, y in parts]
    ridge = RIDGE * n * np.eye(design.shape[1])
    total = np.zeros(targets.shape[1])
    for f, (x, y) in enumerate(parts):
        gram = sum(grams) - grams[f] + ridge
        weights = np.linalg.solve(gram, sum(moments) - moments[f])
        total += ((y - x @ weights) ** 2).sum(axis=0)
    mean: Array = np.maximum(total / n, 1e-12)
    return mean


def alignment_findings(sample: Sample, replay: Replay | None) -> list[Finding]:
    """What the alignment of a file says to its user."""
    found = measure_alignment(sample.runs, replay)
    numbers = {
        "explained": {f"{k:+d}": round(share, 3) for k, share in found.explained.items()},
        "replay_error": {f"{k:+d}": float(f"{e:.4g}") for k, e in found.replayed.items()},
    }
    numbers = {name: value for name, value in numbers.items() if value}
    findings = []
    if found.replayed and not found.decided_by_replay:
        least = min(found.replayed.values())
        findings.append(
            Finding(
                "replay-inconclusive",
                "warning",
                f"one simulated step errs by {least:.3g} or more, whichever action is applied",
                "is it data of this task, and of this version of the simulator?",
                numbers=numbers,
            )
        )
    if found.verdict == "misaligned":
        findings.append(_misaligned(found, numbers))
    if found.verdict == "unclear":
        findings.append(
            Finding(
                "alignment-unclear",
                "warning",
                f"the action {found.shift:+d} rows away explains the next state better than the "
                "action in the same row, but not clearly better than other shifts",
                "give --task if the task has a simulator: one replayed step decides",
                numbers=numbers,
            )
        )
    return findings


def _misaligned(found: Alignment, numbers: dict[str, dict[str, float]]) -> Finding:
    k = found.shift
    if found.decided_by_replay:
        how = (f"one simulated step errs by {found.replayed[k]:.3g} with the action of row "
               f"t{k:+d}, by {found.replayed[0]:.3g} with that of row t")  # fmt: skip
    else:
        how = (f"the action of row t{k:+d} explains {found.explained[k]:.0%} of what the state "
               f"leaves open about the next state, the action of row t "
               f"{found.explained[0]:.0%}")  # fmt: skip
    return Finding(
        "misaligned",
        "error",
        f"states and actions are misaligned by {abs(k)} row{'s' if abs(k) > 1 else ''}: {how}",
        "realign with --fix OUT, which pairs each state with the action that moved it (unless the "
        "robot really answers that much later)",
        repair="realign",
        shift=k,
        numbers=numbers,
    )
