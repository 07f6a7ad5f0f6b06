"""Damaged files of every format either read or are refused: no other error, no hang, no crash."""

import json
import shutil
import subprocess
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory
from threading import Thread
from types import SimpleNamespace

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import d4rl_file, main_file, noted_json, place, rich, robomimic_file, vild_file
from elute.demos.files import open_demos, save
from elute.demos.formats import FORMATS
from elute.errors import EluteError
from elute.types import chunks

OTHERS = {"vild": vild_file, "d4rl": d4rl_file, "robomimic": robomimic_file}
"""Formats with files as another tool writes them, besides those that elute writes."""
FILES = [*FORMATS, *(f"{name} of another tool" for name in OTHERS), "compressed npz"]


@pytest.fixture(scope="module", params=FILES)
def original(request, tmp_path_factory):
    """A valid file."""
    folder = tmp_path_factory.mktemp("original")
    name = request.param.split()[0]
    if request.param == "compressed npz":
        path = folder / "a.npz"
        demos = rich()
        np.savez_compressed(path, observations=demos.observations, actions=demos.actions)
    elif request.param in FORMATS:
        path = place(folder, name)
        save(rich(lengths=(3, 2, 4)), path, format=name)
    else:
        path = OTHERS[name](folder / "a.h5")
    return path


@contextmanager
def copied(original):
    """A copy to damage: the path to read, the file that holds the arrays, and a free folder."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "in" / original.name
        path.parent.mkdir()
        if original.is_dir():
            shutil.copytree(original, path)
            yield path, main_file(path), folder
        else:
            shutil.copyfile(original, path)
            yield path, path, folder


WORKER = """
import sys, warnings
from elute.demos.files import open_demos
from elute.errors import EluteError
warnings.simplefilter("error")
for line in sys.stdin:
    try:
        source = open_demos(line.rstrip())
        source.rows(0, source.episodes.n_rows)
        print("read", flush=True)
    except EluteError as error:
        print("refused", flush=True)
    except Exception as error:
        print(repr(error), flush=True)
"""


BARE = """
import sys, h5py
def visit(name, item):
    dict(item.attrs)
    if isinstance(item, h5py.Dataset):
        item[()]
with h5py.File(sys.argv[1]) as file:
    visit("", file)
    file.visititems(visit)
"""


def started_reader():
    """Reads paths in another process, since libhdf5 may hang or crash on damaged bytes."""
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    answers = Queue()

    def listen():
        for line in process.stdout:
            answers.put(line.strip())
        answers.put("crashed")

    thread = Thread(target=listen)
    thread.start()
    return SimpleNamespace(process=process, answers=answers, thread=thread)


def answer_of(reader, path):
    reader.process.stdin.write(f"{path}\n")
    reader.process.stdin.flush()
    try:
        return reader.answers.get(timeout=20)
    except Empty:
        return "hangs"


def stop(reader):
    reader.process.kill()
    reader.process.wait()
    reader.thread.join()
    reader.process.stdin.close()
    reader.process.stdout.close()


def is_fault_of_hdf5(path):
    """Whether h5py alone hangs or crashes as well: about one in some thousand damaged files."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", BARE, path], timeout=20, check=False, capture_output=True
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode < 0


@pytest.fixture(scope="module")
def readers():
    """The process that reads, as a list so that it can be replaced."""
    started = [started_reader()]
    yield started
    stop(started[0])


PLACES = st.one_of(st.integers(0, 2**20), st.integers(0, 2000))
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), PLACES, st.binary(min_size=1, max_size=8)),
        st.tuples(st.just("flip"), PLACES, st.integers(0, 7)),
        st.tuples(st.just("insert"), PLACES, st.binary(min_size=1, max_size=16)),
        st.tuples(st.just("delete"), PLACES, st.integers(1, 64)),
        st.tuples(st.just("cut"), PLACES, st.none()),
    ),
    min_size=1,
    max_size=4,
)


def edited(content, edits):
    changed = bytearray(content)
    for kind, place_, value in edits:
        at = place_ % (len(changed) or 1)
        if kind == "set":
            changed[at : at + len(value)] = value
        elif kind == "flip" and changed:
            changed[at] ^= 1 << value
        elif kind == "insert":
            changed[at:at] = value
        elif kind == "delete":
            del changed[at : at + value]
        elif kind == "cut":
            del changed[at:]
    return bytes(changed)


@settings(max_examples=60)
@given(EDITS)
def test_damaged_bytes(original, readers, edits):
    with copied(original) as (path, part, _):
        part.write_bytes(edited(part.read_bytes(), edits))
        answer = answer_of(readers[0], path)
        if answer in ("crashed", "hangs"):
            stop(readers[0])
            readers[0] = started_reader()
        assert answer in ("read", "refused") or is_fault_of_hdf5(part), answer


def survives(path, folder, target):
    """Reads everything and writes it again; only `EluteError` may stop it."""
    try:
        source = open_demos(path)
        for _ in chunks(source, 5):
            pass
        source.rows(0, source.episodes.n_rows)
    except EluteError:
        return
    save(source, folder / "out.npz")
    out = place(folder, target)
    try:
        save(source, out, format=target)
    except EluteError:
        return
    assert open_demos(out).episodes.n_rows == source.episodes.n_rows


CHANGES = {
    "flat": lambda v: v.reshape(-1),
    "shorter": lambda v: v[:-1],
    "no rows": lambda v: v[:0],
    "deeper": lambda v: v[..., None],
    "twice": lambda v: np.concatenate([v, v]),
    "one row": lambda v: v.reshape(1, *v.shape),
    "scalar": lambda v: v.sum(),
    "turned": lambda v: v.T,
    **{
        kind: lambda v, kind=kind: v.astype(kind) for kind in ("int8", "f2", "?", "c8", ">f4", "S3")
    },
    **{str(x): lambda v, x=x: np.full(v.shape, x) for x in (np.nan, 1e300, 2**62, -1)},
}
"""The same array as something else."""


