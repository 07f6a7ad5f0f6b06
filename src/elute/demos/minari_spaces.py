"""Gymnasium spaces as Minari writes them down: JSON, read and built without Gymnasium."""

import json
import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import h5py
import numpy as np

from elute.columns import Column, blocks
from elute.episodes import Array
from elute.errors import EluteError

DISCRETE = ("Discrete", "MultiDiscrete", "MultiBinary")


def stored_space(metadata: dict[str, Any], name: str, stored: h5py.Group | h5py.Dataset) -> Any:  # noqa: ANN401
    """The serialised space, or what the stored arrays suggest where the metadata has none."""
    text = metadata.get(name)
    if isinstance(text, str):
        return json.loads(text)
    if isinstance(stored, h5py.Group):
        return {
            "type": "Dict",
            "subspaces": {k: stored_space({}, name, v) for k, v in stored.items()},
        }
    return {"type": "Box", "shape": list(stored.shape[1:]), "dtype": str(stored.dtype)}


def leaves_of(space: dict[str, Any], at: str = "") -> Iterator[tuple[str, str]]:
    """Each array of a space: (name inside, its kind; "" where elute cannot hold it)."""
    if not isinstance(space, dict):
        raise EluteError(f"metadata.json describes a space as {space!r}; expected a mapping")
    inner = space.get("subspaces")
    if isinstance(inner, dict):
        for key, sub in inner.items():
            yield from leaves_of(sub, f"{at}/{key}".strip("/"))
    elif isinstance(inner, list):
        for i, sub in enumerate(inner):
            yield from leaves_of(sub, f"{at}/_index_{i}".strip("/"))
    elif space["type"] == "Box" and len(space["shape"]) <= 1:
        yield at, "Box"
    else:
        yield at, space["type"] if space["type"] in DISCRETE else ""


def built_space(of: Sequence[Column], like: Array) -> dict[str, Any]:
    """A space for these columns: one box, or a dictionary of boxes where they have names."""

    def box(width: int) -> dict[str, Any]:
        if like.dtype.kind == "f":
            low, high = float("-inf"), float("inf")
        elif like.dtype.kind == "b":
            low, high = 0, 1
        else:
            low, high = int(np.iinfo(like.dtype).min), int(np.iinfo(like.dtype).max)
        kind = {"type": "Box", "dtype": str(like.dtype), "shape": [width]}
        return {**kind, "low": [low] * width, "high": [high] * width}

    parts = blocks(of)
    keys = {part.key for part in parts}
    folders = {folder for key in keys for folder in accumulate(key.split("/")[:-1], "{}/{}".format)}
    if len(parts) == 1 or len(keys) < len(parts) or keys & folders:
        return box(like.shape[1])
    space: dict[str, Any] = {"type": "Dict", "subspaces": {}}
    for part in parts:
        *path, name = part.key.split("/")
        inner = space["subspaces"]
        for folder in path:
            inner = inner.setdefault(folder, {"type": "Dict", "subspaces": {}})["subspaces"]
        inner[name] = box(part.size)
    return space


def known_widths(text: object) -> list[tuple[str, int]] | None:
    """`widths` of a space as text; nothing if it is no space."""
    try:
        return widths(shapes(json.loads(str(text))))
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def widths(of: list[tuple[str, tuple[int, ...]]] | None) -> list[tuple[str, int]] | None:
    """Name and width of each array of a space; nothing if elute cannot hold all of it."""
    return None if of is None else [(name, math.prod(shape)) for name, shape in of]


def shapes(space: dict[str, Any]) -> list[tuple[str, tuple[int, ...]]] | None:
    """Name and shape of one step of each array that a space is stored in."""
    inner = space.get("subspaces")
    if isinstance(inner, list):
        inner = {f"_index_{i}": sub for i, sub in enumerate(inner)}
    if not isinstance(inner, dict):
        shape = _shape(space)
        return None if shape is None else [("", shape)]
    found: list[tuple[str, tuple[int, ...]]] = []
    for key, sub in inner.items():
        deeper = shapes(sub)
        if deeper is None:
            return None
        found += [(f"{key}/{name}".strip("/"), shape) for name, shape in deeper]
    return found


def _shape(space: dict[str, Any]) -> tuple[int, ...] | None:
    """The shape of one step, if it is a number or a row of numbers."""
    kind = space["type"]
    if kind == "Discrete":
        return ()
    if kind == "MultiDiscrete":
        return (len(space["nvec"]),)
    size = [space["n"]] if kind == "MultiBinary" else space["shape"] if kind == "Box" else []
    return (int(size[0]),) if len(size) == 1 and isinstance(size[0], int) else None
