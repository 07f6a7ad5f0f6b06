"""A safetensors file as elute writes it: tensors, and a JSON header under "elute". Never pickle.

    temporary.write_bytes(save(tensors, metadata=metadata(header)))
    header, tensors = read_safetensors(path, "np")

`save` is that of `safetensors.numpy` or `safetensors.torch`; "np" or "pt" says which arrays come
back, so that a policy is read without torch.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError, safe_open

from elute.errors import EluteError

NAME = "elute"
"""Of the header, among the metadata of the file."""


def metadata(header: Mapping[str, Any]) -> dict[str, str]:
    """The header as safetensors stores it."""
    return {NAME: json.dumps(header)}


def read_safetensors(
    path: Path, framework: Literal["np", "pt"]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and tensors.

    Raises:
        EluteError: there is no such file.
        ValueError: it is another file, or broken; for the caller to say what was expected.
    """
    if path.is_dir():
        raise ValueError("it is a folder")
    try:
        with safe_open(path, framework=framework) as file:
            header = _header(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise EluteError(f"{path}: no such file") from error
    except (OSError, SafetensorError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error  # the last two: of a type that numpy does not have
    for name, tensor in tensors.items():
        if framework == "np" and tensor.dtype.kind not in "fiub":  # some library may have added it
            raise ValueError(f"{name} is {tensor.dtype}, which numpy does not have")
    return header, tensors


def _header(stored: Mapping[str, str]) -> dict[str, Any]:
    if NAME not in stored:
        raise ValueError("it has no header of elute")
    header = json.loads(stored[NAME])
    if not isinstance(header, dict):
        raise ValueError("its header is of something else")
    return header
