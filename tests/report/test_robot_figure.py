"""The picture of scene and returns."""

import numpy as np
import pytest

from elute.collect.operator import SHIPPED
from elute.demos.files import load
from elute.errors import EluteError
from elute.report.robot import _trimmed, draw_robot

pytest.importorskip("matplotlib")
SCENE = np.full((48, 64, 3), 255, dtype=np.uint8)
SCENE[10:40, 20:50] = 90


@pytest.fixture(scope="module")
def ten():
    return load(SHIPPED)


def test_margins_are_cut_off():
    assert _trimmed(SCENE).shape == (30, 30, 3)
    assert _trimmed(np.zeros((4, 5, 3))).shape == (4, 5, 3)


def test_returns_numbers_and_groups_are_in_it(ten, tmp_path):
    path = tmp_path / "robot.svg"
    draw_robot(SCENE, ten, path, title="Ten")
    text = path.read_text()
    for word in ("Ten", "Robo-L1", "Robo-L2", "optimal", *(f"{r:g}" for r in ten.returns())):
        assert f"<!-- {word} -->" in text
    again = tmp_path / "again.svg"
    draw_robot(SCENE, ten, again, title="Ten")
    assert again.read_bytes() == path.read_bytes()


def test_a_png_is_drawn_and_nothing_else_is_left(ten, tmp_path):
    draw_robot(SCENE, ten, tmp_path / "robot.png")
    assert [file.name for file in tmp_path.iterdir()] == ["robot.png"]
    assert (tmp_path / "robot.png").read_bytes().startswith(b"\x89PNG")


def test_demonstrations_without_groups_are_refused(tmp_path):
    from elute.demos.pointmass import pointmass  # noqa: PLC0415 (only here)

    with pytest.raises(EluteError, match="no groups of episodes"):
        draw_robot(SCENE, pointmass(3), tmp_path / "robot.png")
    assert not list(tmp_path.iterdir())
