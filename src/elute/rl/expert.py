"""Experts: TRPO on the task's own reward, with checkpoints along the way.

    repeat:  5000 steps with sampled actions -> one update
    every 100 000 steps:  mean return of the mean action; keep the best policy; put the state down

All lanes begin new episodes when the state is put down, so that a run taken up again is, bit for
bit, the run that was never stopped.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from elute.demos.output import output
from elute.envs.rollout import Rollouts
from elute.envs.task import Task
from elute.errors import EluteError
from elute.noise import ActionNoise
from elute.policy import GaussianPolicy, StoredPolicy, load_policy, save_policy
from elute.rl.agent import Agent, Learning, Running
from elute.rl.trpo import Step
from elute.rng import Seeds
from elute.safetensors_file import metadata, read_safetensors

STATE, CURVE, BEST = "state.safetensors", "curve.json", "best.safetensors"
Log = Callable[[dict[str, float]], None]


@dataclass(frozen=True, kw_only=True)
class ExpertTraining:
    """How an expert is made; defaults are the paper's."""

    env_steps: int = 5_000_000
    batch: int = 5000
    lanes: int = 20
    check_every: int = 100_000
    """Steps between evaluations, which are also the points where a killed run goes on."""
    check_episodes: int = 5
    marks: tuple[int, ...] = (1_000_000, 1_500_000, 3_000_000)
    """Steps at which a policy is kept."""
    learning: Learning = field(default_factory=Learning)

    def __post_init__(self) -> None:
        if min(self.env_steps, self.check_every, self.batch) < 1 or self.batch % self.lanes:
            raise EluteError(
                f"{self.env_steps} steps in batches of {self.batch} over {self.lanes} lanes; "
                "expected at least one step, and batches that the lanes share evenly"
            )


