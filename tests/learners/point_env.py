"""The point of `point_mass.py` as an environment: `gym:learners.point_env:ElutePoint-v0`."""

import gymnasium
import numpy as np

from learners.point_mass import HORIZON, move

NAME = "gym:learners.point_env:ElutePoint-v0"


class Point(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, (1, 2))
        return self.state[0].copy(), {}

    def step(self, action):
        self.state = move(self.state, np.asarray(action)[None])
        return self.state[0].copy(), -abs(float(self.state[0, 0])), False, False, {}


gymnasium.register("ElutePoint-v0", entry_point=Point, max_episode_steps=HORIZON)
