"""What every online method promises, whatever it learns by."""

import math
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
import torch

from elute.errors import EluteError
from elute.experiment.methods import METHODS as NAMES
from elute.experiment.methods import find_method
from elute.learners.adversarial import OnlineMethod
from elute.learners.descent import DivergenceError
from elute.learners.imitate import imitate
from elute.policy import load_policy, save_policy
from elute.rng import Seeds
from elute.types import DemoSet
from learners.online import METHODS, task
from learners.point_mass import both, cost, expert, with_a_nan

every = pytest.mark.parametrize("name", METHODS)


def quick(name, env_steps=1000, **loop):
    method = METHODS[name]
    more = {"env_steps": env_steps, "check_every": 1000, "check_episodes": 2, **loop}
    method = replace(method, loop=replace(method.loop, **more))
    if hasattr(method, "confidence"):
        method = replace(method, confidence=replace(method.confidence, updates=20))
    return replace(method, warm_up=0) if hasattr(method, "warm_up") else method


def fit(method, demos=None, seed=0, **more):
    return imitate(method, demos or both(), task(), seed, **more)


def test_all_of_them_are_here():
    online = {name for name in NAMES if isinstance(find_method(name), OnlineMethod)}
    assert online == set(METHODS)
    assert all(method.name == name for name, method in METHODS.items())


@pytest.mark.slow
@every
def test_it_beats_the_noisy_demonstrator(name):
    noise = Seeds(3)("noise")
    noisy = cost(lambda s: expert(s) + 0.6 * noise.standard_normal((len(s), 1)))
    method = METHODS[name]
    if name == "sail":  # its rewards hardly differ at first
        method = replace(method, loop=replace(method.loop, env_steps=60_000))
    done = fit(method)
    assert cost(done.policy.act) < 0.9 * noisy
    assert done.mean[-1] > done.mean[0]


@every
def test_settings_are_frozen(name):
    method = METHODS[name]
    with pytest.raises(FrozenInstanceError):
        setattr(method, fields(method)[0].name, None)


@every
def test_streams_decide_and_demonstrations_and_torchs_own_are_left_alone(name):
    demos, stream = both(), torch.random.get_rng_state()
    before = [d.pairs.copy() for d in demos.given]
    probe = demos.all.observations
    first, again, other = (fit(quick(name), demos, seed).policy.act(probe) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    for pairs, d in zip(before, demos.given, strict=True):
        np.testing.assert_array_equal(d.pairs, pairs)
    assert torch.equal(stream, torch.random.get_rng_state())


@every
def test_a_saved_policy_acts_the_same_and_says_what_it_is(name, tmp_path):
    policy, probe = fit(quick(name)).policy, both().all.observations
    save_policy(policy, tmp_path / "p.safetensors")
    loaded = load_policy(tmp_path / "p.safetensors")
    np.testing.assert_array_equal(loaded.act(probe), policy.act(probe))
    assert loaded.about["method"] == name
    assert loaded.about["env_steps"] == 1000
    assert np.abs(policy.act(100 * probe)).max() <= 1.0


@every
def test_progress_and_the_curve_are_reported(name):
    rows = []
    done = fit(quick(name, env_steps=2000), log=rows.append)
    assert all(row["updates"] >= 20 and math.isfinite(row["update"]) for row in rows)
    told = [row for row in rows if "score" in row]
    assert [row["env_steps"] for row in told] == [1000, 2000] == list(done.steps)
    assert [row["score"] for row in told] == list(done.mean)
    assert {"expert_logit", "agent_logit", "critic_loss", "effective_rows"} <= told[0].keys()
    assert done.curve.keys() == {"steps", "mean", "stderr"}


@every
def test_values_that_are_not_finite_are_refused(name):
    with pytest.raises(EluteError, match="not finite"):
        fit(quick(name), with_a_nan(both()))


@every
def test_a_critic_that_is_no_number_stops_it(name):
    with pytest.raises(DivergenceError, match=r"critic's .* steps") as stopped:
        fit(quick(name, critic_rate=1e30))
    assert np.isfinite(stopped.value.policy.act(both().all.observations)).all()


@every
def test_a_missing_set_is_named(name):
    with pytest.raises(EluteError, match=r"no .*optimal.* demonstrations"):
        fit(quick(name), DemoSet(None, None))
