"""Writing imitation's trajectories: whole ones, gathered from chunks that may have cut them."""

import json
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from elute.demos import arrow_stream, hdf5_write, note
from elute.demos.inside import bystanders
from elute.demos.saved_dataset import DATA, INFO, STATE, data_files, feature, read_json, write_json
from elute.episodes import Array, Episodes, Origin, Piece
from elute.errors import EluteError
from elute.types import Demonstrations, DemoSource

INFOS, EXTRAS = "infos", "elute.arrow"
COLUMNS = ("obs", "acts", INFOS, "terminal", "rews")
"""Any other column imitation's own loader would stumble over; if there are some, they are kept."""
_NAME = "imitation"
_COUNTED = ("splits", "dataset_size", "download_size", "size_in_bytes")
"""What a folder may say about how much it holds."""


class ImitationWriter:
    """A folder that takes rows in order."""

    copied = False

    def __init__(self, path: Path, source: DemoSource, sample: Demonstrations) -> None:
        self.pa = arrow_stream.arrow()
        self.path, self.source, self.sample = path, source, sample
        origin = hdf5_write.container(source, _NAME)
        self.kept = _Kept(origin) if origin is not None else None
        self.losses = hdf5_write.container_losses(source, origin)
        if sample.next_observations is None:
            self.losses.append(
                "the observation after the last action is unknown: repeated, so marked"
            )
        self.parts: list[Demonstrations] = []
        self.open = ExitStack()
        path.mkdir(parents=True)
        self.schema, self.features = self._described()
        self.trajectories = self._stream(DATA, self.schema)
        self.extras = (
            self._stream(EXTRAS, self.pa.schema(_extra_fields(sample))) if sample.extras else None
        )

    def _stream(self, name: str, schema: Any) -> Any:  # noqa: ANN401
        file = self.open.enter_context((self.path / name).open("wb"))
        return self.open.enter_context(self.pa.ipc.new_stream(file, schema))

    def _described(self) -> tuple[Any, dict[str, Any] | None]:
        """The columns, each as the source's folder has it where that fits."""
        text = self.pa.list_(self.pa.string())
        types: dict[str, Any] = {}
        features: dict[str, Any] = {}
        for name, array in (("obs", self.sample.observations), ("acts", self.sample.actions)):
            depth = 1 if array.shape[1] == 1 and array.dtype.kind in "iu" else 2  # Discrete spaces
            types[name], features[name] = _type(array.dtype, depth), feature(array.dtype, depth)
        types |= {INFOS: text, "terminal": self.pa.bool_()}
        features |= {INFOS: feature("string", 1), "terminal": feature("bool", 0)}
        if self.sample.rewards is not None:
            types["rews"] = _type(self.sample.rewards.dtype, 1)
            features["rews"] = feature(self.sample.rewards.dtype, 1)
        for field in self.kept.schema if self.kept is not None else ():
            fits = field.name in types and _leaf(field.type) == _leaf(types[field.name])
            if fits or _is_kept(field.name):
                types[field.name] = field.type
                features[field.name] = self.kept.features.get(field.name) if self.kept else None
        told = features if all(features.values()) else None  # datasets reads them off the types
        metadata = {"huggingface": json.dumps({"info": {"features": told}})} if told else None
        return self.pa.schema(list(types.items()), metadata=metadata), told

    def put(
        self, start: int, rows: Demonstrations, unchanged: Demonstrations | None = None
    ) -> None:
        """Write rows from `start` on; a trajectory is written when its last row is here."""
        del unchanged  # every array is written anew, in order
        episodes = self.source.episodes
        finished = False
        columns: dict[str, list[Any]] = {name: [] for name in self.schema.names}
        for episode, piece in _inside(episodes, start, len(rows)):
            self.parts.append(rows[piece.start - start : piece.start - start + piece.length])
            if piece.start + piece.length == episodes.stops[episode]:
                self._finish(episode, columns)
                finished = True
        if finished:
            arrays = [
                self._column(name, columns[name]).cast(self.schema.field(name).type)
                for name in self.schema.names
            ]
            self.trajectories.write_batch(self.pa.record_batch(arrays, schema=self.schema))
        if self.extras is not None:
            self.extras.write_batch(_extra_batch(rows, self.sample))

    def _finish(self, episode: int, columns: dict[str, list[Any]]) -> None:
        """Put the parts of a trajectory together."""
        parts, self.parts = self.parts, []
        last = parts[-1]
        final = last.observations if last.next_observations is None else last.next_observations
        columns["obs"].append(np.concatenate([*(p.observations for p in parts), final[-1:]]))
        columns["acts"].append(np.concatenate([p.actions for p in parts]))
        columns["terminal"].append(bool(self.source.episodes.terminated[episode]))
        if "rews" in columns:
            columns["rews"].append(
                np.concatenate([p.rewards for p in parts if p.rewards is not None])
            )
        for name, found in columns.items():
            if self.kept is not None and name in self.kept.schema.names and _is_kept(name):
                found.append(self.kept.row(name, episode))
            elif name == INFOS:
                found.append(["{}"] * sum(map(len, parts)))

    def _column(self, name: str, found: list[Any]) -> Any:  # noqa: ANN401
        pa = self.pa
        if name in ("obs", "acts", "rews"):
            return _lists(found, self.schema.field(name).type)
        if found and isinstance(found[0], pa.Array):
            return pa.concat_arrays(found)
        return pa.array(found, self.schema.field(name).type)

    def finish(self) -> None:
        """Everything is written."""
        self.open.close()
        known, state = {}, {}
        if self.kept is not None:
            known, state = self.kept.info, self.kept.state
            for item in bystanders(self.kept.folder, (INFO, STATE, EXTRAS, *self.kept.files)):
                shutil.copyfile(item, self.path / item.name)
        elif isinstance(self.source.provenance.metadata.get(_NAME), dict):
            known = dict(self.source.provenance.metadata[_NAME])
        known = {name: known[name] for name in known if name not in _COUNTED}
        noted = note.encode(
            self.source,
            attributes=self.source.episodes.attributes,
            final_repeated=self.sample.next_observations is None,
        )
        write_json(self.path, self.features, known | {note.NAME: json.loads(noted)}, state)

    def close(self) -> None:
        """Let go of all files."""
        self.open.close()


