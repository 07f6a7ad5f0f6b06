"""Films: drawn offscreen where there is something to draw with, refused clearly where not."""

import ctypes.util
import subprocess
import sys

import pytest

from elute.collect import video
from elute.errors import EluteError

FILM = """
import sys
from dataclasses import replace
from pathlib import Path
from elute.collect.shipped import find_policy
from elute.collect.video import film
from elute.envs.task import find_task
short = replace(find_task("hopper"), horizon=4)
print(film(find_policy("expert:hopper"), short, Path(sys.argv[1])))
"""


def test_other_endings_and_missing_encoders_are_refused_before_any_work(tmp_path, monkeypatch):
    with pytest.raises(EluteError, match=r"written as \.mp4"):
        video.check_video(tmp_path / "film.avi")
    with pytest.raises(EluteError, match="does not exist"):
        video.check_video(tmp_path / "no" / "film.mp4")
    monkeypatch.setattr(video, "find_spec", lambda name: None)
    with pytest.raises(EluteError, match="elute\\[video\\]"):
        video.check_video(tmp_path / "film.mp4")


@pytest.mark.skipif(
    ctypes.util.find_library("OSMesa") is None, reason="needs OSMesa: apt install libosmesa6"
)
def test_an_episode_is_filmed(tmp_path):
    path = tmp_path / "film.mp4"
    done = subprocess.run(
        [sys.executable, "-c", FILM, path], capture_output=True, text=True, check=False,
        env={"MUJOCO_GL": "osmesa", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "4"
    assert path.stat().st_size > 1000
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_to_draw_with_is_said():
    class Blind:
        def render(self):
            raise AttributeError("'NoneType' object has no attribute 'glGetError'")

    with pytest.raises(EluteError, match="libosmesa6"):
        video._frame(Blind())
