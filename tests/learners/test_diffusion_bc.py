"""Diffusion-BC learns the distribution of the action where behaviour cloning learns its mean."""

import subprocess
import sys
from copy import copy
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest
import torch

from elute.diffusion.policy import DiffusionPolicy
from elute.diffusion.schedule import Schedule
from elute.envs.task import find_task
from elute.episodes import Episodes
from elute.errors import EluteError
from elute.evaluation import evaluate
from elute.learners.bc import BC
from elute.learners.diffusion_bc import PASSES, DiffusionActor, DiffusionBC
from elute.onnx import export_onnx
from elute.policy import load_policy, save_policy
from elute.rng import Seeds
from elute.types import Demonstrations

SMALL = DiffusionBC(hidden=(64, 64), updates=800, learning_rate=5e-3)
QUICK = replace(SMALL, updates=20)


def rows(states, actions):
    return Demonstrations(observations=states, actions=actions, episodes=Episodes.of([len(states)]))


def two_ways(n=1000, share=0.5):
    """At one state, two demonstrators: +1 and -1, never between."""
    signs = np.where(np.arange(n) < share * n, 1.0, -1.0)[:, None]
    actions = signs + 0.05 * Seeds(0)("spread").standard_normal((n, 1))
    return rows(np.zeros((n, 2)), actions)


def gaussian(n=4000):
    """Mean 2 s and deviation 0.5, next to a column that is always 1 + s."""
    rng = Seeds(1)("gaussian")
    states = rng.standard_normal((n, 1))
    drawn = 2 * states + 0.5 * rng.standard_normal((n, 1))
    return rows(states, np.concatenate([drawn, 1 + states], axis=1))


def exact(mean=0.7, std=0.5, n_steps=50):
    """A policy whose network is the true velocity of N(mean, std^2), built by hand.

    Each step has two units of its own, switched on by what they are told: SiLU(x + c) - SiLU(-x -
    c) = x + c gives any line in x, and a line is all that a Gaussian needs.
    """
    schedule = Schedule.cosine(n_steps)
    signal, noise = schedule.signal[1:], schedule.noise[1:]
    spread = signal**2 * std**2 + noise**2
    slope = signal * noise * (1 - std**2) / spread
    centre = signal * mean
    # v = slope * (x - centre) - noise * mean
    off = -1e4
    told = np.full((n_steps, 2 * n_steps), off, np.float32)
    reads = np.zeros((2, 2 * n_steps), np.float32)
    writes = np.zeros((2 * n_steps, 1), np.float32)
    for i in range(n_steps):
        reads[0, 2 * i : 2 * i + 2] = 1, -1
        shift = -centre[i] - noise[i] * mean / slope[i]
        told[i, 2 * i : 2 * i + 2] = shift, -shift
        writes[2 * i : 2 * i + 2, 0] = slope[i], -slope[i]
    return DiffusionPolicy(
        layers=((reads, np.zeros(2 * n_steps, "f4")), (writes, np.zeros(1, "f4"))),
        told=told,
        beta=schedule.beta,
        mean=np.zeros(1),
        scale=np.ones(1),
        action_mean=np.zeros(1),
        action_scale=np.ones(1),
        low=np.full(1, -np.inf),
        high=np.full(1, np.inf),
    )


def chain(policy, std):
    """Deviation after all ancestral steps with the true noise of N(., std^2): a recursion."""
    schedule, variance = Schedule(policy.beta), 1.0
    for step in schedule.ancestral(schedule.n_steps):
        left = schedule.alpha_bar[step.step]
        factor = step.keep - step.remove * np.sqrt(1 - left) / (left * std**2 + 1 - left)
        variance = factor**2 * variance + step.add**2
    return np.sqrt(variance)


@pytest.mark.parametrize("std", [0.2, 0.5])
def test_the_true_velocity_gives_the_closed_form_of_the_chain(std):
    policy = exact(std=std)
    drawn = policy.act(np.zeros((10_000, 1)), Seeds(0)("act"))
    assert drawn.mean() == pytest.approx(0.7, abs=4 * std / np.sqrt(10_000))
    assert drawn.std() == pytest.approx(chain(policy, std), rel=0.02)
    assert drawn.std() == pytest.approx(std, rel=0.06)


