"""The one JSON note that elute leaves in a file of any format.

It holds what the format has no place for: provenance, the names and roles of columns, how each
episode ended, and which arrays are only fillers. Other readers of the format do not see it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pydantic

from elute.columns import Column, columns_from_json, columns_to_json
from elute.episodes import Episodes, Provenance
from elute.errors import EluteError
from elute.types import DemoSource

NAME = "elute"
"""Name of the dataset, attribute or key that holds the note."""

_ENDS = {"-": (False, False), "t": (True, False), "u": (False, True), "b": (True, True)}
_END_CODE = {ends: code for code, ends in _ENDS.items()}


class _Block(pydantic.BaseModel):
    key: str
    roles: list[str]


class _Step(pydantic.BaseModel, extra="allow"):
    operation: str


class Note(pydantic.BaseModel):
    """What was noted, checked."""

    version: int
    source: str = ""
    format: str = ""
    task: str = ""
    steps: list[_Step] = []
    metadata: dict[str, Any] = {}
    observation_columns: list[_Block] = []
    action_columns: list[_Block] = []
    ends: str = pydantic.Field("", pattern="^[-tub]*$")
    """How each episode ended: neither, terminated, truncated ("u"), both."""
    inferred: str = pydantic.Field("", pattern="^[01]*$")
    final_repeated: str = pydantic.Field("", pattern="^[01]*$")
    attributes: list[dict[str, Any]] | None = None
    """Of each episode, where the format cannot hold them."""
    absent: list[str] = []
    """Arrays that the format demands and nobody measured: they hold fillers."""


def encode(
    source: DemoSource,
    *,
    attributes: bool,
    absent: Sequence[str] = (),
    final_repeated: bool = False,
) -> str:
    """The note for a file that will hold these demonstrations."""
    episodes, provenance = source.episodes, source.provenance
    ends = zip(episodes.terminated.tolist(), episodes.truncated.tolist(), strict=True)
    note = {
        "version": 1,
        "source": provenance.source,
        "format": provenance.format,
        "task": provenance.task,
        "steps": list(provenance.steps),
        "metadata": provenance.metadata,
        "observation_columns": columns_to_json(source.observation_columns),
        "action_columns": columns_to_json(source.action_columns),
        "ends": "".join(_END_CODE[end] for end in ends),
        "inferred": _bits(episodes.inferred),
        "final_repeated": _bits(episodes.final_repeated | final_repeated),
        "attributes": list(episodes.attributes) if attributes else None,
        "absent": list(absent),
    }
    return json.dumps(note, default=jsonable)


def decode(text: str, where: str) -> Note:
    """Read a note back.

    Raises:
        EluteError: it is no valid note.
    """
    try:
        return Note.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise EluteError(
            f"{where}: elute's note is damaged ({place}: {first['msg']})",
            hint=f"delete '{NAME}' from the file to read it without the note",
        ) from error


@dataclass(frozen=True)
class Header:
    """Everything about a file but its rows."""

    episodes: Episodes
    observation_columns: tuple[Column, ...]
    action_columns: tuple[Column, ...]
    provenance: Provenance


def apply(note: Note, header: Header) -> Header:
    """The header of a file, completed by its note as far as the note still fits the file."""
    episodes = header.episodes
    if len(note.ends) == len(episodes):
        ends = [_ENDS[code] for code in note.ends]
        episodes = Episodes.of(
            episodes.lengths,
            [terminated for terminated, _ in ends],
            [truncated for _, truncated in ends],
            attributes=note.attributes or episodes.attributes,
            final_repeated=_unbits(note.final_repeated, len(episodes)),
        )
        episodes = replace(episodes, inferred=_unbits(note.inferred, len(episodes)))
    return Header(
        episodes=episodes,
        observation_columns=_renamed(note.observation_columns, header.observation_columns),
        action_columns=_renamed(note.action_columns, header.action_columns),
        provenance=replace(
            header.provenance,
            task=note.task,
            steps=tuple(step.model_dump() for step in note.steps),
            metadata={**note.metadata, **header.provenance.metadata},
        ),
    )


def _renamed(noted: list[_Block], found: tuple[Column, ...]) -> tuple[Column, ...]:
    named = columns_from_json(block.model_dump() for block in noted)
    return named if len(named) == len(found) else found


def _bits(flags: np.ndarray[Any, Any]) -> str:
    return "".join("01"[int(flag)] for flag in flags)


def _unbits(bits: str, n: int) -> np.ndarray[Any, Any]:
    return np.array([bit == "1" for bit in bits.ljust(n, "0")], dtype=bool)


def jsonable(value: Any) -> Any:  # noqa: ANN401 (whatever an attribute holds)
    """Numpy and bytes as JSON has them."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, np.generic):
        return jsonable(value.item()) if isinstance(value, np.bytes_ | np.void) else value.item()
    if isinstance(value, np.ndarray):
        return [jsonable(item) if isinstance(item, bytes) else item for item in value.tolist()]
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)
