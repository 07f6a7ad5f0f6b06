"""A table in a few lines: what is counted, and over which sets."""

import pytest

from elute.report.groups import grouped
from elute.report.summary import draw_summary, summaries, summary_grids, summary_json


def row(method, task, seed, normalised, episodes=10):
    run = {"preset": "default", "purifier": None, "settings": {}, "episodes": episodes}
    return {
        "method": method, "task": task, "demos": "action-noise/heavy", "regime": "episode",
        "seed": seed, "target": None, "reverse_step": None, "data": None, "run": run,
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


def test_sets_are_put_together(made):
    base, other = made["bc-all"], made["dwbc"]
    assert (base.sets, other.sets, base.seeds) == (3, 2, (2, 2))
    assert base.middle == pytest.approx((0.4 + 0.5 + 0.5 + 0.9) / 4)  # the middle half of six
    assert base.near == 1
    assert other.near == 0


def test_the_baseline_is_met_on_the_sets_of_both(made):
    other = made["dwbc"]
    assert other.above == (1, 2)
    assert other.beats == pytest.approx(((3 / 4) + (1 / 4)) / 2)  # pairs of runs, ties by half
    assert other.beats_interval.low <= other.beats <= other.beats_interval.high
    assert (made["bc-all"].beats, made["bc-all"].above) == (None, None)


def test_one_seed_has_no_interval():
    (only,) = summaries(grouped(rows("bc-all", [0.2], [0.4])))
    assert only.interval is None
    (grid,) = summary_grids([only])
    assert grid.rows == (("bc-all", "2", "1", "0.30", "-", "-", "0 of 2"),)
    assert summary_json([only])["methods"][0]["interval"] is None


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
