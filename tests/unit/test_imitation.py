"""Trajectories as imitation saves them: infos byte for byte, and nothing in them is ever run."""

import json
import pickle

import numpy as np
import pyarrow as pa
import pytest

from builders import assert_same_array, imitation_folder, plain, rich
from elute.demos.corrupt import corrupt
from elute.demos.files import load, open_demos, save
from elute.errors import EluteError

DATA = "data-00000-of-00001.arrow"


def table(folder):
    return pa.ipc.open_stream((folder / DATA).read_bytes()).read_all()


def rewrite(folder, found, **options):
    with pa.ipc.new_stream(str(folder / DATA), found.schema, **options) as stream:
        stream.write_table(found)


def replaced(folder, name, column):
    found = table(folder)
    at = found.schema.names.index(name)
    rewrite(folder, found.set_column(at, name, column))


@pytest.fixture
def path(tmp_path):
    return imitation_folder(tmp_path / "in")


def test_rows_are_those_of_the_arrow_file(path):
    demos, stored = load(path), table(path).to_pylist()
    assert demos.observations.dtype == demos.actions.dtype == np.float32
    for name, key, rows in (("observations", "obs", slice(0, -1)), ("actions", "acts", slice(None)),
                            ("next_observations", "obs", slice(1, None)),
                            ("rewards", "rews", slice(None))):  # fmt: skip
        wanted = np.concatenate([np.array(t[key], dtype="float32")[rows] for t in stored])
        assert_same_array(getattr(demos, name), wanted)
    assert demos.episodes.terminated.tolist() == [True, False, True]
    assert demos.episodes.truncated.tolist() == [False, True, False]
    assert demos.episodes.inferred.all()


def test_infos_are_kept_byte_for_byte(path, tmp_path):
    before = table(path)["infos"]
    save(open_demos(path), tmp_path / "out", transform=lambda at, r: corrupt(r, "gaussian", 1))
    assert table(tmp_path / "out")["infos"].equals(before)
    assert before.type == table(tmp_path / "out")["infos"].type
    save(load(path)[1:6], tmp_path / "cut")
    cut = [infos.as_py() for infos in table(tmp_path / "cut")["infos"]]
    assert cut == [before[0].as_py()[1:], before[1].as_py()[:2]]


def test_a_copy_keeps_what_else_is_in_the_folder(path, tmp_path):
    (path / "README.md").write_text("mine")
    info = json.loads((path / "dataset_info.json").read_text())
    (path / "dataset_info.json").write_text(json.dumps(info | {"license": "MIT"}))
    extra = pa.array(["a", "b", "c"])
    rewrite(path, table(path).append_column("operator", extra))
    assert set(open_demos(path).origin.carried) == {"infos", "operator"}
    assert save(open_demos(path), tmp_path / "out") == []
    assert table(tmp_path / "out")["operator"].to_pylist() == ["a", "b", "c"]
    assert (tmp_path / "out" / "README.md").read_text() == "mine"
    assert json.loads((tmp_path / "out" / "dataset_info.json").read_text())["license"] == "MIT"


def test_infos_that_are_lost_are_said(path, tmp_path):
    losses = save(open_demos(path), tmp_path / "a.npz")
    assert losses == ["infos: not an array elute holds; only imitation to imitation keeps it"]
    with pytest.raises(EluteError, match="infos"):
        save(open_demos(path), tmp_path / "b.npz", strict=True)


def test_empty_infos_are_no_loss(tmp_path):
    save(plain(), tmp_path / "a", format="imitation")
    assert table(tmp_path / "a")["infos"].to_pylist() == [["{}"] * 4, ["{}"] * 3]
    assert save(open_demos(tmp_path / "a"), tmp_path / "b.npz") == []


def test_the_columns_are_imitations_alone(tmp_path):
    save(rich(), tmp_path / "a", format="imitation")
    assert table(tmp_path / "a").schema.names == ["obs", "acts", "infos", "terminal", "rews"]
    assert [len(o) for o in table(tmp_path / "a")["obs"].to_pylist()] == [6, 4, 8, 2, 5]


def test_an_unknown_last_observation_is_repeated_and_said(tmp_path):
    losses = save(plain(), tmp_path / "a", format="imitation")
    assert losses == ["the observation after the last action is unknown: repeated, so marked"]
    first = table(tmp_path / "a")["obs"][0].as_py()
    assert first[-1] == first[-2]
    assert load(tmp_path / "a").next_observations is None


