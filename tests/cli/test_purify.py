"""`elute purify` as a user types it."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from elute.demos.corrupt import corrupt
from elute.demos.files import load, save
from elute.demos.pointmass import pointmass


def elute(*arguments):
    command = [sys.executable, "-m", "elute", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("purify")
    driven = pointmass(30, noise=0.02)
    save(driven.select(range(6)), folder / "good.hdf5", format="robomimic")
    noisy = corrupt(driven.select(range(6, 30)), "gaussian", 1.0)
    save(noisy, folder / "noisy.hdf5", format="robomimic")
    return folder


def error(path):
    demos = load(path)
    return float(((demos.actions - demos.extras["clean_actions"]) ** 2).mean())


@pytest.mark.slow
def test_purify_with_a_given_step_reuses_its_model_and_helps(files):
    good, noisy, out = files / "good.hdf5", files / "noisy.hdf5", files / "out.hdf5"
    model = files / "pointmass.purifier"
    done = elute("purify", noisy, "--optimal", good, "-o", out, "--reverse-step", "200",
                 "--save-model", model, "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["reverse_step"], report["target"]) == (200, "inpaint")
    assert report["rows"] == len(load(noisy))
    assert set(report["candidates"]) == {"0", "200"}
    assert report["heldout_error"] == {
        "before": report["candidates"]["0"], "after": report["candidates"]["200"]
    }  # fmt: skip
    assert report["distance"]["after"] < report["distance"]["before"]
    before, after = load(noisy), load(out)
    np.testing.assert_array_equal(after.observations, before.observations)
    assert error(out) < 0.5 * error(noisy)
    assert (after.extras["moved"] > 0).all()
    assert after.provenance.steps[-1]["operation"] == "purify"
    assert after.provenance.format == "robomimic"

    again = files / "again.hdf5"
    done = elute("purify", noisy, "--optimal", good, "-o", again, "--model", model)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(load(again).actions, after.actions)


@pytest.mark.parametrize("method", ["wiener", "gaussian", "mean", "median", "nearest", "identity"])
def test_other_methods(files, method):
    out = files / f"{method}.hdf5"
    done = elute("purify", files / "noisy.hdf5", "--optimal", files / "good.hdf5", "-o", out,
                 "--method", method, "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["method"] == method
    if method == "identity":
        np.testing.assert_array_equal(load(out).pairs, load(files / "noisy.hdf5").pairs)
    else:
        assert error(out) < error(files / "noisy.hdf5")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--method", "magic"), "'magic' is no method"),
        (("--target", "soul"), "'soul' is no target"),
        (("--preset", "best"), "'best' is no preset"),
        (("--reverse-step", "-3"), "expected auto or a number"),
        (("--reverse-step", "5000"), "expected 0 to 1000"),
        (("--optimal-rows", "1"), "too few"),
        (("--model", "nowhere.purifier"), "no such file"),
    ],
)
def test_mistakes_are_explained_and_nothing_is_written(files, arguments, said):
    out = files / "never.hdf5"
    done = elute("purify", files / "noisy.hdf5", "--optimal", files / "good.hdf5", "-o", out,
                 *arguments)  # fmt: skip
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()


@pytest.mark.slow
def test_an_interrupted_training_goes_on_where_it_was(files):
    arguments = ["purify", files / "noisy.hdf5", "--optimal", files / "good.hdf5",
                 "--reverse-step", "120"]  # fmt: skip
    whole, out = files / "whole.hdf5", files / "interrupted.hdf5"
    assert elute(*arguments, "-o", whole).returncode == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "elute", *map(str, [*arguments, "-o", out])],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    checkpoint = files / ".interrupted.hdf5.training"
    while not checkpoint.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not out.exists()
    done = elute(*arguments, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "going on with the training" in done.stderr
    assert not checkpoint.exists()
    np.testing.assert_array_equal(load(out).actions, load(whole).actions)


def test_an_output_that_cannot_be_written_is_refused_at_once(files):
    good = files / "good.hdf5"
    for out, said in ((files / "no" / "out.hdf5", "does not exist"), (good, "is the input")):
        done = elute("purify", files / "noisy.hdf5", "--optimal", good, "-o", out)
        assert done.returncode == 2
        assert said in done.stderr


def test_a_misaligned_optimal_set_is_warned_of(files, data_folder):
    out = files / "cheetah.h5"
    done = elute("purify", data_folder / "halfcheetah/d1-l1_action-noise-0.60.h5", "--rows", "200",
                 "--optimal", data_folder / "halfcheetah/expert.h5", "-o", out,
                 "--method", "identity")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "expert.h5 is misaligned by 1 rows" in done.stderr
    assert "--fix OUT" in done.stderr
