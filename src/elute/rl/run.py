"""Learning by reinforcement as a run that can be stopped: whatever the rewards come from.

    repeat:  5000 steps with sampled actions -> rewards -> one update
    every so many steps:  mean return of the mean action; put the state down

All lanes begin new episodes when the state is put down, so that a run taken up again is, bit for
bit, the run that was never stopped.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from elute.demos.output import output
from elute.envs.rollout import Rollouts, Stretch
from elute.envs.task import Task
from elute.episodes import Array
from elute.errors import EluteError
from elute.noise import ActionNoise
from elute.policy import GaussianPolicy
from elute.rl.agent import Agent, Learning, Running
from elute.rl.trpo import Step
from elute.rng import Seeds
from elute.safetensors_file import metadata, read_safetensors
from elute.uncertainty import stderr

STATE, CURVE = "state.safetensors", "curve.json"


@dataclass(frozen=True, kw_only=True)
class Loop:
    """How long, in which portions, and how often it is judged."""

    env_steps: int = 5_000_000
    batch: int = 5000
    lanes: int = 20
    check_every: int = 100_000
    """Steps between evaluations, which are also the points where a killed run goes on."""
    check_episodes: int = 5
    learning: Learning = field(default_factory=Learning)

    def __post_init__(self) -> None:
        counts = (self.env_steps, self.check_every, self.check_episodes, self.batch, self.lanes)
        if min(counts) < 1 or self.batch % self.lanes:
            raise EluteError(
                f"{self.env_steps} steps in batches of {self.batch} over {self.lanes} lanes; "
                "expected at least one step, and batches that the lanes share evenly"
            )


class NotFiniteError(EluteError):
    """Something that learns is no number any more."""


class Rewards(Protocol):
    """Where rewards come from; it may learn, and then has a state."""

    def earned(
        self, stretches: Sequence[Stretch], agent: Agent, run: "Run"
    ) -> tuple[list[Array], Mapping[str, float]]:
        """The rewards of each stretch, and what is to be told about them."""

    def state(self) -> dict[str, Tensor]:
        """All that a run must have to go on."""

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """What `state` returned."""


class Run:
    """All that changes during training, in a folder from which it goes on."""

    def __init__(
        self,
        task: Task,
        loop: Loop,
        folder: Path,
        *,
        seed: int,
        rewards: Rewards,
        identity: Mapping[str, Any],
        about: Mapping[str, Any],
        notes: Mapping[str, float] | None = None,
    ) -> None:
        self.task, self.loop, self.folder, self.seeds = task, loop, folder, Seeds(seed)
        self.agent = Agent(task, loop.learning, self.seeds("agent"))
        self.rewards, self.about = rewards, about
        self.env_steps, self.updates, self.seconds = 0, 0, 0.0
        self.curve: list[dict[str, float]] = []
        self.notes = dict(notes or {})
        """Numbers of whoever drives the run, kept with its state."""
        self.identity = dict(identity)
        make_folder(folder)
        if (folder / STATE).exists():
            self._load(folder / STATE)

    @property
    def done(self) -> bool:
        """Whether all steps were made."""
        return self.env_steps >= self.loop.env_steps

    def block(
        self, rollouts: Rollouts, after_update: Callable[["Run"], None] = lambda run: None
    ) -> None:
        """Learn until the next evaluation.

        Raises:
            NotFiniteError: a network or a reward is no number.
        """
        began, loop = monotonic(), self.loop
        target = min(loop.env_steps, (self.env_steps // loop.check_every + 1) * loop.check_every)
        # no episode lasts less than a step, so numbers above all steps made are new
        rollouts.restart((self.env_steps // loop.lanes + 1) * loop.lanes)
        total, began_at, told = 0.0, self.env_steps, Told()
        while self.env_steps < target:
            stretches = rollouts.advance(self.agent.policy(), loop.batch // loop.lanes)
            earned, words = self.rewards.earned(stretches, self.agent, self)
            step = self.agent.update(stretches, earned, self.seeds("value", self.updates))
            self._check_finite()
            self.env_steps += sum(map(len, stretches))
            self.updates += 1
            total += sum(float(s.rewards.sum()) for s in stretches)
            told.add(words)
            after_update(self)
        self.seconds += monotonic() - began
        reward = total / (self.env_steps - began_at)
        self.row = _row(self.env_steps, reward, step, self.seconds) | told.means()

    def _check_finite(self) -> None:
        for name, network in (("policy", self.agent.network), ("value", self.agent.value)):
            if not all(torch.isfinite(p).all() for p in network.parameters()):
                raise NotFiniteError(f"the {name} network is not finite")

    def check(self, rollouts: Rollouts) -> float:
        """Evaluate: the mean return of the mean action."""
        rollouts.restart(0)
        played = rollouts.episodes(self.policy(), self.loop.check_episodes)
        scores = tuple(stretch.score for stretch in played)
        error = stderr(scores)
        spread = {} if error is None else {"stderr": error}
        self.curve.append(self.row | {"score": float(np.mean(scores))} | spread)
        return float(np.mean(scores))

    def put_down(self) -> None:
        """Write the state to go on from, and the curve for others to read."""
        self._save(self.folder / STATE)
        with output(self.folder / CURVE) as temporary:
            temporary.write_text(json.dumps(self.identity | {"curve": self.curve}, indent=1))

    def policy(self) -> GaussianPolicy:
        """As it acts now."""
        return self.agent.policy(
            task=self.task.name, seed=self.seeds.root, env_steps=self.env_steps, **self.about
        )

    def _save(self, path: Path) -> None:
        agent = self.agent
        tensors: dict[str, Tensor] = {}
        for name, module in (("network", agent.network), ("value", agent.value)):
            tensors |= {f"{name}.{key}": value for key, value in module.state_dict().items()}
        tensors |= {f"optimiser.{k}": v for k, v in optimiser_state(agent.optimiser).items()}
        for name, running in (("observed", agent.observed), ("returns", agent.returns)):
            tensors |= {
                f"{name}.mean": torch.tensor(running.mean),
                f"{name}.squares": torch.tensor(running.squares),
            }
        tensors |= {f"rewards.{key}": value for key, value in self.rewards.state().items()}
        header: dict[str, Any] = {
            "identity": self.identity,
            "env_steps": self.env_steps,
            "updates": self.updates,
            "seconds": self.seconds,
            "curve": self.curve,
            "n": [agent.observed.n, agent.returns.n],
            **self.notes,
        }
        with output(path) as temporary:
            temporary.write_bytes(save(tensors, metadata=metadata(header)))

    def _load(self, path: Path) -> None:
        try:
            header, tensors = read_safetensors(path, "pt")
        except ValueError as error:
            raise EluteError(
                f"{path}: cannot go on from here: {error}", hint="delete the folder to begin anew"
            ) from error
        if json.loads(json.dumps(self.identity)) != header.get("identity"):
            raise EluteError(
                f"{path}: holds a run of another task, seed or setting",
                hint="give another folder, or delete this one",
            )
        self._restore(header, tensors)

    def _restore(self, header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        agent = self.agent

        def part(name: str) -> dict[str, Tensor]:
            within = f"{name}."
            return {k.removeprefix(within): v for k, v in tensors.items() if k.startswith(within)}

        agent.network.load_state_dict(part("network"))
        agent.value.load_state_dict(part("value"))
        restore_optimiser(agent.optimiser, part("optimiser"))
        for name, n in zip(("observed", "returns"), header["n"], strict=True):
            stored = part(name)
            setattr(agent, name, Running(n, stored["mean"].numpy(), stored["squares"].numpy()))
        self.rewards.restore(part("rewards"))
        self.env_steps, self.updates = header["env_steps"], header["updates"]
        self.seconds, self.curve = header["seconds"], header["curve"]
        self.notes = {name: header[name] for name in self.notes}


@contextmanager
def run_rollouts(
    task: Task, loop: Loop, seed: int, workers: int
) -> Iterator[tuple[Rollouts, Rollouts]]:
    """To learn from, with sampled actions, and to judge by, with mean ones."""
    sample, seeds = ActionNoise("sample"), Seeds(seed)
    with (
        Rollouts(task, seeds, noise=sample, lanes=loop.lanes, workers=workers) as training,
        Rollouts(task, Seeds(10_000 + seed), lanes=loop.check_episodes) as checking,
    ):
        yield training, checking


def optimiser_state(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Its moments, by number of the parameter and name."""
    return {
        f"{i}.{key}": value
        for i, state in optimiser.state_dict()["state"].items()
        for key, value in state.items()
    }


def restore_optimiser(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """What `optimiser_state` returned."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        i, name = key.split(".", 1)
        state.setdefault(int(i), {})[name] = value
    optimiser.load_state_dict(optimiser.state_dict() | {"state": state})


def make_folder(folder: Path) -> None:
    """Make it, if it is not there.

    Raises:
        EluteError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EluteError(f"{folder}: cannot be made a folder: {error.strerror}") from error


class Told:
    """Means of what was told since the last evaluation."""

    def __init__(self) -> None:
        self.sums: dict[str, float] = {}
        self.n = 0

    def add(self, words: Mapping[str, float]) -> None:
        """One update's."""
        self.n += 1
        for name, value in words.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def means(self) -> dict[str, float]:
        """Of all updates."""
        return {name: value / self.n for name, value in self.sums.items()}


def _row(env_steps: int, reward: float, step: Step, seconds: float) -> dict[str, float]:
    """A line of the learning curve."""
    return {
        "env_steps": env_steps,
        "reward": reward,
        "kl": step.kl,
        "log_std": step.log_std,
        "seconds": round(seconds, 1),
    }
