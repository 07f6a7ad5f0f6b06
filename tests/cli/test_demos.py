"""`elute demos ...` as a user types it: what it prints, its exit code, what it leaves behind."""

import json
import os
import signal
import time

import h5py
import numpy as np
import pytest

from commands import started
from elute.cli.arguments import open_file
from elute.demos.audit.repair import realign
from elute.demos.files import load, save
from elute.demos.formats import FORMATS
from elute.demos.pointmass import pointmass


@pytest.fixture
def clean(tmp_path):
    path = tmp_path / "clean.hdf5"
    save(pointmass(30), path, format="robomimic")
    return path


@pytest.fixture
def broken(tmp_path):
    path = tmp_path / "broken.h5"
    save(realign(pointmass(40, noise=0.3), -1), path, format="vild")
    return path


def test_info_says_what_is_in_a_file(run_here, clean):
    code, out, _ = run_here("demos", "info", clean)
    assert code == 0
    demos = pointmass(30)
    shortest, longest = demos.episodes.lengths.min(), demos.episodes.lengths.max()
    assert f"{len(demos)} in 30 episodes of {shortest} to {longest}" in out
    assert "position" in out


def test_info_as_json(run_here, clean):
    code, out, _ = run_here("demos", "info", clean, "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["format"] == "robomimic"
    assert facts["rows"] == len(pointmass(30))
    assert [a["name"] for a in facts["observations"]["arrays"]] == ["position", "velocity", "goal"]


def test_an_error_finding_exits_with_one(run_here, broken):
    code, out, _ = run_here("demos", "audit", broken, "--json")
    found = json.loads(out)["findings"][0]
    assert code == 1
    assert (found["code"], found["severity"], found["shift"]) == ("misaligned", "error", 1)
    assert found["message"]
    assert found["advice"]


def test_clean_data_exits_with_zero_and_strict_counts_warnings(run_here, clean):
    assert run_here("demos", "audit", clean)[0] == 0
    assert run_here("demos", "audit", clean, "--bounds=-1,1")[0] == 0
    assert run_here("demos", "audit", clean, "--bounds=-1,1", "--strict")[0] == 1


def test_fix_writes_a_repaired_copy_and_leaves_the_input(run_here, broken, tmp_path):
    before = broken.read_bytes()
    fixed = tmp_path / "fixed.h5"
    code, out, _ = run_here("demos", "audit", broken, "--fix", fixed, "--json")
    assert code == 0
    assert json.loads(out)["fixed"] == {"file": str(fixed), "repairs": ["realign"]}
    assert broken.read_bytes() == before
    assert load(fixed).provenance.steps[-1]["operation"] == "realign"
    code, out, _ = run_here("demos", "audit", fixed, "--json")
    assert code == 0
    assert "misaligned" not in {f["code"] for f in json.loads(out)["findings"]}


def test_fix_clips_only_when_asked(run_here, broken, tmp_path):
    for extra, limit in (((), 1.5), (("--clip",), 1.0)):
        fixed = tmp_path / "fixed.h5"
        run_here("demos", "audit", broken, "--bounds=-1,1", "--fix", fixed, *extra)
        largest = np.abs(load(fixed).actions).max()
        assert largest == limit if extra else largest > limit


def test_clip_without_bounds_or_without_fix_is_refused(run_here, broken, tmp_path):
    code, _, err = run_here("demos", "audit", broken, "--fix", tmp_path / "x.h5", "--clip")
    assert code == 2
    assert "--clip needs the bounds" in err
    assert not (tmp_path / "x.h5").exists()
    assert run_here("demos", "audit", broken, "--clip")[0] == 2


def test_fix_of_clean_data_is_a_plain_copy(run_here, clean, tmp_path):
    code, _, err = run_here("demos", "audit", clean, "--fix", tmp_path / "copy.hdf5")
    assert code == 0
    assert "nothing to repair" in err
    np.testing.assert_array_equal(load(tmp_path / "copy.hdf5").pairs, load(clean).pairs)


def test_fix_onto_the_input_is_refused(run_here, broken):
    before = broken.read_bytes()
    code, _, err = run_here("demos", "audit", broken, "--fix", broken)
    assert code == 2
    assert "the output is the input" in err
    assert broken.read_bytes() == before


def test_the_published_expert_is_caught_and_mended(run_here, data_folder, tmp_path):
    expert = data_folder / "halfcheetah/expert.h5"
    code, out, _ = run_here("demos", "audit", expert, "--json")
    assert code == 1
    assert [f["shift"] for f in json.loads(out)["findings"] if f["code"] == "misaligned"] == [1]
    fixed = tmp_path / "fixed.h5"
    assert run_here("demos", "audit", expert, "--fix", fixed)[0] == 0
    code, out, _ = run_here("demos", "audit", fixed, "--json")
    assert code == 0
    with h5py.File(expert) as one, h5py.File(fixed) as other:
        states, actions = one["expert_states"][:], one["expert_actions"][:]
        np.testing.assert_array_equal(other["expert_states"][:999], states[:999])
        np.testing.assert_array_equal(other["expert_actions"][:999], actions[1:1000])
        np.testing.assert_array_equal(other["expert_rewards"][:999], one["expert_rewards"][1:1000])
        assert other["expert_source_path"][()] == one["expert_source_path"][()]


@pytest.mark.mujoco
def test_a_known_task_is_confirmed_by_replay(run_here, data_folder):
    expert = data_folder / "halfcheetah/expert.h5"
    code, out, _ = run_here("demos", "audit", expert, "--task", "halfcheetah", "--json")
    found = {f["code"]: f for f in json.loads(out)["findings"]}
    assert code == 1
    errors = found["misaligned"]["numbers"]["replay_error"]
    assert min(errors, key=errors.get) == "+1"
    assert "out-of-bounds" in found  # the task brings its bounds


def test_optimal_is_audited_and_compared(run_here, data_folder):
    noisy, good = (
        data_folder / "halfcheetah/checkpoint-t1.h5",
        data_folder / "halfcheetah/expert.h5",
    )
    code, out, _ = run_here("demos", "audit", noisy, "--optimal", f"{good}#episodes=0", "--json")
    found = {f["code"]: f["file"] for f in json.loads(out)["findings"]}
    assert code == 1
    assert found["misaligned"] == f"{good}#episodes=0"
    assert found["low-coverage"] == str(noisy)


def test_fix_never_writes_onto_the_optimal_file(run_here, broken, tmp_path):
    good = tmp_path / "good.h5"
    save(pointmass(40, seed=5), good, format="vild")
    before = good.read_bytes()
    code, _, err = run_here("demos", "audit", broken, "--optimal", good, "--fix", good)
    assert code == 2
    assert "the output is the input" in err
    assert good.read_bytes() == before


def test_two_selections_of_one_file_are_told_apart(run_here, tmp_path):
    both = tmp_path / "both.hdf5"
    save(realign(pointmass(60, noise=0.3), -1), both, format="robomimic")
    bad, good = f"{both}#episodes=0-27", f"{both}#episodes=28-57"
    fixed = tmp_path / "fixed.hdf5"
    code, out, _ = run_here("demos", "audit", bad, "--optimal", good, "--fix", fixed, "--json")
    report = json.loads(out)
    assert report["fixed"]["repairs"] == ["realign"]
    assert sorted(f["file"] for f in report["findings"] if f["code"] == "misaligned") == [bad, good]
    assert code == 1  # the optimal demonstrations are still misaligned
    assert run_here("demos", "audit", fixed)[0] == 0


def test_infinity_is_a_finding_and_valid_json(run_here, tmp_path):
    actions = np.ones((50, 2))
    actions[7, 1] = np.inf
    np.savez(tmp_path / "inf.npz", observations=np.random.default_rng(0).random((50, 3)),
             actions=actions)  # fmt: skip
    code, out, _ = run_here("demos", "audit", tmp_path / "inf.npz", "--bounds=-1,2", "--json")
    assert code == 1
    assert {"non-finite", "out-of-bounds"} <= {f["code"] for f in json.loads(out)["findings"]}


def test_derived_actions_that_went_stale_are_named(run_here, clean, tmp_path):
    with h5py.File(clean, "r+") as file:
        for demo in file["data"].values():
            demo["actions_abs"] = demo["actions"][:] * 2
    code, _, err = run_here("demos", "corrupt", clean, tmp_path / "noisy.hdf5")
    assert code == 0
    assert "actions_abs: still that of the recorded actions" in err


def test_a_task_brings_the_roles_of_its_columns(run_here, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "ant.npz", observations=rng.random((50, 27)), actions=rng.random((50, 8)))
    source = open_file(str(tmp_path / "ant.npz"), "", "observation[2]=discrete", None, "ant")
    roles = [column.role for column in source.observation_columns[:6]]
    assert roles == ["continuous", "quaternion", "discrete", "quaternion", "quaternion",
                     "continuous"]  # fmt: skip


def test_convert_says_what_is_lost_and_strict_refuses(run_here, clean, tmp_path):
    code, out, err = run_here("demos", "convert", clean, tmp_path / "x.h5", "--to", "vild")
    assert (code, out) == (0, "")
    assert "not kept: next observations" in err
    code, _, err = run_here(
        "demos", "convert", clean, tmp_path / "y.h5", "--to", "vild", "--strict"
    )
    assert code == 2
    assert "cannot hold everything" in err
    assert not (tmp_path / "y.h5").exists()


@pytest.mark.parametrize("name", FORMATS)
def test_convert_to_every_format(run_here, clean, tmp_path, name):
    out_path = tmp_path / "out-v0"
    assert run_here("demos", "convert", clean, out_path, "--to", name)[0] == 0
    assert load(out_path).provenance.format == name


def test_convert_takes_the_format_from_the_ending(run_here, clean, tmp_path):
    assert run_here("demos", "convert", clean, tmp_path / "x.npz")[0] == 0
    assert load(tmp_path / "x.npz").provenance.format == "npz"
    assert run_here("demos", "convert", clean, tmp_path / "x.h5")[0] == 0
    assert load(tmp_path / "x.h5").provenance.format == "robomimic"
    code, _, err = run_here("demos", "convert", tmp_path / "x.npz", tmp_path / "y.h5")
    assert code == 2
    assert "which format?" in err
    assert "--to" in err


def test_corrupt_keeps_the_clean_actions(run_here, clean, tmp_path):
    noisy = tmp_path / "noisy.hdf5"
    assert run_here("demos", "corrupt", clean, noisy, "--level", "0.6", "--seed", "3")[0] == 0
    spoiled, before = load(noisy), load(clean)
    np.testing.assert_array_equal(spoiled.extras["clean_actions"], before.actions)
    error = (spoiled.actions - before.actions).std()
    assert error == pytest.approx(0.6, rel=0.05)
    assert spoiled.provenance.steps[-1] == {
        "operation": "corrupt", "noise": "gaussian", "level": 0.6, "seed": 3
    }  # fmt: skip


def test_corrupting_twice_gives_the_same_file(run_here, clean, tmp_path):
    for name in ("a.hdf5", "b.hdf5"):
        run_here("demos", "corrupt", clean, tmp_path / name, "--noise", "salt-pepper")
    assert (tmp_path / "a.hdf5").read_bytes() == (tmp_path / "b.hdf5").read_bytes()


def test_columns_are_declared_on_the_command_line(run_here, clean):
    _, out, _ = run_here("demos", "info", clean, "--json", "--columns", "force[1]=discrete")
    assert json.loads(out)["actions"]["arrays"][0]["roles"] == ["continuous", "discrete"]


def test_selections(run_here, clean):
    _, out, _ = run_here("demos", "info", f"{clean}#episodes=0,3-5", "--json")
    assert json.loads(out)["episodes"]["count"] == 4
    _, out, _ = run_here("demos", "info", f"{clean}#top=2", "--json")
    best = np.sort(load(clean).returns())[-2:]
    assert json.loads(out)["returns"]["lowest"] == pytest.approx(best[0], rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("audit", "nowhere.h5"), "no such file"),
        (("audit", "{folder}"), "a folder, but no Minari dataset"),
        (("audit", "{clean}", "--task", "halfcheeta"), "did you mean halfcheetah?"),
        (("audit", "{clean}", "--task", "hopper"), "hopper has 11 and 3"),
        (("audit", "{clean}", "--bounds", "1"), "expected LO,HI"),
        (("audit", "{clean}", "--bounds", "nan,1"), "expected two numbers"),
        (("audit", "{clean}", "--optimal", "nowhere.h5"), "no such file"),
        (("info", "{clean}#best"), "no selection 'best'"),
        (("info", "{clean}#top=0"), "from 1 to 30"),
        (("info", "{clean}#episodes=99"), "episode 99 asked for"),
        (("info", "{clean}#episodes=a"), "cannot read 'a'"),
        (("info", "{clean}#episodes=4-2"), "runs backwards"),
        (("info", "{clean}", "--columns", "force=wobbly"), "no column role"),
        (("info", "{clean}", "--columns", "arm=discrete"), "'arm', which is not here"),
        (("info", "{clean}", "--keys", "camera"), "no low-dimensional observation 'camera'"),
        (("convert", "{clean}", "{folder}/no/where.npz"), "does not exist"),
        (("convert", "{clean}", "{folder}/x.npz", "--to", "zarr"), "'zarr' is no format"),
        (("corrupt", "{clean}", "{folder}/x.hdf5", "--noise", "pink"), "'pink' is no noise"),
        (("corrupt", "{clean}", "{folder}/x.hdf5", "--level", "-1"), "of level -1.0"),
        (("corrupt", "{clean}", "{folder}/x.hdf5", "--level", "nan"), "of level nan"),
        (("corrupt", "{clean}", "{folder}/x.hdf5", "--noise", "salt-pepper", "--level", "2"),
         "expected a probability"),
        (("audit", "{clean}", "--nonsense"), "No such option"),
        (("frobnicate",), "No such command"),
    ],
)  # fmt: skip
def test_mistakes_are_explained_with_exit_code_two(run_here, clean, tmp_path, arguments, said):
    filled = [a.format(clean=clean, folder=tmp_path) for a in arguments]
    before = sorted(tmp_path.iterdir())
    code, out, err = run_here("demos", *filled)
    assert code == 2
    assert out == ""
    assert said in err
    assert "Traceback" not in err
    assert sorted(tmp_path.iterdir()) == before


def test_nothing_is_painted_into_a_pipe(run_here, clean):
    _, out, err = run_here("demos", "audit", clean)
    assert "\x1b" not in out + err


@pytest.mark.slow
def test_interrupting_leaves_nothing_half_written(tmp_path):
    big = tmp_path / "big.npz"
    rng = np.random.default_rng(0)
    np.savez(
        big, observations=rng.standard_normal((1_000_000, 20)), actions=np.ones((1_000_000, 6))
    )
    process = started("demos", "convert", big, tmp_path / "out.hdf5", "--to", "d4rl")
    while not list(tmp_path.glob(".out.hdf5*")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    assert os.listdir(tmp_path) == ["big.npz"]
