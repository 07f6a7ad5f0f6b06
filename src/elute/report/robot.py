"""The robot benchmark in one picture: the scene, and what each of ten demonstrations earns.

Left the scene, in the middle the returns in the paper's order, coloured by group, right how near
the grip point came to the handle over time. The picture of the scene was drawn by the simulator
(`benchmarks/robot_figure.py`) and comes with elute, so that the figure needs no simulator.
"""

from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from elute.envs.sawyer_arm import NEAR, handle_distance
from elute.episodes import Array
from elute.errors import EluteError
from elute.report.figures import check_figure, save_figure
from elute.report.paper import published
from elute.report.tables import Grid
from elute.types import Demonstrations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"optimal": "#009e73", "l1": "#d55e00", "l2": "#0072b2"}
"""Of the groups; told apart by the colour-blind too."""
NAMES = {"optimal": "optimal", "l1": "Robo-L1", "l2": "Robo-L2"}
ROWS_PER_SECOND = 100


def shipped_scene() -> Array:
    """The robot as an episode begins, (height, width, 3)."""
    from matplotlib.image import imread  # noqa: PLC0415 (an extra; only figures need it)

    with as_file(files("elute.report") / "sawyer.png") as path:
        picture: Array = np.asarray(imread(path))
    return picture[:, :, :3]


def quality_grid(sets: Mapping[str, Demonstrations]) -> Grid:
    """Length and return of each of the ten: the paper's, and those of sets that are at hand.

    Raises:
        EluteError: a set without rewards, or of another number of demonstrations.
    """
    cells = published("robosuite-quality")
    columns = [
        [f"{cell.mean:g}" for cell in cells if cell.metric == metric]
        for metric in ("length", "return")
    ]
    for name, demos in sets.items():
        returns = demos.returns()
        if returns is None or len(demos.episodes) != len(columns[0]):
            raise EluteError(f"{name}: expected {len(columns[0])} demonstrations with rewards")
        columns += [[str(n) for n in demos.episodes.lengths], [f"{value:g}" for value in returns]]
    numbers = [str(k + 1) for k in range(len(columns[0]))]
    heads = [f"{what}, {whose}" for whose in ("paper", *sets) for what in ("length", "return")]
    rows = tuple(zip(numbers, *columns, strict=True))
    plain = tuple((False,) * len(row) for row in rows)
    return Grid("The ten demonstrations", ("number", *heads), rows, plain, ())


def draw_robot(scene: Array, demos: Demonstrations, path: Path, *, title: str = "") -> None:
    """Write the figure; a failure leaves nothing behind.

    Args:
        scene: a picture of the robot, (height, width, 3).
        demos: the ten, human or synthetic, with their groups (`sawyer-reach/operator`).
        path: where to, ending in .png, .pdf or .svg.
        title: above it all.

    Raises:
        EluteError: demonstrations without rewards or groups, or a path that cannot be written.
    """
    check_figure(path)
    returns, groups = demos.returns(), [_group(keys) for keys in demos.episodes.filters]
    if returns is None or "" in groups:
        raise EluteError(
            f"{demos.provenance.source}: no rewards, or no groups of episodes",
            hint="sawyer-reach/operator and sawyer-reach/roboturk have them",
        )
    import matplotlib as mpl  # noqa: PLC0415 (an extra; only figures need it)
    from matplotlib.figure import Figure  # noqa: PLC0415

    style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
             "svg.hashsalt": "elute"}  # fmt: skip
    with mpl.rc_context(style):
        figure = Figure(figsize=(11, 3.4), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
        left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1.25, 1.25))
        left.imshow(_trimmed(scene))
        left.set_axis_off()
        _bars(middle, returns, demos.episodes.lengths, groups)
        _approach(right, demos, groups)
        save_figure(figure, path)


def _group(keys: tuple[str, ...]) -> str:
    return next((key for key in keys if key in COLOURS), "")


def _trimmed(scene: Array) -> Array:
    """Without margins of the colour of its first corner."""
    drawn = (scene != scene[0, 0]).any(axis=2)
    rows, columns = (np.flatnonzero(drawn.any(axis=axis)) for axis in (1, 0))
    if len(rows) == 0:
        return scene
    trimmed: Array = scene[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return trimmed


def _bars(axis: "Axes", returns: Array, lengths: Array, groups: list[str]) -> None:
    numbers = np.arange(1, len(returns) + 1)
    axis.bar(numbers, lengths, color="0.93", width=0.8)
    bars = axis.bar(numbers, returns, color=[COLOURS[name] for name in groups], width=0.8)
    axis.bar_label(bars, [f"{value:g}" for value in returns], fontsize=8)
    axis.set_xticks(numbers)
    axis.set_xlabel("demonstration")
    axis.set_title("steps near the handle (grey: all steps)", loc="left", fontsize=9)


def _approach(axis: "Axes", demos: Demonstrations, groups: list[str]) -> None:
    apart = 100 * handle_distance(demos.observations)
    seen: set[str] = set()
    for start, stop, name in zip(demos.episodes.starts, demos.episodes.stops, groups, strict=True):
        seconds = np.arange(stop - start) / ROWS_PER_SECOND
        label = None if name in seen else NAMES[name]
        axis.plot(seconds, apart[start:stop], color=COLOURS[name], lw=1, alpha=0.8, label=label)
        seen.add(name)
    axis.axhline(100 * NEAR, color="0.3", lw=1, ls=":")
    axis.set_ylim(bottom=0)
    axis.set_xlabel("seconds, at 100 steps a second")
    axis.set_ylabel("cm")
    axis.set_title("from grip point to handle (dotted: near)", loc="left", fontsize=9)
    axis.legend(frameon=False, loc="upper right")
