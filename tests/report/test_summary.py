"""A table in a few lines: what is counted, and over which sets."""

from pathlib import Path

import pytest

from elute.report.curves import reverse_step_curves
from elute.report.groups import grouped, is_scored, tuned_fixed
from elute.report.summary import (
    ROWS,
    draw_summary,
    headline,
    headline_grids,
    summaries,
    summary_cells,
    summary_grids,
    summary_json,
)
from elute.report.tables import BEST, METHODS, cells, grids, in_parts, width
from elute.results import read

RESULTS = Path(__file__).parents[2] / "results"


def row(method, task, seed, normalised, episodes=10, step=None):
    run = {"preset": "default", "purifier": None, "settings": {}, "episodes": episodes}
    return {
        "method": method, "task": task, "demos": "action-noise/heavy", "regime": "episode",
        "seed": seed, "target": None, "reverse_step": step, "data": None, "run": run,
        "metrics": {"mean": 1000 * normalised, "normalised": normalised},
    }  # fmt: skip


def rows(method, *sets):
    """Of each task the scores of its seeds."""
    tasks = ("ant", "hopper", "walker2d")
    return [
        row(method, task, seed, score)
        for task, scores in zip(tasks, sets, strict=False)
        for seed, score in enumerate(scores)
    ]


@pytest.fixture
def made():
    lines = [
        *rows("bc-all", [0.2, 0.4], [0.5, 0.5], [0.9, 1.0]),
        *rows("dwbc", [0.3, 0.5], [0.4, 0.5]),
    ]
    return {one.method: one for one in summaries(grouped(lines))}


def test_every_run_is_told_from_most():
    lines = [*rows("bc-all", [0.2, 0.4]), *rows("dwbc", [0.5, 0.6]), *rows("bcnd", [0.1, 0.3])]
    (grid,) = summary_grids(summaries(grouped(lines)))
    beats = {line[0]: line[grid.columns.index("beats bc-all")] for line in grid.rows}
    assert beats["dwbc"] == "1.00 (all)"
    assert beats["bcnd"].startswith("0.25 (0.00 to ")


def test_sets_are_put_together(made):
    base, other = made["bc-all"], made["dwbc"]
    assert (base.sets, other.sets, base.seeds) == (3, 2, (2, 2))
    assert base.mean == pytest.approx((0.3 + 0.5 + 0.95) / 3)
    assert base.middle == pytest.approx((0.4 + 0.5 + 0.5 + 0.9) / 4)  # the middle half of six
    assert base.near == 1
    assert other.near == 0


def test_the_baseline_is_met_on_the_sets_of_both(made):
    found = made["dwbc"].compared["bc-all"]
    assert (found.above, found.sets) == (1, 2)
    assert found.ahead == pytest.approx((0.1 - 0.05) / 2)
    assert found.ahead_stderr == pytest.approx(0.15 / 2)  # two sets, .1 and -.05
    assert found.beats == pytest.approx(((3 / 4) + (1 / 4)) / 2)  # pairs of runs, ties by half
    assert found.beats_interval.low <= found.beats <= found.beats_interval.high
    assert made["bc-all"].compared == {}


def test_a_difference_of_one_set_has_no_error():
    base, other = summaries(grouped([*rows("bc-all", [0.2]), *rows("dwbc", [0.5])]))
    found = other.compared["bc-all"]
    assert (found.ahead, found.ahead_stderr) == (pytest.approx(0.3), None)
    assert "+0.30" in summary_grids([base, other])[0].rows[1]


def test_no_difference_has_no_sign_to_speak_of():
    made = summaries(grouped([*rows("bc-all", [0.2], [0.4]), *rows("dwbc", [0.198], [0.4])]))
    assert "+0.00 ± 0.00" in summary_grids(made)[0].rows[1]


def test_every_set_counts_alike():
    lines = [
        *rows("bc-all", [0.2, 0.4, 0.0], [0.5, 0.5], [0.9, 1.0, 0.0]),
        *rows("dwbc", [0.3, 0.0], [0.6, 0.0], [0.8]),
    ]
    base, other = summaries(grouped(lines))
    assert base.seeds == (2, 2)  # the third is left out until all sets have it
    assert base.middle == pytest.approx((0.4 + 0.5 + 0.5 + 0.9) / 4)
    assert other.seeds == (1, 1)
    met = other.compared["bc-all"]
    assert met.ahead == pytest.approx((0.1 + 0.1 - 0.1) / 3)
    assert (met.above, met.sets) == (2, 3)  # with the first seed, which both have everywhere


