"""Experiments are checked before anything runs."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from elute.collect.catalogue import fetch
from elute.demos.files import load
from elute.errors import EluteError
from elute.experiment.cell import Place, run_digest
from elute.experiment.data import run_demos
from elute.experiment.purifiers import PurifierOptions
from elute.experiment.spec import Run, load_experiment, runs, split_method
from experiment.grids import N_RUNS, TOML, write_grid

FOLDER = Path(__file__).parents[2] / "experiments"
FILES = sorted(FOLDER.rglob("*.toml"))


@pytest.fixture
def file(tmp_path):
    return write_grid(tmp_path)


def test_every_combination_is_a_run(file):
    made = runs(load_experiment(file, {}))
    assert len(made) == N_RUNS == len({run.name for run in made})
    assert [run.seed for run in made] == [0] * 6 + [1] * 6
    assert made[4].purifier == PurifierOptions(method="gaussian")


@pytest.mark.parametrize("name", ["reverse-step", "table1"])
def test_neighbours_are_of_different_tasks_and_share_no_stage(name):
    """A choice of the step or a model is of one set, a policy of optimal rows alone of one task."""
    made = runs(load_experiment(FOLDER / f"{name}.toml", {}))
    assert any(run.purifier for run in made)
    assert all(one.task != other.task for one, other in pairwise(made))


def test_overrides_reach_inside(file):
    given = {"seeds": 1, "settings.bc-opt.updates": 7, "methods": ["bc-opt"], "settings.bc-all": {}}
    with pytest.raises(EluteError, match="not among the methods"):
        load_experiment(file, given)
    given = {"seeds": 1, "settings": {"bc-opt": {"updates": 7}}, "methods": ["bc-opt"]}
    (first, _) = runs(load_experiment(file, given))
    assert first.learner().updates == 7


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("seeds = 2", "sedes = 2", "did you mean seeds"),
        ("seeds = 2", "seeds = 0", "at least one seed"),
        ("seeds = 2", "optimal_rows = [-1]", "-1 optimal rows cannot be"),
        ("seeds = 2", "optimal_rows = []", "optimal_rows is empty"),
        ("seeds = 2", "seeds = 2\nfirst_seed = -1", "from 0 on"),
        ("seeds = 2", "seeds = 2\nreverse_steps = []", "reverse_steps is empty"),
        ("seeds = 2", "seeds = 2\npurifier_preset = 'paper'", "no method is dp-LEARNER"),
        ('"small"', '"../small"', "expected letters"),
        ('"small"', '"a/../small"', "expected letters"),
        ('"small"', '"/small"', "expected letters"),
        ('["hopper"]', "[]", "tasks is empty"),
        ('"gaussian-bc"]', '"gaussian-bc", "dp-bc"]\npurifier_preset = "paper"', "does not choose"),
        ('"bc-all", ', '"bc-al", ', "did you mean bc-all"),
        ("seeds = 2", "seeds = 'two'", "seeds: .*valid integer"),
        ("seeds = 2", "seeds = ", "Invalid value"),
        ('"hopper"', '"hoper"', "did you mean hopper"),
        ('"bc-opt", ', '"bc-optt", ', "did you mean bc-opt"),
        ('"gaussian-bc"]', '"gauss-bc"]', "is no method"),
        ('"paper"', '"papers"', "regimes"),
        ("bc-opt = { updates = 20", "bc-opt = { updats = 20", "did you mean updates"),
        ('optimal = "good.npz"', 'optimum = "good.npz"', "did you mean optimal"),
        ('"action-noise/heavy" = "heavy.npz", ', "", "no file is named for action-noise/heavy"),
    ],
)
def test_a_typo_is_pointed_at(file, old, new, says):
    assert old in TOML
    file.write_text(TOML.replace(old, new))
    with pytest.raises(EluteError, match=says):
        load_experiment(file, {})


def test_what_is_no_table_has_nothing_inside(file):
    with pytest.raises(EluteError, match="nothing to set inside seeds"):
        load_experiment(file, {"seeds.x": 1})


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(EluteError, match="no such file"):
        load_experiment(tmp_path / "none.toml", {})


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_the_shipped_experiments_hold(file):
    experiment = load_experiment(file, {})
    assert experiment.name == str(file.relative_to(FOLDER).with_suffix(""))
    assert runs(experiment)


def test_a_method_may_purify_first():
    assert split_method("dp-bc") == ("diffusion", "bc")
    assert split_method("median-dwbc") == ("median", "dwbc")
    assert split_method("diffusion-bc") == (None, "diffusion-bc")
    assert split_method("bc-all") == (None, "bc")


def test_steps_of_a_sweep_share_a_model(file):
    given = {"methods": ["dp-bc"], "settings": {}, "reverse_steps": ["auto", 5, 300]}
    made = runs(load_experiment(file, given))[:6]  # each on two sets
    assert [run.max_step for run in made] == [0, 0, 300, 300, 300, 300]
    assert [run.auto for run in made] == [True, True, False, False, False, False]


def test_there_may_be_more_optimal_rows_or_fewer(file):
    experiment = load_experiment(file, {"optimal_rows": [0, 7], "seeds": 1})
    as_ever, fewer = (
        [run for run in runs(experiment) if run.optimal_rows == n] for n in experiment.optimal_rows
    )
    place = Place(cache=file.parent, data=experiment.data, folder=file.parent)
    for run, other in zip(as_ever, fewer, strict=True):
        assert "7 rows" in other.name
        assert run_digest(run, place) != run_digest(other, place)
        sizes = [
            len(run_demos(one, experiment.data, file.parent).optimal)
            for one in (
                run,
                other,
                replace(other, regime="episode"),
                replace(other, regime="spread"),
            )
        ]
        assert sizes == [50, 7, 7, 7]
    with pytest.raises(EluteError, match="61 optimal rows asked for; there are 60"):
        run_demos(replace(other, regime="episode", optimal_rows=61), experiment.data, file.parent)


@pytest.mark.slow
def test_seeds_may_have_demonstrations_of_their_own():
    toml = next(file for file in FILES if file.stem == "episodes")
    run = next(run for run in runs(load_experiment(toml, {})) if run.task == "hopper")
    sets = [run_demos(replace(run, seed=seed), None, None) for seed in (0, 1)]
    shared = run_demos(replace(run, regime="episode", seed=1), None, None)
    for part, name in (("optimal", "expert"), ("supplementary", run.demos)):
        rows = load(fetch(f"hopper/{name}")).observations
        ours, others, first = (getattr(demos, part).observations for demos in (*sets, shared))
        assert np.array_equal(ours, rows[:1000])
        assert np.array_equal(others, rows[1000:2000])
        assert np.array_equal(first, ours)
    with pytest.raises(EluteError, match=r"episode 5 asked for; there are 0\.\.4"):
        run_demos(replace(run, seed=5), None, None)


def test_more_is_added_by_the_keys_in_which_it_differs(file):
    added = """
