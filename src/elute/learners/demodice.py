"""DemoDICE (Kim et al. 2022): stay with the expert's states and actions, and within the data.

    min_pi  KL(rho_pi || rho_E) + alpha KL(rho_pi || rho_U)

    r  = log rho_E / rho_U          from a discriminator of pairs, D_o against D_u (ratio.py)
    A  = r + g nu(s') - nu(s)
    nu = argmin  (1 - g) E[nu(s0)] + (1 + alpha) log E_U exp(A / (1 + alpha))
    w  = exp((A - max A) / (1 + alpha)), of mean 1
    pi = argmax  E_U[ w log pi(a|s) ]

D_u is D_o and D_s; all come as transitions (transitions.py), and a row without a next state weighs
nothing. As in the paper, nothing is done about ends: rows carry nu(s') whether the task ended there
or not, else a constant in nu would matter.

`paper()` has the networks, rates, penalties and guarded ratio of the released code. Deviations:

- No network depends on a later one, so the ratio, nu and the policy are learnt one after the other,
  not by turns; the weights that are given out are those the policy was learnt with.
- nu sees all rows at once while they fit (dice.py), and its slope is penalised at the rows' states,
  not also between those of D_o and D_u.
- Rows are drawn by weight (weighted.py); the policy's deviation does not depend on the state, and
  its mean is not squashed; last layers have a bias; no absorbing coordinate.
- All inputs are in units of D_u, actions too.
- Default: the ratio may be flat, and is bounded by what can be true and not by a guard (ratio.py);
  the actor is BC's and averaged like it, with a rate and a number of updates of its own; the slope
  of nu costs far more (`Values`), so that weights are close to those of ISW-BC.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from elute.episodes import Array
from elute.learners.actor import Actor, Design
from elute.learners.average import check_share
from elute.learners.descent import Descent
from elute.learners.dice import Values, on_rows, tempered
from elute.learners.learner import Log, silent
from elute.learners.ratio import Ratio
from elute.learners.transitions import Transitions
from elute.learners.weighted import Loss, clone_weighted
from elute.policy import GaussianPolicy
from elute.types import DemoSet


def value_loss(initial: Tensor, advantages: Tensor, *, alpha: float, discount: float) -> Tensor:
    """What nu descends on."""
    heat = 1 + alpha
    log_mean = torch.logsumexp(advantages / heat, dim=0) - math.log(len(advantages))
    return (1 - discount) * initial.mean() + heat * log_mean


@dataclass(frozen=True, kw_only=True)
class DemoDICE:
    """How to weigh by what the expert would visit, and clone."""

    transitions: ClassVar[bool] = True

    alpha: float = 0.0
    """How much to stay near all of the data."""
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
        """As released: two million updates of each network."""
        return cls(
            updates=2_000_000,
            batch_size=512,
            learning_rate=3e-4,
            loss="nll",
            ratio=Ratio(
                hidden=(256, 256),
                activation="relu",
                penalty=0.1,
                allowed=(1.0, 1.0),
                guard=1e-3,
                batch_size=512,
                learning_rate=3e-4,
            ),
            values=Values(
                hidden=(256, 256),
                activation="relu",
                penalty=1e-4,
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
            DivergenceError: a loss is not finite.
        """
        steps, everything = Transitions.of(demos), demos.all
        actor, discount = Actor(self.actor, everything, rng), self.values.discount

        def descend(networks: Mapping[str, nn.Module]) -> Descent[GaussianPolicy]:
            return Descent(self.updates, networks, lambda: actor.policy(method="demodice"), log)

        log_ratio = self.ratio.learn(demos.optimal.pairs, everything.pairs, rng, descend)
        advantages = self.values.learn(
            steps,
            log_ratio[steps.rows],
            np.full(len(steps.rows), discount),
            partial(value_loss, alpha=self.alpha, discount=discount),
            rng,
            descend,
        )
        weights = tempered(advantages, 1 + self.alpha)
        weights = on_rows(weights, steps, len(everything))
        policy = clone_weighted(
            self, actor, everything, weights, descend({"actor": actor}), rng, method="demodice"
        )
        return policy, weights