def changed(values, data):
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        return CHANGES[data.draw(st.sampled_from(sorted(CHANGES)))](values)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(list(FORMATS)))
def test_damaged_arrays(original, data, target):
    with copied(original) as (path, part, folder):
        if part.suffix == ".npz":
            damage_npz(part, data)
        elif part.suffix == ".arrow":
            damage_arrow(part, data)
        elif part.suffix == ".parquet":
            damage_parquet(path, data)
        else:
            damage_hdf5(part, data)
        survives(path, folder, target)


def damage_npz(path, data):
    with np.load(path) as file:
        arrays = dict(file)
    name = data.draw(st.sampled_from(sorted(arrays)))
    values = arrays.pop(name)
    if data.draw(st.booleans()):
        if values.dtype.kind not in "fiub":
            values = np.zeros(3)
        arrays[name] = changed(values, data)
    np.savez(path, **arrays)


def damage_arrow(path, data):
    table = pa.ipc.open_stream(path.read_bytes()).read_all()
    name = data.draw(st.sampled_from(table.schema.names))
    at, column = table.schema.names.index(name), table[name].combine_chunks()
    table = table.remove_column(at)
    kind = data.draw(st.sampled_from(["nothing", "numbers", "text", "holes", "flat", "turned"]))
    n = len(column)
    others = {
        "numbers": pa.array(np.arange(n)),
        "text": pa.array(["py/object: os.system"] * n),
        "holes": pa.array([None, *column.to_pylist()[1:]], column.type),
        "flat": pa.array([[0.5]] * n),
        "turned": column[::-1],
    }
    if kind != "nothing":
        table = table.add_column(at, name, others[kind])
    with pa.ipc.new_stream(str(path), table.schema) as stream:
        stream.write_table(table)


def damage_parquet(path, data):
    """A column of one of the tables as something else, or gone."""
    files = sorted(path.rglob("*.parquet"))
    file = data.draw(st.sampled_from(files))
    table = pq.read_table(file)
    at = data.draw(st.integers(0, table.num_columns - 1))
    name, column = table.column_names[at], table.column(at)
    table = table.remove_column(at)
    kind = data.draw(st.sampled_from(["nothing", "nulls", "text", "list", "bigger", "negative"]))
    if kind != "nothing":
        n = len(column)
        made = {
            "nulls": pa.nulls(n, column.type),
            "text": pa.array(["text"] * n),
            "list": pa.array([[1.0] * (i % 3) for i in range(n)]),
            "bigger": pa.array([2**62] * n),
            "negative": pa.array([-1] * n),
        }[kind]
        table = table.add_column(at, name, made)
    pq.write_table(table, file)


def damage_hdf5(path, data):
    with h5py.File(path, "r+") as file:
        names = []
        file.visit(names.append)
        name = data.draw(st.sampled_from(sorted(names)))
        item = file[name]
        if len(item.attrs) and data.draw(st.booleans()):
            attribute = data.draw(st.sampled_from(sorted(item.attrs)))
            del item.attrs[attribute]
            value = data.draw(
                st.sampled_from([None, 3, "text", b"\xff", np.ones((2, 2)), h5py.Empty("f")])
            )
            if value is not None:
                item.attrs[attribute] = value
            return
        is_array = isinstance(item, h5py.Dataset) and item.dtype.kind in "fiub" and item.ndim
        values = item[()] if is_array else np.arange(3.0)
        del file[name]
        kind = data.draw(st.sampled_from(["nothing", "array", "array", "group", "link", "empty"]))
        if kind == "array":
            file[name] = changed(values, data)
        elif kind == "group":
            file.create_group(name)["inside"] = values
        elif kind == "link":
            file[name] = h5py.SoftLink("/nowhere")
        elif kind == "empty":
            file[name] = h5py.Empty("f8")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(list(FORMATS)))
def test_a_damaged_note(original, data, target):
    with copied(original) as (path, part, folder):
        if metadata := noted_json(path):
            beside = sorted(metadata.parent.glob("*.json"))
            metadata = data.draw(st.sampled_from(beside))
            metadata.write_text(json.dumps(damaged(json.loads(metadata.read_text()), data)))
        elif part.suffix == ".npz":
            with np.load(part) as file:
                arrays = dict(file)
            note = json.loads(str(arrays.get("elute", '{"version": 1}')))
            arrays["elute"] = np.array(json.dumps(damaged(note, data)))
            np.savez(part, **arrays)
        else:
            with h5py.File(part, "r+") as file:
                note = json.loads(file["elute"][()]) if "elute" in file else {"version": 1}
                file.pop("elute", None)
                file["elute"] = json.dumps(damaged(note, data))
        survives(path, folder, target)


def damaged(tree, data):
    """A JSON value with one field deleted or replaced, also inside text that is JSON again."""
    if isinstance(tree, dict | list) and tree and data.draw(st.integers(0, 4)):
        keys = sorted(tree) if isinstance(tree, dict) else range(len(tree))
        key = data.draw(st.sampled_from(list(keys)))
        changed = tree.copy()
        if data.draw(st.integers(0, 5)) == 0:
            del changed[key]
        else:
            changed[key] = damaged(tree[key], data)
        return changed
    if isinstance(tree, str) and tree[:1] in ("{", "["):
        return json.dumps(damaged(json.loads(tree), data))
    return data.draw(JSON)
