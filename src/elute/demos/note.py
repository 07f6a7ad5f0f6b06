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

from elute.columns import Column, Role, columns_from_json, columns_to_json
from elute.episodes import Episodes, Provenance
from elute.errors import EluteError
from elute.types import DemoSource

NAME = "elute"
"""Name of the dataset, attribute or key that holds the note."""

FLAT = "flat"
"""Name of an observation array that is all of the vector, where a format wants a name."""

TYPES = "types"
"""Key of provenance metadata: the types of joined arrays, where they differ."""
FINAL_INFOS = "final infos"
"""Marks, among what is absent, that the row of infos after the last action is a filler."""

_ENDS = {"-": (False, False), "t": (True, False), "u": (False, True), "b": (True, True)}
_END_CODE = {ends: code for code, ends in _ENDS.items()}


class _Block(pydantic.BaseModel):
    key: str
    roles: list[Role]


class _Step(pydantic.BaseModel, extra="allow"):
    operation: str


class Note(pydantic.BaseModel):
    """What was noted, checked."""

    version: int
    source: str = ""
    format: str = ""
    task: str = ""
    steps: list[_Step] = []
    metadata: dict[str, dict[str, Any]] = {}
    observation_columns: list[_Block] = []
    action_columns: list[_Block] = []
    ends: str = pydantic.Field("", pattern="^[-tub]*$")
    """How each episode ended: neither, terminated, truncated ("u"), both."""
    inferred: str = pydantic.Field("", pattern="^[01]*$")
    final_repeated: str = pydantic.Field("", pattern="^[01]*$")
    attributes: list[dict[str, Any]] | None = None
    """Of each episode, what the format cannot hold."""
    absent: list[str] = []
    """Arrays that the format demands and nobody measured: they hold fillers."""


def encode(
    source: DemoSource,
    *,
    attributes: Sequence[Mapping[str, Any]],
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
        "attributes": list(attributes) if any(attributes) else None,
        "absent": list(absent),
    }
    return storable(json.dumps(note, default=jsonable, ensure_ascii=False))


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
    n = len(episodes)
    if len(note.ends) == n:
        ends = [_ENDS[code] for code in note.ends]
        noted = note.attributes if len(note.attributes or ()) == n else None
        episodes = Episodes.of(
            episodes.lengths,
            [terminated for terminated, _ in ends],
            [truncated for _, truncated in ends],
            attributes=[
                {**found, **more}
                for found, more in zip(episodes.attributes, noted or ({},) * n, strict=True)
            ],
            final_repeated=_unbits(note.final_repeated, n),
        )
        episodes = replace(episodes, inferred=_unbits(note.inferred, n))
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


def types_of(provenance: Provenance, which: str) -> dict[str, str]:
    """Key -> type of the arrays that "observations" or "actions" were joined from."""
    types = provenance.metadata.get(TYPES)
    found = types.get(which) if isinstance(types, dict) else None
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def _renamed(noted: list[_Block], found: tuple[Column, ...]) -> tuple[Column, ...]:
    """The noted columns, if they are those of the arrays found or the arrays have no names."""
    named = columns_from_json(block.model_dump() for block in noted)
    keys = [[column.key.replace("/", "_") for column in of] for of in (named, found)]
    nameless = set(keys[1]) <= {"observation", "action", FLAT}
    return named if len(named) == len(found) and (nameless or keys[0] == keys[1]) else found


def _bits(flags: np.ndarray[Any, Any]) -> str:
    return "".join("01"[int(flag)] for flag in flags)


def _unbits(bits: str, n: int) -> np.ndarray[Any, Any]:
    return np.array([bit == "1" for bit in bits.ljust(n, "0")[:n]], dtype=bool)


def storable(text: str) -> str:
    """Text that can be encoded: what was read from HDF5 may hold lone surrogates."""
    return text.encode("utf-8", errors="replace").decode()


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
