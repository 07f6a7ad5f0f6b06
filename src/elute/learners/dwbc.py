"""DWBC: clone D_o, and those rows of D_s that a discriminator takes for optimal.

    d = sigmoid(l(s, a, log pi(a|s)))                                log pi: per action, no gradient
    l = argmin  - mean over D_o of min(l, logit .9)  +  1/eta  mean over D_s of log(1 + e^l)
    theta = argmin  mean over D_o of  w_o(d) (- log pi)  +  mean over D_s of  w_s(d) (- log pi)

    official code     w_o = alpha - 1 - eta / (d (1 - d))      w_s = d / (1 - d), 0 where d < .5
    paper, printed    w_o = alpha     - eta / (d (1 - d))      w_s = 1 / (1 - d)

D_o is the positive set, D_s the unlabeled one, eta the share of optimal rows among it; the optimum
is d = eta p_o / p_s. The weights differ in substance: the printed ones clone every row of D_s.

The loss of l is the positive-unlabeled risk, E_o[-log d + log(1 - d)] - E_s[log(1 - d)] / eta,
written in logits. The first term is -l and has no lower bound, so something must hold it. The
official code clips d to [.1, .9] before the loss; then a D_o row with d < .1 or a D_s row with
d > .9, the very rows it is wrong about, have no gradient. Here only the pull upwards ends, at .9,
and the pull downwards stays, so that the optimum is min(eta p_o / p_s, .9) from wherever it starts;
the weights clip d to [.1, .9] on both sides, as the official ones do.

Other deviations: the Gaussian's deviation does not depend on the state; its mean is clipped (in the
presets bent by a tanh), where the official code bends what was drawn. The discriminator takes the
actor's units; by default the policy is an average of the actor's weights (average.py). Settings
that could make a weight of D_o negative are refused; a negative likelihood has no optimum. The
released code of DP-IL, which swaps the two sets and never trains its discriminator, is not
repeated.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from elute.episodes import Array
from elute.errors import EluteError
from elute.learners.actor import Actor, Design
from elute.learners.average import Average, check_share
from elute.learners.descent import Descent, updates_of
from elute.learners.learner import Log, silent
from elute.nets import generator, mlp, seeded
from elute.policy import GaussianPolicy
from elute.types import DemoSet

Form = Literal["official", "printed"]
LEAST, MOST, THRESHOLD = 0.1, 0.9, 0.5
"""Bounds of d in the weights, and the d below which official weights are zero."""
PASSES = 250
"""Few: longer, both networks know the rows by heart, and no row of D_s counts. Fewer, and a gait of
a thousand rows is not learnt."""
LOG_PI = (-20.0, 10.0)
"""What the discriminator sees of a log density."""


@dataclass(frozen=True, kw_only=True)
class DWBC:
    """How to clone by a discriminator's weights."""

    updates: int | None = None
    """Else `PASSES` over all rows."""
    batch_size: int = 256
    """Rows of each set, drawn with replacement."""
    alpha: float = 7.5
    eta: float = 0.5
    """Share of optimal rows in D_s, as assumed."""
    unlabeled: bool = True
    """D_s holds optimal rows; else the discriminator tells the sets apart, by cross entropy."""
    form: Form = "official"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    """Of the actor, added to its gradient."""
    discriminator_rate: float = 1e-4
    discriminator_every: int = 1
    """Updates of the actor for one of the discriminator."""
    discriminator_width: int = 128
    averaging: float = 0.99
    """Share of the old in a moving average of the actor's weights; 0 to take the last ones."""
    actor: Design = field(default_factory=Design)

    def __post_init__(self) -> None:
        check_share(self.averaging)
        if not 0 < self.eta < 1:
            raise EluteError(f"eta {self.eta} asked for; expected a share between 0 and 1")
        lowest = float(optimal_weights(torch.tensor(LEAST), self.alpha, self.eta, self.form))
        if lowest < 0:
            raise EluteError(
                f"alpha {self.alpha} lets rows of D_o weigh {lowest:.3g}; expected no less than 0",
                hint=f"alpha {self.alpha - lowest:.3g} or more",
            )

    @classmethod
    def official(cls) -> Self:
        """As the authors' code; hours, and made for sets of many thousand rows."""
        actor = Design(
            hidden=(256, 256),
            activation="relu",
            squashed=True,
            bounds=(-1.0, 1.0),
            least_std=math.exp(-5),
        )
        return cls(
            updates=500_000,
            learning_rate=1e-4,
            weight_decay=5e-3,
            discriminator_rate=1e-4,
            discriminator_every=100,
            averaging=0.0,
            actor=actor,
        )

    @classmethod
    def paper(cls) -> Self:
        """The official settings with the weights as the paper prints them."""
        return replace(cls.official(), form="printed")

    def fit(self, demos: DemoSet, rng: np.random.Generator, log: Log = silent) -> GaussianPolicy:
        """A policy that acts like D_o and what is like it in D_s."""
        return self.weigh(demos, rng, log)[0]

    def weigh(
        self, demos: DemoSet, rng: np.random.Generator, log: Log = silent
    ) -> tuple[GaussianPolicy, Array]:
        """The policy, and weights such that the mean over all rows of w (-log pi) is its loss."""
        n_optimal, n_others, rows = len(demos.optimal), len(demos.supplementary), demos.all
        actor = Actor(self.actor, rows, rng)
        judge = Discriminator(len(actor.mean), actor.n_actions, self.discriminator_width, rng)
        x, y = actor.inputs(rows.observations), actor.targets(rows.actions)
        stream, optimiser = generator(rng), self._optimiser(actor, judge)
        networks = {"actor": actor, "discriminator": judge}
        updates = self.updates or updates_of(PASSES, len(rows), self.batch_size)
        descent = Descent(updates, networks, lambda: actor.policy(method="dwbc"), log)
        average = Average(actor, self.averaging)
        for update in descent:
            good = torch.randint(0, n_optimal, (self.batch_size,), generator=stream)
            mixed = torch.randint(0, n_others, (self.batch_size,), generator=stream) + n_optimal
            drawn = torch.cat([good, mixed])
            log_pi = actor.log_prob(x[drawn], y[drawn])
            judged = update % self.discriminator_every == 0
            with torch.set_grad_enabled(judged):
                logits = judge(x[drawn], y[drawn], log_pi.detach())
            weights = self._weights(logits.detach(), self.batch_size)
            losses = {"nll": -(weights * log_pi.sum(dim=1)).sum() / self.batch_size}
            if judged:
                losses["discriminator"] = self._judgement(logits)
            descent.step(optimiser, **losses)
            average.update()
        learnt = average.network
        with torch.no_grad():
            weights = self._weights(judge(x, y, learnt.log_prob(x, y)), n_optimal)
        share = np.repeat([n_optimal, n_others], [n_optimal, n_others]) / len(rows)
        return learnt.policy(method="dwbc"), weights.numpy().astype(np.float64) / share

    def _optimiser(self, actor: Actor, judge: nn.Module) -> torch.optim.Optimizer:
        """One for both: neither loss has a gradient in the other's weights."""
        return torch.optim.Adam(
            [
                {"params": list(actor.parameters()), "weight_decay": self.weight_decay},
                {"params": list(judge.parameters()), "lr": self.discriminator_rate},
            ],
            lr=self.learning_rate,
            fused=True,
        )

    def _judgement(self, logits: Tensor) -> Tensor:
        """The discriminator's loss on as many rows of D_o as of D_s."""
        good, mixed = logits.chunk(2)
        return pu_loss(good, mixed, self.eta) if self.unlabeled else cross_entropy(good, mixed)

    def _weights(self, logits: Tensor, n_optimal: int) -> Tensor:
        """Of rows of D_o, followed by rows of D_s."""
        d = torch.sigmoid(logits).clamp(LEAST, MOST)
        good = optimal_weights(d[:n_optimal], self.alpha, self.eta, self.form)
        return torch.cat([good, unlabeled_weights(d[n_optimal:], self.form)])


