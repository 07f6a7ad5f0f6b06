"""elute turns imperfect demonstrations into clean ones, and clean ones into policies.

Names are imported when they are first used, so that `import elute` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elute.columns import Column
    from elute.demos.audit.audit import audit
    from elute.demos.audit.finding import Finding
    from elute.demos.corrupt import corrupt
    from elute.demos.files import load, open_demos, save
    from elute.episodes import Episodes, Piece, Provenance
    from elute.errors import EluteError
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
    "Piece": "elute.episodes",
    "Provenance": "elute.episodes",
    "Seeds": "elute.rng",
    "audit": "elute.demos.audit.audit",
    "choose_reverse_step": "elute.purify.select",
    "chunks": "elute.types",
    "corrupt": "elute.demos.corrupt",
    "load": "elute.demos.files",
    "open_demos": "elute.demos.files",
    "save": "elute.demos.files",
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
    "Piece",
    "Provenance",
    "Seeds",
    "audit",
    "choose_reverse_step",
    "chunks",
    "corrupt",
    "load",
    "open_demos",
    "save",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'elute' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
