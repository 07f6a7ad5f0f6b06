"""The picture of the robot's scene that comes with elute, as the sixth demonstration begins.

MUJOCO_GL=osmesa python -m benchmarks.robot_figure
elute report --figure robosuite -o docs/guides/robot.png      puts it into the figure
"""

from pathlib import Path

from matplotlib.image import imsave

from elute.collect.operator import SHIPPED
from elute.demos.files import load
from elute.envs.make import make
from elute.envs.task import find_task

SCENE = Path(__file__).parent.parent / "src" / "elute" / "report" / "sawyer.png"


def main() -> None:
    """Draw it."""
    demos = load(SHIPPED)
    environment = make(find_task("sawyer-reach"), render=True)
    environment.reset(options={"observation": demos.observations[demos.episodes.starts[5]]})
    imsave(SCENE, environment.render())
    environment.close()


if __name__ == "__main__":
    main()
