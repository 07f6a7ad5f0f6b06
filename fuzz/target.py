"""What is tried with an input: read all of it, as a user would.

answer = attempt("npz", path)      # "read" or "refused"; anything else is a fault of ours
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from elute.demos.audit.audit import audit
from elute.demos.files import open_demos
from elute.demos.formats import FORMATS
from elute.errors import EluteError
from elute.policy import load_policy
from elute.types import chunks

CHUNK = 1000
MOST_ROWS = 10_000
"""More are not read: a damaged count may promise rows without end."""


def read_demos(path: Path) -> None:
    """Open, read in pieces, and audit."""
    source = open_demos(str(path))
    if source.episodes.n_rows > MOST_ROWS:
        source = source.rows(0, MOST_ROWS)
    for _ in chunks(source, CHUNK):
        pass
    audit(source)


READERS: Mapping[str, Callable[[Path], object]] = {
    **dict.fromkeys(FORMATS, read_demos),
    "policy": load_policy,
}
"""By the kind of an input."""


def attempt(kind: str, path: Path) -> str:
    """Whether it was read or refused; whatever else happens is raised."""
    try:
        READERS[kind](path)
    except EluteError:
        return "refused"
    return "read"
