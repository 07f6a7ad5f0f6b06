"""2IWIL: GAIL on demonstrations that count by how likely they are optimal (Wu et al. 2019).

    q = confidence of each row                                        (`confidence.py`)
    l = argmin  E_D[ q / mean q  softplus(-l) ] + E_pi[ softplus(l) ] + gradient penalty

Weights average to 1, so the terms keep their proportion; with q = 1 everywhere this is GAIL.

Deviations from the authors' code: it learns the classifier from the mean confidence times the mean
loss, which no confidence of a single row has any part in (`confidence.py`); its critic makes one
update at a rate of 1e-3 after the policy's and has no gradient penalty, where all methods here
share the loop of `adversarial.py`, as in the paper's comparison. The paper's code gives 1 to D_o
and 0 to D_s, whatever its text says about normalised rewards; here it is the text.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Self

from elute.errors import EluteError
from elute.learners.adversarial import Adversarial, Form, Scene, Weigh, Weights, always
from elute.learners.confidence import Confidence
from elute.learners.gail import Reward, logistic
from elute.nets import tensor


@dataclass(frozen=True, kw_only=True)
class TwoIWIL:
    """How to imitate by 2IWIL."""

    name: ClassVar[str] = "2iwil"
    confidence: Confidence = field(default_factory=Confidence)
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
        """Learn the confidences; they stay."""
        known = self.confidence.known(scene.demos, scene.task, scene.rng)
        q = self.confidence.learn(scene, known)
        if not q.mean() > 0:
            raise EluteError(
                "no row has any confidence", hint="some demonstrations must be worth imitating"
            )
        return always(Weights(tensor(q / q.mean())))
