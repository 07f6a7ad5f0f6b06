"""Policies by name: the shipped experts, their checkpoints, and files.

    find_policy("expert:hopper"), find_policy("checkpoint:hopper@1M"), find_policy("mine.st")

How the experts were made stands in `docs/reference/experts.md`.
"""

from pathlib import Path

from elute.envs.task import SAWYER_REACH, TASKS, find_task, without_backend
from elute.errors import EluteError
from elute.policy import StoredPolicy, load_policy

FOLDER = Path(__file__).parent / "experts"
CHECKPOINTS = ("1M", "1.5M", "3M")
"""Environment steps after which the expert's training was looked at."""
EXPERTS = tuple(name for name, task in TASKS.items() if task.expert_score is not None)
"""Tasks with an expert in the package."""


def shipped_path(task: str, which: str = "best") -> Path:
    """Where the expert of a task lies, or one of its checkpoints.

    Raises:
        EluteError: no such task, checkpoint or expert.
    """
    name = find_task(task).name
    if name not in EXPERTS:
        raise EluteError(f"no expert of {name} is shipped", hint=_instead(name))
    if which not in ("best", *CHECKPOINTS):
        raise EluteError(f"{which!r} is no checkpoint", hint="there are " + ", ".join(CHECKPOINTS))
    return FOLDER / f"{name}-{which}.safetensors"


def _instead(name: str) -> str:
    if without_backend(name) == SAWYER_REACH:
        return f"elute demos collect {name} --policy operator:1 records a scripted one"
    return f"elute expert train {name} makes one"


def find_policy(spec: str, task: str = "") -> StoredPolicy:
    """The policy of a name or file; `task` may stand in for the one left out of a name.

    Raises:
        EluteError: it cannot be found or read.
    """
    kind, _, rest = spec.partition(":")
    if kind == "expert":
        return load_policy(shipped_path(rest or _given(spec, task)))
    if kind.partition("@")[0] == "checkpoint":
        of, _, mark = (rest or kind.removeprefix("checkpoint")).partition("@")
        return load_policy(shipped_path(of or _given(spec, task), mark))
    return load_policy(Path(spec))


def _given(spec: str, task: str) -> str:
    if not task:
        raise EluteError(f"{spec}: of which task?", hint=f"{spec}:hopper, for instance")
    return task