class Discriminator(nn.Module):
    """The logit of d: high for what looks optimal."""

    def __init__(
        self, n_observations: int, n_actions: int, width: int, rng: np.random.Generator
    ) -> None:
        super().__init__()
        with seeded(rng):
            self.pairs = nn.Linear(n_observations + n_actions, width)
            self.beliefs = nn.Linear(n_actions, width)
            self.body = mlp([2 * width, 2 * width, 1], nn.ReLU)

    def forward(self, inputs: Tensor, actions: Tensor, log_pi: Tensor) -> Tensor:
        """Logits, (n,), of pairs and what the policy thinks of them."""
        low, high = LOG_PI
        beliefs = (log_pi.clamp(low, high) - low) / (high - low)
        seen = [self.pairs(torch.cat([inputs, actions], dim=1)), self.beliefs(beliefs)]
        logits: Tensor = self.body(torch.relu(torch.cat(seen, dim=1)))
        return logits.squeeze(1)


def pu_loss(good: Tensor, mixed: Tensor, eta: float, most: float = MOST) -> Tensor:
    """Positive-unlabeled risk of logits of D_o and of D_s, convex and bounded below.

    D_o rows are not pulled above `most`; without it (1) the optimum is d = eta p_o / p_s exactly.
    """
    ceiling = math.log(most / (1 - most)) if most < 1 else math.inf
    return softplus(mixed).mean() / eta - good.clamp(max=ceiling).mean()


def cross_entropy(good: Tensor, mixed: Tensor) -> Tensor:
    """The risk of logits if no row of D_s is optimal."""
    return softplus(-good).mean() + softplus(mixed).mean()


def optimal_weights(d: Tensor, alpha: float, eta: float, form: Form = "official") -> Tensor:
    """Of rows of D_o."""
    weights: Tensor = alpha - (form == "official") - eta / (d * (1 - d))
    return weights


def unlabeled_weights(d: Tensor, form: Form = "official") -> Tensor:
    """Of rows of D_s."""
    if form == "printed":
        return 1 / (1 - d)
    return torch.where(d < THRESHOLD, 0.0, d / (1 - d))
