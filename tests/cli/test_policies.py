"""`elute evaluate`, `demos collect`, `expert train`, `export` and the catalogue, as typed."""

import json
import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest

from commands import elute, started
from elute.collect import catalogue
from elute.collect.shipped import CHECKPOINTS, EXPERTS, find_policy, shipped_path
from elute.demos.files import load, save
from elute.envs.task import TASKS
from elute.episodes import Episodes
from elute.errors import EluteError
from elute.noise import ActionNoise
from elute.policy import load_policy, save_policy
from elute.types import Demonstrations


@pytest.mark.parametrize("task", EXPERTS)
def test_the_shipped_expert_earns_what_is_written(task):
    done = elute("evaluate", f"expert:{task}", "--task", task, "--episodes", 5, "--json")
    assert done.returncode == 0, done.stderr
    score = json.loads(done.stdout)
    assert score["mean"] > 0.9 * TASKS[task].expert_score
    assert score["normalised"] > 0.9
    assert score["success"] > 0.5
    assert len(score["episodes"]) == 5
    assert score["versions"]["mujoco"]


@pytest.mark.parametrize("task", EXPERTS)
def test_experts_and_checkpoints_say_where_they_come_from(task):
    for which in ("best", *CHECKPOINTS):
        about = load_policy(shipped_path(task, which)).about
        assert (about["task"], about["method"]) == (task, "trpo")
        if which != "best":
            assert about["env_steps"] == pytest.approx(float(which[:-1]) * 1e6, rel=0.01)


def test_all_experts_together_are_small():
    assert sum(file.stat().st_size for file in shipped_path("ant").parent.iterdir()) < 3_000_000


def test_one_and_two_workers_print_the_same_numbers():
    call = ("evaluate", "checkpoint:hopper@1M", "--task", "hopper", "--episodes", 7, "--json")
    one, two = elute(*call, "--workers", 1), elute(*call, "--workers", 2)
    assert one.returncode == 0, one.stderr
    assert one.stdout == two.stdout