def test_sets_without_a_common_seed_count_with_what_they_have():
    lines = [row("bc-all", "ant", 0, 0.2), row("bc-all", "hopper", 1, 0.4)]
    (only,) = summaries(grouped(lines))
    assert (only.sets, only.middle) == (2, pytest.approx(0.3))


def test_one_seed_has_no_interval():
    (only,) = summaries(grouped(rows("bc-all", [0.2], [0.4])))
    assert only.interval is None
    (grid,) = summary_grids([only])
    assert grid.rows == (("bc-all", "2", "1", "0.30", "0.30", "0 of 2"),)
    assert summary_json([only])["methods"][0]["interval"] is None


def test_the_headline_has_the_best_first_and_nothing_that_nobody_can_have():
    lines = [
        *rows("bc-all", [0.2, 0.4], [0.5, 0.5]),
        *rows("dwbc", [0.3, 0.5], [0.4, 0.6]),
        *(row("dp-bc", task, seed, score, step=step)
          for task in ("ant", "hopper") for seed in (0, 1)
          for step, score in ((10, 0.6), (30, 0.7))),
    ]  # fmt: skip
    first = headline(summaries(summary_cells(lines, "1")))
    assert [one["method"] for one in summary_json(first)["methods"]] == [
        one.method for one in first
    ]
    (grid,) = headline_grids(first)
    assert [line[:4] for line in grid.rows] == [
        ("dp-bc @tuned", "purified (tested)", "0.70", "0 of 2"),
        ("dwbc", "all, weighed", "0.45", "0 of 2"),
        ("bc-all", "all, alike", "0.40", "0 of 2"),
    ]
    assert grid.columns[4:] == ("ahead of bc-all",)
    assert grid.rows[1][4] == "+0.05 ± 0.05"
    assert grid.title.endswith("seeds: 2")
    columns, tuned = grid.notes
    assert "85% of the way from random actions to the expert; ahead of: mean difference" in columns
    assert tuned.startswith("@tuned")


def test_the_headline_tells_nothing_of_baselines_that_are_not_there():
    (grid,) = headline_grids(headline(summaries(grouped(rows("bc-opt", [0.9], [0.8])))))
    assert grid.columns == ("method", "learns from", "mean", "near expert")
    assert "ahead" not in grid.notes[0]


def test_one_policy_for_several_sets_is_told_of():
    lines = rows("bc-opt", [0.9, 0.8], [0.8, 0.7])
    (told,) = headline_grids(summaries(grouped(lines)))[0].notes[1:] or ("",)
    assert told == ""  # one set of each task
    lines += [line | {"demos": "action-noise/light"} for line in lines]
    (told,) = headline_grids(summaries(grouped(lines)))[0].notes[1:]
    assert told.startswith("bc-opt sees no other rows")


@pytest.mark.parametrize(("sets", "times"), [(2, "12.7 times"), (3, "4.3 times")])
def test_how_far_an_interval_of_so_few_sets_reaches(sets, times):
    lines = [*rows("bc-all", *[[0.2]] * sets), *rows("dwbc", *[[0.5]] * sets)]
    assert times in headline_grids(summaries(grouped(lines)))[0].notes[0]


def test_regimes_stay_apart_in_the_headline():
    other = [line | {"regime": "paper"} for line in rows("dwbc", [0.95])]
    found = headline(summaries(grouped([*rows("bc-all", [0.2]), *rows("dwbc", [0.3]), *other])))
    assert [(one.regime, one.method) for one in found] == [
        ("episode", "dwbc"), ("episode", "bc-all"), ("paper", "dwbc"),
    ]  # fmt: skip


def test_the_headline_says_of_every_method_which_rows_it_takes():
    assert set(ROWS) == set(METHODS["1"])


