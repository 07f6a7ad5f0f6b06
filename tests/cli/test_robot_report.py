"""Reports of the robot benchmark as typed, from lines that were committed."""

import json
import os
import re
from pathlib import Path

import pytest

from commands import elute

ROOT = Path(__file__).parents[2]
RESULTS = [ROOT / "results" / f"{name}.jsonl" for name in ("robosuite", "robosuite-real")]
CLONED = ("bc-all", "supplementary")


@pytest.fixture
def env(tmp_path):
    return os.environ | {"ELUTE_CACHE": str(tmp_path / "cache"), "COLUMNS": "200"}


def report(*arguments, env):
    done = elute("report", *arguments, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("file", RESULTS, ids=[file.stem for file in RESULTS])
def test_committed_lines_make_the_papers_table(file, env):
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    seeds = {row["seed"] for row in rows if (row["method"], row["demos"][9:]) == CLONED}
    shown = report("--table", "robosuite", "--results", file, env=env)
    for word in ("bc-all", "bcnd", "dwbc", "dp-bc joint @3", "auto@", "nut to peg", "0.76"):
        assert word in shown
    found = json.loads(report("--table", "robosuite", "--results", file, "--json", env=env))
    bc = next(cell for cell in found["cells"] if cell["method"] == "bc-all")
    assert (bc["seeds"], bc["episodes"], bc["paper"]) == (len(seeds), 50 * len(seeds), 0.76)
    low, high = bc["seeds_interval"]
    assert 0 <= low < bc["success"] < high <= 1
    assert bc["readings"]["nut_peg"] == 0.0


def test_a_terminal_of_80_columns_breaks_no_number(env):
    shown = report("--table", "robosuite", "--results", RESULTS[1], env=env | {"COLUMNS": "80"})
    cells = json.loads(report("--table", "robosuite", "--results", RESULTS[1], "--json", env=env))
    for cell in cells["cells"]:
        low, high = cell["seeds_interval"]
        success = rf"{cell['success']:.2f} \({low:.2f} to {high:.2f}\)"
        beats = r"(-|\d\.\d\d \(\d\.\d\d to \d\.\d\d\))"
        paper = "-" if cell["paper"] is None else f"{cell['paper']:.2f}"
        line = rf"^{cell['method']}.* {success} +{beats} +{paper}"
        assert re.search(line, shown, re.MULTILINE), (line, shown)
        centre = cell["readings"]["nut_centre"]
        low, high = cell["episodes_interval"]
        line = rf"^{cell['method']}.* {low:.2f} to {high:.2f} +{centre:.2f}"
        assert re.search(line, shown, re.MULTILINE), (line, shown)


def test_the_ten_are_listed_beside_the_papers(env):
    shown = report("--table", "robosuite-quality", env=env | {"ELUTE_ROBOTURK": ""})
    assert "return, operator" in shown
    assert "roboturk" not in shown
    rows = json.loads(report("--table", "robosuite-quality", "--json", env=env))["rows"]
    assert (rows[9]["return, paper"], rows[9]["return, operator"]) == ("318", "316")
    assert "318" in report("--table", "robosuite-quality", "--format", "markdown", env=env)


def test_the_human_ten_are_listed_where_their_files_are(env, data_folder):
    real = env | {"ELUTE_ROBOTURK": str(data_folder / "sawyer-reach")}
    rows = json.loads(report("--table", "robosuite-quality", "--json", env=real))["rows"]
    for row in rows:
        assert row["return, roboturk"] == row["return, paper"]
        assert row["length, roboturk"] == row["length, paper"]


def test_the_figure_is_drawn_without_lines_or_a_simulator(env, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "robot.png"
    report("--figure", "robosuite", "-o", path, env=env | {"MUJOCO_GL": "none"})
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("report", "--figure", "robosuite-real"), "set ELUTE_ROBOTURK"),
        (("report", "--figure", "robosuit"), "did you mean robosuite"),
        (("report", "--table", "robosuite-step"), "did you mean robosuite-steps"),
        (("report", "--table", "robosuite-quality", "--format", "word"), "there are text"),
        (("run", "experiments/robosuite-real.toml", "--dry-run"), "set ELUTE_ROBOTURK"),
        (("run", "experiments/robosuite.toml", "--data", "x"), "names no files"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message, env):
    done = elute(*arguments, env=env | {"ELUTE_ROBOTURK": ""}, cwd=ROOT)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
