"""`elute purify` as a user types it."""

import json
import signal
import time
from dataclasses import replace

import h5py
import numpy as np
import pytest

from commands import elute, started
from elute.cli import purify
from elute.cli.purify import MOST_FINDINGS
from elute.demos.audit import sample
from elute.demos.corrupt import corrupt
from elute.demos.files import load, save
from elute.demos.pointmass import pointmass
from elute.diffusion.ddpm import Training
from elute.errors import EluteError
from elute.purify.artefact import load_transform, save_transform
from elute.purify.diffusion import DiffusionPurifier
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet


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


@pytest.mark.slow
def test_auto_cleans_actions_best_and_says_which_step_would_teach_best(files):
    model = files / "chosen.purifier"
    given = ("purify", files / "noisy.hdf5", "--optimal", files / "good.hdf5")
    done = elute(*given, "-o", files / "auto.hdf5", "--save-model", model, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    errors = {int(step): value for step, value in report["candidates"].items()}
    assert report["reverse_step"] == min(errors, key=errors.get)
    assert report["reverse_step_for_policy"] in errors
    assert error(files / "auto.hdf5") < error(files / "noisy.hdf5")
    assert load_transform(model).max_step == max(errors)  # as those that were compared


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
        (("--reverse-step", "-1"), "expected auto or a number"),
        (("--reverse-step", "lots"), "expected auto or a number"),
        (("--reverse-step", "1001"), "expected 0 to 1000"),
        (("--method", "wiener", "--reverse-step", "1001"), "expected 0 to 1000"),
        (("--optimal-rows", "1"), "too few to choose"),
        (("--optimal-rows", "1", "--reverse-step", "50"), "D_o has one row"),
        (("--optimal-rows", "0"), "--optimal-rows"),
        (("--model", "nowhere.purifier"), "no such file"),
        (("--model", "m", "--method", "wiener"), "--method wiener does not go with --model"),
        (("--model", "m", "--preset", "paper"), "--preset paper does not go with --model"),
        (("--save-model", "m", "--method", "mean"), "mean has no model to save"),
        (("--save-model", "nowhere/m"), "does not exist"),
        (("--figure", "before-after.jpg"), "figures end in .png, .pdf, .svg"),
        (("--figure", "nowhere/f.png"), "does not exist"),
        (("--method", "mean", "--target", "inpaint"), "targets of mean are joint, action"),
        (
            ("--method", "nearest", "--reverse-step", "5"),
            "--reverse-step: not for --method nearest",
        ),
        (("--method", "median", "--preset", "paper"), "--preset: not for --method median"),
        (("--preset", "reference", "--reverse-step", "1000"), "999 is its last"),
        (("--model", "."), "it is a folder"),
        (("--bounds=-1,1",), "--bounds goes with --clip"),
        (("--clip", "--bounds", "one"), "expected LO,HI"),
    ],
)
def test_mistakes_are_explained_and_nothing_is_written(files, refused, arguments, said):
    assert said in refused(files / "noisy.hdf5", files / "good.hdf5", *arguments)


@pytest.fixture
def refused(files, run_here):
    """What is said when purification is refused."""

    def run(noisy, good, *arguments):
        out = files / "never.hdf5"
        code, _, said = run_here("purify", noisy, "--optimal", good, "-o", out, *arguments)
        assert code == 2
        assert not out.exists()
        return said

    return run


def test_data_that_cannot_be_purified_is_refused(files, refused):
    good = load(files / "good.hdf5")
    spoilt, other = files / "nan.hdf5", files / "other.hdf5"
    actions = good.actions.copy()
    actions[5, 0] = np.nan
    save(replace(good, actions=actions), spoilt, format="robomimic")
    save(
        Demonstrations(good.observations[:, :4], good.actions, good.episodes),
        other,
        format="robomimic",
    )
    for noisy, optimal in ((files / "noisy.hdf5", spoilt), (spoilt, files / "good.hdf5")):
        said = refused(noisy, optimal)
        assert "error: " in said
        assert "not finite" in said
        assert f"elute demos audit {spoilt} --fix OUT" in said
    assert "has 4" in refused(other, files / "good.hdf5")
    empty = files / "empty.h5"
    with h5py.File(empty, "w") as file:
        file.create_group("data")
    assert "empty.h5" in refused(files / "noisy.hdf5", empty)


