"""Curves of methods that play, rebuilt from lines."""

import json

import pytest

from elute.envs.task import find_task
from elute.report.curves import (
    as_json,
    draw_online,
    online_curves,
    online_grids,
    online_outcomes,
)
from elute.report.summary import summaries, summary_cells, summary_grids
from elute.report.tables import BEST


def line(method, seed, mean, *, task="hopper", preset="default", steps=(50, 100), **more):
    run = {"preset": preset, "purifier": None, "settings": {"loop.env_steps": 100}, "seed": seed}
    return {
        "digest": f"{method}{seed}{task}{preset}{more}",
        "method": method,
        "task": task,
        "demos": "action-noise/heavy",
        "regime": "episode",
        "seed": seed,
        "data": None,
        "auto": False,
        "reverse_step": None,
        "run": run | more,
        "metrics": {"mean": mean[-1]},
        "curve": {"steps": list(steps), "mean": list(mean), "stderr": [1.0] * len(mean)},
    }


def test_means_and_errors_are_over_seeds():
    rows = [line("gail", 0, (10.0, 20.0)), line("gail", 1, (14.0, 26.0))]
    (curve,) = online_curves(rows)
    assert curve.x == (50.0, 100.0)
    assert curve.mean == (12.0, 23.0)
    assert curve.stderr == pytest.approx((2.0, 3.0))


def test_one_seed_has_no_error():
    (curve,) = online_curves([line("gail", 0, (10.0, 20.0))])
    assert curve.stderr == (None, None)


def test_a_line_written_twice_counts_once_and_curves_end_with_the_shortest():
    rows = [
        line("gail", 0, (0.0, 0.0)),
        line("gail", 0, (10.0, 20.0)),
        line("gail", 1, (14.0, 26.0, 30.0), steps=(50, 100, 150)),
    ]
    (curve,) = online_curves(rows)
    assert curve.x == (50.0, 100.0)
    assert curve.mean == (12.0, 23.0)


def test_other_settings_are_other_curves_with_names_that_say_so():
    rows = [
        line("gail", 0, (1.0, 2.0)),
        line("gail", 0, (3.0, 4.0), preset="paper"),
        line("dp-gail", 0, (5.0, 6.0)) | {"target": "inpaint"},
        line("dp-gail", 0, (7.0, 8.0)) | {"target": "joint"},
        line("wgail", 0, (5.0, 6.0), task="ant"),
    ]
    told = [(curve.task, curve.method, curve.mean[0]) for curve in online_curves(rows)]
    assert told == [
        ("ant", "wgail", 5.0),
        ("hopper", "gail (preset default)", 1.0),
        ("hopper", "gail (preset paper)", 3.0),
        ("hopper", "dp-gail (target inpaint)", 5.0),
        ("hopper", "dp-gail (target joint)", 7.0),
    ]


def test_lines_of_methods_that_do_not_play_are_left_out():
    cloned = {k: v for k, v in line("bc", 0, (1.0, 2.0)).items() if k != "curve"}
    assert online_curves([cloned]) == []


def test_the_figure_and_its_numbers(tmp_path):
    rows = [
        line("gail", 0, (1.0, 2.0)),
        line("2iwil", 0, (2.0, 1.0)),
        line("gail", 0, (3.0, 3.0), task="ant"),
    ]
    curves = online_curves(rows)
    draw_online(curves, tmp_path / "online.png")
    assert (tmp_path / "online.png").read_bytes().startswith(b"\x89PNG")
    (first, *_) = json.loads(json.dumps(as_json(curves)))["curves"]
    assert {"task", "method", "x", "mean", "stderr"} <= first.keys()
    assert (first["task"], first["mean"]) == ("ant", [3.0, 3.0])


