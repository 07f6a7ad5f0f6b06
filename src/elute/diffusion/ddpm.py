"""Algorithm 1: train eps_phi on the optimal pairs.

    repeat:  x ~ D_o,  i ~ U{1..max_step},  eps ~ N(0, I)
             descend  || eps - eps_phi(sqrt(alpha_bar_i) x + sqrt(1 - alpha_bar_i) eps, i) ||^2

Deviations (none of them in `DiffusionPurifier.paper()`):
1. Steps above `max_step` are never used by a purification that starts there, so they are not
   trained on.
2. The weights kept are an exponential moving average.
3. Training stops when a criterion on held-out rows has stopped falling. The denoising loss is a
   poor one: on fifty rows it rises from the first hundred updates on, while purification still
   gets better. The purifier gives its own: how well it recovers actions of held-out rows.
"""

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from elute.diffusion.schedule import Schedule
from elute.errors import EluteError
from elute.nets import evaluating, generator, seeded, training
from elute.safetensors_file import metadata, read_safetensors

Progress = Callable[[int, int], None]
Criterion = Callable[[nn.Module, Tensor], float]
"""(network with averaged weights, held-out rows) -> what should fall."""


class OtherTrainingError(EluteError):
    """A checkpoint that does not belong to the training it was given to."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """How long and how fast to learn."""

    updates: int = 1000
    """At most; the paper's 10 000 epochs are as many updates, because D_o fits one batch."""
    batch_size: int = 256
    """Pairs are drawn with replacement; 0 takes all of D_o at once, as the paper does."""
    learning_rate: float = 2e-3
    average: float = 0.995
    """Decay of the moving average of the weights; 0 keeps the last weights."""
    held_out: float = 0.1
    """Share of the rows that only decide when to stop; 0 runs to the end."""
    check_every: int = 100
    patience: int = 4
    """Checks in a row without an improvement of 1 % before it stops."""


@dataclass
class Trained:
    """Weights to use, and how the loss went."""

    weights: dict[str, Tensor]
    curve: list[tuple[int, float]] = field(default_factory=list)
    """(update, training loss, smoothed over `check_every` updates)"""
    held_out: list[tuple[int, float]] = field(default_factory=list)
    updates: int = 0


@dataclass(frozen=True, eq=False)
class Lesson:
    """What is learnt: which network, from which rows, and what tells that it has learnt enough."""

    network: nn.Module
    pairs: Tensor
    """Normalised."""
    schedule: Schedule
    settings: Training
    max_step: int
    criterion: Criterion


def train(
    lesson: Lesson,
    rng: np.random.Generator,
    *,
    checkpoint: Path | None = None,
    progress: Progress = lambda done, total: None,
) -> Trained:
    """Run Algorithm 1; resumes from `checkpoint` if that file exists, and leaves it behind.

    What comes after the training may fail too, so it is for the caller to delete the checkpoint.

    Raises:
        OtherTrainingError: the checkpoint is of another training.
        EluteError: it is none, or cannot be written.
    """
    state, updates = _State(lesson, rng), lesson.settings.updates
    with seeded(rng), training(lesson.network):  # dropout draws from torch's own stream
        if checkpoint is not None and checkpoint.exists():
            state.load(checkpoint)
        while state.update < updates and not state.finished:
            state.descend()
            if state.update % lesson.settings.check_every == 0 or state.update == updates:
                state.check()
                progress(state.update, updates)
                if checkpoint is not None:
                    state.save(checkpoint)
    return state.result()


