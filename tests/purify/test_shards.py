"""Shards on the disk: what is finished is kept, and belongs to one work."""

from pathlib import Path

import numpy as np
import pytest

from builders import assert_same_rows, plain, rich
from elute.errors import EluteError
from elute.experiment.shards import Work, local
from elute.purify.filters import FilterPurifier, FilterTransform
from elute.purify.shards import MOVED, Purification, differences, shard_folder
from elute.types import chunk_bounds

BOUNDS = [(0, 4), (4, 8), (8, 12)]


@pytest.fixture
def purification():
    return Purification(FilterTransform(FilterPurifier(target="action")), np.ones(5), seed=0)


def test_only_what_changed_is_kept_and_makes_the_rows_again(tmp_path, purification):
    rows = plain((12,))
    cleaned = purification(0, rows)
    changed = differences(rows, cleaned)
    assert set(changed) == {"actions", f"extra/{MOVED}"}
    with shard_folder(tmp_path / "s", "work") as shards:
        shards.put(0, changed)
        assert_same_rows(shards.patch(0, rows), cleaned)


def test_every_kind_of_array_is_kept(tmp_path):
    rows, other = rich(seed=0), rich(seed=1)
    with shard_folder(tmp_path / "s", "work") as shards:
        shards.put(0, differences(rows, other))
        assert_same_rows(shards.patch(0, rows), other)


def test_moves_are_measured_in_units_of_each_column():
    rows = plain((12,))
    twice = Purification(lambda rows, **_: rows.with_pairs(rows.pairs + 3.0, "move"),
                         np.array([1.0, 1.0, 1.0, 2.0, np.inf]), seed=0)  # fmt: skip
    expected = np.sqrt((3 * 3.0**2 + 1.5**2) / 5)
    np.testing.assert_allclose(twice(0, rows).extras[MOVED], expected)


def put(shards, *starts):
    for start in starts:
        shards.put(start, {"actions": np.zeros((4, 2))})


def interrupted(folder, *starts):
    with shard_folder(folder, "work") as shards:
        put(shards, *starts)
        raise KeyboardInterrupt


def test_finished_shards_outlive_what_fails_and_vanish_in_the_end(tmp_path):
    folder = tmp_path / "s"
    with pytest.raises(KeyboardInterrupt):
        interrupted(folder, 4)
    with shard_folder(folder, "work") as shards:
        assert shards.missing(BOUNDS) == [(0, 4), (8, 12)]
        put(shards, 0, 8)
        assert shards.missing(BOUNDS) == []
    assert not folder.exists()


def test_other_work_begins_anew(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path / "s", 0, 4)
    with shard_folder(tmp_path / "s", "other work") as shards:
        assert shards.missing(BOUNDS) == BOUNDS


def test_a_half_written_shard_does_not_count(tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError(28, "no space left")

    with shard_folder(tmp_path / "s", "work") as shards:
        with monkeypatch.context() as broken:
            broken.setattr("os.fsync", full_disk)
            with pytest.raises(EluteError, match="no space left"):
                put(shards, 0)
        assert shards.missing(BOUNDS) == BOUNDS
        assert [path.name for path in Path(tmp_path / "s").iterdir()] == ["work"]


def test_two_processes_do_not_write_one_output(tmp_path):
    with (
        shard_folder(tmp_path / "s", "work"),
        pytest.raises(EluteError, match="another process"),
        shard_folder(tmp_path / "s", "work"),
    ):
        pass


@pytest.mark.parametrize("linked", [False, True])
def test_what_is_not_ours_is_left_alone(tmp_path, linked):
    precious = tmp_path / ("precious" if linked else "s")
    precious.mkdir()
    (precious / "a.npz").write_text("mine")
    if linked:
        (tmp_path / "s").symlink_to(precious)
    with (
        pytest.raises(EluteError, match="stands in the way"),
        shard_folder(tmp_path / "s", "work"),
    ):
        pass
    assert [path.name for path in precious.iterdir()] == ["a.npz"]


def test_a_damaged_shard_is_named(tmp_path):
    with shard_folder(tmp_path / "s", "work") as shards:
        put(shards, 0)
        (tmp_path / "s" / "0.npz").write_bytes(b"no zip")
        with pytest.raises(EluteError, match="a damaged shard"):
            shards.patch(0, plain((4,)))


def test_an_engine_finishes_what_is_missing_and_nothing_else(tmp_path, purification):
    demos = plain((40,) * 6)
    bounds = chunk_bounds(demos.episodes, 100)
    with shard_folder(tmp_path / "s", "work") as shards:
        work = Work(demos, purification, shards)
        assert list(local(1)(work, bounds[1:])) == [80, 80]
        assert shards.missing(bounds) == bounds[:1]
        done = (tmp_path / "s" / "80.npz").stat().st_mtime_ns
        assert list(local(1)(work, shards.missing(bounds))) == [80]
        assert (tmp_path / "s" / "80.npz").stat().st_mtime_ns == done
        rows = demos.rows(80, 160)
        assert_same_rows(shards.patch(80, rows), purification(80, rows))
