"""The table of formats. To add one, write a module like `vild.py` and give it a line here."""

from importlib import import_module
from typing import TYPE_CHECKING, cast

from elute.errors import EluteError

if TYPE_CHECKING:
    from elute.demos.format import Format

FORMATS = {
    "npz": "elute .npz (observations, actions, episode_lengths, ...)",
    "vild": "VILD / DP-IL HDF5 (expert_states, expert_actions, expert_masks)",
    "d4rl": "D4RL HDF5 (observations, actions, rewards, terminals, timeouts)",
    "robomimic": "robomimic HDF5 (data/demo_N, filter keys in mask/)",
    "robosuite": "robosuite demo.hdf5 (data/demo_N with states, actions, model_file)",
    "roboturk": "RoboTurk pilot folder (demo.hdf5, models/)",
    "minari": "Minari dataset folder, HDF5 storage",
    "imitation": "imitation trajectories, a Hugging Face folder (state.json, data-*.arrow)",
    "lerobot": "LeRobot data set folder, v3.0 (v2.1 is read)",
}
"""Name of the module here -> one line about the format. Tried in this order."""


def format_module(name: str) -> "Format":
    """The module of a format, imported when it is needed.

    Raises:
        EluteError: there is no such format.
    """
    if name not in FORMATS:
        raise EluteError(f"{name!r} is no format", hint="formats are " + ", ".join(FORMATS))
    return cast("Format", import_module(f"elute.demos.{name}"))
