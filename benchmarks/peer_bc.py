"""The `imitation` side of `benchmarks/bc.py`, in its own environment: updates per second."""

import sys
import time

import gymnasium as gym
import numpy as np
import torch
from imitation.algorithms import bc
from imitation.data.types import Transitions
from imitation.util import logger
from stable_baselines3.common.policies import ActorCriticPolicy

WARM = 50


def main() -> None:
    """Time updates of a batch size given first, as many as given second."""
    batch_size, updates = map(int, sys.argv[1:])
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    observations = rng.standard_normal((700, 17)).astype(np.float32)
    actions = np.tanh(observations @ rng.standard_normal((17, 6))).astype(np.float32)
    spaces = gym.spaces.Box(-np.inf, np.inf, (17,)), gym.spaces.Box(-1.0, 1.0, (6,))
    policy = ActorCriticPolicy(
        *spaces,
        lr_schedule=lambda _: 1e-3,
        net_arch=[100, 100],
        activation_fn=torch.nn.Tanh,
    )
    demonstrations = Transitions(
        obs=observations,
        acts=actions,
        infos=np.array([{}] * 700),
        next_obs=observations,
        dones=np.zeros(700, dtype=bool),
    )
    trainer = bc.BC(
        observation_space=spaces[0],
        action_space=spaces[1],
        rng=rng,
        policy=policy,
        demonstrations=demonstrations,
        batch_size=batch_size,
        custom_logger=logger.configure(None, []),
        device="cpu",
    )
    trainer.train(n_batches=WARM, progress_bar=False)
    began = time.perf_counter()
    trainer.train(n_batches=updates, progress_bar=False)
    print(updates / (time.perf_counter() - began))


if __name__ == "__main__":
    main()
