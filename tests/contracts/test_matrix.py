"""Every format into every other one: rows stay, and what does not is said, or refused if asked."""

import pytest

from builders import (
    assert_same_array,
    d4rl_file,
    fingerprint,
    imitation_folder,
    place,
    rich,
    robomimic_file,
    robosuite_file,
    roboturk_folder,
    vild_file,
)
from elute.demos.files import load, open_demos, save
from elute.demos.formats import FORMATS
from elute.errors import EluteError

OTHERS = {
    "vild": vild_file,
    "d4rl": d4rl_file,
    "robomimic": robomimic_file,
    "robosuite": robosuite_file,
    "roboturk": roboturk_folder,
    "imitation": imitation_folder,
}
"""As another tool writes them; the remaining formats as elute does."""


def source_of(name, folder):
    folder.mkdir()
    path = place(folder, name)
    if name in OTHERS:
        return OTHERS[name](path)
    save(rich(), path, format=name)
    return path


@pytest.mark.parametrize("after", FORMATS)
@pytest.mark.parametrize("before", FORMATS)
def test_every_pair(tmp_path, before, after):
    path = source_of(before, tmp_path / "in")
    untouched = fingerprint(path)
    (tmp_path / "out").mkdir()
    out = place(tmp_path / "out", after)
    losses = save(open_demos(path), out, format=after)

    source, read = load(path), load(out)
    for name in ("observations", "actions", "rewards"):
        assert_same_array(getattr(source, name), getattr(read, name), name)
    assert set(source.extras) <= set(read.extras)
    for name in ("lengths", "terminated", "truncated", "inferred"):
        assert_same_array(getattr(source.episodes, name), getattr(read.episodes, name), name)
    assert source.observation_columns == read.observation_columns
    assert source.action_columns == read.action_columns
    kept = source.next_observations is None or any("next observations" in s for s in losses)
    if not kept:
        assert_same_array(source.next_observations, read.next_observations)
    for about, now in zip(source.episodes.attributes, read.episodes.attributes, strict=True):
        assert {key: now.get(key) for key in about} == about
    assert fingerprint(path) == untouched

    if before == after:
        assert losses == []
    if losses:
        refused = place(tmp_path, after)
        with pytest.raises(EluteError, match="cannot hold everything"):
            save(open_demos(path), refused, format=after, strict=True)
        assert not refused.exists()
    else:
        save(open_demos(path), out, format=after, strict=True)
