"""Whatever is wrong with a file, one clear error names it and nothing is left behind."""

import json
import os
import subprocess
import sys
import textwrap

import h5py
import numpy as np
import pytest

from builders import d4rl_file, main_file, noted_json, place, plain, rich, robomimic_file, vild_file
from elute.demos.files import load, open_demos, save
from elute.demos.formats import FORMATS
from elute.errors import EluteError


def refused(path, *says):
    """The error that reading gives, which must name the file."""
    with pytest.raises(EluteError) as caught:
        load(path)
    text = str(caught.value)
    for part in (path.name, *says):
        assert part in text
    return caught.value


@pytest.fixture(params=FORMATS)
def path(request, tmp_path):
    """A valid file of each format."""
    target = place(tmp_path, request.param)
    save(rich(), target, format=request.param)
    return target


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file(path, share):
    main = main_file(path)
    whole = main.read_bytes()
    main.write_bytes(whole[: int(len(whole) * share)])
    refused(path)


def test_random_bytes(path):
    rng = np.random.default_rng(0)
    main_file(path).write_bytes(rng.bytes(5000))
    refused(path)


def test_the_start_of_an_hdf5_file_and_then_nothing(tmp_path):
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    refused(tmp_path / "a.h5", "empty, truncated or damaged")


def test_an_empty_file(tmp_path):
    (tmp_path / "a.h5").touch()
    refused(tmp_path / "a.h5", "an empty file")


def test_a_text_file(tmp_path):
    (tmp_path / "a.h5").write_text("state,action\n1,2\n")
    error = refused(tmp_path / "a.h5", "neither HDF5 nor npz")
    assert all(name in error.hint for name in FORMATS)


def test_an_hdf5_file_of_another_kind(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["weights"] = np.ones(3)
    refused(tmp_path / "a.h5", "unknown layout", "weights")


def test_a_folder(tmp_path):
    refused(tmp_path, "no Minari dataset", "no LeRobot data set")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "neither a file nor a folder")


