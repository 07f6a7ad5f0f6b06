"""A trained purifier as a file: safetensors with a JSON header. Never pickle.

    save_transform(transform, Path("cheetah.purifier"))
    transform = load_transform(Path("cheetah.purifier"))     # purifies bit for bit as before

The header ("elute" in the file's metadata) holds version, settings, units and columns, so that the
file refuses data of other widths or units, and other programs can read what it is.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from safetensors.torch import save
from torch import Tensor

from elute.columns import columns_from_json, columns_to_json
from elute.demos.output import output
from elute.diffusion.ddpm import Trained
from elute.diffusion.denoiser import DENOISERS, make_denoiser
from elute.errors import EluteError
from elute.nets import seeded
from elute.purify.diffusion import DiffusionPurifier, DiffusionTransform
from elute.purify.normaliser import Normaliser
from elute.safetensors_file import metadata, read_safetensors

KIND = "elute diffusion purifier"
VERSION = 1


def save_transform(transform: DiffusionTransform, path: Path) -> None:
    """Write a trained purifier; a killed process leaves the old file or the new one.

    Raises:
        EluteError: it cannot be written, or its network is none of the architectures.
    """
    if not isinstance(transform.network, DENOISERS[transform.purifier.architecture]):
        raise EluteError("a purifier around a network of one's own is not stored")
    weights = {k: v.detach().contiguous() for k, v in transform.network.state_dict().items()}
    stored = save(weights, metadata=metadata(_header(transform)))
    with output(path) as temporary:
        temporary.write_bytes(stored)


def load_transform(path: Path) -> DiffusionTransform:
    """Read a trained purifier.

    Raises:
        EluteError: the file is none, of another version, or broken.
    """
    try:
        header, weights = read_safetensors(path, "pt")
    except ValueError as error:
        raise _none(path, str(error)) from error
    if header.get("kind") != KIND:
        raise _none(path, "its header is of something else")
    if header.get("version") != VERSION:
        raise EluteError(
            f"{path}: a purifier of version {header.get('version')}; this is version {VERSION}",
            hint="fit it again with --save-model",
        )
    try:
        return _transform(header, weights)
    except (KeyError, TypeError, ValueError, RuntimeError, EluteError) as error:
        raise _none(path, f"header and weights do not fit: {error}") from error


def _header(transform: DiffusionTransform) -> dict[str, Any]:
    split = transform.n_observations
    return {
        "kind": KIND,
        "version": VERSION,
        "purifier": asdict(transform.purifier),
        "normaliser": transform.normaliser.to_json(),
        "observation_columns": columns_to_json(transform.columns[:split]),
        "action_columns": columns_to_json(transform.columns[split:]),
        "n_observations": split,
        "max_step": transform.max_step,
        "curve": transform.trained.curve,
        "held_out": transform.trained.held_out,
        "updates": transform.trained.updates,
    }


def _transform(header: dict[str, Any], weights: dict[str, Tensor]) -> DiffusionTransform:
    purifier = TypeAdapter(DiffusionPurifier).validate_python(header["purifier"])
    normaliser = Normaliser.from_json(header["normaliser"])
    observations = columns_from_json(header["observation_columns"])
    actions = columns_from_json(header["action_columns"])
    widths = len(observations), len(observations) + len(actions)
    if widths != (header["n_observations"], len(normaliser.varies)):
        raise ValueError("columns and units differ in number")
    with seeded(np.random.default_rng(0)):  # fresh weights, overwritten at once
        network = make_denoiser(purifier.architecture, int(normaliser.varies.sum()))
    network.load_state_dict(weights)
    trained = Trained(
        weights=weights,
        curve=[(update, loss) for update, loss in header["curve"]],
        held_out=[(update, loss) for update, loss in header["held_out"]],
        updates=header["updates"],
    )
    return DiffusionTransform(
        purifier,
        network,
        normaliser,
        (*observations, *actions),
        len(observations),
        max_step=int(header["max_step"]),
        trained=trained,
    )


def _none(path: Path, reason: str) -> EluteError:
    return EluteError(f"{path}: no purifier: {reason}", hint="elute purify --save-model writes one")
