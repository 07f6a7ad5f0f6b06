"""Other ways to choose a reverse step without an environment, to compare `purify/select.py` with.

**Policy** (`policy_errors`). D_s is purified at each candidate, a policy is cloned from it and the
rest, and its error on the actions of the fold is measured. Slower, and flatter: cloning averages
noise by itself.

**Two samples** (`telling_apart`, `telling_purified`). The paper's criterion made operational: at
which step can diffused D_s and diffused D_o no longer be told apart, or purified D_s and held-out
rows of D_o as they are? A ridge classifier on x and x^2 is cross-validated; `first_alike` takes the
first step at which it does no better than guessing.

**Theorem** (`theorem_step`). The root of the corrected Theorem 4 (`theory/inflection.py`), with the
gradient of log rho taken from the trained denoiser at diffused rows of D_s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from elute.diffusion.schedule import Floats
from elute.episodes import Array
from elute.learners.bc import BC
from elute.purify.diffusion import DiffusionPurifier, DiffusionTransform
from elute.purify.normaliser import Normaliser
from elute.purify.select import (
    CANDIDATES,
    FOLDS,
    MOST_ROWS,
    action_error,
    at_most,
    folds,
    plain,
    trained_folds,
)
from elute.rng import Seeds
from elute.theory.bounds import noise_bound
from elute.theory.inflection import inflection
from elute.types import Demonstrations, DemoSet

FAILURE_PROB = 0.05
"""How often the bounds of the theorem may fail, and a guess may pass for telling apart."""
THEOREM_ROWS = 512
CLONE = BC(updates=800, hold_out=0.0, averaging=0.0)


def policy_errors(
    purifier: DiffusionPurifier,
    demos: DemoSet,
    seeds: Seeds,
    *,
    candidates: Sequence[int] = CANDIDATES,
) -> dict[int, float]:
    """Held-out action error of a policy cloned from purified data, at each candidate."""
    totals = dict.fromkeys(candidates, 0.0)
    for fold, (held, trained, supplementary) in enumerate(
        trained_folds(purifier, demos, seeds, candidates)
    ):
        rest = folds(plain(demos.optimal))[fold][1]
        for candidate in candidates:
            purified = trained.at(candidate)(supplementary, seed=seeds.root)
            policy = CLONE.clone(rest + purified, seeds("select", fold, candidate))
            totals[candidate] += float(action_error(policy, held).mean()) / FOLDS
    return totals


def telling_apart(
    purifier: DiffusionPurifier,
    demos: DemoSet,
    seeds: Seeds,
    *,
    candidates: Sequence[int] = CANDIDATES,
) -> dict[int, float]:
    """Held-out accuracy of telling diffused D_s from diffused D_o at each step; 0.5 is chance."""
    schedule = purifier.noise_schedule
    sets = _scaled(demos.optimal, at_most(demos.supplementary, MOST_ROWS, seeds))
    accuracy = {}
    for step in candidates:
        rng = seeds("telling apart", step)
        noisy = [
            schedule.signal[step] * x + schedule.noise[step] * rng.standard_normal(x.shape)
            for x in sets
        ]
        accuracy[step] = _accuracy(noisy[0], noisy[1], rng)
    return accuracy


def telling_purified(
    purifier: DiffusionPurifier,
    demos: DemoSet,
    seeds: Seeds,
    *,
    candidates: Sequence[int] = CANDIDATES,
) -> dict[int, float]:
    """Held-out accuracy of telling D_s, purified at each step, from rows of D_o not trained on.

    Each row is purified by one draw: the mean of several spreads less than good rows do, which
    tells it apart. Only `target="joint"` can reach chance if the states differ.
    """
    totals = dict.fromkeys(candidates, 0.0)
    single = replace(purifier, draws=1)
    for fold, (held, trained, supplementary) in enumerate(
        trained_folds(single, demos, seeds, candidates)
    ):
        for step in candidates:
            purified = trained.at(step)(supplementary, seed=seeds.root)
            rng = seeds("telling purified", fold, step)
            good, cleaned = _scaled(held, purified)
            totals[step] += _accuracy(good, cleaned, rng) / FOLDS
    return totals


def first_alike(accuracy: Mapping[int, float], demos: DemoSet) -> int | None:
    """The first step at which telling the sets apart is no better than guessing; none if it is.

    Guesses are right in half of the rows of either set, give or take what so few rows allow.
    """
    rows = len(demos.optimal), min(len(demos.supplementary), MOST_ROWS)
    spread = float(np.sqrt(sum(0.25 / n for n in rows) / 4))
    chance = NormalDist(0.5, spread).inv_cdf(1 - FAILURE_PROB)
    return next((step for step, value in accuracy.items() if value <= chance), None)


def _scaled(one: Demonstrations, other: Demonstrations) -> list[Array]:
    """Both in the units of both, without constant columns."""
    pairs = [rows.pairs.astype(np.float64) for rows in (one, other)]
    columns = (*one.observation_columns, *one.action_columns)
    normaliser = Normaliser.fit(np.concatenate(pairs), columns)
    return [normaliser.apply(rows)[:, normaliser.varies] for rows in pairs]


def _accuracy(one: Array, other: Array, rng: np.random.Generator, n_folds: int = 5) -> float:
    """Balanced accuracy of a ridge classifier on x and x^2, on held-out rows."""
    features = np.concatenate([one, other])
    features = np.concatenate([np.ones((len(features), 1)), features, features**2], axis=1)
    label = np.concatenate([np.ones(len(one)), -np.ones(len(other))])
    weight = np.where(label > 0, 0.5 / len(one), 0.5 / len(other))
    fold = rng.permutation(len(label)) % n_folds
    correct = np.zeros(len(label), dtype=bool)
    ridge = 1e-2 * np.eye(features.shape[1])
    for f in range(n_folds):
        x, y, w = features[fold != f], label[fold != f], weight[fold != f]
        solved = np.linalg.solve((x.T * w) @ x + ridge, (x.T * w) @ y)
        correct[fold == f] = np.sign(features[fold == f] @ solved) == label[fold == f]
    return float((weight * correct).sum())


def theorem_step(purifier: DiffusionPurifier, demos: DemoSet, seeds: Seeds) -> int:
    """The root of the corrected Theorem 4; N if there is none."""
    supplementary = plain(at_most(demos.supplementary, MOST_ROWS, seeds))
    every_step = replace(purifier, reverse_step=purifier.n_steps)
    trained = every_step.fit(DemoSet(plain(demos.optimal), supplementary), seeds)
    ratio = steepness(trained, at_most(supplementary, THEOREM_ROWS, seeds), seeds)
    return inflection(purifier.noise_schedule, ratio)


def steepness(trained: DiffusionTransform, rows: Demonstrations, seeds: Seeds) -> Floats:
    """C~ / C at each step.

    C~ is the least 2 ||grad log rho|| at these rows, diffused to any step up to there, but for the
    share of rows that the theorem lets fail.
    """
    n_steps = trained.purifier.n_steps
    least = np.full(n_steps + 1, np.inf)
    dimension = 0
    for step in range(1, trained.max_step + 1):
        scores = trained.scores(rows, step, seeds("theorem", step))
        dimension = scores.shape[1]
        least[step] = 2 * np.quantile(np.linalg.norm(scores, axis=1), FAILURE_PROB)
    return np.minimum.accumulate(least) / noise_bound(dimension, FAILURE_PROB)