@pytest.mark.parametrize("most", [1, 40, 60, 1000])
def test_a_wide_table_is_broken_between_columns(made, most):
    (whole,) = summary_grids(list(made.values()))
    parts = in_parts(whole, most)
    assert [part.columns[0] for part in parts] == ["method"] * len(parts)
    lines = zip(*([part.columns, *part.rows] for part in parts), strict=True)
    for line, broken in zip([whole.columns, *whole.rows], lines, strict=True):
        assert line[1:] == tuple(cell for part in broken for cell in part[1:])
    assert all(width(part) <= most or len(part.columns) == 2 for part in parts)
    assert all(len(part.columns) >= 2 for part in parts)
    assert [part.title for part in parts] == [whole.title] + [""] * (len(parts) - 1)
    assert [part.notes for part in parts] == [()] * (len(parts) - 1) + [whole.notes]
    assert (len(parts) == 1) == (most == 1000)


def test_settings_that_differ_anywhere_are_named_everywhere():
    lines = [
        row("dp-bc", task, 0, 0.5, step=5) | {"target": "inpaint"} for task in ("ant", "hopper")
    ]
    lines.append(row("dp-bc", "ant", 0, 0.7, step=5) | {"target": "joint"})
    assert {(g.place.task, g.variant) for g in grouped(lines)} == {
        ("ant", "target inpaint"), ("ant", "target joint"), ("hopper", "target inpaint"),
    }  # fmt: skip


def test_files_that_were_not_put_right_are_a_regime_of_their_own():
    lines = [row("bc-all", "ant", 0, 0.5) | {"data": {"realign": by}} for by in (0, 1)]
    regimes = {group.place.regime for group in grouped(lines)}
    assert regimes == {"episode, real files as they are", "episode, real files realigned by 1"}


def test_few_rows_stand_before_many():
    lines = [row("bc-all", "ant", 0, 0.5) for _ in range(3)]
    for line, n in zip(lines, (1000, 50, 200), strict=True):
        line["run"] = line["run"] | {"optimal_rows": n}
    sizes = [group.place.regime.split(", ")[1] for group in grouped(lines)]
    assert sizes == ["50 optimal rows", "200 optimal rows", "1000 optimal rows"]


def test_a_baseline_of_the_same_settings_is_met():
    lines = [
        *rows("bc-all", [0.2], [0.4]),
        *rows("dp-bc", [0.3], [0.5]),
        *rows("dwbc", [0.6], [0.6]),
    ]
    averaged = [*rows("bc-all", [0.7], [0.7]), *rows("dp-bc", [0.3], [0.8])]
    for line in averaged:
        line["run"] = line["run"] | {"settings": {"averaging": 0.99}}
    made = {one.method: one.compared for one in summaries(grouped([*lines, *averaged]))}
    assert made["dp-bc (settings default)"]["bc-all"].above == 2
    assert made['dp-bc (settings {"averaging": 0.99})']["bc-all"].above == 1
    assert made["dwbc"]["bc-all"].above == 2


def test_what_is_purified_does_not_matter_for_a_baseline():
    lines = [*rows("bc-all", [0.2], [0.4]), *rows("dp-bc", [0.3], [0.5])]
    last = [*rows("bc-all", [0.7], [0.7]), *rows("dp-bc", [0.3], [0.8]), *rows("dwbc", [0.1])]
    for line in last:
        line["run"] = line["run"] | {"settings": {"averaging": 0.0}}
    last[-1]["run"] = last[-1]["run"] | {"settings": {"updates": 9}}
    joint = [line | {"target": "joint"} for line in rows("dp-bc", [0.1], [0.1])]
    made = summaries(grouped([*lines, *last, *joint]))
    above = {one.method: [found.above for found in one.compared.values()] for one in made}
    assert above['dp-bc (target none, settings {"averaging": 0.0})'] == [1]
    assert above["dp-bc (target none, settings default)"] == [2]
    assert above["dp-bc (target joint, settings default)"] == [0]
    assert above["dwbc"] == []  # which of the two is its baseline, nobody can say


def test_a_run_without_a_score_is_left_out_of_the_figure(tmp_path):
    lines = [*rows("bc-all", [0.2, 0.3], [0.4, 0.5])]
    del lines[0]["metrics"]["normalised"]
    assert [one.sets for one in summaries(grouped(lines))] == [1]
    draw_summary(grouped(lines), tmp_path / "summary.png")
    assert (tmp_path / "summary.png").exists()


