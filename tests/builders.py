"""Small demonstrations and files as other tools write them, and how to compare them."""

import hashlib
import json
from pathlib import Path

import h5py
import numpy as np

from elute.columns import Column, columns
from elute.demos.formats import format_module
from elute.episodes import Episodes, Provenance
from elute.types import Demonstrations

LENGTHS = (5, 3, 7, 1, 4)


def plain(lengths=(4, 3), *, observations=3, actions=2, seed=0) -> Demonstrations:
    """Nothing but observations and actions."""
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    return Demonstrations(
        observations=rng.normal(size=(n, observations)),
        actions=rng.normal(size=(n, actions)),
        episodes=Episodes.of(lengths, terminated=[True] * len(lengths)),
    )


def rich(*, action_type="float32", following=True, lengths=LENGTHS, seed=0) -> Demonstrations:
    """Everything that demonstrations can carry, odd values included."""
    rng = np.random.default_rng(seed)
    n, count = sum(lengths), len(lengths)
    ends = np.arange(count) % 4  # terminated, truncated, both, neither, terminated, ...
    episodes = Episodes.of(
        lengths,
        terminated=np.isin(ends, (0, 2)),
        truncated=np.isin(ends, (1, 2)),
        attributes=[
            {
                "seed": 7 + i,
                "operator": f"zoë {i}",
                "score": 0.1 * i,
                "good": i > 1,
                "tags": ["a", i],
            }
            for i in range(count)
        ],
    )
    observations = rng.normal(size=(n, 9))
    observations[1, 2], observations[2, 3], observations[0, 0] = np.nan, np.inf, -0.0
    after = np.roll(observations, -1, axis=0)
    after[episodes.stops - 1] = rng.normal(size=(count, 9))
    actions = rng.normal(size=(n, 3)).astype(action_type)
    actions[:, 2] = rng.integers(0, 2, n)
    return Demonstrations(
        observations=observations,
        actions=actions,
        rewards=rng.normal(size=n),
        next_observations=after if following else None,
        extras={
            "clean_actions": rng.normal(size=(n, 3)).astype(action_type),
            "operator": rng.integers(0, 3, n).astype("int32"),
            "success": rng.random(n) < 0.5,
            "states": rng.normal(size=(n, 4)).astype("float32"),
        },
        episodes=episodes,
        observation_columns=(
            *columns("robot0_eef_quat", 4),
            *columns("object", 3),
            *(Column("force", i, role) for i, role in enumerate(("constant", "continuous"))),
        ),
        action_columns=(*columns("arm", 2), *columns("gripper_mode", 1)),
        provenance=Provenance(task="lift").then("collect", noise=0.1, names=["a", "b"]),
    )


def place(folder: Path, name: str) -> Path:
    """A path in a folder that fits a format."""
    return folder / f"demos-v0{format_module(name).SUFFIXES[0]}"


def main_file(path: Path) -> Path:
    """The file that holds the arrays of a dataset."""
    arrays = (p for p in sorted(path.rglob("*")) if p.suffix in (".hdf5", ".arrow", ".parquet"))
    return next(arrays) if path.is_dir() else path


def noted_json(path: Path) -> Path | None:
    """The JSON file of a folder that elute leaves its note in."""
    found = (
        p
        for p in path.rglob("*.json")
        if p.name == "elute.json" or "elute" in json.loads(p.read_text())
    )
    return next(found, None) if path.is_dir() else None


def fingerprint(path: Path) -> dict[str, str]:
    """Name and hash of every file at or below a path."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return {str(f.relative_to(path)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def assert_same_array(one, other, name="array") -> None:
    """Bit for bit, NaN included."""
    assert (one is None) == (other is None), name
    if one is not None:
        assert one.dtype == other.dtype, name
        assert one.shape == other.shape, name
        assert one.tobytes() == other.tobytes(), name


def assert_same_rows(one: Demonstrations, other: Demonstrations, *, following=True) -> None:
    """Arrays, ends, columns."""
    for name in ("observations", "actions", "rewards", "next_observations")[: 3 + following]:
        assert_same_array(getattr(one, name), getattr(other, name), name)
    assert set(one.extras) == set(other.extras)
    for name in one.extras:
        assert_same_array(one.extras[name], other.extras[name], name)
    for name in ("lengths", "terminated", "truncated", "inferred"):
        assert_same_array(getattr(one.episodes, name), getattr(other.episodes, name), name)
    assert one.observation_columns == other.observation_columns
    assert one.action_columns == other.action_columns


def joined(parts) -> dict[str, np.ndarray]:
    """The arrays of chunks, put together again."""
    parts = list(parts)
    names = [n for n in ("observations", "actions", "rewards", "next_observations")
             if getattr(parts[0], n) is not None]  # fmt: skip
    arrays = {n: np.concatenate([getattr(p, n) for p in parts]) for n in names}
    return arrays | {n: np.concatenate([p.extras[n] for p in parts]) for n in parts[0].extras}


def hdf5_tree(path: Path) -> dict[str, tuple]:
    """Every item of an HDF5 file: bytes, type, storage and attributes."""
    tree: dict[str, tuple] = {}

    def visit(name, item):
        attributes = {k: np.asarray(v).tolist() for k, v in item.attrs.items()}
        if not isinstance(item, h5py.Dataset):
            tree[name] = ("group", attributes)
            return
        value = item[()]
        content = value.tobytes() if item.dtype.kind != "O" else np.asarray(value).tolist()
        storage = (item.chunks, item.maxshape, item.compression, item.compression_opts)
        tree[name] = (content, str(item.dtype), item.shape, storage, attributes)

    with h5py.File(path, "r") as file:
        visit("", file)
        file.visititems(visit)
    return tree


def assert_same_datasets(one: Path, other: Path) -> None:
    """The datasets of two HDF5 files, bit for bit; elute's note aside."""

    def datasets(path):
        return {k: item for k, item in hdf5_tree(path).items() if item[0] != "group"}

    before, after = datasets(one), datasets(other)
    assert set(before) == set(after) - {"elute"}
    for key, item in before.items():
        assert item[:3] == after[key][:3], key


