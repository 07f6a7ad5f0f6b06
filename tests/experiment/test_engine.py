"""Grids: killed, shared, resumed, and the same on every engine."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from elute import results
from elute.demos.files import load, save
from elute.episodes import Piece
from elute.experiment.cell import Place, run_cell
from elute.experiment.engine import KILLED, Done, local, outliving, run_grid
from elute.experiment.spec import load_experiment, runs
from experiment.grids import N_RUNS, lines, write_grid

HEAVY = "action-noise/heavy"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ELUTE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def grid(tmp_path):
    return write_grid(tmp_path)


def start(grid, output, *more):
    command = [sys.executable, "-m", "elute", "run", grid, "--data", grid.parent, "-o", output]
    return subprocess.Popen(
        [*map(str, command), *more],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A runner in the background may have passed on that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )


def finish(process):
    _, err = process.communicate(timeout=500)
    assert process.returncode == 0, err
    return err


@pytest.fixture
def undisturbed(grid, tmp_path, monkeypatch):
    monkeypatch.setenv("ELUTE_CACHE", str(tmp_path / "other-cache"))
    finish(start(grid, tmp_path / "whole.jsonl", "--jobs", "2"))
    monkeypatch.setenv("ELUTE_CACHE", str(tmp_path / "cache"))
    return lines(tmp_path / "whole.jsonl")


@pytest.mark.slow
def test_killed_five_times_at_random_it_ends_with_the_same_lines(grid, tmp_path, undisturbed):
    output, moments = tmp_path / "killed.jsonl", random.Random(0)
    for _ in range(5):
        process = start(grid, output, "--jobs", "2")
        time.sleep(moments.uniform(2, 8))
        process.kill()  # only the master: its workers must end with it
        process.communicate()
    finish(start(grid, output, "--jobs", "2"))
    assert lines(output) == undisturbed
    assert len(output.read_text().splitlines()) == N_RUNS
    assert results.read(output).torn == []


@pytest.mark.slow
def test_two_processes_on_one_grid_share_it(grid, tmp_path, undisturbed):
    output = tmp_path / "shared.jsonl"
    for process in [start(grid, output, "--jobs", "1") for _ in range(2)]:
        finish(process)
    assert len(output.read_text().splitlines()) == N_RUNS
    assert lines(output) == undisturbed


@pytest.mark.slow
def test_a_ray_cluster_gives_the_same_lines_and_outlives_a_worker(grid, tmp_path, undisturbed):
    pytest.importorskip("ray")
    output = tmp_path / "ray.jsonl"
    process = start(grid, output, "--engine", "ray", "--jobs", "2")
    killed = 0
    for _ in range(600):
        for worker in ray_workers(process.pid) if not killed else []:
            os.kill(worker, signal.SIGKILL)
            killed = worker
            break
        if process.poll() is not None:
            break
        time.sleep(0.1)
    finish(process)
    assert killed
    assert lines(output) == undisturbed


def ray_workers(master):
    """Processes that Ray has running a cell, below this one."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        pid, _, name = line.strip().partition(" ")
        if "ray::_alone" in name and int(pid) != master:
            yield int(pid)


def test_what_is_done_is_not_done_again_and_a_torn_line_is(grid, tmp_path):
    output = tmp_path / "a.jsonl"
    experiment = load_experiment(grid, {"seeds": 1})
    place = Place(cache=tmp_path / "c", data=experiment.data, folder=grid.parent)
    wanted = runs(experiment)
    assert len(list(run_grid(wanted, place, output, engine=local(1)))) == 6
    assert list(run_grid(wanted, place, output, engine=local(1))) == []
    whole = lines(output)
    output.write_bytes(output.read_bytes()[:-40])
    (again,) = run_grid(wanted, place, output, engine=local(1))
    assert again.row["digest"] in whole
    assert lines_of(output) == whole


def lines_of(output):
    rows = {row["digest"]: row for row in results.read(output).rows}
    for row in rows.values():
        del row["spent"], row["timings"]
    return rows


