"""Run a policy in a task: many environments in a process, processes over cores.

    with Rollouts(task, Seeds(0), workers=2) as rollouts:
        stretches = rollouts.episodes(policy, 10)

Lane j of L plays the episodes j, j + L, j + 2 L, ... Start and noise of an episode come from
streams of its own, and lanes are grouped into crews whose observations enter the policy as one
padded batch of fixed size. So nothing depends on how crews are spread over processes. A worker
holds its environments and acts by itself: only policies and finished stretches travel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from types import MappingProxyType
from typing import Any, Protocol, Self

import numpy as np

from elute.envs.make import make
from elute.envs.task import Task
from elute.envs.workers import Worker
from elute.episodes import Array
from elute.errors import EluteError
from elute.noise import ActionNoise
from elute.rng import Seeds

CREW = 5
"""Lanes that act together."""
BATCH = 8
"""Rows the policy is given, whatever the number of lanes that still play."""
LANES = 2 * CREW
FOREVER = 2**62


class Actor(Protocol):
    """What a rollout needs of a policy."""

    @property
    def std(self) -> Array:
        """Standard deviation of each action."""

    def act(self, observations: Array) -> Array:
        """The mean action."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Consecutive steps of one episode."""

    episode: int
    observations: Array
    """(n + 1, S): the last one is where it ended."""
    means: Array
    """(n, A): what the policy meant to do."""
    actions: Array
    """(n, A): with noise; the simulator was given them clipped."""
    rewards: Array
    terminated: bool
    truncated: bool
    """By the time limit; neither means that the episode goes on."""
    success: bool | None = None
    """As the environment says, where it does."""
    readings: Mapping[str, bool] = field(default_factory=dict)
    """Success in other senses, where the environment knows of any."""

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def score(self) -> float:
        """Undiscounted return."""
        return float(self.rewards.sum())


class Lane:
    """One environment and the episode that is played in it."""

    def __init__(self, task: Task, seeds: Seeds, noise: ActionNoise) -> None:
        self.task, self.seeds, self.noise = task, seeds, noise
        self.environment = make(task)
        self.observation = np.zeros(task.n_observations)
        self.drawn = np.zeros((1, task.n_actions))
        self.episode, self.t = -1, 0
        self.clear()

    def begin(self, episode: int) -> None:
        """Reset to the start of an episode."""
        self.episode, self.t = episode, 0
        start = int(self.seeds("start", episode).integers(2**31))
        shape = (self.task.horizon, self.task.n_actions)
        self.drawn = self.noise.draw(shape, self.seeds("noise", episode))
        observation, _ = self._ask("reset", lambda: self.environment.reset(seed=start))
        self._see(observation)

    def step(self, mean: Array, action: Array, executed: Array) -> Stretch | None:
        """One step; a stretch when the episode ends with it."""
        self.observations.append(self.observation)
        self.means.append(mean)
        self.actions.append(action)
        observation, reward, terminated, truncated, info = self._ask(
            "step", lambda: self.environment.step(executed)
        )
        self.t += 1
        self._see(observation)
        if not isfinite(reward):
            raise self.failed(f"the environment returned a reward of {reward}")
        self.rewards.append(reward)
        truncated = truncated or self.t >= self.task.horizon
        if terminated or truncated:
            return self.cut(terminated, truncated and not terminated, info)
        return None

    def cut(
        self,
        terminated: bool = False,
        truncated: bool = False,
        info: Mapping[str, Any] = MappingProxyType({}),
    ) -> Stretch:
        """What was recorded since the last cut."""
        success = info.get("is_success")
        stretch = Stretch(
            self.episode,
            np.array([*self.observations, self.observation]),
            np.array(self.means),
            np.array(self.actions),
            np.array(self.rewards, dtype=np.float64),
            bool(terminated),
            bool(truncated),
            None if success is None else bool(success),
            info.get("readings", {}),
        )
        if not np.isfinite(stretch.observations).all():
            raise self.failed("the environment returned values that are not finite")
        self.clear()
        return stretch

    def clear(self) -> None:
        """Forget what was recorded since the last cut."""
        self.observations: list[Array] = []
        self.means: list[Array] = []
        self.actions: list[Array] = []
        self.rewards: list[float] = []

    def _ask(self, what: str, call: Any) -> Any:  # noqa: ANN401 (what environments return)
        try:
            return call()
        except Exception as error:
            raise self.failed(f"{what} raised {type(error).__name__}: {error}") from error

    def _see(self, observation: Array) -> None:
        """Keep a copy: an environment may hand out the same array again and again."""
        self.observation = np.array(observation, dtype=np.float64)
        if self.observation.shape != (self.task.n_observations,):
            raise self.failed(f"an observation has shape {self.observation.shape}")

    def failed(self, reason: str) -> EluteError:
        """An error that says where."""
        return EluteError(f"{self.task.name}, episode {self.episode}, step {self.t}: {reason}")


