"""`elute train`, as typed."""

import json

import numpy as np
import pytest
from pyarrow import parquet

from elute.demos.files import save
from elute.policy import load_policy
from learners.point_mass import both

QUICK = ("--set", "updates=20")


@pytest.fixture
def files(tmp_path):
    demos = both()
    save(demos.optimal, tmp_path / "good.npz")
    save(demos.supplementary, tmp_path / "noisy.npz")
    return tmp_path


def arguments(folder, *more):
    return (
        *("--optimal", folder / "good.npz", "--supplementary", folder / "noisy.npz"),
        *("--bounds=-1,1", "-o", folder / "out", *more),
    )


def test_one_policy_for_each_seed_the_same_with_any_number_of_jobs(run_here, files):
    printed = {}
    for jobs in (1, 2):
        more = ("--seed", 3, "--seeds", 2, "--jobs", jobs, "--json", *QUICK)
        code, out, _ = run_here("train", "bc", *arguments(files, *more))
        assert code == 0
        printed[jobs] = {p.name: p.read_bytes() for p in (files / "out").glob("*.safetensors")}
        assert [row["seed"] for row in json.loads(out)["seeds"]] == [3, 4]
    assert sorted(printed[1]) == ["seed-3.safetensors", "seed-4.safetensors"]
    assert printed[1] == printed[2]
    about = load_policy(files / "out" / "seed-3.safetensors").about
    assert (about["method"], about["seed"]) == ("bc", 3)


@pytest.mark.parametrize("how", [("gaussian",), ("wiener", "--reverse-step", 60)])
def test_purifying_first_is_training_on_the_purified_file(run_here, files, how):
    good, noisy, clean = (files / f"{name}.npz" for name in ("good", "noisy", "clean"))
    method, *more = how
    done = run_here("purify", noisy, "--optimal", good, "-o", clean, "--method", method, *more)
    assert done[0] == 0, done[2]
    at_once = run_here("train", "bc", *arguments(files, "--purify", method, *more, *QUICK))
    assert at_once[0] == 0, at_once[2]
    policy = load_policy(files / "out" / "seed-0.safetensors")
    clean.rename(noisy)
    assert run_here("train", "bc", *arguments(files, *QUICK))[0] == 0
    again = load_policy(files / "out" / "seed-0.safetensors")
    probe = both().all.observations
    np.testing.assert_array_equal(policy.act(probe), again.act(probe))


def test_the_step_is_chosen_for_each_seed(run_here, files):
    small = ("--rows", 60, "--optimal-rows", 40, *QUICK)
    code, out, _ = run_here(
        "train", "bc", *arguments(files, *small, "--purify", "diffusion", "--json")
    )
    assert code == 0
    step = json.loads(out)["seeds"][0]["reverse_step"]
    assert step in (0, 10, 30, 60, 100, 150, 200, 300)
    about = load_policy(files / "out" / "seed-0.safetensors").about
    assert about["reverse_step"] == step


def test_event_files_on_request(run_here, files):
    assert run_here("train", "bc", *arguments(files, "--tensorboard", *QUICK))[0] == 0
    assert list((files / "out" / "tensorboard" / "seed-0").glob("events*"))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("bcc",), "did you mean bc"),
        (("bc", "--preset", "best"), "no preset of bc"),
        (("bc", "--set", "updates=x"), "valid integer"),
        (("bc", "--weights", "npz"), "weighs no rows"),
        (("bc", "--reverse-step", "10"), "go with --purify"),
        (("bc", "--purify", "magic"), "no method"),
        (("bc", "--purify", "nearest", "--target", "joint"), "--target"),
        (("bc", "--task", "hopper"), "hopper has 11 and 3"),
        (("bc", "--task", "hoper"), "did you mean hopper"),
        (("bc", "--bounds", "1,-1"), "the lower first"),
        (("bc", "--seeds", "0"), "seeds"),
    ],
)
def test_what_cannot_work_is_refused_before_any_work(run_here, files, given, says):
    code, _, err = run_here("train", *given[:1], *arguments(files, *given[1:]))
    assert code == 2
    assert says in err
    assert not list(files.glob("out/*"))


def test_a_missing_set_is_named(run_here, files):
    code, _, err = run_here("train", "bc-opt", "--supplementary", files / "noisy.npz", "-o", files)
    assert code == 2
    assert "no optimal demonstrations" in err
    code, _, err = run_here("train", "bc", "-o", files / "out")
    assert code == 2
    assert "--optimal, --supplementary" in err


def test_a_run_that_diverges_keeps_its_last_good_weights_and_exits_with_1(run_here, files):
    wild = ("--set", "learning_rate=1e30", "--set", "updates=500")
    code, _, err = run_here("train", "bc", *arguments(files, *wild))
    assert code == 1
    assert "not finite at update" in err
    assert not (files / "out" / "seed-0.safetensors").exists()
    kept = load_policy(files / "out" / "diverged-0.safetensors")
    assert np.isfinite(kept.act(both().all.observations)).all()


def test_policies_from_before_are_pointed_at(run_here, files):
    run_here("train", "bc", *arguments(files, "--seeds", 2, *QUICK))
    _, _, err = run_here("train", "bc", *arguments(files, *QUICK))
    assert "holds seed-1.safetensors from before" in err


def test_help_names_the_methods(run_here):
    code, out, _ = run_here("train", "--help")
    assert code == 0
    assert "METHOD" in out
    assert "bcnd" in out


def test_a_training_that_diverges_does_not_leave_an_older_policy(run_here, files):
    assert run_here("train", "bc", *arguments(files, *QUICK))[0] == 0
    wild = ("--set", "learning_rate=1e30", "--set", "updates=3", "--set", "hold_out=0")
    assert run_here("train", "bc", *arguments(files, *wild))[0] == 1
    assert [p.name for p in (files / "out").glob("*.safetensors")] == ["diverged-0.safetensors"]


def test_bounds_that_are_given_win_over_those_of_a_preset(run_here, files):
    more = ("--preset", "paper", "--set", "updates=5", "--bounds=-3,3", "-o", files / "out")
    code, *_ = run_here("train", "bc", "--optimal", files / "good.npz", *more)
    assert code == 0
    assert load_policy(files / "out" / "seed-0.safetensors").high.tolist() == [3.0]


def test_a_policy_says_how_it_was_made(run_here, files):
    more = ("--purify", "wiener", "--reverse-step", 30, *QUICK)
    assert run_here("train", "bc", *arguments(files, *more))[0] == 0
    about = load_policy(files / "out" / "seed-0.safetensors").about
    assert about["reverse_step"] == 30
    assert about["settings"] == {"updates": 20}
    assert about["purifier"]["method"] == "wiener"


@pytest.mark.parametrize("how", [("wiener",), ("diffusion", "--target", "joint")])
def test_purified_states_are_refused_before_any_work(run_here, files, how):
    code, _, err = run_here("train", "demodice", *arguments(files, "--purify", *how))
    assert code == 2
    assert "--target inpaint" in err
    assert not list(files.glob("out/*"))


def test_weights_of_rows_are_written_for_others(run_here, files):
    for format in ("npz", "parquet"):
        more = ("--weights", format, "--set", "updates=5")
        assert run_here("train", "dwbc", *arguments(files, *more))[0] == 0
    table = parquet.read_table(files / "out" / "weights-0.parquet").to_pydict()
    assert not (files / "out" / "weights-0.npz").exists()  # of the training before
    assert table["index"] == list(range(len(both().all)))
    assert min(table["weight"]) >= 0
