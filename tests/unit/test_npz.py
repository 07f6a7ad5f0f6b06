"""elute's own npz, and those that people make with numpy."""

import zipfile

import numpy as np
import pytest

from builders import assert_same_array, assert_same_rows, plain, rich
from elute.demos.files import load, open_demos, save
from elute.errors import EluteError


@pytest.mark.parametrize("savez", [np.savez, np.savez_compressed])
def test_two_arrays_are_enough(tmp_path, savez):
    demos = plain((7,))
    savez(tmp_path / "a.npz", observations=demos.observations, actions=demos.actions)
    read = load(tmp_path / "a.npz")
    assert_same_array(read.observations, demos.observations)
    assert_same_array(read.actions, demos.actions)
    assert read.episodes.lengths.tolist() == [7]
    assert not read.episodes.terminated.any()


def test_lengths_and_further_arrays_are_read(tmp_path):
    demos = plain((4, 3))
    arrays = {"rewards": np.arange(7.0), "operator": np.arange(7), "episode_lengths": [4, 3]}
    np.savez(tmp_path / "a.npz", observations=demos.observations, actions=demos.actions, **arrays)
    read = load(tmp_path / "a.npz")
    assert read.returns().tolist() == [6.0, 15.0]
    assert read.extras["operator"].tolist() == list(range(7))


def test_an_array_in_columns_order_is_read(tmp_path):
    demos = plain((7,))
    turned = np.asfortranarray(demos.observations)
    np.savez(tmp_path / "a.npz", observations=turned, actions=demos.actions)
    assert_same_array(load(tmp_path / "a.npz").observations, demos.observations)


def test_a_written_file_is_plain_numpy(tmp_path):
    demos = rich()
    save(demos, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as arrays:
        assert_same_array(arrays["actions"], demos.actions)
        assert_same_array(arrays["extra/clean_actions"], demos.extras["clean_actions"])
        assert arrays["episode_lengths"].tolist() == [5, 3, 7, 1, 4]


def test_of_an_open_file_only_the_rows_asked_for_are_read(tmp_path):
    path = tmp_path / "a.npz"
    save(rich(), path)
    source, loaded = open_demos(path), load(path)
    assert_same_rows(source.rows(3, 11), loaded[3:11])
    assert_same_rows(source.select([3, 1]).rows(0, 3), loaded.select([3, 1])[0:3])
    with zipfile.ZipFile(path) as archive:
        first, second = archive.infolist()[:2]
    with path.open("r+b") as file:
        file.truncate(second.header_offset - 8)  # a number of the last row of the first array
    array = source.arrays[first.filename.removesuffix(".npy")]
    assert_same_array(array.read(path, 0, 19), loaded.observations[:19])
    with pytest.raises(EluteError, match="ends too early"):
        source.rows(19, 20)


def test_text_and_images_are_held(tmp_path):
    demos = rich().with_extra("label", np.array([f"zoë {i}" for i in range(20)]))
    demos = demos.with_extra("image", np.zeros((20, 2, 2, 3), dtype="uint8"))
    assert save(demos, tmp_path / "a.npz") == []
    assert_same_rows(demos, load(tmp_path / "a.npz"))


@pytest.mark.parametrize("where", ["observations", "extra"])
def test_pickled_objects_are_refused_and_never_loaded(tmp_path, where):
    trap = np.array([Trap()] * 7, dtype=object)
    arrays = {"observations": np.zeros((7, 2)), "actions": np.zeros((7, 2))} | {where: trap}
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(EluteError, match=r"a\.npz"):
        load(tmp_path / "a.npz")


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


@pytest.mark.parametrize("lengths", [[4, 4], [7, 0], [-1, 8], [[7]], [7.0], [2**62, 2**62]])
def test_lengths_that_do_not_fit_are_refused(tmp_path, lengths):
    np.savez(
        tmp_path / "a.npz",
        observations=np.zeros((7, 2)),
        actions=np.zeros((7, 2)),
        episode_lengths=np.array(lengths),
    )
    with pytest.raises(EluteError, match=r"a\.npz"):
        load(tmp_path / "a.npz")


def test_a_zip_of_something_else_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(EluteError, match=r"a\.zip"):
        load(tmp_path / "a.zip")


@pytest.mark.parametrize("header", ["{'descr': '<f8', 'shape': (7, (2, }", "{'descr': '''", "1 +"])
def test_a_header_that_is_no_python_is_refused(tmp_path, header):
    """numpy's reader of old headers stumbles over brackets that are never closed."""
    text = header.encode().ljust(117) + b"\n"
    member = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(112)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for name in ("observations.npy", "actions.npy"):
            archive.writestr(name, member)
    with pytest.raises(EluteError, match=r"a\.npz"):
        load(tmp_path / "a.npz")


def test_an_array_that_would_fill_the_memory_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, columns in (("observations", 20), ("actions", 2)):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                header = {"descr": "<f8", "fortran_order": False, "shape": (5_000_000, columns)}
                np.lib.format.write_array_header_1_0(member, header)
                for _ in range(5):
                    member.write(bytes(8_000_000 * columns))
    assert (tmp_path / "a.npz").stat().st_size < 2**20
    with pytest.raises(EluteError, match="would unfold"):
        load(tmp_path / "a.npz")
