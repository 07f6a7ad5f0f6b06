"""robosuite `demo.hdf5`: what its collecting script writes, with the model's XML as an attribute.

The XML is text that is kept, never parsed. See `recording.py` for the layout.
"""

from pathlib import Path
from typing import Any

import h5py

from elute.demos import demo_groups, hdf5, hdf5_write, recording
from elute.demos.format import ReadOptions
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

NAME = "robosuite"
SUFFIXES = (".hdf5", ".h5")


def detect(path: Path) -> bool:
    """Whether it is a recording that keeps its actions in one array."""
    return demo_groups.kind(path) == NAME


def read(path: Path, options: ReadOptions) -> hdf5.Hdf5Demos:
    """Open a recording; its states stand in for observations."""
    del options  # there is nothing to choose
    return recording.read(path, _RECORDING)


def _attributes(group: h5py.Group, may_lack: bool) -> dict[str, Any]:
    found = demo_groups.attributes(group)
    if not may_lack and not isinstance(found.get(recording.MODEL), str):
        raise EluteError(
            f"{group.file.filename}: {group.name} has no model ({recording.MODEL})",
            hint="states mean nothing without it; was the file cut together by hand?",
        )
    return found


_RECORDING = recording.Recording(NAME, ("actions",), _attributes)


def write(path: Path, source: DemoSource, sample: Demonstrations) -> recording.RecordingWriter:
    """Start a recording: a copy of the source's, or a fresh one."""
    origin = hdf5_write.container(source, NAME)
    copy = None
    if origin is not None:
        copy = demo_groups.copy(path, origin, "actions", first=recording.FIRST)
    return recording.write(copy, path, _RECORDING, source, sample)
