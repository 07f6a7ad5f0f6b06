"""imitation's own loader reads what elute writes, and the reverse. Run with `make test-peers`."""

import warnings

import numpy as np
import pytest

from builders import assert_same_array, rich
from elute.demos.corrupt import corrupt
from elute.demos.files import load, open_demos, save
from elute.demos.pointmass import pointmass

pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore:keys will default:DeprecationWarning"),  # of jsonpickle
]


@pytest.fixture(scope="module")
def peer():
    """The modules of imitation that keep trajectories."""
    with warnings.catch_warnings(action="ignore"):  # it is older than what it imports
        pytest.importorskip("imitation", reason="imitation is not installed: make test-peers")
        from imitation.data import rollout, serialize, types  # noqa: PLC0415

        yield {"load": serialize.load, "save": serialize.save, "types": types, "rollout": rollout}


def assert_holds(trajectories, demos):
    """imitation's trajectories are these demonstrations."""
    assert len(trajectories) == len(demos.episodes)
    for i, (trajectory, episode) in enumerate(
        zip(trajectories, demos.iter_episodes(), strict=True)
    ):
        np.testing.assert_array_equal(trajectory.obs[:-1], episode.observations)
        np.testing.assert_array_equal(trajectory.acts, episode.actions)
        np.testing.assert_array_equal(trajectory.rews, episode.rewards)
        np.testing.assert_array_equal(trajectory.obs[-1], episode.next_observations[-1])
        assert trajectory.terminal == demos.episodes.terminated[i]


@pytest.fixture
def saved(peer, tmp_path):
    """A folder that imitation saved."""
    rng = np.random.default_rng(0)
    trajectories = [
        peer["types"].TrajectoryWithRew(
            obs=rng.normal(size=(n + 1, 3)).astype("float32"),
            acts=rng.normal(size=(n, 2)).astype("float32"),
            rews=rng.normal(size=n).astype("float32"),
            infos=np.array([{"step": i, "array": np.arange(i), "text": "zoë"} for i in range(n)]),
            terminal=bool(n % 2),
        )
        for n in (4, 3, 6)
    ]
    peer["save"](tmp_path / "theirs", trajectories)
    return tmp_path / "theirs", trajectories


def test_what_imitation_saved_is_read(saved):
    path, trajectories = saved
    demos = load(path)
    assert demos.observations.dtype == np.float32
    assert_same_array(demos.observations, np.concatenate([t.obs[:-1] for t in trajectories]))
    assert_same_array(demos.next_observations, np.concatenate([t.obs[1:] for t in trajectories]))
    assert_same_array(demos.actions, np.concatenate([t.acts for t in trajectories]))
    assert_same_array(demos.rewards, np.concatenate([t.rews for t in trajectories]))
    assert demos.episodes.terminated.tolist() == [t.terminal for t in trajectories]


@pytest.mark.parametrize("demos", [pointmass(6), rich()], ids=["pointmass", "rich"])
def test_a_fresh_folder(peer, tmp_path, demos):
    save(demos, tmp_path / "ours", format="imitation")
    trajectories = peer["load"](tmp_path / "ours")
    assert_holds(trajectories, load(tmp_path / "ours"))
    assert all(info == {} for trajectory in trajectories for info in trajectory.infos)


def test_a_patched_copy_keeps_their_infos_and_types(peer, saved, tmp_path):
    path, trajectories = saved
    noisy = corrupt(load(path), "gaussian", 0.3)
    save(noisy, tmp_path / "noisy")
    read = peer["load"](tmp_path / "noisy")
    assert_holds(read, noisy)
    assert read.dataset.features == peer["load"](path).dataset.features
    for new, old in zip(read, trajectories, strict=True):
        for one, other in zip(new.infos, old.infos, strict=True):
            np.testing.assert_equal(one, other)


def test_a_selection_and_a_cut(peer, saved, tmp_path):
    path, trajectories = saved
    save(open_demos(f"{path}#episodes=2,0"), tmp_path / "some")
    assert_holds(peer["load"](tmp_path / "some"), load(path).select([2, 0]))
    save(load(path)[1:6], tmp_path / "cut")
    cut = peer["load"](tmp_path / "cut")
    assert [info["step"] for trajectory in cut for info in trajectory.infos] == [1, 2, 3, 0, 1]
    assert not any(trajectory.terminal for trajectory in cut)
    assert len(cut[0].infos) == len(trajectories[0].infos) - 1


def test_its_learners_can_flatten_them(peer, tmp_path):
    demos = pointmass(6)
    save(demos, tmp_path / "ours", format="imitation")
    transitions = peer["rollout"].flatten_trajectories(list(peer["load"](tmp_path / "ours")))
    np.testing.assert_array_equal(transitions.acts, demos.actions)
    np.testing.assert_array_equal(transitions.dones[demos.episodes.stops - 1],
                                  demos.episodes.terminated)  # fmt: skip
