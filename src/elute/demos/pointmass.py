"""Small demonstrations with a known truth: a point mass is driven to a goal in the plane.

    s = [position (2), velocity (2), goal (2)],  a = force (2), clipped to [-1, 1]
    velocity' = 0.95 velocity + 0.1 a,   position' = position + 0.1 velocity'

The driver is a damped spring with a little noise. Used by the tour, the docs and the tests.
"""

from dataclasses import replace

import numpy as np

from elute.columns import Column, columns
from elute.episodes import Array, Episodes, Provenance
from elute.rng import Seeds
from elute.types import Demonstrations

HORIZON = 100
REACHED = 0.05
COLUMNS: tuple[Column, ...] = (
    *columns("position", 2),
    *columns("velocity", 2),
    *columns("goal", 2),
)


def step(state: Array, action: Array) -> Array:
    """The next state."""
    velocity = 0.95 * state[2:4] + 0.1 * np.clip(action, -1.0, 1.0)
    return np.concatenate([state[:2] + 0.1 * velocity, velocity, state[4:]])


def driver(state: Array) -> Array:
    """The force of a damped spring towards the goal."""
    force: Array = 3.0 * (state[4:] - state[:2]) - 3.0 * state[2:4]
    return force


def pointmass(n_episodes: int = 10, *, noise: float = 0.1, seed: int = 0) -> Demonstrations:
    """Drive to random goals until they are reached, or until the horizon."""
    made = [_episode(Seeds(seed)("pointmass", i), noise) for i in range(n_episodes)]
    states = [np.array(states) for states, _ in made]
    lengths = [len(actions) for _, actions in made]
    following = np.concatenate([s[1:] for s in states])
    reached = np.array([np.linalg.norm(s[-1, :2] - s[-1, 4:]) < REACHED for s in states])
    demos = Demonstrations(
        observations=np.concatenate([s[:-1] for s in states]),
        actions=np.concatenate([np.array(actions) for _, actions in made]),
        rewards=-np.linalg.norm(following[:, :2] - following[:, 4:], axis=1),
        next_observations=following,
        episodes=Episodes.of(lengths, reached, ~reached),
        observation_columns=COLUMNS,
        action_columns=columns("force", 2),
        provenance=Provenance(source=f"pointmass(seed={seed})", task="pointmass"),
    )
    return replace(demos, provenance=demos.provenance.then("record", noise=noise, seed=seed))


def _episode(rng: np.random.Generator, noise: float) -> tuple[list[Array], list[Array]]:
    states = [np.concatenate([rng.uniform(-1, 1, 2), np.zeros(2), rng.uniform(-1, 1, 2)])]
    actions: list[Array] = []
    while len(actions) < HORIZON:
        actions.append(driver(states[-1]) + noise * rng.standard_normal(2))
        states.append(step(states[-1], actions[-1]))
        if np.linalg.norm(states[-1][:2] - states[-1][4:]) < REACHED:
            break
    return states, actions
