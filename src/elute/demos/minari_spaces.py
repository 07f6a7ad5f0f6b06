"""Gymnasium spaces as Minari writes them down: JSON, read and built without Gymnasium."""

import json
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
        return widths(json.loads(str(text)))
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def widths(space: dict[str, Any]) -> list[tuple[str, int]] | None:
    """Name and width of each array of a space; nothing if elute cannot hold all of it."""
    inner = space.get("subspaces")
    if isinstance(inner, dict):
        found: list[tuple[str, int]] = []
        for key, sub in inner.items():
            deeper = widths(sub)
            if deeper is None:
                return None
            found += [(f"{key}/{name}".strip("/"), width) for name, width in deeper]
        return found
    if space["type"] == "Discrete":
        return [("", 1)]
    if space["type"] == "Box" and len(space["shape"]) == 1:
        return [("", space["shape"][0])]
    return None


def shapes(space: dict[str, Any]) -> list[tuple[str, tuple[int, ...]]]:
    """Name and shape of one step of each array that a space is stored in."""
    flat = space["type"] == "Discrete"  # Minari stores these as one number per step
    return [(key, () if flat else (width,)) for key, width in widths(space) or []]
