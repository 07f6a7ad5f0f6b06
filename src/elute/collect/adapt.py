"""Fit older data to today's tasks.

Ant's observation was 111 numbers in `-v2` and is 105 by default in `-v5`: in both the 27 of joint
positions and velocities come first, and contact forces follow, which simulators computed in
different ways or not at all. The task `ant` has the 27.

A raw recording of robosuite holds simulator states and no observations: those are computed.
"""

from dataclasses import replace

from elute.collect.extract import extract, is_raw
from elute.envs.task import Task, check_columns
from elute.types import Demonstrations


def adapt(demos: Demonstrations, task: Task) -> Demonstrations:
    """The same demonstrations with the observation columns of the task's environment.

    Raises:
        EluteError: they are not of this task.
    """
    if is_raw(demos):
        demos = extract(demos, task)
    width = demos.observations.shape[1]
    check_columns(task, width, demos.actions.shape[1], demos.provenance.source)
    n = task.n_observations
    if width == n:
        return demos
    following = demos.next_observations
    return replace(
        demos,
        observations=demos.observations[:, :n],
        next_observations=None if following is None else following[:, :n],
        observation_columns=demos.observation_columns[:n],
        provenance=demos.provenance.then("adapt", task=task.name, kept=n, of=width),
        origin=None,  # the file's other arrays are of the old shape
    )
