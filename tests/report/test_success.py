"""Tables of success rates, against numbers worked out by hand."""

import numpy as np
import pytest
from scipy import stats

from elute.collect.operator import SHIPPED
from elute.demos.files import load
from elute.demos.pointmass import pointmass
from elute.errors import EluteError
from elute.report.robot import quality_grid, shipped_scene
from elute.report.success import (
    beats,
    episodes_interval,
    in_paper,
    share,
    success_cells,
    success_grids,
    success_json,
)
from elute.report.tables import in_parts, latex, markdown

EPISODES = 50


def line(success, method="bc-all", *, seed=0, demos="roboturk/supplementary", step=None, **more):
    """A line of results, as `elute run` writes it."""
    purifier = None
    if step is not None:
        target = more.get("target", "joint")
        purifier = {"method": "diffusion", "reverse_step": str(step), "target": target,
                    "preset": "default"}  # fmt: skip
    return {
        "digest": f"{method}{seed}{demos}{step}{more}",
        "method": method,
        "task": "sawyer-reach",
        "demos": demos,
        "regime": "whole",
        "target": None if purifier is None else purifier["target"],
        "reverse_step": more.get("chosen", step),
        "auto": step == "auto",
        "seed": seed,
        "data": None,
        "run": {"purifier": purifier, "preset": "default", "settings": {}},
        "metrics": {
            "mean": 100.0 * success,
            "success": success,
            "returns": [0.0] * EPISODES,
            "readings": {"nut_centre": success, "at_end": success / 2, "nut_peg": 0.0},
        },
    }


@pytest.fixture
def rows():
    rates = {
        ("bc-all", None): (0.2, 0.4, 0.6),
        ("bcnd", None): (0.1, 0.1, 0.1),
        ("dp-bc", 3): (0.6, 0.8, 1.0),
    }
    made = [
        line(rate, method, seed=seed, step=step)
        for (method, step), values in rates.items()
        for seed, rate in enumerate(values)
    ]
    made += [line(0.5, "dp-bc", seed=s, step="auto", chosen=(60, 30)[s % 2]) for s in range(3)]
    made += [line(0.5, "dp-bc", seed=s, step="auto", target="action", chosen=60) for s in range(3)]
    made += [line(0.5, seed=s, demos="roboturk/l1") for s in range(2)]
    return made


def cell(made, method):
    return next(group for group in made if group.method == method)


def test_intervals_are_those_of_seeds_and_of_episodes(rows):
    bc = cell(success_cells(rows, "robosuite"), "bc-all")
    ours = share(bc)
    assert ours.mean == pytest.approx(0.4)
    assert ours.stderr == pytest.approx(0.2 / np.sqrt(3))
    half = stats.t.ppf(0.975, 2) * 0.2 / np.sqrt(3)
    assert ours.interval == pytest.approx((0.0, 0.4 + half))  # 0.4 - half is no share
    expected = stats.binomtest(60, 150).proportion_ci(method="wilson")
    assert episodes_interval(bc) == pytest.approx((expected.low, expected.high))


def test_beating_is_counted_over_pairs_of_seeds(rows):
    made = success_cells(rows, "robosuite")
    dp, bc = next(g for g in made if g.step == "3"), cell(made, "bc-all")
    probability, interval = beats(dp, bc)
    assert probability == pytest.approx(8.5 / 9)  # one tie
    assert interval.low < probability <= interval.high == 1.0


def test_the_paper_stands_beside_its_own_cells(rows):
    made = success_cells(rows, "robosuite")
    told = {(g.method, g.step, g.target): in_paper(g, "robosuite") for g in made}
    assert told["bc-all", "", ""].mean == 0.76
    assert told["dp-bc", "3", "joint"].mean == 0.86
    auto = told["dp-bc", "auto", "joint"]
    assert (auto.mean, auto.note) == (0.86, "the paper's best fixed step (3)")
    assert told["dp-bc", "auto", "action"] is None  # it purifies states as well
    (half,) = success_cells(rows, "robosuite-steps")
    assert in_paper(half, "robosuite-steps") is None
    (step,) = success_cells([line(0.5, "dp-bc", step=5, demos="operator/l1")], "robosuite-steps")
    assert in_paper(step, "robosuite-steps").mean == 0.80


