"""Work that is done once and kept, whoever asks for it first.

    with stage(cache, "model", key) as kept:       # others wait here
        if not kept.done:
            save_transform(..., kept.path("model.safetensors"))
            kept.finish(seconds=12.3)
    ...  kept.path("model.safetensors"), kept.about["seconds"]

A stage is a folder named by the digest of all it depends on. `about.json` is written last, so a
stage that was killed is begun anew.
"""

import fcntl
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elute.demos.output import output
from elute.errors import EluteError

ABOUT = "about.json"


def digest(facts: object) -> str:
    """Of anything that JSON holds."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


class Stage:
    """A folder with what was made, and how it was."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about: dict[str, Any] = {}
        if (folder / ABOUT).exists():
            self.about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))

    @property
    def done(self) -> bool:
        """Whether it was finished."""
        return bool(self.about)

    def path(self, name: str) -> Path:
        """Of a file in it."""
        return self.folder / name

    def finish(self, **about: Any) -> None:  # noqa: ANN401 (whatever JSON holds)
        """Say that all of it is there."""
        self.about = {"done": True, **about}
        with output(self.folder / ABOUT) as temporary:
            temporary.write_text(json.dumps(self.about), encoding="utf-8")


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EluteError(
            f"{folder} cannot be made: {error.strerror}",
            hint="set ELUTE_CACHE to a folder that can be written",
        ) from error
    return folder


@contextmanager
def stage(cache: Path, kind: str, facts: Mapping[str, Any]) -> Iterator[Stage]:
    """The stage of these facts, for one process at a time."""
    folder = _made(cache / kind / digest({"kind": kind, **facts})[:32])
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # let go when the process ends, however it does
        yield Stage(folder)


@contextmanager
def claim(cache: Path, name: str) -> Iterator[bool]:
    """Whether this process alone may do what has this name; until the block ends."""
    with (_made(cache / "claims") / name).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
