"""DBC: a model of pairs that knows where they lie, and its say in behaviour cloning."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from elute.episodes import Episodes
from elute.learners import dbc
from elute.learners.bc import BC
from elute.learners.dbc import DBC, PASSES, PairModel, sigmoid_schedule
from elute.nets import generator
from elute.rng import Seeds
from elute.types import Demonstrations

SMALL = DBC(updates=200, model_updates=600, width=64, depth=2)


def curve(n=500):
    """Pairs on a curve: a = sin 2 s."""
    states = Seeds(0)("curve").uniform(-1.5, 1.5, (n, 1))
    return Demonstrations(
        observations=states, actions=np.sin(2 * states), episodes=Episodes.of([n])
    )


def caught(monkeypatch, learner, demos):
    """The policy, and the model with its weights as they were when the actor began to learn."""
    found = {}

    class Caught(PairModel):
        def requires_grad_(self, *given):
            found["model"] = self
            found["before"] = {k: v.clone() for k, v in self.state_dict().items()}
            return super().requires_grad_(*given)

    monkeypatch.setattr(dbc, "PairModel", Caught)
    policy = learner.clone(demos, Seeds(0)("learn"))
    return policy, found["model"], found["before"]


@pytest.fixture(scope="module")
def trained():
    """A model of the curve, and its pairs in the actor's units."""
    with pytest.MonkeyPatch.context() as patch:
        _, model, _ = caught(patch, replace(SMALL, updates=1), curve())
    demos = curve()
    actor = dbc.Actor(SMALL.actor, demos, Seeds(0)("learn"))
    return model, actor.inputs(demos.observations), actor.targets(demos.actions)


def test_the_schedule_is_a_logistic_rise_and_ends_in_noise():
    schedule = sigmoid_schedule(1000)
    assert schedule.beta[1] == pytest.approx(1e-4 + 0.0199 / (1 + np.exp(6)))
    assert schedule.beta[1:].mean() == pytest.approx((1e-4 + 0.02) / 2)
    assert schedule.alpha_bar[-1] < 1e-4


def test_steps_come_in_pairs_over_all_of_them(trained):
    model = trained[0]
    for n in (128, 7):
        step, eps = model.draw(generator(Seeds(0)("draw")), n)
        assert (len(step), eps.shape) == (n, (n, 2))
        half = n // 2
        assert torch.equal(step[:half] + step[half + n % 2 :], torch.full((half,), 1001))
    step, _ = model.draw(generator(Seeds(0)("draw")), 100_000)
    assert (int(step.min()), int(step.max())) == (1, 1000)


def test_a_pair_as_demonstrated_is_not_worse_and_pulls_nowhere(trained):
    model, x, y = trained
    means = y.clone().requires_grad_(True)
    worse = model.worse(x, means, y, *model.draw(generator(Seeds(0)("draw")), len(x)))
    torch.testing.assert_close(worse, torch.zeros(len(x)), rtol=0, atol=0)
    (pull,) = torch.autograd.grad(torch.relu(worse).mean(), means)
    torch.testing.assert_close(pull, torch.zeros_like(y), rtol=0, atol=0)


def test_pairs_off_the_curve_look_worse_the_farther_they_are(trained):
    model, x, y = trained
    drawn = [model.draw(generator(Seeds(s)("draw")), len(x)) for s in range(20)]
    far = [
        np.mean([float(model.worse(x, y + by, y, *d).mean()) for d in drawn]) for by in (0.3, 1, 2)
    ]
    assert 0 < far[0] < far[1] < far[2]
    near = y + 0.5
    near.requires_grad_(True)
    worse = sum(model.worse(x, near, y, *d).mean() for d in drawn)
    (pull,) = torch.autograd.grad(worse, near)
    assert (pull > 0).float().mean() > 0.8  # down it goes to the curve


def test_without_its_say_it_is_behaviour_cloning():
    demos = curve()
    alone = BC(updates=200, hold_out=0.0, learning_rate=SMALL.learning_rate).clone(
        demos, Seeds(0)("learn")
    )
    silenced = replace(SMALL, weight=0.0, model_updates=5).clone(demos, Seeds(0)("learn"))
    loud = replace(SMALL, model_updates=5).clone(demos, Seeds(0)("learn"))
    np.testing.assert_array_equal(silenced.act(demos.observations), alone.act(demos.observations))
    np.testing.assert_array_equal(silenced.std, alone.std)
    assert not np.array_equal(loud.act(demos.observations), alone.act(demos.observations))


def test_more_rows_are_learnt_for_more_updates():
    demos = curve(64)
    learner = replace(SMALL, batch_size=20 * len(demos), model_updates=2, width=8)

    def acts(updates):
        policy = replace(learner, updates=updates).clone(demos, Seeds(0)("learn"))
        return policy.act(demos.observations)

    np.testing.assert_array_equal(acts(None), acts(round(PASSES / 20)))
    assert not np.array_equal(acts(None), acts(round(PASSES / 20) + 1))


def test_the_model_stays_as_it_was_while_the_actor_learns(monkeypatch):
    _, model, before = caught(monkeypatch, replace(SMALL, model_updates=20), curve())
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key]), key
    assert all(p.grad is None or not p.requires_grad for p in model.parameters())


def test_its_say_alone_brings_a_policy_to_the_curve(trained):
    model, x, y = trained
    means = (y + 0.5).clone().requires_grad_(True)
    optimiser, stream = torch.optim.Adam([means], lr=0.02), generator(Seeds(0)("draw"))
    for _ in range(100):
        worse = model.worse(x, means, y, *model.draw(stream, len(x)))
        optimiser.zero_grad()
        torch.relu(worse).mean().backward()
        optimiser.step()
    assert float((means - y).abs().mean().detach()) < 0.25


def test_the_curve_is_learnt():
    demos = curve()
    policy = replace(SMALL, updates=800).clone(demos, Seeds(0)("learn"))
    assert np.abs(policy.act(demos.observations) - demos.actions).mean() < 0.05
