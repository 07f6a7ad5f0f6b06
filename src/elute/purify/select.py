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
"""

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Self

import numpy as np

from elute.columns import still
from elute.episodes import Array, Piece
from elute.errors import EluteError
from elute.learners.bc import BC
from elute.policy import StoredPolicy
from elute.purify.diffusion import DiffusionPurifier, DiffusionTransform
from elute.purify.purifier import Progress, purifiable
from elute.rng import Seeds
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
CAREFUL_CLONE = BC(updates=800, hold_out=0.2, averaging=0.0)
"""Stops in time: one that follows the noise of its rows scatters more. The choice was measured with
last weights; another clone is another choice (`CHOICE` in experiment/cell.py)."""
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
        trained_folds(purifier, demos, seeds, candidates)
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
    rows = plain(demos.supplementary)
    check_finite(rows, "D_s")
    mean, scale = action_units(demos)
    if len(rows) < 2 * FOLDS:
        return Straying.unknown(len(scale))
    rows, optimal = (  # a network learns numbers of the size of 1
        _with_actions(part, (part.actions - mean) / scale) for part in (rows, demos.optimal)
    )
    whole = CAREFUL_CLONE.clone(rows, seeds("straying"))
    halves = folds(rows, BLOCKS)
    clones = [
        CAREFUL_CLONE.clone(rest, seeds("straying", fold)) for fold, (_, rest) in enumerate(halves)
    ]
    scatter = np.mean(
        [action_error(clone, held) for clone, (held, _) in zip(clones, halves, strict=True)],
        axis=0,
    )
    one, other = (clone.act(rows.observations) for clone in clones)
    variance = ((one - other) ** 2).mean(axis=0) / 2  # of either; of the whole one, half of that
    return Straying(
        noise=scatter * scale**2,
        habit=action_error(whole, optimal) * scale**2,
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


def action_error(policy: StoredPolicy, rows: Demonstrations) -> Array:
    """Mean squared, per column."""
    error: Array = ((policy.act(rows.observations) - rows.actions) ** 2).mean(axis=0)
    return error


def trained_folds(
    purifier: DiffusionPurifier, demos: DemoSet, seeds: Seeds, candidates: Sequence[int]
) -> Iterator[tuple[Demonstrations, DiffusionTransform, Demonstrations]]:
    """For each fold: its rows, a purifier trained on the rest, and D_s."""
    _check_optimal(demos)
    supplementary = plain(at_most(demos.supplementary, MOST_ROWS, seeds))
    for fold, (held, rest) in enumerate(folds(plain(demos.optimal))):
        highest = replace(purifier, reverse_step=max(*CANDIDATES, *candidates))
        # fold f of seed s begins as seed s + 1 + f does; another stream would be another choice
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


def plain(demos: Demonstrations) -> Demonstrations:
    """Only what a policy learns from, so that any two sets can be joined."""
    return replace(demos, rewards=None, next_observations=None, extras={}, origin=None)


def folds(
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