def test_a_run_that_cannot_be_does_not_stop_the_others(grid, tmp_path):
    good = load(grid.parent / "good.npz")
    save(good.take([Piece(row, 1) for row in range(len(good))]), grid.parent / "single.npz")
    methods = {"bc-opt": {"updates": 5}, "demodice": {}}
    experiment = load_experiment(
        grid,
        {
            "methods": list(methods),
            "seeds": 1,
            "settings": methods,
            "demos": [HEAVY],
            "data.optimal": "single.npz",
        },
    )
    place = Place(cache=tmp_path / "c", data=experiment.data, folder=grid.parent)
    done = list(run_grid(runs(experiment), place, tmp_path / "a.jsonl", engine=local(1)))
    assert {d.run.method: bool(d.row) for d in done} == {"bc-opt": True, "demodice": False}
    assert "transitions" in done[1].error
    assert len(results.read(tmp_path / "a.jsonl").rows) == 1


def test_one_that_fails_in_an_unknown_way_says_where(grid, tmp_path, monkeypatch):
    def broken(run, place, report):
        raise RuntimeError("no memory left")

    monkeypatch.setattr("elute.experiment.engine.run_cell", broken)
    experiment = load_experiment(grid, {"seeds": 1})
    place = Place(cache=tmp_path / "c", data=experiment.data, folder=grid.parent)
    done = list(run_grid(runs(experiment), place, tmp_path / "a.jsonl", engine=local(1)))
    assert len(done) == 6
    assert re.search(r"RuntimeError: no memory left \(test_engine.py, line \d+\)", done[0].error)


def dies_at(bad, run, report):
    if run == bad:
        os.kill(os.getpid(), signal.SIGKILL)
    return Done(run, {"seed": run})


def test_a_run_that_kills_its_process_costs_itself_and_who_is_beside_it():
    ended = {done.run: done for done in outliving(partial(dies_at, 1), range(6), 2, print)}
    assert set(ended) == set(range(6))
    assert ended[1].error == KILLED
    assert sum(bool(done.row) for done in ended.values()) >= 4


def test_what_clones_the_optimal_rows_depends_on_how_they_are_aligned(grid, tmp_path):
    returns = []
    for shift, cache in ((0, "c"), (1, "c"), (1, "fresh")):
        given = {"methods": ["bc-opt"], "seeds": 1, "data.realign": shift, "demos": [HEAVY]}
        experiment = load_experiment(grid, {**given, "settings": {"bc-opt": {"updates": 5}}})
        place = Place(cache=tmp_path / cache, data=experiment.data, folder=grid.parent)
        line = run_cell(runs(experiment)[0], place, lambda what, done, total: None)
        returns.append(line["metrics"]["returns"])
    assert returns[0] != returns[1] == returns[2]


def test_stages_are_shared(grid, tmp_path):
    """The model of a sweep is trained once, and purified rows serve two learners."""
    given = {"methods": ["gaussian-bc", "gaussian-bcnd"], "seeds": 1, "settings": {}}
    given["settings"] = {
        "gaussian-bc": {"updates": 5, "hold_out": 0.0},
        "gaussian-bcnd": {"updates": 5, "rounds": 1},
    }
    experiment = load_experiment(grid, given)
    place = Place(cache=tmp_path / "c", data=experiment.data, folder=grid.parent)
    list(run_grid(runs(experiment), place, tmp_path / "a.jsonl", engine=local(1)))
    assert len(list((tmp_path / "c" / "purified").iterdir())) == 2  # one for each set
    assert len(list((tmp_path / "c" / "policy").iterdir())) == 4


def test_demonstrations_are_scored_by_their_own_rewards(grid, tmp_path):
    rows = load(grid.parent / "heavy.npz")
    save(replace(rows, rewards=np.repeat([1.0, 2.0], 60)), grid.parent / "rewarded.npz")
    changed = {
        "data.demos": {HEAVY: "rewarded.npz"},
        "methods": ["demonstrations"],
        "demos": ["action-noise/heavy"],
        "seeds": 1,
    }
    experiment = load_experiment(grid, {**changed, "regimes": ["whole"], "settings": {}})
    place = Place(cache=tmp_path / "cache", data=experiment.data, folder=grid.parent)
    line = run_cell(runs(experiment)[0], place, lambda what, done, total: None)
    assert line["metrics"]["returns"] == [60.0, 120.0]
    assert line["metrics"]["lengths"] == [60, 60]
    assert line["method"] == "demonstrations"


def test_ctrl_c_loses_nothing(grid, tmp_path):
    output = tmp_path / "a.jsonl"
    process = start(grid, output, "--jobs", "1")
    for _ in range(600):
        if output.exists() and output.read_text():
            break
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    for line in output.read_text().splitlines():
        assert json.loads(line)["metrics"]["returns"]