def test_a_folder_of_seeds_is_evaluated_seed_by_seed(tmp_path):
    for seed in (0, 1, 10):
        mark = CHECKPOINTS[seed % 3]
        save_policy(find_policy(f"checkpoint:hopper@{mark}"), tmp_path / f"seed-{seed}.safetensors")
    done = elute("evaluate", tmp_path, "--task", "hopper", "--episodes", 2, "--json")
    score = json.loads(done.stdout)
    assert [row["seed"] for row in score["seeds"]] == ["0", "1", "10"]
    means = [row["mean"] for row in score["seeds"]]
    assert score["mean"] == pytest.approx(np.mean(means))
    assert score["stderr"] == pytest.approx(np.std(means, ddof=1) / np.sqrt(3))
    assert "seed 10" in elute("evaluate", tmp_path, "--task", "hopper", "--episodes", 1).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate", "expert:hopper", "--task", "hoper"), "did you mean hopper?"),
        (("evaluate", "expert:hoper", "--task", "hopper"), "did you mean hopper?"),
        (("evaluate", "expert:hopper", "--task", "ant"), "ant has 27 and 8"),
        (("evaluate", "checkpoint:hopper@7M", "--task", "hopper"), "is no checkpoint"),
        (("evaluate", "nothing.safetensors", "--task", "hopper"), "no such file"),
        (
            ("evaluate", "expert:hopper", "--task", "hopper", "--episodes", "0"),
            "than or equal to 1",
        ),
        (("evaluate", "expert:hopper", "--task", "hopper", "--video", "a.avi"), ".mp4"),
        (("evaluate", ".", "--task", "hopper"), "no policies"),
        (("demos", "collect", "hopper", "-o", "x.h5", "--noise", "pink:1"), "is no noise"),
        (("demos", "collect", "hopper", "-o", "x.h5", "--noise", "gaussian"), "KIND:LEVEL"),
        (("demos", "collect", "hopper", "-o", "no/such/x.h5"), "does not exist"),
        (("demos", "collect", "hopper", "-o", "x.foo"), "which format?"),
        (("demos", "collect", "gym:Pendulum-v1", "-o", "x.h5"), "no expert of gym:Pendulum-v1"),
        (("demos", "info", "hopper/action-noise/havy"), "hopper/action-noise/heavy"),
        (("export", "expert", "--onnx", "x.onnx"), "of which task?"),
        (("expert", "train", "gym:CartPole-v1"), "expected a Box"),
    ],
)
def test_what_cannot_be_done_is_refused(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = elute(*arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("x.*"))


def test_collecting_twice_gives_the_same_file(tmp_path):
    for name in ("one.h5", "two.h5"):
        done = elute(
            "demos", "collect", "halfcheetah", "--policy", "expert", "--noise", "gaussian:0.6",
            "--rows", 1000, "--seed", 0, "-o", tmp_path / name,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()
    demos = load(tmp_path / "one.h5")
    assert len(demos) == 1000
    left = demos.actions - demos.extras["clean_actions"]
    assert abs(left.std() - 0.6) < 0.03
    np.testing.assert_array_equal(demos.extras["executed_actions"], np.clip(demos.actions, -1, 1))


def test_a_checkpoint_is_sampled_unless_told_otherwise(tmp_path):
    call = ("demos", "collect", "hopper", "--policy", "checkpoint@1M", "--rows", 50)
    assert "noise sample" in elute(*call, "-o", tmp_path / "a.npz").stderr
    assert "noise none" in elute(*call, "-o", tmp_path / "b.npz", "--noise", "none").stderr
    plain = load(tmp_path / "b.npz")
    np.testing.assert_array_equal(plain.actions, plain.extras["clean_actions"])


def test_a_policy_exported_is_a_policy(tmp_path):
    done = elute("export", "expert:hopper", "--onnx", tmp_path / "p.onnx")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p.onnx").stat().st_size > 10_000


def test_old_ant_data_is_adapted(tmp_path):
    rng = np.random.default_rng(0)
    old = Demonstrations(
        observations=rng.normal(size=(20, 111)),
        actions=rng.normal(size=(20, 8)),
        episodes=Episodes.of([20]),
    )
    made = tmp_path / "ant.h5"
    save(old, made, format="vild")
    for out in ("new.h5", "new.npz"):
        done = elute("demos", "convert", made, tmp_path / out, "--adapt", "ant")
        assert done.returncode == 0, done.stderr
        assert "not kept: observation columns 27 to 110" in done.stderr
        new = load(tmp_path / out)
        np.testing.assert_array_equal(new.observations, old.observations[:, :27])
        assert new.provenance.format == ("npz" if out.endswith("npz") else "vild")
    done = elute("demos", "convert", made, tmp_path / "x.npz", "--adapt", "ant", "--strict")
    assert done.returncode == 2
    refused = elute("demos", "convert", made, tmp_path / "x.npz", "--adapt", "hopper")
    assert refused.returncode == 2
    assert "is it data of another task?" in refused.stderr


def test_training_goes_on_after_ctrl_c(tmp_path):
    call = ["expert", "train", "gym:InvertedPendulum-v5", "--to", tmp_path / "run", "--workers", 1]
    running = started(*call, "--steps", 5_000_000)
    state, began = tmp_path / "run" / "state.safetensors", time.monotonic()
    while not state.exists() and time.monotonic() - began < 300:
        time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    _, talk = running.communicate(timeout=60)
    assert running.returncode == 130, talk
    steps = json.loads((tmp_path / "run" / "curve.json").read_text())["curve"][-1]["env_steps"]
    done = elute(*call, "--steps", steps + 1000)
    assert done.returncode == 0, done.stderr
    assert "going on with the training" in done.stderr
    assert (tmp_path / "run" / "curve.png").stat().st_size > 1000


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ELUTE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(catalogue, "ROWS", 300)
    monkeypatch.setattr(catalogue, "MIXED_ROWS", 100)
    return tmp_path / "cache"


def test_an_entry_is_made_once_and_made_again_when_it_was_damaged(cache):
    said = []
    path = catalogue.fetch("hopper/action-noise/heavy", say=said.append)
    assert len(said) == 1
    first = path.read_bytes()
    assert catalogue.fetch("hopper/action-noise/heavy", say=said.append) == path
    assert len(said) == 1
    path.write_bytes(first[:-10])
    catalogue.fetch("hopper/action-noise/heavy", say=said.append)
    assert "has changed since it was made" in said[1]
    assert path.read_bytes() == first
    path.with_suffix(".sha256").unlink()
    catalogue.fetch("hopper/action-noise/heavy", say=said.append)
    assert path.read_bytes() == first


def test_entries_are_what_their_names_say(cache):
    expert = load(catalogue.fetch("hopper/expert"))
    np.testing.assert_array_equal(expert.actions, expert.extras["clean_actions"])
    light = load(catalogue.fetch("hopper/uniform-noise/light"))
    left = light.actions - light.extras["clean_actions"]
    assert np.abs(left).max() <= 0.25 * np.sqrt(3)
    early = load(catalogue.fetch("hopper/checkpoint/early"))
    policy = find_policy("checkpoint:hopper@1M")
    z = (early.actions - early.extras["clean_actions"]) / policy.std
    assert abs(z.std() - 1) < 0.1


def test_the_mixed_set_is_drawn_from_all_levels(cache):
    mixed = load(catalogue.fetch("hopper/action-noise/mixed"))
    assert len(mixed) == len(mixed.episodes) == 300
    for level in catalogue.LEVELS:
        part = load(catalogue.fetch(f"hopper/action-noise/{level}")).first(100)
        rows = {row.tobytes() for row in part.observations}
        assert sum(row.tobytes() in rows for row in mixed.observations) >= 100
    half = mixed.first(150)
    spread = np.abs(half.actions - half.extras["clean_actions"]).mean()
    whole = np.abs(mixed.actions - mixed.extras["clean_actions"]).mean()
    assert abs(spread / whole - 1) < 0.25


def test_a_digest_depends_on_all_that_makes_the_data(cache, monkeypatch):
    heavy, mixed = (f"hopper/action-noise/{name}" for name in ("heavy", "mixed"))
    before = catalogue.digest(heavy), catalogue.digest(mixed)
    louder = replace(catalogue.RECIPES[heavy], noise=ActionNoise("gaussian", 0.7))
    monkeypatch.setitem(catalogue.RECIPES, heavy, louder)
    assert catalogue.digest(heavy) != before[0]
    assert catalogue.digest(mixed) != before[1]
    monkeypatch.undo()
    monkeypatch.setattr(catalogue, "MIXED_ROWS", 99)
    assert catalogue.digest(mixed) != before[1]
    monkeypatch.setitem(catalogue.RECIPES, heavy, replace(catalogue.RECIPES[heavy], policy="3M"))
    assert catalogue.digest(heavy) != before[0]


def test_a_cache_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ELUTE_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(catalogue, "ROWS", 10)
    with pytest.raises(EluteError, match="set ELUTE_CACHE"):
        catalogue.fetch("hopper/expert")


def test_names_can_be_purified(tmp_path):
    done = elute("purify", "hopper/action-noise/heavy", "--optimal", "hopper/expert", "--rows", 100,
                 "--optimal-rows", 100, "--method", "wiener", "-o", tmp_path / "o.npz",
                 env=os.environ | {"ELUTE_CACHE": str(tmp_path)})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(load(tmp_path / "o.npz")) == 100


def test_a_policy_of_another_task_of_the_same_size_is_said():
    done = elute("evaluate", "expert:walker2d", "--task", "halfcheetah", "--episodes", 1)
    assert "a policy of walker2d is evaluated in halfcheetah" in done.stderr


def test_a_name_can_stand_for_a_file(tmp_path):
    done = elute(
        "demos",
        "info",
        "hopper/salt-pepper/light",
        "--json",
        env=os.environ | {"ELUTE_CACHE": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] >= 5000
    assert "made hopper/salt-pepper/light" in done.stderr