def test_a_model_of_another_shape_is_refused(files, refused):
    good = load(files / "good.hdf5")
    narrow = Demonstrations(good.observations[:, :4], good.actions, good.episodes)
    quick = DiffusionPurifier(reverse_step=5, training=Training(updates=2))
    save_transform(quick.fit(DemoSet(narrow, narrow), Seeds(0)), files / "narrow.purifier")
    said = refused(files / "noisy.hdf5", files / "good.hdf5", "--model", files / "narrow.purifier")
    assert "6 observation and 2 action columns; the model was fitted on 4 and 2" in said


def test_a_model_can_be_used_with_another_target(files):
    good, noisy = load(files / "good.hdf5"), load(files / "noisy.hdf5")
    quick = DiffusionPurifier(reverse_step=50, training=Training(updates=20))
    save_transform(quick.fit(DemoSet(good, noisy), Seeds(0)), files / "quick.purifier")
    out = files / "joint.hdf5"
    done = elute("purify", files / "noisy.hdf5", "--optimal", files / "good.hdf5", "-o", out,
                 "--model", files / "quick.purifier", "--target", "joint", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["target"] == "joint"
    assert (report["reverse_step"], report["reverse_step_why"]) == (50, "the model's own")
    assert not np.array_equal(load(out).observations, noisy.observations)


def test_actions_are_clipped_on_request(files):
    out = files / "clipped.hdf5"
    done = elute("purify", files / "noisy.hdf5", "--optimal", files / "good.hdf5", "-o", out,
                 "--method", "identity", "--clip", "--bounds=-1,1")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "clipped to -1..1 (--bounds)" in done.stderr
    before, after = load(files / "noisy.hdf5"), load(out)
    np.testing.assert_array_equal(after.actions, np.clip(before.actions, -1, 1))
    assert np.abs(before.actions).max() > 1
    assert after.provenance.steps[-1]["operation"] == "clip"


def test_a_figure_is_drawn(files):
    pytest.importorskip("matplotlib", reason="figures need elute[report]")
    figure = files / "before-after.png"
    done = elute("purify", files / "noisy.hdf5", "--optimal", files / "good.hdf5",
                 "-o", files / "drawn.hdf5", "--method", "wiener", "--figure", figure)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"wrote {figure}" in done.stderr
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_the_model_is_not_overwritten_by_the_output(files):
    model = files / "precious.purifier"
    model.write_bytes(b"precious")
    done = elute("purify", files / "noisy.hdf5", "--optimal", files / "good.hdf5", "-o", model,
                 "--model", model, "--to", "robomimic")  # fmt: skip
    assert done.returncode == 2
    assert model.read_bytes() == b"precious"
    done = elute("purify", files / "noisy.hdf5", "--optimal", files / "good.hdf5",
                 "-o", files / "o.hdf5", "--save-model", files / "a.png",
                 "--figure", files / "a.png")  # fmt: skip
    assert done.returncode == 2
    assert "stands for two outputs" in done.stderr


def test_a_training_survives_what_fails_after_it(files, run_here, monkeypatch):
    out = files / "late.hdf5"
    arguments = ["purify", files / "noisy.hdf5", "--optimal", files / "good.hdf5", "--rows", 50,
                 "--optimal-rows", 3, "--reverse-step", 5, "-o", out]  # fmt: skip
    checkpoint = files / ".late.hdf5.training"

    def full_disk(*_, **__):
        raise EluteError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(purify, "save", full_disk)
        assert run_here(*arguments)[0] == 2
    assert checkpoint.exists()
    code, _, said = run_here(*arguments, "--seed", 1)
    assert code == 0
    assert "is of another training; beginning anew" in said
    assert not checkpoint.exists()
    assert out.exists()


@pytest.mark.slow
def test_the_released_quirks_work_from_the_command_line(files):
    out = files / "reference.hdf5"
    done = elute("purify", files / "noisy.hdf5", "--optimal", files / "good.hdf5", "--rows", 200,
                 "--optimal-rows", 20, "--preset", "reference", "-o", out, "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["reverse_step"] == 11  # one more than it says
    assert len(load(out)) == 200


def test_what_moved_is_counted_over_all_rows(files, run_here):
    many, out = files / "many.npz", files / "smooth.npz"
    save(pointmass(150, noise=0.3), many)
    assert len(load(many)) > 5000  # more than the sample that everything else looks at
    code, printed, _ = run_here("purify", many, "--optimal", files / "good.hdf5", "-o", out,
                                "--method", "mean", "--json")  # fmt: skip
    assert code == 0
    report = json.loads(printed)
    true = np.abs(load(out).pairs - load(many).pairs).mean(axis=0)
    np.testing.assert_allclose(list(report["moved"].values()), true)
    assert report["target"] == "action"


def test_two_outputs_of_one_name_are_refused(files):
    out = files / "same.png"
    done = elute("purify", files / "noisy.hdf5", "--optimal", files / "good.hdf5", "-o", out,
                 "--figure", out)  # fmt: skip
    assert done.returncode == 2
    assert "stands for two outputs" in done.stderr


@pytest.mark.slow
def test_an_interrupted_training_goes_on_where_it_was(files):
    arguments = ["purify", files / "noisy.hdf5", "--optimal", files / "good.hdf5",
                 "--reverse-step", "120"]  # fmt: skip
    whole, out = files / "whole.hdf5", files / "interrupted.hdf5"
    assert elute(*arguments, "-o", whole).returncode == 0
    process = started(*arguments, "-o", out)
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


@pytest.mark.parametrize("rows", [(), ("--optimal-rows", "50")])
def test_a_misaligned_optimal_set_is_warned_of(files, data_folder, rows):
    out = files / "cheetah.h5"
    expert = data_folder / "halfcheetah/expert.h5"
    done = elute("purify", data_folder / "halfcheetah/d1-l1_action-noise-0.60.h5", "--rows", "200",
                 "--optimal", expert, "-o", out, "--method", "identity", *rows)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"warning: {expert}: states and actions are misaligned by 1 row" in done.stderr
    assert f"elute demos audit {expert} --fix OUT" in done.stderr


def test_what_the_audit_finds_is_said_in_a_few_lines(files):
    good = load(files / "good.hdf5")
    twice = good.select([0]) + good.select([0]) + good.select([1])
    save(twice, files / "twice.hdf5", format="robomimic")
    done = elute("purify", files / "twice.hdf5", "--optimal", files / "good.hdf5",
                 "-o", files / "audited.hdf5", "--method", "identity", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    warnings = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert any("repeat an earlier row" in line for line in warnings)
    assert len(warnings) <= MOST_FINDINGS + 1
    assert f"elute demos audit {files / 'twice.hdf5'} --optimal" in warnings[-1]


def test_clean_files_are_not_warned_of(files):
    done = elute("purify", files / "noisy.hdf5", "--optimal", files / "good.hdf5",
                 "-o", files / "quiet.hdf5", "--method", "identity")  # fmt: skip
    assert "warning" not in done.stderr


def test_a_large_file_is_only_glanced_at(monkeypatch):
    monkeypatch.setattr(purify, "SAMPLE_ROWS", 100)
    monkeypatch.setattr(sample, "SAMPLE_ROWS", 100)
    monkeypatch.setattr(sample, "BLOCK_ROWS", 10)
    driven = pointmass(30)
    glance = purify._glance(driven)
    assert 50 <= glance.episodes.n_rows <= 100
    assert glance.provenance == driven.provenance
    assert purify._glance(driven.first(100)).episodes.n_rows == 100


def test_filter_keys_say_what_was_purified_and_what_was_taken_as_optimal(files, run_here):
    noisy, out = files / "keys.hdf5", files / "keys-out.hdf5"
    save(load(files / "noisy.hdf5").select(range(5)), noisy, format="robomimic")
    run_here(
        "purify", noisy, "--optimal", f"{noisy}#episodes=1,3", "-o", out, "--method", "nearest"
    )
    with h5py.File(out) as file:
        assert file["mask/purified"][:].tolist() == [f"demo_{i}".encode() for i in range(5)]
        assert file["mask/optimal"][:].tolist() == [b"demo_1", b"demo_3"]
    assert len(load(f"{out}#optimal").episodes) == 2
    other = files / "keys-out.npz"
    run_here("purify", noisy, "--optimal", files / "good.hdf5", "-o", other, "--method", "nearest")
    assert load(other).episodes.filters == [("purified",)] * 5