def test_it_is_drawn(tmp_path):
    lines = [*rows("bc-all", [0.2, 0.3], [0.4, 0.5]), *rows("dwbc", [0.3], [0.6])]
    draw_summary(grouped(lines), tmp_path / "summary.png")
    assert (tmp_path / "summary.png").read_bytes()[:4] == b"\x89PNG"


def test_an_evaluation_of_fewer_episodes_is_another_group():
    few = row("bc-all", "ant", 0, 0.9, episodes=1)
    groups = grouped([row("bc-all", "ant", 0, 0.2), row("bc-all", "ant", 1, 0.3), few])
    assert {group.variant: group.scores for group in groups} == {
        "episodes 10": (200.0, 300.0),
        "episodes 1": (900.0,),
    }


@pytest.fixture
def swept():
    scores = {0: (0.95, 0.2), 5: (0.9, 0.3), 10: (0.4, 0.6)}
    return [
        row("dp-bc", task, 0, score, step=step)
        for step, both in scores.items()
        for task, score in zip(("ant", "hopper"), both, strict=True)
    ]


def test_steps_are_compared_with_the_one_that_changes_nothing(swept):
    made = {one.method: one for one in summaries(cells(swept, "reverse-step"))}
    assert made["dp-bc @0"].compared == {}
    for step in (5, 10):
        found = made[f"dp-bc @{step}"].compared["dp-bc @0"]
        assert (found.above, found.sets) == (1, 2)
    assert made["dp-bc @5"].near == 1


def test_the_best_fixed_step_stands_beside_the_chosen_one(swept):
    chosen = row("dp-bc", "ant", 0, 0.5, step=7) | {"auto": True}
    made = cells([chosen, *swept], "1")
    assert [(g.name, g.place.task, g.scores) for g in made] == [
        ("dp-bc", "ant", (500.0,)),
        ("dp-bc @best", "ant", (900.0,)),
        ("dp-bc @best", "hopper", (600.0,)),
    ]
    (grid,) = grids(made, "1")
    assert grid.columns == ("task", "demos", "dp-bc", "dp-bc @best")
    assert grid.rows[1][3] == "600 @10 [1000]"  # the paper's own is of its best step, too
    assert BEST in grid.notes
    assert not any(bold[3] for bold in grid.bold)  # an oracle wins nothing


def test_nothing_is_compared_with_what_was_chosen_by_its_own_score(swept):
    more = [*rows("bc-all", [0.1, 0.1], [0.1, 0.1]), *swept]
    more += [{**line, "seed": 1} for line in swept]
    best = next(one for one in summaries(summary_cells(more, "1")) if one.method == "dp-bc @best")
    assert (best.interval, best.compared) == (None, {})
    assert any(BEST in note for note in summary_grids([best])[0].notes)


def test_a_best_step_of_several_targets_is_still_hindsight(swept):
    lines = [
        line | {"target": target, "seed": seed}
        for line in swept
        for target in ("joint", "inpaint")
        for seed in (0, 1)
    ]
    lines += rows("bc-all", [0.1, 0.1], [0.1, 0.1])
    best = [one for one in summaries(summary_cells(lines, "1")) if one.kind == ("dp-bc", "best")]
    assert [one.method for one in best] == [
        "dp-bc @best (target joint)", "dp-bc @best (target inpaint)",
    ]  # fmt: skip
    assert [(one.interval, one.compared) for one in best] == [(None, {})] * 2
    assert any(BEST in note for note in summary_grids(best)[0].notes)


def test_a_sweep_is_of_one_setting(swept):
    other = [line | {"run": line["run"] | {"settings": {"updates": 9}}} for line in swept]
    for line in other:
        line["metrics"] = {"mean": 5000.0, "normalised": 5.0}
    best = {g.variant: g.ours.mean for g in cells([*swept, *other], "1") if g.place.task == "ant"}
    assert best == {"settings default": 900.0, 'settings {"updates": 9}': 5000.0}


def test_variants_are_named_at_every_step(swept):
    other = {**swept[2], "reverse_step": 6}
    other["run"] = other["run"] | {"purifier": {"preset": "reference"}}
    made = {group.step: group.name for group in grouped([*swept, other])}
    assert made["10"] == "dp-bc @10 (purifier preset none)"
    assert made["6"] == "dp-bc @6 (purifier preset reference)"


