"""Tensors with a JSON header: what comes back, and what is said of other files."""

import numpy as np
import pytest
import torch
from safetensors.numpy import save
from safetensors.torch import save as save_torch

from elute.errors import EluteError
from elute.safetensors_file import metadata, read_safetensors

HEADER = {"kind": "a test", "numbers": [1, 0.1], "nothing": None}


@pytest.mark.parametrize("framework", ["np", "pt"])
def test_header_and_tensors_come_back(framework, tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(save({"a": np.arange(3.0), "b": np.eye(2)}, metadata=metadata(HEADER)))
    header, tensors = read_safetensors(path, framework)
    assert header == HEADER
    assert isinstance(tensors["a"], np.ndarray if framework == "np" else torch.Tensor)
    assert tensors["a"].tolist() == [0, 1, 2]
    assert tensors["b"].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (save({"a": np.zeros(2)}), "no header of elute"),
        (save({"a": np.zeros(2)}, metadata={"elute": "[1]"}), "of something else"),
        (save({"a": np.zeros(2)}, metadata={"elute": "{"}), "Expecting property name"),
        (save_torch({"a": torch.zeros(2, dtype=torch.bfloat16)}), "no header of elute"),
        (save_torch({"a": torch.zeros(2, dtype=torch.bfloat16)}, metadata(HEADER)), "bfloat16"),
        (b"", "eader"),
    ],
    ids=["bare", "list", "torn", "model", "type", "empty"],
)
def test_other_files_are_told_apart(content, said, tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=said):
        read_safetensors(path, "np")


def test_folders_and_missing_files_are_said_to_be_that(tmp_path):
    with pytest.raises(ValueError, match="it is a folder"):
        read_safetensors(tmp_path, "np")
    with pytest.raises(EluteError, match="no such file"):
        read_safetensors(tmp_path / "missing", "np")