def test_without_a_stream_a_gaussian_gives_its_mean():
    np.testing.assert_allclose(exact().act(np.zeros((3, 1))), 0.7, atol=1e-3)


def test_more_rows_are_learnt_for_more_updates():
    demos = two_ways()
    learner = DiffusionBC(hidden=(8, 8), batch_size=20 * len(demos))

    def acts(updates):
        policy = replace(learner, updates=updates).clone(demos, Seeds(0)("learn"))
        return policy.act(np.zeros((1, 2)))

    np.testing.assert_array_equal(acts(None), acts(round(PASSES / 20)))
    assert not np.array_equal(acts(None), acts(round(PASSES / 20) + 1))


def test_the_schedule_ends_in_noise():
    learner = DiffusionBC()
    assert Schedule.named(learner.schedule, learner.steps).alpha_bar[-1] < 1e-4


def test_the_released_schedule_does_not():
    learner = DiffusionBC.paper()
    released = Schedule.named(learner.schedule, learner.steps)
    assert released.alpha_bar[-1] == pytest.approx(0.603, abs=5e-4)


def test_both_ways_are_sampled_and_none_between_while_bc_takes_the_mean():
    demos = two_ways()
    drawn = SMALL.clone(demos, Seeds(0)("learn")).act(np.zeros((2000, 2)), Seeds(0)("act"))
    assert 0.3 < (drawn > 0.5).mean() < 0.7
    assert 0.3 < (drawn < -0.5).mean() < 0.7
    assert (np.abs(drawn) < 0.5).mean() < 0.05
    cloned = BC(updates=300).clone(demos, Seeds(0)("bc")).act(np.zeros((1, 2)))
    assert abs(cloned[0, 0]) < 0.1


def test_without_a_stream_it_goes_the_way_of_most():
    policy = SMALL.clone(two_ways(share=0.3), Seeds(0)("learn"))
    assert policy.act(np.zeros((1, 2)))[0, 0] == pytest.approx(-1.0, abs=0.2)


@pytest.mark.parametrize("loss", ["velocity", "noise"])
def test_mean_and_variance_of_a_gaussian_action_are_learnt(loss):
    policy = replace(SMALL, loss=loss).clone(gaussian(), Seeds(0)("learn"))
    for state in (-1.0, 0.0, 1.0):
        seen = np.full((4000, 1), state)
        drawn = policy.act(seen, Seeds(0)("act"))
        np.testing.assert_allclose(drawn.mean(axis=0), [2 * state, 1 + state], atol=0.15)
        assert drawn[:, 0].std() == pytest.approx(0.5, rel=0.15)
        assert drawn[:, 1].std() < 0.15
        np.testing.assert_allclose(policy.act(seen[:1])[0], [2 * state, 1 + state], atol=0.15)


def test_one_step_is_a_noisy_regression():
    policy = replace(SMALL, steps=1).clone(gaussian(), Seeds(0)("learn"))
    seen = np.full((2000, 1), 0.5)
    drawn = policy.act(seen, Seeds(0)("act"))
    np.testing.assert_allclose(drawn.mean(axis=0), [1.0, 1.5], atol=0.1)
    assert drawn[:, 0].std() < 0.2  # of the 0.5 that a distribution would have


