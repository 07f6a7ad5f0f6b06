"""LeRobot data sets: a folder of parquet frames with tables of episodes and tasks, and videos.

v3.0 is read and written, v2.1 is read. The parts: `lerobot_meta` (what the folder says about
itself), `lerobot_parquet` (columns), `lerobot_read`, `lerobot_stats`, `lerobot_write`. They need
pyarrow, which is imported when a data set is opened, so that other formats do without it.
"""

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elute.demos.format import ReadOptions, Writer
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

if TYPE_CHECKING:
    from elute.demos.lerobot_read import LeRobotDemos

NAME = "lerobot"
SUFFIXES = ("",)

_INFO = Path("meta") / "info.json"


def detect(path: Path) -> bool:
    """Whether it is the folder of a data set, or its `meta/info.json`."""
    return _folder(path) is not None


def _folder(path: Path) -> Path | None:
    if os.path.isfile(path / _INFO):  # unlike Path's, never raises
        return path
    inside = path.parts[-2:] == _INFO.parts and os.path.isfile(path)
    return path.parent.parent if inside else None


def read(path: Path, options: ReadOptions) -> "LeRobotDemos":
    """Open a data set."""
    folder = _folder(path)
    if folder is None:
        raise EluteError(f"{path}: no LeRobot data set; expected {_INFO} inside")
    source: LeRobotDemos = _part("read").opened(folder, options)
    return source


def write(path: Path, source: DemoSource, sample: Demonstrations) -> Writer:
    """Start a data set (v3.0): the source's with other values, or a fresh one."""
    writer: Writer = _part("write").started(path, source, sample)
    return writer


def _part(name: str) -> Any:  # noqa: ANN401 (a module)
    try:
        return import_module(f"elute.demos.lerobot_{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyarrow":
            raise
        raise EluteError(
            "LeRobot data sets need pyarrow, which is not installed",
            hint="pip install 'elute[lerobot]'",
        ) from error
