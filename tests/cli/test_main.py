"""The command as a whole: help that is instant, the doctor, the tour."""

import json
import re
import subprocess
import sys

import pytest

from commands import elute
from elute import __version__
from elute.cli.doctor import problems
from elute.cli.show import complete_path

ROW = re.compile(r"^ *(plain|purified) +(-?[0-9]+) ", re.MULTILINE)


def test_help_names_every_command():
    done = elute("--help")
    assert done.returncode == 0
    for name in ("tour", "demos", "doctor"):
        assert name in done.stdout


def test_version():
    assert elute("--version").stdout == f"elute {__version__}\n"


def test_help_imports_nothing_heavy():
    heavy = ("torch", "gymnasium", "mujoco", "numpy", "h5py", "scipy", "pydantic")
    code = f"import sys, elute.cli.main; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_reading_and_auditing_need_no_torch_and_no_simulator():
    code = (
        "import sys, elute; elute.load; elute.save; elute.audit; elute.corrupt;"
        "print([m for m in ('torch', 'gymnasium', 'mujoco') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_completion_scripts_are_offered():
    done = elute("--show-completion", env={"SHELL": "/bin/bash", "PATH": "/usr/bin:/bin"})
    assert "--install-completion" in elute("--help").stdout
    assert done.returncode in (0, 1)  # 1 where the shell cannot be told from a test run


def test_paths_are_completed(tmp_path):
    (tmp_path / "expert.h5").touch()
    (tmp_path / "extra").mkdir()
    found = complete_path(str(tmp_path / "ex"))
    assert found == [str(tmp_path / "expert.h5"), str(tmp_path / "extra") + "/"]
    assert complete_path(str(tmp_path / "no" / "where")) == []


def test_doctor_prints_versions():
    report = json.loads(elute("doctor", "--json").stdout)
    assert {"torch", "numpy", "h5py", "gymnasium"} <= set(report["packages"])


@pytest.mark.parametrize(
    ("versions", "wrong"),
    [
        ({"robosuite": (1, 5, 2), "mujoco": (3, 9, 0), "numpy": (1, 26, 4)}, 0),
        ({"robosuite": (1, 5, 2), "mujoco": (3, 10, 0)}, 1),
        ({"mink": (0, 0, 5), "numpy": (2, 4, 6)}, 1),
        ({"mujoco": (4, 0, 0)}, 1),
        ({"mujoco": (3, 9, 0), "mujoco-core": (4, 0, 0)}, 1),
        ({"pyarrow": (26, 0, 1), "numpy": (1, 26, 4)}, 1),
        ({"minari": (0, 5, 4), "numpy": (1, 26, 4)}, 1),
        ({"minari": (0, 5, 4), "numpy": (2, 4, 6), "pyarrow": (26, 0, 1)}, 0),
    ],
)
def test_doctor_knows_the_bad_pairs(versions, wrong):
    assert len(problems(versions)) == wrong


@pytest.mark.slow
def test_the_tour_tells_the_whole_story(tmp_path):
    home = tmp_path / "story"
    home.mkdir()
    for name in (".elute-tour", "from-before"):  # an earlier tour's folder is made anew
        (home / name).touch()
    done = elute("tour", "--to", "story", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    earned = {name: float(mean) for name, mean in ROW.findall(done.stdout)}
    assert earned["purified"] > 1.2 * earned["plain"]
    assert not (home / "from-before").exists()
    page = (home / "report.html").read_text()
    assert "A shaky walker, purified" in page
    assert "dp-bc" in page


def test_the_tour_spares_a_folder_that_is_not_its_own(tmp_path):
    (tmp_path / "mine.txt").touch()
    done = elute("tour", "--to", tmp_path)
    assert done.returncode == 2
    assert "not a folder of an earlier tour" in done.stderr
    assert (tmp_path / "mine.txt").exists()
