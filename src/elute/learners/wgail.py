"""WGAIL: demonstrations count by what critic and policy think of them (Wang et al. 2021).

    log w = (l + log pi(a|s)) / (beta + 1),     w normalised to mean 1
    l = argmin  E_D[ w softplus(-l) ] + E_pi[ softplus(l) ] + gradient penalty

With D' = P(agent) the paper's w = [(1 / D' - 1) pi(a|s)]^{1 / (beta + 1)}, and 1 / D' - 1 is e^l.
beta = 1 is a square root; beta -> infinity is GAIL. Weights are renewed with every batch that
is played, from `warm_up` steps on; before, all are 1.

The density of several actions is a product, which may be tiny or huge, so everything is done with
logarithms, and only ratios of weights remain: the authors do not normalise, and the demonstrations'
term shrinks or grows with the number of actions. `effective_rows` in the curve says how many rows
are left, (sum w)^2 / sum w^2. Densities are of actions as they were executed.

The paper's code has beta = 9 and then puts a sigmoid over w, so all weights lie between .5 and 1.
The authors renew every 50 iterations of 5000 and stop after 400.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import torch
from torch import Tensor

from elute.errors import EluteError
from elute.learners.adversarial import Adversarial, Form, Look, Scene, Weigh, Weights
from elute.learners.gail import Reward, logistic


@dataclass(frozen=True, kw_only=True)
class WGAIL:
    """How to imitate by WGAIL."""

    name: ClassVar[str] = "wgail"
    beta: float = 1.0
    warm_up: int = 50_000
    """Steps in which all demonstrations count alike."""
    reward: Reward = "positive"
    loop: Adversarial = field(default_factory=Adversarial)

    def __post_init__(self) -> None:
        if not self.beta >= 0 or self.warm_up < 0:
            raise EluteError(f"beta {self.beta}, warm_up {self.warm_up}; expected 0 or more")

    @classmethod
    def paper(cls) -> Self:
        """As the paper says, with the errors of its code corrected."""
        return cls(loop=Adversarial.paper())

    @property
    def form(self) -> Form:
        """What the critic's output means."""
        return logistic(self.reward)

    def begin(self, scene: Scene) -> Weigh:
        """Even at first."""
        even = Weights.even(len(scene.inputs))

        def weigh(look: Look) -> Weights:
            if look.env_steps < self.warm_up:
                return even
            return Weights(agreed_weights(look.logits, look.log_pi, self.beta))

        return weigh


def agreed_weights(logits: Tensor, log_pi: Tensor, beta: float) -> Tensor:
    """Of each row, on average 1."""
    log_weights = (logits.double() + log_pi.double()) / (beta + 1)
    return (len(log_weights) * torch.softmax(log_weights, dim=0)).float()
