"""Observations from the simulator states of a raw recording of the Sawyer arm.

    state       = [time, positions, velocities], joint after joint as the recorded model lists them
    observation = what `sawyer-reach` observes with the arm and the nut put as the state says

Only the order of the joints is taken from the recorded model: its meshes lie on somebody else's
disk. Its XML is read by a parser that refuses declarations, so nothing in it can unfold.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from xml.parsers import expat

import numpy as np

from elute.columns import assign_roles, blocks, columns
from elute.envs.make import make
from elute.envs.sawyer_arm import (
    COS,
    HAND_QUATERNION,
    N_JOINTS,
    NUT_AT,
    NUT_QUATERNION,
    SIN,
    VELOCITY,
    count_reward,
    hand_quaternion,
    handle_distance,
)
from elute.envs.task import Task
from elute.episodes import Array
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

STATES, ARM, GRIPPER = "states", "joint_velocities", "gripper_actuations"
_FINGERS = slice(21, 23)
_XYZW = [1, 2, 3, 0]
_DEEPEST = 200
_SIZES = {"free": (7, 6), "ball": (4, 3)}
"""Positions and velocities of a joint, where it is not one of each."""


def is_raw(demos: DemoSource) -> bool:
    """Whether simulator states stand in for observations."""
    return [block.key for block in blocks(demos.observation_columns)] == [STATES]


def extract(demos: Demonstrations, task: Task) -> Demonstrations:
    """The same demonstrations with the observations and rewards of the task; states stay beside.

    Raises:
        EluteError: the recording is of another robot, or has no model.
    """
    if task.name != "sawyer-reach":
        raise EluteError(
            f"{task.name}: observations can be computed from states for sawyer-reach only",
            hint="for robosuite's other tasks use robomimic's dataset_states_to_obs.py",
        )
    arm = [block for block in blocks(demos.action_columns) if block.key == ARM]
    if not arm or arm[0].size != N_JOINTS:
        raise EluteError(
            f"{demos.provenance.source}: sawyer-reach is steered by {N_JOINTS} joint velocities",
            hint="is the recording of another controller?",
        )
    others = [i for i, column in enumerate(demos.action_columns) if column.key != ARM]
    extras = {**demos.extras, STATES: demos.observations}
    if others:
        extras[GRIPPER] = demos.actions[:, others]
    observations = np.concatenate([_observed(episode, task) for episode in demos.iter_episodes()])
    return replace(
        demos,
        observations=observations,
        next_observations=None,
        actions=demos.actions[:, arm[0].start : arm[0].stop],
        rewards=count_reward(handle_distance(observations)),
        extras=extras,
        observation_columns=assign_roles(
            columns("observation", observations.shape[1]), task.columns
        ),
        action_columns=demos.action_columns[arm[0].start : arm[0].stop],
        provenance=replace(demos.provenance, task=task.name).then(
            "extract", task=task.name, computed=["observations", "rewards"]
        ),
        origin=None,  # a writer could not say which of its arrays are of the old kind
    )


def _observed(episode: Demonstrations, task: Task) -> Array:
    """The observations of one episode."""
    model = episode.episodes.attributes[0].get("model_file")
    if not isinstance(model, str):
        raise EluteError(f"{episode.provenance.source}: no model says what the states are")
    places = find_places(model, episode.observations.shape[1])
    states = episode.observations.astype(np.float64)
    starts = np.zeros((len(states), task.n_observations))
    joints = states[:, places.joints]
    starts[:, SIN], starts[:, COS] = np.sin(joints), np.cos(joints)
    starts[:, HAND_QUATERNION] = hand_quaternion(joints)  # tells one turn of a joint from another
    starts[:, VELOCITY] = states[:, places.velocities]
    starts[:, NUT_AT] = states[:, places.nut[:3]]
    starts[:, NUT_QUATERNION] = states[:, places.nut[3:]][:, _XYZW]
    environment = make(task)
    try:
        found = [environment.reset(options={"observation": start})[0] for start in starts]
    finally:
        environment.close()
    observations: Array = np.array(found)
    if len(places.fingers):
        observations[:, _FINGERS] = states[:, places.fingers]
    return observations


@dataclass(frozen=True, eq=False)
class Places:
    """Where a state holds what: numbers of columns."""

    joints: Array
    velocities: Array
    fingers: Array
    nut: Array
    """Position, then w, x, y, z."""


def find_places(model: str, width: int) -> Places:
    """Read off a model where its states hold the arm and the round nut.

    Raises:
        EluteError: it is no model of a Sawyer with a round nut, or of states of another width.
    """
    position, velocity = 1, 0  # the time comes first
    at: dict[str, tuple[int, int]] = {}
    for name, kind in joints_of(model):
        at[name] = position, velocity
        sizes = _SIZES.get(kind, (1, 1))
        position, velocity = position + sizes[0], velocity + sizes[1]
    if width != position + velocity:
        raise EluteError(
            f"states of {width} numbers; the model has 1 + {position - 1} + {velocity}",
            hint="the model must be the one that was recorded with",
        )
    arm = [_only(at, rf"(robot\d+_)?right_j{j}") for j in range(N_JOINTS)]
    nut = _only(at, r"(?i)round_?nut.*")[0]
    fingers = [first for name, (first, _) in at.items() if re.search("finger", name)][:2]
    return Places(
        joints=np.array([first for first, _ in arm]),
        velocities=np.array([position + second for _, second in arm]),
        fingers=np.array(fingers if len(fingers) == 2 else [], dtype=np.int64),
        nut=np.arange(nut, nut + 7),
    )


def _only(at: Mapping[str, tuple[int, int]], pattern: str) -> tuple[int, int]:
    found = [name for name in at if re.fullmatch(pattern, name)]
    if len(found) != 1:
        raise EluteError(
            f"the model has {len(found)} joints like {pattern!r}; expected one",
            hint="sawyer-reach is recorded with a Sawyer arm before a round nut",
        )
    return at[found[0]]


def joints_of(model: str) -> list[tuple[str, str]]:
    """Name and kind of every joint, in the order in which states hold them.

    Raises:
        EluteError: it is no XML, declares entities, or is nested too deeply.
    """
    bodies: list[list[tuple[str, str]]] = []
    path: list[int] = []
    tags: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        tags.append(tag)
        if len(tags) > _DEEPEST:
            raise EluteError(f"the model is nested more than {_DEEPEST} deep")
        if tag in ("body", "worldbody"):
            path.append(len(bodies))
            bodies.append([])
        elif tag in ("joint", "freejoint") and path and tags[-2] == "body":
            kind = "free" if tag == "freejoint" else attributes.get("type", "hinge")
            bodies[path[-1]].append((attributes.get("name", f"joint {len(tags)}"), kind))

    def end(tag: str) -> None:
        tags.pop()
        if tag in ("body", "worldbody"):
            path.pop()

    def declared(*_: Any) -> None:  # noqa: ANN401
        raise EluteError("the model declares entities; a simulator's model has none")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = declared
    try:
        parser.Parse(model.encode("utf-8", errors="replace"), True)
    except expat.ExpatError as error:
        raise EluteError(f"the model is no XML: {error}") from error
    return [joint for body in bodies for joint in body]
