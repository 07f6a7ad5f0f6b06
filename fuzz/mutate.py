"""Damage: bytes, members of archives, fields of JSON, files of folders.

    damaged = damage(path, rng)        # in place

Bytes alone rarely get past a checksum or a parser, so archives, HDF5, parquet and JSON are also
damaged inside and put together again.
"""

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

Rng = np.random.Generator
TOKENS = (
    *(b"\x00", b"\xff", b"\x7f\xff\xff\xff", b"\xff" * 8, b"NaN", b"-1", b"1e309", b"../", b"/"),
    *(b"{}", b"[]", b"null", b"[[", b"\x80\x04", b"cos\nsystem\n", b"O", b"<U999999999", b"%s"),
    *(b"{episode_chunk:999999999d}", b"PAR1", b"ARROW1", b"PK\x03\x04", b"\x89HDF\r\n\x1a\n"),
)
"""Bytes that mean something somewhere."""
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**31, 2**63, 10**30, 0.5, float("nan"), "", "x", "../../etc/passwd"),
    *("/etc/passwd", "\x00", "a" * 10_000, [], {}, [[]], {"py/object": "os.system"}, [10**9] * 2),
)
"""For fields of JSON."""


def damage(path: Path, rng: Rng) -> None:
    """Damage a file, or one of a folder's."""
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file())
        if rng.random() < 0.05:
            _damage_folder(files, rng)
            return
        path = files[rng.integers(len(files))]
    content = path.read_bytes()
    if content[:8] == b"\x89HDF\r\n\x1a\n" and rng.random() < 0.5:
        _damage_hdf5(path, rng)
    elif content[:4] == b"PAR1" and rng.random() < 0.5:
        _damage_parquet(path, rng)
    else:
        path.write_bytes(damaged(content, rng))


def _damage_hdf5(path: Path, rng: Rng) -> None:
    """An array or an attribute gone or other; bytes would not get past the checksums."""
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        name = names[rng.integers(len(names))]
        item = file[name]
        attributes = list(item.attrs)
        if attributes and rng.random() < 0.5:
            key = attributes[rng.integers(len(attributes))]
            del item.attrs[key]
            if rng.random() < 0.8:
                item.attrs[key] = (3, -1, "text", "{}", b"\xff", np.ones(2))[rng.integers(6)]
            return
        is_array = isinstance(item, h5py.Dataset) and item.dtype.kind in "fiub" and item.ndim > 0
        values = item[()] if is_array else np.arange(3.0)
        del file[name]
        kind = rng.integers(6)
        if kind == 0:
            file[name] = h5py.SoftLink("/nowhere")
        elif kind == 1:
            file[name] = h5py.ExternalLink("/etc/hostname", "/")
        elif kind == 2:
            file.create_dataset(name, shape=(2**40, 2**10), dtype="f8", chunks=(1, 2**10))
        elif kind > 2:
            file[name] = _changed(values, rng)


def _damage_parquet(path: Path, rng: Rng) -> None:
    """A column gone or other."""
    import pyarrow as pa  # noqa: PLC0415 (an extra)
    from pyarrow import parquet  # noqa: PLC0415

    table = parquet.read_table(path)
    k = int(rng.integers(table.num_columns))
    name = table.column_names[k]
    choices: tuple[Callable[[], pa.Table], ...] = (
        lambda: table.remove_column(k),
        lambda: table.slice(0, max(0, table.num_rows - 1)),
        lambda: table.set_column(k, name, pa.nulls(table.num_rows)),
        lambda: table.set_column(k, name, pa.array(["x"] * table.num_rows)),
        lambda: table.set_column(k, name, pa.array(range(table.num_rows))),
        lambda: table.set_column(k, name, pa.array([[1.0] * i for i in range(table.num_rows)])),
        lambda: table.set_column(k, name, pa.array([float("nan")] * table.num_rows)),
        lambda: pa.concat_tables([table, table]),
    )
    parquet.write_table(choices[rng.integers(len(choices))](), path)


