"""GAIL: act so that a critic cannot tell the policy from the demonstrator.

    l = argmin  E_D[ softplus(-l) ] + E_pi[ softplus(l) ] + gradient penalty
    pi = argmax  E_pi sum gamma^t r,     r = softplus(l) = -log(1 - D),   D = sigma(l) = P(expert)

l is `expert_logit`: high for the expert. The paper and most released codes have D' = P(agent) =
1 - D and r = -log D', which is the same number. At D = .5 the reward is log 2.

The reward is where the survival bias is:

    "positive"    softplus(l)      in (0, inf): living pays. Right where an episode ends by falling.
    "negative"    -softplus(-l)    in (-inf, 0): ending pays. Right where it ends by succeeding.
    "logit"       l                their sum: neither, but not bounded on either side.

Errors of the released code that are not repeated: a Fisher product that damps thousands of entries
of the mean network (`rl/trpo.py` has the exact one), a line search that looks neither at the KL nor
at the improvement, time limits taken for ends, evaluation in the environment that is trained in.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self

from torch.nn.functional import softplus

from elute.learners.adversarial import Adversarial, Form, Scene, Weigh, Weights, always

Reward = Literal["positive", "negative", "logit"]


def logistic(reward: Reward) -> Form:
    """The critic as a classifier."""
    rewards = {
        "positive": softplus,
        "negative": lambda logits: -softplus(-logits),
        "logit": lambda logits: logits,
    }
    return Form(lambda logits: softplus(-logits), softplus, rewards[reward])


@dataclass(frozen=True, kw_only=True)
class GAIL:
    """How to imitate by GAIL."""

    name: ClassVar[str] = "gail"
    reward: Reward = "positive"
    loop: Adversarial = field(default_factory=Adversarial)

    @classmethod
    def paper(cls) -> Self:
        """As the paper says, with the errors of its code corrected."""
        return cls(loop=Adversarial.paper())

    @property
    def form(self) -> Form:
        """What the critic's output means."""
        return logistic(self.reward)

    def begin(self, scene: Scene) -> Weigh:
        """All demonstrations count alike."""
        return always(Weights.even(len(scene.inputs)))