@pytest.mark.parametrize("kind", ["large", "fixed", "flat"])
def test_other_lists_of_the_same_numbers(path, tmp_path, kind):
    stored = table(path)["acts"].to_pylist()
    types = {
        "large": pa.large_list(pa.large_list(pa.float32())),
        "fixed": pa.list_(pa.list_(pa.float32(), 2)),
        "flat": pa.list_(pa.int64()),
    }
    values = [[i for i, _ in enumerate(t)] for t in stored] if kind == "flat" else stored
    replaced(path, "acts", pa.array(values, types[kind]))
    demos = load(path)
    wanted = np.concatenate([np.array(t) for t in values]).reshape(len(demos), -1)
    assert_same_array(demos.actions, wanted.astype(demos.actions.dtype))
    assert demos.action_columns[0].role == ("discrete" if kind == "flat" else "continuous")
    save(open_demos(path), tmp_path / "out")
    assert table(tmp_path / "out")["acts"].equals(table(path)["acts"])


def test_several_files_and_batches_are_one(path, tmp_path):
    whole = load(path)
    found = table(path)
    names = [f"data-0000{i}-of-00003.arrow" for i in range(3)]
    for i, name in enumerate(names):
        with pa.ipc.new_stream(str(path / name), found.schema) as stream:
            stream.write_table(found.slice(i, 1))
    (path / DATA).unlink()
    state = json.loads((path / "state.json").read_text())
    state["_data_files"] = [{"filename": name} for name in names]
    (path / "state.json").write_text(json.dumps(state))
    assert_same_array(load(path).observations, whole.observations)
    save(open_demos(path), tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        DATA,
        "dataset_info.json",
        "state.json",
    ]
    assert table(tmp_path / "out")["infos"].to_pylist() == found["infos"].to_pylist()


def test_the_fingerprint_is_of_the_content(path, tmp_path):
    def of(folder):
        return json.loads((folder / "state.json").read_text())["_fingerprint"]

    save(open_demos(path), tmp_path / "one")
    save(open_demos(path), tmp_path / "two", transform=lambda at, r: corrupt(r, "gaussian", 1))
    assert of(tmp_path / "one") != of(tmp_path / "two")


def refused(path, *says):
    with pytest.raises(EluteError) as caught:
        load(path)
    for part in says:
        assert part in str(caught.value)


