"""The committed lines: each is a run of its grid, with the settings of today."""

from pathlib import Path

import pytest

from elute import results
from elute.experiment.cell import Place, run_digest
from elute.experiment.spec import Run, load_experiment, runs

ROOT = Path(__file__).parents[2]
LINES = {str(path.relative_to(ROOT / "results")): path for path in ROOT.glob("results/**/*.jsonl")}


@pytest.mark.parametrize("name", LINES)
def test_lines_are_runs_of_their_grid_as_it_is_today(name, request, monkeypatch):
    experiment = load_experiment((ROOT / "experiments" / name).with_suffix(".toml"), {})
    folder = None
    if experiment.data is not None:
        folder = request.getfixturevalue("data_folder") / "halfcheetah"
    if name == "robosuite-real.jsonl":
        real = request.getfixturevalue("data_folder") / "sawyer-reach"
        monkeypatch.setenv("ELUTE_ROBOTURK", str(real))
    place = Place(cache=Path(), data=experiment.data, folder=folder)
    planned = {run_digest(run, place) for run in runs(experiment)}
    rows = results.read(LINES[name]).rows
    assert rows
    for row in rows:
        run = Run.from_json(row["run"])
        told = (row["task"], row["demos"], row["method"], row["regime"], row["seed"])
        assert told == (run.task, run.demos, run.method, run.regime, run.seed)
        assert row["digest"] == run_digest(run, place), f"{run.name}: of other settings or data"
        assert row["digest"] in planned, f"{run.name} is not of this grid"
    assert len({row["digest"] for row in rows}) == len(rows)
