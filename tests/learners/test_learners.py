"""What every learner promises, whatever it learns by."""

import math
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
import torch

from elute.errors import EluteError
from elute.learners.actor import Design
from elute.learners.average import Average
from elute.learners.bc import BC
from elute.learners.bcnd import BCND
from elute.learners.dbc import DBC
from elute.learners.demodice import DemoDICE
from elute.learners.descent import Descent, DivergenceError
from elute.learners.dice import Values
from elute.learners.diffusion_bc import DiffusionBC
from elute.learners.dwbc import DWBC
from elute.learners.isw_bc import ISWBC
from elute.learners.ratio import Ratio
from elute.learners.self_weighted import SelfWeightedBC
from elute.learners.smodice import SMODICE
from elute.policy import load_policy, save_policy
from elute.rng import Seeds
from elute.types import DemoSet
from learners.point_mass import both, cost, demonstrations, expert, with_a_nan

SMALL = Design(bounds=(-1.0, 1.0))
RATIO, VALUES = Ratio(hidden=(20,), batch_size=64), Values(hidden=(20,), batch_size=64)
LEARNERS = {
    "bc": BC(updates=600, actor=SMALL),
    "bc-opt": BC(on="optimal", updates=600, actor=SMALL),
    "bc-nll": BC(loss="nll", updates=600, actor=SMALL),
    "dbc": DBC(updates=600, model_updates=200, actor=SMALL),
    "diffusion-bc": DiffusionBC(updates=600, bounds=(-1.0, 1.0)),
    "bcnd": BCND(updates=200, actor=SMALL),
    "bcnd-ensemble": BCND(members=3, rounds=2, updates=200, actor=SMALL),
    "self-weighted-bc": SelfWeightedBC(updates=600, actor=SMALL),
    "dwbc": DWBC(updates=300, actor=SMALL),
    "dwbc-printed": DWBC(updates=300, form="printed", actor=SMALL),
    "isw-bc": ISWBC(updates=600, actor=SMALL, ratio=RATIO),
    "demodice": DemoDICE(updates=600, actor=SMALL, ratio=RATIO, values=VALUES),
    "smodice": SMODICE(updates=600, actor=SMALL, ratio=RATIO, values=VALUES),
}
"""With few updates, and small networks beside the actor; all else as a user gets it."""
WEIGHING = [name for name, learner in LEARNERS.items() if hasattr(learner, "weigh")]
AVERAGING = [name for name, learner in LEARNERS.items() if hasattr(learner, "averaging")]
every = pytest.mark.parametrize("name", LEARNERS)


def quick(name):
    return replace(LEARNERS[name], updates=10)


def fit(learner, demos=None, seed=0, **more):
    return learner.fit(demos or both(), Seeds(seed)("learn"), **more)


@every
def test_it_brings_the_point_to_rest(name):
    noisy = cost(lambda s: expert(s) + 0.6 * Seeds(3)("noise").standard_normal((len(s), 1)))
    solved = cost(expert)
    assert solved < 0.7 * noisy  # or the task would tell nothing apart
    assert cost(fit(LEARNERS[name]).act) < solved + 0.5 * (noisy - solved)


@every
def test_settings_are_frozen(name):
    learner = LEARNERS[name]
    with pytest.raises(FrozenInstanceError):
        setattr(learner, fields(learner)[0].name, None)


@every
def test_demonstrations_and_torchs_stream_are_left_alone(name):
    demos, stream = both(), torch.random.get_rng_state()
    before = [(d.pairs.copy(), d.next_observations.copy()) for d in (demos.optimal, demos.all)]
    fit(quick(name), demos)
    for (pairs, following), d in zip(before, (demos.optimal, demos.all), strict=True):
        np.testing.assert_array_equal(d.pairs, pairs)
        np.testing.assert_array_equal(d.next_observations, following)
    assert torch.equal(stream, torch.random.get_rng_state())


@every
def test_every_network_learns(name, monkeypatch):
    begun = []

    def begin(self, *given):
        start(self, *given)
        begun.append((self.networks, self._good))

    start = Descent.__init__
    monkeypatch.setattr(Descent, "__init__", begin)
    fit(quick(name))
    assert begun
    for networks, before in begun:
        for part, network in networks.items():
            for key, value in network.state_dict().items():
                learns = key != "log_std"  # which plain BC takes from what is left over
                assert not (learns and torch.equal(value, before[part][key])), f"{part}.{key}"


