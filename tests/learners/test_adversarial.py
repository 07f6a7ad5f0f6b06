"""The loop that all online methods share. Numbers of tests are sections of the method notes."""

import math
import os
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from elute.episodes import Episodes
from elute.errors import EluteError
from elute.learners.adversarial import Adversarial, Inputs, Judge, Weights, critic_loss
from elute.learners.descent import DivergenceError
from elute.learners.gail import GAIL, logistic
from elute.learners.ic_gail import ICGAIL
from elute.learners.imitate import imitate
from elute.learners.sail import BOUNDED
from elute.learners.two_iwil import TwoIWIL
from elute.learners.wgail import WGAIL
from elute.types import DemoSet
from learners.online import LOOP, METHODS, Now, agent, judge, played, task
from learners.point_mass import both, demonstrations

SHORT = replace(LOOP, env_steps=3000, check_every=1000, check_episodes=2)


def after_one_update(method, demos=None, env_steps=0):
    """The critic, and what it pays, after one update of it."""
    one = replace(method, loop=replace(LOOP, critic_updates=1))
    of = judge(one, demos)
    rewards, _ = of.earned(played(), agent(), Now(env_steps))
    return [p.detach().numpy() for p in of.body.parameters()], np.concatenate(rewards)


def assert_same_update(one, other):
    for a, b in zip(one[0], other[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-7)
    np.testing.assert_allclose(one[1], other[1], rtol=0, atol=1e-6)


def with_confidence(value):
    given = [d.with_extra("confidence", np.full(len(d), value)) for d in both().given]
    return DemoSet(*given)


def test_9_confidence_1_everywhere_makes_2iwil_gail():
    sure = with_confidence(1.0)
    assert_same_update(after_one_update(TwoIWIL(), sure), after_one_update(GAIL(), sure))


def test_9_z_1_makes_ic_gail_gail():
    for least, value in ((1.0, 0.3), (0.7, 1.0)):  # asked for, or because all confidences are 1
        demos = with_confidence(value)
        ic = after_one_update(ICGAIL(least=least), demos)
        assert_same_update(ic, after_one_update(GAIL(), demos))


def test_9_ic_gail_below_1_is_not_gail():
    demos = with_confidence(0.3)
    (ic, _), (gail, _) = after_one_update(ICGAIL(), demos), after_one_update(GAIL(), demos)
    assert not np.allclose(ic[0], gail[0], rtol=0, atol=1e-6)


def test_10_beta_without_bound_makes_wgail_gail():
    wgail = after_one_update(WGAIL(beta=1e12, warm_up=0))
    assert_same_update(wgail, after_one_update(GAIL()))
    root, _ = after_one_update(WGAIL(beta=1.0, warm_up=0))
    assert not np.allclose(root[0], after_one_update(GAIL())[0][0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("reward", ["positive", "negative", "logit"])
def test_8_more_like_the_expert_pays_more(reward):
    logits = torch.linspace(-5, 5, 11)
    paid = logistic(reward).reward(logits)
    assert (paid.diff() > 0).all()


def test_8_rewards_at_one_half_and_their_signs():
    nothing, many = torch.zeros(1), torch.linspace(-20, 20, 41)
    assert logistic("positive").reward(nothing).item() == pytest.approx(math.log(2))
    assert logistic("negative").reward(nothing).item() == pytest.approx(-math.log(2))
    assert (logistic("positive").reward(many) >= 0).all()
    assert (logistic("negative").reward(many) <= 0).all()
    both_signs = logistic("positive").reward(many) + logistic("negative").reward(many)
    torch.testing.assert_close(both_signs, many)


def test_8_the_paper_writes_the_same_reward_with_the_agent_high():
    logits = torch.randn(50, generator=torch.Generator().manual_seed(0))
    agent_high = torch.sigmoid(-logits)
    torch.testing.assert_close(logistic("positive").reward(logits), -torch.log(agent_high))


def test_8_the_loss_is_the_cross_entropy_and_flipped_labels_flip_the_logit():
    rng = torch.Generator().manual_seed(1)
    expert, policy = torch.randn(7, generator=rng), torch.randn(9, generator=rng)
    even, rows = Weights.even(7), torch.arange(7)
    found = critic_loss(logistic("positive"), expert, policy, even, rows)
    cross = torch.nn.functional.binary_cross_entropy_with_logits
    wanted = cross(expert, torch.ones(7)) + cross(policy, torch.zeros(9))
    torch.testing.assert_close(found, wanted)
    flipped = cross(-expert, torch.zeros(7)) + cross(-policy, torch.ones(9))
    torch.testing.assert_close(found, flipped)


def test_8_equal_sides_end_at_one_half_and_log_2():
    of = judge(GAIL(loop=replace(LOOP, critic_updates=400, critic_rate=1e-2)))
    told = of.learn(of.demos, Weights.even(len(of.demos)), torch.Generator().manual_seed(0))
    with torch.no_grad():
        paid = of.method.form.reward(of.logits(of.demos))
    assert paid.mean().item() == pytest.approx(math.log(2), abs=0.01)
    assert paid.std().item() < 0.05
    assert told["critic_loss"] == pytest.approx(2 * math.log(2), abs=0.01)


def test_the_critic_is_high_for_the_expert():
    of = judge(METHODS["gail"])
    stretches = played()
    for update in range(10):
        _, told = of.earned(stretches, agent(), Now(0, update))
    assert told["expert_logit"] > 0.2 > -0.2 > told["agent_logit"]
    assert told["expert_accuracy"] > 0.8  # many of the agent's first rows are near the start, too


def linear(method, size):
    """A critic whose slope is known everywhere."""
    of = judge(method)
    of.body = torch.nn.Sequential(torch.nn.Linear(3, 1))
    with torch.no_grad():
        of.body[0].weight.copy_(torch.tensor([[0.6 * size, 0.0, 0.8 * size]]))
        of.body[0].bias.zero_()
    return of


@pytest.mark.parametrize(
    ("allowed", "size", "cost"),
    [((1, 1), 3, 4), ((1, 1), 0, 1), ((0, 1), 3, 4), ((0, 1), 0.5, 0), ((0, 1), 1, 0)],
)
def test_slopes_out_of_what_is_allowed_cost_their_square(allowed, size, cost):
    of = linear(GAIL(loop=replace(LOOP, penalty=10.0, allowed=allowed)), size)
    penalty = of.slope_penalty(of.demos, 3 * of.demos, torch.Generator().manual_seed(0))
    assert penalty.item() == pytest.approx(10 * cost, abs=1e-4)


def test_sails_penalty_is_on_what_it_pays():
    of = linear(replace(METHODS["sail"], loop=replace(LOOP, allowed=(0, 1))), 1.0)
    at_nothing = torch.zeros_like(of.demos)
    slope = of.slope_penalty(at_nothing, at_nothing, torch.Generator().manual_seed(0))
    assert slope.item() == pytest.approx(10 * (5 / 4 - 1) ** 2, rel=1e-4)  # 5 sigma' is 5/4 at 0
    assert BOUNDED.reward(torch.zeros(1)).item() == 2.5


def test_both_sides_are_seen_as_executed_and_in_the_same_units():
    demos = both()
    inputs, rows = Inputs(demos, task()), demos.all
    assert np.abs(rows.actions).max() > 1.5  # recorded ones leave the box
    seen = inputs(rows.observations, rows.actions)
    assert seen[:, 2].abs().max() == 1.0
    torch.testing.assert_close(seen, inputs(rows.observations, rows.actions.clip(-1, 1)))
    np.testing.assert_allclose(seen[:, :2].mean(dim=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(seen[:, :2].std(dim=0, correction=0), 1.0, atol=1e-5)


def test_actions_without_bounds_are_refused():
    free = replace(task(), action_low=(-math.inf,), action_high=(math.inf,))
    with pytest.raises(EluteError, match="no bounds"):
        imitate(GAIL(loop=SHORT), both(), free, 0)


def curve(folder, **more):
    return imitate(GAIL(loop=SHORT), both(), task(), 3, folder=folder, **more)


class KilledError(Exception):
    pass


def test_a_killed_run_goes_on_with_the_same_curve(tmp_path):
    whole = curve(tmp_path / "whole")

    def kill(row):
        if row["update"] >= 1999 and "score" not in row:  # in the middle of the second block
            raise KilledError

    with pytest.raises(KilledError):
        curve(tmp_path / "parts", log=kill)
    rows = []
    parts = curve(tmp_path / "parts", log=rows.append)
    assert rows[0]["update"] == 1999  # the block that was lost is played again
    assert parts.curve == whole.curve
    assert parts.steps == (1000, 2000, 3000)
    files = [tmp_path / name / "state.safetensors" for name in ("whole", "parts")]
    probe = both().all.observations
    np.testing.assert_array_equal(parts.policy.act(probe), whole.policy.act(probe))
    tensors = [load_file(file) for file in files]
    assert tensors[0].keys() == tensors[1].keys()
    assert any(key.startswith("rewards.critic") for key in tensors[0])
    assert all(torch.equal(tensors[0][key], tensors[1][key]) for key in tensors[0])


def test_workers_make_no_difference(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # they find the task there
    quick = replace(SHORT, env_steps=1000)
    one, two = (imitate(GAIL(loop=quick), both(), task(), 0, workers=n) for n in (1, 2))
    assert one.curve == two.curve


@pytest.mark.parametrize("what", ["demos", "lengths", "ends", "settings", "seed"])
def test_a_folder_of_another_run_is_refused(tmp_path, what):
    quick = replace(SHORT, env_steps=1000)
    imitate(GAIL(loop=quick), both(), task(), 0, folder=tmp_path)
    method = GAIL(loop=replace(quick, penalty=1.0) if what == "settings" else quick)
    demos = both(noise=0.5) if what == "demos" else both()
    if what == "lengths":
        demos = with_episodes(Episodes.of([len(demos.optimal)]))
    elif what == "ends":
        demos = with_episodes(replace(demos.optimal.episodes, terminated=np.full(3, True)))
    with pytest.raises(EluteError, match="another task, seed or setting"):
        imitate(method, demos, task(), int(what == "seed"), folder=tmp_path)


def with_episodes(episodes):
    """The same rows, of which the optimal ones fall into other episodes."""
    demos = both()
    return DemoSet(replace(demos.optimal, episodes=episodes), demos.supplementary)


@pytest.mark.parametrize(
    ("make", "bad"),
    [
        (Adversarial, {"penalty": -1.0}),
        (Adversarial, {"penalty": math.nan}),
        (Adversarial, {"allowed": (1.0, 0.5)}),
        (Adversarial, {"allowed": (-0.1, 1.0)}),
        (Adversarial, {"allowed": (0.0, math.nan)}),
        (Adversarial, {"demo_rows": 0}),
        (Adversarial, {"critic_updates": 0}),
        (Adversarial, {"critic_rate": 0.0}),
        (Adversarial, {"critic_rate": math.nan}),
        (Adversarial, {"batch": 0}),
        (WGAIL, {"beta": -0.1}),
        (WGAIL, {"beta": math.nan}),
    ],
)
def test_settings_that_mean_nothing_are_refused(make, bad):
    with pytest.raises(EluteError, match="expected"):
        make(**bad)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"critic_rate": 1e30}, "critic's"),
        ({"learning": replace(SHORT.learning, value_rate=1e30)}, "value network"),
    ],
)
def test_what_diverges_stops_says_when_and_keeps_the_last_good_policy(tmp_path, change, says):
    method = GAIL(loop=replace(SHORT, **change))
    with pytest.raises(DivergenceError, match=rf"{says}.* after [\d,]+ of 3,000 steps") as stopped:
        imitate(method, both(), task(), 0, folder=tmp_path)
    assert np.isfinite(stopped.value.policy.act(both().all.observations)).all()


def test_the_last_good_checkpoint_stays_when_it_diverges_later(tmp_path, monkeypatch):
    good = imitate(GAIL(loop=SHORT), both(), task(), 0, folder=tmp_path / "good")

    def poison(self, stretches, agent, run):
        if run.env_steps >= 2000:
            with torch.no_grad():
                self.body[0].weight.fill_(math.nan)
        return earned(self, stretches, agent, run)

    earned = Judge.earned
    monkeypatch.setattr(Judge, "earned", poison)
    with pytest.raises(DivergenceError, match=r"after 2,000 of 3,000 steps.*that of 2,000") as stop:
        imitate(GAIL(loop=SHORT), both(), task(), 0, folder=tmp_path / "bad")
    assert stop.value.policy.about["env_steps"] == 2000
    monkeypatch.undo()
    again = imitate(GAIL(loop=SHORT), both(), task(), 0, folder=tmp_path / "bad")
    assert again.curve == good.curve


def test_demonstrations_of_another_task_are_refused():
    wider = demonstrations(2)
    wider = replace(
        wider,
        observations=np.repeat(wider.observations, 2, axis=1),
        next_observations=None,
        observation_columns=(),
    )
    with pytest.raises(EluteError, match=r"4 observation and 1 action columns; .* has 2 and 1"):
        imitate(GAIL(loop=SHORT), DemoSet(wider), task(), 0)


@pytest.mark.parametrize("bad", [{"env_steps": 0}, {"batch": 1001}, {"check_episodes": 0}])
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(EluteError, match="expected"):
        Adversarial(**bad)


def test_the_papers_settings():
    loop = Adversarial.paper()
    assert (loop.critic_updates, loop.critic_rate, loop.batch) == (5, 3e-4, 5000)
    assert (loop.learning.gamma, loop.learning.lam) == (0.995, 0.97)
    assert loop.hidden == loop.learning.hidden == (100, 100)
    assert (loop.penalty, loop.allowed, loop.learning.trpo.entropy) == (10.0, (1.0, 1.0), 1e-4)
