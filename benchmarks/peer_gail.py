"""The `imitation` side of `benchmarks/gail.py`, in its own environment: steps per second."""

import sys
import time

import numpy as np
import torch
from imitation.algorithms.adversarial.gail import GAIL
from imitation.data.types import Transitions
from imitation.rewards.reward_nets import BasicRewardNet
from imitation.util import logger
from sb3_contrib import TRPO
from stable_baselines3.common.env_util import make_vec_env


def main() -> None:
    """Time rounds of 5000 steps over as many environments as given first, as given second."""
    n_environments, rounds = map(int, sys.argv[1:])
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    observations = rng.standard_normal((5000, 17)).astype(np.float32)
    actions = rng.uniform(-1, 1, (5000, 6)).astype(np.float32)
    demonstrations = Transitions(
        obs=observations,
        acts=actions,
        infos=np.array([{}] * 5000),
        next_obs=observations,
        dones=np.zeros(5000, dtype=bool),
    )
    venv = make_vec_env("HalfCheetah-v4", n_environments, seed=0)
    learner = TRPO(
        "MlpPolicy",
        venv,
        n_steps=5000 // n_environments,
        batch_size=125,  # they ask for a divisor of the batch; elute takes 128
        learning_rate=3e-4,
        n_critic_updates=3,
        gamma=0.995,
        gae_lambda=0.97,
        target_kl=0.01,
        cg_max_steps=10,
        cg_damping=0.1,
        policy_kwargs={"net_arch": {"pi": [100, 100], "vf": [100, 100]}},
        seed=0,
        device="cpu",
    )
    trainer = GAIL(
        demonstrations=demonstrations,
        demo_batch_size=256,
        venv=venv,
        gen_algo=learner,
        reward_net=BasicRewardNet(
            venv.observation_space,
            venv.action_space,
            hid_sizes=(100, 100),
            activation=torch.nn.Tanh,
        ),
        gen_train_timesteps=5000,
        gen_replay_buffer_capacity=5000,
        n_disc_updates_per_round=5,
        allow_variable_horizon=True,
        custom_logger=logger.configure(None, []),
    )
    trainer.train(5000)
    wall, spent = time.perf_counter(), time.process_time()
    trainer.train(5000 * rounds)
    done = time.perf_counter() - wall, time.process_time() - spent
    print(*(5000 * rounds / seconds for seconds in done))


if __name__ == "__main__":
    main()
