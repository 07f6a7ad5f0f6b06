"""The figure of the robot guide: the scene and ten demonstrations.

    MUJOCO_GL=osmesa python -m benchmarks.robot_figure [NAME] [OUT]

NAME is `sawyer-reach/operator` (synthetic, the default) or `sawyer-reach/roboturk`; the scene is
drawn as the sixth demonstration begins.
"""

import sys
from pathlib import Path

from elute.collect.catalogue import fetch
from elute.demos.files import load
from elute.envs.make import make
from elute.envs.task import find_task
from elute.report.robot import draw_robot

FIGURE = Path(__file__).parent.parent / "docs" / "guides" / "robot.png"
TITLES = {
    "sawyer-reach/operator": "Ten demonstrations of the scripted operator (synthetic)",
    "sawyer-reach/roboturk": "Ten human demonstrations (RoboTurk)",
}


def main(name: str = "sawyer-reach/operator", out: str = str(FIGURE)) -> None:
    """Draw it."""
    demos = load(fetch(name, say=print))
    environment = make(find_task("sawyer-reach"), render=True)
    environment.reset(options={"observation": demos.observations[demos.episodes.starts[5]]})
    scene = environment.render()
    environment.close()
    draw_robot(scene, demos, Path(out), title=TITLES[name])  # type: ignore[arg-type]


if __name__ == "__main__":
    main(*sys.argv[1:])