def test_a_step_that_was_found_by_testing_is_judged_by_the_other_seeds():
    scores = {5: (0.9, 0.1, 0.5), 10: (0.4, 0.6, 0.6)}
    lines = [
        row("dp-bc", "ant", seed, score, step=step)
        for step, seeds in scores.items()
        for seed, score in enumerate(seeds)
    ]
    (found,) = tuned_fixed(grouped(lines))
    # without seed 0: 5 has .6, 10 has 1.2; without 1: 1.4 and 1.0; without 2: both 1.0, the first
    assert found.normalised == (0.4, 0.1, 0.5)
    assert (found.name, found.chosen) == ("dp-bc @tuned", (5, 10))
    assert tuned_fixed(grouped([line for line in lines if line["seed"] == 0])) == []
    lines[0]["metrics"] = {"mean": 900.0, "normalised": None}
    (found,) = tuned_fixed(grouped(lines))
    assert (found.scores, found.normalised) == ((400.0, 100.0, 500.0), ())


def test_the_chosen_step_of_a_curve_is_the_mean_over_seeds(swept):
    chosen = [
        {**row("dp-bc", "ant", seed, 0.5, step=step), "auto": True}
        for seed, step in enumerate((150, 100, 100, 100, 100))
    ]
    curves = {curve.task: curve for curve in reverse_step_curves([*swept, *chosen])}
    assert curves["ant"].auto == (110, 500)
    assert curves["hopper"].auto is None


def test_one_step_is_no_sweep_and_stands_for_itself(swept):
    made = cells(swept[2:4], "1")
    assert [(g.name, g.place.task) for g in made] == [("dp-bc @5", "ant"), ("dp-bc @5", "hopper")]
    (grid,) = grids(made, "1")
    assert grid.columns == ("task", "demos", "dp-bc @5")


def test_a_step_of_fewer_seeds_is_not_the_best(swept):
    more = [*swept, *({**line, "seed": 1} for line in swept if line["reverse_step"] != 10)]
    more += [row("dp-bc", "ant", 1, 0.3, step=20), row("dp-bc", "ant", 0, 0.3, step=20)]
    best = {g.place.task: g.chosen for g in cells(more, "1") if g.step == "best"}
    assert best == {"ant": (5,)}  # of hopper only one step has both seeds


def test_a_sweep_has_a_table_for_each_task(swept):
    chosen = row("dp-bc", "ant", 0, 0.5, step=7) | {"auto": True}
    ant, hopper = grids(cells([chosen, *swept], "reverse-step"), "reverse-step")
    assert ant.columns == ("method", "action noise heavy")
    assert [line[0] for line in ant.rows] == ["dp-bc", "dp-bc @0", "dp-bc @5", "dp-bc @10"]
    assert ant.rows[0][1].startswith("500 @7")
    assert [line[0] for line in hopper.rows] == ["dp-bc @0", "dp-bc @5", "dp-bc @10"]


def test_a_set_stands_in_tables_that_are_about_something_it_has(swept):
    alike = [*rows("bc-all", [0.2], [0.5]), *rows("dp-bc", [0.3], [0.4])]
    assert cells(alike, "filters") == []  # Table 1 has these, too
    assert cells([{**row("dp-bc", "ant", 0, 0.5, step=7), "auto": True}], "reverse-step") == []
    made = cells([*alike, *rows("mean-bc", [0.1])], "filters")
    assert [group.name for group in made] == ["bc-all", "dp-bc", "mean-bc"]
    assert {group.place.task for group in made} == {"ant"}
    chosen = [{**row("dp-bc", "walker2d", 0, 0.5, step=7), "auto": True}, *swept]
    assert {group.place.task for group in cells(chosen, "reverse-step")} == {"ant", "hopper"}


@pytest.mark.parametrize("file", sorted(RESULTS.rglob("*.jsonl")), ids=lambda file: file.stem)
def test_no_committed_run_is_there_twice(file):
    """A line of an older choice of the step beside one of today would hide it, or be hidden."""
    scored = [line for line in read(file).rows if is_scored(line)]
    assert sum(len(group.scores) for group in grouped(scored)) == len(scored)
