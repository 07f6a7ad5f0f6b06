"""A moving average of a policy's weights.

    avg_t = w avg_{t-1} + (1 - w) theta_t,     w = min(share, t / (t + 9))

Two policies a few updates apart act alike on the rows and may earn ten times as much as each other:
small differences grow while a robot walks. The average takes the noise of the updates out of the
weights (Block et al. 2024, "Butterfly effects of SGD noise").
"""

from copy import deepcopy

import torch

from elute.errors import EluteError
from elute.learners.actor import Actor


class Average:
    """A moving average of an actor that learns; with share 0 the actor itself."""

    def __init__(self, actor: Actor, share: float) -> None:
        self.share, self.updates = share, 0
        self.network = deepcopy(actor) if share else actor
        self.pairs = list(zip(self.network.parameters(), actor.parameters(), strict=True))

    def update(self) -> None:
        """After each update of the actor."""
        self.updates += 1
        old = min(self.share, self.updates / (self.updates + 9))  # the first weights are random
        with torch.no_grad():
            for mean, new in self.pairs if self.share else ():
                mean.lerp_(new, 1 - old)


def check_share(averaging: float) -> None:
    """Refuse what is no share.

    Raises:
        EluteError: it is not from 0 up to 1.
    """
    if not 0 <= averaging < 1:
        raise EluteError(f"averaging {averaging}; expected 0 or more, less than 1")
