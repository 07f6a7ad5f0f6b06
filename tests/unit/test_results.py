"""Lines are whole or not there, and a torn one hurts nobody."""

import json
import multiprocessing
import os

import pytest

from elute import results
from elute.errors import EluteError


def test_what_was_appended_is_read(tmp_path):
    path = tmp_path / "new" / "a.jsonl"
    for i in range(3):
        results.append(path, {"i": i, "text": "ä\n"})
    assert results.read(path).rows == [{"i": i, "text": "ä\n"} for i in range(3)]
    assert results.read(tmp_path / "none.jsonl").rows == []


@pytest.mark.parametrize("cut", [1, 5, 9])
def test_a_torn_last_line_is_kept_reported_and_not_joined_to_the_next(tmp_path, cut):
    path = tmp_path / "a.jsonl"
    results.append(path, {"i": 0})
    results.append(path, {"i": 1})
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    before = path.read_bytes()
    results.append(path, {"i": 2})
    assert path.read_bytes().startswith(before)
    read = results.read(path)
    if cut == 1:  # only its end is missing
        assert read.rows == [{"i": 0}, {"i": 1}, {"i": 2}]
    else:
        assert (read.rows, read.torn) == ([{"i": 0}, {"i": 2}], [] if cut == 9 else [2])


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
