"""Choosing the reverse step without an environment.

**Recovery** (`choose_reverse_step`, what "auto" does). D_o is split into folds. For each, a
denoiser is trained on the rest. It guesses from the state, beginning at the usual action of D_o,
the actions of D_s and of the fold:

    gap = mean (a - a_hat(s))^2 over D_s  -  the same over the fold          per action column

has three causes, which clones of D_s tell apart (`straying`). D_s is noisy, by sigma^2: it scatters
about a clone of its other half. It has habits, by eta^2: the clone differs from D_o in the states
of D_o. And a_hat is wrong in states that D_o says nothing about, by the rest, u^2. The actions of
the fold, which are known to be good, are spoilt by noise of sigma^2 several times over and purified
at each candidate, with k the share of the way to a_hat that the step moves D_s:

    error of a policy = bias^2  +  variance / m  +  (1 - k)^2 eta^2  +  k^2 u^2

bias and variance of a recovered action are over the noise, and m is the number of rows that a clone
averages over: cloning takes out noise by itself, what it cannot take out is the rest. With m = 1 it
is the error of the purified actions. The least error wins: that of actions where clean rows are
wanted, that of a policy where one is cloned. Step 0, no purification, is among the candidates.

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

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from statistics import NormalDist
from typing import Self

import numpy as np

from elute.columns import still
from elute.diffusion.schedule import Floats
from elute.episodes import Array, Piece
from elute.errors import EluteError
from elute.learners.bc import BC
from elute.policy import StoredPolicy
from elute.purify.diffusion import DiffusionPurifier, DiffusionTransform
from elute.purify.normaliser import Normaliser
from elute.purify.purifier import Progress, purifiable
from elute.rng import Seeds
from elute.theory.bounds import noise_bound
from elute.theory.inflection import inflection
from elute.types import Demonstrations, DemoSet, DemoSource, check_finite, chunks

CANDIDATES = (0, 10, 30, 60, 100, 150, 200, 300)
MOST_ROWS = 5000
"""Of D_s that the choice looks at."""
FOLDS = 2
FEW_ROWS = 60
"""Up to here folds are interleaved: halves of one short run would not cover each other."""
MOVED_ROWS = 512
"""Of D_s that are purified to see how far a step moves them."""
SPOILT_ROWS, COPIES = 128, 16
"""So many held-out rows are spoilt at most, each so often at least: copies tell bias from noise."""
BLOCKS = 20
"""Of D_s, dealt in turn: halves of data that was sorted would not cover each other."""
FAILURE_PROB = 0.05
"""How often the bounds of the theorem may fail, and a guess may pass for telling apart."""
THEOREM_ROWS = 512
CLONE = BC(updates=800, hold_out=0.0)
CAREFUL_CLONE = replace(CLONE, hold_out=0.2)
"""Stops in time: one that follows the noise of its rows scatters more."""
TINY = 1e-12


@dataclass(frozen=True)
class Choice:
    """What speaks for each reverse step."""

    errors: Mapping[int, float]
    """Expected squared error of purified actions, in deviations of each column."""
    policy_errors: Mapping[int, float]
    """That of a policy cloned from them."""
    strays: tuple[float, ...]
    """How far D_s strays, by noise and by habit, per action column (standard deviation)."""

    @property
    def for_actions(self) -> int:
        """The step that should clean actions best."""
        return min(self.errors, key=lambda step: self.errors[step])

    @property
    def for_policy(self) -> int:
        """The step whose rows should teach a policy best."""
        return min(self.policy_errors, key=lambda step: self.policy_errors[step])


@dataclass(frozen=True, eq=False)
class Straying:
    """How D_s strays, as clones of it tell; squared, per action column."""

    noise: Array
    """At most: how it scatters about a clone of its other half."""
    habit: Array
    """At most: how far its clone is from D_o, in the states of D_o."""
    averaged: Array
    """Over how many rows a clone of all of it averages noise."""

    @classmethod
    def unknown(cls, n_actions: int) -> Self:
        """Nothing is known: whatever is odd may be noise, and nothing averages it."""
        return cls(np.full(n_actions, np.inf), np.zeros(n_actions), np.ones(n_actions))

    def split(self, gap: Array) -> tuple[Array, Array, Array]:
        """Which part of the gap is noise, which is habit, and which is our ignorance."""
        noise = np.minimum(gap, self.noise)
        habit = np.minimum(gap - noise, self.habit)
        return noise, habit, gap - noise - habit


def trained_up_to(step: int) -> int:
    """What a network shall know that is used at this step: as much as those that are compared.

    One that is trained up to a small step alone is worse there.
    """
    return max(step, *CANDIDATES) if step else 0


def choose_reverse_step(
    purifier: DiffusionPurifier,
    demos: DemoSet,
    seeds: Seeds,
    *,
    candidates: Sequence[int] = CANDIDATES,
    progress: Progress = lambda done, total: None,
) -> Choice:
    """What to expect of each candidate, from D_o and D_s alone.

    Raises:
        EluteError: D_o has too few rows to hold any out, or no action column is continuous.
    """
    free = purifiable(demos.optimal.action_columns)  # a gripper is not purified, so not judged
    if not free.any():
        raise EluteError("no action column is continuous, so there is no step to choose")
    _check_optimal(demos)
    n_rows = demos.supplementary.episodes.n_rows
    rows = at_most(demos.supplementary, MOST_ROWS, seeds)  # a large file is read once
    demos = DemoSet(demos.optimal, rows)
    strays, scale = straying(demos, seeds), action_units(demos)[1]
    averaged = strays.averaged * n_rows / len(rows)  # by a clone of all rows
    usual = demos.optimal.actions.mean(axis=0)
    of_actions, of_policies = (dict.fromkeys(candidates, 0.0) for _ in range(2))
    variance = np.zeros(len(free))
    for fold, (held, trained, supplementary) in enumerate(
        _trained(purifier, demos, seeds, candidates)
    ):
        surprising = surprise(trained, supplementary, usual)
        gap = np.maximum(surprising - surprise(trained, held, usual), 0.0) * free
        noise, habit, ignorance = strays.split(gap)
        variance += (noise + habit) / FOLDS
        known = held.pick(sample_rows(len(held), SPOILT_ROWS, seeds))
        spoilt = _spoilt(known, noise, seeds("spoil", fold))
        some = supplementary.pick(sample_rows(len(supplementary), MOVED_ROWS, seeds))
        for candidate in candidates:
            purify = trained.at(candidate)
            bias, spread = _missed(purify(spoilt, seed=seeds.root).actions, known.actions)
            moved = ((purify(some, seed=seeds.root).actions - some.actions) ** 2).mean(axis=0)
            share = np.sqrt(np.minimum(moved / np.maximum(surprising, TINY * scale**2), 1.0))
            stays = bias + (1 - share) ** 2 * habit + share**2 * ignorance
            for totals, left in ((of_actions, spread), (of_policies, spread / averaged)):
                totals[candidate] += float(((stays + left) / scale**2)[free].mean()) / FOLDS
        progress(fold + 1, FOLDS)
    return Choice(of_actions, of_policies, tuple(np.sqrt(variance).tolist()))


def straying(demos: DemoSet, seeds: Seeds) -> Straying:
    """How far D_s can stray: its scatter about its clone, and that clone's distance from D_o.

    Elsewhere than in the states of D_o, D_s is taken to have habits alike. Both parts hold the
    clone's own error, too, so they are rather too much than too little.
    """
    rows = _plain(demos.supplementary)
    check_finite(rows, "D_s")
    mean, scale = action_units(demos)
    if len(rows) < 2 * FOLDS:
        return Straying.unknown(len(scale))
    rows, optimal = (  # a network learns numbers of the size of 1
        _with_actions(part, (part.actions - mean) / scale) for part in (rows, demos.optimal)
    )
    whole = CAREFUL_CLONE.clone(rows, seeds("straying"))
    halves = _folds(rows, BLOCKS)
    clones = [
        CAREFUL_CLONE.clone(rest, seeds("straying", fold)) for fold, (_, rest) in enumerate(halves)
    ]
    scatter = np.mean(
        [_action_error(clone, held) for clone, (held, _) in zip(clones, halves, strict=True)],
        axis=0,
    )
    one, other = (clone.act(rows.observations) for clone in clones)
    variance = ((one - other) ** 2).mean(axis=0) / 2  # of either; of the whole one, half of that
    return Straying(
        noise=scatter * scale**2,
        habit=_action_error(whole, optimal) * scale**2,
        averaged=np.maximum(scatter / np.maximum(variance / 2, TINY), 1.0),
    )


def action_units(demos: DemoSet) -> tuple[Array, Array]:
    """Mean and deviation of each action column; 1 if it has none."""
    both = np.concatenate([demos.optimal.actions, demos.supplementary.actions])
    mean, deviation = both.mean(axis=0, dtype=np.float64), both.std(axis=0, dtype=np.float64)
    return mean, np.where(still(mean, deviation), 1.0, deviation)


def _spoilt(known: Demonstrations, noise: Array, rng: np.random.Generator) -> Demonstrations:
    """Copies of all rows, one after the other, with noise of this variance on their actions."""
    copies = max(COPIES, -(-SPOILT_ROWS * COPIES // len(known)))
    repeated = known.take(known.episodes.pieces(0, len(known)) * copies)
    drawn = np.sqrt(noise) * rng.standard_normal(repeated.actions.shape)
    return _with_actions(repeated, repeated.actions + drawn)


def _missed(recovered: Array, right: Array) -> tuple[Array, Array]:
    """Squared bias of recovered actions, and their variance over the noise of their copies."""
    copies = recovered.reshape(-1, *right.shape)
    variance: Array = copies.var(axis=0, ddof=1).mean(axis=0)
    missed = ((copies.mean(axis=0) - right) ** 2).mean(axis=0)
    return missed - variance / len(copies), variance  # below 0 by chance, so that means are right


def _action_error(policy: StoredPolicy, rows: Demonstrations) -> Array:
    error: Array = ((policy.act(rows.observations) - rows.actions) ** 2).mean(axis=0)
    return error


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
        _trained(purifier, demos, seeds, candidates)
    ):
        rest = _folds(_plain(demos.optimal))[fold][1]
        for candidate in candidates:
            purified = trained.at(candidate)(supplementary, seed=seeds.root)
            policy = CLONE.clone(rest + purified, seeds("select", fold, candidate))
            totals[candidate] += float(_action_error(policy, held).mean()) / FOLDS
    return totals


def _trained(
    purifier: DiffusionPurifier, demos: DemoSet, seeds: Seeds, candidates: Sequence[int]
) -> Iterator[tuple[Demonstrations, DiffusionTransform, Demonstrations]]:
    """For each fold: its rows, a purifier trained on the rest, and D_s."""
    _check_optimal(demos)
    supplementary = _plain(at_most(demos.supplementary, MOST_ROWS, seeds))
    for fold, (held, rest) in enumerate(_folds(_plain(demos.optimal))):
        highest = replace(purifier, reverse_step=max(*CANDIDATES, *candidates))
        trained = highest.fit(DemoSet(rest, supplementary), Seeds(seeds.root + 1 + fold))
        yield held, trained, supplementary


def _check_optimal(demos: DemoSet) -> None:
    if len(demos.optimal) < 2 * FOLDS:
        raise EluteError(
            f"{len(demos.optimal)} optimal rows are too few to choose a reverse step",
            hint="record more; with --reverse-step N two are enough",
        )
    check_finite(demos.optimal, "D_o")  # the fold with the bad row may come last


def surprise(trained: DiffusionTransform, rows: Demonstrations, usual: Array) -> Array:
    """Mean squared difference, per column, of the actions to what their states suggest.

    The guess begins at the usual action of D_o, of which some is left in it.
    """
    blind = replace(trained, purifier=replace(trained.purifier, target="inpaint"))
    guessed = blind(_with_actions(rows, np.broadcast_to(usual, rows.actions.shape)))
    surprise: Array = ((guessed.actions - rows.actions) ** 2).mean(axis=0)
    return surprise


def _with_actions(rows: Demonstrations, actions: Array) -> Demonstrations:
    return replace(rows, actions=actions.astype(np.float64))


def _plain(demos: Demonstrations) -> Demonstrations:
    """Only what a policy learns from, so that any two sets can be joined."""
    return replace(demos, rewards=None, next_observations=None, extras={}, origin=None)


def _folds(
    demos: Demonstrations, blocks: int = FOLDS
) -> list[tuple[Demonstrations, Demonstrations]]:
    """(held out, the rest), twice; blocks of rows are dealt in turn."""
    rows = np.arange(len(demos))
    fold = (rows if len(rows) <= FEW_ROWS else rows * blocks // len(rows)) % FOLDS
    return [(_take(demos, rows[fold == f]), _take(demos, rows[fold != f])) for f in range(FOLDS)]


def _take(demos: Demonstrations, rows: Array) -> Demonstrations:
    return demos.take([Piece(int(row), 1) for row in rows])


def sample_rows(total: int, n: int, seeds: Seeds) -> Array:
    """Numbers of all rows, or of so many drawn at random, in order."""
    return (
        np.arange(total) if total <= n else np.sort(seeds("rows").choice(total, n, replace=False))
    )


def at_most(source: DemoSource, n: int, seeds: Seeds) -> Demonstrations:
    """All rows, or so many of them drawn at random; a file is read a chunk at a time."""
    total = source.episodes.n_rows
    if total <= n:
        return source.rows(0, total)
    chosen = sample_rows(total, n, seeds)
    parts = []
    for start, rows in chunks(source):
        low, high = np.searchsorted(chosen, (start, start + len(rows)))
        if low < high:
            parts.append(rows.pick(chosen[low:high] - start))
    return replace(reduce(operator.add, parts), provenance=source.provenance)


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
        _trained(single, demos, seeds, candidates)
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


def theorem_step(purifier: DiffusionPurifier, demos: DemoSet, seeds: Seeds) -> int:
    """The root of the corrected Theorem 4; N if there is none."""
    supplementary = _plain(at_most(demos.supplementary, MOST_ROWS, seeds))
    every_step = replace(purifier, reverse_step=purifier.n_steps)
    trained = every_step.fit(DemoSet(_plain(demos.optimal), supplementary), seeds)
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