class Crew:
    """Lanes whose observations are one batch for the policy."""

    def __init__(
        self, task: Task, seeds: Seeds, noise: ActionNoise, lanes: Sequence[int], stride: int
    ) -> None:
        self.task, self.noise, self.stride = task, noise, stride
        self.lanes = [Lane(task, seeds, noise) for _ in lanes]
        self.numbers = tuple(lanes)
        self.following: list[int | None] = list(lanes)
        self.inputs = np.zeros((BATCH, task.n_observations))
        self.drawn = np.zeros((len(self.lanes), task.n_actions))
        self.low, self.high = task.bounds

    def restart(self, first: int) -> None:
        """Drop what is being played; the next episodes have the numbers from `first` on."""
        for lane in self.lanes:
            lane.clear()
        self.following = [first + number for number in self.numbers]

    def advance(self, policy: Actor, steps: int, before: int) -> list[Stretch]:
        """Up to `steps` in each lane, of the episodes with numbers below `before`."""
        std, done = policy.std, []
        playing = self._playing(before)
        for _ in range(steps):
            if not playing:
                break
            means, actions, executed = self._choose(policy, std, playing)
            ended = False
            for i in playing:
                stretch = self.lanes[i].step(means[i], actions[i], executed[i])
                if stretch is not None:
                    done.append(stretch)
                    self.following[i] = stretch.episode + self.stride
                    ended = True
            if ended:
                playing = self._playing(before)
        return done + [self.lanes[i].cut() for i in playing if self.lanes[i].rewards]

    def _playing(self, before: int) -> list[int]:
        """Lanes that are in an episode; those that wait begin their next one if it is asked for."""
        for i, following in enumerate(self.following):
            if following is not None and following < before:
                self.following[i] = None
                self.lanes[i].begin(following)
        return [i for i, following in enumerate(self.following) if following is None]

    def _choose(self, policy: Actor, std: Array, playing: list[int]) -> tuple[Array, Array, Array]:
        """What to do in each lane: meant, with noise, and within bounds."""
        for i in playing:
            lane = self.lanes[i]
            self.inputs[i] = lane.observation
            self.drawn[i] = lane.drawn[lane.t]
        means = policy.act(self.inputs)[: len(self.lanes)]
        actions = self.noise.apply(means, self.drawn, std, (self.low, self.high))
        if not isfinite(actions.sum()):  # the cheapest way to see one value that is not
            self._blame(playing, actions)
        return means, actions, np.minimum(np.maximum(actions, self.low), self.high)

    def _blame(self, playing: list[int], actions: Array) -> None:
        for i in playing:
            if not np.isfinite(actions[i]).all():
                seen = np.isfinite(self.inputs[i]).all()
                culprit = "the policy" if seen else "the environment"
                raise self.lanes[i].failed(f"{culprit} returned values that are not finite")


class Rollouts:
    """Crews, here or in worker processes; a context manager, because workers must be ended."""

    def __init__(
        self,
        task: Task,
        seeds: Seeds,
        *,
        noise: ActionNoise | None = None,
        lanes: int = LANES,
        workers: int = 1,
    ) -> None:
        if workers < 1 or lanes < 1:
            raise EluteError(f"{workers} workers with {lanes} lanes; expected at least one of each")
        noise = ActionNoise() if noise is None else noise
        numbers = [range(c, min(c + CREW, lanes)) for c in range(0, lanes, CREW)]
        plans = [(task, seeds, noise, crew, lanes) for crew in numbers]
        self.lanes, workers = lanes, min(workers, len(plans))
        self.crews = [Crew(*plan) for plan in plans] if workers == 1 else []
        self.workers = (
            [] if workers == 1 else [Worker(Crew, plans[w::workers]) for w in range(workers)]
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.close()
        for crew in self.crews:
            for lane in crew.lanes:
                lane.environment.close()

    def advance(self, policy: Actor, steps: int, before: int = FOREVER) -> list[Stretch]:
        """Up to `steps` more in each lane; in order of lanes, then of time."""
        played = self._ask("advance", policy, steps, before)
        stretches = [stretch for crew in played for stretch in crew]
        return sorted(stretches, key=lambda s: (s.episode % self.lanes, s.episode))

    def restart(self, first: int) -> None:
        """Begin new episodes in all lanes, numbered from `first`, a multiple of the lanes, on."""
        self._ask("restart", first)

    def episodes(self, policy: Actor, n: int) -> list[Stretch]:
        """Episodes 0..n of these rollouts, whole and in order."""
        return sorted(self.advance(policy, FOREVER, before=n), key=lambda s: s.episode)

    def _ask(self, method: str, *args: Any) -> list[Any]:  # noqa: ANN401 (arguments of a crew's)
        """What each crew answers."""
        for worker in self.workers:
            worker.ask(method, args)
        here = [getattr(crew, method)(*args) for crew in self.crews]
        return here + [answer for worker in self.workers for answer in worker.answers()]