class _State:
    """Everything that changes during training, so that it can be put down and taken up."""

    def __init__(self, lesson: Lesson, rng: np.random.Generator) -> None:
        self.lesson, self.settings = lesson, lesson.settings
        self.signal = torch.tensor(lesson.schedule.signal, dtype=torch.float32)
        self.noise = torch.tensor(lesson.schedule.noise, dtype=torch.float32)
        n = len(lesson.pairs)
        n_held = int(self.settings.held_out * n) if n >= 10 else 0
        order = torch.tensor(rng.permutation(n))
        self.held, self.rows = lesson.pairs[order[:n_held]], lesson.pairs[order[n_held:]]
        self.stream = generator(rng)
        self.optimiser = torch.optim.Adam(
            lesson.network.parameters(), lr=self.settings.learning_rate, fused=True
        )
        self.last = lesson.network.state_dict()  # the weights themselves: they change with them
        self.average = _copy(self.last) if self.settings.average else self.last
        self.best = self.average
        self.trained = Trained(weights={})
        self.update, self.since_best, self.loss_sum = 0, 0, 0.0
        self.best_loss = float("inf")
        self.digest = self._digest()

    def _digest(self) -> str:
        """What tells this training from others: data, stream, schedule and the first weights."""
        digest = hashlib.sha256()
        stream = self.stream.get_state()
        for part in (self.rows, self.held, stream, self.noise, *self.average.values()):
            digest.update(f"{tuple(part.shape)}".encode())
            digest.update(part.numpy().tobytes())
        return digest.hexdigest()

    @property
    def finished(self) -> bool:
        return self.since_best >= self.settings.patience

    def descend(self) -> None:
        """One update."""
        n = len(self.rows)
        if self.settings.batch_size:
            drawn = torch.randint(0, n, (self.settings.batch_size,), generator=self.stream)
            x = self.rows[drawn]
        else:
            x = self.rows
        most = self.lesson.max_step
        step = torch.randint(1, most + 1, (len(x),), generator=self.stream)
        eps = torch.randn(x.shape, generator=self.stream)
        loss = self._loss(x, step, eps)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call] # torch's own
        self.optimiser.step()
        self.update += 1
        self.loss_sum += float(loss.detach())
        self._follow()

    def _loss(self, x: Tensor, step: Tensor, eps: Tensor) -> Tensor:
        noisy = self.signal[step, None] * x + self.noise[step, None] * eps
        loss: Tensor = ((eps - self.lesson.network(noisy, step)) ** 2).mean()
        return loss

    def _follow(self) -> None:
        if self.average is self.last:
            return
        decay = min(self.settings.average, (1 + self.update) / (10 + self.update))
        with torch.no_grad():
            for kept, value in zip(self.average.values(), self.last.values(), strict=True):
                if kept.is_floating_point():
                    kept.lerp_(value, 1 - decay)
                else:
                    kept.copy_(value)

    def check(self) -> None:
        """Note the loss; on held-out rows, see whether the averaged weights still improve."""
        checked = self.trained.curve[-1][0] if self.trained.curve else 0
        self.trained.curve.append((self.update, self.loss_sum / (self.update - checked)))
        self.loss_sum = 0.0
        if not len(self.held):
            return
        held = self._held_out()
        self.trained.held_out.append((self.update, held))
        self.since_best = 0 if held < 0.99 * self.best_loss else self.since_best + 1
        if held < self.best_loss:
            self.best_loss = held
            self.best = _copy(self.average)

    def _held_out(self) -> float:
        network, last = self.lesson.network, _copy(self.last)
        network.load_state_dict(self.average)
        with evaluating(network):
            value = self.lesson.criterion(network, self.held)
        network.load_state_dict(last)
        return value

    def result(self) -> Trained:
        """The weights to use: the best on held-out rows, or the average at the end."""
        self.trained.weights = _copy(self.best if len(self.held) else self.average)
        self.trained.updates = self.update
        return self.trained

    def save(self, path: Path) -> None:
        """Put everything down.

        Raises:
            EluteError: the disk is full, or the folder not writable.
        """
        tensors = {f"network/{k}": v for k, v in self.last.items()}
        tensors |= {f"average/{k}": v for k, v in self.average.items()}
        tensors |= {f"best/{k}": v for k, v in self.best.items()}
        tensors["stream"] = self.stream.get_state()
        tensors["dropout"] = torch.random.get_rng_state()
        for i, slots in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser/{i}/{k}": v for k, v in slots.items()}
        temporary = path.with_name(f".{path.name}.partial")
        try:
            save_file(_copy(tensors), temporary, metadata=metadata(self._header()))
            temporary.replace(path)
        except (OSError, SafetensorError) as error:
            temporary.unlink(missing_ok=True)
            raise EluteError(
                f"{path}: the checkpoint of the training cannot be written: {error}",
                hint="is the disk full, or the folder not to be written to?",
            ) from error

    def _header(self) -> dict[str, Any]:
        return {
            **self._identity(),
            "update": self.update,
            "since_best": self.since_best,
            "best_loss": self.best_loss if self.best_loss < float("inf") else None,
            "loss_sum": self.loss_sum,
            "curve": self.trained.curve,
            "held_out": self.trained.held_out,
        }

    def _identity(self) -> dict[str, Any]:
        settings = asdict(self.settings)
        return {"settings": settings, "max_step": self.lesson.max_step, "digest": self.digest}

    def load(self, path: Path) -> None:
        """Take everything up again, exactly.

        Raises:
            OtherTrainingError: the checkpoint is of another training.
            EluteError: it is none.
        """
        try:
            header, tensors = read_safetensors(path, "pt")
        except ValueError as error:
            raise EluteError(f"{path}: no checkpoint: {error}", hint="delete it") from error
        if {name: header.get(name) for name in self._identity()} != self._identity():
            raise OtherTrainingError(
                f"{path}: the checkpoint of another training", hint="delete it"
            )

        def part(prefix: str) -> dict[str, Tensor]:
            return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}

        self.lesson.network.load_state_dict(part("network/"))
        for name, value in part("average/").items():
            self.average[name].copy_(value)
        self.best = part("best/")
        self.stream.set_state(tensors["stream"])
        torch.random.set_rng_state(tensors["dropout"])
        state = self.optimiser.state_dict()
        for name, value in part("optimiser/").items():
            i, _, slot = name.partition("/")
            state["state"].setdefault(int(i), {})[slot] = value
        self.optimiser.load_state_dict(state)
        self.update, self.since_best = header["update"], header["since_best"]
        self.best_loss = header["best_loss"] if header["best_loss"] is not None else float("inf")
        self.loss_sum = header["loss_sum"]
        self.trained.curve = [(u, loss) for u, loss in header["curve"]]
        self.trained.held_out = [(u, loss) for u, loss in header["held_out"]]


def _copy(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}