def test_nothing_there_and_a_near_name(tmp_path):
    save(plain(), tmp_path / "expert.npz")
    error = refused(tmp_path / "expret.npz", "no such file")
    assert "expert.npz" in error.hint
    refused(tmp_path / "missing" / "a.npz", "does not exist")


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "~nobody-here/a.h5", ""])
def test_an_impossible_path(name):
    with pytest.raises(EluteError):
        load(name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_an_unreadable_path(tmp_path, what):
    (tmp_path / "in").mkdir()
    save(plain(), tmp_path / "in" / "a.npz")
    locked = tmp_path / "in" if what == "folder" else tmp_path / "in" / "a.npz"
    locked.chmod(0)
    try:
        refused(tmp_path / "in" / "a.npz")
    finally:
        locked.chmod(0o700)


def test_a_link_to_itself(tmp_path):
    (tmp_path / "a.h5").symlink_to(tmp_path / "a.h5")
    refused(tmp_path / "a.h5")


MAKE = {"vild": vild_file, "d4rl": d4rl_file, "robomimic": robomimic_file}
NEEDED = {
    "vild": ["expert_states", "expert_actions", "expert_masks"],
    "d4rl": ["observations", "actions", "terminals"],
    "robomimic": [
        "data/demo_1/actions",
        "data/demo_1/obs",
        "data/demo_0/obs",
        "data/demo_1/obs/object",
    ],
    "minari": [f"episode_1/{name}" for name in ("observations", "actions", "terminations")],
}
CASES = [(name, key) for name, keys in NEEDED.items() for key in keys]


@pytest.fixture
def made(tmp_path):
    """Makes a file as the other tool would; the HDF5 file inside it."""

    def make(name):
        if name in MAKE:
            return MAKE[name](tmp_path / "a.h5")
        save(rich(), tmp_path / "a-v0", format=name)
        return tmp_path / "a-v0"

    return make


@pytest.mark.parametrize(("name", "key"), CASES)
def test_a_missing_array(made, name, key):
    path = made(name)
    with h5py.File(main_file(path), "r+") as file:
        del file[key]
    refused(path, key.split("/")[-1].split("_")[-1])


RAGGED = [
    ("vild", "expert_states"), ("vild", "expert_actions"), ("vild", "expert_rewards"),
    ("d4rl", "observations"), ("d4rl", "actions"), ("d4rl", "rewards"),
    ("d4rl", "next_observations"), ("robomimic", "data/demo_1/actions"),
    ("robomimic", "data/demo_1/obs/object"), ("robomimic", "data/demo_1/next_obs/object"),
    ("robomimic", "data/demo_1/rewards"), ("minari", "episode_1/observations/object"),
    ("minari", "episode_1/actions/arm"), ("minari", "episode_1/rewards"),
    ("minari", "episode_1/truncations"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "key"), RAGGED)
def test_an_array_of_another_length(made, name, key):
    path = made(name)
    with h5py.File(main_file(path), "r+") as file:
        values = file[key][:-1]
        del file[key]
        file[key] = values
    refused(path, "expected")


def test_arrays_of_different_lengths_in_npz(tmp_path):
    np.savez(tmp_path / "a.npz", observations=np.ones((7, 2)), actions=np.ones((6, 2)))
    refused(tmp_path / "a.npz", "observations", "(7, 2)")


@pytest.mark.parametrize(("name", "key"), CASES)
@pytest.mark.parametrize(
    "values", [np.array([b"text"] * 12), np.float64(1.0), np.zeros((12, 2, 2))]
)
def test_an_array_of_another_kind(made, name, key, values):
    path = made(name)
    with h5py.File(main_file(path), "r+") as file:
        del file[key]
        file[key] = values
    refused(path)


@pytest.mark.parametrize(("name", "key"), CASES)
def test_a_group_in_place_of_an_array(made, name, key):
    path = made(name)
    with h5py.File(main_file(path), "r+") as file:
        del file[key]
        file.create_group(key)
    refused(path)


@pytest.mark.parametrize("name", ["vild", "d4rl"])
def test_no_rows_in_a_flat_file(tmp_path, name):
    path = MAKE[name](tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        for key in [k for k in file if isinstance(file[k], h5py.Dataset) and file[k].shape]:
            empty = file[key][:0]
            del file[key]
            file[key] = empty
    refused(path, "no rows")


def test_no_rows_in_other_files(tmp_path):
    np.savez(tmp_path / "a.npz", observations=np.ones((0, 2)), actions=np.ones((0, 2)))
    refused(tmp_path / "a.npz", "no rows")
    path = robomimic_file(tmp_path / "a.hdf5")
    with h5py.File(path, "r+") as file:
        for key in ("demo_0", "demo_1", "demo_2"):
            del file[f"data/{key}"]
    refused(path, "no demonstrations")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '{"data_format": 5}', "\x00\xff"])
def test_damaged_metadata_of_a_dataset(tmp_path, text):
    save(plain(), tmp_path / "a-v0", format="minari")
    (tmp_path / "a-v0" / "data" / "metadata.json").write_text(text, encoding="latin-1")
    refused(tmp_path / "a-v0")


@pytest.mark.parametrize(
    "space", ["", "{", "3", "[]", "{}", '{"type": "Box"}', '{"type": "Box", "shape": 3}',
              '{"type": "Dict", "subspaces": {"a": 3}}', '{"type": "Dict", "subspaces": {"a": {}}}']
)  # fmt: skip
@pytest.mark.parametrize("which", ["observation_space", "action_space"])
def test_a_damaged_space_of_a_dataset(tmp_path, which, space):
    save(plain(), tmp_path / "a-v0", format="minari")
    path = tmp_path / "a-v0" / "data" / "metadata.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {which: space}))
    refused(tmp_path / "a-v0")


def test_a_dataset_without_its_main_file(tmp_path):
    save(plain(), tmp_path / "a-v0", format="minari")
    (tmp_path / "a-v0" / "data" / "main_data.hdf5").unlink()
    refused(tmp_path / "a-v0")


DAMAGED = [
    "", "no json", "[]", "{}", '{"version": "x"}', '{"version": 1, "ends": "tx"}',
    '{"version": 1, "steps": [3]}', '{"version": 1, "steps": [{}]}',
    '{"version": 1, "observation_columns": [{"key": "a", "roles": ["odd"]}]}',
    '{"version": 1, "attributes": {"a": 1}}', '{"version": 1, "inferred": "012"}',
]  # fmt: skip


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_note(path, text):
    in_json = noted_json(path) is not None
    write_note(path, text)
    if in_json and text in ("", "no json"):
        return  # as JSON inside JSON it cannot be written
    if in_json and json.loads(text) in ([], {}):
        load(path)  # nothing is noted
        return
    error = refused(path, "note is damaged")
    assert "delete" in error.hint


