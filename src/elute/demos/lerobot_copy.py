"""The LeRobot data set that a new one is a copy of: its rows, its videos, its other files."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from elute.columns import is_action_side
from elute.demos import hdf5_write
from elute.demos import lerobot_meta as meta
from elute.demos import lerobot_parquet as parquet
from elute.demos.hdf5 import merged
from elute.episodes import Episodes, Origin, Piece
from elute.errors import EluteError


@dataclass(frozen=True, eq=False)
class Copy:
    """The data set that is copied, and which of its rows."""

    data: meta.DataSet
    pieces: tuple[Piece, ...]
    whole: bool
    """All episodes, in their order."""
    owners: list[int]
    """Of each new episode, the source's."""
    cut: bool
    """Some episode is not whole."""

    @classmethod
    def of(cls, origin: Origin) -> "Copy":
        """What is copied when rows of `origin` are written again."""
        data = meta.opened(origin.path)
        stops = np.cumsum(data.lengths)
        owners = [int(np.searchsorted(stops, p.start, side="right")) for p in origin.pieces]
        cut = any(
            p != Piece(int(stops[owner] - data.lengths[owner]), int(data.lengths[owner]))
            for p, owner in zip(origin.pieces, owners, strict=True)
        )
        whole = hdf5_write.is_every_group(origin, data.lengths.tolist())
        return cls(data, origin.pieces, whole, owners, cut)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the frames."""
        return self.data.schema

    def rows(self, episodes: Episodes, start: int, stop: int) -> Iterator[pa.Table]:
        """The source's rows for `start..stop` of the new data set, a bounded piece at a time."""
        first = episodes.of_row(start)
        chosen = [
            Piece(
                self.pieces[first + i].start + piece.start - int(episodes.starts[first + i]),
                piece.length,
                self.pieces[first + i].shift,
            )
            for i, piece in enumerate(episodes.pieces(start, stop))
        ]
        if any(piece.shift for piece in chosen):
            for piece in chosen:
                yield self._shifted(piece)
        else:
            for begin, end in merged(chosen):
                yield from self._read(begin, end, self.schema.names)

    def _read(self, start: int, stop: int, names: Sequence[str]) -> Iterator[pa.Table]:
        expected = [self.schema.field(name).type for name in names]
        for path, first, last in self.data.spans(start, stop):
            for table in parquet.pieces(path, first, last, names):
                if table.schema.types != expected:
                    raise EluteError(f"{path}: its columns are of other types than other files'")
                yield table

    def _shifted(self, piece: Piece) -> pa.Table:
        """What belongs to the action comes from other rows than what belongs to the state."""
        sides: dict[bool, list[str]] = {False: [], True: []}
        for name in self.schema.names:
            sides[is_action_side(name)].append(name)
        columns: dict[str, pa.ChunkedArray] = {}
        for shifted, names in sides.items():
            begin = piece.start + piece.shift * shifted
            if names:
                table = pa.concat_tables(self._read(begin, begin + piece.length, names))
                columns |= dict(zip(names, table.columns, strict=True))
        return pa.table([columns[name] for name in self.schema.names], names=self.schema.names)


def check_along(copy: Copy) -> None:
    """Refuse what could not be brought along, before any row is written.

    Raises:
        EluteError: a video is missing, or a link leads out of the folder.
    """
    for key in copy.data.videos:
        for owner in sorted(set(copy.owners)):
            copy.data.video(key, owner)
    for item in copy.data.root.rglob("*"):
        if item.is_symlink():
            meta.inside(copy.data.root, str(item.relative_to(copy.data.root)))


def bring_along(copy: Copy, path: Path) -> None:
    """Videos, linked; and everything else in the folder that is no table written here."""
    data = copy.data
    for key in data.videos:
        for owner in sorted(set(copy.owners)):
            video = data.video(key, owner)
            target = _video_target(data, key, owner, path)
            if not target.exists():
                parquet.link(video, target)
    written = ("data", "videos", "meta/episodes", "meta/stats.json", "meta/info.json",
               meta.NOTE_PATH)  # fmt: skip
    old = ("meta/episodes.jsonl", "meta/tasks.jsonl", "meta/episodes_stats.jsonl")
    for item in sorted(data.root.rglob("*")):
        name = item.relative_to(data.root)
        ours = any(name == Path(w) or Path(w) in name.parents for w in (*written, *old))
        if not ours and item.is_file():
            target = path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(meta.inside(data.root, str(name)), target)


def _video_target(data: meta.DataSet, key: str, episode: int, path: Path) -> Path:
    if not data.is_old:
        return path / data.video(key, episode).relative_to(data.root)
    chunk, file = divmod(episode, meta.CHUNK_FILES)
    where = {"video_key": key, "chunk_index": chunk, "file_index": file}
    return meta.inside(path, meta.filled(meta.VIDEO_PATH, where, "video_path"))
