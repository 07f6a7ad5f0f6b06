"""Networks that predict the noise in a diffused pair: eps_phi(x, i).

- `StepDenoiser`, the default: hidden layers with LayerNorm, each told the step by a sinusoidal
  embedding. Its output for a row does not depend on the other rows.
- `PaperDenoiser`: five linear layers of 1024, BatchNorm after each hidden one, dropout 0.2, ReLU.
  How the step enters is not printed; here its embedding is added after the first layer.
- `ReferenceDenoiser`: the released code. It is not told the step, and one BatchNorm serves all
  four hidden layers.
"""

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

Architecture = Literal["step", "paper", "reference"]
EMBEDDING = 64


def embed_step(step: Tensor, size: int = EMBEDDING) -> Tensor:
    """Sines and cosines of the step at geometrically spaced frequencies, (n, size)."""
    half = size // 2
    frequencies = torch.exp(-math.log(10_000.0) * torch.arange(half) / half)
    angles = step.to(torch.float32)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class StepDenoiser(nn.Module):
    """Linear, LayerNorm, SiLU; the embedded step shifts every hidden layer."""

    def __init__(self, size: int, width: int = 256, depth: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Linear(size if i == 0 else width, width) for i in range(depth)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.step = nn.Sequential(nn.Linear(EMBEDDING, EMBEDDING), nn.SiLU())
        self.shifts = nn.Linear(EMBEDDING, depth * width)
        self.out = nn.Linear(width, size)

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        """Predicted noise; a step of shape (1,) stands for all rows."""
        for layer, norm, shift in zip(self.layers, self.norms, self._shifts(step), strict=True):
            x = nn.functional.silu(norm(layer(x)) + shift)
        noise: Tensor = self.out(x)
        return noise

    def _shifts(self, step: Tensor) -> tuple[Tensor, ...]:
        shifts: Tensor = self.shifts(self.step(embed_step(step)))
        return shifts.chunk(len(self.layers), dim=1)

    def at(self, step: int) -> Callable[[Tensor], Tensor]:
        """The same for one step: its shifts are computed once and join the biases of the norms."""
        weights = self.get_parameter
        layers = [
            (
                weights(f"layers.{i}.weight").T,
                weights(f"layers.{i}.bias"),
                weights(f"norms.{i}.weight"),
                weights(f"norms.{i}.bias") + shift[0],
            )
            for i, shift in enumerate(self._shifts(torch.tensor([step])))
        ]

        def denoise(x: Tensor) -> Tensor:
            for weight, bias, scale, shift in layers:
                x = x @ weight
                x += bias  # in place: half of what a linear layer spends on it
                x = nn.functional.layer_norm(x, scale.shape, scale, shift)
                x = nn.functional.silu(x, inplace=True)
            noise: Tensor = self.out(x)
            return noise

        return denoise


class PaperDenoiser(nn.Module):
    """As the paper describes it, with the step."""

    def __init__(self, size: int, width: int = 1024, dropout: float = 0.2) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(size if i == 0 else width, width) for i in range(4))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(4))
        self.step = nn.Linear(EMBEDDING, width)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(width, size)

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        """Predicted noise."""
        told = self.step(embed_step(step))
        for i, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            hidden = layer(x) + told if i == 0 else layer(x)
            x = self.dropout(nn.functional.relu(norm(hidden)))
        noise: Tensor = self.out(x)
        return noise


class ReferenceDenoiser(nn.Module):
    """As released: blind to the step, one BatchNorm for all layers."""

    def __init__(self, size: int, width: int = 1024, dropout: float = 0.2) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(size if i == 0 else width, width) for i in range(4))
        self.norm = nn.BatchNorm1d(width)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(width, size)

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        """Predicted noise, whatever the step."""
        del step
        for layer in self.layers:
            x = self.dropout(nn.functional.relu(self.norm(layer(x))))
        noise: Tensor = self.out(x)
        return noise


DENOISERS: dict[Architecture, type[nn.Module]] = {
    "step": StepDenoiser,
    "paper": PaperDenoiser,
    "reference": ReferenceDenoiser,
}


def make_denoiser(architecture: Architecture, size: int) -> nn.Module:
    """A fresh network for pairs of this size."""
    return DENOISERS[architecture](size)


def at_step(network: nn.Module, step: int) -> Callable[[Tensor], Tensor]:
    """The network for rows that are all at one step."""
    if isinstance(network, StepDenoiser):
        return network.at(step)
    steps = torch.tensor([step])
    return lambda x: network(x, steps)
