"""SMODICE (Ma et al. 2022): go to the expert's states, by whatever actions of the data lead there.

    min_pi  - E_pi[R(s)] + D_f(rho_pi || rho_U),   which for KL is at least KL(d_pi || d_E)

    R(s) = log d_E(s) / d_U(s)      from a discriminator of states, D_o against D_u (ratio.py)
    e    = R(s) + g (1 - end) V(s') - V(s)

    divergence "kl":     V = argmin  (1 - g) E[V(s0)] + log E_U exp(e),   w = exp(e), of mean 1
    divergence "chi2":   V = argmin  (1 - g) E[V(s0)] + E_U f(e),         w = f'(e) = max(0, 1 + e)

    pi = argmax  E_U[ w log pi(a|s) ]

with f(e) = (max(0, 1 + e)^2 - 1) / 2, which is e^2 / 2 + e wherever a row weighs something. The
expert's actions are never looked at, but by cloning its rows. D_u is D_o and D_s, as transitions
(transitions.py); a row without a next state weighs nothing.

`paper()` has the networks and rates of the released code. Deviations:

- The released discriminator trains its trunk only; here every layer learns.
- The released f goes on falling below e = -1, where weights are cut to zero: its V is of another
  problem than its weights. Weights of "kl" are given mean 1, so that they cannot overflow.
- V is learnt before the policy and not by turns; it sees all rows at once while they fit (dice.py).
- Rows are drawn by weight (weighted.py). The policy's deviation does not depend on the state, so a
  bonus for entropy could not move its mean, and there is none; the mean is not squashed;
  no absorbing coordinate.
- The ratio is bounded as for DemoDICE (ratio.py), in `paper()`, too.
- All networks take as many updates; the released discriminator takes 1000 passes.
- Default: as for DemoDICE; V costs by its slope, not by its weights' size; divergence "kl".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal, Self

import numpy as np
from torch import Tensor, nn

from elute.episodes import Array
from elute.learners import demodice
from elute.learners.actor import Actor, Design
from elute.learners.average import check_share
from elute.learners.descent import Descent
from elute.learners.dice import Values, mean_one, on_rows, tempered
from elute.learners.learner import Log, silent
from elute.learners.ratio import Ratio
from elute.learners.transitions import Transitions
from elute.learners.weighted import Loss, clone_weighted
from elute.policy import GaussianPolicy
from elute.types import DemoSet

Divergence = Literal["kl", "chi2"]


def value_loss(
    initial: Tensor, residuals: Tensor, *, divergence: Divergence, discount: float
) -> Tensor:
    """What V descends on."""
    if divergence == "kl":
        return demodice.value_loss(initial, residuals, alpha=0.0, discount=discount)
    conjugate = ((1 + residuals).relu().square() - 1) / 2
    return (1 - discount) * initial.mean() + conjugate.mean()


def density(residuals: Array, divergence: Divergence) -> Array:
    """Weights: the derivative of the loss by each residual, times the number of rows."""
    return tempered(residuals) if divergence == "kl" else np.maximum(0.0, 1.0 + residuals)


@dataclass(frozen=True, kw_only=True)
class SMODICE:
    """How to weigh by the states that the expert would visit, and clone."""

    transitions: ClassVar[bool] = True

    divergence: Divergence = "kl"
    """The released "chi2" gives most rows no weight at all when there are few."""
    updates: int = 3000
    """Of each network."""
    batch_size: int = 256
    """Of the actor, as the rate and the loss."""
    learning_rate: float = 1e-3
    loss: Loss = "mse"
    ratio: Ratio = field(default_factory=Ratio)
    values: Values = field(default_factory=Values)
    averaging: float = 0.99
    """Share of the old in a moving average of the actor's weights; 0 to take the last ones."""
    actor: Design = field(default_factory=Design)

    def __post_init__(self) -> None:
        check_share(self.averaging)

    @classmethod
    def paper(cls) -> Self:
        """As released: a million updates of V and of the policy."""
        return cls(
            divergence="chi2",
            updates=1_000_000,
            batch_size=512,
            learning_rate=3e-4,
            loss="nll",
            ratio=Ratio(hidden=(256, 256), penalty=10.0, allowed=(1.0, 1.0), batch_size=512),
            values=Values(
                hidden=(256, 256),
                activation="relu",
                penalty=0.0,
                weight_decay=1e-4,
                batch_size=512,
                learning_rate=3e-4,
            ),
            averaging=0.0,
            actor=Design(hidden=(256, 256), activation="relu"),
        )

    def fit(self, demos: DemoSet, rng: np.random.Generator, log: Log = silent) -> GaussianPolicy:
        """A policy that goes where the demonstrator of D_o goes."""
        return self.weigh(demos, rng, log)[0]

    def weigh(
        self, demos: DemoSet, rng: np.random.Generator, log: Log = silent
    ) -> tuple[GaussianPolicy, Array]:
        """The policy, and a weight for each row of D_o, then D_s.

        Raises:
            EluteError: a set is missing or has no transitions, or its states were purified.
            DivergenceError: a loss is not finite, or no row weighs anything.
        """
        steps, everything = Transitions.of(demos), demos.all
        actor, discount = Actor(self.actor, everything, rng), self.values.discount

        def descend(networks: Mapping[str, nn.Module]) -> Descent[GaussianPolicy]:
            return Descent(self.updates, networks, lambda: actor.policy(method="smodice"), log)

        log_ratio = self.ratio.learn(
            demos.optimal.observations, everything.observations, rng, descend
        )
        residuals = self.values.learn(
            steps,
            log_ratio[steps.rows],
            discount * ~steps.terminal,
            partial(value_loss, divergence=self.divergence, discount=discount),
            rng,
            descend,
        )
        weights = mean_one(density(residuals, self.divergence))
        weights = on_rows(weights, steps, len(everything))
        policy = clone_weighted(
            self, actor, everything, weights, descend({"actor": actor}), rng, method="smodice"
        )
        return policy, weights
