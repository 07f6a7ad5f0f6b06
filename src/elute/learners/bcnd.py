"""BCND: clone again and again, each time trusting the actions that the last policy found likely.

    R = 1 on D;  D_1 .. D_K = D split at random                     D = D_o and D_s, no labels
    for round 1 .. M:
        for k in 1 .. K:  theta_k = argmax  mean over D_k of  R(s, a) log pi_k(a|s),  from scratch
        pi = (1/K) sum_k pi_k                                       the old policy of the next round
        R(s, a) = pi(a|s) on D,  divided by its mean
    act by  (1/K) sum_k mu_k(s)

Round one is plain cloning, later ones climb to the mode that most of the data agree on: with one
state and Gaussian actions of variance v, round m has variance v / m. The good must be the majority;
nothing here knows which rows are D_o.

Where we differ, and why. R is kept as a logarithm and its maximum is taken off, as densities of
many actions overflow; its mean is one, where others divide by the largest of a batch, which weighs
the same row differently in different batches. Adam does not see a constant factor, so the original
rescaling of the step by the mean of R is left out. The deviation has a floor, for it shrinks every
round until R is all on a single row; and it is learnt by few updates from 1 down, never solved for:
at its optimum, 20 to 50 of 550 rows of HalfCheetah count after five rounds, and returns fall. R may
be tempered, as errors of many actions multiply. By default a member is an average of its weights
(average.py), and so is the old policy; its deviation lags a little, which flattens R a little. The
ensemble is stored as one network; its deviation is that of the mixture, averaged over D. The
settings of `paper()` are those of a re-implementation; the DP-IL paper reports BCND with no
ensemble (`no_ensemble()`), its released code runs something else (`self_weighted.py`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import torch
from scipy.linalg import block_diag
from torch import Tensor

from elute.episodes import Array
from elute.errors import EluteError
from elute.learners.actor import Actor, Design
from elute.learners.average import Average, check_share
from elute.learners.descent import Descent, updates_of
from elute.learners.learner import Log, silent
from elute.nets import generator, tensor
from elute.policy import GaussianPolicy
from elute.types import DemoSet

PASSES = 250
"""Few: an action learnt by heart looks likely. But a thousand rows of a gait take more updates than
fifty."""


@dataclass(frozen=True, kw_only=True)
class BCND:
    """How to clone noisy demonstrations."""

    rounds: int = 5
    """M."""
    members: int = 1
    """K."""
    updates: int | None = None
    """Of each member in each round; else `PASSES` over its rows."""
    batch_size: int = 256
    """Rows each member draws, with replacement."""
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    temper: float = 1.0
    """R is the old density to this power."""
    least_std: float = 0.05
    averaging: float = 0.99
    """Share of the old in a moving average of the actor's weights; 0 to take the last ones."""
    actor: Design = field(default_factory=Design)

    def __post_init__(self) -> None:
        check_share(self.averaging)
        if self.rounds < 1 or self.members < 1:
            raise EluteError(
                f"{self.rounds} rounds of {self.members} members asked for; expected 1 or more"
            )
        if self.members > 1 and self.actor.squashed:
            raise EluteError(
                "an ensemble of squashed policies has no single network",
                hint="clip (squashed=False) or use one member",
            )

    @classmethod
    def paper(cls) -> Self:
        """Five rounds of five members, on about 550 rows: 500 passes over 110 rows each."""
        actor = Design(bounds=(-1.0, 1.0))
        return cls(
            members=5,
            updates=500,
            batch_size=128,
            learning_rate=1e-4,
            averaging=0.0,
            actor=actor,
        )

    @classmethod
    def no_ensemble(cls) -> Self:
        """As the DP-IL paper compares with it: one member, so 500 passes over all 550 rows."""
        return replace(cls.paper(), members=1, updates=2500)

    def fit(self, demos: DemoSet, rng: np.random.Generator, log: Log = silent) -> GaussianPolicy:
        """The ensemble of the last round, as one policy."""
        return self.weigh(demos, rng, log)[0]

    def weigh(
        self, demos: DemoSet, rng: np.random.Generator, log: Log = silent
    ) -> tuple[GaussianPolicy, Array]:
        """The policy, and the R of its round for each row of D: one on average."""
        rows = demos.all
        design = replace(self.actor, least_std=max(self.least_std, self.actor.least_std))
        parts = split(len(rows), self.members, rng.spawn(1)[0])
        following = np.ones(len(rows))
        for number in range(1, self.rounds + 1):
            weights = following
            members = [Actor(design, rows, rng) for _ in parts]
            x, y = members[0].inputs(rows.observations), members[0].targets(rows.actions)
            data = x, y, tensor(weights)
            learnt = self._round(members, parts, data, rng, _numbered(log, number))
            following = density_weights(self.temper * log_density(learnt, x, y))
        return ensemble(learnt, x), weights

    def _round(
        self,
        members: Sequence[Actor],
        parts: Sequence[Tensor],
        data: tuple[Tensor, Tensor, Tensor],
        rng: np.random.Generator,
        log: Log,
    ) -> list[Actor]:
        """What every member has learnt of its part by weighted likelihood."""
        x, y, weights = data
        optimiser = torch.optim.AdamW(
            [parameter for member in members for parameter in member.parameters()],
            lr=self.learning_rate,
            weight_decay=self.weight_decay,
            fused=True,
        )
        networks = {f"member {k}": member for k, member in enumerate(members)}
        updates = self.updates or updates_of(PASSES, len(parts[0]), self.batch_size)
        descent = Descent(updates, networks, lambda: ensemble(members, x), log)
        averages = [Average(member, self.averaging) for member in members]
        stream = generator(rng)
        for _ in descent:
            nll = torch.zeros(())
            for member, part in zip(members, parts, strict=True):
                drawn = part[torch.randint(0, len(part), (self.batch_size,), generator=stream)]
                log_pi = member.log_prob(x[drawn], y[drawn]).sum(dim=1)
                nll = nll - (weights[drawn] * log_pi).mean()
            descent.step(optimiser, nll=nll)
            for average in averages:
                average.update()
        return [average.network for average in averages]


