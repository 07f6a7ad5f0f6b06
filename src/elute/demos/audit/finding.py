"""What an audit says: findings, each with its numbers and what to do about it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]
Repair = Literal["", "realign", "drop-non-finite", "clip"]


@dataclass(frozen=True)
class Finding:
    """One thing an audit noticed."""

    code: str
    severity: Severity
    """error: training on it is wrong. warning: look before you train. note: good to know."""
    message: str
    advice: str
    file: str = ""
    about_optimal: bool = False
    """It is about the file given as optimal, not about the one that is audited."""
    repair: Repair = ""
    """The repair that `--fix` would make."""
    shift: int | None = None
    """For misaligned data: row t's state belongs to the action of row t + shift."""
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As the command line prints it; what does not apply is left out."""
        return {
            name: value
            for name, value in asdict(self).items()
            if value not in ("", None, {}, False)
        }


def counted(n: int, what: str) -> str:
    """`1 episode`, `3 episodes`."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def listed(items: list[Any], most: int = 5) -> str:
    """The first few of a list, for a sentence."""
    shown = ", ".join(str(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"
