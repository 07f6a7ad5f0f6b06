"""An HDF5 file for writing that survives a full disk.

libhdf5 caches what is written and cannot recover when the disk refuses it: the error surfaces
late, from a destructor, as noise or as a crash. So it writes through a file of ours that never
refuses: after the first failure it swallows everything, and whoever writes asks `check`.
"""

from io import FileIO
from pathlib import Path
from typing import Any

import h5py


class OutputFile(h5py.File):  # type: ignore[misc] # h5py ships no types
    """A new file, or a copy that is patched."""

    def __init__(self, path: Path, mode: str, **options: Any) -> None:  # noqa: ANN401 (of h5py)
        self.raw = _Swallowing(FileIO(path, "w+" if mode == "w" else "r+"))
        super().__init__(self.raw, mode, **options)

    def check(self) -> None:
        """Raise what went wrong with the disk, if anything did."""
        if self.raw.error is not None:
            raise self.raw.error

    def close(self) -> None:
        """Write what is cached and let go of the file."""
        super().close()
        self.raw.close()


class _Swallowing:
    """A binary file whose writes never fail; the first failure is kept."""

    def __init__(self, file: FileIO) -> None:
        self.error: OSError | None = None
        self._file = file

    def write(self, data: memoryview) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while self.error is None and len(rest):
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.error = error
        return size

    def truncate(self, size: int) -> int:
        try:
            if self.error is None:
                self._file.truncate(size)
        except OSError as error:
            self.error = error
        return size

    def read(self, size: int) -> bytes:
        data = bytearray(size)
        self.readinto(memoryview(data))
        return bytes(data)

    def readinto(self, buffer: memoryview) -> int:
        view = memoryview(buffer).cast("B")
        done = 0
        while done < len(view) and (got := self._file.readinto(view[done:])):
            done += got
        view[done:] = bytes(len(view) - done)  # what was swallowed reads as zeros
        return len(view)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        """Nothing is buffered here."""

    def close(self) -> None:
        self._file.close()

    def __del__(self) -> None:
        self._file.close()
