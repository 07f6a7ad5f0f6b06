"""Files of trained purifiers: what is none is refused, and a failed write leaves the old one."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.torch import save_file

from elute.demos.pointmass import pointmass
from elute.diffusion.ddpm import Training
from elute.errors import EluteError
from elute.purify.artefact import VERSION, load_transform, save_transform
from elute.purify.diffusion import DiffusionPurifier
from elute.purify.empirical import EmpiricalPurifier
from elute.rng import Seeds
from elute.types import DemoSet

DEMOS = DemoSet(pointmass(1), pointmass(1, seed=1))
TRANSFORM = DiffusionPurifier(reverse_step=5, training=Training(updates=2)).fit(DEMOS, Seeds(0))


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    save_transform(TRANSFORM, path)
    return path


def read(path):
    with safe_open(path, framework="pt") as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return json.loads(file.metadata()["elute"]), weights


def test_the_header_says_what_it_is(model):
    header, _ = read(model)
    assert header["version"] == VERSION
    assert header["purifier"]["reverse_step"] == 5
    assert header["n_observations"] == 6
    assert header["action_columns"] == [{"key": "force", "roles": ["continuous"] * 2}]
    assert len(header["normaliser"]["mean"]) == 8


def test_another_step_can_be_asked_of_a_loaded_model(model):
    loaded = load_transform(model).at(2)
    assert loaded(DEMOS.supplementary).provenance.steps[-1]["reverse_step"] == 2
    with pytest.raises(EluteError, match="trained up to 5"):
        loaded.at(6)


def drop_settings(header):
    del header["purifier"]


def other_columns(header):
    header["n_observations"] = 5


def wrong_type(header):
    header["purifier"]["reverse_step"] = "many"


def out_of_range(header):
    header["purifier"]["reverse_step"] = 5000


def other_architecture(header):
    header["purifier"]["architecture"] = "reference"


def other_kind(header):
    header["kind"] = "policy"


@pytest.mark.parametrize(
    "damage",
    [drop_settings, other_columns, wrong_type, out_of_range, other_architecture, other_kind],
)
def test_a_header_that_does_not_fit_is_refused(model, damage):
    header, weights = read(model)
    damage(header)
    save_file(weights, model, metadata={"elute": json.dumps(header)})
    with pytest.raises(EluteError, match="no purifier"):
        load_transform(model)


def test_another_version_is_refused(model):
    header, weights = read(model)
    save_file(weights, model, metadata={"elute": json.dumps(header | {"version": 99})})
    with pytest.raises(EluteError, match="version 99"):
        load_transform(model)


def test_files_that_are_none_are_refused(model, tmp_path):
    _, weights = read(model)
    bare, text, half = (tmp_path / name for name in ("bare", "text", "half"))
    save_file(weights, bare)
    text.write_text("{}")
    half.write_bytes(model.read_bytes()[:-100])
    for path in (bare, text, half, tmp_path):
        with pytest.raises(EluteError, match="no purifier"):
            load_transform(path)
    with pytest.raises(EluteError, match="no such file"):
        load_transform(tmp_path / "missing")


def test_the_oracle_is_not_stored(tmp_path):
    oracle = EmpiricalPurifier().fit(DEMOS, Seeds(0))
    with pytest.raises(EluteError, match="not stored"):
        save_transform(oracle, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(model, monkeypatch):
    before = model.read_bytes()

    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(EluteError, match="disk is full"):
        save_transform(TRANSFORM.at(3), model)
    assert model.read_bytes() == before
    assert [p.name for p in model.parent.iterdir()] == [model.name]


def test_constant_columns_are_remembered(tmp_path):
    actions = DEMOS.optimal.actions.copy()
    actions[:, 1] = 0.25
    still = DEMOS.optimal.with_pairs(np.hstack([DEMOS.optimal.observations, actions]), "hold")
    purifier = DiffusionPurifier(reverse_step=5, training=Training(updates=2))
    transform = purifier.fit(DemoSet(still, still), Seeds(0))
    save_transform(transform, tmp_path / "model")
    loaded = load_transform(tmp_path / "model")
    assert np.array_equal(loaded(still).pairs, transform(still).pairs)
    assert (loaded(still).actions[:, 1] == 0.25).all()