def _changed(values: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """The same array as something else."""
    choices: tuple[Callable[[], Any], ...] = (
        lambda: values.reshape(-1),
        lambda: values[:-1],
        lambda: values[:0],
        lambda: values[..., None],
        lambda: np.concatenate([values, values]),
        lambda: values.T,
        lambda: values.astype("S3"),
        lambda: np.full(values.shape, np.nan),
        lambda: np.full(values.shape, 1e300),
        lambda: np.full(values.shape, 2**62),
        lambda: np.full(values.shape, -1),
    )
    return np.asarray(choices[rng.integers(len(choices))]())


def _damage_folder(files: list[Path], rng: Rng) -> None:
    """A file is missing, empty, a folder, a link, or another one."""
    one, other = (files[k] for k in rng.integers(len(files), size=2))
    content = other.read_bytes()
    one.unlink()
    kind = rng.integers(5)
    if kind == 1:
        one.touch()
    elif kind == 2:
        one.mkdir()
    elif kind == 3:
        one.symlink_to("/etc/hostname")
    elif kind == 4:
        one.write_bytes(content)


def damaged(content: bytes, rng: Rng) -> bytes:
    """Other bytes."""
    inside = _inside(content)
    if inside is not None and rng.random() < 0.7:
        return inside(rng)
    for _ in range(1 + rng.integers(4)):
        content = _edited(content, rng)
    return content


def _inside(content: bytes) -> Callable[[Rng], bytes] | None:
    """How to damage what the bytes hold, if that is known."""
    if content[:2] == b"PK":
        return lambda rng: _zip(content, rng)
    if content[:1] in (b"{", b"["):
        return lambda rng: _json(content, rng)
    if content[8:9] == b"{":  # safetensors: the length of a header, the header, numbers
        return lambda rng: _safetensors(content, rng)
    return None


def _json(content: bytes, rng: Rng) -> bytes:
    """A field of a document, or of one of several, a line each."""
    try:
        documents = [json.loads(content)]
    except ValueError:
        documents = [json.loads(line) for line in content.splitlines()]
    k = int(rng.integers(len(documents)))
    documents[k] = _field(documents[k], rng)
    return b"\n".join(json.dumps(document).encode() for document in documents)


def _edited(content: bytes, rng: Rng) -> bytes:
    changed = bytearray(content or b"\x00")
    # headers are small and at the ends
    at = int(rng.integers(len(changed)))
    if rng.random() < 0.3:
        near = int(rng.integers(min(512, len(changed))))
        at = near if rng.random() < 0.5 else len(changed) - 1 - near
    size, kind = int(rng.integers(1, 64)), rng.integers(7)
    if kind == 0:
        changed[at] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        changed[at] = int(rng.integers(256))
    elif kind == 2:
        token = TOKENS[rng.integers(len(TOKENS))]
        changed[at : at + len(token)] = token
    elif kind == 3:
        changed[at:at] = TOKENS[rng.integers(len(TOKENS))]
    elif kind == 4:
        del changed[at : at + size]
    elif kind == 5:
        changed[at:at] = changed[at : at + size]
    else:
        del changed[at:]
    return bytes(changed)


def _zip(content: bytes, rng: Rng) -> bytes:
    """One member changed, with a checksum that fits."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        chosen = names[rng.integers(len(names))]
        for name in names:
            member = old.read(name)
            if name == chosen:
                if rng.random() < 0.1:
                    continue
                member = _edited(member, rng)
                name = name if rng.random() < 0.9 else "../" + name  # noqa: PLW2901
            new.writestr(name, member)
    return out.getvalue()


def _safetensors(content: bytes, rng: Rng) -> bytes:
    size = int.from_bytes(content[:8], "little")
    header = json.dumps(_field(json.loads(content[8 : 8 + size]), rng)).encode()
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


def _field(tree: Any, rng: Rng) -> Any:  # noqa: ANN401 (JSON)
    """One field gone or other, also inside text that is JSON again."""
    if isinstance(tree, dict | list) and tree and rng.random() < 0.8:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        key = keys[rng.integers(len(keys))]
        changed = tree.copy()
        if rng.random() < 0.15:
            del changed[key]
        else:
            changed[key] = _field(tree[key], rng)
        return changed
    if isinstance(tree, str) and tree[:1] in ("{", "["):
        return json.dumps(_field(json.loads(tree), rng))
    return VALUES[rng.integers(len(VALUES))]


def copy(seed: Path, folder: Path) -> Path:
    """A copy to damage."""
    path = folder / seed.name
    if seed.is_dir():
        shutil.copytree(seed, path)
    else:
        shutil.copyfile(seed, path)
    return path
