"""A point on a line that is to be brought to rest at the origin: small, linear, and closed loop."""

from dataclasses import replace

import numpy as np

from elute.episodes import Episodes, Provenance
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet

GAIN = np.array([[-0.8], [-1.2]])
STEP, HORIZON = 0.2, 30


def move(states, actions):
    """One step of every point: position and speed."""
    speed = states[:, 1:] + STEP * np.clip(actions, -1.0, 1.0)
    return np.concatenate([states[:, :1] + STEP * speed, speed], axis=1)


def expert(states):
    return np.clip(states @ GAIN, -1.0, 1.0)


def cost(act, n=50):
    """Mean distance from the origin over an episode."""
    states, total = Seeds(7)("starts").uniform(-1, 1, (n, 2)), 0.0
    for _ in range(HORIZON):
        states = move(states, act(states))
        total += float(np.abs(states[:, 0]).mean())
    return total / HORIZON


def demonstrations(episodes, *, noise=0.0, seed=0, source="points"):
    """Whole episodes of the expert, each action off by Gaussian noise; `clean_actions` beside."""
    rng = Seeds(seed)("points", int(noise * 1000))
    states, rows = rng.uniform(-1, 1, (episodes, 2)), []
    for _ in range(HORIZON):
        clean = expert(states)
        actions = clean + noise * rng.standard_normal(clean.shape)
        after = move(states, actions)
        rows.append(np.concatenate([states, actions, clean, after], axis=1))
        states = after
    table = np.stack(rows, axis=1).reshape(episodes * HORIZON, -1)
    return Demonstrations(
        observations=table[:, :2],
        actions=table[:, 2:3],
        extras={"clean_actions": table[:, 3:4]},
        next_observations=table[:, 4:],
        rewards=-np.abs(table[:, 4]),
        episodes=Episodes.of([HORIZON] * episodes),
        provenance=Provenance(source=source),
    )


def both(optimal=3, supplementary=12, noise=0.6):
    return DemoSet(
        optimal=demonstrations(optimal, source="good"),
        supplementary=demonstrations(supplementary, noise=noise, seed=1, source="noisy"),
    )


def with_a_nan(demos):
    """The same with one action of D_o that is no number."""
    actions = demos.optimal.actions.copy()
    actions[3, 0] = np.nan
    return DemoSet(replace(demos.optimal, actions=actions), demos.supplementary)
