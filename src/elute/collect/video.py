"""A film of one episode, drawn offscreen."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from elute.demos.output import check_output, output
from elute.envs.make import Environment, make
from elute.envs.rollout import BATCH
from elute.envs.task import Task
from elute.episodes import Array
from elute.errors import EluteError
from elute.evaluation import Sized
from elute.rng import Seeds

Progress = Callable[[int, int], None]
HINT = "apt install libosmesa6, then set MUJOCO_GL=osmesa (on a machine with a GPU: egl)"


def check_video(path: Path) -> None:
    """Refuse a film that cannot be made, before any work is done for it.

    Raises:
        EluteError: another ending, no folder, or no encoder.
    """
    if path.suffix != ".mp4":
        raise EluteError(f"{path}: films are written as .mp4")
    if find_spec("imageio_ffmpeg") is None:
        raise EluteError("no encoder is installed", hint="pip install 'elute[video]'")
    check_output(path)


def film(
    policy: Sized,
    task: Task,
    path: Path,
    *,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> int:
    """Play episode 0 of `evaluate` with this seed and draw it; how many frames.

    Raises:
        EluteError: there is nothing to draw with.
    """
    check_video(path)
    import imageio.v2 as imageio  # noqa: PLC0415 (an extra)

    if "DISPLAY" not in os.environ:
        os.environ.setdefault("MUJOCO_GL", "osmesa")
    environment = make(task, render=True)
    try:
        with output(path) as temporary:
            partial = temporary.with_suffix(".mp4")  # the encoder goes by the ending
            writer: Any = imageio.get_writer(partial, fps=_rate(environment), macro_block_size=1)
            with writer:
                frames = _play(policy, task, environment, seed, writer.append_data, progress)
            partial.replace(temporary)
    finally:
        environment.close()
    return frames


def _rate(environment: Environment) -> int:
    return int(environment.metadata.get("render_fps", 30))


def _play(
    policy: Sized,
    task: Task,
    environment: Environment,
    seed: int,
    draw: Callable[[Array], None],
    progress: Progress,
) -> int:
    start = int(Seeds(seed)("start", 0).integers(2**31))
    inputs = np.zeros((BATCH, task.n_observations))
    observation, _ = environment.reset(seed=start)
    for t in range(task.horizon):
        draw(_frame(environment))
        progress(t + 1, task.horizon)
        inputs[0] = observation  # the batch of a rollout: another would round otherwise
        action = task.clip(policy.act(inputs)[0])
        observation, _, terminated, truncated, _ = environment.step(action)
        if terminated or truncated:
            return t + 1
    return task.horizon


def _frame(environment: Environment) -> Array:
    try:
        return np.asarray(environment.render())
    except Exception as error:  # every GL library fails in its own way
        raise EluteError(f"nothing can be drawn here: {error!r}", hint=HINT) from error
