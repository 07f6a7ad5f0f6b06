"""Agents and experts: units, resuming, and that they learn."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from elute.envs.rollout import Rollouts
from elute.envs.task import find_task
from elute.errors import EluteError
from elute.evaluation import evaluate
from elute.noise import ActionNoise
from elute.policy import load_policy
from elute.rl.agent import Agent, Learning, Running
from elute.rl.expert import ExpertTraining, train_expert
from elute.rng import Seeds

QUICK = ExpertTraining(env_steps=4000, batch=1000, check_every=2000, marks=(1000, 3000))


def test_running_statistics_are_those_of_all_rows():
    rows = np.random.default_rng(0).normal(3.0, 2.0, (300, 2))
    rows[:, 1] = 7.0
    running = Running.of(2)
    for part in np.split(rows, [10, 150]):
        running.add(part)
    np.testing.assert_allclose(running.mean, rows.mean(axis=0))
    np.testing.assert_allclose(running.scale, [rows[:, 0].std(), 1.0])


def test_new_units_of_returns_keep_every_prediction():
    agent = Agent(find_task("hopper"), Learning(), Seeds(0)("agent"))
    seen = torch.randn(20, 11, generator=torch.Generator().manual_seed(0))

    def predicted():
        raw = agent.value(seen).detach().numpy()[:, 0]
        return agent.returns.mean + agent.returns.scale * raw

    torch.nn.init.normal_(agent.value[-1].weight)
    before = predicted()
    for shift in (100.0, -30.0):
        agent._rescale(shift + 5.0 * np.random.default_rng(0).normal(size=500))
        np.testing.assert_allclose(predicted(), before, atol=1e-3)


def test_the_policy_acts_as_the_network_it_was_copied_from():
    agent = Agent(find_task("gym:Pendulum-v1"), Learning(), Seeds(0)("agent"))
    agent.observed.add(np.random.default_rng(0).normal(2.0, 3.0, (50, 3)))
    observations = np.random.default_rng(1).normal(size=(9, 3))
    expected = agent.squash(agent.network(agent.units(observations))).detach().numpy()
    np.testing.assert_allclose(agent.policy().act(observations), expected, atol=1e-5)


def test_terminated_stretches_end_at_no_value_and_cut_ones_go_on():
    task = find_task("hopper")
    agent = Agent(task, Learning(), Seeds(0)("agent"))
    torch.nn.init.constant_(agent.value[-1].bias, 5.0)
    torch.nn.init.zeros_(agent.value[-1].weight)
    with Rollouts(task, Seeds(0), noise=ActionNoise("sample"), lanes=2) as rollouts:
        stretch = rollouts.episodes(agent.policy(), 1)[0]
    assert stretch.terminated

    def last_advantage(of):
        return agent._estimate([of], [agent.units(of.observations)], [np.zeros(len(of))])[0][-1]

    assert last_advantage(stretch) == pytest.approx(-5.0)
    assert last_advantage(replace(stretch, terminated=False)) == pytest.approx(0.995 * 5 - 5)


def test_a_run_taken_up_again_is_the_run_that_was_never_stopped(tmp_path):
    task = find_task("hopper")
    train_expert(task, QUICK, tmp_path / "whole")
    train_expert(task, replace(QUICK, env_steps=2000), tmp_path / "parts")
    train_expert(task, QUICK, tmp_path / "parts", workers=2)
    for name in ("0.001M", "0.003M", "best", "state"):
        whole, parts = (tmp_path / f / f"{name}.safetensors" for f in ("whole", "parts"))
        one, two = load_file(whole), load_file(parts)
        assert one.keys() == two.keys()
        assert all(torch.equal(one[key], two[key]) for key in one)
    curve = json.loads((tmp_path / "parts" / "curve.json").read_text())["curve"]
    assert [row["env_steps"] for row in curve] == [2000, 4000]
    assert load_policy(tmp_path / "parts" / "best.safetensors").about["task"] == "hopper"


def test_a_folder_of_another_run_is_refused(tmp_path):
    task = find_task("gym:Pendulum-v1")
    small = replace(QUICK, env_steps=2000)
    train_expert(task, small, tmp_path)
    with pytest.raises(EluteError, match="another task, seed or setting"):
        train_expert(task, small, tmp_path, seed=1)
    (tmp_path / "state.safetensors").write_bytes(b"torn")
    with pytest.raises(EluteError, match="cannot go on"):
        train_expert(task, small, tmp_path)


@pytest.mark.parametrize("bad", [{"env_steps": 0}, {"batch": 1001}])
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(EluteError, match="expected"):
        ExpertTraining(**bad)


@pytest.mark.slow
def test_the_inverted_pendulum_is_learned(tmp_path):
    task = find_task("gym:InvertedPendulum-v5")
    settings = ExpertTraining(env_steps=60_000, batch=2000, check_every=20_000)
    best = train_expert(task, settings, tmp_path)
    score = evaluate(best, task, episodes=10, seed=1)
    assert score.mean > 900  # of 1000 steps, one point each; an untrained policy gets about 10
