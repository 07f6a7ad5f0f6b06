"""Ray, which is an extra: found, and connected to for as long as there is work."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from elute.errors import EluteError


def ray_library() -> Any:  # noqa: ANN401 (an extra)
    """The library.

    Raises:
        EluteError: Ray is not installed.
    """
    try:
        import ray  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise EluteError("--engine ray needs Ray", hint="pip install 'elute[ray]'") from error
    return ray


@contextmanager
def connected(library: Any, jobs: int, address: str) -> Iterator[None]:  # noqa: ANN401
    """A cluster: one that runs at this address, or a local one of so many processes.

    Raises:
        EluteError: there is no cluster at the address.
    """
    given = {"address": address} if address else {"num_cpus": jobs, "include_dashboard": False}
    try:
        library.init(log_to_driver=False, **given)
    except ConnectionError as error:
        raise EluteError(
            f"no Ray cluster at {address}", hint="ray start --head starts one"
        ) from error
    try:
        yield
    finally:
        library.shutdown()
