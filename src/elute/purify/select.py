"""Choosing the reverse step without an environment.

**Held-out error** (`choose_reverse_step`, what "auto" does). D_o is split into folds. For each, a
denoiser is trained on the rest; for each candidate step D_s is purified, a policy is cloned from it
and the rest, and its error on the actions of the fold is measured. The step with the least error
wins; step 0, no purification, is among the candidates.

**Two samples** (`telling_apart`). The paper's criterion made operational: at which step can
diffused D_s and diffused D_o no longer be told apart? A ridge classifier on x and x^2 is
cross-validated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from elute.diffusion.schedule import Schedule
from elute.episodes import Array, Piece
from elute.errors import EluteError
from elute.learners.bc import BC
from elute.purify.diffusion import DiffusionPurifier
from elute.purify.normaliser import Normaliser
from elute.purify.purifier import Progress
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet

CANDIDATES = (0, 10, 30, 60, 100, 150, 200, 300)
MOST_ROWS = 5000
"""Of D_s that the choice looks at."""
FOLDS = 2
FEW_ROWS = 60
"""Up to here folds are interleaved: halves of one short run would not cover each other."""
CLONE = BC(updates=800)


@dataclass(frozen=True)
class Choice:
    """A reverse step and what spoke for it."""

    reverse_step: int
    errors: Mapping[int, float]
    """Held-out error of the action at each candidate."""


def choose_reverse_step(
    purifier: DiffusionPurifier,
    demos: DemoSet,
    seeds: Seeds,
    *,
    candidates: Sequence[int] = CANDIDATES,
    progress: Progress = lambda done, total: None,
) -> Choice:
    """The candidate with the least held-out error.

    Raises:
        EluteError: D_o has too few rows to hold any out.
    """
    if len(demos.optimal) < 2 * FOLDS:
        raise EluteError(
            f"{len(demos.optimal)} optimal rows are too few to choose a reverse step",
            hint="give --reverse-step N",
        )
    supplementary = at_most(demos.supplementary, MOST_ROWS, seeds)
    totals = dict.fromkeys(candidates, 0.0)
    steps_done, steps = 0, FOLDS * len(candidates)
    for fold, (held, rest) in enumerate(_folds(demos.optimal)):
        trained = replace(purifier, reverse_step=max(candidates)).fit(
            DemoSet(rest, supplementary), Seeds(seeds.root + 1 + fold)
        )
        for candidate in candidates:
            purified = trained.at(candidate)(supplementary, seed=seeds.root)
            policy = CLONE.fit(_plain(rest) + _plain(purified), seeds("select", fold, candidate))
            errors = (policy.act(held.observations) - held.actions) ** 2
            totals[candidate] += float(errors.mean()) / FOLDS
            steps_done += 1
            progress(steps_done, steps)
    return Choice(min(totals, key=lambda step: totals[step]), totals)


def _plain(demos: Demonstrations) -> Demonstrations:
    """Only what a policy learns from, so that any two sets can be joined."""
    return replace(demos, rewards=None, next_observations=None, extras={}, origin=None)


def _folds(optimal: Demonstrations) -> list[tuple[Demonstrations, Demonstrations]]:
    """(held out, the rest), twice."""
    rows = np.arange(len(optimal))
    fold = rows % FOLDS if len(rows) <= FEW_ROWS else rows * FOLDS // len(rows)
    return [
        (_take(optimal, rows[fold == f]), _take(optimal, rows[fold != f])) for f in range(FOLDS)
    ]


def _take(demos: Demonstrations, rows: Array) -> Demonstrations:
    return demos.take([Piece(int(row), 1) for row in rows])


def at_most(demos: Demonstrations, n: int, seeds: Seeds) -> Demonstrations:
    """All rows, or so many of them drawn at random."""
    return demos if len(demos) <= n else demos.sample(n, seeds("rows"))


def telling_apart(
    demos: DemoSet, seeds: Seeds, *, candidates: Sequence[int] = CANDIDATES, n_steps: int = 1000
) -> dict[int, float]:
    """Held-out accuracy of telling diffused D_s from diffused D_o at each step; 0.5 is chance."""
    schedule = Schedule.linear(n_steps)
    optimal = demos.optimal.pairs.astype(np.float64)
    others = at_most(demos.supplementary, MOST_ROWS, seeds).pairs.astype(np.float64)
    normaliser = Normaliser.fit(np.concatenate([optimal, others]))
    accuracy = {}
    for step in candidates:
        rng = seeds("telling apart", step)
        sets = [normaliser.apply(rows)[:, normaliser.varies] for rows in (optimal, others)]
        noisy = [
            schedule.signal[step] * x + schedule.noise[step] * rng.standard_normal(x.shape)
            for x in sets
        ]
        accuracy[step] = _accuracy(noisy[0], noisy[1], rng)
    return accuracy


def _accuracy(one: Array, other: Array, rng: np.random.Generator, folds: int = 5) -> float:
    """Balanced accuracy of a ridge classifier on x and x^2, on held-out rows."""
    features = np.concatenate([one, other])
    features = np.concatenate([np.ones((len(features), 1)), features, features**2], axis=1)
    label = np.concatenate([np.ones(len(one)), -np.ones(len(other))])
    weight = np.where(label > 0, 0.5 / len(one), 0.5 / len(other))
    fold = rng.permutation(len(label)) % folds
    correct = np.zeros(len(label), dtype=bool)
    ridge = 1e-2 * np.eye(features.shape[1])
    for f in range(folds):
        x, y, w = features[fold != f], label[fold != f], weight[fold != f]
        solved = np.linalg.solve((x.T * w) @ x + ridge, (x.T * w) @ y)
        correct[fold == f] = np.sign(features[fold == f] @ solved) == label[fold == f]
    return float((weight * correct).sum())