def train_expert(
    task: Task,
    settings: ExpertTraining,
    folder: Path,
    *,
    seed: int = 0,
    workers: int = 1,
    log: Log = lambda row: None,
) -> StoredPolicy:
    """Train, or go on training, in a folder; the best policy by mean return of the mean action.

    Writes `1M.safetensors` and so on, `best.safetensors`, `curve.json`, and `state.safetensors` to
    go on from.

    Raises:
        EluteError: the folder holds a run of other settings, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EluteError(f"{folder}: cannot be made a folder: {error.strerror}") from error
    run = _Run(task, settings, folder, seed)
    with _rollouts(task, settings, seed, workers) as (training, checking):
        while run.env_steps < settings.env_steps:
            run.block(training)
            run.check(checking)
            log(run.curve[-1])
    run.write_curve()
    return run.best


@contextmanager
def _rollouts(
    task: Task, settings: ExpertTraining, seed: int, workers: int
) -> Iterator[tuple[Rollouts, Rollouts]]:
    sample, seeds = ActionNoise("sample"), Seeds(seed)
    with (
        Rollouts(task, seeds, noise=sample, lanes=settings.lanes, workers=workers) as training,
        Rollouts(task, Seeds(10_000 + seed), lanes=settings.check_episodes) as checking,
    ):
        yield training, checking


class _Run:
    """All that changes during training."""

    def __init__(self, task: Task, settings: ExpertTraining, folder: Path, seed: int) -> None:
        self.task, self.settings, self.folder, self.seeds = task, settings, folder, Seeds(seed)
        self.agent = Agent(task, settings.learning, self.seeds("agent"))
        self.env_steps, self.updates, self.seconds = 0, 0, 0.0
        self.curve: list[dict[str, float]] = []
        self.best: StoredPolicy = self._policy()
        self.best_score = -np.inf
        fixed = asdict(settings)
        del fixed["env_steps"]  # a run may be prolonged
        self.identity = {"task": task.name, "seed": seed, "settings": fixed}
        if (folder / STATE).exists():
            self._load(folder / STATE)

    def block(self, rollouts: Rollouts) -> None:
        """Learn until the next evaluation."""
        began, settings = monotonic(), self.settings
        target = min(
            settings.env_steps, (self.env_steps // settings.check_every + 1) * settings.check_every
        )
        # no episode lasts less than a step, so numbers above all steps made are new
        rollouts.restart((self.env_steps // settings.lanes + 1) * settings.lanes)
        earned, began_at = 0.0, self.env_steps
        while self.env_steps < target:
            stretches = rollouts.advance(self.agent.policy(), settings.batch // settings.lanes)
            step = self.agent.update(
                stretches, [s.rewards for s in stretches], self.seeds("value", self.updates)
            )
            self.env_steps += sum(map(len, stretches))
            self.updates += 1
            earned += sum(float(s.rewards.sum()) for s in stretches)
            self._keep_marks()
        self.seconds += monotonic() - began
        reward = earned / (self.env_steps - began_at)
        self.row = _row(self.env_steps, reward, step, self.seconds)

    def _keep_marks(self) -> None:
        before = self.env_steps - self.settings.batch
        for mark in self.settings.marks:
            if before < mark <= self.env_steps:
                save_policy(self._policy(), self.folder / f"{mark / 1e6:g}M.safetensors")

    def check(self, rollouts: Rollouts) -> None:
        """Evaluate, keep the best, put the state down."""
        policy = self._policy()
        rollouts.restart(0)
        played = rollouts.episodes(policy, self.settings.check_episodes)
        score = float(np.mean([stretch.score for stretch in played]))
        self.curve.append(self.row | {"score": score})
        if score > self.best_score:
            self.best, self.best_score = policy, score
            save_policy(policy, self.folder / BEST)
        self._save(self.folder / STATE)
        self.write_curve()

    def write_curve(self) -> None:
        """For others to read."""
        with output(self.folder / CURVE) as temporary:
            temporary.write_text(json.dumps(self.identity | {"curve": self.curve}, indent=1))

    def _policy(self) -> GaussianPolicy:
        return self.agent.policy(
            task=self.task.name, method="trpo", seed=self.seeds.root, env_steps=self.env_steps
        )

    def _save(self, path: Path) -> None:
        agent = self.agent
        tensors: dict[str, Tensor] = {}
        for name, module in (("network", agent.network), ("value", agent.value)):
            tensors |= {f"{name}.{key}": value for key, value in module.state_dict().items()}
        for i, state in agent.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{i}.{key}": value for key, value in state.items()}
        for name, running in (("observed", agent.observed), ("returns", agent.returns)):
            tensors |= {
                f"{name}.mean": torch.tensor(running.mean),
                f"{name}.squares": torch.tensor(running.squares),
            }
        header: dict[str, Any] = {
            "identity": self.identity,
            "env_steps": self.env_steps,
            "updates": self.updates,
            "seconds": self.seconds,
            "curve": self.curve,
            "best_score": self.best_score,
            "n": [agent.observed.n, agent.returns.n],
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
            return {k.removeprefix(f"{name}."): v for k, v in tensors.items() if k.startswith(name)}

        agent.network.load_state_dict(part("network"))
        agent.value.load_state_dict(part("value"))
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in part("optimiser").items():
            i, name = key.split(".", 1)
            state.setdefault(int(i), {})[name] = value
        agent.optimiser.load_state_dict(agent.optimiser.state_dict() | {"state": state})
        for name, n in zip(("observed", "returns"), header["n"], strict=True):
            stored = part(name)
            setattr(agent, name, Running(n, stored["mean"].numpy(), stored["squares"].numpy()))
        self.env_steps, self.updates = header["env_steps"], header["updates"]
        self.seconds, self.curve = header["seconds"], header["curve"]
        self.best_score, self.best = header["best_score"], load_policy(self.folder / BEST)


def _row(env_steps: int, reward: float, step: Step, seconds: float) -> dict[str, float]:
    """A line of the learning curve."""
    return {
        "env_steps": env_steps,
        "reward": reward,
        "kl": step.kl,
        "log_std": step.log_std,
        "seconds": round(seconds, 1),
    }
