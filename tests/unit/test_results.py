"""Lines are whole or not there, and a torn one hurts nobody."""

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from elute import results
from elute.errors import EluteError


def row(i):
    """A run of this seed, of which nothing else matters."""
    run = dict.fromkeys(sorted(results.RUN_KEYS))
    given = dict.fromkeys(results.NAMES, "x") | {"seed": i, "run": run, "metrics": {"mean": 1.5}}
    return {"text": "ä\n", **dict.fromkeys(sorted(results.KEYS)), **given}


def test_what_was_appended_is_read(tmp_path):
    path = tmp_path / "new" / "a.jsonl"
    for i in range(3):
        results.append(path, row(i))
    assert results.read(path) == ([row(0), row(1), row(2)], [1, 2, 3], [])
    assert results.read(tmp_path / "none.jsonl").rows == []


def test_lines_that_are_no_runs_are_told(tmp_path):
    path = tmp_path / "a.jsonl"
    for line in ({"metrics": {"mean": 1}}, row(0), [1, 2], row(1)):
        results.append(path, line)
    assert results.read(path) == ([row(0), row(1)], [2, 4], [1, 3])


@pytest.mark.parametrize(
    "wrong",
    [
        {"seed": "zero"}, {"seed": None}, {"metrics": None}, {"metrics": {"mean": "high"}},
        {"metrics": {"normalised": [1]}}, {"run": {}}, {"run": None}, {"data": "x"},
        {"run": dict.fromkeys(results.RUN_KEYS, "x")}, {"reverse_step": "x"}, {"curve": [1]},
        {"curve": {"steps": [1, 2], "mean": [1.0]}}, {"curve": {"steps": [], "mean": []}},
        {"curve": {"steps": [1], "mean": ["x"]}}, {"method": ["bc"]}, {"versions": [1]},
        {"metrics": {"stderr": "x"}}, {"metrics": {"returns": 1}}, {"metrics": {"returns": ["x"]}},
        {"metrics": {"returns": [10**400]}}, {"curve": {"steps": [1], "mean": [10**400]}},
        {"metrics": {"readings": [1]}}, {"metrics": {"readings": {"lifted": "x"}}},
    ],
)  # fmt: skip
def test_a_line_of_other_types_is_no_run(tmp_path, wrong):
    results.append(tmp_path / "a.jsonl", row(0) | wrong)
    assert results.read(tmp_path / "a.jsonl").torn == [1]


def test_a_device_holds_nothing_though_it_has_no_end():
    assert results.read(Path("/dev/zero")).rows == []


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1" + 400 * "0"])
def test_a_score_that_is_no_number_is_no_run(tmp_path, value):
    line = json.dumps(row(0)).replace("1.5", value)
    (tmp_path / "a.jsonl").write_text(line + "\n")
    assert results.read(tmp_path / "a.jsonl").torn == [1]


@pytest.mark.parametrize(
    ("junk", "told"),
    [
        (0, ""),
        (1, "line 1 is torn or holds no run"),
        (2, "lines 1, 2 are torn or hold no run"),
        (9, "lines 1, 2, 3, 4, 5 and 4 more are torn or hold no run"),
    ],
)
def test_what_holds_no_run_is_told_in_a_few_words(tmp_path, junk, told):
    (tmp_path / "a.jsonl").write_text("junk\n" * junk + json.dumps(row(0)) + "\n")
    assert results.read(tmp_path / "a.jsonl").warning == told


def test_a_file_that_cannot_be_written_is_known_before(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EluteError, match="cannot be written"):
        results.check_writable(tmp_path / "file" / "a.jsonl")
    results.check_writable(tmp_path / "new" / "a.jsonl")
    assert not (tmp_path / "new" / "a.jsonl").exists()


@pytest.mark.parametrize("cut", [1, 5])
def test_a_torn_last_line_is_kept_reported_and_not_joined_to_the_next(tmp_path, cut):
    path = tmp_path / "a.jsonl"
    results.append(path, row(0))
    results.append(path, row(1))
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    before = path.read_bytes()
    results.append(path, row(2))
    assert path.read_bytes().startswith(before)
    read = results.read(path)
    if cut == 1:  # only its end is missing
        assert read.rows == [row(0), row(1), row(2)]
    else:
        assert (read.rows, read.torn) == ([row(0), row(2)], [2])


def _append_many(path, name):
    for i in range(50):
        results.append(path, {"name": name, "i": i, "long": "x" * 5000})


def test_two_processes_do_not_mix_their_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=_append_many, args=(path, name)) for name in "ab"]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 100


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    results.append(path, {"i": 0})
    before, write = path.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda file, line: write(file, line[:4]))
    with pytest.raises(EluteError, match="cannot be written"):
        results.append(path, {"i": 1})
    assert path.read_bytes() == before


def test_numbers_that_json_has_not_are_refused(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        results.append(tmp_path / "a.jsonl", {"mean": float("nan")})
