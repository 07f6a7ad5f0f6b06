"""SAIL: demonstrations that the critic likes first, the others later (Wang et al., IJCAI 2021).

    R = 5 sigma(l)                                in (0, 5): the critic's output, and the reward
    l = argmin  E_pi[ R ] - E_D[ w R ] + gradient penalty on R
    K = med - ((n - n_warm) / (n_max - n_warm))^3 (med - min)          med, min of R over D
    w = 1[R >= K]   or, soft,   1 / (1 + e^{K - R}),      normalised to mean 1

n counts steps of the environment; until n_warm all weights are 1. The threshold begins at the
median, so that half of the demonstrations count, and ends at the least, where all do.

Errors of the released code that are not repeated: it divides by n_max instead of n_max - n_warm, so
that the threshold ends at .73 of the way and the worst demonstrations never come back; and its
weights have no fixed mean, so the demonstrations' term loses up to half when they are switched on.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import torch
from torch import Tensor

from elute.errors import EluteError
from elute.learners.adversarial import Adversarial, Form, Look, Scene, Weigh, Weights

HIGHEST = 5.0
"""Of the reward."""


def bounded_reward(logits: Tensor) -> Tensor:
    """R."""
    return HIGHEST * torch.sigmoid(logits)


BOUNDED = Form(
    as_expert=lambda logits: -bounded_reward(logits),
    as_agent=bounded_reward,
    reward=bounded_reward,
    smooth=bounded_reward,
)


@dataclass(frozen=True, kw_only=True)
class SAIL:
    """How to imitate by SAIL."""

    name: ClassVar[str] = "sail"
    soft: bool = True
    warm_up: float = 0.1
    """Share of the steps in which all demonstrations count alike."""
    loop: Adversarial = field(default_factory=Adversarial)

    def __post_init__(self) -> None:
        if not 0 <= self.warm_up < 1:
            raise EluteError(f"warm_up {self.warm_up}; expected a share from 0 up to 1")

    @classmethod
    def paper(cls) -> Self:
        """As the paper says, with the errors of its code corrected."""
        return cls(loop=Adversarial.paper())

    @property
    def form(self) -> Form:
        """What the critic's output means."""
        return BOUNDED

    def begin(self, scene: Scene) -> Weigh:
        """Even at first."""
        even = Weights.even(len(scene.inputs))

        def weigh(look: Look) -> Weights:
            warm = self.warm_up * look.total
            if look.env_steps < warm:
                return even
            done = (look.env_steps - warm) / (look.total - warm)
            return Weights(threshold_weights(bounded_reward(look.logits), done, soft=self.soft))

        return weigh


def threshold_weights(rewards: Tensor, done: float, *, soft: bool) -> Tensor:
    """Of each row, on average 1, when this share of the way from median to least is made."""
    middle, least = rewards.quantile(0.5), rewards.min()
    threshold = middle - done**3 * (middle - least)
    weights = torch.sigmoid(rewards - threshold) if soft else (rewards >= threshold).float()
    return weights / weights.mean()