def vild_file(path: Path, lengths=(4, 3, 5), *, seed=0, last_mask=0, **extra) -> Path:
    """As the authors of VILD write it."""
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    masks = np.ones(n, dtype="int32")
    masks[np.cumsum(lengths) - 1] = 0
    masks[-1] = last_mask
    with h5py.File(path, "w") as file:
        file["expert_states"] = rng.normal(size=(n, 6))
        file["expert_actions"] = 2 * rng.normal(size=(n, 2)).astype("float32")
        file["expert_masks"] = masks
        file["expert_rewards"] = rng.normal(size=n)
        file["expert_source_path"] = "/home/someone/expert.h5"
        for name, values in extra.items():
            file[name] = values
    return path


def d4rl_file(path: Path, lengths=(4, 3, 5), *, seed=0, tail=True, timeouts=True) -> Path:
    """As D4RL publishes them: gzip, (n, 1) columns, infos, metadata; the last part unfinished."""
    rng = np.random.default_rng(seed)
    n, stops = sum(lengths), np.cumsum(lengths)
    observations = rng.normal(size=(n, 4)).astype("float32")
    after = np.roll(observations, -1, axis=0)
    after[stops - 1] = rng.normal(size=(len(lengths), 4))
    ends = np.zeros(n, dtype=bool)
    ends[stops[: -1 if tail else None] - 1] = True
    terminal = ends & (np.arange(n) < stops[0])
    with h5py.File(path, "w") as file:
        arrays = {
            "observations": observations,
            "next_observations": after,
            "actions": rng.normal(size=(n, 2)).astype("float32"),
            "rewards": rng.normal(size=(n, 1)).astype("float32"),
            "terminals": terminal[:, None],
            "infos/qpos": rng.normal(size=(n, 3)),
            "infos/action_log_probs": rng.normal(size=n).astype("float32"),
            "infos/frame": rng.integers(0, 255, (n, 4, 4, 3)).astype("uint8"),
        }
        if timeouts:
            arrays["timeouts"] = (ends & ~terminal)[:, None]
        for name, values in arrays.items():
            file.create_dataset(name, data=values, compression="gzip", chunks=True)
        file["metadata/algorithm"] = "SAC"
        file["metadata/policy/fc0/weight"] = rng.normal(size=(n, 8))  # as long as the rows
        file.attrs["made_by"] = "a script"
    return path


ROBOMIMIC_ENV = {"env_name": "Lift", "type": 1, "env_version": "1.4", "env_kwargs": {"a": [1]}}


def robomimic_file(path: Path, lengths=(4, 3, 5), *, names=None, seed=0) -> Path:
    """As robomimic ships them: images, simulator states, filter keys, a model per demonstration."""
    rng = np.random.default_rng(seed)
    names = names or [f"demo_{i}" for i in range(len(lengths))]
    with h5py.File(path, "w", libver="v108") as file:
        data = file.create_group("data")
        data.attrs["total"] = sum(lengths)
        data.attrs["env_args"] = json.dumps(ROBOMIMIC_ENV)
        for name, n in zip(names, lengths, strict=True):
            group = data.create_group(name)
            group.attrs["num_samples"] = n
            group.attrs["model_file"] = f"<mujoco {name}>" + "x" * 70_000
            full = {
                "robot0_eef_pos": rng.normal(size=(n + 1, 3)),
                "robot0_eef_quat": rng.normal(size=(n + 1, 4)),
                "object": rng.normal(size=(n + 1, 5)),
                "robot0_joint_vel": rng.normal(size=(n + 1, 2)),
                "agentview_image": rng.integers(0, 255, (n + 1, 6, 6, 3)).astype("uint8"),
            }
            for key, values in full.items():
                group.create_dataset(f"obs/{key}", data=values[:-1], compression="gzip")
                group.create_dataset(f"next_obs/{key}", data=values[1:], compression="gzip")
            group.create_dataset("actions", data=rng.uniform(-1, 1, (n, 3)), chunks=(2, 3))
            group["states"] = rng.normal(size=(n, 8))
            group["rewards"] = (np.arange(n) == n - 1).astype(float)
            group["dones"] = (np.arange(n) >= n - 2).astype("int64")  # success on earlier rows too
        file["mask/better"] = np.array([names[0].encode(), names[-1].encode()])
        file["mask/worse"] = np.array([names[1].encode()])
    return path


