"""`elute verify`: a line is run again, by its number in the file."""

import json

import pytest

from commands import elute
from elute.experiment.cell import Place
from elute.experiment.engine import local, run_grid
from elute.experiment.spec import load_experiment, runs
from experiment.grids import write_grid


@pytest.fixture
def lines(tmp_path):
    """A torn line, then two runs."""
    grid = write_grid(tmp_path)
    path = tmp_path / "lines.jsonl"
    path.write_text('{"torn\n')
    experiment = load_experiment(grid, {"seeds": 1, "methods": ["bc-all"], "settings": SETTINGS})
    place = Place(cache=tmp_path / "cache", data=experiment.data, folder=tmp_path)
    assert len(list(run_grid(runs(experiment), place, path, engine=local(1)))) == 2
    return path


SETTINGS = {"bc-all": {"updates": 5, "hold_out": 0.0}}


def verify(path, number):
    return elute("verify", path, "--line", number, "--data", path.parent, "--json")


def test_a_line_comes_out_the_same(lines):
    done = verify(lines, 2)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["same"] is True


def test_a_number_that_was_changed_is_found(lines):
    torn, first, second = lines.read_text().splitlines()
    row = json.loads(second)
    row["metrics"]["returns"][0] += 1
    lines.write_text("\n".join([torn, first, json.dumps(row), ""]))
    done = verify(lines, 3)
    assert done.returncode == 1
    assert json.loads(done.stdout)["largest_difference"] == pytest.approx(1)


def test_a_line_of_a_machine_that_rounds_otherwise_is_told_so(lines):
    row = json.loads(lines.read_text().splitlines()[1])
    row["metrics"]["returns"][0] += 1
    row["versions"]["arithmetic"] = "00000000"
    lines.write_text(json.dumps(row) + "\n")
    done = elute("verify", lines, "--line", 1, "--data", lines.parent)
    assert done.returncode == 1
    assert "arithmetic was 00000000" in done.stdout
    assert "round otherwise here" in " ".join(done.stderr.split())


def test_a_line_that_does_not_say_how_it_was_rounded_is_not_explained_by_it(lines):
    row = json.loads(lines.read_text().splitlines()[1])
    row["metrics"]["returns"][0] += 1
    del row["versions"]["arithmetic"]
    lines.write_text(json.dumps(row) + "\n")
    done = elute("verify", lines, "--line", 1, "--data", lines.parent)
    assert done.returncode == 1
    assert "does not say how its machine rounded" in " ".join(done.stderr.split())
    assert "round otherwise" not in done.stderr


@pytest.mark.parametrize("metrics", [{"mean": None}, {"mean": 1.0}])
def test_a_line_without_returns_is_refused(lines, metrics):
    row = json.loads(lines.read_text().splitlines()[1])
    lines.write_text(json.dumps(row | {"metrics": metrics}) + "\n")
    done = verify(lines, 1)
    assert done.returncode == 2
    assert "no returns to compare with" in done.stderr


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"new": 1}, "not a run as they are today"),
        ({"task": "frog"}, "'frog' is no task"),
        ({"method": "frog"}, "'frog' is no method"),
    ],
)
def test_a_run_that_cannot_be_is_refused(lines, wrong, says):
    row = json.loads(lines.read_text().splitlines()[1])
    row["run"] |= wrong
    lines.write_text(json.dumps(row) + "\n")
    done = verify(lines, 1)
    assert done.returncode == 2
    assert says in done.stderr


@pytest.mark.parametrize(("number", "says"), [(1, "torn or holds no run"), (4, "there are 3")])
def test_lines_are_counted_as_in_the_file(lines, number, says):
    done = verify(lines, number)
    assert done.returncode == 2
    assert says in done.stderr
