"""The Gaussian policy: plain numpy arrays, so that acting needs nothing but numpy.

    mu(s) = f((s - mean) / scale),   a ~ N(mu(s), exp(log_std)^2)

f has tanh or relu hidden layers and a linear end; a squashed policy bends it into the bounds by a
last tanh, any other is clipped to them. Stored as safetensors with a JSON header, whose kind tells
it from the other policy there is, `elute.diffusion.policy`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from elute.demos.output import output
from elute.diffusion.policy import DiffusionPolicy
from elute.episodes import Array
from elute.errors import EluteError
from elute.safetensors_file import metadata, read_safetensors

KIND, DIFFUSION = "elute policy", "elute diffusion policy"
VERSION = 1
UNITS = ("mean", "scale", "low", "high")
ARRAYS = {
    KIND: ("log_std", *UNITS),
    DIFFUSION: ("told", "beta", "action_mean", "action_scale", *UNITS),
}
"""Fields beside the layers that are stored as arrays, by kind."""
ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
}
Layer = tuple[Array, Array]
"""Weights, (in, out), and bias."""


@dataclass(frozen=True, eq=False)
class GaussianPolicy:
    """Mean and standard deviation of the action in a state."""

    layers: tuple[Layer, ...]
    log_std: Array
    mean: Array
    """Of observations; belongs to the policy."""
    scale: Array
    low: Array
    """Lowest action; infinite where there is no bound."""
    high: Array
    squashed: bool = False
    activation: str = "tanh"
    """Of hidden layers: tanh or relu."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Where it comes from: task, method, seed, steps, ..."""

    def __post_init__(self) -> None:
        widths = [len(self.mean), *(len(bias) for _, bias in self.layers)]
        fits = all(
            weights.shape == (before, after)
            for (weights, _), before, after in zip(
                self.layers, widths[:-1], widths[1:], strict=True
            )
        )
        per_action = (self.log_std, self.low, self.high)
        fits = fits and self.scale.shape == self.mean.shape
        fits = fits and self.activation in ACTIVATIONS
        if not fits or any(a.shape != (widths[-1],) for a in per_action):
            raise EluteError(f"layers of widths {widths} do not fit each other or their bounds")

    @property
    def n_observations(self) -> int:
        """Columns it reads."""
        return len(self.mean)

    @property
    def n_actions(self) -> int:
        """Columns it writes."""
        return len(self.log_std)

    @property
    def std(self) -> Array:
        """Standard deviation of each action."""
        deviation: Array = np.exp(self.log_std)
        return deviation

    @cached_property
    def _range(self) -> tuple[Array, Array]:
        """Middle and half-width of the bounds."""
        return (self.high + self.low) / 2, (self.high - self.low) / 2

    def act(self, observations: Array, rng: np.random.Generator | None = None) -> Array:
        """Actions, (n, A), for observations, (n, S); without a stream the mean action."""
        x = ((observations - self.mean) / self.scale).astype(np.float32)
        bend = ACTIVATIONS[self.activation]
        for weights, bias in self.layers[:-1]:
            x = bend(x @ weights + bias)
        weights, bias = self.layers[-1]
        actions = (x @ weights + bias).astype(np.float64)
        if self.squashed:
            middle, half = self._range
            actions = middle + half * np.tanh(actions)
        else:
            actions = np.minimum(np.maximum(actions, self.low), self.high)
        return actions if rng is None else actions + self.std * rng.standard_normal(actions.shape)

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
        one = np.ndim(observation) == 1
        actions = self.act(np.atleast_2d(observation), None if deterministic else rng)
        actions = np.clip(actions, self.low, self.high)
        return (actions[0] if one else actions), None


StoredPolicy = GaussianPolicy | DiffusionPolicy
"""What a file may hold."""


def save_policy(policy: StoredPolicy, path: Path) -> None:
    """Write a policy; a killed process leaves the old file or the new one.

    Raises:
        EluteError: it cannot be written.
    """
    header: dict[str, Any] = {"kind": DIFFUSION, "version": VERSION, "about": dict(policy.about)}
    if isinstance(policy, GaussianPolicy):
        header |= {"kind": KIND, "squashed": policy.squashed, "activation": policy.activation}
    arrays = {name: getattr(policy, name) for name in ARRAYS[header["kind"]]}
    for i, (weights, bias) in enumerate(policy.layers):
        arrays |= {f"layers.{i}.weights": weights, f"layers.{i}.bias": bias}
    stored = save(
        {name: np.ascontiguousarray(array) for name, array in arrays.items()},
        metadata=metadata(header),
    )
    with output(path) as temporary:
        temporary.write_bytes(stored)


def load_policy(path: Path) -> StoredPolicy:
    """Read a policy of either kind.

    Raises:
        EluteError: the file is none, of another version, or broken.
    """
    try:
        header, arrays = read_safetensors(path, "np")
    except ValueError as error:
        raise _none(path, str(error)) from error
    if header.get("kind") not in (KIND, DIFFUSION):
        raise _none(path, "its header is of something else")
    if header.get("version") != VERSION:
        raise EluteError(
            f"{path}: a policy of version {header.get('version')}; this is version {VERSION}"
        )
    try:
        return _policy(header, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, EluteError) as error:
        raise _none(path, f"header and weights do not fit: {error}") from error


def _policy(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> StoredPolicy:
    n_layers = sum(name.endswith(".weights") for name in arrays)
    if not n_layers or not all(np.isfinite(a).all() for n, a in arrays.items() if "layers" in n):
        raise ValueError("no layers, or weights that are not finite")
    layers = tuple(
        (arrays[f"layers.{i}.weights"], arrays[f"layers.{i}.bias"]) for i in range(n_layers)
    )
    others, about = {n: arrays[n] for n in ARRAYS[header["kind"]]}, dict(header["about"])
    if header["kind"] == DIFFUSION:
        return DiffusionPolicy(layers, **others, about=about)
    return GaussianPolicy(
        layers,
        **others,
        squashed=bool(header["squashed"]),
        activation=header.get("activation", "tanh"),  # the shipped experts do not say
        about=about,
    )


def _none(path: Path, reason: str) -> EluteError:
    return EluteError(f"{path}: no policy: {reason}", hint="elute writes them as .safetensors")
