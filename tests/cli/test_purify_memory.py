"""`elute purify` never asks for more rows at once than a chunk."""

import pytest
from typer.testing import CliRunner

from builders import plain
from elute.cli.main import app
from elute.demos.audit.sample import SAMPLE_ROWS
from elute.demos.files import load, save
from elute.demos.hdf5 import Hdf5Demos

CHUNK = 65_536
LENGTHS = (50_000, 50_000, 40_000)


@pytest.fixture
def files(tmp_path):
    save(plain(LENGTHS), tmp_path / "noisy.h5", format="d4rl")
    save(plain((100,), seed=1), tmp_path / "good.h5", format="d4rl")
    return tmp_path


@pytest.fixture
def asked(monkeypatch):
    """How many rows each reading asked for."""
    counts, read = [], Hdf5Demos.rows

    def counted(self, start, stop):
        counts.append(stop - start)
        return read(self, start, stop)

    monkeypatch.setattr(Hdf5Demos, "rows", counted)
    return counts


def purify(folder, *arguments):
    given = ["purify", folder / "noisy.h5", "--optimal", folder / "good.h5"]
    given += ["-o", folder / "out.h5", "--method", "identity", "--jobs", "1", *arguments]
    done = CliRunner().invoke(app, list(map(str, given)), catch_exceptions=False)
    assert done.exit_code == 0


def test_a_file_is_purified_a_chunk_at_a_time(files, asked):
    purify(files)
    assert max(asked) <= CHUNK
    assert sum(asked) >= 2 * sum(LENGTHS)  # once for the sample, once to purify
    assert len(load(files / "out.h5")) == sum(LENGTHS)


def test_of_the_first_rows_no_others_are_read(files, asked):
    purify(files, "--rows", "300", "--optimal-rows", "40")
    assert asked[:2] == [40, 300]
    of_the_audit = 2 * SAMPLE_ROWS  # what it looks at in either file, at most
    assert sum(asked[2:]) <= of_the_audit + 2 * 300
    assert len(load(files / "out.h5")) == 300
