"""What a learner is: frozen settings that turn demonstrations into a policy.

    policy = BC().fit(DemoSet(optimal=good, supplementary=noisy), Seeds(0)("bc"))

Some learners weigh rows on the way, and can say how: their `weigh` returns the policy and one
weight for each row of D_o followed by D_s. Methods that play the task while they learn are of
another kind: `adversarial.py`.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

import numpy as np

from elute.episodes import Array
from elute.policy import StoredPolicy as Policy
from elute.types import DemoSet

__all__ = ["Learner", "Log", "Policy", "Weighing", "needs_transitions", "silent"]
Log = Callable[[Mapping[str, float]], None]
"""Given `update`, `updates` and losses by name, every so often."""


def silent(row: Mapping[str, float]) -> None:
    """Log nothing."""


class Learner(Protocol):
    """Frozen settings with a `fit`; the same stream gives the same policy."""

    def fit(self, demos: DemoSet, rng: np.random.Generator, log: Log = silent) -> Policy:
        """A policy.

        Raises:
            EluteError: the method cannot use these demonstrations.
            DivergenceError: a loss is not finite; it carries the last good policy.
        """


def needs_transitions(learner: object) -> bool:
    """Whether it must know which state followed: then states cannot be purified."""
    return bool(getattr(learner, "transitions", False))


@runtime_checkable
class Weighing(Learner, Protocol):
    """A learner that weighs rows."""

    def weigh(
        self, demos: DemoSet, rng: np.random.Generator, log: Log = silent
    ) -> tuple[Policy, Array]:
        """The policy of `fit`, and a weight for each row of `demos.all`."""
