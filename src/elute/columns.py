"""What each column of a demonstration is: its name, its role, and which side of a step it is on.

An observation or action vector is a concatenation of *blocks*, each one array of the source
(`robot0_eef_quat`, 4 wide). A `Column` is one number of one block, so the blocks of a file can
always be recovered from its columns.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from elute.errors import EluteError

Array = NDArray[Any]
Role = Literal["continuous", "discrete", "quaternion", "constant"]
ROLES: tuple[Role, ...] = get_args(Role)

STILL = 1e-4
"""Of its size a column must vary by more."""

_QUATERNION = re.compile(r"(^|[_/.])(quat|quaternion)([_/.]|$)")
_DISCRETE = re.compile(r"(^|[_/.])(one_?hot|phase|is|flag|mode|button)([_/.]|$)")
_ACTION_SIDE = re.compile(
    r"(^|[_/.])(actions?|rewards?|dones?|terminals?|terminations?|timeouts?|truncations?"
    r"|masks|log_probs?)([_/.]|$)"
)


@dataclass(frozen=True)
class Column:
    """One number of an observation or action vector."""

    key: str
    """Name of the array it came from."""
    index: int
    """Position inside that array."""
    role: Role = "continuous"

    @property
    def name(self) -> str:
        """As users write it: `robot0_eef_quat[2]`."""
        return f"{self.key}[{self.index}]"


@dataclass(frozen=True)
class Block:
    """Consecutive columns that came from one array."""

    key: str
    start: int
    stop: int
    roles: tuple[Role, ...]

    @property
    def size(self) -> int:
        """How many columns it is wide."""
        return self.stop - self.start


def columns(key: str, size: int, *, discrete: bool = False) -> tuple[Column, ...]:
    """The columns of one array, their roles read off its name (or `discrete` by its type)."""
    role: Role = "continuous"
    if size == 4 and _QUATERNION.search(key.lower()):
        role = "quaternion"
    elif discrete or _DISCRETE.search(key.lower()):
        role = "discrete"
    return tuple(Column(key, i, role) for i in range(size))


def still(mean: Array, spread: Array, of: Sequence[Column] = ()) -> Array:
    """Which columns hardly vary, by mean and standard deviation of each.

    Hardly: by less than a ten-thousandth of what is in the column; a quaternion's entries are
    measured by its length, 1. In units of such a spread, rounding would be signal. A column that
    was said to be constant is not listened to at all.
    """
    size = np.abs(mean)
    for i, column in enumerate(of):
        if column.role == "quaternion":
            size[i] = max(size[i], 1.0)
        elif column.role == "constant":
            size[i] = np.inf
    stands: Array = spread <= np.maximum(1e-9, STILL * size)
    return stands


def blocks(of: Sequence[Column]) -> list[Block]:
    """Group columns back into the arrays they came from."""
    found, start = [], 0
    for key, group in groupby(of, key=lambda column: column.key):
        roles = tuple(column.role for column in group)
        found.append(Block(key, start, start + len(roles), roles))
        start += len(roles)
    return found


def columns_to_json(of: Sequence[Column]) -> list[dict[str, Any]]:
    """A manifest that `columns_from_json` turns back into the same columns."""
    return [{"key": block.key, "roles": list(block.roles)} for block in blocks(of)]


def columns_from_json(manifest: Iterable[dict[str, Any]]) -> tuple[Column, ...]:
    """The columns of a stored manifest."""
    return tuple(
        Column(str(block["key"]), i, _role(role))
        for block in manifest
        for i, role in enumerate(block["roles"])
    )


def is_action_side(name: str) -> bool:
    """Whether a per-step array belongs to the action of its step rather than to the state.

    Realigning a file moves actions, rewards, done flags and everything named after them
    (`clean_actions`, `infos/action_log_probs`) together; simulator states and images stay.
    """
    return _ACTION_SIDE.search(name.lower()) is not None


def assign_roles(of: Sequence[Column], spec: str) -> tuple[Column, ...]:
    """Apply a user's `KEY=ROLE,KEY[i]=ROLE,KEY[i:j]=ROLE`; other columns are left alone."""
    changed = list(of)
    for key, start, stop, role in _parse_roles(spec):
        for i, column in enumerate(changed):
            if column.key == key and start <= column.index < stop:
                changed[i] = replace(column, role=role)
    return tuple(changed)


def check_roles(spec: str, known: Sequence[Column]) -> None:
    """Refuse a role specification that names no existing column."""
    for key, start, stop, _ in _parse_roles(spec):
        if not any(c.key == key and start <= c.index < stop for c in known):
            names = ", ".join(f"{b.key}[0:{b.size}]" for b in blocks(known))
            raise EluteError(
                f"--columns names {key!r}, which is not here", hint=f"there are {names}"
            )


def _parse_roles(spec: str) -> list[tuple[str, int, int, Role]]:
    parsed = []
    for part in filter(None, (p.strip() for p in spec.split(","))):
        match = re.fullmatch(r"([^=\[\]]+)(?:\[(\d+)(?::(\d+))?\])?=(\w+)", part)
        if match is None:
            raise EluteError(
                f"--columns: cannot read {part!r}",
                hint="write KEY=ROLE, KEY[3]=ROLE or KEY[3:7]=ROLE, separated by commas",
            )
        key, first, last, role = match.groups()
        start = int(first) if first else 0
        stop = int(last) if last else (start + 1 if first else 2**31)
        parsed.append((key.strip(), start, stop, _role(role)))
    return parsed


def _role(name: str) -> Role:
    for role in ROLES:
        if name == role:
            return role
    raise EluteError(f"{name!r} is no column role", hint="roles are " + ", ".join(ROLES))