def test_what_methods_come_to():
    long, steps = tuple(map(float, range(12))), tuple(range(12))
    rows = [line("gail", seed, long, steps=steps) for seed in (0, 1)]
    rows.append(line("dp-gail", 0, (5.0, 3.0)))
    for row, mean in zip(rows, (8.0, 10.0, 4.0), strict=True):
        row["metrics"] = {"mean": mean}
    plain, purified = online_outcomes(rows)
    assert (plain.method, plain.late.mean, plain.peak) == ("gail", 6.5, 11.0)  # of 2 to 11
    assert (plain.last.mean, plain.last.stderr) == (9.0, 1.0)
    assert (purified.late.mean, purified.peak, purified.last.mean) == (4.0, 5.0, 4.0)
    (grid,) = online_grids([plain])
    assert grid.rows[0][2:] == ("gail", "-", "2", "6.50 ± 0.00", "11", "9.00 ± 1.00")
    assert online_grids([]) == []


@pytest.fixture
def swept():
    def purified(step, seed, mean, *, auto=False):
        row = line("dp-gail", seed, mean, step=step, auto=auto)
        return row | {"reverse_step": step, "auto": auto}

    return [
        line("gail", 0, (1.0, 2.0)),
        *(purified(step, seed, (5.0, 7.0), auto=True) for seed, step in enumerate((60, 80))),
        *(purified(30, seed, (9.0, 1.0)) for seed in (0, 1)),
        *(purified(100, seed, (4.0, 8.0)) for seed in (0, 1)),
        purified(300, 0, (99.0, 99.0)),  # a seed is missing
    ]


def test_the_best_fixed_step_by_its_last_evaluations_stands_beside_the_chosen_one(swept):
    for row in swept:
        if row["reverse_step"] == 30:
            row["metrics"] = {"mean": 50.0}  # of the policy that is left
    made = online_outcomes(swept)
    assert [one.method for one in made] == ["gail", "dp-gail", "dp-gail @best"]
    assert (made[2].late.mean, made[2].peak, made[2].last.mean) == (6.0, 8.0, 8.0)
    (grid,) = online_grids(made)
    assert [row[3] for row in grid.rows] == ["-", "60/80", "100"]
    assert BEST in grid.notes
    assert BEST not in online_grids(made[:2])[0].notes
    assert [curve.mean for curve in online_curves(swept)] == [(1.0, 2.0), (5.0, 7.0), (4.0, 8.0)]


def test_a_fixed_step_that_was_tried_alone_stands_for_itself(swept):
    alone = [row for row in swept if row["auto"] or row["reverse_step"] in (None, 100)]
    assert [one.method for one in online_outcomes(alone)] == ["gail", "dp-gail", "dp-gail @100"]


def test_a_summary_of_methods_that_play_has_the_best_and_the_tuned_step(swept):
    made = {one.method: one for one in summaries(summary_cells(swept, "online"))}
    assert list(made) == ["gail", "dp-gail", "dp-gail @best", "dp-gail @tuned"]
    assert made["dp-gail @best"].compared == {}
    assert made["dp-gail @tuned"].compared.keys() == {"gail"}


def test_a_run_that_diverged_is_left_out():
    lost = line("gail", 1, (5.0, 6.0))
    lost["metrics"] = {"mean": None}
    (only,) = online_outcomes([line("gail", 0, (10.0, 20.0)), lost])
    assert only.late.seeds == 1


def test_a_summary_is_of_the_last_evaluations():
    hopper = find_task("hopper")
    low, high = hopper.random_score, hopper.expert_score
    dip = (*[high] * 11, low)  # eleven evaluations at the expert's return, then one without it
    steps = tuple(range(12))
    rows = [
        *(line("dp-gail", seed, dip, steps=steps) for seed in (0, 1)),
        *(line("gail", seed, [low] * 12, steps=steps) for seed in (0, 1)),
        line("gail", 0, dip, task="gym:Other-v0", steps=steps),  # whose expert is not known
    ]
    plain, purified = made = summaries(summary_cells(rows, "online"))
    assert (plain.method, plain.sets, plain.mean) == ("gail", 1, pytest.approx(0.0))
    assert purified.mean == pytest.approx(0.9)
    assert purified.compared["gail"].ahead == pytest.approx(0.9)
    (grid,) = summary_grids(made)
    assert grid.notes[1:] == (
        "a run of a method that plays has the mean of its last 10 evaluations",
    )