def test_the_same_streams_give_the_same_actions():
    policy, again = (QUICK.clone(gaussian(200), Seeds(3)("learn")) for _ in range(2))
    seen = gaussian(50).observations
    np.testing.assert_array_equal(policy.act(seen), again.act(seen))
    np.testing.assert_array_equal(policy.act(seen), policy.act(seen))
    first, second, other = (policy.act(seen, Seeds(s)("act")) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_an_action_depends_on_its_row_alone():
    policy, rng = QUICK.clone(gaussian(200), Seeds(3)("learn")), Seeds(0)("others")
    batch = rng.standard_normal((8, 1))
    alone = policy.act(batch)
    for _ in range(3):
        others = np.concatenate([batch[:5], 10 * rng.standard_normal((3, 1))])
        np.testing.assert_array_equal(policy.act(others)[:5], alone[:5])
    np.testing.assert_allclose(policy.act(batch[:1]), alone[:1], rtol=1e-4, atol=1e-5)


def test_the_policy_computes_what_was_trained():
    actor = DiffusionActor(SMALL, gaussian(100), Seeds(0)("learn"))
    policy, x = actor.policy(), Seeds(0)("x").standard_normal((6, 2)).astype("f4")
    seen = gaussian(6).observations
    step = torch.tensor([1, 2, 10, 30, 49, 50])
    weights, bias = policy.layers[0]
    units = ((seen - policy.mean) / policy.scale).astype("f4")
    hidden = np.concatenate([x, units], axis=1) @ weights + bias + policy.told[step - 1]
    trained = actor(torch.tensor(x), actor.inputs(seen), step).detach().numpy()
    np.testing.assert_allclose(policy._velocity(hidden), trained, atol=1e-5)


def test_bounds_hold_with_and_without_a_stream():
    policy = replace(QUICK, bounds=(-0.5, 0.5)).clone(gaussian(200), Seeds(0)("learn"))
    far = 100 * gaussian(50).observations
    assert np.abs(policy.act(far)).max() <= 0.5
    assert np.abs(policy.act(far, Seeds(0)("act"))).max() <= 0.5


def test_predict_is_that_of_stable_baselines():
    policy, seen = QUICK.clone(gaussian(200), Seeds(0)("learn")), gaussian(9).observations
    action, state = policy.predict(seen[0], deterministic=True)
    assert (action.shape, state) == ((2,), None)
    np.testing.assert_array_equal(action, policy.act(seen[:1])[0])
    drawn, _ = policy.predict(seen, rng=Seeds(0)("act"))
    np.testing.assert_array_equal(drawn, policy.act(seen, Seeds(0)("act")))


def test_a_file_and_another_process_give_the_same_policy_back(tmp_path):
    policy, seen = QUICK.clone(gaussian(200), Seeds(0)("learn")), gaussian(20).observations
    save_policy(policy, tmp_path / "p.safetensors")
    with get_context("spawn").Pool(1) as pool:  # as workers of a rollout get it
        passed = pool.apply(copy, (policy,))
    for back in (load_policy(tmp_path / "p.safetensors"), passed):
        assert isinstance(back, DiffusionPolicy)
        assert back.about == policy.about
        np.testing.assert_array_equal(back.act(seen), policy.act(seen))
        np.testing.assert_array_equal(back.std, [0.0, 0.0])


def test_acting_needs_no_torch(tmp_path):
    save_policy(QUICK.clone(gaussian(50), Seeds(0)("learn")), tmp_path / "p.safetensors")
    code = """
import sys, pathlib, numpy
from elute.policy import load_policy
load_policy(pathlib.Path(sys.argv[1])).act(numpy.zeros((8, 1)))
sys.exit("torch" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code, tmp_path / "p.safetensors"], check=True)


def test_parts_that_do_not_fit_are_refused():
    policy = QUICK.clone(gaussian(50), Seeds(0)("learn"))
    for wrong in (
        {"told": policy.told[:-1]},
        {"layers": policy.layers[1:]},
        {"layers": ()},
        {"low": np.zeros(3)},
        {"scale": np.ones(2)},
    ):
        with pytest.raises(EluteError, match="do not fit"):
            replace(policy, **wrong)


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"hidden": ()}])
def test_settings_of_nothing_are_refused(wrong):
    with pytest.raises(EluteError, match="expected one or more"):
        replace(SMALL, **wrong)


def test_there_is_no_onnx_model_of_it(tmp_path):
    with pytest.raises(EluteError, match="by diffusion has no ONNX"):
        export_onnx(QUICK.clone(gaussian(50), Seeds(0)("learn")), tmp_path / "p.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.mujoco
def test_a_task_scores_it_the_same_with_any_number_of_workers():
    pytest.importorskip("mujoco", reason="the simulator is an extra")
    task, rng = find_task("hopper"), Seeds(0)("rows")
    size = task.n_observations, task.n_actions
    policy = replace(QUICK, steps=5, bounds=(-1.0, 1.0)).clone(
        rows(*(rng.uniform(-1, 1, (100, n)) for n in size)), Seeds(0)("learn")
    )
    one, two = (evaluate(policy, task, episodes=7, workers=n) for n in (1, 2))
    assert one.returns == two.returns