class Evil:
    """Whoever decodes it leaves a trace."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return (open, (str(self.trace), "w"))


def test_jsonpickle_is_never_run(path, tmp_path):
    trace = tmp_path / "trace"
    text = json.dumps(
        {"py/reduce": [{"py/function": "builtins.open"}, {"py/tuple": [str(trace), "w"]}]}
    )
    infos = [[text] * len(t) for t in table(path)["infos"].to_pylist()]
    replaced(path, "infos", pa.array(infos))
    save(open_demos(path), tmp_path / "out")
    assert table(tmp_path / "out")["infos"].to_pylist() == infos
    assert not trace.exists()


def test_pickles_are_never_run(path, tmp_path):
    bomb = pickle.dumps(Evil(tmp_path / "trace"))
    replaced(path, "obs", pa.array([[bomb], [bomb], [bomb]]))
    refused(path, "expected numbers")
    (path / DATA).write_bytes(bomb)
    refused(path, "Arrow")
    (tmp_path / "old.pkl").write_bytes(bomb)
    refused(tmp_path / "old.pkl", "neither HDF5 nor npz")
    legacy = {"obs": np.ones((3, 2)), "acts": np.ones((2, 1)), "indices": np.array([], dtype=int)}
    infos = np.array([Evil(tmp_path / "trace")] * 2, dtype=object)
    np.savez(tmp_path / "old.npz", **legacy, infos=infos, terminal=np.array([True]))
    refused(tmp_path / "old.npz", "old.npz")
    assert not (tmp_path / "trace").exists()


def test_a_pickled_type_is_refused(path):
    field = pa.field("obs", pa.list_(pa.list_(pa.float32())), metadata={
        "ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": "x",
    })  # fmt: skip
    found = table(path)
    rewrite(path, found.cast(found.schema.set(0, field)))
    refused(path, "pickled Python types")


@pytest.mark.parametrize("kind", ["lz4", "zstd"])
def test_compressed_buffers_are_refused(path, kind):
    rewrite(path, table(path), options=pa.ipc.IpcWriteOptions(compression=kind))
    refused(path, "compressed")


def test_a_dictionary_is_refused(path):
    found = table(path)
    rewrite(path, found.append_column("who", pa.array(["a", "b", "c"]).dictionary_encode()))
    refused(path, "record batches")


FILES = ["../in/" + DATA, "/etc/passwd", "..", "", "sub/" + DATA, "a\\b", None, 3, ["x"]]


@pytest.mark.parametrize("name", FILES)
def test_a_data_file_outside_the_folder(path, name):
    state = json.loads((path / "state.json").read_text())
    (path / "state.json").write_text(json.dumps(state | {"_data_files": [{"filename": name}]}))
    refused(path, "expected a name without folders")


@pytest.mark.parametrize("files", [None, [], "x", [DATA], {"a": 1}])
def test_a_state_that_names_nothing(path, files):
    (path / "state.json").write_text(json.dumps({"_data_files": files}))
    refused(path, "_data_files")


@pytest.mark.parametrize("name", [DATA, "elute.arrow"])
def test_a_link_out_of_the_folder(path, tmp_path, name):
    (tmp_path / "far.arrow").write_bytes((path / DATA).read_bytes())
    (path / name).unlink(missing_ok=True)
    (path / name).symlink_to(tmp_path / "far.arrow")
    refused(path, "leads out of the dataset")


@pytest.mark.parametrize("name", ["state.json", "dataset_info.json", DATA])
def test_a_missing_file(path, name):
    (path / name).unlink()
    refused(path, name)


@pytest.mark.parametrize("name", ["state.json", "dataset_info.json"])
@pytest.mark.parametrize("text", ["", "{", "[]", "3", "\udcff", "[" * 100_000])
def test_damaged_json(path, name, text):
    (path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    refused(path, name)


def test_a_file_that_ends_between_two_messages(path):
    content = (path / DATA).read_bytes()
    (path / DATA).write_bytes(content[:-8])  # only the mark of the end is lost
    refused(path, "cut off")


@pytest.mark.parametrize("value", [0x01, 0xBB])
def test_a_damaged_schema(path, value):
    """Two inputs of the fuzz campaign, which made the library crash."""
    (file,) = path.glob("data-*.arrow")
    content = bytearray(file.read_bytes())
    content[20] = value
    file.write_bytes(content)
    with pytest.raises(EluteError, match="cannot be read as an Arrow stream"):
        open_demos(path)


def test_a_file_that_ends_at_once(path):
    (path / DATA).write_bytes(b"\xff\xff\xff\xff\0\0\0\0")
    refused(path, "it is empty")


LISTS = {
    "images": [[[[0.5]]] * 5, [[[0.5]]] * 4, [[[0.5]]] * 6],
    "ragged": [[[0.5] * (1 + i) for i in range(n)] for n in (5, 4, 6)],
    "empty": [[[]] * n for n in (5, 4, 6)],
    "holes": [[[None, 0.5, 1.0]] * n for n in (5, 4, 6)],
    "no rows": [[], [], []],
    "too few": [[[0.5, 1.0]] * n for n in (4, 3, 5)],
    "dicts": [[{"a": 0.5}] * n for n in (5, 4, 6)],
    "text": [["0.5"] * n for n in (5, 4, 6)],
    "other widths": [[[0.5] * n] * n for n in (5, 4, 6)],
}


@pytest.mark.parametrize("kind", LISTS)
def test_observations_that_are_none(path, kind):
    replaced(path, "obs", pa.array(LISTS[kind]))
    refused(path, "expected")


@pytest.mark.parametrize("name", ["obs", "acts", "terminal"])
def test_a_missing_column(path, name):
    rewrite(path, table(path).drop_columns([name]))
    refused(path, f"no column {name!r}")


def test_rewards_of_another_length(path):
    replaced(path, "rews", pa.array([[1.0], [1.0], [1.0]]))
    refused(path, "rewards")


def test_extra_columns_of_another_length(tmp_path):
    save(rich(), tmp_path / "a", format="imitation")
    save(rich(lengths=(3,)), tmp_path / "b", format="imitation")
    (tmp_path / "a" / "elute.arrow").write_bytes((tmp_path / "b" / "elute.arrow").read_bytes())
    refused(tmp_path / "a", "3 rows of clean_actions for 20 steps")


def test_absurd_lengths(path):
    """Offsets that claim more items than there are."""
    content = bytearray((path / DATA).read_bytes())
    at = content.find(np.array([0, 5, 9, 15], dtype="<i4").tobytes())
    assert at > 0
    content[at + 12 : at + 16] = np.array([2**30], dtype="<i4").tobytes()
    (path / DATA).write_bytes(content)
    refused(path, "Arrow")


def test_without_pyarrow_it_is_said(path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(EluteError, match="pyarrow") as caught:
        open_demos(path)
    assert "pip install" in caught.value.hint
