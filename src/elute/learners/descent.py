"""Gradient descent that counts its updates, reports, and stops when a loss is no number.

descent = Descent(5000, {"actor": actor}, actor.policy, log)
for rows in descent.draws(stream, len(x), 256):
descent.step(optimiser, actor=loss(x[rows]))
return descent.policy()
"""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from operator import add
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from elute.errors import EluteError
from elute.learners.learner import Log, Policy, silent

EVERY = 100
"""Updates between reports, and between copies of the weights."""


class DivergenceError(EluteError):
    """A loss was not finite; `policy` is the last good one."""

    def __init__(self, message: str, policy: Policy) -> None:
        super().__init__(message, hint="a lower learning rate often helps; look at the data too")
        self.policy = policy


def updates_of(passes: float, n_rows: int, batch_size: int) -> int:
    """How many updates draw so many rows as there are in these passes."""
    return max(1, round(passes * n_rows / batch_size))


P = TypeVar("P", bound=Policy)


class Descent(Generic[P]):
    """A number of updates of some networks that together make a policy."""

    def __init__(
        self,
        updates: int,
        networks: Mapping[str, nn.Module],
        policy: Callable[[], P],
        log: Log = silent,
    ) -> None:
        self.updates, self.networks, self.policy, self.log = updates, networks, policy, log
        self.update = 0
        self.label = "" if "actor" in networks else f"{'-'.join(networks)}/"
        """Before the names of losses, where it is not the policy that learns."""
        self._keep()

    def __iter__(self) -> Iterator[int]:
        """Numbers of the updates, from 0."""
        for update in range(self.updates):
            self.update = update
            yield update
        if not all(torch.isfinite(value).all() for value in self._weights()):
            self._stop({"weights": math.nan})

    def draws(self, stream: torch.Generator, n_rows: int, size: int) -> Iterator[Tensor]:
        """Row numbers for each update, with replacement."""
        for _ in self:
            yield torch.randint(0, n_rows, (size,), generator=stream)

    def step(self, optimiser: torch.optim.Optimizer, **losses: Tensor) -> None:
        """Descend on the sum of the losses.

        Raises:
            DivergenceError: one is not finite; the networks get their last good weights back.
        """
        self.watch(**losses)
        optimiser.zero_grad(set_to_none=True)
        reduce(add, losses.values()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    def watch(self, **losses: Tensor) -> None:
        """Stop if a loss is not finite, and now and then report."""
        values = {name: loss.item() for name, loss in losses.items()}
        if not all(map(math.isfinite, values.values())):
            self._stop(values)
        if self.update % EVERY == 0 or self.update == self.updates - 1:
            self._keep()
            told = {f"{self.label}{name}": value for name, value in values.items()}
            self.log({"update": self.update, "updates": self.updates} | told)

    def _weights(self) -> Iterator[Tensor]:
        for network in self.networks.values():
            yield from network.state_dict().values()

    def _keep(self) -> None:
        self._good = {
            name: {key: value.clone() for key, value in network.state_dict().items()}
            for name, network in self.networks.items()
        }

    def _stop(self, values: Mapping[str, float]) -> None:
        for name, network in self.networks.items():
            network.load_state_dict(self._good[name])
        bad = ", ".join(f"{self.label}{name} {value}" for name, value in values.items())
        raise DivergenceError(
            f"the loss is not finite at update {self.update} of {self.updates}: {bad}",
            self.policy(),
        )
