"""What a grid will cost is what runs like its took, with everything shared counted once."""

from dataclasses import replace

import pytest

from elute.experiment.costs import GUESS, TRAIN, estimate
from elute.experiment.spec import load_experiment, runs
from experiment.grids import write_grid


def row(method, **timings):
    return {"method": method, "task": "hopper", "timings": timings}


@pytest.fixture
def planned(tmp_path):
    """Two sets, two seeds: of each method, four runs."""

    def plan(method):
        settings = {"methods": [method], "settings": {}}
        return runs(load_experiment(write_grid(tmp_path), settings))

    return plan


def test_a_run_costs_what_its_like_took_on_average(planned):
    measured = [row("bc-all", train=2.0, evaluate=1.0), row("bc-all", train=4.0, evaluate=1.0)]
    assert estimate(planned("bc-all"), measured) == pytest.approx(4 * (3.0 + 1.0))


def test_stages_of_other_methods_serve_but_not_their_learning(planned):
    measured = [row("dbc", train=50.0, evaluate=1.0)]
    assert estimate(planned("bc-all"), measured) == pytest.approx(4 * (GUESS["train"] + 1.0))
    assert estimate(planned("bcnd"), measured) == pytest.approx(4 * (TRAIN["bcnd"] + 1.0))


def test_what_learns_from_optimal_rows_learns_once_for_all_sets(planned):
    measured = [row("bc-opt", train=10.0, evaluate=1.0)]
    assert estimate(planned("bc-opt"), measured) == pytest.approx(2 * 10.0 + 4 * 1.0)


def test_other_rows_or_targets_share_nothing(planned):
    run, *_ = planned("dp-bc")
    joint = replace(run, purifier=replace(run.purifier, target="joint"))
    assert estimate([run, run], []) == pytest.approx(estimate([run], []))
    for other in (joint, replace(run, optimal_rows=60)):
        assert estimate([run, other], []) == pytest.approx(2 * estimate([run], []))


def test_presets_share_a_purifier_and_no_learner(planned):
    run, *_ = planned("dp-bc")
    timings = {"choose": 5.0, "fit": 3.0, "purify": 1.0, "train": 2.0, "evaluate": 1.0}
    other = replace(run, preset="paper")
    assert estimate([run, other], [row("dp-bc", **timings)]) == pytest.approx(9.0 + 2 * 3.0)


def test_a_model_is_shared_by_all_learners(planned):
    one, other = planned("dp-bc"), planned("dp-dwbc")
    timings = {"choose": 5.0, "fit": 3.0, "purify": 1.0, "train": 2.0, "evaluate": 1.0}
    measured = [row("dp-bc", **timings), row("dp-dwbc", **timings)]
    assert estimate([*one, *other], measured) == pytest.approx(4 * 9.0 + 8 * 3.0)
