"""A policy that draws its action by diffusion: plain numpy arrays, so that acting needs no torch.

    x_N = 0, or with a stream ~ N(0, I)
    for i = N .. 1:
        v   = v_phi(x_i, (s - mean) / scale, i)
        eps = sqrt(1 - alpha_bar_i) x_i + sqrt(alpha_bar_i) v
        x_{i-1} = one step down by eps, as `elute.diffusion.schedule` has it
    a = action_mean + action_scale x_0, clipped to the bounds

The network predicts the velocity v = sqrt(alpha_bar_i) eps - sqrt(1 - alpha_bar_i) x (Salimans and
Ho 2022): where x_i is almost pure noise, the noise is known and an error in it would be divided by
sqrt(alpha_bar_i), while v is the action.

With a stream the steps are ancestral. Without one they add no noise (DDIM) and start at the centre
of the noise, so that a row's action depends on that row alone; it is the mean of a Gaussian and
the median of a single action.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from elute.diffusion.schedule import Descent, Schedule, Step
from elute.episodes import Array
from elute.errors import EluteError


class Move(NamedTuple):
    """One step down by the velocity: x <- keep * x - remove * v + add * z."""

    step: int
    keep: float
    remove: float
    add: float


@dataclass(frozen=True, eq=False)
class DiffusionPolicy:
    """Samples of the action in a state."""

    layers: tuple[tuple[Array, Array], ...]
    """Weights, (in, out), and biases of a network of actions beside observations; SiLU between."""
    told: Array
    """(N, width): what the first hidden layer is told of the steps 1..N."""
    beta: Array
    """(N + 1,): of the schedule."""
    mean: Array
    """Of observations; belongs to the policy."""
    scale: Array
    action_mean: Array
    action_scale: Array
    low: Array
    """Lowest action; infinite where there is no bound."""
    high: Array
    about: Mapping[str, Any] = field(default_factory=dict)
    """Where it comes from: task, method, seed, ..."""

    def __post_init__(self) -> None:
        n, per_action = len(self.action_mean), (self.action_scale, self.low, self.high)
        widths = [n + len(self.mean), *(len(bias) for _, bias in self.layers)]
        shapes = [weights.shape for weights, _ in self.layers]
        fits = shapes == list(pairwise(widths)) and len(shapes) > 1
        fits = fits and widths[-1] == n and self.scale.shape == self.mean.shape
        fits = fits and self.told.shape == (len(self.beta) - 1, widths[1])
        if not fits or any(a.shape != (n,) for a in per_action):
            raise EluteError(f"layers of widths {widths} do not fit each other, steps or bounds")

    @property
    def n_observations(self) -> int:
        """Columns it reads."""
        return len(self.mean)

    @property
    def n_actions(self) -> int:
        """Columns it writes."""
        return len(self.action_mean)

    @property
    def std(self) -> Array:
        """Nothing: it adds no noise to what it draws."""
        return np.zeros(self.n_actions)

    @cached_property
    def _moves(self) -> tuple[list[Move], list[Move]]:
        """Steps down that add no noise, and ancestral ones."""
        schedule = Schedule(self.beta)
        last = Step(schedule.n_steps)
        still, ancestral = schedule.strided(last, last, eta=0.0), schedule.ancestral(last)
        return [_move(d, schedule) for d in still], [_move(d, schedule) for d in ancestral]

    def act(self, observations: Array, rng: np.random.Generator | None = None) -> Array:
        """Actions, (n, A), for observations, (n, S); without a stream always the same ones."""
        units = ((observations - self.mean) / self.scale).astype(np.float32)
        weights, bias = self.layers[0]
        reads, seen = weights[: self.n_actions], units @ weights[self.n_actions :] + bias
        shape = len(units), self.n_actions
        x = np.zeros(shape, np.float32) if rng is None else _normal(rng, shape)
        for step, keep, remove, add in self._moves[rng is not None]:
            x = keep * x - remove * self._velocity(x @ reads + seen + self.told[step - 1])
            if rng is not None and add:
                x += add * _normal(rng, shape)
        actions = self.action_mean + self.action_scale * x.astype(np.float64)
        clipped: Array = np.clip(actions, self.low, self.high)
        return clipped

    def _velocity(self, hidden: Array) -> Array:
        for weights, bias in self.layers[1:]:
            hidden = _silu(hidden) @ weights + bias
        return hidden

    def predict(
        self,
        observation: Array,
        state: object = None,
        episode_start: object = None,
        deterministic: bool = False,
        *,
        rng: np.random.Generator | None = None,
    ) -> tuple[Array, None]:
        """As Stable-Baselines3 has it: one observation or a batch, clipped actions, no state."""
        del state, episode_start  # it has no memory
        if not deterministic and rng is None:
            rng = np.random.default_rng()
        actions = self.act(np.atleast_2d(observation), None if deterministic else rng)
        return (actions[0] if np.ndim(observation) == 1 else actions), None


def _move(descent: Descent, schedule: Schedule) -> Move:
    signal, noise = schedule.signal[descent.step], schedule.noise[descent.step]
    keep, remove = descent.keep - descent.remove * noise, descent.remove * signal
    return Move(descent.step, float(keep), float(remove), float(descent.add))


def _silu(x: Array) -> Array:
    """X times its logistic function, which a tanh gives without overflow."""
    silu: Array = 0.5 * x * (1.0 + np.tanh(0.5 * x))
    return silu


def _normal(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.standard_normal(shape).astype(np.float32)
