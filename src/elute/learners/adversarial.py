"""Online imitation: a policy plays, a critic tells it from the demonstrator, and pays it for that.

    repeat:  B steps with sampled actions
             weights of the demonstrations            what differs between the methods
             k updates of the critic                  l = expert_logit(s, a), high for the expert
             rewards by the new critic, value fit, one TRPO step
    critic:  mean over D of [ w e(l) + v g(l) ]  +  z  mean over the policy's rows of g(l)
             + c  mean over x~ of (distance of |grad l(x~)| to the allowed slopes)^2

e is the loss of calling a row the agent's, g of calling it the expert's; x~ lies between rows of
both. A method is its `form` (e, g and the reward) and its weights w, v, z. Without weights this is
GAIL.

Both sides are treated alike. The critic sees actions as they were executed: recorded ones may leave
the box (demonstrations keep what was meant), sampled ones too, and what the simulator never saw
must not tell them apart. Observations are in units of the demonstrations, actions in units of their
bounds. TRPO learns from the sampled action, not the clipped one, for its density is known.

A time limit is no end: the value goes on beyond it. A fall is one, and is worth nothing. So a
reward that is never negative pays for living; see `gail.py` for what to do about it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from elute.envs.rollout import Stretch
from elute.envs.task import Task
from elute.episodes import Array
from elute.errors import EluteError
from elute.learners.actor import standard_units
from elute.learners.learner import Log, Policy
from elute.learners.ratio import slopes
from elute.nets import generator, mlp, seeded, small_end, tensor
from elute.rl.agent import Agent, Learning
from elute.rl.run import Loop, NotFiniteError, Run, optimiser_state, restore_optimiser
from elute.rl.trpo import TRPO, log_prob
from elute.rng import Seeds
from elute.types import DemoSet

LARGEST = 1e6
"""A logit beyond is no judgement."""


@dataclass(frozen=True, kw_only=True)
class Adversarial(Loop):
    """Settings of the loop, the same for every method."""

    env_steps: int = 1_000_000
    check_every: int = 50_000
    learning: Learning = field(
        default_factory=lambda: Learning(
            value_rate=1e-3,
            value_epochs=5,
            trpo=TRPO(max_kl=0.06, damping=0.6, entropy=1e-4),
        )
    )
    """Larger steps than the paper's: GAIL on Hopper gets where it gets in a third of the time."""
    hidden: tuple[int, ...] = (100, 100)
    """Of the critic."""
    critic_updates: int = 10
    """For each update of the policy."""
    critic_rate: float = 3e-4
    demo_rows: int = 256
    """Demonstrations in one update, drawn with replacement; of the policy's rows it sees all."""
    penalty: float = 10.0
    """On slopes that are not allowed."""
    allowed: tuple[float, float] = (1.0, 1.0)
    """Smallest and largest slope that cost nothing.

    Slopes of 1 everywhere, as in the paper, keep the critic from being sure of itself. But a critic
    that shall be high in the middle and low around it has a flat top; where that is all there is to
    learn, as for a point that shall stand still, (0, 1) does better."""

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.allowed
        if not 0 <= low <= high:
            raise EluteError(f"allowed slopes {low} to {high}; expected the smaller first, from 0")
        if not 0 <= self.penalty < math.inf or not 0 < self.critic_rate < math.inf:
            raise EluteError(
                f"penalty {self.penalty}, critic_rate {self.critic_rate}; expected finite numbers, "
                "from 0 and above 0"
            )
        if self.demo_rows < 1 or self.critic_updates < 1:
            raise EluteError(
                f"demo_rows {self.demo_rows}, critic_updates {self.critic_updates}; expected 1 or "
                "more"
            )

    @classmethod
    def paper(cls) -> Self:
        """Steps of the size, and as many, as the paper's."""
        learning = Learning(trpo=TRPO(entropy=1e-4))
        return cls(env_steps=5_000_000, learning=learning, critic_updates=5)


