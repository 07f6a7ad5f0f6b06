"""The files of frames of a LeRobot data set, written one after the other."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from elute.demos import lerobot_meta as meta
from elute.demos.lerobot_copy import Copy
from elute.episodes import Episodes
from elute.errors import EluteError

SHARD_MB = 100


class Shards:
    """Files of frames, one after the other: where the source has them, or a new one when full."""

    def __init__(self, path: Path, schema: pa.Schema, copy: Copy | None) -> None:
        self.path, self.schema = path, schema
        self.keep = copy.data if copy is not None and copy.whole and not copy.data.is_old else None
        self.limit = (copy.data.info.data_files_size_in_mb if copy else SHARD_MB) * 2**20
        self.places: list[tuple[int, int]] = []
        """(chunk, file) of each episode so far."""
        self._file: pa.NativeFile | None = None
        self._writer: pq.ParquetWriter | None = None

    def write(self, episode: int, table: pa.Table) -> None:
        """Rows of the last episode so far, or of the one after it."""
        if episode == len(self.places):
            place = self._next(episode)
            if not self.places or self._name(place) != self._name(self.places[-1]):
                self.close()
                self._open(self._name(place))
            self.places.append(place)
        if self._writer is not None:
            self._writer.write_table(table)

    def _next(self, episode: int) -> tuple[int, int]:
        if self.keep is not None:
            chunk, file = (self.keep.episodes[f"data/{name}_index"][episode].as_py()
                           for name in ("chunk", "file"))  # fmt: skip
            return chunk, file
        if not self.places:
            return 0, 0
        if self._file is None or self._file.tell() < self.limit:
            return self.places[-1]
        chunk, file = self.places[-1]
        return (chunk, file + 1) if file + 1 < meta.CHUNK_FILES else (chunk + 1, 0)

    def _name(self, place: tuple[int, int]) -> Path:
        template = meta.DATA_PATH if self.keep is None else self.keep.info.data_path
        where = dict(zip(("chunk_index", "file_index"), place, strict=True))
        return meta.inside(self.path, meta.filled(template, where, "data_path"))

    def _open(self, path: Path) -> None:
        if path.exists():
            raise EluteError(
                f"{path.name}: data_path gives one name to files apart from each other",
                hint="a template has {chunk_index} and {file_index}",
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = pa.OSFile(str(path), "wb")
        # Measurements hardly repeat themselves; looking for that is most of the work of writing.
        repeating = [
            field.name
            for field in self.schema
            if pa.types.is_integer(field.type) or pa.types.is_string(field.type)
        ]
        self._writer = pq.ParquetWriter(
            self._file, self.schema, compression="snappy", use_dictionary=repeating
        )

    def files(self, episodes: Episodes) -> list[tuple[Path, list[int]]]:
        """Each file, and the lengths of its episodes."""
        held: dict[Path, list[int]] = {}
        for place, length in zip(self.places, episodes.lengths.tolist(), strict=True):
            held.setdefault(self._name(place), []).append(length)
        return list(held.items())

    def close(self) -> None:
        """The file that is open is complete."""
        if self._writer is not None and self._file is not None:
            self._writer.close()
            self._file.close()
        self._writer = self._file = None

    def abandon(self) -> None:
        """The file that is open is not wanted any more."""
        try:
            self.close()
        except (OSError, pa.ArrowException):
            self._writer = self._file = None