def test_a_table_is_laid_out(rows, monkeypatch):
    monkeypatch.setattr("elute.report.statistics.FEWEST_SEEDS", 3)
    (grid,) = success_grids(success_cells(rows, "robosuite"), "robosuite")
    assert "human" in grid.title
    assert "(roboturk/supplementary): success over 3 seeds of 50 episodes" in grid.title
    table = {row[0]: row for row in grid.rows}
    assert list(table) == [
        "bc-all",
        "bcnd",
        "dp-bc joint @3",
        "dp-bc action auto@60",
        "dp-bc joint auto@30/60",
    ]
    assert table["bc-all"][1:4] == ("0.40 (0.00 to 0.90)", "-", "0.76")
    assert table["bc-all"][4:] == ("0.33 to 0.48", "0.40", "0.20", "0.00")
    assert table["bcnd"][2] == "0.00"
    assert table["dp-bc joint auto@30/60"][3] == "0.86 (1)"
    assert grid.notes == ("(1) the paper's best fixed step (3)",)
    bold = {row[0] for row, marks in zip(grid.rows, grid.bold, strict=True) if marks[1]}
    assert bold == set(table) - {"bcnd"}  # its interval touches no other
    assert "| **0.80 (0.30 to 1.00)** |" in markdown(grid)
    assert r"\textbf{0.80 (0.30 to 1.00)}" in latex(grid)


def test_methods_of_one_name_win_apart(rows, monkeypatch):
    monkeypatch.setattr("elute.report.statistics.FEWEST_SEEDS", 3)
    worse = [line(0.01, seed=seed) for seed in range(3)]
    for one in worse:
        one["run"] = one["run"] | {"settings": {"updates": 1}}
    (grid,) = success_grids(success_cells([*rows, *worse], "robosuite"), "robosuite")
    bold = {r[1][:4]: b[1] for r, b in zip(grid.rows, grid.bold, strict=True) if r[0] == "bc-all"}
    assert bold == {"0.40": True, "0.01": False}


def test_a_terminal_gets_what_compares_methods_first_and_then_the_rest(rows):
    (whole,) = success_grids(success_cells(rows, "robosuite"), "robosuite")
    first, second = in_parts(whole, 80)
    assert first.rows[2] == ("dp-bc joint @3", "0.80 (0.30 to 1.00)", whole.rows[2][2], "0.86")
    assert [marks[1] for marks in first.bold] == [marks[1] for marks in whole.bold]
    assert second.rows[0] == ("bc-all", "0.33 to 0.48", "0.40", "0.20", "0.00")


def test_each_set_is_a_table(rows):
    rows += [line(0.5, seed=0, demos="roboturk/l2")]
    made = success_cells(rows, "robosuite-steps")
    titles = [grid.title for grid in success_grids(made, "robosuite-steps")]
    assert ["roboturk/l1" in titles[0], "roboturk/l2" in titles[1]] == [True, True]
    assert "over 1 seed of 50 episodes" in titles[1]


def test_data_of_both_kinds_are_two_tables_and_one_seed_has_no_interval(rows):
    synthetic = [line(0.5, demos="operator/supplementary"), line(0.6, "dwbc", demos="operator/l2")]
    human, made_up = success_grids(success_cells(rows + synthetic, "robosuite"), "robosuite")
    assert "synthetic" in made_up.title
    assert made_up.rows[0][1] == "0.50"
    assert "human" in made_up.notes[0]
    assert len(human.rows) == 5


def test_other_lines_are_left_out(rows):
    strange = line(0.5) | {"task": "hopper", "demos": "action-noise/heavy"}
    assert len(success_cells([*rows, strange], "robosuite")) == 5
    assert success_cells([strange], "robosuite") == []


def test_machines_get_the_same_numbers(rows):
    found = success_json(success_cells(rows, "robosuite"), "robosuite")["cells"]
    first = found[0]
    assert (first["method"], first["success"], first["paper"]) == (
        "bc-all",
        pytest.approx(0.4),
        0.76,
    )
    assert first["beats_bc-all"] is None
    assert found[2]["beats_bc-all"] == pytest.approx(8.5 / 9)
    assert found[2]["readings"]["at_end"] == pytest.approx(0.4)
    assert first["seeds_bootstrap"] == pytest.approx((0.2, 0.6))  # 1 in 27 has the least thrice


def test_the_ten_stand_beside_the_papers():
    grid = quality_grid({"operator": load(SHIPPED)})
    assert grid.rows[0] == ("1", "500", "276", "500", "280")
    assert [int(row[2]) for row in grid.rows] == [276, 120, 203, 102, 253, 312, 103, 81, 180, 318]
    with pytest.raises(EluteError, match="expected 10 demonstrations"):
        quality_grid({"other": pointmass(3)})


def test_the_scene_comes_with_elute():
    pytest.importorskip("matplotlib")
    scene = shipped_scene()
    assert scene.shape == (480, 640, 3)
    assert (scene != scene[0, 0]).any()