@every
def test_the_same_stream_gives_the_same_policy_and_another_one_another(name):
    probe = both().all.observations
    first, again, other = (fit(quick(name), seed=s).act(probe) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@every
def test_a_saved_policy_acts_the_same(name, tmp_path):
    policy, probe = fit(quick(name)), both().all.observations
    save_policy(policy, tmp_path / "p.safetensors")
    loaded = load_policy(tmp_path / "p.safetensors")
    np.testing.assert_array_equal(loaded.act(probe), policy.act(probe))
    streams = [Seeds(5)("act") for _ in range(2)]
    sampled = [p.act(probe, rng) for p, rng in zip((policy, loaded), streams, strict=True)]
    np.testing.assert_array_equal(*sampled)
    assert loaded.about == policy.about
    assert loaded.about["method"]


@every
def test_actions_stay_within_bounds(name):
    far = 100 * both().all.observations
    assert np.abs(fit(quick(name)).act(far)).max() <= 1.0


@pytest.mark.parametrize("name", AVERAGING)
def test_the_policy_is_the_average_of_its_updates(name, monkeypatch):
    made = []

    def begin(self, *given):
        start(self, *given)
        made.append(self)

    start = Average.__init__
    monkeypatch.setattr(Average, "__init__", begin)
    policy, learner = fit(quick(name)), LEARNERS[name]
    last = made[-getattr(learner, "members", 1) :]
    biases = [average.network.body[0].bias.numpy(force=True) for average in last]
    np.testing.assert_array_equal(policy.layers[0][1], np.concatenate(biases))
    for average in last:
        assert average.updates == 10
        assert not any(torch.equal(mean, new) for mean, new in average.pairs)
    of_last_weights = fit(replace(quick(name), averaging=0.0))
    assert not np.array_equal(of_last_weights.layers[0][1], policy.layers[0][1])


@pytest.mark.parametrize("name", ["bc", "dbc", "isw-bc", "demodice"])
def test_the_deviation_is_that_of_the_averaged_policy(name):
    demos, learner = both(), quick(name)
    policy, weights = fit(learner, demos), np.ones(len(demos.all))
    if name in WEIGHING:
        weights = learner.weigh(demos, Seeds(0)("learn"))[1]
    left = policy.act(demos.all.observations) - np.clip(demos.all.actions, -1.0, 1.0)
    expected = np.sqrt(np.average(left**2, axis=0, weights=weights))
    np.testing.assert_allclose(policy.std, expected, rtol=1e-5)


@pytest.mark.parametrize("name", AVERAGING)
@pytest.mark.parametrize("averaging", [-0.1, 1.0])
def test_an_average_of_no_share_is_refused(name, averaging):
    with pytest.raises(EluteError, match="averaging"):
        replace(LEARNERS[name], averaging=averaging)


@every
def test_it_reports_progress(name):
    rows = []
    fit(quick(name), log=rows.append)
    assert rows
    assert all(row["updates"] >= 10 and math.isfinite(row["update"]) for row in rows)


@every
def test_values_that_are_not_finite_are_refused(name):
    with pytest.raises(EluteError, match="not finite"):
        fit(quick(name), with_a_nan(both()))


@every
def test_a_loss_that_is_no_number_stops_and_keeps_the_last_good_policy(name):
    learner = replace(LEARNERS[name], updates=1000, **wild(LEARNERS[name]))
    with pytest.raises(DivergenceError, match="at update") as stopped:
        fit(learner)
    assert np.isfinite(stopped.value.policy.act(both().all.observations)).all()


def wild(learner):
    """Learning rates that no descent survives."""
    return {f.name: 1e30 for f in fields(learner) if f.name.endswith("rate")}


@every
def test_a_missing_set_is_named(name):
    with pytest.raises(EluteError, match=r"no .*optimal.* demonstrations"):
        fit(quick(name), DemoSet(None, None))


@pytest.mark.parametrize("name", WEIGHING)
def test_weights_belong_to_the_rows_and_to_the_same_policy(name):
    demos = both()
    policy, weights = quick(name).weigh(demos, Seeds(0)("learn"))
    assert weights.shape == (len(demos.all),)
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    probe = demos.all.observations
    np.testing.assert_array_equal(policy.act(probe), fit(quick(name), demos).act(probe))


@pytest.mark.parametrize("name", WEIGHING)
def test_better_rows_weigh_more(name):
    demos = both()
    _, weights = LEARNERS[name].weigh(demos, Seeds(0)("learn"))
    noise = np.abs(demos.all.actions - demos.all.extras["clean_actions"])[:, 0]
    good, bad = weights[noise < 0.1].mean(), weights[noise > 0.6].mean()
    assert good > bad


def test_other_widths_are_refused():
    demos = demonstrations(2)
    wider = replace(demos, actions=np.repeat(demos.actions, 2, axis=1), action_columns=())
    with pytest.raises(EluteError, match="columns of actions"):
        DemoSet(demos, wider)
