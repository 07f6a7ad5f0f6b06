"""`elute train gail` and its kin, as typed."""

import json
import os
import signal
import sys
from pathlib import Path
from time import sleep

import numpy as np
import pytest

from commands import started
from elute.demos.files import save
from elute.policy import load_policy
from learners.point_env import NAME
from learners.point_mass import both

TESTS = Path(__file__).parents[1]
LOOP = {
    "batch": 1000,
    "lanes": 10,
    "check_every": 1000,
    "check_episodes": 2,
    "hidden": [16],
    "learning.hidden": [16],
}
SMALL = [part for k, v in LOOP.items() for part in ("--set", f"loop.{k}={json.dumps(v)}")]


@pytest.fixture
def files(tmp_path):
    demos = both()
    save(demos.optimal, tmp_path / "good.npz")
    save(demos.supplementary, tmp_path / "noisy.npz")
    return tmp_path


def arguments(folder, *more, task=NAME, out="out"):
    return (
        *("--optimal", folder / "good.npz", "--supplementary", folder / "noisy.npz"),
        *(("--task", task) if task else ()),
        *("-o", folder / out, *SMALL, *more),
    )


def test_a_policy_a_curve_and_the_pace(run_here, files):
    code, out, err = run_here("train", "gail", *arguments(files, "--steps", 2000, "--json"))
    assert code == 0, err
    (seed,) = json.loads(out)["seeds"]
    assert seed["curve"]["steps"] == [1000, 2000]
    assert len(seed["curve"]["mean"]) == len(seed["curve"]["stderr"]) == 2
    assert "1,000 steps: mean return" in err
    assert "steps/s" in err
    assert "min to go" in err
    about = load_policy(files / "out" / "seed-0.safetensors").about
    assert (about["method"], about["env_steps"], about["task"]) == ("gail", 2000, NAME)


def test_purified_first_is_gail_on_the_purified_file(run_here, files):
    steps = ("--steps", 1000)
    done = run_here("train", "gail", *arguments(files, "--purify", "gaussian", *steps))
    assert done[0] == 0, done[2]
    clean = files / "clean.npz"
    given = ("--optimal", files / "good.npz", "-o", clean, "--method", "gaussian")
    assert run_here("purify", files / "noisy.npz", *given)[0] == 0
    clean.rename(files / "noisy.npz")
    done = run_here("train", "gail", *arguments(files, *steps, out="again"))
    assert done[0] == 0, done[2]
    one, two = (load_policy(files / f / "seed-0.safetensors") for f in ("out", "again"))
    probe = both().all.observations
    np.testing.assert_array_equal(one.act(probe), two.act(probe))


def test_a_killed_training_goes_on_and_ends_the_same(run_here, files, monkeypatch):
    whole = run_here("train", "gail", *arguments(files, "--steps", 6000, "--json", out="whole"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), *sys.path]))
    process = started("train", "gail", *arguments(files, "--steps", 6000))
    state = files / "out" / "training" / "seed-0" / "state.safetensors"
    while not state.exists():
        assert process.poll() is None, process.stderr.read()
        sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert not (files / "out" / "seed-0.safetensors").exists()
    code, out, _ = run_here("train", "gail", *arguments(files, "--steps", 6000, "--json"))
    assert code == 0
    one, two = (json.loads(printed)["seeds"][0] for printed in (whole[1], out))
    assert one["curve"] == two["curve"]
    policies = [load_policy(files / f / "seed-0.safetensors") for f in ("whole", "out")]
    probe = both().all.observations
    np.testing.assert_array_equal(*(policy.act(probe) for policy in policies))


def test_event_files_on_request(run_here, files):
    more = ("--steps", 1000, "--tensorboard")
    assert run_here("train", "gail", *arguments(files, *more))[0] == 0
    (event,) = (files / "out" / "tensorboard" / "seed-0").glob("events*")
    whole = event.read_bytes()
    assert run_here("train", "gail", *arguments(files, *more))[0] == 0  # goes on, with nothing left
    assert event.read_bytes() == whole


def test_a_run_that_diverges_says_when_and_exits_with_1(run_here, files):
    wild = ("--steps", 3000, "--set", "loop.critic_rate=1e30")
    code, _, err = run_here("train", "gail", *arguments(files, *wild))
    assert code == 1
    assert "of 3,000 steps" in err
    assert not (files / "out" / "seed-0.safetensors").exists()
    kept = load_policy(files / "out" / "diverged-0.safetensors")
    assert np.isfinite(kept.act(both().all.observations)).all()


@pytest.mark.parametrize(("method", "steps"), [("wgail", 1000), ("gail", 2000)])
def test_a_folder_of_another_training_is_not_gone_on_with(run_here, files, method, steps):
    board = "--tensorboard"
    assert run_here("train", "gail", *arguments(files, "--steps", 1000, board))[0] == 0
    before = contents(files / "out")
    code, _, err = run_here("train", method, *arguments(files, "--steps", steps, board))
    assert code == 2
    assert "another task, seed or setting" in err
    assert files / "out" / "seed-0.safetensors" in before
    assert contents(files / "out") == before


def contents(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def with_confidence(folder, value):
    save(
        both().supplementary.with_extra("confidence", np.full(len(both().supplementary), value)),
        folder / "noisy.npz",
    )


@pytest.mark.parametrize("method", ["2iwil", "ic-gail"])
def test_confidences_are_read_from_the_file(run_here, files, method):
    with_confidence(files, 0.3)  # D_o has none, so its rows are optimal
    few = ("--steps", 1000, "--set", "confidence.updates=20")
    code, _, err = run_here("train", method, *arguments(files, *few))
    assert code == 0, err
    given = (*few, "--purify", "diffusion")  # refused before it is purified
    for bad, says in (
        (1.5, "confidence is 1.5 in row 0; expected 0 to 1"),
        (np.nan, "no row has a confidence"),
    ):
        with_confidence(files, bad)
        code, _, err = run_here("train", method, *arguments(files, *given, out="other"))
        assert code == 2
        assert says in err
        assert not list((files / "other").glob("*"))


@pytest.mark.parametrize(
    ("task", "given", "says"),
    [
        ("", ("gail",), "gail plays the task while it learns, and no task is given"),
        ("hopper", ("gail",), "2 observation and 1 action columns; hopper has 11 and 3"),
        ("hoper", ("gail",), "did you mean hopper"),
        ("gym:Nothing-v0", ("gail",), "cannot be made"),
        (NAME, ("gail", "--bounds=-1,1"), "has those of its task"),
        (NAME, ("gail", "--weights", "npz"), "weighs no rows"),
        (NAME, ("bc", "--steps", "1000"), "bc does not play"),
        (NAME, ("dp-gail",), "gail --purify diffusion"),
        (NAME, ("gail", "--steps", "0"), "steps"),
        (NAME, ("gail", "--set", "loop.btach=1000"), "did you mean batch"),
    ],
)
def test_what_cannot_work_is_refused_before_any_work(run_here, files, task, given, says):
    small = SMALL if given[0] == "gail" else ()
    code, _, err = run_here(
        *("train", given[0], "--optimal", files / "good.npz", "-o", files / "out"),
        *(("--task", task) if task else ()),
        *small,
        *given[1:],
    )
    assert code == 2
    assert says in err
    assert not list(files.glob("out/*"))
