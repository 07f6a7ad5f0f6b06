"""What every format must do. A new line in `FORMATS` is covered here without a change."""

import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from builders import (
    assert_same_array,
    assert_same_datasets,
    assert_same_rows,
    fingerprint,
    joined,
    place,
    rich,
    vild_file,
)
from elute.demos import files
from elute.demos.corrupt import corrupt
from elute.demos.files import load, open_demos, save
from elute.demos.formats import FORMATS, format_module
from elute.episodes import Piece
from elute.errors import EluteError
from elute.types import chunks

pytestmark = pytest.mark.parametrize("name", FORMATS)


def written(demos, folder, name, **options):
    path = place(folder, name)
    save(demos, path, format=name, **options)
    return path


def keeps_following(demos, folder, name):
    """Whether the format keeps next observations; it must say so when it does not."""
    losses = save(demos, place(folder, name), format=name)
    return not any("next observations" in loss for loss in losses)


@pytest.fixture
def folder(tmp_path):
    """Somewhere to write to that is not where the input lies."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.mark.parametrize("following", [True, False])
@pytest.mark.parametrize("action_type", ["float32", "float64"])
def test_a_round_trip_returns_the_same_rows(tmp_path, name, action_type, following):
    demos = rich(action_type=action_type, following=following)
    kept = keeps_following(demos, tmp_path, name)

    read = load(place(tmp_path, name))

    assert_same_rows(demos, read, following=kept)
    assert read.provenance.steps == demos.provenance.steps
    assert read.provenance.task == "lift"
    assert read.provenance.format == name
    assert read.provenance.source == str(place(tmp_path, name))


def test_a_round_trip_keeps_what_is_known_about_each_episode(tmp_path, name):
    demos = rich()
    read = load(written(demos, tmp_path, name))
    for before, after in zip(demos.episodes.attributes, read.episodes.attributes, strict=True):
        assert {key: after.get(key) for key in before} == before


def test_attributes_survive_a_second_trip_of_a_selection(tmp_path, folder, name):
    path = written(rich(), tmp_path, name)
    again = load(written(open_demos(f"{path}#episodes=2,0"), folder, name))
    wanted = [rich().episodes.attributes[i] for i in (2, 0)]
    for before, after in zip(wanted, again.episodes.attributes, strict=True):
        assert {key: after.get(key) for key in before} == before


def test_demonstrations_without_extras_or_rewards_round_trip(tmp_path, name):
    demos = replace(rich(following=False), rewards=None, extras={})
    assert_same_rows(demos, load(written(demos, tmp_path, name)))


def test_an_image_as_extra_is_in_the_written_file(tmp_path, name):
    demos = rich()
    images = np.arange(len(demos) * 12, dtype="uint8").reshape(-1, 2, 2, 3)
    read = open_demos(written(demos.with_extra("camera", images), tmp_path, name))
    assert "camera" in {*read.rows(0, 1).extras, *(c.split("/")[-1] for c in read.origin.carried)}


def test_text_as_extra_is_in_the_written_file(tmp_path, name):
    demos = rich()
    labels = np.array([f"zoë {i}" for i in range(len(demos))])
    read = open_demos(written(demos.with_extra("label", labels), tmp_path, name))
    assert "label" in {*read.rows(0, 1).extras, *(c.split("/")[-1] for c in read.origin.carried)}


@pytest.mark.parametrize("size", [1, 2, 6, 11, 1000])
def test_chunks_put_together_are_the_whole(tmp_path, name, size):
    path = written(rich(), tmp_path, name)
    whole = joined([load(path)])
    parts = joined(rows for _, rows in chunks(open_demos(path), size))
    assert whole.keys() == parts.keys()
    for key, array in whole.items():
        assert_same_array(array, parts[key], key)


def test_a_selection_reads_as_the_selected_episodes_of_the_whole(tmp_path, name):
    path = written(rich(), tmp_path, name)
    selected = load(f"{path}#episodes=3,1-2")
    assert_same_rows(load(path).select([3, 1, 2]), selected)
    assert selected.provenance.steps[-1]["episodes"] == [3, 1, 2]


def test_writing_twice_gives_the_same_bytes(tmp_path, name):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one = written(rich(), tmp_path / "one", name)
    time.sleep(1.1)  # no time of day may be in the file, and HDF5 counts in seconds
    two = written(rich(), tmp_path / "two", name)
    assert fingerprint(one) == fingerprint(two)


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize("noise", ["gaussian", "salt-pepper"])
def test_corrupting_on_the_way_is_corrupting_in_memory(
    tmp_path, folder, name, noise, size, monkeypatch
):
    path = written(rich().with_extra("clean_actions", rich().actions), tmp_path, name)
    monkeypatch.setattr(files, "chunks", partial(chunks, max_rows=size))

    def spoil(start, rows):
        return corrupt(rows, noise, 0.5, seed=3, first_row=start)

    out = written(open_demos(path), folder, name, transform=spoil)

    expected = corrupt(load(path), noise, 0.5, seed=3)
    assert_same_rows(expected, load(out))
    assert_same_array(load(out).extras["clean_actions"], rich().actions)
    assert not np.array_equal(load(out).actions, rich().actions)
    assert load(out).provenance.steps[-1]["operation"] == "corrupt"


def test_corrupting_adds_the_clean_actions(tmp_path, folder, name):
    demos = replace(rich(), extras={})
    path = written(demos, tmp_path, name)
    out = written(
        open_demos(path),
        folder,
        name,
        transform=lambda at, r: corrupt(r, "uniform", 1, first_row=at),
    )
    assert_same_array(load(out).extras["clean_actions"], demos.actions)


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_transform_may_change_everything(tmp_path, folder, name, size, monkeypatch):
    path = written(rich(), tmp_path, name)
    monkeypatch.setattr(files, "chunks", partial(chunks, max_rows=size))

    def change(start, rows):
        changed = rows.with_pairs(rows.pairs + 1, "change")
        return replace(
            changed.with_extra("operator", rows.extras["operator"] + 1), rewards=rows.rewards * 2
        )

    out = written(open_demos(path), folder, name, transform=change)

    assert_same_rows(change(0, load(path)), load(out))


def test_in_memory_changes_are_written_into_the_copy(tmp_path, folder, name):
    demos = load(written(rich(), tmp_path, name))
    changed = demos.with_pairs(demos.pairs * 2, "double").with_extra("new", np.arange(len(demos)))
    assert_same_rows(changed, load(written(changed, folder, name)))


def test_a_selection_is_written_as_it_reads(tmp_path, folder, name):
    path = written(rich(), tmp_path, name)
    source = open_demos(f"{path}#episodes=1,2")
    assert_same_rows(load(f"{path}#episodes=1,2"), load(written(source, folder, name)))


def test_a_cut_is_written_as_it_reads(tmp_path, folder, name):
    cut = load(written(rich(), tmp_path, name))[3:7]
    out = load(written(cut, folder, name))
    assert_same_rows(cut, out)
    assert out.episodes.lengths.tolist() == [2, 2]
    assert out.episodes.truncated.tolist() == [False, True]


def test_a_sample_is_written_as_it_reads(tmp_path, folder, name):
    demos = load(written(rich(), tmp_path, name))
    sample = demos.sample(11, np.random.default_rng(1))
    assert len(sample.episodes) > len(demos.episodes)
    assert_same_rows(sample, load(written(sample, folder, name)))


@pytest.mark.parametrize("shift", [1, -1])
def test_a_realigned_set_is_written_as_it_reads(tmp_path, folder, name, shift):
    demos = load(written(rich(), tmp_path, name))
    starts, lengths = demos.episodes.starts, demos.episodes.lengths
    pieces = [
        Piece(int(s) + max(0, -shift), int(n) - 1, shift)
        for s, n in zip(starts, lengths, strict=True)
        if n > 1
    ]
    moved = demos.take(pieces)
    out = load(written(moved, folder, name))
    assert_same_rows(moved, out)
    twice = out.take([Piece(0, 2)])  # and once more: the copy's origin is the new file
    (folder / "again").mkdir()
    assert_same_rows(twice, load(written(twice, folder / "again", name)))


def test_a_concatenation_is_written_as_it_is(tmp_path, folder, name):
    demos = load(written(rich(), tmp_path, name))
    both = demos + demos.select([0])
    assert_same_rows(both, load(written(both, folder, name)))


def test_writing_onto_the_input_is_refused(tmp_path, name):
    path = written(rich(), tmp_path, name)
    before = fingerprint(path)
    for source in (open_demos(path), load(path), load(path)[2:4], load(path) + rich(seed=1)):
        with pytest.raises(EluteError, match="output is the input"):
            save(source, path, format=name)
    assert fingerprint(path) == before


def test_an_output_in_a_missing_folder_is_refused(tmp_path, name):
    with pytest.raises(EluteError, match=r"nowhere.*does not exist"):
        written(rich(), tmp_path / "nowhere", name)
    assert list(tmp_path.iterdir()) == []


def broken(start, rows):
    if start:
        raise EluteError("broken on purpose")
    return rows


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_failure_in_the_middle_leaves_nothing(tmp_path, folder, name, in_memory, monkeypatch):
    monkeypatch.setattr(files, "chunks", partial(chunks, max_rows=2))
    path = written(rich(), tmp_path, name)
    with pytest.raises(EluteError, match="on purpose"):
        written((load if in_memory else open_demos)(path), folder, name, transform=broken)
    assert list(folder.iterdir()) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([path.name, "out"])


def test_an_existing_output_survives_a_failure_and_not_a_success(
    tmp_path, folder, name, monkeypatch
):
    path = written(rich(), tmp_path, name)
    old = written(rich(seed=1), folder, name)
    before = fingerprint(old)
    monkeypatch.setattr(files, "chunks", partial(chunks, max_rows=2))
    with pytest.raises(EluteError, match="on purpose"):
        written(open_demos(path), folder, name, transform=broken)
    assert fingerprint(old) == before
    written(open_demos(path), folder, name)
    assert_same_rows(load(path), load(old))
    assert list(folder.iterdir()) == [old]


def test_strict_refuses_exactly_when_something_is_lost(tmp_path, name):
    path = place(tmp_path, name)
    for demos in (rich(), rich(following=False), replace(rich(), rewards=None)):
        losses = save(demos, path, format=name)
        before = fingerprint(path)
        if losses:
            with pytest.raises(EluteError, match="cannot hold everything"):
                save(demos, path, format=name, strict=True)
            assert fingerprint(path) == before
        else:
            assert save(demos, path, format=name, strict=True) == []


def test_the_same_format_loses_nothing(tmp_path, folder, name):
    path = written(rich(), tmp_path, name)
    assert save(open_demos(path), place(folder, name), format=name, strict=True) == []


def test_only_its_own_files_are_detected(tmp_path, name):
    path = written(rich(), tmp_path, name)
    assert [other for other in FORMATS if format_module(other).detect(path)] == [name]


def test_every_row_of_the_issue_chain_comes_back(tmp_path, name):
    """VILD -> ... -> VILD through all formats, beginning the round at each of them."""
    order = list(FORMATS)
    at = order.index(name)
    path = vild_file(tmp_path / "in.h5", extra=np.arange(12.0))
    for step, through in enumerate([*order[at:], *order[:at], "vild"]):
        (tmp_path / str(step)).mkdir()
        path = written(open_demos(path), tmp_path / str(step), through)
    assert_same_datasets(tmp_path / "in.h5", path)


def test_episodes_that_were_split_stay_split(tmp_path, folder, name):
    demos = load(written(rich(), tmp_path, name))
    starts, lengths = demos.episodes.starts.tolist(), demos.episodes.lengths.tolist()
    halves = [Piece(0, 2), Piece(2, 3), *map(Piece, starts[1:], lengths[1:])]
    split = demos.take(halves)
    assert len(split) == len(demos)
    assert_same_rows(split, load(written(split, folder, name)))


def test_episodes_may_come_in_another_order_or_twice(tmp_path, folder, name):
    demos = load(written(rich(), tmp_path, name)).select([2, 0, 0, 4])
    assert_same_rows(demos, load(written(demos, folder, name)))


def test_an_extra_column_never_overwrites_an_array_of_the_format(tmp_path, name):
    demos = rich()
    for taken in ("terminals", "expert_masks", "rewards", "obs/object", "truncations", "elute"):
        clashing = demos.with_extra(taken, np.ones(len(demos)))
        try:
            path = written(clashing, tmp_path, name)
        except EluteError as error:
            assert taken in str(error)  # noqa: PT017
        else:
            assert_same_array(load(path).actions, demos.actions)
            assert_same_array(load(path).episodes.terminated, demos.episodes.terminated)
            assert_same_array(load(path).extras[taken], np.ones(len(demos)))
