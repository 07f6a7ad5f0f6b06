"""Fixtures that several test files share; the builders themselves are in `builders.py`."""

import os

# One thread per process, before numpy is imported: two workers with two threads each are slower.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "elute",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("elute")

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real files, which are not part of the repository."""
    folder = Path(os.environ.get("ELUTE_TEST_DATA", ROOT / ".." / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the real demonstrations are not here: set ELUTE_TEST_DATA to their folder")
    return folder
