"""ISW-BC (Li et al. 2023): clone everything, each row as far as the expert would make it.

    l   the expert's logit of a pair, D_o against D_u = D_o + D_s     (ratio.py)
    w = exp(r(s, a)),   r the log-ratio;   w = 0 where w < threshold
    pi = argmax E_U[ w log pi(a|s) ]

With the true ratio E_U[w f] = E_o[f] for every f: cloning D_u with w is cloning D_o with more rows.

`paper()` has the networks, rates, penalty and guarded ratio of the released code. Deviations:

- Nothing flows back from the policy to the ratio, so the ratio is learnt first and the policy after
  it, and not both by turns; the weights that are given out are those the policy was learnt with.
- Rows are drawn by weight (weighted.py).
- The deviation of the policy does not depend on the state; the mean is not squashed but clipped.
- Default: the ratio may be flat, and is bounded by what can be true and not by a guard (ratio.py);
  the actor is BC's and averaged like it, with a rate and a number of updates of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from torch import Tensor, nn

from elute.episodes import Array
from elute.errors import EluteError
from elute.learners.actor import Actor, Design
from elute.learners.average import check_share
from elute.learners.descent import Descent
from elute.learners.learner import Log, silent
from elute.learners.ratio import Ratio
from elute.learners.weighted import Loss, clone_weighted
from elute.policy import GaussianPolicy
from elute.types import DemoSet


def importance(log_ratio: Tensor, threshold: float = 0.0) -> Array:
    """The ratio of each row; zero under the threshold.

    Raises:
        EluteError: so are all.
    """
    ratio = np.exp(log_ratio.numpy().astype(np.float64))
    weights: Array = np.where(ratio >= threshold, ratio, 0.0)
    if not weights.any():
        raise EluteError(
            f"no row has a ratio of {threshold} or more; the largest is {ratio.max():.3g}",
            hint="lower the threshold",
        )
    return weights


@dataclass(frozen=True, kw_only=True)
class ISWBC:
    """How to weigh by likelihood under the expert, and clone."""

    updates: int = 3000
    """Of each network."""
    batch_size: int = 256
    """Of the actor, as the rate and the loss."""
    learning_rate: float = 1e-3
    loss: Loss = "mse"
    threshold: float = 0.0
    """Rows that weigh less are left out."""
    ratio: Ratio = field(default_factory=Ratio)
    averaging: float = 0.99
    """Share of the old in a moving average of the actor's weights; 0 to take the last ones."""
    actor: Design = field(default_factory=Design)

    def __post_init__(self) -> None:
        check_share(self.averaging)

    @classmethod
    def paper(cls) -> Self:
        """As released: a million updates of each network."""
        return cls(
            updates=1_000_000,
            learning_rate=3e-4,
            loss="nll",
            ratio=Ratio(
                hidden=(256, 256),
                activation="relu",
                penalty=1.0,
                allowed=(1.0, 1.0),
                guard=1e-3,
                learning_rate=3e-4,
            ),
            averaging=0.0,
            actor=Design(hidden=(256, 256), activation="relu"),
        )

    def fit(self, demos: DemoSet, rng: np.random.Generator, log: Log = silent) -> GaussianPolicy:
        """A policy that acts like the demonstrator of D_o."""
        return self.weigh(demos, rng, log)[0]

    def weigh(
        self, demos: DemoSet, rng: np.random.Generator, log: Log = silent
    ) -> tuple[GaussianPolicy, Array]:
        """The policy, and the ratio of each row of D_o, then D_s; zero where under the threshold.

        Raises:
            EluteError: a set is missing, or no row weighs as much as the threshold.
            DivergenceError: a loss is not finite.
        """
        everything = demos.optimal + demos.supplementary
        actor = Actor(self.actor, everything, rng)

        def descend(networks: Mapping[str, nn.Module]) -> Descent[GaussianPolicy]:
            return Descent(self.updates, networks, lambda: actor.policy(method="isw-bc"), log)

        log_ratio = self.ratio.learn(demos.optimal.pairs, everything.pairs, rng, descend)
        weights = importance(log_ratio, self.threshold)
        policy = clone_weighted(
            self, actor, everything, weights, descend({"actor": actor}), rng, method="isw-bc"
        )
        return policy, weights