def robosuite_file(path: Path, lengths=(4, 3, 5), *, split=False, seed=0) -> Path:
    """As robosuite's collecting script leaves it: states, actions, a model; counted from one."""
    rng = np.random.default_rng(seed)
    with h5py.File(path, "w", libver="v108") as file:
        data = file.create_group("data")
        data.attrs.update({"date": "8-11-2018", "time": "12:00:01", "env": "SawyerNutAssembly"})
        data.attrs["repository_version"] = "0.3.0" if split else "1.5.2"
        if not split:
            data.attrs["env_info"] = json.dumps({"robots": "Sawyer"})
        for i, n in zip((1, 2, 10), lengths, strict=True):
            group = data.create_group(f"demo_{i}")
            group.attrs["model_file"] = f'<mujoco model="{i}">zoë\r\n</mujoco>'
            group.create_dataset("states", data=rng.normal(size=(n, 5)), compression="gzip")
            arm, gripper = rng.uniform(-1, 1, (n, 7)), rng.choice([-1.0, 1.0], (n, 1))
            if split:
                group["joint_velocities"], group["gripper_actuations"] = arm, gripper
                group["right_dpos"] = rng.normal(size=(n, 3))
            else:
                group["actions"] = np.concatenate([arm, gripper], axis=1)
    return path


def roboturk_folder(path: Path, lengths=(4, 3, 5), *, seed=0) -> Path:
    """As the RoboTurk pilot was published: actions in two arrays, models in files."""
    (path / "models").mkdir(parents=True)
    with h5py.File(
        robosuite_file(path / "demo.hdf5", lengths, split=True, seed=seed), "r+"
    ) as file:
        for name, group in file["data"].items():
            model = f"model_{name.removeprefix('demo_')}.xml"
            (path / "models" / model).write_bytes(group.attrs["model_file"].encode())
            group.attrs["model_file"] = model
    return path


def imitation_folder(path: Path, lengths=(4, 3, 5), *, seed=0) -> Path:
    """As imitation saves trajectories through `datasets`."""
    import pyarrow as pa  # noqa: PLC0415 (not in every environment of a peer)

    rng = np.random.default_rng(seed)
    path.mkdir(parents=True)

    def vectors(steps, width):
        return rng.normal(size=(steps, width)).astype("float32").tolist()

    vector = pa.list_(pa.list_(pa.float32()))
    infos = [[json.dumps({"step": i, "zoë": {"py/object": "a.B"}}, ensure_ascii=bool(i % 2))
              for i in range(n)] for n in lengths]  # fmt: skip
    table = pa.table(
        {
            "obs": pa.array([vectors(n + 1, 3) for n in lengths], vector),
            "acts": pa.array([vectors(n, 2) for n in lengths], vector),
            "infos": pa.array(infos),
            "terminal": pa.array([i % 2 == 0 for i in range(len(lengths))]),
            "rews": pa.array([vectors(1, n)[0] for n in lengths], pa.list_(pa.float32())),
        }
    )
    name = "data-00000-of-00001.arrow"
    with pa.ipc.new_stream(str(path / name), table.schema) as stream:
        stream.write_table(table)
    number = {"dtype": "float32", "_type": "Value"}
    several = {"feature": number, "_type": "List"}
    features = {
        "obs": {"feature": several, "_type": "List"},
        "acts": {"feature": several, "_type": "List"},
        "infos": {"feature": {"dtype": "string", "_type": "Value"}, "_type": "List"},
        "terminal": {"dtype": "bool", "_type": "Value"},
        "rews": several,
    }
    info = {"citation": "", "description": "", "features": features, "homepage": "", "license": ""}
    state = {"_data_files": [{"filename": name}], "_fingerprint": "0123456789abcdef",
             "_format_columns": None, "_format_kwargs": {}, "_format_type": None,
             "_output_all_columns": False, "_split": None}  # fmt: skip
    (path / "dataset_info.json").write_text(json.dumps(info, indent=2))
    (path / "state.json").write_text(json.dumps(state, indent=2))
    return path
