"""The robot's grids: whole sets, starts, readings."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from elute.collect import catalogue
from elute.demos.files import load
from elute.experiment.cell import Place, run_cell, run_digest
from elute.experiment.data import run_demos, run_task
from elute.experiment.spec import Run, load_experiment, runs

ROOT = Path(__file__).parents[2]
TINY = {
    "seeds": 1,
    "episodes": 2,
    "also": [],
    "methods": ["bc-all"],
    "settings": {"bc-all": {"updates": 5, "hold_out": 0.0}},
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ELUTE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def run():
    (one,) = runs(load_experiment(ROOT / "experiments" / "robosuite.toml", TINY))
    return one


def test_both_files_are_the_same_grid():
    synthetic, real = (
        runs(load_experiment(ROOT / "experiments" / f"{name}.toml", {}))
        for name in ("robosuite", "robosuite-real")
    )
    assert [
        replace(run, demos=run.demos.replace("operator", "roboturk"), starts="demonstrations")
        for run in synthetic
    ] == real
    assert {run.episodes for run in real} == {50}
    assert {run.seed for run in real} == set(range(10))


def test_the_papers_cells_are_in_the_grid():
    wanted = runs(load_experiment(ROOT / "experiments" / "robosuite-real.toml", {"seeds": 1}))
    joint = [r for r in wanted if r.purifier is not None and r.purifier.target == "joint"]
    steps = {
        demos: {r.purifier.reverse_step for r in joint if r.demos == f"roboturk/{demos}"}
        for demos in ("supplementary", "l1", "l2")
    }
    assert steps["supplementary"] == {"auto", "1", "3", "5", "10"}
    assert steps["l1"] == steps["l2"] == {"1", "3", "5", "10", "30"}
    assert {r.method for r in wanted} == {"bc-all", "bcnd", "dwbc", "dp-bc"}


def test_whole_sets_are_taken(run):
    demos = run_demos(run, None, None)
    ten = load(catalogue.fetch("sawyer-reach/operator"))
    best = [5, 9]
    others = [i for i in range(10) if i not in best]
    np.testing.assert_array_equal(demos.optimal.actions, ten.select(best).actions)
    np.testing.assert_array_equal(demos.supplementary.actions, ten.select(others).actions)
    worse = run_demos(replace(run, demos="operator/l1"), None, None)
    assert worse.supplementary.returns().max() < 150
    assert len(worse.optimal) == len(demos.optimal)


def test_every_set_is_tried_from_the_starts_of_all_ten(run):
    ten = load(catalogue.fetch("sawyer-reach/operator"))
    first = ten.observations[ten.episodes.starts]
    for demos in ("operator/supplementary", "operator/l1"):
        task = run_task(replace(run, demos=demos, starts="demonstrations"))
        np.testing.assert_array_equal(task.options["starts"], first)
    assert run_task(run).options["starts"] == ()


def test_a_line_has_the_other_readings(run, tmp_path):
    row = run_cell(run, Place(cache=tmp_path / "stages"), lambda what, done, total: None)
    json.dumps(row)
    assert set(row["metrics"]["readings"]) == {"nut_centre", "at_end", "nut_peg"}
    assert row["metrics"]["readings"]["nut_peg"] == 0.0
    won = row["metrics"]["successes"]
    assert len(won) == run.episodes
    assert {*won} <= {0, 1}
    assert row["metrics"]["success"] == np.mean(won)
    assert Run.from_json(row["run"]) == run
    place = Place(cache=tmp_path / "stages")
    elsewhere = replace(run, starts="demonstrations")
    assert run_digest(elsewhere, place) != run_digest(run, place)
    run_cell(elsewhere, place, lambda what, done, total: None)
    assert len(list((tmp_path / "stages" / "policy").iterdir())) == 1  # learnt once
