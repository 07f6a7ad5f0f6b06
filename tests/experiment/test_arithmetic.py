"""Which machines agree bit for bit."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest
import torch

CODE = "from elute.experiment.arithmetic import arithmetic; print(arithmetic())"


def digits(**environment):
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_same_in_every_process_and_with_any_number_of_threads():
    assert digits(OMP_NUM_THREADS="1") == digits(OMP_NUM_THREADS="2")


KERNELS = {
    "numpy": ({"OPENBLAS_CORETYPE": "Nehalem"}, "openblas" in str(np.show_config(mode="dicts"))),
    "torch": ({"MKL_CBWR": "COMPATIBLE"}, torch.backends.mkl.is_available()),
}
"""Other kernels of each library, and whether it is the one they are of."""


@pytest.mark.parametrize("library", KERNELS)
def test_other_kernels_are_noticed(library):
    kernels, has_them = KERNELS[library]
    if not has_them or platform.machine() != "x86_64":
        pytest.skip(f"{library} has no such kernels here")
    assert digits(**kernels) != digits()
