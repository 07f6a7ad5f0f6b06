"""The robot task as typed: record, evaluate, begin where a file begins."""

import json
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from commands import elute
from elute.collect.operator import SHIPPED
from elute.demos.files import load, save
from elute.policy import GaussianPolicy, save_policy
from elute.uncertainty import wilson


@pytest.fixture
def still(tmp_path):
    """A policy that hardly moves."""
    path = tmp_path / "still.safetensors"
    policy = GaussianPolicy(
        layers=((np.zeros((44, 7), "f4"), np.zeros(7, "f4")),),
        log_std=np.full(7, -3.0),
        mean=np.zeros(44),
        scale=np.ones(44),
        low=np.full(7, -1.0),
        high=np.ones(7),
        about={"task": "sawyer-reach"},
    )
    save_policy(policy, path)
    return path


def evaluated(*arguments, **options):
    done = elute("evaluate", *arguments, "--task", "sawyer-reach", "--workers", 1, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_success_comes_with_its_interval_and_other_readings(still):
    report = json.loads(evaluated(still, "--episodes", 4, "--json"))
    assert report["success"] == 0.0
    assert report["success_interval"] == pytest.approx(wilson(0, 4))
    assert set(report["readings"]) == {"nut_centre", "at_end", "nut_peg"}
    assert report["readings"]["nut_peg"]["success_interval"] == pytest.approx(wilson(0, 4))
    assert [episode["length"] for episode in report["episodes"]] == [500] * 4
    shown = evaluated(still, "--episodes", 4)
    assert "success" in shown
    assert "(95 %: 0.00 to 0.49)" in shown
    assert "nut peg" in shown


def test_a_recording_of_a_skill_and_episodes_that_begin_where_it_ends(still, tmp_path):
    path = tmp_path / "skilled.npz"
    call = ("demos", "collect", "sawyer-reach", "--policy", "operator:1", "--rows", 400)
    done = elute(*call, "-o", path)
    assert done.returncode == 0, done.stderr
    assert "operator:1" in done.stderr
    demos = load(path)
    assert demos.returns()[0] > 300
    end = tmp_path / "end.npz"
    save(demos[480:], end)
    report = json.loads(evaluated(still, "--episodes", 20, "--starts", end, "--json"))
    assert 0.7 < report["success"] < 1.0  # a tenth begins in the stock pose
    assert report["starts"].endswith("end.npz")


def test_seeds_in_a_folder_are_pooled(still, tmp_path):
    folder = tmp_path / "policies"
    folder.mkdir()
    for seed in (0, 1):
        (folder / f"seed-{seed}.safetensors").write_bytes(still.read_bytes())
    report = json.loads(evaluated(folder, "--episodes", 3, "--json"))
    assert report["success_interval"] == pytest.approx(wilson(0, 6))
    assert [row["success_interval"] for row in report["seeds"]] == [list(wilson(0, 3))] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--task", "sawyer-reach", "--starts", "hopper.npz"), "no such file"),
        (("--task", "sawyer-reach@robosuit"), "did you mean sawyer-reach@robosuite?"),
        (("--task", "hopper"), "policy of another task"),
    ],
)
def test_bad_input_is_one_sentence(still, arguments, message):
    done = elute("evaluate", still, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_start_that_is_not_finite_is_named(still, tmp_path):
    demos = load(SHIPPED).select([0, 1, 2])
    observations = demos.observations.copy()
    observations[demos.episodes.starts[2], 5] = np.nan
    path = tmp_path / "spoilt.npz"
    save(replace(demos, observations=observations), path)
    done = elute("evaluate", still, "--task", "sawyer-reach", "--starts", path)
    assert done.returncode == 2
    assert "episode 2 begins with values that are not finite" in done.stderr


@pytest.mark.skipif(find_spec("robosuite") is not None, reason="robosuite is installed")
def test_robosuite_that_is_not_there_is_named_with_its_pins(still):
    done = elute("evaluate", still, "--task", "sawyer-reach@robosuite", "--workers", 1)
    assert done.returncode == 2
    assert "robosuite==1.5.2 with mujoco>=3.3,<3.10" in done.stderr
    assert "elute[robosuite]" in done.stderr
    assert "warning" not in done.stderr  # it is the same task
    assert "Traceback" not in done.stderr


def test_no_expert_is_promised():
    done = elute("evaluate", "expert:sawyer-reach", "--task", "sawyer-reach")
    assert done.returncode == 2
    assert "no expert of sawyer-reach is shipped" in done.stderr
    assert "--policy operator:1" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--policy operator:1"),
        (("--policy", "operator"), "expected a skill from 0 to 1"),
        (("--policy", "operator:0.5", "--noise", "gaussian:0.5"), "flaws come from its skill"),
        (("--policy", "operator:0.5", "--workers", 2), "plays in one process"),
    ],
)
def test_who_cannot_record_is_told_who_can(arguments, message, tmp_path):
    path = tmp_path / "never.npz"
    done = elute("demos", "collect", "sawyer-reach", *arguments, "-o", path)
    assert done.returncode == 2
    assert message in done.stderr
    assert not path.exists()
