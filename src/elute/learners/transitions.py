"""Steps (s, a, s') and first states s0, for learners that follow the flow of states.

    s' = what the file says came next, or else the following row of the same episode
    s0 = the first row of each episode

Without recorded next observations the last row of an episode has no s' and is left out; so is one
whose next observation is only a copy of its own. A cut episode ends as truncated, so the end of a
slice is never taken for the end of the task, and a slice that begins in the middle of an episode
counts as an episode that begins there: its first row is one of the s0.

Purified states are no transitions: each was moved by itself, and none of them follows from the one
before. Demonstrations whose provenance says that states were purified are refused.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from elute.episodes import Array
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSet, check_finite


@dataclass(frozen=True, eq=False)
class Transitions:
    """Steps with what came after them."""

    rows: NDArray[np.int64]
    """Of the demonstrations they were taken from."""
    observations: Array
    actions: Array
    next_observations: Array
    terminal: NDArray[np.bool_]
    """The task itself ended with this step."""
    initial: Array
    """First observations of episodes."""

    @classmethod
    def of(cls, demos: DemoSet) -> Self:
        """Those of D_o, then those of D_s; `rows` are of `demos.all`.

        Raises:
            EluteError: a set has none, or its states were purified.
        """
        one, other = cls.within(demos.optimal), cls.within(demos.supplementary)
        joined = {
            name: np.concatenate([getattr(one, name), getattr(other, name)])
            for name in ("observations", "actions", "next_observations", "terminal", "initial")
        }
        return cls(rows=np.concatenate([one.rows, len(demos.optimal) + other.rows]), **joined)

    @classmethod
    def within(cls, demos: Demonstrations) -> Self:
        """Those of one set.

        Raises:
            EluteError: it has none, or its states were purified.
        """
        source = demos.provenance.source or "demonstrations"
        check_finite(demos)
        if states_purified(demos.provenance.steps):
            raise EluteError(
                f"{source}: its states were purified, so they no longer follow from each other; "
                "this method learns from recorded transitions",
                hint="purify with --target action or inpaint, which keep the states",
            )
        rows = _followed(demos)
        if not len(rows):
            raise EluteError(
                f"{source}: no transitions: every episode has one row, and no next observations "
                "were recorded; this method learns from a state and the one after it",
                hint="give whole episodes, or a method that learns from pairs: bc, dwbc, isw-bc",
            )
        following = demos.next_observations
        after = demos.observations[rows + 1] if following is None else following[rows]
        if not np.isfinite(after).all():
            raise EluteError(
                f"{source}: next observations are not finite",
                hint="elute demos audit FILE --fix OUT drops such rows",
            )
        ends = np.zeros(len(demos), dtype=bool)
        ends[demos.episodes.stops[demos.episodes.terminated] - 1] = True
        return cls(
            rows=rows,
            observations=demos.observations[rows],
            actions=demos.actions[rows],
            next_observations=after,
            terminal=ends[rows],
            initial=demos.observations[demos.episodes.starts],
        )


def _followed(demos: Demonstrations) -> NDArray[np.int64]:
    """Rows of which the next state is known."""
    known, episodes = np.ones(len(demos), dtype=bool), demos.episodes
    lost = demos.next_observations is None
    known[episodes.stops[episodes.final_repeated | lost] - 1] = False
    return np.flatnonzero(known)


def states_purified(steps: Iterable[Mapping[str, Any]]) -> bool:
    """Whether any of these steps of a provenance, or of what was joined to it, moved states.

    A purifier notes its target, and only "joint" moves states; reverse step 0 moves nothing.
    """
    return any(
        (step.get("target") == "joint" and step.get("reverse_step") != 0)
        or states_purified(step.get("steps", ()))
        for step in steps
    )
