"""Policies: acting, units, files."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from elute.errors import EluteError
from elute.onnx import export_onnx
from elute.policy import GaussianPolicy, load_policy, save_policy


def policy(*, squashed=False, low=-1.0, high=1.0, seed=0):
    rng = np.random.default_rng(seed)
    sizes = [4, 7, 5, 2]
    layers = tuple(
        (rng.normal(size=(a, b)).astype("f4"), rng.normal(size=b).astype("f4"))
        for a, b in pairwise(sizes)
    )
    return GaussianPolicy(
        layers=layers,
        log_std=np.log([0.5, 0.1]),
        mean=rng.normal(size=4),
        scale=rng.uniform(1, 2, 4),
        low=np.full(2, low),
        high=np.full(2, high),
        squashed=squashed,
        about={"task": "toy", "seed": 3},
    )


def by_hand(policy, observations):
    x = (observations - policy.mean) / policy.scale
    (w0, b0), (w1, b1), (w2, b2) = policy.layers
    return np.tanh(np.tanh(x @ w0 + b0) @ w1 + b1) @ w2 + b2


OBSERVATIONS = np.random.default_rng(1).normal(size=(50, 4))


def test_the_mean_action_is_the_network_in_the_policys_units():
    free = policy(low=-np.inf, high=np.inf)
    np.testing.assert_allclose(free.act(OBSERVATIONS), by_hand(free, OBSERVATIONS), atol=1e-5)


def test_unsquashed_actions_are_clipped_and_squashed_ones_bent():
    raw = by_hand(policy(), OBSERVATIONS)
    np.testing.assert_allclose(policy().act(OBSERVATIONS), np.clip(raw, -1, 1), atol=1e-5)
    bent = policy(squashed=True, low=-2.0, high=4.0).act(OBSERVATIONS)
    np.testing.assert_allclose(bent, 1 + 3 * np.tanh(raw), atol=1e-5)


def test_sampling_has_the_policys_spread():
    one = np.zeros((20000, 4))
    left = policy().act(one, np.random.default_rng(0)) - policy().act(one)
    np.testing.assert_allclose(left.std(axis=0), [0.5, 0.1], rtol=0.02)
    np.testing.assert_allclose(left.mean(axis=0), 0, atol=0.02)


def test_predict_is_that_of_stable_baselines():
    given = policy()
    action, state = given.predict(OBSERVATIONS[0], deterministic=True)
    assert action.shape == (2,)
    assert state is None
    np.testing.assert_allclose(action, given.act(OBSERVATIONS[:1])[0])
    batch, _ = given.predict(OBSERVATIONS, deterministic=False, rng=np.random.default_rng(0))
    assert batch.shape == (50, 2)
    assert (np.abs(batch) <= 1).all()


@pytest.mark.parametrize("given", [policy(), policy(squashed=True), policy(low=-np.inf)])
def test_a_file_gives_the_same_policy_back(given, tmp_path):
    save_policy(given, tmp_path / "p.safetensors")
    back = load_policy(tmp_path / "p.safetensors")
    assert np.array_equal(back.act(OBSERVATIONS), given.act(OBSERVATIONS))
    assert (back.about, back.squashed) == (given.about, given.squashed)
    assert np.array_equal(back.std, given.std)


def test_layers_that_do_not_fit_are_refused():
    given = policy()
    with pytest.raises(EluteError, match="do not fit"):
        replace(given, log_std=np.zeros(3))
    with pytest.raises(EluteError, match="do not fit"):
        replace(given, layers=given.layers[1:])


@pytest.mark.parametrize("content", [b"", b"not a policy", b"\x00" * 100])
def test_what_is_no_policy_is_refused(content, tmp_path):
    path = tmp_path / "p.safetensors"
    path.write_bytes(content)
    with pytest.raises(EluteError, match="no policy"):
        load_policy(path)


def test_a_policy_with_broken_weights_is_refused(tmp_path):
    given = policy()
    weights, bias = given.layers[0]
    broken = replace(given, layers=((weights * np.nan, bias), *given.layers[1:]))
    save_policy(broken, tmp_path / "p.safetensors")
    with pytest.raises(EluteError, match="not finite"):
        load_policy(tmp_path / "p.safetensors")


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(EluteError, match="no such file"):
        load_policy(tmp_path / "p.safetensors")


@pytest.mark.parametrize("given", [policy(), policy(squashed=True, high=3.0)])
def test_the_onnx_model_acts_alike(given, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is an extra")
    export_onnx(given, tmp_path / "p.onnx")
    session = runtime.InferenceSession(tmp_path / "p.onnx", providers=["CPUExecutionProvider"])
    for n in (1, 50):
        (actions,) = session.run(None, {"observations": OBSERVATIONS[:n].astype("f4")})
        np.testing.assert_allclose(actions, given.act(OBSERVATIONS[:n]), atol=1e-5)
    assert session.get_modelmeta().custom_metadata_map["task"] == "toy"