class _Kept:
    """Columns of the source's folder that elute does not hold."""

    def __init__(self, origin: Origin) -> None:
        self.folder = origin.path.parent
        found = data_files(self.folder)
        self.files = [path.name for path in found]
        streams = [arrow_stream.read_batches(path) for path in found]
        self.schema = streams[0][0]
        self.pieces = origin.pieces
        self.info, self.state = read_json(self.folder / INFO), read_json(self.folder / STATE)
        self.info.pop(note.NAME, None)
        told = self.info.pop("features", None)
        self.features = told if isinstance(told, dict) else {}
        self.batches = [batch for _, batches in streams for batch in batches if len(batch)]
        lengths = [np.diff(arrow_stream.lists(batch["acts"], "acts")[0]) for batch in self.batches]
        self.lengths = np.concatenate(lengths)
        self.stops = np.cumsum(self.lengths)
        self.firsts = np.cumsum([0, *(len(batch) for batch in self.batches)])

    def row(self, name: str, episode: int) -> Any:  # noqa: ANN401
        """The entry of a column for an episode of the output; infos are cut as it was."""
        piece = self.pieces[episode]
        owner = int(np.searchsorted(self.stops, piece.start, side="right"))
        at = int(np.searchsorted(self.firsts, owner, side="right")) - 1
        entry = self.batches[at][name].slice(owner - int(self.firsts[at]), 1)
        length = int(self.lengths[owner])
        if name != INFOS or piece.length == length or not arrow_stream.is_list(entry.type):
            return entry
        if entry.null_count or len(entry.flatten()) != length:
            return entry
        first = piece.start - int(self.stops[owner]) + length
        pa = arrow_stream.arrow()
        cut = entry.flatten().slice(first, piece.length)
        return pa.ListArray.from_arrays(pa.array([0, piece.length], pa.int32()), cut).cast(
            entry.type
        )


def _inside(episodes: Episodes, start: int, length: int) -> list[tuple[int, Piece]]:
    first = episodes.of_row(start)
    return [(first + i, p) for i, p in enumerate(episodes.pieces(start, start + length))]


def _type(dtype: np.dtype[Any], depth: int) -> Any:  # noqa: ANN401
    """Numbers inside so many lists."""
    pa = arrow_stream.arrow()
    try:
        found = pa.from_numpy_dtype(dtype.newbyteorder("="))
    except pa.ArrowException as error:
        raise EluteError(
            f"Arrow has no numbers of type {dtype}", hint="write it as .npz"
        ) from error
    for _ in range(depth):
        found = pa.list_(found)
    return found


def _leaf(kind: Any) -> Any:  # noqa: ANN401
    while arrow_stream.is_list(kind):
        kind = kind.value_type
    return kind


def _is_kept(name: str) -> bool:
    """Whether a column is one that elute does not hold."""
    return name == INFOS or name not in COLUMNS


def _lists(arrays: Sequence[Array], kind: Any) -> Any:  # noqa: ANN401
    """One list per array, of its rows, or of numbers if that is the kind."""
    pa = arrow_stream.arrow()
    joined = _native(np.concatenate(arrays))
    if joined.size >= 2**31:
        raise EluteError(
            f"{joined.size} numbers in a row of trajectories; an Arrow list holds 2^31",
            hint="cut the longest episodes, or write another format",
        )
    items = pa.array(joined.reshape(-1))
    if arrow_stream.is_list(kind.value_type):
        begins = np.arange(len(joined) + 1, dtype=np.int32) * joined.shape[1]
        items = pa.ListArray.from_arrays(pa.array(begins), items)
    begins = np.cumsum([0, *map(len, arrays)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(begins), items)


def _native(array: Array) -> Array:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def _extra_fields(sample: Demonstrations) -> list[Any]:
    pa = arrow_stream.arrow()
    fields = []
    for name, array in sample.extras.items():
        texts = {"U": pa.string(), "S": pa.binary()}
        size = int(np.prod(array.shape[1:]))
        kind = pa.bool_() if size == 0 else texts.get(array.dtype.kind) or _type(array.dtype, 0)
        kind = kind if array.ndim == 1 or size == 0 else pa.list_(kind, size)
        fields.append(pa.field(name, kind, metadata={"shape": json.dumps(array.shape[1:])}))
    return fields


def _extra_batch(rows: Demonstrations, sample: Demonstrations) -> Any:  # noqa: ANN401
    pa = arrow_stream.arrow()
    schema = pa.schema(_extra_fields(sample))
    arrays = []
    for field in schema:
        values = rows.extras[field.name]
        if values.ndim > 1 and 0 in values.shape[1:]:
            arrays.append(pa.array(np.zeros(len(values), dtype=bool)))
            continue
        text = values.dtype.kind in "SU"
        flat = values.reshape(-1)
        items = pa.array(flat.tolist() if text else _native(flat), _leaf(field.type))
        listed = arrow_stream.is_list(field.type)
        size = field.type.list_size if listed else 1
        arrays.append(pa.FixedSizeListArray.from_arrays(items, size) if listed else items)
    return pa.record_batch(arrays, schema=schema)