class Form(NamedTuple):
    """What a critic's output means."""

    as_expert: Callable[[Tensor], Tensor]
    """e: what it costs that a row of the expert is called so."""
    as_agent: Callable[[Tensor], Tensor]
    """g."""
    reward: Callable[[Tensor], Tensor]
    smooth: Callable[[Tensor], Tensor] = lambda logits: logits
    """Of what slopes are penalised."""


class Weights(NamedTuple):
    """How much each row counts in the loss of the critic."""

    expert: Tensor
    """w, (n,): of demonstrations, as the expert's."""
    agent: Tensor | None = None
    """v, (n,): of demonstrations, as the agent's; none is 0."""
    policy: float = 1.0
    """z: of the policy's rows."""

    @classmethod
    def even(cls, n: int) -> Self:
        """All alike."""
        return cls(torch.ones(n))


class Scene(NamedTuple):
    """What a method may look at before the first step."""

    demos: DemoSet
    task: Task
    inputs: Tensor
    """(n, S + A): rows of D_o, then of D_s, as the critic sees them."""
    rng: np.random.Generator
    log: Log
    policy: Callable[[], Policy]
    """As it is before the first step."""


class Look:
    """What weights may depend on, before each update; all of it is of the demonstrations."""

    def __init__(self, judge: "Judge", agent: Agent, run: Run) -> None:
        self._judge, self._agent = judge, agent
        self.env_steps, self.total = run.env_steps, run.loop.env_steps

    @cached_property
    def logits(self) -> Tensor:
        """What the critic thinks of them."""
        with torch.no_grad():
            return self._judge.logits(self._judge.demos)

    @cached_property
    def log_pi(self) -> Tensor:
        """Log density of their actions by the policy."""
        agent, judge = self._agent, self._judge
        with torch.no_grad():
            means = agent.squash(agent.network(agent.units(judge.observations)))
            density = log_prob(judge.actions, means, agent.network.log_std)
        return density - 0.5 * math.log(2 * math.pi) * judge.actions.shape[1]


Weigh = Callable[[Look], Weights]


def always(weights: Weights) -> Weigh:
    """The same at every update."""
    return lambda look: weights