[[also]]
methods = ["dp-bc", "bc-all"]
target = "joint"
reverse_steps = [3]
"""
    file.write_text(file.read_text() + added)
    experiment = load_experiment(file, {})
    made = runs(experiment)
    assert len(made) == N_RUNS + 4  # two sets, two seeds; bc-all is there already
    assert [run.seed for run in made] == [0] * 8 + [1] * 8
    purified = [run for run in made if run.method == "dp-bc"]
    assert {run.purifier for run in purified} == {PurifierOptions(target="joint", reverse_step="3")}
    assert purified[0].name == "hopper action-noise/heavy paper dp-bc@3 joint seed 0"
    other = replace(purified[0], preset="paper", purifier=PurifierOptions(preset="reference"))
    assert other.name.endswith("dp-bc@auto purifier reference preset paper seed 0")
    filtered = replace(other, method="median-bc", purifier=PurifierOptions(method="median"))
    assert filtered.name.endswith("median-bc preset paper seed 0")
    assert len(runs(load_experiment(file, {"also": []}))) == N_RUNS


@pytest.mark.parametrize(
    ("added", "says"),
    [
        ("[[also]]\nmethod = ['dp-bc']", "also: unknown key 'method'"),
        ("[[also]]\nmethods = ['db-bc']", "is no method"),
        ("[[also]]\nname = 'other'", "one for the whole experiment"),
        ("[[also]]\n[[also.also]]", "one for the whole experiment"),
        ("[also]\nseeds = 1", "expected tables"),
    ],
)
def test_what_is_added_is_checked_too(file, added, says):
    file.write_text(f"{file.read_text()}\n{added}\n")
    with pytest.raises(EluteError, match=says):
        load_experiment(file, {})


def test_only_the_robot_begins_where_demonstrations_did(file):
    given = {"tasks": ["hopper"], "data": None, "starts": "demonstrations"}
    with pytest.raises(EluteError, match="for sawyer-reach alone"):
        load_experiment(file, given)
    with pytest.raises(EluteError, match="not for files"):
        load_experiment(file, {"starts": "demonstrations"})


def test_a_run_survives_a_line_of_results(file):
    for run in runs(load_experiment(file, {})):
        assert Run.from_json(run.to_json()) == run