@pytest.mark.parametrize(
    "text",
    [
        '{"version": 1, "ends": "t"}',
        '{"version": 1, "ends": "ttttt", "inferred": "1", "final_repeated": "1111111111"}',
        '{"version": 1, "ends": "ttttt", "attributes": [{}, {}]}',
        '{"version": 1, "observation_columns": [{"key": "a", "roles": ["discrete"]}]}',
    ],
)
def test_a_note_that_does_not_fit_is_used_as_far_as_it_fits(path, text):
    before = load(path)
    write_note(path, text)
    after = load(path)
    assert after.actions.tobytes() == before.actions.tobytes()
    assert len(after.episodes) == len(before.episodes)


def write_note(path, text):
    if file := noted_json(path):
        key = "note" if file.name == "elute.json" else "elute"  # LeRobot's has a file of its own
        try:
            note = json.loads(text)
        except ValueError:
            note = text
        file.write_text(json.dumps(json.loads(file.read_text()) | {key: note}))
    elif path.suffix == ".npz":
        with np.load(path) as arrays:
            changed = dict(arrays) | {"elute": np.array(text)}
        np.savez(path, **changed)
    else:
        with h5py.File(main_file(path), "r+") as file:
            del file["elute"]
            file["elute"] = text


@pytest.mark.parametrize(
    "selection", ["better", "top=", "top=0", "top=6", "top=x", "top=²", "episodes=", "episodes=5",
                  "episodes=a", "episodes=3-1", "episodes=0-99999999999999", "episodes=²"]
)  # fmt: skip
def test_a_selection_that_fits_nothing(path, selection):
    with pytest.raises(EluteError, match=selection.split("=")[0]):
        open_demos(f"{path}#{selection}")


def test_top_needs_rewards(tmp_path):
    save(plain(), tmp_path / "a.npz")
    with pytest.raises(EluteError, match=r"a\.npz: no rewards"):
        load(f"{tmp_path / 'a.npz'}#top=1")


def test_top_takes_the_best_in_their_order(path):
    best = sorted(np.argsort(-load(path).returns())[:2].tolist())
    assert load(f"{path}#top=2").provenance.steps[-1]["episodes"] == best


def test_the_format_of_an_output_must_be_clear(tmp_path):
    for name in ("a.txt", "a.h5"):
        with pytest.raises(EluteError, match="which format"):
            save(plain(), tmp_path / name)
    with pytest.raises(EluteError, match="'odd' is no format"):
        save(plain(), tmp_path / "a.h5", format="odd")
    assert list(tmp_path.iterdir()) == []


FULL = """
import resource, sys
from dataclasses import replace
from elute.demos.corrupt import corrupt
from elute.demos.files import load, open_demos, save
from elute.errors import EluteError
if {copy!r}:
    source = open_demos({path!r})
else:
    source = replace(load({path!r}), origin=None)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
def spoil(start, rows):
    return corrupt(rows.with_extra("more", rows.observations), "gaussian", 1, first_row=start)
try:
    save(source, {out!r}, format={name!r}, transform=spoil)
except EluteError as error:
    print(error)
    sys.exit(2)
"""


@pytest.mark.parametrize(
    ("size", "copy"), [("tiny", True), ("grown", True), ("tiny", False), ("half", False)]
)
@pytest.mark.parametrize("name", FORMATS)
def test_a_full_disk(tmp_path, name, size, copy):
    """A limit on the size of files fails as a full disk does."""
    if (name, size) == ("imitation", "grown"):
        pytest.skip("what is added stands in a file of its own")
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    path, out = place(tmp_path / "in", name), place(tmp_path / "out", name)
    save(rich(lengths=(3000, 3000)), path, format=name)
    whole = main_file(path).stat().st_size
    limit = {"tiny": 1000, "half": whole // 2, "grown": whole + 20_000}[size]
    code = textwrap.dedent(FULL).format(
        path=str(path), out=str(out), name=name, limit=limit, copy=copy
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert out.name in done.stdout
    assert "cannot be written" in done.stdout
    assert done.stderr == ""
    assert list((tmp_path / "out").iterdir()) == []
