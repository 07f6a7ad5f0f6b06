"""RoboTurk pilot: a folder with `demo.hdf5` and the models in `models/`, by robosuite 0.3.

The action is kept in two arrays, of the arm and of the gripper, and stays so. `model_file` is the
name of a file here; in elute's hands it is its text, as in robosuite, and `model_name` the name.
See `recording.py` for the layout.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py

from elute.demos import demo_groups, hdf5, hdf5_write, note, recording
from elute.demos.format import ReadOptions
from elute.demos.inside import bystanders, inside
from elute.episodes import Origin
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

NAME = "roboturk"
SUFFIXES = ("",)

LARGEST_MODEL = 64 * 2**20
"""Bytes of XML; real ones have some ten thousand."""
_MAIN, _MODELS = "demo.hdf5", "models"
_ACTIONS = (demo_groups.JOINT_VELOCITIES, recording.GRIPPER)


def detect(path: Path) -> bool:
    """Whether it is a recording with the arm's actions apart, or the folder of one."""
    return demo_groups.kind(_main(path)) == NAME


def _main(path: Path) -> Path:
    return path / _MAIN if path.is_dir() else path


def read(path: Path, options: ReadOptions) -> hdf5.Hdf5Demos:
    """Open a recording; its states stand in for observations."""
    del options  # there is nothing to choose
    main = _main(path)
    return recording.read(main, _recording(main.parent), source=path)


def _recording(folder: Path) -> recording.Recording:
    texts: dict[str, str] = {}  # demonstrations may share a model

    def attributes(group: h5py.Group, may_lack: bool) -> dict[str, Any]:
        found = demo_groups.attributes(group)
        name = found.get(recording.MODEL)
        if name is None and may_lack:
            return found
        if name is None:
            raise EluteError(
                f"{folder}: {group.name} names no model ({recording.MODEL})",
                hint="states mean nothing without it; was the file cut together by hand?",
            )
        if name not in texts:
            texts[name] = _text(inside(folder, _MODELS, name))
        return {**found, recording.MODEL: texts[name], recording.MODEL_NAME: name}

    return recording.Recording(NAME, _ACTIONS, attributes)


def _text(path: Path) -> str:
    """A model as it is written there; it is kept, never parsed."""
    if path.stat().st_size > LARGEST_MODEL:
        raise EluteError(f"{path}: {path.stat().st_size} bytes are no model of a simulator")
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EluteError(f"{path}: cannot be read as XML in UTF-8: {error}") from error


def write(path: Path, source: DemoSource, sample: Demonstrations) -> recording.RecordingWriter:
    """Start a recording: a copy of the source's, or a fresh one."""
    origin = hdf5_write.container(source, NAME)
    models = path / _MODELS
    models.mkdir(parents=True)
    copy = None
    if origin is not None:
        copy = demo_groups.copy(path / _MAIN, origin, _ACTIONS[0], first=recording.FIRST)
        _copy_models(origin, copy, path)

    def put_model(group: h5py.Group, attributes: Mapping[str, Any]) -> None:
        text = attributes.get(recording.MODEL)
        if not isinstance(text, str) or note.storable(text) != text:
            return  # what is no text goes into the note
        name = _free_name(models, attributes.get(recording.MODEL_NAME), text)
        (models / name).write_bytes(text.encode())
        group.attrs[recording.MODEL] = name

    return recording.write(copy, path / _MAIN, _recording(path), source, sample, put_model)


def _free_name(models: Path, given: object, text: str) -> str:
    """The name that the model had, unless another model has it."""
    count = len(list(models.iterdir()))
    plain = isinstance(given, str) and Path(given).name == given and given.endswith(".xml")
    name = str(given) if plain and len(str(given)) < 200 else f"model_{count}.xml"
    taken = (models / name).exists() and (models / name).read_bytes() != text.encode()
    return f"model_{count}.xml" if taken else name


def _copy_models(origin: Origin, copy: demo_groups.Copy, path: Path) -> None:
    """The models in use, byte for byte; with a whole copy whatever else lies there."""
    old = origin.path.parent
    attributes = (copy.file[f"data/{name}"].attrs for name in copy.names)
    used = {str(note.jsonable(a[recording.MODEL])) for a in attributes if recording.MODEL in a}
    files = [inside(old, _MODELS, name) for name in used]
    for item in (*files, *(bystanders(old / _MODELS, ()) if copy.whole else ())):
        shutil.copyfile(item, path / _MODELS / item.name)
    for item in bystanders(old, (origin.path.name,)):
        shutil.copyfile(item, path / item.name)