def split(n_rows: int, n_parts: int, rng: np.random.Generator) -> list[Tensor]:
    """Row numbers of disjoint parts, in order, so that a single part is all rows as they are."""
    if n_rows < n_parts:
        raise EluteError(f"{n_rows} rows cannot be split among {n_parts} members")
    return [
        torch.from_numpy(np.sort(part)) for part in np.array_split(rng.permutation(n_rows), n_parts)
    ]


def density_weights(log_density: Array) -> Array:
    """Proportional to the density, one on average."""
    relative = np.exp(log_density - log_density.max())
    weights: Array = relative / relative.mean()
    return weights


def log_density(members: Sequence[Actor], x: Tensor, y: Tensor) -> Array:
    """Of each row's action under the mixture of the members."""
    with torch.no_grad():
        each = torch.stack([member.log_prob(x, y).sum(dim=1) for member in members])
    mixed: Array = (torch.logsumexp(each.double(), dim=0) - math.log(len(members))).numpy()
    return mixed


def ensemble(members: Sequence[Actor], x: Tensor) -> GaussianPolicy:
    """One policy, its mean the mean of the members' and its deviation that of their mixture."""
    policies = [member.policy(method="bcnd") for member in members]
    with torch.no_grad():
        means = torch.stack([member(x) for member in members]).numpy().astype(np.float64)
    within = np.mean([policy.std**2 for policy in policies], axis=0)
    apart = means.var(axis=0).mean(axis=0)
    return replace(merged(policies), log_std=0.5 * np.log(within + apart))


def merged(policies: Sequence[GaussianPolicy]) -> GaussianPolicy:
    """The mean of policies of one shape and units, side by side in one network.

    It is exact as long as no member is squashed; bounds clip the mean of the means.
    """
    one, n = policies[0], len(policies)
    weights = [block_diag(*same) for same in zip(*(_weights(p) for p in policies), strict=True)]
    biases = [np.concatenate(same) for same in zip(*(_biases(p) for p in policies), strict=True)]
    average = np.tile(np.eye(one.n_actions), (n, 1)) / n
    weights[0] = np.tile(np.eye(one.n_observations), n) @ weights[0]
    weights[-1], biases[-1] = weights[-1] @ average, biases[-1] @ average
    layers = zip(weights, biases, strict=True)
    return replace(
        one, layers=tuple((w.astype(np.float32), b.astype(np.float32)) for w, b in layers)
    )


def _weights(policy: GaussianPolicy) -> list[Array]:
    return [weights for weights, _ in policy.layers]


def _biases(policy: GaussianPolicy) -> list[Array]:
    return [bias for _, bias in policy.layers]


def _numbered(log: Log, number: int) -> Log:
    return lambda row: log({_in_round(name, number): value for name, value in row.items()})


def _in_round(name: str, number: int) -> str:
    return name if name in ("update", "updates") else f"round-{number}/{name}"
