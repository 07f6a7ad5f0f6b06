"""IC-GAIL: policy and worse demonstrations together shall be like all of them (Wu et al. 2019).

    l = argmin  E_D[ softplus(-l) ] + Z E_pi[ softplus(l) ]
                + (1 - Z) / (1 - mean q)  E_c[ (1 - q) softplus(l) ] + gradient penalty
    Z = max(mean q, least)

E_c is over the rows whose confidence q is known (`confidence.py`), E_D over all rows: both are
drawn from one mixture of optimal and other demonstrations, of which a share mean q is optimal. No
classifier is needed. If every confidence is 1 there are no other ones: Z = 1, the third term is 0,
and this is GAIL.

Deviations from the released codes: Z is what the confidences say, where the paper's code always has
its least value; the gradient penalty is there (theirs slices a tuple and has none); rows with known
confidence are part of E_D, which gives it more rows of the same distribution.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from elute.episodes import Array
from elute.errors import EluteError
from elute.learners.adversarial import Adversarial, Form, Scene, Weigh, Weights, always
from elute.learners.confidence import Confidence
from elute.learners.gail import Reward, logistic
from elute.nets import tensor


@dataclass(frozen=True, kw_only=True)
class ICGAIL:
    """How to imitate by IC-GAIL."""

    name: ClassVar[str] = "ic-gail"
    least: float = 0.7
    """Smallest share of the policy, so that its rows always count."""
    confidence: Confidence = field(default_factory=Confidence)
    reward: Reward = "positive"
    loop: Adversarial = field(default_factory=Adversarial)

    def __post_init__(self) -> None:
        if not 0 < self.least <= 1:
            raise EluteError(f"least {self.least}; expected a share above 0, at most 1")

    @classmethod
    def paper(cls) -> Self:
        """As the paper says, with the errors of its code corrected."""
        return cls(loop=Adversarial.paper())

    @property
    def form(self) -> Form:
        """What the critic's output means."""
        return logistic(self.reward)

    def begin(self, scene: Scene) -> Weigh:
        """Confidences of the labelled rows; they stay."""
        known = self.confidence.known(scene.demos, scene.task, scene.rng)
        return always(mixture_weights(known, self.least))


def mixture_weights(known: Array, least: float) -> Weights:
    """Of all rows, by confidences that are NaN where they are not known.

    Raises:
        EluteError: none is known.
    """
    labelled = ~np.isnan(known)
    if not labelled.any():
        raise EluteError("no row has a confidence", hint="some must have a number from 0 to 1")
    mean = float(known[labelled].mean())
    z = max(mean, least)
    worse = np.zeros(len(known))
    if mean < 1 and z < 1:
        share = len(known) / labelled.sum()  # a mean over the labelled rows, as one over all
        worse[labelled] = share * (1 - z) / (1 - mean) * (1 - known[labelled])
    return Weights(tensor(np.ones(len(known))), tensor(worse), z)