@runtime_checkable
class OnlineMethod(Protocol):
    """What differs between methods: frozen settings."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def loop(self) -> Adversarial: ...  # noqa: D102
    @property
    def form(self) -> Form: ...  # noqa: D102
    def begin(self, scene: Scene) -> Weigh:
        """Look at the demonstrations once; how they are weighed from then on."""


class Inputs:
    """Pairs as the critic sees them, whoever they are of."""

    def __init__(self, demos: DemoSet, task: Task) -> None:
        rows = demos.all
        self.task = task
        seen = standard_units(rows.observations, rows.observation_columns)
        low, high = task.bounds
        self.mean = np.concatenate([seen[0], (low + high) / 2])
        self.scale = np.concatenate([seen[1], (high - low) / 2])

    def __call__(self, observations: Array, actions: Array) -> Tensor:
        """(n, S + A), of actions as they are executed."""
        executed = self.task.clip(actions.astype(np.float64))
        pairs = np.concatenate([observations.astype(np.float64), executed], axis=1)
        return tensor((pairs - self.mean) / self.scale)


class Judge:
    """The critic while it learns: where the rewards of a run come from."""

    def __init__(self, method: OnlineMethod, scene: Scene, inputs: Inputs, seeds: Seeds) -> None:
        loop, rows = method.loop, scene.demos.all
        self.method, self.inputs, self.seeds, self.demos = method, inputs, seeds, scene.inputs
        self.observations = rows.observations.astype(np.float64)
        self.actions = tensor(scene.task.clip(rows.actions.astype(np.float64)))
        with seeded(seeds("critic")):
            self.body = small_end(mlp([scene.inputs.shape[1], *loop.hidden, 1]))
        self.optimiser = torch.optim.Adam(self.body.parameters(), lr=loop.critic_rate, fused=True)
        self.weigh = method.begin(scene)

    def logits(self, inputs: Tensor) -> Tensor:
        """(n,): high for the expert."""
        found: Tensor = self.body(inputs)
        return found[:, 0]

    def earned(
        self, stretches: Sequence[Stretch], agent: Agent, run: Run
    ) -> tuple[list[Array], Mapping[str, float]]:
        """Learn, then pay."""
        played = self.inputs(
            np.concatenate([s.observations[:-1] for s in stretches]),
            np.concatenate([s.actions for s in stretches]),
        )
        weights = self.weigh(Look(self, agent, run))
        told = self.learn(played, weights, generator(self.seeds("judge", run.updates)))
        with torch.no_grad():
            logits = self.logits(played)
            rewards = self.method.form.reward(logits).numpy().astype(np.float64)
        largest = float(logits.abs().max())
        if not largest < LARGEST:
            raise NotFiniteError(f"the critic's output has grown to {largest:.3g}")
        parts = np.split(rewards, np.cumsum([len(s) for s in stretches])[:-1])
        w = weights.expert
        return parts, told | {
            "agent_logit": float(logits.mean()),
            "imitation_reward": float(rewards.mean()),
            "effective_rows": float(w.sum() ** 2 / (w**2).sum()),
        }

    def learn(self, played: Tensor, weights: Weights, stream: torch.Generator) -> dict[str, float]:
        """As many updates as asked for; what the last one was like."""
        loop = self.method.loop
        for _ in range(loop.critic_updates):
            rows = torch.randint(0, len(self.demos), (loop.demo_rows,), generator=stream)
            shown = self.demos[rows]
            logits = self.logits(torch.cat([shown, played]))
            expert, agent = logits[: len(rows)], logits[len(rows) :]
            loss = critic_loss(self.method.form, expert, agent, weights, rows)
            slope = (
                self.slope_penalty(shown, played, stream) if loop.penalty else loss.new_zeros(())
            )
            total = loss + slope
            if not torch.isfinite(total):
                raise NotFiniteError(f"the critic's loss is {total.item():.3g}")
            self.optimiser.zero_grad(set_to_none=True)
            total.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
        return {
            "critic_loss": loss.item(),
            "slope_penalty": slope.item(),
            "expert_logit": expert.mean().item(),
            "expert_accuracy": float((expert > 0).double().mean()),
            "agent_accuracy": float((agent < 0).double().mean()),
        }

    def slope_penalty(self, shown: Tensor, played: Tensor, stream: torch.Generator) -> Tensor:
        """On the way from demonstrations to rows of the policy."""
        loop = self.method.loop
        others = played[torch.randint(0, len(played), (len(shown),), generator=stream)]
        share = torch.rand((len(shown), 1), generator=stream)
        between = (share * shown + (1 - share) * others).requires_grad_(True)
        outputs = self.method.form.smooth(self.logits(between))
        slope = slopes(outputs, between).norm(dim=1)
        excess: Tensor = slope - slope.clamp(*loop.allowed)
        return loop.penalty * excess.square().mean()

    def state(self) -> dict[str, Tensor]:
        """The critic and its optimiser."""
        body = {f"critic.{key}": value for key, value in self.body.state_dict().items()}
        return body | {f"optimiser.{k}": v for k, v in optimiser_state(self.optimiser).items()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from there."""
        parts: dict[str, dict[str, Tensor]] = {"critic": {}, "optimiser": {}}
        for key, value in state.items():
            part, _, name = key.partition(".")
            parts[part][name] = value
        self.body.load_state_dict(parts["critic"])
        restore_optimiser(self.optimiser, parts["optimiser"])


def critic_loss(
    form: Form, expert: Tensor, agent: Tensor, weights: Weights, rows: Tensor
) -> Tensor:
    """Of logits of demonstrations, by their row numbers, and of rows of the policy."""
    loss = (weights.expert[rows] * form.as_expert(expert)).mean()
    if weights.agent is not None:
        loss = loss + (weights.agent[rows] * form.as_agent(expert)).mean()
    return loss + weights.policy * form.as_agent(agent).mean()
