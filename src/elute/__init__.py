"""elute turns imperfect demonstrations into clean ones, and clean ones into policies.

Names are imported when they are first used, so that `import elute` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elute.collect.record import record
    from elute.columns import Column
    from elute.demos.audit.audit import audit
    from elute.demos.audit.finding import Finding
    from elute.demos.corrupt import corrupt
    from elute.demos.files import load, open_demos, save
    from elute.envs.task import find_task
    from elute.episodes import Episodes, Piece, Provenance
    from elute.errors import EluteError
    from elute.evaluation import evaluate
    from elute.policy import GaussianPolicy, load_policy, save_policy
    from elute.purify.diffusion import DiffusionPurifier
    from elute.purify.select import choose_reverse_step
    from elute.rng import Seeds
    from elute.types import Demonstrations, DemoSet, DemoSource, chunks

__version__ = "0.1.0"

_HOME = {
    "Column": "elute.columns",
    "DemoSet": "elute.types",
    "DemoSource": "elute.types",
    "Demonstrations": "elute.types",
    "DiffusionPurifier": "elute.purify.diffusion",
    "EluteError": "elute.errors",
    "Episodes": "elute.episodes",
    "Finding": "elute.demos.audit.finding",
    "GaussianPolicy": "elute.policy",
    "Piece": "elute.episodes",
    "Provenance": "elute.episodes",
    "Seeds": "elute.rng",
    "audit": "elute.demos.audit.audit",
    "choose_reverse_step": "elute.purify.select",
    "chunks": "elute.types",
    "corrupt": "elute.demos.corrupt",
    "evaluate": "elute.evaluation",
    "find_task": "elute.envs.task",
    "load": "elute.demos.files",
    "load_policy": "elute.policy",
    "open_demos": "elute.demos.files",
    "record": "elute.collect.record",
    "save": "elute.demos.files",
    "save_policy": "elute.policy",
}

__all__ = [
    "Column",
    "DemoSet",
    "DemoSource",
    "Demonstrations",
    "DiffusionPurifier",
    "EluteError",
    "Episodes",
    "Finding",
    "GaussianPolicy",
    "Piece",
    "Provenance",
    "Seeds",
    "audit",
    "choose_reverse_step",
    "chunks",
    "corrupt",
    "evaluate",
    "find_task",
    "load",
    "load_policy",
    "open_demos",
    "record",
    "save",
    "save_policy",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'elute' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
