"""Which machines agree bit for bit."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest
import torch

CODE = "from elute.experiment.arithmetic import arithmetic; print(arithmetic())"
RECORDINGS = "from elute.collect.catalogue import rounding; print(rounding())"


def digits(code=CODE, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
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


def test_recordings_are_kept_by_how_numpy_rounds():
    kernels, has_them = KERNELS["numpy"]
    if not has_them or platform.machine() != "x86_64":
        pytest.skip("numpy has no such kernels here")
    assert digits(RECORDINGS, **kernels) != digits(RECORDINGS)
    assert digits(RECORDINGS, OMP_NUM_THREADS="1") == digits(RECORDINGS, OMP_NUM_THREADS="2")
