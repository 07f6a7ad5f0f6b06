"""Methods that play, as runs of a grid."""

import pytest

from elute.demos.files import save
from elute.errors import EluteError
from elute.experiment.cell import Place, run_cell, run_digest
from elute.experiment.costs import estimate
from elute.experiment.spec import Run, is_online, load_experiment, runs
from elute.experiment.training import chosen_step
from elute.learners.adversarial import Adversarial
from elute.learners.bc import BC
from elute.learners.gail import GAIL
from elute.purify.select import Choice
from elute.report.curves import online_curves
from learners.point_env import NAME
from learners.point_mass import both

LOOP = (
    '{ "loop.batch" = 1000, "loop.lanes" = 10, "loop.check_every" = 1000, '
    '"loop.check_episodes" = 2, "loop.hidden" = [16], "loop.learning.hidden" = [16] }'
)
TOML = f"""
name = "played"
tasks = ["{NAME}"]
demos = ["action-noise/heavy"]
methods = ["gail", "gaussian-gail", "bc-opt"]
regimes = ["paper"]
preset = "paper"
steps = 2000
seeds = 1
episodes = 2

[settings]
gail = {LOOP}
gaussian-gail = {LOOP}

[data]
optimal = "good.npz"
demos = {{ "action-noise/heavy" = "noisy.npz" }}
"""


@pytest.fixture
def grid(tmp_path):
    demos = both()
    save(demos.optimal, tmp_path / "good.npz")
    save(demos.supplementary, tmp_path / "noisy.npz")
    (tmp_path / "played.toml").write_text(TOML)
    experiment = load_experiment(tmp_path / "played.toml", {})
    place = Place(cache=tmp_path / "stages", data=experiment.data, folder=tmp_path)
    return experiment, runs(experiment), place


def silent(what, done, total):
    pass


def test_lines_of_methods_that_play_have_a_curve(grid):
    _, (gail, smoothed, cloned), place = grid
    rows = [run_cell(run, place, silent) for run in (gail, smoothed, cloned)]
    for row in rows[:2]:
        assert row["curve"]["steps"] == [1000, 2000]
        assert len(row["curve"]["mean"]) == len(row["curve"]["stderr"]) == 2
        assert Run.from_json(row["run"]).learner().loop.env_steps == 2000
    assert "curve" not in rows[2]
    assert rows[0]["curve"] != rows[1]["curve"]  # it learnt from other demonstrations
    drawn = online_curves(rows)
    assert [curve.method for curve in drawn] == ["gail", "gaussian-gail"]
    assert drawn[0].mean == tuple(rows[0]["curve"]["mean"])


def test_a_run_that_was_killed_goes_on_where_it_was(grid, tmp_path):
    _, (gail, *_), place = grid

    def killed(what, done, total):
        if done >= 2000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_cell(gail, place, killed)
    (state,) = (tmp_path / "stages" / "policy").glob("*/training/state.safetensors")
    seen = []
    again = run_cell(gail, place, lambda what, done, total: seen.append(done))
    assert 1000 not in seen
    assert not state.exists()  # what is done needs no state
    fresh = Place(cache=tmp_path / "fresh", data=place.data, folder=tmp_path)
    whole = run_cell(gail, fresh, silent)
    assert again["curve"] == whole["curve"]
    assert again["metrics"] == whole["metrics"]


def test_steps_are_part_of_the_run_and_only_of_one_that_plays(grid, tmp_path):
    _, made, place = grid
    longer = runs(load_experiment(tmp_path / "played.toml", {"steps": 3000}))
    same = [run_digest(a, place) == run_digest(b, place) for a, b in zip(made, longer, strict=True)]
    assert same == [False, False, True]
    assert [is_online(run.method) for run in made] == [True, True, False]
    with pytest.raises(EluteError, match="none of the methods plays"):
        load_experiment(tmp_path / "played.toml", {"methods": ["bc-opt"], "settings": {}})


def test_what_it_costs_follows_the_steps_until_it_was_measured(grid):
    _, (gail, _, cloned), _ = grid
    guess = estimate([gail], [])
    cheap = {"method": "bc", "task": NAME, "timings": {"train": 1e6, "evaluate": 1.0}}
    assert estimate([gail], [cheap]) < guess + 10  # cloning is no measure of playing
    known = {"method": "gail", "task": NAME, "timings": {"train": 500.0, "evaluate": 1.0}}
    assert estimate([gail], [known]) == 501.0
    assert estimate([cloned], [cheap | {"method": cloned.method}]) > 1e5
    assert Adversarial.paper().env_steps == 5_000_000


def test_a_critic_wants_cleaner_rows_than_a_clone():
    choice = Choice({0: 1.0, 30: 0.5, 100: 0.2}, {0: 0.3, 30: 0.1, 100: 0.2}, ())
    assert chosen_step(choice, GAIL()) == 100
    assert chosen_step(choice, BC()) == 30
